#include "extender/serve/pending.h"

#include <string.h>

#include "extender/pods/pending_demands.h"
#include "extender/view/pending_pods.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

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

void pending_summary(const struct app *app, const struct why *why,
                     struct str *out)
{
    int64_t lease_s = pending_lease_s(app, why);
    why_summary(why, out);
    if (lease_s >= 0)
        str_addf(out,
                 "; that lease ends in %lld s, unless more of its pods are "
                 "bound, which renews it%s",
                 (long long)lease_s,
                 pod_source_has(&app->source, answered)
                     ? "; kube-scheduler is told then"
                     : "");
    /* what Biga would allow, kube-scheduler may not: a nodeSelector, a taint,
     * CPUs of the whole node */
    if (why->n_fitting > 0 &&
        !pod_source_ask(&app->source, add_waiting, why->pod, out))
        str_add(out, "; while it waits, kube-scheduler has reasons of its own, "
                     "which are in the pod's events");
}

static void judge(const struct app *app, const struct snapshot *snapshot,
                  const struct demand *demand, struct pending_verdict *ret)
{
    size_t n = 0;
    cleanup_with(candidates) struct candidates *names =
        pending_demands_candidates(app->demands, demand->uid);
    cleanup_free int32_t *indexes = candidates_indexes(names, snapshot, &n);
    struct why_names last = {indexes, n};
    cleanup_why struct why why;
    why_init(&why, snapshot, demand, app->plans, &last);
    if (ret->text.size == 0)
        pending_summary(app, &why, &ret->text);
    memcpy(ret->count, why.count, sizeof ret->count);
    ret->judged = true;
}

void pending_judge(const struct app *app, const struct snapshot *snapshot,
                   const char *namespace, const char *name,
                   struct pending_verdict *ret)
{
    struct demand demand;
    cleanup_free char *refusal = NULL;
    struct pod_account account = {.text = STR_INIT(4096)};
    *ret = (struct pending_verdict){.text = STR_INIT(65536)};
    if (pod_source_ask(&app->source, find, snapshot, namespace, name,
                       &account)) {
        str_add(&ret->text, str_text(&account.text));
        if (!account.state && !account.place)
            judge(app, snapshot, &account.demand, ret);
    } else if (pending_demands_find_name(app->demands, namespace, name, &demand,
                                         &refusal)) {
        if (refusal)
            str_add(&ret->text, refusal);
        else if (demand.role != ROLE_NONE)
            judge(app, snapshot, &demand, ret);
    }
    str_fini(&account.text);
}

void pending_tell_job(const struct app *app, const struct snapshot *snapshot,
                      struct job_told *told, unsigned *asked)
{
    struct pending_verdict v;
    if (!told || !told->asks || (*asked)++ >= PENDING_ASKS_MAX)
        return;
    pending_judge(app, snapshot, told->namespace, told->pod, &v);
    if (v.text.size)
        job_reason("", str_text(&v.text), told->reason);
    str_fini(&v.text);
}
