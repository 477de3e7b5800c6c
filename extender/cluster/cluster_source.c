/* The cluster as a source of pods: see pod_source.h. */
#include <stdio.h>
#include <string.h>

#include "extender/cluster/cluster_private.h"
#include "extender/pods/pending_demands.h"
#include "lib/io/clock.h"

enum {
    LONG_MS = 30000, /* kube-scheduler's back-off is 10 s at most */
    GATE_TEXT_MAX = 8192,
};

static bool leads(void *ctx, char ret_leader[POD_SOURCE_LEADER_MAX])
{
    return cluster_leads(ctx, ret_leader);
}

static bool is_ready(void *ctx, struct str *why)
{
    return cluster_is_ready(ctx, why);
}

static void gauge(void *ctx, const struct snapshot *s)
{
    (void)s;
    cluster_gauge(ctx);
}

/* A pod that no filter has shown to this replica, from the watch. */
static bool find_demand(void *ctx, const char *uid, struct demand *ret_demand)
{
    const struct cluster *c = ctx;
    return cluster_pods_find(c->pods, uid, ret_demand);
}

/* Its gate is closed. */
static bool is_gated(enum gate_story story, struct pod_account *ret)
{
    ret->state = story == GATE_STORY_JUDGED ? NULL : "gated";
    return story == GATE_STORY_WAITS || story == GATE_STORY_JUDGED;
}

static bool find_gated(struct cluster *c, const char *namespace,
                       const char *name, struct pod_account *ret)
{
    return is_gated(gate_controller_explain(c->gate, namespace, name,
                                            &ret->demand, &ret->text),
                    ret);
}

static bool find_job(void *ctx, const struct snapshot *s, const char *namespace,
                     const char *job, struct pod_account *ret)
{
    struct cluster *c = ctx;
    (void)s;
    return is_gated(gate_controller_explain_job(c->gate, namespace, job,
                                                &ret->demand, &ret->text),
                    ret);
}

/* It runs, and not where Biga would have put it. */
static bool find(void *ctx, const struct snapshot *s, const char *namespace,
                 const char *name, struct pod_account *ret)
{
    struct cluster *c = ctx;
    cleanup_free char *refusal = NULL;
    (void)s;
    if (find_gated(c, namespace, name, ret))
        return true;
    if (!cluster_pods_find_unaccounted(c->pods, namespace, name, &ret->text))
        return false;
    ret->state = "unaccounted";
    if (!pending_demands_find_name(c->config.demands, namespace, name,
                                   &ret->demand, &refusal)) {
        struct demand *d = &ret->demand;
        memset(d, 0, sizeof *d);
        (void)snprintf(d->namespace, sizeof d->namespace, "%s", namespace);
        (void)snprintf(d->name, sizeof d->name, "%s", name);
    }
    return true;
}

static void each_pod(void *ctx, const struct snapshot *s,
                     const struct pods_asked *asked, job_pod_f *visit,
                     void *arg)
{
    const struct cluster *c = ctx;
    (void)s;
    cluster_ps_each(c->ps, asked, visit, arg);
}

static void each_job(void *ctx, const struct job_name *behind, size_t most,
                     job_name_f *visit, void *arg)
{
    const struct cluster *c = ctx;
    cluster_ps_each_job(c->ps, behind, most, visit, arg);
}

static uint64_t pods_version(void *ctx)
{
    const struct cluster *c = ctx;
    return cluster_ps_version(c->ps);
}

static struct ended_jobs *ended(void *ctx)
{
    const struct cluster *c = ctx;
    return cluster_ps_ended(c->ps);
}

static void add_health(void *ctx, const struct allocation *a, struct str *out)
{
    struct cluster *c = ctx;
    struct demand ignored;
    cleanup_str struct str gate = STR_INIT(GATE_TEXT_MAX);
    cleanup_with(cluster_ps_pod) struct cluster_ps_pod *p =
        cluster_ps_find(c->ps, a->demand.namespace, a->demand.name);
    if (!p)
        return;
    if (gate_controller_explain(c->gate, a->demand.namespace, a->demand.name,
                                &ignored, &gate) == GATE_STORY_OPENED)
        str_addf(out, "; %s", str_text(&gate));
    str_addf(out, "; the pod is %s", pod_state_name(p->state));
    if (p->reason[0])
        str_addf(out, ": %s%s%s", p->reason, p->message[0] ? ": " : "",
                 p->message);
}

static bool find_unknown_key(void *ctx, const char *namespace, const char *name,
                             struct str *text)
{
    const struct cluster *c = ctx;
    return cluster_pods_find_unknown_key(c->pods, namespace, name, text);
}

/* What Biga would allow, kube-scheduler may not: a nodeSelector, a taint, CPUs
 * of the whole node. */
static bool add_waiting(void *ctx, const struct demand *pod, struct str *out)
{
    const struct cluster *c = ctx;
    struct waiting_pods_state state = {.woken_ms = -1};
    waker_state(c->waker, pod->uid, &state);
    int64_t ago_ms = clock_ms() - state.woken_ms;
    long long ago_s = ago_ms / 1000;
    if (!state.aside)
        return false;
    if (state.woken_ms >= 0 && ago_ms < LONG_MS)
        str_addf(out,
                 "; kube-scheduler was told so %lld s ago, and is awaited: it "
                 "tries again after its back-off, 10 s at most",
                 ago_s);
    else if (state.woken_ms >= 0)
        str_addf(out,
                 "; kube-scheduler was told so %lld s ago, and has not asked "
                 "since: it has reasons of its own, which are in the pod's "
                 "events, or does not run",
                 ago_s);
    else if (state.refused)
        str_add(out, "; that was not so when kube-scheduler asked last: the "
                     "replica that leads has it ask again");
    return state.woken_ms >= 0 || state.refused;
}

/* An Event for whoever waits for the pod; and when there is room, it is tried
 * again. */
static void answered(void *ctx, const struct pod_answer *a)
{
    struct cluster *c = ctx;
    const char *text = a->broken ? a->broken : a->refusal;
    if (!a->broken)
        waker_asked(c->waker, a->pod->uid, a->snapshot, a->refusal != NULL,
                    a->nodes, a->n);
    if (text)
        cluster_tell(c, a->pod, EVENTS_REFUSED, text);
}

/* An allocation is what its pod says, as long as that is there as far as the
 * watch has shown, or a bind of it is on its way. */
static bool may_release(void *ctx, const char *namespace, const char *name,
                        bool *ret_unfed, struct str *why)
{
    struct cluster *c = ctx;
    struct demand ignored;
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(c->config.writer);
    const struct allocation *a = alloc_index_find(s->allocations, namespace,
                                                  name);
    const char *uid = a ? a->demand.uid : "";
    *ret_unfed = false;
    if (!a || a->held ||
        (!binder_is_busy(c->binder, uid) &&
         !cluster_pods_is_bound(c->pods, uid) &&
         !cluster_pods_find(c->pods, uid, &ignored)))
        return true;
    str_addf(why,
             "pod %.63s/%.253s is there, and what it has is written on it: "
             "delete the pod",
             namespace, name);
    return false;
}

static void bind_begin(void *ctx, const char *uid)
{
    const struct cluster *c = ctx;
    binds_begin(c->binds, uid);
}

static void bind(void *ctx, struct pod_bind *b)
{
    const struct cluster *c = ctx;
    binds_post(c->binds, b);
}

static void bind_refused(void *ctx, const struct pod_bind *b,
                         const char *reason)
{
    const struct cluster *c = ctx;
    binds_refuse(c->binds, b, reason);
}

/* Has Biga planned it already?  Then its claims are pinned to that. */
static bool is_planned(const struct snapshot *s, struct demand *demand)
{
    const struct allocation *a =
        demand->uid[0] ? alloc_index_find_uid(s->allocations, demand->uid)
                       : NULL;
    if (a)
        *demand = a->demand;
    return a != NULL;
}

static int join_claims(void *ctx, const struct snapshot *s,
                       const struct jtext *pod, bool at_gate,
                       struct demand *demand, struct error *err)
{
    const struct cluster *c = ctx;
    cleanup_with(claim_needs) struct claim_needs *needs = NULL;
    if (!c->claims || !memmem(pod->data, pod->size, "\"resourceClaims\"", 16) ||
        is_planned(s, demand))
        return 0;
    int r = claim_book_read(c->claims, s, pod->data, pod->size, at_gate, demand,
                            &needs, err);
    if (r == -EINVAL)
        r = -EDOM;
    if (r < 0 || at_gate ||
        claim_needs_cards(needs) + claim_needs_gpus(needs) == 0)
        return r;
    return error_set(err, EDOM,
                     "its cards or GPUs come by claims: which ones is "
                     "kube-scheduler's choice once it has asked here. Add the "
                     "scheduling gate biga.dev/place: Biga plans the pod first "
                     "and pins its claims");
}

static void drain(void *ctx, struct pod_drain *d)
{
    struct cluster *c = ctx;
    drainer_post(c->drainer, d);
}

static const struct pod_source_ops ops = {
    .leads = leads,
    .is_ready = is_ready,
    .gauge = gauge,
    .find_demand = find_demand,
    .find = find,
    .find_job = find_job,
    .find_unknown_key = find_unknown_key,
    .each_pod = each_pod,
    .each_job = each_job,
    .pods_version = pods_version,
    .ended = ended,
    .join_claims = join_claims,
    .add_health = add_health,
    .add_waiting = add_waiting,
    .answered = answered,
    .may_release = may_release,
    .drain = drain,
    .bind_begin = bind_begin,
    .bind = bind,
    .bind_refused = bind_refused,
};

struct pod_source cluster_source(struct cluster *c)
{
    return (struct pod_source){.ops = &ops, .ctx = c};
}

struct cluster *cluster_of(const struct pod_source *source)
{
    assert(source->ops == &ops);
    return source->ctx;
}
