#include "extender/console/pages.h"

#include <string.h>

#include "extender/console/console_map.h"
#include "extender/console/console_then.h"
#include "extender/console/html.h"
#include "extender/roster/roster.h"
#include "extender/serve/query.h"
#include "extender/view/known_jobs.h"
#include "extender/view/pending_pods.h"
#include "extender/view/views.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum { ILL_MAX = 8, FOUND_MAX = 50 };

/* --- the fleet in numbers ------------------------------------------------- */

static void write_totals(const struct snapshot *s, const struct fleet_counts *c,
                         struct str *out)
{
    size_t cards = 0;
    for (size_t i = 0; i < CARD_STATES; i++)
        cards += c->cards[i];
    html_addf(out,
              "<dl class=\"totals\"><div><dt>Nodes ready</dt><dd>%zu<small>/%zu"
              "</small></dd></div>\n<div><dt>Cards free</dt><dd>%zu<small>/%zu"
              "</small></dd></div>\n<div><dt>GPUs free</dt><dd>%zu<small>/%zu"
              "</small></dd></div>\n<div><dt>Pods placed</dt><dd>%zu</dd></div>"
              "\n<div%s><dt>Ill nodes</dt><dd>%zu</dd></div>\n<div%s><dt>Nodes "
              "not aligned</dt><dd>%zu</dd></div></dl>\n",
              c->nodes[NODE_READY], s->n_nodes, c->cards[CARD_IDLE], cards,
              c->free_gpus, c->gpus, alloc_index_size(s->allocations),
              c->ill ? " class=\"bad\"" : "", c->ill,
              c->unaligned ? " class=\"fair\"" : "", c->unaligned);
}

/* Only what hangs on a leaf with an ill node is looked at. */
static bool is_ill(const struct console_reply *r, const struct fleet_counts *c,
                   size_t node)
{
    int32_t leaf = snapshot_leaf(r->snapshot, node);
    struct console_health h;
    if (c->leaves[leaf == FABRIC_NONE ? c->n_leaves : (size_t)leaf].ill == 0)
        return false;
    console_health_judge(r->snapshot, r->app->achieved,
                         snapshot_node(r->snapshot, node), &h);
    return h.ill;
}

static void write_ill(const struct console_reply *r,
                      const struct fleet_counts *c, struct str *out)
{
    size_t n = 0, most = c->ill < ILL_MAX ? c->ill : ILL_MAX;
    if (c->ill == 0)
        return;
    str_add(out, "<section aria-labelledby=\"ill\"><h2 id=\"ill\">Ill</h2><ul "
                 "class=\"ill\">\n");
    for (size_t i = 0; i < r->snapshot->n_nodes && n < most; i++) {
        const struct node *node = snapshot_node(r->snapshot, i);
        cleanup_str struct str why = STR_INIT(STR_MAX_DEFAULT);
        if (!is_ill(r, c, i))
            continue;
        n++;
        console_health_explain(r->snapshot, r->app->achieved, node, &why);
        str_add(out, "<li>");
        html_add_link(out, "nodes", node->name, NULL, node->name);
        html_addf(out, " %s</li>\n", str_text(&why));
    }
    str_add(out, "</ul>");
    if (n < c->ill)
        html_addf(out, "<p>and %zu more</p>", c->ill - n);
    str_add(out, "</section>\n");
}

void page_fleet(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", NULL};
    struct fleet_counts counts;
    struct console_reply r;
    if (!console_begin(&r, rq, ctx, CONSOLE_FLEET, params))
        return;
    r.page.title = "Fleet";
    str_add(&r.out, "<h1 class=\"unseen\">Fleet</h1>\n");
    if (console_then_is_asked(&r)) {
        console_then_show_fleet(&r);
        return;
    }
    fleet_tally_get(r.app->tally, r.snapshot, r.app->achieved, &counts);
    const struct console_map map = {.snapshot = r.snapshot,
                                    .achieved = r.app->achieved,
                                    .leaves = counts.leaves};
    write_totals(r.snapshot, &counts, &r.out);
    write_ill(&r, &counts, &r.out);
    if (r.snapshot->n_nodes == 0)
        str_add(&r.out, "<p>No node has published its topology: start "
                        "biga-advertiser on the nodes.</p>\n");
    console_map_write_legend(&r.out);
    console_map_write(&map, &r.out);
    fleet_counts_fini(&counts);
    console_end(&r);
}

/* --- search --------------------------------------------------------------- */

enum {
    CARD_SETS = 64, /* hardware that is remembered at a time */
    CARD_SET_STEP = 64,
};
#define PCI_CHARS "0123456789abcdef:."

struct search {
    const char *text; /* in lower case */
    size_t size;
    struct text_sketch sketch;
    bool may_be_pci; /* it has nothing that no PCI address has */
    const struct snapshot *snapshot;
    struct str *out;
    size_t n;
    struct card_set {
        const struct hardware *of; /* NULL: nothing is remembered */
        unsigned found; /* bits of those that have it but in their serials */
    } sets[CARD_SETS];
};

static bool has(const struct search *x, const char *text)
{
    return text_has(text, strlen(text), x->text, x->size);
}

static bool found(struct search *x, const char *kind)
{
    if (x->n == FOUND_MAX)
        return false;
    x->n++;
    html_addf(x->out, "<li><span class=\"kind\">%s</span> ", kind);
    return true;
}

static void search_fabric(struct search *x)
{
    const struct fabric *fabric = x->snapshot->fabric;
    size_t n = fabric ? fabric_n_domains(fabric) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct fabric_domain *d = fabric_domain(fabric, (int32_t)i);
        if (d->tier != 0 || !has(x, d->name) || !found(x, "leaf"))
            continue;
        html_add_link(x->out, "leaves", d->name, NULL, d->name);
        str_add(x->out, "</li>\n");
    }
}

static bool is_device(const struct search *x, const struct device *d)
{
    char pci[PCI_ADDR_TEXT_MAX] = "";
    if (d->has_pci && x->may_be_pci)
        pci_addr_format(&d->pci, pci);
    return has(x, d->id) || has(x, pci) || has(x, d->interface);
}

/* Those are the same device for device on all nodes of one hardware. */
static unsigned find_on_hardware(struct search *x, const struct node *node)
{
    struct card_set *set =
        &x->sets[(uintptr_t)node->hardware / CARD_SET_STEP % CARD_SETS];
    if (set->of == node->hardware)
        return set->found;
    size_t first, n = view_count(node, DEVICE_CARD, &first);
    *set = (struct card_set){.of = node->hardware};
    for (size_t i = 0; i < n; i++)
        if (is_device(x, topo_device(node->topo, first + i)))
            set->found |= 1u << i;
    return set->found;
}

_Static_assert(TOPO_CARDS_MAX <= 32, "cards are bits");

static void search_cards(struct search *x, const struct node *node)
{
    unsigned cards = node->hardware ? find_on_hardware(x, node) : 0;
    if (!cards && !text_sketch_may_have(&node->serials, &x->sketch))
        return;
    size_t first, n = view_count(node, DEVICE_CARD, &first);
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(node->topo, first + i);
        if (!(cards >> i & 1) && !has(x, topo_serial(node->topo, d)))
            continue;
        if (!found(x, "card"))
            return;
        char pci[PCI_ADDR_TEXT_MAX];
        if (d->has_pci)
            pci_addr_format(&d->pci, pci);
        html_add_link(x->out, "cards", node->name, d->id,
                      d->has_pci ? pci : d->id);
        html_addf(x->out, " of %s</li>\n", node->name);
    }
}

static void search_node(void *ctx, size_t index, const char *name, size_t size)
{
    struct search *x = ctx;
    if (x->n == FOUND_MAX || !text_has(name, size, x->text, x->size) ||
        !found(x, "node"))
        return;
    const struct node *node = snapshot_node(x->snapshot, index);
    html_add_link(x->out, "nodes", node->name, NULL, node->name);
    html_addf(x->out, " %s</li>\n", node_status_name(node->status));
}

/* Nodes lie anywhere in memory: begin to fetch what is looked at soon. */
static void fetch_cards(const struct snapshot *s, size_t index)
{
    enum { AHEAD = 16 };
    if (index + AHEAD >= s->n_nodes)
        return;
    const struct node *node = snapshot_node(s, index + AHEAD);
    __builtin_prefetch(&node->hardware);
    __builtin_prefetch(&node->serials.triples);
}

static void search_nodes(struct search *x)
{
    const struct snapshot *s = x->snapshot;
    roster_each(s->roster, search_node, x);
    for (size_t i = 0; i < s->n_nodes && x->n < FOUND_MAX; i++) {
        fetch_cards(s, i);
        search_cards(x, snapshot_node(s, i));
    }
}

/* Also those that wait, or have ended. */
static void search_jobs(struct search *x, const struct console_reply *r)
{
    struct known_jobs k;
    known_jobs_init(&k, &r->app->source, snapshot_ref(r->snapshot),
                    visible_order(r->app, r->snapshot), NULL, NULL);
    while (x->n < FOUND_MAX && known_jobs_next(&k)) {
        if (!has(x, k.name.name) || !found(x, "job"))
            continue;
        html_add_link(x->out, "jobs", k.name.namespace, k.name.name,
                      k.name.name);
        html_addf(x->out, " in %s</li>\n", k.name.namespace);
    }
    known_jobs_fini(&k);
}

static void search_pending(struct search *x, const struct console_reply *r)
{
    struct pending_pods g;
    pending_pods_read(&g, &r->app->source, r->snapshot, NULL);
    for (size_t i = 0; i < g.n && x->n < FOUND_MAX; i++) {
        const struct pending_pod *p = &g.list[i];
        if (!has(x, p->name) || !found(x, "pod"))
            continue;
        html_add_link(x->out, "pods", p->namespace, p->name, p->name);
        html_addf(x->out, " in %s, pending</li>\n", p->namespace);
    }
    pending_pods_fini(&g);
}

static void search_pods(struct search *x, const struct console_reply *r)
{
    cleanup_with(alloc_order) struct alloc_order *all =
        visible_order(r->app, r->snapshot);
    for (size_t i = 0; i < all->n_pods && x->n < FOUND_MAX; i++) {
        enum { AHEAD = 16 };
        if (i + AHEAD < all->n_pods)
            __builtin_prefetch(all->pods[i + AHEAD]->demand.name);
        const struct demand *d = &all->pods[i]->demand;
        if (has(x, d->name) && found(x, "pod")) {
            html_add_link(x->out, "pods", d->namespace, d->name, d->name);
            html_addf(x->out, " in %s, on %s</li>\n", d->namespace,
                      all->pods[i]->node);
        }
    }
}

static void search_all(const struct console_reply *r, struct search *x)
{
    struct str *out = x->out;
    html_addf(out,
              "<p>Leaves, nodes, cards, jobs and pods with "
              "“%s”:</p>\n<ul class=\"found\">\n",
              r->page.query);
    search_fabric(x);
    search_nodes(x);
    search_jobs(x, r);
    search_pods(x, r);
    search_pending(x, r);
    html_addf(out, "</ul><p>%s</p>\n",
              x->n == 0           ? "Nothing."
              : x->n == FOUND_MAX ? "These are the first; say more of the name."
                                  : "");
}

void page_search(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"q", NULL};
    const char *text = httpd_query(rq, "q");
    struct console_reply r;
    if (!console_begin(&r, rq, ctx, CONSOLE_SECTIONS, params))
        return;
    r.page.title = "Search";
    r.page.query = text;
    str_add(&r.out, "<h1>Search</h1>\n");
    if (text && *text) {
        cleanup_free char *lower = xstrdup(text);
        text_lower(lower);
        struct search x = {.text = lower,
                           .size = strlen(lower),
                           .may_be_pci = !lower[strspn(lower, PCI_CHARS)],
                           .snapshot = r.snapshot,
                           .out = &r.out};
        text_sketch_add(&x.sketch, lower);
        search_all(&r, &x);
    } else {
        str_add(&r.out, "<p>Say a part of the name of a leaf, node, card (its "
                        "PCI address, serial number, interface), job or pod."
                        "</p>\n");
    }
    console_end(&r);
}
