/* Advice for whole jobs: every change is made for real, and then the job has
 * a plan; and what is said of the refusal agrees with it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/advice.h"
#include "extender/judge/why.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simfabric.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"

enum {
    ROUNDS = ROUNDS_OF(3000),
    NODES = 4,
    CARDS = 4,
    APPLIED_MAX = 16,
    JOBS = 3
};

static struct fabric *two_leaves(void)
{
    static const char text[] = "SwitchName=l0 Nodes=node[000-001]\n"
                               "SwitchName=l1 Nodes=node[002-003]\n"
                               "SwitchName=s Switches=l[0-1]\n";
    return simfabric_read(text);
}

static struct snapshot *fleet(void)
{
    struct draft *d = simfleet_draft(simhost_topo, NODES, CARDS);
    cleanup_with(fabric) struct fabric *fabric = two_leaves();
    draft_set_fabric(d, fabric);
    for (unsigned i = 0, limited = odds(30); limited && i < NODES; i++) {
        char name[16];
        struct host_room room = {INT64_MAX, INT64_MAX, INT64_MAX};
        (void)snprintf(name, sizeof name, "node%03u", i);
        if (odds(80))
            room.memory_mib = roll(20000);
        if (odds(30))
            room.pods = roll(6);
        draft_set_room(d, name, &room);
    }
    return draft_commit(d);
}

static struct demand pair(const char *job, int rank)
{
    struct demand d = {.role = ROLE_HOST,
                       .pair = rank,
                       .size = 1,
                       .align = RELATION_SYS,
                       .prefer_align = RELATION_PIX,
                       .within = DEMAND_ANYWHERE,
                       .prefer_within = DEMAND_ANYWHERE,
                       .has_card_need = true};
    (void)snprintf(d.name, sizeof d.name, "%s-%d", job, rank);
    (void)snprintf(d.namespace, sizeof d.namespace, "ns");
    (void)snprintf(d.uid, sizeof d.uid, "uid-%s-%d", job, rank);
    (void)snprintf(d.job, sizeof d.job, "%s", job);
    d.card_cores = 1 + roll(16);
    d.card_memory_mib = odds(30) ? 4096 * roll(9) : 0;
    d.cards = d.pair_cards = (uint8_t)(1 + (odds(40) ? roll(3) : 0));
    if (odds(30))
        d.gpus = d.pair_gpus = 1;
    d.exclusive = odds(15);
    if (odds(50))
        d.memory_mib = 1 + roll(8000);
    return d;
}

/* Pods of other jobs; some places are only held. */
static struct snapshot *crowd(struct snapshot *s, unsigned n_pods)
{
    for (unsigned i = 0; i < n_pods; i++) {
        char job[16];
        struct schedule sc;
        struct choice choice;
        (void)snprintf(job, sizeof job, "other%u", roll(JOBS));
        struct demand d = pair(job, (int)i);
        int32_t node = (int32_t)roll(NODES);
        schedule_init(&sc, s, &d);
        if (schedule_choose(&sc, node, &choice) != REASON_NONE)
            continue;
        struct allocation *a = schedule_allocation(&sc, node, &choice);
        a->held = odds(20);
        struct draft *draft = draft_create(s);
        draft_allocate(draft, a);
        struct snapshot *next = draft_commit(draft);
        snapshot_unref(s);
        s = next;
    }
    return s;
}

static struct demand job(void)
{
    struct demand d = pair("mine", 0);
    d.size = 2 + (int32_t)roll(6);
    if (odds(50))
        d.align = (uint8_t)roll(RELATION_COUNT);
    if (odds(50))
        d.within = (int8_t)roll(2);
    return d;
}

static bool has_plan(const struct snapshot *s, const struct demand *pod)
{
    struct plan *plan = NULL;
    struct plan_refusal refusal;
    if (job_plan(NULL, s, pod, NULL, 0, NODE_NONE, &plan, &refusal) < 0)
        return false;
    plan_unref(plan);
    return true;
}

static bool has_plan_without(struct snapshot *s, const struct demand *pod,
                             const struct allocation *const *gone, size_t n)
{
    struct draft *draft = draft_create(s);
    for (size_t i = 0; i < n; i++)
        cr_assert(draft_release(draft, gone[i]->demand.namespace,
                                gone[i]->demand.name));
    struct snapshot *after = draft_commit(draft);
    bool has = has_plan(after, pod);
    snapshot_unref(after);
    return has;
}

static void check_job_gone(struct snapshot *s, const struct demand *pod,
                           const struct change *c)
{
    size_t n, n_gone = 0;
    const struct allocation *gone[APPLIED_MAX];
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    char own[JOB_KEY_MAX];
    job_key(pod, own);
    for (size_t i = 0; i < n; i++) {
        char key[JOB_KEY_MAX];
        job_key(&list[i]->demand, key);
        bool is_its = c->job[0]
                          ? strcmp(key, c->job) == 0
                          : list[i]->demand.job[0] && strcmp(key, own) != 0;
        if (is_its && list[i]->held == (c->kind == CHANGE_LEASE))
            gone[n_gone++] = list[i];
    }
    cr_assert_gt(n_gone, 0);
    cr_assert(has_plan_without(s, pod, gone, n_gone), "%s of %s is in vain",
              change_kind_word(c->kind), c->job);
}

/* With so much more free on the node, less `by` cores. */
static bool has_plan_freed(const struct snapshot *s, const struct demand *pod,
                           const struct change *c, unsigned by)
{
    struct job_input in;
    struct plan *plan = NULL;
    struct plan_refusal refusal;
    job_input_init(&in, s, pod, NULL, 0, NODE_NONE);
    struct node_state state = *in.states[c->node];
    for (unsigned i = 0; i < TOPO_CARDS_MAX; i++) {
        unsigned less = c->cores[i] < by ? c->cores[i] : by;
        state.free_cores[i] += c->cores[i] - less;
        state.free_memory_mib[i] += c->memory_mib[i];
        by -= less;
    }
    in.states[c->node] = &state;
    int r = plan_make(&in.cluster, &in.job, &plan, &refusal);
    if (r == 0)
        plan_unref(plan);
    job_input_fini(&in);
    return r == 0;
}

static void check_asked(const struct snapshot *s, const struct demand *pod,
                        const struct change *c)
{
    struct demand d = *pod, less = *pod;
    switch (c->kind) {
    case CHANGE_WITHIN:
        d.within = c->value == FABRIC_APART ? DEMAND_ANYWHERE
                                            : (int8_t)c->value;
        less.within = (int8_t)(d.within - 1);
        if (d.within == DEMAND_ANYWHERE)
            less.within = 1;
        break;
    case CHANGE_ALIGN:
        d.align = (uint8_t)c->value;
        less.align = (uint8_t)(c->value - 1);
        break;
    case CHANGE_EXCLUSIVE:
        d.exclusive = false;
        break;
    case CHANGE_CARD_CORES:
        d.card_cores = (uint32_t)c->value;
        less.card_cores = (uint32_t)c->value + 1;
        break;
    case CHANGE_CARD_MEMORY:
        d.card_memory_mib = (uint32_t)c->value;
        less.card_memory_mib = (uint32_t)c->value + 1;
        break;
    case CHANGE_MEMORY:
        d.memory_mib = (uint32_t)c->value;
        less.memory_mib = (uint32_t)c->value + 1;
        break;
    case CHANGE_GPUS:
        d.gpus = d.pair_gpus = (uint8_t)c->value;
        break;
    case CHANGE_CARDS:
        d.cards = d.pair_cards = (uint8_t)c->value;
        less.cards = less.pair_cards = (uint8_t)(c->value + 1);
        break;
    case CHANGE_PAIRS:
        d.size = (int32_t)c->value;
        less.size = (int32_t)c->value + 1;
        break;
    default:
        cr_assert_fail("kind %s", change_kind_word(c->kind));
    }
    cr_assert(has_plan(s, &d), "%s is in vain", change_kind_word(c->kind));
    cr_assert_not(has_plan(s, &less), "less of %s would do",
                  change_kind_word(c->kind));
}

static void check_change(struct snapshot *s, const struct demand *pod,
                         const struct change *c)
{
    switch (c->kind) {
    case CHANGE_LEASE:
    case CHANGE_JOB_END:
        check_job_gone(s, pod, c);
        break;
    case CHANGE_RELEASE:
        cr_assert(has_plan_without(s, pod, c->gone, c->n_gone));
        break;
    case CHANGE_FREE:
        cr_assert(has_plan_freed(s, pod, c, 0), "freed in vain");
        if (c->cores[__builtin_ctz(c->cards)])
            cr_assert_not(has_plan_freed(s, pod, c, 1), "one less would do");
        break;
    default:
        check_asked(s, pod, c);
        break;
    }
}

Test(advice_job, every_change_gives_the_job_a_plan)
{
    unsigned said[CHANGE_KINDS] = {0}, refused = 0, helped = 0;
    unsigned all_leases = 0;
    printf("seed %llu\n", (unsigned long long)chance_init());
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct snapshot *s = crowd(fleet(), roll(APPLIED_MAX));
        struct demand pod = job();
        if (!has_plan(s, &pod)) {
            struct advice advice;
            advise_job(s, &pod, NULL, 0, &advice);
            refused++;
            helped += advice.n_changes > 0;
            for (size_t i = 0; i < advice.n_changes; i++) {
                cr_assert(i == 0 ||
                          advice.changes[i - 1].kind < advice.changes[i].kind);
                check_change(s, &pod, &advice.changes[i]);
                said[advice.changes[i].kind]++;
                all_leases += advice.changes[i].kind == CHANGE_LEASE &&
                              !advice.changes[i].job[0];
            }
        }
        snapshot_unref(s);
    }
    printf("refused %u, helped %u\n", refused, helped);
    for (enum change_kind k = 0; k < CHANGE_KINDS; k++)
        printf("%s: %u\n", change_kind_word(k), said[k]);
    printf("leases of all others: %u\n", all_leases);
    cr_expect_gt(said[CHANGE_LEASE], ROUNDS_OF(20));
    cr_expect_gt(all_leases, ROUNDS_OF(5));
    cr_expect_gt(said[CHANGE_FREE], ROUNDS_OF(20));
    cr_expect_gt(said[CHANGE_WITHIN], ROUNDS_OF(20));
    cr_expect_gt(said[CHANGE_ALIGN], ROUNDS_OF(20));
    cr_expect_gt(said[CHANGE_CARD_CORES], ROUNDS_OF(50));
    cr_expect_gt(said[CHANGE_MEMORY], ROUNDS_OF(20));
    cr_expect_gt(said[CHANGE_PAIRS], ROUNDS_OF(100));
    cr_expect_gt(said[CHANGE_RELEASE], ROUNDS_OF(50));
    cr_expect_gt(said[CHANGE_JOB_END], ROUNDS_OF(50));
}

/* --- the words ------------------------------------------------------------ */

/* Some of the job's first pairs have their place, or hold it. */
static struct snapshot *begin(struct snapshot *s, const struct demand *pod)
{
    int32_t n = odds(50) ? (int32_t)roll((uint32_t)pod->size) : 0;
    bool held = odds(30);
    for (int32_t rank = 0; rank < n; rank++) {
        struct schedule sc;
        struct choice choice;
        struct demand d;
        int32_t node = (int32_t)roll(NODES);
        demand_pair(pod, rank, &d);
        d.pair = rank;
        (void)snprintf(d.name, sizeof d.name, "mine%s%d", held ? "/" : "-",
                       rank);
        (void)snprintf(d.uid, sizeof d.uid, "%s%.0d", held ? "" : "uid-",
                       held ? 0 : rank + 1);
        schedule_init(&sc, s, &d);
        if (schedule_choose(&sc, node, &choice) != REASON_NONE)
            break;
        struct allocation *a = schedule_allocation(&sc, node, &choice);
        a->held = held;
        struct draft *draft = draft_create(s);
        draft_allocate(draft, a);
        struct snapshot *next = draft_commit(draft);
        snapshot_unref(s);
        s = next;
    }
    return s;
}

static struct demand large_job(void)
{
    struct demand d = job();
    d.size += (int32_t)roll(40);
    d.pair = d.size - 1;
    if (odds(25)) {
        d.n_shapes = 1;
        d.shapes[0] = (struct pair_shape){.first = 0,
                                          .last = (int32_t)roll(3),
                                          .cards = (uint8_t)(1 + roll(2)),
                                          .align = RELATION_SYS,
                                          .has_card_need = true,
                                          .card_cores = 1 + roll(8)};
    }
    (void)snprintf(d.name, sizeof d.name, "mine-%d", (int)d.pair);
    return d;
}

/* The least of the numbers of pairs that there is said to be room for. */
static uint32_t named_room(const char *text)
{
    static const char key[] = "room for ";
    uint32_t least = UINT32_MAX;
    for (const char *at = text; (at = strstr(at, key));) {
        at += strlen(key);
        if (strncmp(at, "at most ", 8) == 0)
            at += 8;
        uint32_t n = (uint32_t)strtoul(at, NULL, 10);
        if (*at >= '0' && *at <= '9' && n < least)
            least = n;
    }
    return least;
}

static const struct change *find_pairs(const struct advice *advice)
{
    for (size_t i = 0; i < advice->n_changes; i++)
        if (advice->changes[i].kind == CHANGE_PAIRS)
            return &advice->changes[i];
    return NULL;
}

/* "There is room for 42", and a job of 42 would fit: and of no more. */
Test(advice_job, the_words_agree)
{
    unsigned n_equal = 0, n_most = 0, n_more = 0, n_within = 0, n_none = 0;
    printf("seed %llu\n", (unsigned long long)chance_init());
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct demand pod = large_job();
        struct snapshot *s = begin(crowd(fleet(), roll(APPLIED_MAX)), &pod);
        cleanup_str struct str text = STR_INIT(4096);
        cleanup_why struct why why;
        why_init(&why, s, &pod, NULL, NULL);
        const struct plan_refusal *no = &why.refusal;
        if (why.to_plan && !why.plan) {
            why_advise(&why);
            schedule_brief(&why.schedule, REASON_JOB_ROOM, &text);
            const char *t = str_text(&text);
            const struct change *c = find_pairs(&why.advice);
            uint32_t room = named_room(t),
                     fixed = (uint32_t)pod.size - no->asked;
            bool named = room != UINT32_MAX;
            if (c && named && no->at_most)
                cr_assert_leq(c->value, fixed + room, "%u: %s", round, t);
            else if (c && named)
                cr_assert_eq(c->value, fixed + room, "%u: %s; %u", round, t,
                             (unsigned)c->value);
            else if (named && !no->at_most)
                cr_assert_eq(fixed + room, 0, "%u: %s", round, t);
            cr_assert(!named || room < no->asked, "%s", t);
            n_equal += c && named && !no->at_most;
            n_most += c && no->at_most;
            n_more += c && fixed > 0;
            n_within += c && pod.within >= 0;
            n_none += !c;
        }
        why_fini(&why);
        snapshot_unref(s);
    }
    printf("equal %u, at most %u, more %u, within %u, none %u\n", n_equal,
           n_most, n_more, n_within, n_none);
    cr_expect_gt(n_equal, 300);
    cr_expect_gt(n_most, 20);
    cr_expect_gt(n_more, 50);
    cr_expect_gt(n_within, 100);
}
