/* Nodes with equal states: work is done once for all of them. */
#include <string.h>

#include "lib/base/hash.h"
#include "model/plan/plan_private.h"

enum { FIRST_SIZE = 256 };

struct entry {
    const struct node_state *state; /* NULL: free */
    uint64_t hash;
    uint32_t class;
};

/* Open addressing.  It grows with the states that there are, of which a large
 * cluster has far fewer than nodes. */
struct entries {
    struct entry *list;
    size_t n, mask;
};

/* States are looked for by address, and then by content.  Classes are numbered
 * in the order of nodes, so that no address shows in them. */
struct tables {
    struct entries addresses, contents;
    size_t states_cap;
};

static void entries_init(struct entries *t)
{
    *t = (struct entries){.list = xcalloc(FIRST_SIZE, sizeof *t->list),
                          .mask = FIRST_SIZE - 1};
}

static void entries_add(struct entries *t, size_t at, const struct entry *entry)
{
    t->list[at] = *entry;
    if (++t->n * 2 <= t->mask)
        return;
    struct entry *old = t->list;
    size_t size = t->mask + 1;
    t->mask = 2 * size - 1;
    t->list = xcalloc(2 * size, sizeof *t->list);
    for (size_t i = 0; i < size; i++) {
        if (!old[i].state)
            continue;
        at = old[i].hash & t->mask;
        while (t->list[at].state)
            at = (at + 1) & t->mask;
        t->list[at] = old[i];
    }
    free(old);
}

static uint32_t find_content(struct tables *t, const struct node_state *state,
                             struct plan_classes *k)
{
    struct entries *c = &t->contents;
    struct entry fresh = {state, hash_bytes(state, sizeof *state), k->n};
    size_t at = fresh.hash & c->mask;
    for (; c->list[at].state; at = (at + 1) & c->mask)
        if (c->list[at].hash == fresh.hash &&
            memcmp(c->list[at].state, state, sizeof *state) == 0)
            return c->list[at].class;
    entries_add(c, at, &fresh);
    k->states = xgrow(k->states, k->n, &t->states_cap, sizeof(*k->states));
    k->states[k->n++] = state;
    return fresh.class;
}

static uint32_t find_class(struct tables *t, const struct node_state *state,
                           struct plan_classes *k)
{
    struct entries *a = &t->addresses;
    uintptr_t address = (uintptr_t)state;
    struct entry fresh = {state, hash_bytes(&address, sizeof address), 0};
    size_t at = fresh.hash & a->mask;
    for (; a->list[at].state; at = (at + 1) & a->mask)
        if (a->list[at].state == state)
            return a->list[at].class;
    fresh.class = find_content(t, state, k);
    entries_add(a, at, &fresh);
    return fresh.class;
}

void plan_classes_init(struct plan_classes *k,
                       const struct plan_cluster *cluster,
                       const uint64_t *candidates)
{
    size_t n = cluster->n_nodes;
    struct tables t = {.states_cap = 0};
    entries_init(&t.addresses);
    entries_init(&t.contents);
    k->n = 0;
    k->states = NULL;
    k->class_of = xmalloc((n + 1) * sizeof *k->class_of);
    for (size_t i = 0; i < n; i++)
        k->class_of[i] = plan_node_ok(cluster, candidates, i)
                             ? find_class(&t, cluster->states[i], k)
                             : UINT32_MAX;
    free(t.addresses.list);
    free(t.contents.list);
}

void plan_classes_fini(struct plan_classes *k)
{
    free(k->class_of);
    free(k->states);
}
