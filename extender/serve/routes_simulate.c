/* POST /v1/simulate: what would happen to pods. */
#include <stdio.h>
#include <string.h>

#include "extender/jobs/pod_documents.h"
#include "extender/judge/alignment.h"
#include "extender/judge/why.h"
#include "extender/pods/applied_status.h"
#include "extender/serve/app.h"
#include "extender/serve/routes_private.h"
#include "extender/serve/routes_scheduler.h"
#include "extender/state/draft.h"
#include "lib/base/jscan.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "model/pod/pod_keys.h"

/* Refused pods of one simulation for which the way out is looked for. */
enum { ADVISED_MAX = 16 };

struct simulation {
    struct app *app;
    size_t n_advised;
    struct draft *draft;
    struct str *out;
    size_t n_pods;
    size_t n_nodes;
    bool applied; /* as biga apply would have them */
};

/* Of a job there is a pod for each side of a pair, as far as one pod tells. */
static uint8_t simulated_runs(const struct demand *d)
{
    return d->role == ROLE_HOST && !d->job[0] ? RUNS_HOST : RUNS_CARDS;
}

/* Hold the places of the plan, as a bind does, so that the other pods of the
 * job follow. */
static void simulate_holds(struct simulation *sim, const struct why *why)
{
    size_t n;
    struct allocation **holds = job_holds(why->snapshot, why->pod, why->plan,
                                          &n);
    for (size_t i = 0; i < n; i++)
        draft_allocate(sim->draft, holds[i]);
    free(holds);
}

/* Place the pod on `node` of the draft.  A host pod takes the place that is
 * held for it. */
static void simulate_place(struct simulation *sim, const struct demand *demand,
                           int32_t node)
{
    cleanup_with(snapshot) struct snapshot *now = draft_peek(sim->draft);
    struct schedule s;
    struct choice choice;
    schedule_init(&s, now, demand);
    if (schedule_choose(&s, node, &choice) != REASON_NONE)
        return;
    struct allocation *a = schedule_allocation(&s, node, &choice);
    jwrite_key(sim->out, "allocation");
    alignment_encode(now, a, sim->out);
    if (s.hold && (demand->role == ROLE_HOST || !demand->job[0]))
        (void)draft_release(sim->draft, s.hold->demand.namespace,
                            s.hold->demand.name);
    draft_allocate(sim->draft, a);
}

/* Place one pod on the draft and write what became of it. */
static void simulate_demand(struct simulation *sim, struct demand *demand)
{
    struct str *out = sim->out;
    sim->n_pods++;
    if (sim->applied)
        demand->runs = simulated_runs(demand);
    if (!demand->uid[0])
        (void)snprintf(demand->uid, sizeof demand->uid, "simulated-%zu",
                       sim->n_pods);
    jwrite_object(out, NULL);
    jwrite_key(out, "pod");
    why_write_pod(demand, out);
    if (demand->role == ROLE_NONE) {
        jwrite_text(out, "state", "foreign");
        jwrite_text(out, "summary", "no label biga.dev/role: any node");
        jwrite_end_object(out);
        return;
    }
    cleanup_with(snapshot) struct snapshot *now = draft_peek(sim->draft);
    cleanup_why struct why why;
    why_init(&why, now, demand, NULL, NULL);
    if (!why.n_fitting && sim->n_advised++ < ADVISED_MAX)
        why_advise(&why);
    cleanup_str struct str text = STR_INIT(65536);
    why_summary(&why, &text);
    jwrite_text(out, "state", why.n_fitting ? "placed" : "refused");
    jwrite_text(out, "summary", str_text(&text));
    why_write(&why, out);
    if (why.plan)
        simulate_holds(sim, &why);
    if (why.n_fitting)
        simulate_place(sim, demand, why.best[0]);
    jwrite_end_object(out);
}

/* The contract is broken by a key that is none, too; -EDOM tells that first,
 * since it may be why something else is missing. */
static int read_simulated(const struct simulation *sim, struct jscan *s,
                          struct demand *ret_demand, struct error *err)
{
    struct jscan keys = *s;
    struct error odd = {0};
    int unknown = pod_keys_check(&keys, &odd);
    struct jtext pod = {.data = s->p};
    int r = demand_read(s, &sim->app->demand, ret_demand, err);
    pod.size = (size_t)(s->p - pod.data);
    if (r == 0 && ret_demand->role != ROLE_NONE &&
        pod_source_has(&sim->app->source, join_claims)) {
        cleanup_with(snapshot) struct snapshot *now = draft_peek(sim->draft);
        r = pod_source_ask(&sim->app->source, join_claims, now, &pod, true,
                           ret_demand, err);
    }
    if (unknown != -EDOM || r == -EINVAL)
        return r;
    *err = odd;
    return -EDOM;
}

static int simulate_pod(struct simulation *sim, struct jscan *s,
                        struct error *err)
{
    struct demand demand;
    if (sim->n_pods == SIMULATE_PODS_MAX)
        return error_set(err, EINVAL, "more than %d pods in one simulation",
                         SIMULATE_PODS_MAX);
    if ((sim->n_pods + 1) * sim->n_nodes > SIMULATE_WORK_MAX)
        return error_set(err, EINVAL,
                         "more than %zu pods in one simulation of %zu nodes: "
                         "ask in parts",
                         SIMULATE_WORK_MAX / sim->n_nodes, sim->n_nodes);
    int r = read_simulated(sim, s, &demand, err);
    if (r == -EDOM)
        return error_wrap(err, "pod %zu (%s/%s)", sim->n_pods, demand.namespace,
                          demand.name);
    if (r == 0)
        simulate_demand(sim, &demand);
    return r;
}

static int simulate_list(struct simulation *sim, struct jscan *s,
                         struct error *err)
{
    if (!jscan_array(s))
        return jscan_error(s, err);
    while (jscan_element(s)) {
        int r = simulate_pod(sim, s, err);
        if (r < 0)
            return r;
    }
    return s->fault ? jscan_error(s, err) : 0;
}

enum shape_of_body { BODY_POD, BODY_ARGS, BODY_LIST, BODY_ARRAY, BODY_BAD };

/* What a simulation is asked with: a Pod, a List of Pods, an array of Pods,
 * the scheduler's own ExtenderArgs, or what Pods are made of
 * (pod_documents.h). Leaves `at` on the array of a list. */
static enum shape_of_body body_shape(const char *body, size_t size,
                                     struct jscan *at, struct error *err)
{
    struct jscan s;
    struct jtext key;
    enum shape_of_body shape = BODY_POD;
    jscan_init(&s, body, size);
    if (jscan_peek(&s) == JKIND_ARRAY) {
        *at = s;
        shape = BODY_ARRAY;
        (void)jscan_skip(&s);
    } else if (jscan_object(&s)) {
        while (jscan_member(&s, &key)) {
            if (jtext_is_nocase(&key, "Pod")) {
                shape = BODY_ARGS;
            } else if (jtext_is(&key, "items")) {
                *at = s;
                shape = BODY_LIST;
            }
            (void)jscan_skip(&s);
        }
    }
    if (jscan_end(&s))
        return shape;
    (void)jscan_error(&s, err);
    return BODY_BAD;
}

/* The scheduler's verbs as they would be answered now. */
static int simulate_verbs(struct simulation *sim,
                          const struct snapshot *snapshot, const char *body,
                          size_t size, struct error *err)
{
    str_add(sim->out, "{\"filter\":");
    int r = scheduler_filter(sim->app, snapshot, body, size, sim->out, err);
    if (r < 0)
        return r;
    jwrite_key(sim->out, "prioritize");
    r = scheduler_prioritize(sim->app, snapshot, body, size, sim->out, err);
    jwrite_uint(sim->out, "snapshot", snapshot->number);
    jwrite_end_object(sim->out);
    return r;
}

static int simulate_pods(struct simulation *sim,
                         const struct snapshot *snapshot, struct jscan *s,
                         bool one, struct error *err)
{
    jwrite_object(sim->out, NULL);
    jwrite_uint(sim->out, "snapshot", snapshot->number);
    jwrite_array(sim->out, "results");
    int r = one ? simulate_pod(sim, s, err) : simulate_list(sim, s, err);
    str_add(sim->out, "]}");
    return r;
}

/* The Pods that would be made of it. */
static int simulate_documents(struct simulation *sim,
                              const struct snapshot *snapshot, const char *body,
                              size_t size, struct error *err)
{
    cleanup_str struct str pods = STR_INIT(APPLIED_MADE_MAX);
    struct jscan s;
    int r = pod_documents_make(body, size, &sim->app->demand, SIMULATE_PODS_MAX,
                               &pods, err);
    jscan_init(&s, str_text(&pods), pods.size);
    return r < 0 ? r : simulate_pods(sim, snapshot, &s, false, err);
}

static int simulate(struct simulation *sim, const struct snapshot *snapshot,
                    const char *body, size_t size, struct error *err)
{
    struct jscan s;
    struct error ignored;
    jscan_init(&s, body, size);
    bool made = pod_documents_need_making(body, size);
    enum shape_of_body shape = body_shape(body, size, &s,
                                          made ? &ignored : err);
    if (shape == BODY_ARGS)
        return simulate_verbs(sim, snapshot, body, size, err);
    if (made)
        return simulate_documents(sim, snapshot, body, size, err);
    if (shape == BODY_BAD)
        return -EINVAL;
    return simulate_pods(sim, snapshot, &s, shape == BODY_POD, err);
}

/* The query parameter `applied`; false, and answered, when it is wrong. */
static bool read_applied(struct httpd_request *rq, bool *ret_applied)
{
    static const char *const params[] = {"applied", NULL};
    const char *text = httpd_query(rq, "applied");
    if (!httpd_query_only(rq, params))
        return false;
    *ret_applied = text && strcmp(text, "true") == 0;
    if (!text || *ret_applied || strcmp(text, "false") == 0)
        return true;
    httpd_fail(rq, 400, "applied: is \"%.32s\", must be true or false", text);
    return false;
}

void handle_simulate(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    struct error err = {0};
    size_t size;
    bool applied;
    if (!read_applied(rq, &applied))
        return;
    const char *body = httpd_body(rq, &size);
    struct snapshot *snapshot = writer_snapshot(app->writer);
    struct simulation sim = {.app = app,
                             .draft = draft_create(snapshot),
                             .out = httpd_reply(rq),
                             .n_nodes = snapshot->n_nodes,
                             .applied = applied};
    if (simulate(&sim, snapshot, body, size, &err) < 0)
        httpd_fail(rq, 400, "%s", err.text);
    draft_destroy(sim.draft);
    snapshot_unref(snapshot);
}
