/* biga fabric: reading, folding, the tree and the graph */
#include "cli/verb/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"
#include "model/fabric/fabric.h"

enum { HOSTS_PER_PAGE = 100000, DIGITS_MAX = 18 };

/* --- reading ------------------------------------------------------------ */

void picture_init(struct picture *p)
{
    memset(p, 0, sizeof *p);
    p->first_root = PICTURE_NONE;
}

void picture_fini(struct picture *p)
{
    for (size_t i = 0; i < p->n_domains; i++)
        free(p->domains[i].name);
    for (size_t i = 0; i < p->n_hosts; i++)
        free(p->hosts[i].name);
    free(p->domains);
    free(p->hosts);
    memset(p, 0, sizeof *p);
}

static int add_domain(struct picture *p, const cJSON *json, size_t n,
                      struct error *err)
{
    struct picture_domain *d = &p->domains[p->n_domains];
    const cJSON *cards = cJSON_GetObjectItemCaseSensitive(json, "cards");
    int tier = fabric_tier_parse(json_text(json, "tier"), err);
    double parent = json_number(json, "parent");
    if (tier < 0)
        return error_wrap(err, "domains[%zu].tier", p->n_domains);
    if (parent >= (double)n)
        return error_set(err, EINVAL, "domains[%zu].parent: is %.0f of %zu",
                         p->n_domains, parent, n);
    d->name = xstrdup(json_text(json, "name"));
    d->tier = (uint8_t)tier;
    d->parent = parent >= 0 ? (int32_t)parent : PICTURE_NONE;
    d->first_child = d->next_sibling = PICTURE_NONE;
    double hosts = json_number(json, "hosts");
    double total = json_number(cards, "total"),
           idle = json_number(cards, "idle");
    d->hosts = hosts > 0 ? (uint32_t)hosts : 0;
    d->cards = total > 0 ? (uint32_t)total : 0;
    d->idle = idle > 0 ? (uint32_t)idle : 0;
    p->n_domains++;
    return 0;
}

struct named {
    const char *name;
    int32_t domain;
};

static int named_order(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = text_order(x->name, y->name);
    return order ? order : (x->domain > y->domain) - (x->domain < y->domain);
}

/* Siblings in the order of their names. */
static void link_domains(struct picture *p)
{
    cleanup_free struct named *all = xcalloc(p->n_domains + 1, sizeof *all);
    p->first_root = PICTURE_NONE;
    for (size_t i = 0; i < p->n_domains; i++)
        all[i] = (struct named){p->domains[i].name, (int32_t)i};
    if (p->n_domains)
        qsort(all, p->n_domains, sizeof *all, named_order);
    for (size_t i = p->n_domains; i-- > 0;) {
        struct picture_domain *d = &p->domains[all[i].domain];
        int32_t *first = d->parent < 0 ? &p->first_root
                                       : &p->domains[d->parent].first_child;
        d->next_sibling = *first;
        *first = all[i].domain;
    }
}

static int add_domains(struct picture *p, const cJSON *list, struct error *err)
{
    size_t n = (size_t)cJSON_GetArraySize(list);
    const cJSON *x;
    if (n > FABRIC_DOMAINS_MAX)
        return error_set(err, EINVAL, "domains: more than %d",
                         FABRIC_DOMAINS_MAX);
    p->domains = xcalloc(n + 1, sizeof *p->domains);
    cJSON_ArrayForEach(x, list)
    {
        int r = add_domain(p, x, n, err);
        if (r < 0)
            return r;
    }
    for (size_t i = n; i-- > 0;) {
        const struct picture_domain *d = &p->domains[i];
        if (d->parent >= 0 && p->domains[d->parent].tier <= d->tier)
            return error_set(err, EINVAL, /* so no domain is above itself */
                             "domains[%zu].parent: its tier is not higher", i);
    }
    link_domains(p);
    return 0;
}

static int add_host(struct picture *p, const cJSON *json, struct error *err)
{
    const cJSON *cards = cJSON_GetObjectItemCaseSensitive(json, "cards");
    double leaf = json_number(json, "leaf");
    if (leaf >= (double)p->n_domains ||
        (leaf >= 0 && p->domains[(size_t)leaf].tier != 0))
        return error_set(err, EINVAL, "items[%zu].leaf: is %.0f, no leaf",
                         p->n_hosts, leaf);
    p->hosts = xgrow(p->hosts, p->n_hosts, &p->hosts_cap, sizeof *p->hosts);
    struct picture_host *h = &p->hosts[p->n_hosts++];
    h->name = xstrdup(json_text(json, "name"));
    h->leaf = leaf >= 0 ? (int32_t)leaf : PICTURE_NONE;
    h->cards = (int32_t)json_number(cards, "total");
    h->idle = (int32_t)json_number(cards, "idle");
    return 0;
}

int picture_add(struct picture *p, const cJSON *page, struct error *err)
{
    const cJSON *domains = json_list(page, "domains"), *x;
    if (domains && !p->domains) {
        int r = add_domains(p, domains, err);
        if (r < 0)
            return r;
    }
    cJSON_ArrayForEach(x, json_list(page, "items"))
    {
        int r = add_host(p, x, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int compare_hosts(const void *a, const void *b)
{
    const struct picture_host *x = a, *y = b;
    if (x->leaf != y->leaf)
        return x->leaf < y->leaf ? -1 : 1;
    return text_order(x->name, y->name);
}

void picture_finish(struct picture *p)
{
    if (p->n_hosts)
        qsort(p->hosts, p->n_hosts, sizeof *p->hosts, compare_hosts);
    for (size_t i = p->n_hosts; i-- > 0;) {
        if (p->hosts[i].leaf < 0) {
            p->n_unknown++;
            continue;
        }
        struct picture_domain *d = &p->domains[p->hosts[i].leaf];
        d->first_host = i;
        d->n_hosts++;
    }
}

/* --- folding ------------------------------------------------------------ */

/* A name around its last number. */
struct parts {
    const char *name, *digits, *tail;
    size_t head_size, n_digits;
    uint64_t number;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct parts split(const char *name)
{
    struct parts p = {.name = name, .head_size = strlen(name)};
    size_t end = p.head_size;
    while (end > 0 && !is_digit(name[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && is_digit(name[begin - 1]) && end - begin < DIGITS_MAX)
        begin--;
    p.tail = name + (end > 0 ? end : p.head_size);
    if (end > 0)
        p.head_size = begin;
    p.digits = name + p.head_size;
    p.n_digits = end - begin;
    for (size_t i = begin; i < end; i++)
        p.number = p.number * 10 + (uint64_t)(name[i] - '0');
    return p;
}

static bool same_but_number(const struct parts *a, const struct parts *b)
{
    return a->n_digits > 0 && a->n_digits == b->n_digits &&
           a->head_size == b->head_size &&
           memcmp(a->name, b->name, a->head_size) == 0 &&
           strcmp(a->tail, b->tail) == 0;
}

static void add_clean(struct str *out, const char *text, size_t size)
{
    cleanup_free char *copy = xstrndup(text, size);
    text_clean(copy, out);
}

/* Hosts that differ in the number only, in its order. */
static void fold_group(const struct picture_host *hosts, size_t n,
                       struct str *out)
{
    struct parts first = split(hosts[0].name);
    if (n == 1) {
        add_clean(out, first.name, strlen(first.name));
        return;
    }
    add_clean(out, first.name, first.head_size);
    str_add_c(out, '[');
    for (size_t i = 0; i < n;) {
        struct parts begin = split(hosts[i].name), end = begin;
        size_t k = i + 1;
        for (; k < n; k++) {
            struct parts next = split(hosts[k].name);
            if (next.number != end.number + 1)
                break;
            end = next;
        }
        str_add(out, i ? "," : "");
        str_add_n(out, begin.digits, begin.n_digits);
        if (k > i + 1) {
            str_add_c(out, '-');
            str_add_n(out, end.digits, end.n_digits);
        }
        i = k;
    }
    str_add_c(out, ']');
    add_clean(out, first.tail, strlen(first.tail));
}

void picture_fold(const struct picture_host *hosts, size_t n, struct str *out)
{
    for (size_t i = 0; i < n;) {
        struct parts first = split(hosts[i].name);
        size_t k = i + 1;
        for (; k < n; k++) {
            struct parts next = split(hosts[k].name);
            if (!same_but_number(&first, &next))
                break;
        }
        str_add(out, i ? ", " : "");
        fold_group(&hosts[i], k - i, out);
        i = k;
    }
}

/* --- the tree ----------------------------------------------------------- */

/* "32 hosts, 120 of 256 cards idle" */
static void add_numbers(const struct picture_domain *d, struct str *out)
{
    str_addf(out, "%u host%s", d->hosts, d->hosts == 1 ? "" : "s");
    if (d->cards)
        str_addf(out, ", %u of %u cards idle", d->idle, d->cards);
}

static void draw_domain(const struct picture *p, int32_t at, struct str *indent,
                        bool root, struct str *out)
{
    const struct picture_domain *d = &p->domains[at];
    size_t depth = indent->size;
    bool last = d->next_sibling == PICTURE_NONE;
    str_add(out, str_text(indent));
    if (!root)
        str_add(out, last ? "└─ " : "├─ ");
    str_addf(out, "%s ", fabric_tier_name(d->tier));
    text_clean(d->name, out);
    str_add(out, ": ");
    add_numbers(d, out);
    str_add_c(out, '\n');
    if (!root)
        str_add(indent, last ? "   " : "│  ");
    if (d->n_hosts) {
        str_addf(out, "%s   ", str_text(indent));
        picture_fold(&p->hosts[d->first_host], d->n_hosts, out);
        str_add_c(out, '\n');
    }
    for (int32_t c = d->first_child; c >= 0; c = p->domains[c].next_sibling)
        draw_domain(p, c, indent, false, out);
    indent->size = depth;
    if (indent->data)
        indent->data[depth] = '\0';
}

void picture_tree(const struct picture *p, struct str *out)
{
    cleanup_str struct str indent = STR_INIT(4096);
    for (int32_t i = p->first_root; i >= 0; i = p->domains[i].next_sibling)
        draw_domain(p, i, &indent, true, out);
    if (p->n_unknown) {
        str_addf(out, "%s: %zu host%s, near to none\n   ",
                 p->n_domains ? "unknown place" : "no fabric is known",
                 p->n_unknown, p->n_unknown == 1 ? "" : "s");
        picture_fold(p->hosts, p->n_unknown, out);
        str_add_c(out, '\n');
    }
    if (!p->n_domains && !p->n_unknown)
        str_add(out, "No fabric is known, and no node has published: see "
                     "--fabric of biga-extender.\n");
}

/* --- the graph ---------------------------------------------------------- */

static void add_dot_text(const char *text, struct str *out)
{
    cleanup_str struct str clean = STR_INIT(16 << 20);
    text_clean(text, &clean);
    for (const char *p = str_text(&clean); *p; p++) {
        if (*p == '"' || *p == '\\')
            str_add_c(out, '\\');
        str_add_c(out, *p);
    }
}

static void dot_hosts(const struct picture_host *hosts, size_t n, int32_t leaf,
                      struct str *out)
{
    cleanup_str struct str folded = STR_INIT(16 << 20);
    picture_fold(hosts, n, &folded);
    str_addf(out, "  h%d [shape=plaintext, label=\"", (int)leaf);
    add_dot_text(str_text(&folded), out);
    str_addf(out, "\"];\n  d%d -- h%d;\n", (int)leaf, (int)leaf);
}

void picture_dot(const struct picture *p, struct str *out)
{
    str_add(out, "graph fabric {\n  rankdir=TB;\n  node [shape=box, "
                 "fontname=\"sans-serif\"];\n");
    for (size_t i = 0; i < p->n_domains; i++) {
        const struct picture_domain *d = &p->domains[i];
        str_addf(out, "  d%zu [label=\"%s ", i, fabric_tier_name(d->tier));
        add_dot_text(d->name, out);
        str_add(out, "\\n");
        add_numbers(d, out);
        str_add(out, "\"];\n");
        if (d->parent >= 0)
            str_addf(out, "  d%d -- d%zu;\n", (int)d->parent, i);
        if (d->n_hosts)
            dot_hosts(&p->hosts[d->first_host], d->n_hosts, (int32_t)i, out);
    }
    if (p->n_unknown) {
        cleanup_str struct str folded = STR_INIT(16 << 20);
        picture_fold(p->hosts, p->n_unknown, &folded);
        str_add(out, "  unknown [style=dashed, label=\"unknown place\\n");
        add_dot_text(str_text(&folded), out);
        str_add(out, "\"];\n");
    }
    str_add(out, "}\n");
}

/* --- the verb ----------------------------------------------------------- */

/* On standard error, as what is drawn may go into a file. */
static void say_refused(const cJSON *json)
{
    cleanup_str struct str text = STR_INIT(4096);
    if (!*json_text(json, "error"))
        return;
    text_clean(json_text(json, "error"), &text);
    fprintf(stderr,
            "biga: the fabric's files as they are now are not in force, this "
            "is the fabric before: %s\n",
            str_text(&text));
}

/* All pages; with --json the first is printed as it is. */
static int fetch(struct cli *c, struct picture *p, bool *ret_done)
{
    cleanup_free char *after = NULL;
    do {
        cleanup_str struct str path = STR_INIT(4096);
        cleanup_with(json) cJSON *json = NULL;
        struct error err = {0};
        str_addf(&path, "/v1/fabric?limit=%d", HOSTS_PER_PAGE);
        cli_add_query(&path, "continue", after);
        int rc = cli_get(c, str_text(&path), &json);
        *ret_done = rc || !json;
        if (*ret_done)
            return rc;
        if (!after)
            say_refused(json);
        if (picture_add(p, json, &err) < 0) {
            *ret_done = true;
            return cli_fail("the server's fabric: %s", err.text);
        }
        free(after);
        after = xstrdup(json_text(json, "continue"));
    } while (*after);
    picture_finish(p);
    return 0;
}

int verb_fabric(struct cli *c, int argc, char **argv)
{
    cleanup_picture struct picture p = {0};
    bool done;
    (void)argc;
    (void)argv;
    if (c->set.svg && c->set.dot)
        return cli_usage("fabric: one drawing at a time: --dot or --svg");
    if (c->set.json && (c->set.svg || c->set.dot))
        return cli_usage("fabric: a drawing is no JSON: --json, --dot or "
                         "--svg");
    picture_init(&p);
    int rc = fetch(c, &p, &done);
    if (done)
        return rc;
    if (c->set.svg)
        picture_svg(&p, &c->out);
    else if (c->set.dot)
        picture_dot(&p, &c->out);
    else
        picture_tree(&p, &c->out);
    return 0;
}
