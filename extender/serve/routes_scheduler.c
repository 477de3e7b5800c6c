#include "extender/serve/routes_scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/judge/schedule.h"
#include "extender/judge/score.h"
#include "extender/judge/victims.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/routes_private.h"
#include "extender/wire/scratch.h"
#include "extender/wire/wire.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

/* --- filter ------------------------------------------------------------- */

/* Not ours: we have no opinion, so every node stays. */
static void pass_all(struct scratch *m, struct str *out)
{
    for (size_t i = 0; i < m->args.n; i++)
        m->best[i] = (uint32_t)i;
    wire_write_fitting(&m->args, m->best, m->args.n, out);
}

enum {
    TOLD_REASONS = 3,  /* at most, in the Event of a refusal */
    OWN_WORDS_MAX = 3, /* nodes with words of their own; kube-scheduler counts
                        * equal ones */
};

/* "no node of 16 fits: 12: too few cards …; 4: …", the most frequent first. */
static void word_refusal(struct scratch *m, const size_t *from,
                         const size_t *size, size_t *count)
{
    str_addf(&m->refusal, "no node of %zu fits", m->args.n);
    for (unsigned told = 0; told < TOLD_REASONS; told++) {
        unsigned most = 0;
        for (unsigned r = 1; r < REASON_COUNT; r++)
            if (count[r] > count[most])
                most = r;
        if (count[most] == 0)
            break;
        str_addf(&m->refusal, "%s %zu: ", told ? ";" : ":", count[most]);
        str_add_n(&m->refusal, str_text(&m->text) + from[most], size[most]);
        count[most] = 0;
    }
}

/* Nothing fits: the reason of every node, those first that a preemption may
 * help.  Reasons are worded once and shared. */
static void refuse_all(struct app *app, struct scratch *m,
                       const struct schedule *s, struct str *out)
{
    size_t from[REASON_COUNT], size[REASON_COUNT] = {0};
    size_t count[REASON_COUNT] = {0};
    struct wire_failures f;
    struct schedule_reasons known = {0};
    for (size_t i = 0; i < m->args.n; i++) {
        enum reason r = schedule_reason(s, m->args.indexes[i], &known);
        m->scores[i] = (uint8_t)r;
        count[r]++;
        if (size[r])
            continue;
        from[r] = m->text.size;
        schedule_brief(s, r, &m->text);
        size[r] = m->text.size - from[r];
    }
    schedule_reasons_fini(&known);
    for (unsigned r = 0; r < REASON_COUNT; r++) {
        const char *word = reason_word(r);
        if (count[r])
            metrics_add(app->listener.metrics, APP_FILTER_REFUSALS, &word,
                        count[r]);
    }
    wire_failures_begin(&m->args, &f, out);
    for (int resolvable = 1; resolvable >= 0; resolvable--) {
        if (!resolvable)
            wire_failures_unresolvable(&f);
        for (size_t i = 0; i < m->args.n; i++) {
            enum reason r = m->scores[i];
            if (reason_resolvable(r) != (resolvable == 1))
                continue;
            str_reset(&m->own);
            bool own = count[r] <= OWN_WORDS_MAX &&
                       schedule_tell_barred(s, m->args.indexes[i], r, &m->own);
            wire_failures_add(&f, &m->args.names[i],
                              own ? str_text(&m->own)
                                  : str_text(&m->text) + from[r],
                              own ? m->own.size : size[r]);
        }
    }
    wire_failures_end(&f);
    if (pod_source_has(&app->source, answered))
        word_refusal(m, from, size, count);
}

/* The node where the pod's job is planned to have it, or NODE_NONE and
 * why. */
static int32_t plan_node(struct app *app, const struct snapshot *snapshot,
                         const struct demand *pod, const int32_t *candidates,
                         size_t n, struct plan_refusal *ret_refusal)
{
    cleanup_with(plan) struct plan *plan = NULL;
    if (job_plan(app->plans, snapshot, pod, candidates, n, NODE_NONE, &plan,
                 ret_refusal) < 0)
        return NODE_NONE;
    return plan->places[job_rank(pod)].node;
}

static bool is_to_plan(const struct schedule *s, const struct scratch *m)
{
    return demand_is_planned(s->demand) && s->quota.kind == QUOTA_OK &&
           !job_is_placed(s, m->args.indexes, m->args.n);
}

/* Where a node stands in the request, or n. */
static size_t find_position(const struct scratch *m, int32_t node)
{
    size_t i = 0;
    while (i < m->args.n && (node < 0 || m->args.indexes[i] != node))
        i++;
    return i;
}

/* A pod of a planned job goes where the plan has it. */
static void filter_planned(struct app *app, struct scratch *m,
                           const struct snapshot *snapshot, struct str *out)
{
    struct demand pair;
    struct schedule s;
    struct plan_refusal refusal = {0};
    const struct demand *pod = &m->args.demand;
    int32_t node = plan_node(app, snapshot, pod, m->args.indexes, m->args.n,
                             &refusal);
    size_t at = find_position(m, node);
    if (at < m->args.n) {
        m->best[0] = (uint32_t)at;
        wire_write_fitting(&m->args, m->best, 1, out);
        return;
    }
    demand_pair(pod, pod->pair, &pair);
    schedule_init_job(&s, snapshot, &pair, &refusal);
    refuse_all(app, m, &s, out);
}

/* The request's pod, with what its claims ask. */
static int read_args(struct app *app, struct scratch *m,
                     const struct snapshot *snapshot, struct jtext body,
                     struct error *err)
{
    int r = wire_read_args(body.data, body.size, &app->demand, snapshot->roster,
                           &m->args, err);
    scratch_fit(m, m->args.n);
    if (r < 0 || m->args.demand.role == ROLE_NONE)
        return r;
    return pod_source_ask(&app->source, join_claims, snapshot, &m->args.pod,
                          false, &m->args.demand, err);
}

static int filter_with(struct app *app, struct scratch *m,
                       const struct snapshot *snapshot, struct jtext body,
                       struct str *out, struct error *err)
{
    struct schedule s;
    size_t fitting;
    int r = read_args(app, m, snapshot, body, err);
    if (r == -EDOM)
        wire_write_filter_error(err->text, out);
    if (r < 0)
        return r == -EDOM ? 0 : r;
    if (m->args.demand.role == ROLE_NONE) {
        pass_all(m, out);
        return 0;
    }
    schedule_init(&s, snapshot, &m->args.demand);
    if (is_to_plan(&s, m)) {
        filter_planned(app, m, snapshot, out);
        return 0;
    }
    size_t n = schedule_best(&s, m->args.indexes, m->args.n,
                             (size_t)app->max_candidates, m->best, &fitting);
    if (fitting > 0)
        wire_write_fitting(&m->args, m->best, n, out);
    else
        refuse_all(app, m, &s, out);
    return 0;
}

int scheduler_filter(struct app *app, const struct snapshot *snapshot,
                     const char *body, size_t size, struct str *out,
                     struct error *err)
{
    struct scratch *m = scratch_take(app->scratch);
    struct jtext text = {body, size, false};
    int r = filter_with(app, m, snapshot, text, out, err);
    scratch_give(app->scratch, m);
    return r;
}

/* --- prioritize --------------------------------------------------------- */

/* All that is known to a pod's prioritize is what its filter let through: no
 * room for a whole job, so that is planned with all nodes then. */
static int32_t prioritized(struct app *app, const struct scratch *m,
                           const struct snapshot *snapshot)
{
    const struct demand *pod = &m->args.demand;
    struct plan_refusal ignored;
    int32_t node = plan_node(app, snapshot, pod, m->args.indexes, m->args.n,
                             &ignored);
    return node != NODE_NONE ? node
                             : plan_node(app, snapshot, pod, NULL, 0, &ignored);
}

static int prioritize_with(struct app *app, struct scratch *m,
                           const struct snapshot *snapshot, struct jtext body,
                           struct str *out, struct error *err)
{
    struct schedule s;
    int r = read_args(app, m, snapshot, body, err);
    if (r < 0)
        return -EINVAL;
    if (m->args.demand.role == ROLE_NONE) {
        wire_write_priorities(NULL, NULL, 0, out);
        return 0;
    }
    schedule_init(&s, snapshot, &m->args.demand);
    size_t at = m->args.n;
    if (is_to_plan(&s, m))
        at = find_position(m, prioritized(app, m, snapshot));
    for (size_t i = 0; i < m->args.n; i++)
        m->costs[i] = at < m->args.n ? (i == at ? 1 : COST_NO_FIT)
                                     : schedule_cost(&s, m->args.indexes[i]);
    score_ranks(m->costs, m->args.n, m->scores);
    wire_write_priorities(m->args.names, m->scores, m->args.n, out);
    return 0;
}

int scheduler_prioritize(struct app *app, const struct snapshot *snapshot,
                         const char *body, size_t size, struct str *out,
                         struct error *err)
{
    struct scratch *m = scratch_take(app->scratch);
    struct jtext text = {body, size, false};
    int r = prioritize_with(app, m, snapshot, text, out, err);
    scratch_give(app->scratch, m);
    return r;
}

/* --- the two verbs over HTTP -------------------------------------------- */

struct verb {
    int (*answer)(struct app *app, struct scratch *m,
                  const struct snapshot *snapshot, struct jtext body,
                  struct str *out, struct error *err);
    bool decides; /* which nodes a pod may have: its answer is kept and told */
};
static const struct verb filter = {filter_with, true};
static const struct verb prioritize = {prioritize_with, false};

static void tell_answer(struct app *app, const struct scratch *m,
                        const struct snapshot *snapshot,
                        const struct error *broken)
{
    pod_source_tell(
        &app->source, answered,
        &(struct pod_answer){
            .pod = &m->args.demand,
            .snapshot = snapshot,
            .nodes = m->args.indexes,
            .n = m->args.n,
            .refusal = m->refusal.size ? str_text(&m->refusal) : NULL,
            .broken = broken->code ? broken->text : NULL,
        });
}

static int answer(struct httpd_request *rq, struct app *app,
                  const struct verb *verb)
{
    char leader[POD_SOURCE_LEADER_MAX];
    struct error err = {0};
    struct jtext body = {0};
    body.data = httpd_body(rq, &body.size);
    /* the answer is right, but the next call should reach the leader, which
     * binds */
    if (!pod_source_leads(&app->source, leader))
        httpd_close_after(rq);
    struct snapshot *snapshot = writer_snapshot(app->writer);
    struct scratch *m = scratch_take(app->scratch);
    int r = verb->answer(app, m, snapshot, body, httpd_reply(rq), &err);
    if (r == 0 && err.code == EDOM)
        pending_demands_refuse(app->demands, &m->args.demand, err.text);
    else if (r == 0 && verb->decides && demand_is_planned(&m->args.demand))
        pending_demands_put_planned(app->demands, &m->args.demand, snapshot,
                                    m->args.indexes, m->args.n);
    else if (r == 0)
        pending_demands_put(app->demands, &m->args.demand);
    else
        httpd_fail(rq, 400, "%s", err.text);
    if (r == 0 && verb->decides)
        tell_answer(app, m, snapshot, &err);
    scratch_give(app->scratch, m);
    snapshot_unref(snapshot);
    return r;
}

static void handle_filter(struct httpd_request *rq, void *ctx)
{
    (void)answer(rq, ctx, &filter); /* a failure is in the reply */
}

static void handle_prioritize(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    if (answer(rq, app, &prioritize) < 0)
        metrics_count(app->listener.metrics, APP_PRIORITIZE_ERRORS, NULL);
}

/* --- preempt ------------------------------------------------------------ */

/* The allocations of the victims that the scheduler has chosen; others are not
 * ours. */
static size_t find_given(const struct snapshot *snapshot,
                         const struct wire_preemption *p,
                         const struct wire_victims *v,
                         const struct allocation **ret_given)
{
    char uid[DEMAND_UID_MAX * 6 + 1];
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct jtext *t = &p->uids[v->first + i];
        if (t->size >= sizeof uid)
            continue;
        (void)jtext_decode(t, uid);
        const struct allocation *a = alloc_index_find_uid(snapshot->allocations,
                                                          uid);
        if (a)
            ret_given[n++] = a;
    }
    return n;
}

/* Where kube-scheduler may make room, as it was answered. */
struct offer {
    size_t n;                       /* nodes */
    char node[DEMAND_NAME_MAX + 1]; /* when it is one */
};

static void note_offered(struct offer *offer, const struct jtext *node)
{
    bool odd = node->size >= sizeof offer->node; /* all of it escaped */
    offer->n += odd ? 2 : 1;
    if (!odd)
        (void)jtext_decode(node, offer->node);
}

/* kube-scheduler takes a node without victims for an error. */
static void answer_preemption(const struct wire_preemption *p,
                              const struct victims *victims, struct str *out,
                              struct offer *ret_offer)
{
    size_t n_uids = 0, at = 0;
    for (size_t i = 0; i < p->n_nodes; i++)
        n_uids += victims[i].n;
    cleanup_free const char **uids = xcalloc(n_uids + 1, sizeof *uids);
    cleanup_free struct wire_named *named = xcalloc(p->n_nodes + 1,
                                                    sizeof *named);
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct victims *v = &victims[i];
        named[i] = (struct wire_named){.keep = v->fits &&
                                               p->nodes[i].n + v->n > 0,
                                       .instead = v->instead,
                                       .uids = uids + at,
                                       .n = v->n};
        for (size_t j = 0; j < v->n; j++)
            uids[at++] = v->named[j]->demand.uid;
        if (named[i].keep)
            note_offered(ret_offer, &p->nodes[i].node);
    }
    wire_write_preemption(p, named, out);
}

static void preempt_with(const struct wire_preemption *p,
                         struct snapshot *snapshot, struct str *out,
                         struct offer *ret_offer)
{
    size_t n = p->n_nodes;
    cleanup_free const struct allocation **given = xcalloc(p->n_uids + 1,
                                                           sizeof *given);
    cleanup_free struct victims_ask *asks = xcalloc(n + 1, sizeof *asks);
    cleanup_free struct victims *victims = xcalloc(n + 1, sizeof *victims);
    for (size_t i = 0; i < n; i++) {
        const struct wire_victims *v = &p->nodes[i];
        snapshot_find_many(snapshot, &v->node, 1, &asks[i].node);
        asks[i].given = given + v->first;
        asks[i].n_given = find_given(snapshot, p, v, given + v->first);
        asks[i].others = v->n > asks[i].n_given;
        victims[i].fits = true; /* of a pod that is not ours */
    }
    if (p->demand.role != ROLE_NONE)
        victims_choose(snapshot, &p->demand, asks, n, victims);
    answer_preemption(p, victims, out, ret_offer);
    for (size_t i = 0; i < n; i++)
        victims_fini(&victims[i]);
}

/* What was answered is known to the writer before it is sent: no other pod of
 * the pair is bound elsewhere from then on.  Lives until the request is
 * answered. */
struct offering {
    struct writer_op op;
    struct demand demand;
    struct offer offer;
    struct httpd_request *rq;
};

static void offer_made(struct writer_op *op)
{
    struct offering *o = op->ctx;
    if (op->result < 0) { /* a bind came first: the pod is to be tried anew */
        const struct wire_preemption nothing = {0};
        struct str *out = httpd_reply(o->rq);
        log_event(LOG_INFO, "preempt-late", "error", op->error.text, NULL);
        str_reset(out);
        wire_write_preemption(&nothing, NULL, out);
    }
    httpd_resume(o->rq);
    free(o);
}

/* Where no watch tells of nominations, nobody waits for one.  Those of a group
 * are planned together. */
static bool is_to_offer(const struct app *app, const struct demand *pod,
                        const struct offer *offer)
{
    return offer->n > 0 && !pod->grouped &&
           (pod->role == ROLE_HOST || pod->role == ROLE_XPU) &&
           pod_source_has(&app->source, bind);
}

static void make_offer(struct httpd_request *rq, struct app *app,
                       const struct demand *pod, const struct offer *offer)
{
    struct offering *o = xcalloc(1, sizeof *o);
    o->demand = *pod;
    o->offer = *offer;
    o->rq = rq;
    o->op = (struct writer_op){.kind = WRITER_OFFER,
                               .demand = &o->demand,
                               .node = offer->n == 1 ? o->offer.node
                                                     : MOVING_PODS_UNSETTLED,
                               .done = offer_made,
                               .ctx = o};
    httpd_suspend(rq);
    writer_post(app->writer, &o->op);
}

static void handle_preempt(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    struct error err = {0};
    struct offer offer = {0};
    size_t size;
    const char *body = httpd_body(rq, &size);
    struct scratch *m = scratch_take(app->scratch);
    struct wire_preemption *p = &m->preemption;
    if (wire_read_preemption(body, size, &app->demand, p, &err) < 0) {
        httpd_fail(rq, 400, "%s", err.text);
    } else {
        struct snapshot *snapshot = writer_snapshot(app->writer);
        preempt_with(p, snapshot, httpd_reply(rq), &offer);
        snapshot_unref(snapshot);
        if (is_to_offer(app, &p->demand, &offer))
            make_offer(rq, app, &p->demand, &offer);
    }
    scratch_give(app->scratch, m);
}

/* --- the table ---------------------------------------------------------- */

#define VERB(verb, max)                                              \
    {HTTPD_POST, "/v1/scheduler/" #verb, handle_##verb, max, #verb}, \
        {HTTPD_POST, "/" #verb, handle_##verb, max, #verb},          \
        {HTTPD_POST, "/:/" #verb, handle_##verb, max, #verb},        \
        {HTTPD_POST, "/:/:/" #verb, handle_##verb, max, #verb},      \
    {                                                                \
        HTTPD_POST, "/:/:/:/" #verb, handle_##verb, max, #verb       \
    }

const struct httpd_route scheduler_routes[] = {
    VERB(filter, WIRE_BODY_MAX),
    VERB(prioritize, WIRE_BODY_MAX),
    VERB(bind, WIRE_BIND_BODY_MAX),
    VERB(preempt, WIRE_BODY_MAX),
};
const size_t n_scheduler_routes = ARRAY_LEN(scheduler_routes);
