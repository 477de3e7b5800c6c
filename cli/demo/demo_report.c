#include "cli/demo/demo_report.h"

#include <string.h>

#include "cli/base/cli.h"
#include "cli/demo/demo_fabric.h"
#include "cli/demo/demo_pods.h"
#include "cli/verb/host_notes.h"
#include "lib/base/mem.h"

/* --- reading -------------------------------------------------------------- */

static int find_host(const struct demo_report *r, const char *name)
{
    for (size_t i = 0; i < r->n_hosts; i++)
        if (strcmp(r->hosts[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* The device that an allocation has first in a list; -1: none. */
static int first_device(const struct host *h, const cJSON *a, const char *list)
{
    const cJSON *x = json_list(a, list);
    return x && x->child ? host_find(h, json_text(x->child, "id")) : -1;
}

static void read_host_pod(struct demo_report *r, struct pair_result *p,
                          const cJSON *a)
{
    int host = find_host(r, json_text(a, "node"));
    if (host < 0)
        return;
    const struct host *h = &r->hosts[host];
    int card = first_device(h, a, "cards"), gpu = first_device(h, a, "gpus");
    if (card < 0 || gpu < 0)
        return;
    p->numa = (int)json_number(a, "numa");
    p->at = (struct placement){
        .placed = true,
        .host = (size_t)host,
        .card = (size_t)card,
        .gpu = (size_t)gpu,
        .relation = host_relation(h, (size_t)card, (size_t)gpu),
    };
}

static void read_xpu_pod(const struct demo_report *r, struct pair_result *p,
                         const cJSON *a)
{
    int host = find_host(r, json_text(a, "node"));
    p->followed = p->at.placed && host == (int)p->at.host &&
                  first_device(&r->hosts[host], a, "cards") == (int)p->at.card;
}

/* The devices of a pod that is in no job. */
static void read_tenant(struct demo_report *r, const cJSON *a)
{
    static const char *const lists[] = {"cards", "gpus"};
    int host = find_host(r, json_text(a, "node"));
    if (host < 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const cJSON *x;
        cJSON_ArrayForEach(x, json_list(a, lists[i]))
        {
            int device = host_find(&r->hosts[host], json_text(x, "id"));
            if (device >= 0)
                r->taken[host][device] = true;
        }
    }
    r->n_tenants++;
}

/* Host pods first: an xPU pod is judged by the host pod of its pair. */
static void read_pairs(struct demo_report *r, const cJSON *items,
                       bool host_pods)
{
    const cJSON *a;
    cJSON_ArrayForEach(a, items)
    {
        const cJSON *pod = cJSON_GetObjectItemCaseSensitive(a, "pod");
        double index = json_number(pod, "pair");
        const char *role = json_text(pod, "role");
        if (host_pods && strcmp(role, "service") == 0)
            r->n_services++;
        if (host_pods && strcmp(role, "host") == 0 && !*json_text(pod, "job"))
            read_tenant(r, a);
        if (strcmp(json_text(pod, "job"), DEMO_JOB) != 0 || index < 0 ||
            index >= (double)r->n_pairs)
            continue;
        struct pair_result *p = &r->pairs[(size_t)index];
        if (host_pods && strcmp(role, "host") == 0)
            read_host_pod(r, p, a);
        else if (!host_pods && strcmp(role, "xpu") == 0)
            read_xpu_pod(r, p, a);
    }
}

void demo_report_init(struct demo_report *r, const struct host *hosts,
                      size_t n_hosts, size_t n_pairs, const cJSON *allocations)
{
    const cJSON *items = json_list(allocations, "items");
    *r = (struct demo_report){
        .hosts = hosts, .n_hosts = n_hosts, .n_pairs = n_pairs};
    r->pairs = xcalloc(n_pairs + 1, sizeof *r->pairs);
    r->blind = xcalloc(n_pairs + 1, sizeof *r->blind);
    r->possible = xcalloc(n_pairs + 1, sizeof *r->possible);
    r->taken = xcalloc(n_hosts + 1, sizeof *r->taken);
    for (size_t i = 0; i < n_hosts; i++)
        r->taken[i] = xcalloc(hosts[i].n + 1, sizeof *r->taken[i]);
    read_pairs(r, items, true);
    read_pairs(r, items, false);
    const struct publisher fleet = {hosts, n_hosts, r->taken};
    firstfit(&fleet, n_pairs, r->blind);
    r->n_possible = best_relations(&fleet, n_pairs, r->possible);
}

void demo_report_fini(struct demo_report *r)
{
    free(r->pairs);
    free(r->blind);
    free(r->possible);
    for (size_t i = 0; i < r->n_hosts; i++)
        free(r->taken[i]);
    free(r->taken);
    *r = (struct demo_report){0};
}

/* --- showing -------------------------------------------------------------- */

static const char *device_text(const struct demo_report *r,
                               const struct placement *at, size_t device)
{
    const struct host_device *d = &r->hosts[at->host].devices[device];
    return *d->pci ? d->pci : d->id;
}

static void add_placement(struct table *t, const struct demo_report *r,
                          const struct placement *at)
{
    if (!at->placed) {
        table_add(t, "-");
        for (int i = 0; i < 3; i++)
            table_add(t, "");
        return;
    }
    const char *relation = relation_name(at->relation);
    table_add(t, r->hosts[at->host].name);
    table_add(t, device_text(r, at, at->card));
    table_add(t, device_text(r, at, at->gpu));
    table_add_style(t, relation_style(relation), relation);
}

static void add_first_fit(struct table *t, const struct demo_report *r,
                          const struct placement *at)
{
    const char *relation = relation_name(at->relation);
    cleanup_str struct str text = STR_INIT(512);
    if (!at->placed) {
        table_add(t, "| -");
        return;
    }
    str_addf(&text, "| %s %s", r->hosts[at->host].name, relation);
    table_add_style(t, relation_style(relation), str_text(&text));
}

/* As wide as a terminal, 80 columns, with the names of the demo. */
void demo_report_pairs(const struct demo_report *r, bool colours,
                       struct str *out)
{
    static const struct table_column columns[] = {
        {"PAIR", true},     {"NODE", false},        {"CARD", false},
        {"GPU", false},     {"RELATION", false},    {"NUMA", true},
        {"xPU POD", false}, {"| FIRST FIT", false},
    };
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct pair_result *p = &r->pairs[i];
        table_addf(&t, "%zu", i);
        add_placement(&t, r, &p->at);
        if (p->at.placed && p->numa >= 0)
            table_addf(&t, "%d", p->numa);
        else
            table_add(&t, "");
        table_add_style(&t, p->followed ? STYLE_GOOD : STYLE_BAD,
                        p->followed ? "same" : "other");
        add_first_fit(&t, r, &r->blind[i]);
    }
    table_write(&t, colours, out);
}

static const struct placement *place_of(const struct demo_report *r,
                                        size_t pair, bool blind)
{
    return blind ? &r->blind[pair] : &r->pairs[pair].at;
}

static size_t count_within(const struct demo_report *r, bool blind,
                           enum relation worst)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct placement *at = place_of(r, i, blind);
        n += at->placed && at->relation <= worst;
    }
    return n;
}

/* How many leaves the pairs are on, and how often neighbours in rank are on
 * different ones. */
static size_t count_leaves(const struct demo_report *r, bool blind,
                           size_t *ret_crossings)
{
    cleanup_free bool *used = xcalloc(r->n_hosts + 1, sizeof *used);
    size_t n = 0, last = SIZE_MAX;
    *ret_crossings = 0;
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct placement *at = place_of(r, i, blind);
        if (!at->placed)
            continue;
        size_t leaf = demo_leaf(at->host, r->n_hosts);
        *ret_crossings += last != SIZE_MAX && leaf != last;
        n += !used[leaf];
        used[leaf] = true;
        last = leaf;
    }
    return n;
}

static void summarize(const struct demo_report *r, const char *who, bool blind,
                      struct str *out)
{
    size_t placed = count_within(r, blind, RELATION_SYS);
    size_t near = count_within(r, blind, RELATION_PXB);
    size_t node = count_within(r, blind, RELATION_NODE), crossings;
    size_t leaves = count_leaves(r, blind, &crossings);
    str_addf(out, "%s %2zu of %zu pairs aligned", who, near, r->n_pairs);
    if (node > near)
        str_addf(out, ", %zu through the CPU", node - near);
    if (placed > node)
        str_addf(out, ", %zu across NUMA nodes", placed - node);
    if (placed < r->n_pairs)
        str_addf(out, ", %zu not placed", r->n_pairs - placed);
    str_addf(out, "; %zu %s, %zu %s.\n", leaves,
             leaves == 1 ? "leaf" : "leaves", crossings,
             crossings == 1 ? "crossing" : "crossings");
}

void demo_report_summary(const struct demo_report *r, struct str *out)
{
    summarize(r, "Biga:     ", false, out);
    summarize(r, "First fit:", true, out);
    str_add(out, "Aligned: card and GPU behind one PCIe switch. Crossing: "
                 "pairs r and r + 1 on\ndifferent leaf switches.\n");
    if (r->n_services)
        str_addf(out, "The service runs on %zu cards beside them.\n",
                 r->n_services);
}

/* --- the leaves --------------------------------------------------------- */

/* "host02 ■■■□": a square for each pair, filled when it is aligned. */
static void add_squares(struct table *t, const struct demo_report *r,
                        size_t leaf, bool blind)
{
    cleanup_str struct str text = STR_INIT(TABLE_CELL_MAX - 1);
    size_t before = SIZE_MAX;
    str_add(&text, blind ? "| " : "");
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct placement *at = place_of(r, i, blind);
        if (!at->placed || demo_leaf(at->host, r->n_hosts) != leaf)
            continue;
        if (at->host != before)
            str_addf(&text, "%s%s ", before == SIZE_MAX ? "" : "  ",
                     r->hosts[at->host].name);
        str_add(&text, at->relation <= RELATION_PXB ? "■" : "□");
        before = at->host;
    }
    if (before == SIZE_MAX)
        str_add_c(&text, '-');
    table_add(t, str_text(&text));
}

static bool is_on_leaf(const struct demo_report *r, size_t leaf)
{
    for (size_t i = 0; i < r->n_pairs; i++)
        for (int blind = 0; blind < 2; blind++)
            if (place_of(r, i, blind)->placed &&
                demo_leaf(place_of(r, i, blind)->host, r->n_hosts) == leaf)
                return true;
    return false;
}

void demo_report_leaves(const struct demo_report *r, bool colours,
                        struct str *out)
{
    static const struct table_column columns[] = {
        {"LEAF", false}, {"BIGA", false}, {"| FIRST FIT", false}};
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    for (size_t leaf = 0; r->n_hosts && leaf < demo_n_leaves(r->n_hosts);
         leaf++) {
        if (!is_on_leaf(r, leaf))
            continue;
        table_addf(&t, "leaf%zu", leaf + 1);
        add_squares(&t, r, leaf, false);
        add_squares(&t, r, leaf, true);
    }
    table_write(&t, colours, out);
}

/* --- one host ----------------------------------------------------------- */

static size_t busiest_host(const struct demo_report *r)
{
    cleanup_free size_t *count = xcalloc(r->n_hosts + 1, sizeof *count);
    size_t best = 0;
    for (size_t i = 0; i < r->n_pairs; i++)
        if (r->pairs[i].at.placed)
            count[r->pairs[i].at.host]++;
    for (size_t i = 0; i < r->n_hosts; i++)
        if (count[i] > count[best])
            best = i;
    return best;
}

void demo_report_picture(const struct demo_report *r, const cJSON *allocations,
                         bool colours, struct str *out)
{
    if (!r->n_hosts)
        return;
    const struct host *h = &r->hosts[busiest_host(r)];
    cleanup_host_notes struct host_notes notes;
    host_notes_init(&notes, h, allocations, DEMO_NAMESPACE "/" DEMO_JOB);
    host_tree(h, (const char *const *)notes.texts, colours, out);
}

/* --- the verdict -------------------------------------------------------- */

static int larger_first(const void *a, const void *b)
{
    const size_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* The fewest of `n` leaves, with so much room each, that have room for all
 * pairs; SIZE_MAX when they have not.  Sorts `rooms`. */
static size_t cover(const struct demo_report *r, size_t *rooms, size_t n)
{
    size_t total = 0;
    qsort(rooms, n, sizeof *rooms, larger_first);
    for (size_t i = 0; i < n; i++) {
        total += rooms[i];
        if (total >= r->n_pairs)
            return i + 1;
    }
    return SIZE_MAX;
}

/* The fewest leaves on which all pairs can be aligned, below one spine if
 * that can be; SIZE_MAX: nowhere. */
static size_t fewest_leaves(const struct demo_report *r)
{
    const struct publisher fleet = {r->hosts, r->n_hosts, r->taken};
    size_t n = demo_n_leaves(r->n_hosts), best = SIZE_MAX;
    cleanup_free size_t *rooms = xcalloc(n + 1, sizeof *rooms);
    for (size_t i = 0; i < r->n_hosts; i++)
        rooms[demo_leaf(i, r->n_hosts)] += room_within(&fleet, i, RELATION_PXB);
    for (size_t i = 0; i < n; i += DEMO_SPINE_LEAVES) {
        size_t left = n - i < DEMO_SPINE_LEAVES ? n - i : DEMO_SPINE_LEAVES;
        size_t leaves = cover(r, rooms + i, left);
        best = leaves < best ? leaves : best;
    }
    return best == SIZE_MAX ? cover(r, rooms, n) : best;
}

static bool check_leaves(const struct demo_report *r, struct str *out)
{
    size_t crossings, leaves = count_leaves(r, false, &crossings);
    size_t fewest = r->n_hosts ? fewest_leaves(r) : SIZE_MAX;
    if (fewest == SIZE_MAX || leaves <= fewest)
        return true;
    str_addf(out, "The pairs are on %zu leaves; %zu would do.\n", leaves,
             fewest);
    return false;
}

bool demo_report_check(const struct demo_report *r, struct str *out)
{
    size_t aligned = count_within(r, false, RELATION_PXB), could = 0;
    bool good = true;
    for (size_t i = 0; i < r->n_pairs; i++) {
        if (r->pairs[i].at.placed && r->pairs[i].followed)
            continue;
        str_addf(out, "Pair %zu: %s.\n", i,
                 r->pairs[i].at.placed
                     ? "its xPU pod is not on its card"
                     : "its host pod was given no card and GPU");
        good = false;
    }
    for (size_t i = 0; i < r->n_possible; i++)
        could += r->possible[i] <= RELATION_PXB;
    if (good && aligned < could) {
        str_addf(out, "%zu pairs are aligned; %zu could be.\n", aligned, could);
        good = false;
    }
    return good && check_leaves(r, out);
}

bool demo_report_agrees(const struct demo_report *r, const cJSON *job,
                        struct str *out)
{
    const cJSON *score = cJSON_GetObjectItemCaseSensitive(job, "score");
    size_t crossings, leaves = count_leaves(r, false, &crossings);
    if (json_number(score, "leaves") == (double)leaves &&
        json_number(score, "crossings") == (double)crossings)
        return true;
    str_addf(out,
             "The server counts %.0f leaves and %.0f crossings, not %zu and "
             "%zu.\n",
             json_number(score, "leaves"), json_number(score, "crossings"),
             leaves, crossings);
    return false;
}
