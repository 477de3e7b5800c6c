#include "extender/serve/pending.h"

#include <string.h>

#include "extender/cluster/cluster.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum { LONG_MS = 30000 }; /* kube-scheduler's back-off is 10 s at most */

/* The job whose lease has what is free on a node; false: none. */
static bool holder_on(const struct why *why, int32_t node,
                      char key[JOB_KEY_MAX])
{
    const struct node *n = snapshot_node(why->snapshot, (size_t)node);
    for (size_t i = 0; i < n->n_allocations; i++) {
        const struct allocation *a = n->allocations[i];
        if (!a->held || strcmp(a->pair_key, why->schedule.pair_key) == 0)
            continue;
        job_key(&a->demand, key);
        return true;
    }
    return false;
}

int64_t pending_lease_s(const struct app *app, const struct why *why)
{
    char key[JOB_KEY_MAX] = ""; /* of all */
    bool any = false;
    int64_t until_ms;
    if (why->n_fitting > 0)
        return -1;
    for (size_t i = 0; i < why->advice.n_changes && !any; i++) {
        any = why->advice.changes[i].kind == CHANGE_LEASE;
        if (any)
            memcpy(key, why->advice.changes[i].job, sizeof key);
    }
    if (!any && why->count[REASON_LEASED])
        any = holder_on(why, why->example[REASON_LEASED], key);
    if (!any || !writer_lease_end(app->writer, key, &until_ms))
        return -1;
    int64_t left_ms = until_ms - clock_ms();
    return left_ms > 0 ? (left_ms + 999) / 1000 : 0;
}

/* What Biga would allow, kube-scheduler may not: a nodeSelector, a taint, CPUs
 * of the whole node. */
static void add_scheduler(const struct app *app, const struct why *why,
                          struct str *out)
{
    struct waiting_pods_state state = {.woken_ms = -1};
    if (app->cluster)
        cluster_waits(app->cluster, why->pod->uid, &state);
    int64_t ago_ms = clock_ms() - state.woken_ms;
    long long ago_s = ago_ms / 1000;
    if (state.aside && state.woken_ms >= 0 && ago_ms < LONG_MS)
        str_addf(out,
                 "; kube-scheduler was told so %lld s ago, and is awaited: it "
                 "tries again after its back-off, 10 s at most",
                 ago_s);
    else if (state.aside && state.woken_ms >= 0)
        str_addf(out,
                 "; kube-scheduler was told so %lld s ago, and has not asked "
                 "since: it has reasons of its own, which are in the pod's "
                 "events, or does not run",
                 ago_s);
    else if (state.aside && state.refused)
        str_add(out, "; that was not so when kube-scheduler asked last: the "
                     "replica that leads has it ask again");
    else
        str_add(out, "; while it waits, kube-scheduler has reasons of its own, "
                     "which are in the pod's events");
}

void pending_summary(const struct app *app, const struct why *why,
                     struct str *out)
{
    cleanup_with(pod_set) struct pod_set *set = app->applied
                                                    ? applied_get(app->applied)
                                                    : NULL;
    int64_t lease_s = pending_lease_s(app, why);
    why_summary(why, out);
    if (lease_s >= 0)
        str_addf(out,
                 "; that lease ends in %lld s, unless more of its pods are "
                 "bound, which renews it%s",
                 (long long)lease_s,
                 app->cluster ? "; kube-scheduler is told then" : "");
    if (why->n_fitting > 0 && !(set && pod_set_find_uid(set, why->pod->uid)))
        add_scheduler(app, why, out);
}
