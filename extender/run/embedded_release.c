/* When an operator may end the allocation of an applied pod: its place is given
 * back once its node says that nothing of it is left; else two pods might have
 * one card. */
#include <string.h>

#include "extender/run/embedded_private.h"

/* Its node was never told of it: nothing has begun. */
static bool is_unfed(const struct embedded *e, const struct pod_set *set,
                     const struct allocation *a)
{
    return a && !a->held && pod_set_find_uid(set, a->demand.uid) &&
           a->number > writer_fed(e->store.writer, a->node);
}

static bool is_to_run(const struct applied_pod *p)
{
    return p && !p->deleting && p->ended == POD_STATE_PENDING;
}

/* The node that is still to say that the pod has ended, and answers: one that
 * lacks some of its slices does, too. */
static const struct node *find_ending(const struct snapshot *s,
                                      const struct pod_set *set,
                                      const struct allocation *a)
{
    if (!a || a->held || !pod_set_find_uid(set, a->demand.uid))
        return NULL;
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    if (index == NODE_NONE)
        return NULL;
    const struct node *n = snapshot_node(s, (size_t)index);
    return node_status_is_silent(n->status) ? NULL : n;
}

static void explain_ending(const char *namespace, const char *name,
                           const struct node *n, struct str *why)
{
    /* its advertiser runs no pods, and will never say so */
    bool passive = n->topo && topo_runs(n->topo) == TOPO_RUNS_NONE;
    str_addf(why, "pod %.63s/%.253s may still run on node %.253s, %s",
             namespace, name, n->name,
             passive
                 ? "which runs no pods, and never says that nothing of it is "
                   "left: start its biga-advertiser with --actuate, or stop "
                   "that until the node is stale, see that nothing of the "
                   "pod runs there, and release it then"
                 : "which answers: its place is given back once that node "
                   "says that nothing of it is left; release it only when "
                   "that node is gone for good");
}

bool embedded_may_release(void *ctx, const char *namespace, const char *name,
                          bool *ret_unfed, struct str *why)
{
    const struct embedded *e = ctx;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(e->store.writer);
    const struct allocation *a = alloc_index_find(s->allocations, namespace,
                                                  name);
    *ret_unfed = is_unfed(e, set, a);
    if (*ret_unfed)
        return true;
    if (is_to_run(pod_set_find(set, namespace, name))) {
        str_addf(why,
                 "pod %.63s/%.253s was applied, and its node may run it: "
                 "delete it (biga delete), and release it only when that "
                 "node is gone for good",
                 namespace, name);
        return false;
    }
    const struct node *n = find_ending(s, set, a);
    if (n)
        explain_ending(namespace, name, n, why);
    return !n;
}
