#include "extender/console/console_map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/achieved/achieved.h"
#include "extender/console/html.h"
#include "extender/judge/alignment.h"
#include "extender/view/views.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

/* --- health --------------------------------------------------------------- */

/* Is this one placed worse than it prefers, or has it lost what it was
 * promised? */
static bool is_unaligned(const struct snapshot *s, struct achieved_book *book,
                         const struct node *node, const struct allocation *a)
{
    struct achieved x;
    if (achieved_counts(a) && !alignment_is_good(node, a, a->demand.pair))
        return true;
    if (a->held || !book)
        return false;
    cleanup_with(achieved_report) struct achieved_report *report =
        achieved_book_get(book, node->name);
    if (!report)
        return false;
    achieved_judge(s, a, report, &x, NULL);
    return x.state == ACHIEVED_LOST;
}

void console_health_judge(const struct snapshot *s, struct achieved_book *book,
                          const struct node *node,
                          struct console_health *ret_health)
{
    struct console_health h = {.known = true,
                               .ill = node->status != NODE_READY};
    size_t first;
    h.cards = (uint32_t)view_count(node, DEVICE_CARD, &first);
    for (size_t i = 0; i < h.cards; i++) {
        enum card_state state = card_state(node, i);
        h.idle += state == CARD_IDLE;
        h.ill |= state == CARD_UNHEALTHY;
        h.drained |= state == CARD_DRAINED;
    }
    h.gpus = (uint32_t)view_count(node, DEVICE_GPU, &first);
    for (size_t i = 0; i < h.gpus; i++)
        h.free_gpus += !(node->state.gpus_used >> i & 1);
    for (size_t i = 0; i < node->n_allocations && !h.unaligned; i++)
        h.unaligned = is_unaligned(s, book, node, node->allocations[i]);
    *ret_health = h;
}

static void add_sentence(struct str *out)
{
    if (out->size)
        str_add(out, "; ");
}

void console_health_explain(const struct snapshot *s,
                            struct achieved_book *book, const struct node *node,
                            struct str *out)
{
    size_t first, n = view_count(node, DEVICE_CARD, &first);
    if (node->status != NODE_READY)
        str_addf(out, "the node is %s", node_status_name(node->status));
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(node->topo, first + i);
        enum card_state state = card_state(node, i);
        if (state != CARD_UNHEALTHY && state != CARD_DRAINED)
            continue;
        char pci[PCI_ADDR_TEXT_MAX];
        if (d->has_pci)
            pci_addr_format(&d->pci, pci);
        add_sentence(out);
        str_addf(out, "card %s is %s", d->has_pci ? pci : d->id,
                 *d->health ? d->health : card_state_name(state));
        if (*d->barred)
            str_addf(out, ": %s", d->barred);
    }
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        if (!is_unaligned(s, book, node, a))
            continue;
        add_sentence(out);
        str_addf(out, "%s/%s is not aligned as it prefers", a->demand.namespace,
                 a->demand.name);
    }
}

/* --- the order of cells --------------------------------------------------- */

struct place {
    int32_t spine, leaf, node;
    const char *spine_name, *leaf_name, *name;
};

static int place_order(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;
    int order = (a->leaf == FABRIC_NONE) - (b->leaf == FABRIC_NONE);
    if (order == 0)
        order = text_order(a->spine_name, b->spine_name);
    if (order == 0)
        order = (a->spine > b->spine) - (a->spine < b->spine);
    if (order == 0)
        order = text_order(a->leaf_name, b->leaf_name);
    if (order == 0)
        order = (a->leaf > b->leaf) - (a->leaf < b->leaf);
    return order ? order : text_order(a->name, b->name);
}

static const char *domain_name(const struct fabric *f, int32_t i)
{
    return i == FABRIC_NONE ? "" : fabric_domain(f, i)->name;
}

static int32_t spine_above(const struct snapshot *s, int32_t leaf)
{
    return leaf == FABRIC_NONE ? FABRIC_NONE
                               : fabric_domain(s->fabric, leaf)->parent;
}

static int32_t spine_of(const struct snapshot *s, size_t node)
{
    return spine_above(s, snapshot_leaf(s, node));
}

static struct place place_of(const struct snapshot *s, int32_t leaf)
{
    int32_t spine = spine_above(s, leaf);
    return (struct place){.spine = spine,
                          .leaf = leaf,
                          .spine_name = domain_name(s->fabric, spine),
                          .leaf_name = domain_name(s->fabric, leaf),
                          .name = ""};
}

static void place_find(const struct snapshot *s, size_t node,
                       struct place *ret_place)
{
    *ret_place = place_of(s, snapshot_leaf(s, node));
    ret_place->node = (int32_t)node;
    ret_place->name = snapshot_node(s, node)->name;
}

/* --- drawing -------------------------------------------------------------- */

struct drawing {
    const struct console_map *map;
    struct str *out;
    struct place *places; /* nodes; without cells, leaves that have any */
    size_t n;
    struct console_health *healths;  /* of places, for cells */
    const struct fleet_leaf *leaves; /* without cells: by their domains; one
                                      * more: of nodes on none */
    size_t n_leaves;
    int32_t *ranks;  /* by node: the first pair of the job there, -1 none */
    uint32_t *pairs; /* by node: how many */
    bool cells;
};

static unsigned free_step(const struct console_health *h)
{
    if (h->idle == h->cards)
        return 4;
    return h->idle == 0 ? 0 : 1 + h->idle * 3 / h->cards;
}

static void draw_cell(const struct drawing *d, size_t i)
{
    const struct place *p = &d->places[i];
    const struct console_health *h = &d->healths[i];
    const struct node *node = snapshot_node(d->map->snapshot, (size_t)p->node);
    int32_t rank = d->ranks ? d->ranks[p->node] : -1;
    html_addf(d->out, "<a class=\"cell f%u%s%s%s%s%s\" href=\"/ui/nodes/",
              free_step(h), h->cards ? "" : " bare", h->ill ? " ill" : "",
              h->unaligned ? " off" : "", h->drained && !h->ill ? " out" : "",
              d->ranks ? rank >= 0 ? " mine" : " other" : "");
    html_add_segment(d->out, node->name);
    html_addf(d->out, "\" title=\"%s: ", node->name);
    if (rank >= 0)
        html_addf(d->out, "%s %" PRId32 "%s, ",
                  d->pairs[p->node] > 1 ? "pairs" : "pair", rank,
                  d->pairs[p->node] > 1 ? "…" : "");
    html_addf(d->out, "%u of %u cards free%s\">", h->idle, h->cards,
              !h->known      ? ", not known"
              : h->ill       ? ", ill"
              : h->unaligned ? ", not aligned"
              : h->drained   ? ", drained"
                             : "");
    if (rank >= 0)
        html_addf(d->out, "%" PRId32, rank);
    str_add(d->out, "</a>");
}

struct sum {
    size_t nodes, cards, idle, ill, unaligned, pairs;
};

/* Without cells. */
static const struct fleet_leaf *leaf_at(const struct drawing *d, int32_t leaf)
{
    return &d->leaves[leaf == FABRIC_NONE ? d->n_leaves : (size_t)leaf];
}

static struct sum sum_of(const struct drawing *d, size_t from, size_t end)
{
    struct sum sum = {.nodes = d->cells ? end - from : 0};
    for (size_t i = from; i < end && !d->cells; i++) {
        const struct fleet_leaf *leaf = leaf_at(d, d->places[i].leaf);
        sum.nodes += (size_t)leaf->nodes;
        sum.cards += (size_t)leaf->cards;
        sum.idle += (size_t)leaf->idle;
        sum.ill += (size_t)leaf->ill;
    }
    for (size_t i = from; i < end && d->cells; i++) {
        const struct console_health *h = &d->healths[i];
        sum.cards += h->cards;
        sum.idle += h->idle;
        sum.ill += h->ill;
        sum.unaligned += h->unaligned;
        sum.pairs += d->pairs ? d->pairs[d->places[i].node] : 0;
    }
    return sum;
}

static void draw_leaf(const struct drawing *d, size_t from, size_t end)
{
    const struct place *p = &d->places[from];
    struct sum sum = sum_of(d, from, end);
    if (d->pairs && sum.pairs == 0)
        return;
    str_add(d->out, "<section class=\"leaf\"><h3>");
    if (p->leaf == FABRIC_NONE)
        str_add(d->out, "Place not known");
    else
        html_add_link(d->out, "leaves", p->leaf_name, NULL, p->leaf_name);
    if (d->pairs)
        html_addf(d->out, " <small>%zu pairs</small></h3>", sum.pairs);
    else
        html_addf(d->out, " <small title=\"cards free\">%zu/%zu</small></h3>",
                  sum.idle, sum.cards);
    if (!d->cells) {
        html_add_bar(d->out, sum.idle, sum.cards, "cards");
        html_addf(d->out, "<p>%zu nodes, %zu ill</p>", sum.nodes, sum.ill);
    } else {
        str_add(d->out, "<div class=\"cells\">");
        for (size_t i = from; i < end; i++)
            draw_cell(d, i);
        str_add(d->out, "</div>");
    }
    str_add(d->out, "</section>\n");
}

static void draw_spine(const struct drawing *d, size_t from, size_t end)
{
    const struct place *p = &d->places[from];
    struct sum sum = sum_of(d, from, end);
    if (d->pairs && sum.pairs == 0)
        return;
    str_add(d->out, "<section class=\"spine\">");
    if (p->spine != FABRIC_NONE)
        html_addf(d->out,
                  "<h2>%s <small>%zu nodes, %zu/%zu cards free</small></h2>",
                  p->spine_name, sum.nodes, sum.idle, sum.cards);
    str_add(d->out, "<div class=\"leaves\">\n");
    for (size_t i = from, next; i < end; i = next) {
        for (next = i + 1; next < end; next++)
            if (d->places[next].leaf != d->places[i].leaf)
                break;
        draw_leaf(d, i, next);
    }
    str_add(d->out, "</div></section>\n");
}

/* Which pairs of the job are on each node. */
static void find_pairs(struct drawing *d)
{
    const struct snapshot *s = d->map->snapshot;
    const struct job_view *job = d->map->job;
    if (!job)
        return;
    d->ranks = xcalloc(s->n_nodes + 1, sizeof *d->ranks);
    d->pairs = xcalloc(s->n_nodes + 1, sizeof *d->pairs);
    for (size_t i = 0; i < s->n_nodes; i++)
        d->ranks[i] = -1;
    for (size_t i = 0; i < job->n_pairs; i++) {
        const char *name = job->pairs[i].place->node;
        int32_t at = snapshot_find(s, name, strlen(name));
        if (at == NODE_NONE)
            continue;
        if (d->pairs[at]++ == 0)
            d->ranks[at] = job->pairs[i].rank;
    }
}

_Static_assert(FABRIC_NONE == -1, "one is added to what stands for none");

/* Of a job only those below its spines are drawn, or counted. */
static void find_places(struct drawing *d)
{
    const struct snapshot *s = d->map->snapshot;
    size_t n = s->fabric ? fabric_n_domains(s->fabric) : 0;
    bool *wanted = xcalloc(n + 1, sizeof *wanted); /* [0]: below none */
    for (size_t i = 0; i < s->n_nodes; i++)
        if (!d->pairs || d->pairs[i])
            wanted[spine_of(s, i) + 1] = true;
    for (size_t i = 0; i < s->n_nodes; i++)
        if (wanted[spine_of(s, i) + 1])
            place_find(s, i, &d->places[d->n++]);
    free(wanted);
}

static void find_leaves(struct drawing *d)
{
    for (size_t i = 0; i <= d->n_leaves; i++)
        if (d->leaves[i].nodes)
            d->places[d->n++] = place_of(
                d->map->snapshot, i < d->n_leaves ? (int32_t)i : FABRIC_NONE);
}

static struct console_health health_of(const struct console_map *map,
                                       size_t node)
{
    struct console_health h;
    if (map->healths)
        return map->healths[node];
    console_health_judge(map->snapshot, map->achieved,
                         snapshot_node(map->snapshot, node), &h);
    return h;
}

/* In the caller's array. */
static struct fleet_leaf *count_leaves(const struct console_map *map, size_t n)
{
    struct fleet_leaf *leaves = xcalloc(n + 1, sizeof *leaves);
    for (size_t i = 0; i < map->snapshot->n_nodes; i++) {
        const struct console_health h = health_of(map, i);
        int32_t at = snapshot_leaf(map->snapshot, i);
        struct fleet_leaf *leaf = &leaves[at == FABRIC_NONE ? n : (size_t)at];
        leaf->nodes++;
        leaf->ill += h.ill;
        leaf->cards += h.cards;
        leaf->idle += h.idle;
    }
    return leaves;
}

static void draw(const struct drawing *d)
{
    str_add(d->out, "<div class=\"map\">\n");
    for (size_t i = 0, next; i < d->n; i = next) {
        for (next = i + 1; next < d->n; next++)
            if (d->places[next].spine != d->places[i].spine)
                break;
        draw_spine(d, i, next);
    }
    str_add(d->out, "</div>\n");
}

void console_map_write(const struct console_map *map, struct str *out)
{
    const struct snapshot *s = map->snapshot;
    struct drawing d = {.map = map, .out = out};
    struct fleet_leaf *counted = NULL;
    size_t most = s->n_nodes;
    d.n_leaves = s->fabric ? fabric_n_domains(s->fabric) : 0;
    d.cells = s->n_nodes <= CONSOLE_CELLS_MAX || map->job;
    if (!d.cells) {
        counted = map->leaves ? NULL : count_leaves(map, d.n_leaves);
        d.leaves = counted ? counted : map->leaves;
        most = d.n_leaves;
    }
    d.places = xcalloc(most + 1, sizeof *d.places);
    find_pairs(&d);
    if (d.cells)
        find_places(&d);
    else
        find_leaves(&d);
    if (d.n)
        qsort(d.places, d.n, sizeof *d.places, place_order);
    d.healths = xcalloc(d.n + 1, sizeof *d.healths);
    for (size_t i = 0; i < d.n && d.cells; i++)
        d.healths[i] = health_of(map, (size_t)d.places[i].node);
    draw(&d);
    free(d.places);
    free(d.healths);
    free(d.ranks);
    free(d.pairs);
    free(counted);
}

void console_map_write_legend(struct str *out)
{
    static const struct {
        const char *cell, *word;
    } kinds[] = {
        {"f4", "all cards free"},  {"f2", "some free"},   {"f0", "none free"},
        {"f0 off", "not aligned"}, {"f4 out", "drained"}, {"ill", "ill"},
        {"bare", "no cards"},
    };
    str_add(out, "<ul class=\"legend\" aria-label=\"Colours\">");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        html_addf(out, "<li><span class=\"cell %s\"></span>%s</li>",
                  kinds[i].cell, kinds[i].word);
    str_add(out, "</ul>\n");
}
