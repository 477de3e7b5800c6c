/* Advice for whole jobs: every change is made for real, and then the job has
 * a plan. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/advice.h"
#include "model/base/mem.h"
#include "tests/lib/randnode.h"
#include "tests/lib/simfabric.h"
#include "tests/lib/simfleet.h"
#include "tests/lib/simhost.h"

enum { ROUNDS = 3000, NODES = 4, CARDS = 4, PODS_MAX = 16, JOBS = 3 };

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
    const struct allocation *gone[PODS_MAX];
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
        struct snapshot *s = crowd(fleet(), roll(PODS_MAX));
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
    cr_expect_gt(said[CHANGE_LEASE], 20);
    cr_expect_gt(all_leases, 5);
    cr_expect_gt(said[CHANGE_FREE], 20);
    cr_expect_gt(said[CHANGE_WITHIN], 20);
    cr_expect_gt(said[CHANGE_ALIGN], 20);
    cr_expect_gt(said[CHANGE_CARD_CORES], 50);
    cr_expect_gt(said[CHANGE_MEMORY], 20);
    cr_expect_gt(said[CHANGE_PAIRS], 100);
    cr_expect_gt(said[CHANGE_RELEASE], 50);
    cr_expect_gt(said[CHANGE_JOB_END], 50);
}
