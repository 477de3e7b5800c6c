#include "extender/view/fabric_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/view/views.h"
#include "lib/base/jwrite.h"
#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"

/* Idle and all cards of a node, as it is now. */
static void count_cards(const struct node *node, uint32_t *ret_cards,
                        uint32_t *ret_idle)
{
    size_t first, n = view_count(node, DEVICE_CARD, &first);
    uint32_t idle = 0;
    for (size_t i = 0; i < n; i++)
        idle += card_state(node, i) == CARD_IDLE;
    *ret_cards = (uint32_t)n;
    *ret_idle = idle;
}

struct fabric_count *fabric_counts(const struct snapshot *s,
                                   struct fabric_count *ret_unknown)
{
    size_t n_domains = fabric_n_domains(s->fabric);
    struct fabric_count *counts = xcalloc(n_domains + 1, sizeof *counts);
    struct fabric_count unknown = {0};
    for (size_t i = 0; i < s->n_nodes; i++) {
        uint32_t cards, idle;
        count_cards(snapshot_node(s, i), &cards, &idle);
        int32_t at = snapshot_leaf(s, i);
        struct fabric_count *to = at < 0 ? &unknown : &counts[at];
        while (to) {
            to->nodes++;
            to->cards += cards;
            to->idle += idle;
            const struct fabric_domain *d = fabric_domain(s->fabric, at);
            at = d ? d->parent : FABRIC_NONE;
            to = at < 0 ? NULL : &counts[at];
        }
    }
    *ret_unknown = unknown;
    return counts;
}

/* --- hosts and nodes in one sequence ----------------------------------- */

void fabric_walk_init(struct fabric_walk *w, const struct snapshot *s,
                      const char *after)
{
    *w = (struct fabric_walk){.snapshot = s};
    struct fabric_walk before = *w;
    struct fabric_entry e;
    while (after && fabric_walk_next(w, &e) && strcmp(e.name, after) <= 0)
        before = *w;
    *w = before;
}

bool fabric_walk_next(struct fabric_walk *w, struct fabric_entry *ret_entry)
{
    const struct snapshot *s = w->snapshot;
    const struct fabric_host *host = fabric_host(s->fabric, w->next_host);
    const struct node *node = w->next_node < s->n_nodes
                                  ? snapshot_node(s, w->next_node)
                                  : NULL;
    if (!host && !node)
        return false;
    int order = !host ? 1 : !node ? -1 : strcmp(host->name, node->name);
    struct fabric_entry e = {.leaf = FABRIC_NONE};
    if (order <= 0) {
        e.host = host;
        e.name = host->name;
        e.leaf = host->leaf;
        w->next_host++;
    }
    if (order >= 0) {
        e.node = node;
        e.name = node->name;
        e.leaf = snapshot_leaf(s, w->next_node);
        w->next_node++;
    }
    *ret_entry = e;
    return true;
}

/* --- JSON -------------------------------------------------------------- */

static void add_cards(struct str *out, uint32_t total, uint32_t idle)
{
    jwrite_object(out, "cards");
    jwrite_uint(out, "total", total);
    jwrite_uint(out, "idle", idle);
    jwrite_end_object(out);
}

void fabric_view_domain(const struct fabric *f, int32_t id,
                        const struct fabric_count *count, struct str *out)
{
    const struct fabric_domain *d = fabric_domain(f, id);
    jwrite_object(out, NULL);
    jwrite_int(out, "id", id);
    jwrite_text(out, "name", d->name);
    jwrite_text(out, "tier", fabric_tier_name(d->tier));
    jwrite_int_or_null(out, "parent", d->parent);
    jwrite_uint(out, "switches", d->n_switches);
    jwrite_uint(out, "hosts", d->n_hosts);
    jwrite_uint(out, "nodes", count->nodes);
    add_cards(out, count->cards, count->idle);
    jwrite_end_object(out);
}

static void view_port(const struct fabric_port *p, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_uint(out, "rail", p->rail);
    jwrite_known_text(out, "device", p->device);
    jwrite_known(out, "port", p->port);
    jwrite_known_text(out, "guid", p->guid);
    jwrite_known_text(out, "leaf", p->leaf);
    jwrite_known(out, "speedGbitS", p->speed_gbit_s);
    jwrite_end_object(out);
}

void fabric_view_entry(const struct fabric_entry *e, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "name", e->name);
    jwrite_int_or_null(out, "leaf", e->leaf);
    jwrite_bool(out, "published", e->node != NULL);
    if (e->node) {
        uint32_t cards, idle;
        count_cards(e->node, &cards, &idle);
        add_cards(out, cards, idle);
    }
    jwrite_array(out, "ports");
    for (unsigned i = 0; e->host && i < e->host->n_ports; i++)
        view_port(&e->host->ports[i], out);
    jwrite_end_array(out);
    jwrite_end_object(out);
}

/* --- the tree ---------------------------------------------------------- */

struct tree {
    const struct snapshot *s;
    struct fabric_count *counts;
    struct fabric_entry *entries; /* by leaf, then by name */
    size_t n_entries;
    int32_t *first; /* per domain: its first child */
    int32_t *next;  /* per domain: its next sibling */
    size_t room;    /* lines of hosts that may still be written */
    struct str *out;
};

static int entry_order(const void *pa, const void *pb)
{
    const struct fabric_entry *a = pa, *b = pb;
    if (a->leaf != b->leaf)
        return a->leaf < b->leaf ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void tree_collect(struct tree *t)
{
    const struct fabric *f = t->s->fabric;
    size_t n = fabric_n_domains(f), cap = 0;
    struct fabric_walk walk;
    struct fabric_entry e;
    fabric_walk_init(&walk, t->s, NULL);
    while (fabric_walk_next(&walk, &e)) {
        t->entries = xgrow(t->entries, t->n_entries, &cap, sizeof e);
        t->entries[t->n_entries++] = e;
    }
    if (t->n_entries)
        qsort(t->entries, t->n_entries, sizeof e, entry_order);
    t->first = xcalloc(n + 1, sizeof *t->first);
    t->next = xcalloc(n + 1, sizeof *t->next);
    for (size_t i = 0; i <= n; i++)
        t->first[i] = t->next[i] = FABRIC_NONE;
    for (size_t i = n; i-- > 0;) {
        int32_t parent = fabric_domain(f, (int32_t)i)->parent;
        if (parent < 0)
            continue;
        t->next[i] = t->first[parent];
        t->first[parent] = (int32_t)i;
    }
}

static size_t entries_from(const struct tree *t, int32_t leaf)
{
    return lower_bound(t->n_entries, i, t->entries[i].leaf < leaf);
}

static void tree_hosts(struct tree *t, int32_t leaf, unsigned depth)
{
    size_t left = 0;
    for (size_t i = entries_from(t, leaf);
         i < t->n_entries && t->entries[i].leaf == leaf; i++) {
        const struct fabric_entry *e = &t->entries[i];
        uint32_t cards, idle;
        if (t->room == 0) {
            left++;
            continue;
        }
        t->room--;
        str_addf(t->out, "%*s%s", (int)depth * 2, "", e->name);
        if (e->node) {
            count_cards(e->node, &cards, &idle);
            str_addf(t->out, "  %" PRIu32 "/%" PRIu32 " cards idle", idle,
                     cards);
        }
        for (unsigned p = 0; e->host && p < e->host->n_ports; p++)
            if (*e->host->ports[p].device)
                str_addf(t->out, "  %s", e->host->ports[p].device);
        str_add_c(t->out, '\n');
    }
    if (left)
        str_addf(t->out, "%*sand %zu more\n", (int)depth * 2, "", left);
}

/* As deep as there are tiers. */
static void tree_domain(struct tree *t, int32_t id, unsigned depth)
{
    const struct fabric_domain *d = fabric_domain(t->s->fabric, id);
    const struct fabric_count *c = &t->counts[id];
    str_addf(t->out, "%*s%s %s  ", (int)depth * 2, "",
             fabric_tier_name(d->tier), d->name);
    if (d->n_switches > 1)
        str_addf(t->out, "%" PRIu32 " leaf switches, ", d->n_switches);
    str_addf(t->out, "%" PRIu32 " host%s", d->n_hosts,
             d->n_hosts == 1 ? "" : "s");
    if (c->nodes)
        str_addf(t->out,
                 ", %" PRIu32 " published, %" PRIu32 "/%" PRIu32 " cards idle",
                 c->nodes, c->idle, c->cards);
    str_add_c(t->out, '\n');
    for (int32_t k = t->first[id]; k >= 0; k = t->next[k])
        tree_domain(t, k, depth + 1);
    if (d->tier == 0)
        tree_hosts(t, id, depth + 1);
}

void fabric_view_text(const struct snapshot *s, size_t limit, struct str *out)
{
    struct fabric_count unknown;
    struct tree t = {.s = s,
                     .counts = fabric_counts(s, &unknown),
                     .room = limit,
                     .out = out};
    tree_collect(&t);
    if (fabric_n_domains(s->fabric) == 0)
        str_add(out, "no fabric is known\n");
    for (size_t i = 0; i < fabric_n_domains(s->fabric); i++)
        if (fabric_domain(s->fabric, (int32_t)i)->parent < 0)
            tree_domain(&t, (int32_t)i, 0);
    if (unknown.nodes) {
        str_addf(out,
                 "unknown  %" PRIu32 " published, %" PRIu32 "/%" PRIu32
                 " cards idle\n",
                 unknown.nodes, unknown.idle, unknown.cards);
        tree_hosts(&t, FABRIC_NONE, 1);
    }
    free(t.counts);
    free(t.entries);
    free(t.first);
    free(t.next);
}
