#include "extender/judge/runners_up.h"

#include <stdlib.h>
#include <string.h>

#include "extender/judge/alignment.h"
#include "extender/judge/schedule.h"
#include "extender/state/draft.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "model/decide/decide.h"
#include "model/decide/decide_level.h"

enum { MEMBERS_MAX = 64, COMPARED_MAX = 64 };

/* What a plan compares, in its order; of other pods all are 0. */
enum plan_level {
    PLAN_UNALIGNED,
    PLAN_TIER,
    PLAN_LEAVES,
    PLAN_CROSSINGS,
    PLAN_LEVELS
};
static const char *const plan_words[PLAN_LEVELS] = {
    [PLAN_UNALIGNED] = "unaligned",
    [PLAN_TIER] = "tier",
    [PLAN_LEAVES] = "leaves",
    [PLAN_CROSSINGS] = "crossings",
};

/* A node as a place of the pair. */
struct option {
    int32_t node;
    struct choice choice;
    uint32_t plan[PLAN_LEVELS];
};

struct question {
    struct snapshot *now; /* without the pair */
    struct demand pair;
    struct schedule schedule;
    int32_t *leaves; /* by pair of its job, see leaf_of(); FABRIC_NONE: it has
                      * no place */
    size_t n_leaves; /* 0: it is not planned */
};

/* --- the job around it ------------------------------------------------------ */

/* A node of unknown place is a leaf by itself, below FABRIC_NONE. */
static int32_t leaf_of(const struct question *q, int32_t node)
{
    int32_t leaf = snapshot_leaf(q->now, (size_t)node);
    return leaf == FABRIC_NONE ? FABRIC_NONE - 1 - node : leaf;
}

static unsigned tier_of(const struct question *q, int32_t a, int32_t b)
{
    if (a == b)
        return 0;
    return a < 0 || b < 0 ? FABRIC_APART
                          : fabric_common_tier(q->now->fabric, a, b);
}

static void read_job(struct question *q)
{
    size_t n;
    if (!demand_is_planned(&q->pair) || q->pair.size <= 1)
        return;
    cleanup_free const struct allocation **list = alloc_index_find_job(
        q->now->allocations, q->pair.namespace, q->pair.job, &n);
    q->n_leaves = (size_t)q->pair.size;
    q->leaves = xcalloc(q->n_leaves, sizeof *q->leaves);
    for (size_t i = 0; i < q->n_leaves; i++)
        q->leaves[i] = FABRIC_NONE;
    for (size_t i = 0; i < n; i++) {
        int32_t node = snapshot_find(q->now, list[i]->node,
                                     strlen(list[i]->node));
        if (node != NODE_NONE && (size_t)list[i]->demand.pair < q->n_leaves)
            q->leaves[list[i]->demand.pair] = leaf_of(q, node);
    }
}

static int compare_leaves(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint32_t count_distinct(const int32_t *leaves, size_t n)
{
    cleanup_free int32_t *sorted = xmemdup(leaves, n * sizeof *leaves);
    uint32_t distinct = 0;
    qsort(sorted, n, sizeof *sorted, compare_leaves);
    for (size_t i = 0; i < n; i++)
        distinct += sorted[i] != FABRIC_NONE &&
                    (i == 0 || sorted[i] != sorted[i - 1]);
    return distinct;
}

/* The job with the pair at that place. */
static void judge_job(const struct question *q, struct option *o)
{
    const struct node *node = snapshot_node(q->now, (size_t)o->node);
    size_t own = (size_t)q->pair.pair;
    if (q->n_leaves == 0 || own >= q->n_leaves)
        return;
    int32_t leaf = leaf_of(q, o->node);
    q->leaves[own] = leaf;
    o->plan[PLAN_UNALIGNED] = !decide_is_aligned(node->shape, &q->pair,
                                                 &o->choice);
    for (size_t i = 0; i < q->n_leaves; i++) {
        bool known = q->leaves[i] != FABRIC_NONE;
        unsigned tier = known ? tier_of(q, leaf, q->leaves[i]) : 0;
        if (tier > o->plan[PLAN_TIER])
            o->plan[PLAN_TIER] = tier;
        o->plan[PLAN_CROSSINGS] += i > 0 && known &&
                                   q->leaves[i - 1] != FABRIC_NONE &&
                                   q->leaves[i] != q->leaves[i - 1];
    }
    o->plan[PLAN_LEAVES] = count_distinct(q->leaves, q->n_leaves);
}

/* --- comparing ----------------------------------------------------------------- */

static enum plan_level plan_difference(const struct option *a,
                                       const struct option *b)
{
    enum plan_level l = PLAN_UNALIGNED;
    while (l < PLAN_LEVELS && a->plan[l] == b->plan[l])
        l++;
    return l;
}

static int compare_options(const void *pa, const void *pb)
{
    const struct option *a = pa, *b = pb;
    enum plan_level l = plan_difference(a, b);
    if (l < PLAN_LEVELS)
        return a->plan[l] < b->plan[l] ? -1 : 1;
    if (a->choice.cost != b->choice.cost)
        return a->choice.cost < b->choice.cost ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node); /* by their names */
}

static const char *word_between(const struct question *q,
                                const struct option *a, const struct option *b)
{
    enum plan_level l = plan_difference(a, b);
    if (l < PLAN_LEVELS)
        return plan_words[l];
    return decide_level_word(
        decide_level_between(a->choice.cost, b->choice.cost, q->pair.nics > 0));
}

static void tell_plan(enum plan_level l, uint32_t there, uint32_t here,
                      struct str *out)
{
    static const char *const texts[PLAN_LEVELS] = {
        [PLAN_UNALIGNED] = "pairs not as close as preferred",
        [PLAN_LEAVES] = "leaves of the job",
        [PLAN_CROSSINGS] = "crossings of the job",
    };
    const char *a = there == FABRIC_APART ? "no domain"
                                          : fabric_tier_name(there);
    if (l != PLAN_TIER)
        str_addf(out, "%s %u, here %u", texts[l], there, here);
    else
        str_addf(out, "the job within %s, here %s", a,
                 here == FABRIC_APART ? "no domain" : fabric_tier_name(here));
}

static void tell_difference(const struct question *q,
                            const struct option *there,
                            const struct option *here, struct str *out)
{
    static const char *const texts[DECIDE_LEVELS] = {
        [DECIDE_RELATION] = "relation",
        [DECIDE_SPREAD] = "distance between its cards",
        [DECIDE_DAMAGE] = "idle cards left behind in broken groups",
        [DECIDE_IDLE] = "idle cards left on the node",
        [DECIDE_NICS] = "relation of its NICs",
        [DECIDE_CORES] = "cores left free on its cards",
    };
    const bool nics = q->pair.nics > 0;
    enum plan_level p = plan_difference(there, here);
    enum decide_level l = decide_level_between(there->choice.cost,
                                               here->choice.cost, nics);
    uint32_t a = decide_level_value(there->choice.cost, l, nics);
    uint32_t b = decide_level_value(here->choice.cost, l, nics);
    if (p < PLAN_LEVELS)
        tell_plan(p, there->plan[p], here->plan[p], out);
    else if (l == DECIDE_LEVELS)
        str_add(out, "equal; names decide");
    else if (l == DECIDE_RELATION || l == DECIDE_NICS)
        str_addf(out, "%s %s, here %s", texts[l],
                 relation_name((enum relation)a),
                 relation_name((enum relation)b));
    else
        str_addf(out, "%s %u, here %u", texts[l], a, b);
}

/* --- asking ----------------------------------------------------------------------- */

/* The pair that asks, and a snapshot without it. */
static void question_init(struct question *q, struct snapshot *s,
                          const struct allocation *a)
{
    const struct allocation *members[MEMBERS_MAX], *of = a;
    cleanup_with(draft) struct draft *d = draft_create(s);
    size_t n = a->demand.role == ROLE_SERVICE
                   ? 0
                   : alloc_index_find_pair(s->allocations, a->pair_key, members,
                                           MEMBERS_MAX);
    for (size_t i = 0; i < n && i < MEMBERS_MAX; i++) {
        if (members[i]->demand.role == ROLE_HOST && !members[i]->held)
            of = members[i];
        (void)draft_release(d, members[i]->demand.namespace,
                            members[i]->demand.name);
    }
    (void)draft_release(d, a->demand.namespace, a->demand.name);
    draft_forget_moves(d);
    *q = (struct question){.now = draft_peek(d)};
    if (of->demand.role == ROLE_SERVICE)
        q->pair = of->demand;
    else
        demand_pair(&of->demand, of->demand.pair, &q->pair);
    schedule_init(&q->schedule, q->now, &q->pair);
    read_job(q);
}

static void question_fini(struct question *q)
{
    free(q->leaves);
    snapshot_unref(q->now);
}

static bool take_option(const struct question *q, int32_t node,
                        struct option *ret)
{
    *ret = (struct option){.node = node};
    if (node == NODE_NONE ||
        schedule_choose(&q->schedule, node, &ret->choice) != REASON_NONE)
        return false;
    judge_job(q, ret);
    return true;
}

static size_t take_others(const struct question *q, int32_t own,
                          struct option *list, size_t *ret_fitting)
{
    size_t n_nodes = q->now->n_nodes, kept = 0;
    uint32_t best[COMPARED_MAX];
    cleanup_free int32_t *all = xcalloc(n_nodes + 1, sizeof *all);
    for (size_t i = 0; i < n_nodes; i++)
        all[i] = (int32_t)i;
    size_t n = schedule_best(&q->schedule, all, n_nodes, COMPARED_MAX, best,
                             ret_fitting);
    for (size_t i = 0; i < n; i++)
        if ((int32_t)best[i] != own &&
            take_option(q, (int32_t)best[i], &list[kept]))
            kept++;
    if (kept)
        qsort(list, kept, sizeof *list, compare_options);
    return kept;
}

static void tell_runner(const struct question *q, const struct snapshot *s,
                        const struct option *there, const struct option *here,
                        struct runner_up *ret)
{
    cleanup_str struct str text = STR_INIT(4096);
    /* its name is to be of `s`, which outlives the other one */
    const char *name = snapshot_node(q->now, (size_t)there->node)->name;
    int32_t index = snapshot_find(s, name, strlen(name));
    tell_difference(q, there, here, &text);
    *ret = (struct runner_up){.node = snapshot_node(s, (size_t)index)->name,
                              .relation = there->choice.relation};
    (void)snprintf(ret->differs, sizeof ret->differs, "%s", str_text(&text));
}

void runners_up_find(struct snapshot *s, const struct allocation *a,
                     struct runners_up *ret)
{
    struct question q;
    struct option own, others[COMPARED_MAX];
    size_t n = 0;
    *ret = (struct runners_up){.decided_by = ""};
    s = s->whole ? s->whole : s;
    question_init(&q, s, a);
    int32_t node = snapshot_find(q.now, a->node, strlen(a->node));
    if (q.schedule.follows == NODE_NONE && take_option(&q, node, &own)) {
        n = take_others(&q, node, others, &ret->fitting);
        ret->fitting -= ret->fitting > 0; /* its own */
        ret->decided_by = n == 0 ? "only"
                          : compare_options(&others[0], &own) < 0
                              ? "since"
                              : word_between(&q, &others[0], &own);
    }
    ret->n = n < RUNNERS_UP_MAX ? n : RUNNERS_UP_MAX;
    for (size_t i = 0; i < ret->n; i++)
        tell_runner(&q, s, &others[i], &own, &ret->list[i]);
    question_fini(&q);
}

void runners_up_write(const struct runners_up *r, struct str *out)
{
    jwrite_array(out, "runnersUp");
    for (size_t i = 0; i < r->n; i++) {
        jwrite_object(out, NULL);
        jwrite_text(out, "node", r->list[i].node);
        jwrite_text(out, "relation",
                    relation_name((enum relation)r->list[i].relation));
        jwrite_text(out, "differs", r->list[i].differs);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_text_or_null(out, "decidedBy",
                        *r->decided_by ? r->decided_by : NULL);
}

void runners_up_tell(const struct runners_up *r, struct str *out)
{
    bool since = strcmp(r->decided_by, "since") == 0;
    if (strcmp(r->decided_by, "only") == 0)
        str_add(out, "as of now it fits no other node\n");
    for (size_t i = 0; i < r->n; i++)
        str_addf(out, "%s node %s: %s\n",
                 i > 0   ? "then"
                 : since ? "as of now, with what it has counted as free, it "
                           "would go to"
                         : "as of now, with what it has counted as free, the "
                           "next best is",
                 r->list[i].node, r->list[i].differs);
}
