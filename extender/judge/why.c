#include "extender/judge/why.h"

#include <stdlib.h>
#include <string.h>

#include "extender/judge/alignment.h"
#include "extender/state/scope.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "model/pod/demand_ident.h"

/* --- judging ------------------------------------------------------------ */

static void count_reasons(struct why *why)
{
    struct schedule_reasons known = {0};
    why->reasons = xmalloc(why->n_nodes + 1);
    for (size_t i = 0; i < why->n_nodes; i++) {
        snapshot_fetch_held(why->snapshot, i);
        enum reason r = schedule_reason(&why->schedule, (int32_t)i, &known);
        why->reasons[i] = (uint8_t)r;
        if (r != REASON_NONE && why->count[r]++ == 0)
            why->example[r] = (int32_t)i;
    }
    schedule_reasons_fini(&known);
}

static void judge_pod(struct why *why)
{
    cleanup_free int32_t *all = xcalloc(why->n_nodes, sizeof *all);
    uint32_t best[WHY_BEST_MAX];
    for (size_t i = 0; i < why->n_nodes; i++)
        all[i] = (int32_t)i;
    why->n_best = schedule_best(&why->schedule, all, why->n_nodes, WHY_BEST_MAX,
                                best, &why->n_fitting);
    for (size_t i = 0; i < why->n_best; i++)
        why->best[i] = (int32_t)best[i];
    if (why->n_fitting < why->n_nodes)
        count_reasons(why);
}

static void judge_job(struct why *why, struct plans *memory)
{
    const struct demand *pod = why->pod;
    demand_pair(pod, pod->pair, &why->pair);
    if (job_plan(memory, why->snapshot, pod, why->candidates, why->n_names,
                 NODE_NONE, &why->plan, &why->refusal) == 0) {
        why->best[0] = why->plan->places[job_rank(pod)].node;
        why->n_fitting = why->n_best = why->best[0] >= 0;
        return;
    }
    schedule_init_job(&why->schedule, why->snapshot, &why->pair, &why->refusal);
    count_reasons(why);
}

void why_init(struct why *why, const struct snapshot *snapshot,
              const struct demand *pod, struct plans *memory,
              const struct why_names *names)
{
    memset(why, 0, sizeof *why);
    why->scope = snapshot->scope;
    why->snapshot = snapshot = snapshot_whole(snapshot);
    why->pod = pod;
    why->n_nodes = snapshot->n_nodes;
    why->candidates = names ? names->indexes : NULL;
    why->n_names = why->candidates ? names->n : why->n_nodes;
    schedule_init(&why->schedule, snapshot, pod);
    why->to_plan = demand_is_planned(pod) &&
                   why->schedule.quota.kind == QUOTA_OK &&
                   !job_is_placed(&why->schedule, NULL, 0);
    if (why->to_plan)
        judge_job(why, memory);
    else
        judge_pod(why);
}

static void advise(struct why *why)
{
    bool granted = why->schedule.quota.kind == QUOTA_OK;
    if (!why->to_plan && (granted || !demand_is_planned(why->pod))) {
        advise_pod(&why->schedule, &why->advice);
        return;
    }
    advise_job(why->snapshot, why->pod, why->candidates, why->n_names,
               &why->advice);
    if (granted)
        advise_nearest(&why->schedule, why->reasons, &why->advice);
}

/* Does it name pods or a job that whoever asks does not see? */
static bool is_hidden(const struct why *why, const struct change *c)
{
    for (size_t i = 0; i < c->n_gone; i++)
        if (!scope_sees(why->scope, c->gone[i]->demand.namespace))
            return true;
    return *c->job && !scope_sees_object(why->scope, c->job);
}

void why_advise(struct why *why)
{
    struct advice *a = &why->advice;
    size_t kept = 0;
    if (why->n_fitting > 0)
        return;
    advise(why);
    for (size_t i = 0; i < a->n_changes; i++) {
        if (a->changes[i].kind == CHANGE_LEASE &&
            is_hidden(why, &a->changes[i]))
            a->changes[i].job[0] = '\0'; /* of some others */
        if (!is_hidden(why, &a->changes[i]))
            a->changes[kept++] = a->changes[i];
    }
    a->n_changes = kept;
}

void why_fini(struct why *why)
{
    plan_unref(why->plan);
    why->plan = NULL;
    free(why->reasons);
    why->reasons = NULL;
}

/* --- writing ------------------------------------------------------------ */

static const char *name_of(const struct why *why, int32_t node)
{
    return snapshot_node(why->snapshot, (size_t)node)->name;
}

void why_write_pod(const struct demand *d, struct str *out)
{
    const struct demand_ident ident = demand_ident_of(d);
    jwrite_object(out, NULL);
    demand_ident_write(&ident, out);
    jwrite_end_object(out);
}

static void write_best(const struct why *why, size_t i, struct str *out)
{
    const struct node *node = snapshot_node(why->snapshot,
                                            (size_t)why->best[i]);
    const struct plan_place *place = NULL;
    struct choice choice;
    struct allocation *a = NULL;
    if (why->plan)
        place = &why->plan->places[job_rank(why->pod)];
    if (place && !place->fixed)
        a = schedule_place(&why->pair, node, &place->choice);
    else if (schedule_choose(&why->schedule, why->best[i], &choice) ==
             REASON_NONE)
        a = schedule_allocation(&why->schedule, why->best[i], &choice);
    if (!a)
        return;
    alignment_encode(why->snapshot, a, out);
    allocation_unref(a);
}

/* The reason that most nodes have and that is not written yet. */
static enum reason next_reason(const struct why *why, const bool *written)
{
    enum reason most = REASON_NONE;
    for (enum reason r = REASON_NONE + 1; r < REASON_COUNT; r++)
        if (!written[r] && why->count[r] &&
            (most == REASON_NONE || why->count[r] > why->count[most]))
            most = r;
    return most;
}

static void write_reason(const struct schedule *s, const struct why *why,
                         enum reason r, struct str *out)
{
    cleanup_str struct str text = STR_INIT(4096);
    int32_t example = why->example[r];
    jwrite_object(out, NULL);
    jwrite_text(out, "reason", reason_word(r));
    jwrite_uint(out, "nodes", why->count[r]);
    jwrite_bool(out, "preemptable", reason_resolvable(r));
    schedule_brief(s, r, &text);
    jwrite_text(out, "message", str_text(&text));
    jwrite_text(out, "example", name_of(why, example));
    str_reset(&text);
    schedule_explain(s, example, r, &text);
    jwrite_text(out, "detail", str_text(&text));
    jwrite_end_object(out);
}

static void write_tier(const char *name, unsigned tier, struct str *out)
{
    jwrite_text_or_null(out, name,
                        tier == FABRIC_APART ? NULL : fabric_tier_name(tier));
}

static void write_plan(const struct plan *plan, struct str *out)
{
    const struct plan_score *s = &plan->score;
    jwrite_object(out, "plan");
    jwrite_uint(out, "pairs", plan->size);
    jwrite_uint(out, "unaligned", s->unaligned);
    write_tier("tier", s->tier, out);
    jwrite_uint(out, "leaves", s->leaves);
    jwrite_uint(out, "crossings", s->crossings);
    jwrite_uint(out, "damage", s->damage);
    jwrite_end_object(out);
}

static void write_lack(const struct why *why, struct str *out)
{
    const struct plan_refusal *r = &why->refusal;
    const struct fabric_domain *domain =
        r->domain == FABRIC_NONE
            ? NULL
            : fabric_domain(why->snapshot->fabric, r->domain);
    jwrite_object(out, "lack");
    jwrite_text(out, "what", plan_lack_name(r->lack));
    jwrite_uint(out, "asked", r->asked);
    jwrite_uint(out, "room", r->room);
    if (r->at_most)
        jwrite_bool(out, "atMost", true);
    if (why->pod->within >= 0) {
        jwrite_uint(out, "roomWithin", r->room_within);
        jwrite_text_or_null(out, "domain", domain ? domain->name : NULL);
    }
    if (r->lack == PLAN_LACK_TIER)
        write_tier("fitsTier", r->fits_tier, out);
    jwrite_end_object(out);
}

void why_write(const struct why *why, struct str *out)
{
    bool written[REASON_COUNT] = {false};
    enum reason r;
    jwrite_uint(out, "nodes", why->n_nodes);
    jwrite_uint(out, "fitting", why->n_fitting);
    jwrite_bool(out, "sample", why->n_names < why->n_nodes);
    jwrite_array(out, "best");
    for (size_t i = 0; i < why->n_best; i++)
        write_best(why, i, out);
    jwrite_end_array(out);
    jwrite_array(out, "reasons");
    while ((r = next_reason(why, written)) != REASON_NONE) {
        written[r] = true;
        write_reason(&why->schedule, why, r, out);
    }
    jwrite_end_array(out);
    advice_write(&why->schedule, &why->advice, out);
    if (why->plan)
        write_plan(why->plan, out);
    else if (why->to_plan)
        write_lack(why, out);
}

/* The reason of the nodes that are nearest to fitting: they lack only what
 * others hold; else their hardware lacks something; else it is not about
 * them at all. */
static enum reason nearest_reason(const struct why *why)
{
    bool far[REASON_COUNT] = {false}, none[REASON_COUNT] = {false};
    for (enum reason r = REASON_NONE + 1; r < REASON_COUNT; r++)
        far[r] = !reason_resolvable(r);
    enum reason nearest = next_reason(why, far);
    if (nearest != REASON_NONE)
        return nearest;
    none[REASON_NO_CARD] = none[REASON_UNKNOWN_NODE] = true;
    none[REASON_PAIR_ELSEWHERE] = true;
    nearest = next_reason(why, none);
    if (nearest != REASON_NONE)
        return nearest;
    memset(none, 0, sizeof none);
    return next_reason(why, none);
}

static void summarize_plan(const struct why *why, struct str *out)
{
    const struct plan_score *s = &why->plan->score;
    unsigned size = why->plan->size;
    str_addf(out, "its pair goes to node %s", name_of(why, why->best[0]));
    if (size == 1)
        return;
    str_addf(out,
             "; the plan of its job has %u pairs on %u lea%s with %u "
             "crossing%s, ",
             size, s->leaves, s->leaves == 1 ? "f" : "ves", s->crossings,
             s->crossings == 1 ? "" : "s");
    if (s->unaligned)
        str_addf(out, "%u of them not as close to their cards as preferred",
                 s->unaligned);
    else
        str_add(out, "all as close to their cards as preferred");
}

static void summarize_refusal(const struct why *why, struct str *out)
{
    const struct schedule *s = &why->schedule;
    enum reason r = nearest_reason(why);
    if (why->to_plan && why->refusal.asked > 1)
        r = REASON_JOB_ROOM;
    if (why->count[r] && r != REASON_JOB_ROOM)
        str_addf(out, "fits none of %zu nodes; %zu: ", why->n_nodes,
                 why->count[r]);
    schedule_brief(s, r, out);
    if (why->count[r] && r != REASON_JOB_ROOM) {
        str_addf(out, "; for example node %s: ", name_of(why, why->example[r]));
        schedule_explain(s, why->example[r], r, out);
    }
    if (why->n_names < why->n_nodes)
        str_addf(out,
                 " (among the %zu of %zu nodes that the scheduler named; it "
                 "has ruled out the others, or names only a sample: "
                 "percentageOfNodesToScore)",
                 why->n_names, why->n_nodes);
    if (why->advice.n_changes) {
        str_add(out, ". The smallest change: ");
        change_text(s, &why->advice.changes[0], out);
    }
}

void why_summary(const struct why *why, struct str *out)
{
    if (why->n_nodes == 0)
        str_add(out, "no node has published its topology: start "
                     "biga-advertiser on the nodes");
    else if (why->plan && why->n_fitting)
        summarize_plan(why, out);
    else if (why->n_fitting > 0)
        str_addf(out, "fits %zu of %zu nodes, best %s", why->n_fitting,
                 why->n_nodes, name_of(why, why->best[0]));
    else
        summarize_refusal(why, out);
}
