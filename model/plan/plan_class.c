/* Nodes with equal states: work is done once for all of them. */
#include <string.h>

#include "lib/base/hash.h"
#include "model/plan/plan_private.h"

/* Open addressing, first by address and then by content.  Classes are
 * numbered in the order of nodes, so that no address shows in them. */
struct entry {
    const struct node_state *state;
    uint32_t class;
};

struct tables {
    struct entry *addresses, *contents;
    size_t mask;
};

static uint32_t find_content(struct tables *t, const struct node_state *state,
                             struct plan_classes *k)
{
    size_t at = hash_bytes(state, sizeof *state) & t->mask;
    while (t->contents[at].state &&
           memcmp(t->contents[at].state, state, sizeof *state) != 0)
        at = (at + 1) & t->mask;
    if (!t->contents[at].state) {
        t->contents[at] = (struct entry){state, k->n};
        k->states[k->n++] = state;
    }
    return t->contents[at].class;
}

static uint32_t find_class(struct tables *t, const struct node_state *state,
                           struct plan_classes *k)
{
    uintptr_t address = (uintptr_t)state;
    size_t at = hash_bytes(&address, sizeof address) & t->mask;
    while (t->addresses[at].state && t->addresses[at].state != state)
        at = (at + 1) & t->mask;
    if (!t->addresses[at].state)
        t->addresses[at] = (struct entry){state, find_content(t, state, k)};
    return t->addresses[at].class;
}

void plan_classes_init(struct plan_classes *k,
                       const struct plan_cluster *cluster,
                       const struct plan_job *job)
{
    size_t n = cluster->n_nodes, size = 16;
    while (size < n * 2)
        size *= 2;
    cleanup_free struct entry *addresses = xcalloc(size, sizeof *addresses);
    cleanup_free struct entry *contents = xcalloc(size, sizeof *contents);
    struct tables t = {addresses, contents, size - 1};
    k->n = 0;
    k->class_of = xcalloc(n + 1, sizeof *k->class_of);
    k->states = xcalloc(n + 1, sizeof *k->states);
    for (size_t i = 0; i < n; i++)
        k->class_of[i] = plan_node_ok(cluster, job, i)
                             ? find_class(&t, cluster->states[i], k)
                             : UINT32_MAX;
}

void plan_classes_fini(struct plan_classes *k)
{
    free(k->class_of);
    free(k->states);
}
