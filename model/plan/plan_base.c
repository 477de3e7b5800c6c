/* The nodes by class and by leaf. */
#include "model/decide/bits.h"
#include "model/plan/plan_private.h"

static uint32_t count_idle(const struct node_state *state)
{
    return count_bits(state->usable & ~(unsigned)state->occupied);
}

static uint8_t *idle_of_classes(const struct plan_classes *k)
{
    uint8_t *idle = xcalloc(k->n + 1u, 1);
    for (uint32_t i = 0; i < k->n; i++)
        idle[i] = (uint8_t)count_idle(k->states[i]);
    return idle;
}

static void count_nodes(struct plan_base *b, const struct plan_cluster *c)
{
    cleanup_free uint8_t *idle = idle_of_classes(&b->classes);
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct node_state *state = c->states[i];
        struct plan_leaf *leaf = &b->leaves[plan_node_slot(c, i)];
        uint32_t class = b->classes.class_of[i];
        if (class != UINT32_MAX) {
            leaf->n++;
            leaf->idle += idle[class];
        } else if (state) {
            leaf->idle += count_idle(state);
        }
    }
}

static void list_nodes(struct plan_base *b, const struct plan_cluster *c)
{
    uint32_t at = 0;
    for (size_t s = 0; s < c->n_domains + c->n_apart; s++) {
        b->leaves[s].first = at;
        at += b->leaves[s].n;
        b->leaves[s].n = 0;
    }
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        struct plan_leaf *leaf = &b->leaves[plan_node_slot(c, i)];
        if (b->classes.class_of[i] != UINT32_MAX)
            b->nodes[leaf->first + leaf->n++] = i;
    }
}

struct plan_base *plan_base_create(const struct plan_cluster *cluster,
                                   const uint64_t *candidates)
{
    const struct plan_cluster c = plan_known(cluster);
    struct plan_base *b = xcalloc(1, sizeof *b);
    b->leaves = xcalloc(c.n_domains + c.n_apart + 1, sizeof *b->leaves);
    b->nodes = xmalloc((c.n_nodes + 1) * sizeof *b->nodes);
    plan_classes_init(&b->classes, &c, candidates);
    count_nodes(b, &c);
    list_nodes(b, &c);
    return b;
}

void plan_base_destroy(struct plan_base *b)
{
    if (!b)
        return;
    plan_classes_fini(&b->classes);
    free(b->leaves);
    free(b->nodes);
    free(b);
}
