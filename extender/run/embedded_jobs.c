/* What jobs are counted from: applied pods, those that a scheduler of elsewhere
 * asks about, and those that are gone. */
#include <string.h>

#include "extender/pods/applied_uid.h"
#include "extender/pods/applied_view.h"
#include "extender/run/embedded_private.h"
#include "lib/io/clock.h"

static struct job_pod job_pod_of(const struct applied_pod *p,
                                 enum pod_state state)
{
    const struct pod_status *s = p->end ? p->end : p->status;
    return (struct job_pod){
        .namespace = p->namespace,
        .name = p->name,
        .uid = p->uid,
        .job = p->demand.job,
        .role = p->demand.role,
        .pair = p->demand.pair,
        .size = p->demand.size,
        .state = state,
        .ready = p->status->ready,
        .deleting = p->deleting,
        .told = true, /* by the runner, once it has looked */
        .reason = *s->reason    ? s->reason
                  : p->deleting ? "Deleting"
                                : "",
        .message = s->message,
        .submitted_s = applied_uid_time_s(p->uid),
        .started_s = p->started_s,
        .ended_s = p->ended_s,
    };
}

/* --- those that were not applied ------------------------------------------- */

struct asking {
    const struct pod_set *set;
    const struct snapshot *snapshot;
    job_pod_f *visit;
    void *arg;
};

static void visit_demand(void *arg, const struct demand *d, const char *refusal,
                         int64_t since_s)
{
    const struct asking *a = arg;
    if ((d->role == ROLE_NONE && !refusal) ||
        pod_set_find_uid(a->set, d->uid) ||
        alloc_index_find(a->snapshot->allocations, d->namespace, d->name))
        return;
    const struct job_pod p = {
        .namespace = d->namespace,
        .name = d->name,
        .uid = d->uid,
        .job = d->job,
        .role = d->role,
        .pair = d->pair,
        .size = d->size,
        .state = POD_STATE_PENDING,
        .told = refusal != NULL,
        .reason = refusal ? "Refused" : "",
        .message = refusal ? refusal : "",
        .submitted_s = since_s,
    };
    a->visit(a->arg, &p);
}

void embedded_each_asking(void *ctx, const struct snapshot *s, job_pod_f *visit,
                          void *arg)
{
    const struct embedded *e = ctx;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    struct asking a = {set, s, visit, arg};
    if (e->store.demands)
        pending_demands_each(e->store.demands, visit_demand, &a);
}

/* --- all --------------------------------------------------------------------- */

static void visit_pod(const struct applied_pod *p, const struct snapshot *s,
                      job_pod_f *visit, void *arg)
{
    enum pod_state state = pod_state_shown(p, NULL);
    if (state == POD_STATE_PENDING) /* the only one that a place changes */
        state = pod_state_shown(p, pod_place(p, s));
    const struct job_pod told = job_pod_of(p, state);
    visit(arg, &told);
}

/* Pods lie anywhere in memory: begin to fetch what is told of one, and then what
 * that points to. */
static void fetch_pod(const struct applied_pod *p)
{
    __builtin_prefetch(&p->uid);
    __builtin_prefetch(&p->status);
    __builtin_prefetch(&p->demand.role);
    __builtin_prefetch(&p->demand.pair);
}

static void fetch_texts(const struct applied_pod *p)
{
    __builtin_prefetch(p->status);
    __builtin_prefetch(p->name);
}

static void visit_pods(struct applied_pod *const *pods, size_t n,
                       const struct snapshot *s, job_pod_f *visit, void *arg)
{
    enum { POD_AHEAD = 16, TEXTS_AHEAD = 8 };
    for (size_t i = 0; i < n && i < POD_AHEAD; i++)
        fetch_pod(pods[i]);
    for (size_t i = 0; i < n && i < TEXTS_AHEAD; i++)
        fetch_texts(pods[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + POD_AHEAD < n)
            fetch_pod(pods[i + POD_AHEAD]);
        if (i + TEXTS_AHEAD < n)
            fetch_texts(pods[i + TEXTS_AHEAD]);
        visit_pod(pods[i], s, visit, arg);
    }
}

void embedded_each_pod(void *ctx, const struct snapshot *s,
                       const struct pods_asked *asked, job_pod_f *visit,
                       void *arg)
{
    const struct embedded *e = ctx;
    const char *namespace = asked->namespace;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    if (asked->job) {
        size_t i = pod_set_job_from(set, namespace, asked->job, false);
        size_t end = pod_set_job_from(set, namespace, asked->job, true);
        if (i < end) /* there may be no array */
            visit_pods(set->by_job + i, end - i, s, visit, arg);
        return;
    }
    for (size_t i = namespace ? pod_set_from(set, namespace, "", false) : 0;
         i < set->n_pods; i++) {
        if (asked->unsettled &&
            !pod_state_is_unsettled((enum pod_state)set->states[i]))
            continue;
        if (namespace && strcmp(namespace, set->pods[i]->namespace) != 0)
            return;
        visit_pod(set->pods[i], s, visit, arg);
    }
}

void embedded_each_job(void *ctx, const struct job_name *behind, size_t most,
                       job_name_f *visit, void *arg)
{
    const struct embedded *e = ctx;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    size_t at = pod_set_job_from(set, behind->namespace, behind->name, true);
    for (size_t n = 0; n < most && at < set->n_by_job; n++) {
        const struct applied_pod *p = set->by_job[at];
        size_t end = pod_set_job_end(set, at);
        visit(arg, &(struct job_name){p->namespace, p->demand.job},
              pod_set_job_states(set, at, end));
        at = end;
    }
}

uint64_t embedded_pods_version(void *ctx)
{
    const struct embedded *e = ctx;
    return applied_version(e->store.applied) +
           (e->store.demands ? pending_demands_version(e->store.demands) : 0);
}

struct ended_jobs *embedded_ended(void *ctx)
{
    const struct embedded *e = ctx;
    return e->ended;
}

void embedded_gone(void *ctx, const struct applied_pod *p)
{
    const struct embedded *e = ctx;
    enum pod_state state = p->end ? p->ended : POD_STATE_STOPPING;
    const struct job_pod last = job_pod_of(p, state);
    ended_jobs_add(e->ended, &last, clock_wall_s());
}
