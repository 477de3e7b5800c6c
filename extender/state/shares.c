#include "extender/state/shares.h"

static void count_share(void *ctx, const struct usage_share *share)
{
    size_t *counts = ctx;
    counts[share->state]++;
}

void shares_count(const struct snapshot *s, size_t ret_counts[SHARE_STATES])
{
    for (size_t state = 0; state < SHARE_STATES; state++)
        ret_counts[state] = 0;
    if (!s->policy || s->policy->n_services == 0)
        return;
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        struct usage usage;
        if (!node->topo)
            continue;
        node_usage(node, s->policy, &usage);
        usage_each_share(&usage, count_share, ret_counts);
    }
}
