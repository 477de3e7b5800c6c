/* Whom a preemption evicts, against trying every set of pairs.  BIGA_TEST_SEED
 * sets the seed, BIGA_TEST_ROUNDS the number. */
#include "extender/judge/victims.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/judge/schedule.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "model/plan/plan.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simfabric.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

/* --- a small cluster ---------------------------------------------------- */

static struct fabric *two_leaves(void)
{
    static const char text[] = "SwitchName=leaf0 Nodes=node[000-001]\n"
                               "SwitchName=leaf1 Nodes=node[002-003]\n"
                               "SwitchName=spine Switches=leaf0,leaf1\n";
    return simfabric_read(text);
}

static struct snapshot *fleet(unsigned n_nodes, unsigned n_cards)
{
    struct draft *d = simfleet_draft(simhost_topo, n_nodes, n_cards);
    cleanup_with(fabric) struct fabric *fabric = two_leaves();
    draft_set_fabric(d, fabric);
    return draft_commit(d);
}

/* Bind where it fits, if it does. */
static bool bind_to(struct snapshot **s, const struct demand *d, int32_t index)
{
    struct schedule sc;
    struct choice choice;
    schedule_init(&sc, *s, d);
    if (schedule_choose(&sc, index, &choice) != REASON_NONE)
        return false;
    struct draft *draft = draft_create(*s);
    draft_allocate(draft, schedule_allocation(&sc, index, &choice));
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(*s);
    *s = next;
    return true;
}

static void evict(struct snapshot **s, const struct victims *v)
{
    struct draft *draft = draft_create(*s);
    for (size_t i = 0; i < v->n; i++)
        cr_assert(draft_release(draft, v->named[i]->demand.namespace,
                                v->named[i]->demand.name));
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(*s);
    *s = next;
}

/* --- by hand ------------------------------------------------------------ */

static struct demand worker(const char *name, int64_t priority, unsigned cards)
{
    struct demand d = sim_need(sim_pod(name, ROLE_HOST, name, 0), 16, 1024);
    d.priority = priority;
    d.cards = d.pair_cards = (uint8_t)cards;
    return d;
}

static struct victims find_on(struct snapshot *s, const struct demand *d,
                              int32_t node, const char *given)
{
    struct victims v;
    const struct allocation *a =
        given ? alloc_index_find(s->allocations, "ns", given) : NULL;
    const struct victims_ask ask = {node, &a, a != NULL, false};
    victims_find(s, d, &ask, 1, &v);
    return v;
}

/* The names of the victims, in order, "-" when it does not fit. */
static void expect(struct snapshot *s, const struct demand *d,
                   const char *given, const char *want)
{
    struct victims v = find_on(s, d, 0, given);
    cleanup_str struct str got = STR_INIT(4096);
    if (!v.fits)
        str_add(&got, "-");
    for (size_t i = 0; i < v.n; i++)
        str_addf(&got, "%s%s", i ? " " : "", v.named[i]->demand.name);
    cr_assert_str_eq(str_text(&got), want);
    victims_fini(&v);
}

Test(victims, pairs_die_whole_and_the_cheapest_first)
{
    struct snapshot *s = fleet(1, 4);
    struct demand low = worker("low", 1, 1), mid = worker("mid", 3, 2);
    struct demand card = sim_need(sim_pod("xpu", ROLE_XPU, "low", 0), 8, 64);
    struct demand service = sim_need(sim_pod("sv", ROLE_SERVICE, "", 0), 16,
                                     64);
    card.priority = 1;
    cr_assert(bind_to(&s, &low, 0) && bind_to(&s, &card, 0));
    cr_assert(bind_to(&s, &mid, 0) && bind_to(&s, &service, 0));
    struct demand pod = worker("pod", 5, 1);
    expect(s, &pod, NULL, "low xpu");
    expect(s, &pod, "xpu", "low"); /* the scheduler's victim brings its pair */
    expect(s, &pod, "mid", "");
    pod.cards = pod.pair_cards = 2;
    expect(s, &pod, NULL, "mid");
    expect(s, &pod, "low", "xpu mid");
    pod.cards = pod.pair_cards = 3;
    expect(s, &pod, NULL, "low xpu mid");
    pod.cards = pod.pair_cards = 4; /* the service stays */
    expect(s, &pod, NULL, "-");
    expect(s, &pod, "sv", "-");
    pod.cards = pod.pair_cards = 1;
    pod.priority = 2;
    expect(s, &pod, NULL, "low xpu");
    expect(s, &pod, "mid", "-"); /* of equal priority */
    pod.priority = 1;
    expect(s, &pod, NULL, "-");
    pod = worker("pod", 9, 1);
    memcpy(pod.job, "low", 4); /* its own job */
    pod.pair = 1;
    expect(s, &pod, NULL, "mid");
    snapshot_unref(s);
}

Test(victims, as_few_jobs_as_can_be)
{
    struct snapshot *s = fleet(1, 4);
    static const char *const jobs[] = {"a", "b", "c", "b"};
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%u", i);
        struct demand d = worker(name, 1 + i, 1);
        (void)snprintf(d.job, sizeof d.job, "%s", jobs[i]);
        d.pair = (int32_t)i;
        cr_assert(bind_to(&s, &d, 0));
    }
    struct demand pod = worker("pod", 9, 2);
    expect(s, &pod, NULL, "p1 p3");
    expect(s, &pod, "p0", "p1");
    snapshot_unref(s);
}

Test(victims, a_held_place_cannot_be_evicted)
{
    struct snapshot *s = fleet(1, 1);
    struct demand held = worker("j", 1, 1);
    (void)snprintf(held.name, sizeof held.name, "j/0");
    held.uid[0] = '\0';
    struct schedule sc;
    struct choice choice;
    schedule_init(&sc, s, &held);
    cr_assert_eq(schedule_choose(&sc, 0, &choice), REASON_NONE);
    struct allocation *a = schedule_allocation(&sc, 0, &choice);
    a->held = true;
    struct draft *d = draft_create(s);
    draft_allocate(d, a);
    struct snapshot *next = draft_commit(d);
    snapshot_unref(s);
    struct demand pod = worker("pod", 9, 1);
    expect(next, &pod, NULL, "-");
    snapshot_unref(next);
}

/* --- one pod, by chance ------------------------------------------------- */

static const int64_t priorities[] = {-3, 0, 1, 1, 5, 7};

static void roll_pod(struct demand *d, unsigned number)
{
    static const char *const jobs[] = {"", "a", "b", "c"};
    char name[16];
    enum pod_role role = odds(70) ? ROLE_HOST
                                  : (odds(60) ? ROLE_XPU : ROLE_SERVICE);
    (void)snprintf(name, sizeof name, "p%u", number);
    *d = sim_pod(name, role, jobs[roll(4)], (int)roll(3));
    d->cards = d->pair_cards = (uint8_t)(1 + roll(3));
    d->priority = priorities[roll(6)];
    if (odds(70))
        *d = sim_need(*d, 1 + roll(16), roll(2000));
    if (role == ROLE_HOST) {
        d->gpus = d->pair_gpus = (uint8_t)roll(3);
        d->cpu_milli = odds(40) ? 0 : roll(20000);
        d->memory_mib = roll(3000);
    }
    d->exclusive = odds(10);
    d->align = (uint8_t)(odds(50) ? RELATION_SYS : RELATION_NODE);
}

/* May `a` be evicted for `pod`, by itself? */
static bool is_fair(const struct allocation *a, const struct demand *pod)
{
    return a->demand.role != ROLE_SERVICE &&
           a->demand.priority < pod->priority &&
           !(pod->job[0] && strcmp(a->demand.job, pod->job) == 0);
}

enum { PEOPLE_MAX = 16 };

/* The pairs of a node and what their loss costs. */
struct brute {
    const struct allocation *members[PEOPLE_MAX][PEOPLE_MAX];
    size_t n_members[PEOPLE_MAX];
    bool fair[PEOPLE_MAX], given[PEOPLE_MAX];
    unsigned n;
};

static void brute_init(struct brute *b, const struct node *node,
                       const struct demand *pod, const struct allocation *given)
{
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        unsigned k = 0;
        while (k < b->n && strcmp(b->members[k][0]->pair_key, a->pair_key) != 0)
            k++;
        if (k == b->n) {
            b->n++;
            b->fair[k] = true;
        }
        b->members[k][b->n_members[k]++] = a;
        b->fair[k] &= is_fair(a, pod);
        b->given[k] |= a == given;
    }
}

/* What sets are compared by: pairs, jobs, priority, pods. */
struct price {
    int64_t of[4];
};

static int compare_price(const struct price *a, const struct price *b)
{
    for (int i = 0; i < 4; i++)
        if (a->of[i] != b->of[i])
            return a->of[i] < b->of[i] ? -1 : 1;
    return 0;
}

static struct price price_of(const struct brute *b, unsigned set)
{
    struct price p = {0};
    for (unsigned k = 0; k < b->n; k++) {
        if (!(set >> k & 1))
            continue;
        const struct demand *d = &b->members[k][0]->demand;
        bool again = false; /* its job is broken already */
        for (unsigned j = 0; j < b->n; j++)
            if (j != k && (b->given[j] || (j < k && (set >> j & 1))))
                again |= d->job[0] &&
                         strcmp(d->job, b->members[j][0]->demand.job) == 0;
        p.of[0]++;
        p.of[1] += !again;
        for (size_t m = 0; m < b->n_members[k]; m++)
            p.of[2] += b->members[k][m]->demand.priority;
        p.of[3] += (int64_t)b->n_members[k];
    }
    return p;
}

static bool makes_room(const struct schedule *s, const struct brute *b,
                       unsigned set)
{
    const struct allocation *gone[PEOPLE_MAX];
    struct choice choice;
    size_t n = 0;
    for (unsigned k = 0; k < b->n; k++)
        for (size_t m = 0; m < b->n_members[k]; m++)
            if (b->given[k] || (set >> k & 1))
                gone[n++] = b->members[k][m];
    return schedule_choose_without(s, 0, gone, n, &choice) == REASON_NONE;
}

/* The lowest price of making room; false when nothing does. */
static bool brute_force(const struct schedule *s, const struct brute *b,
                        struct price *ret_price)
{
    bool found = false;
    for (unsigned set = 0; set < 1u << b->n; set++) {
        bool fair = true;
        for (unsigned k = 0; k < b->n; k++) {
            if (set >> k & 1)
                fair &= b->fair[k] && !b->given[k];
            fair &= b->fair[k] || !b->given[k];
        }
        if (!fair || !makes_room(s, b, set))
            continue;
        struct price price = price_of(b, set);
        if (!found || compare_price(&price, ret_price) < 0)
            *ret_price = price;
        found = true;
    }
    return found;
}

/* The pairs that `v` names, whole. */
static unsigned named_set(const struct brute *b, const struct victims *v)
{
    unsigned set = 0;
    for (unsigned k = 0; k < b->n; k++) {
        size_t named = 0;
        for (size_t m = 0; m < b->n_members[k]; m++)
            for (size_t i = 0; i < v->n; i++)
                named += v->named[i] == b->members[k][m];
        if (b->given[k]) {
            cr_assert_eq(named, b->n_members[k] - 1);
            continue;
        }
        cr_assert(named == 0 || named == b->n_members[k], "pairs die whole");
        cr_assert(named == 0 || b->fair[k]);
        set |= (unsigned)(named > 0) << k;
    }
    return set;
}

static bool check_one(struct snapshot *s, unsigned round)
{
    const struct node *node = snapshot_node(s, 0);
    const struct allocation *given = NULL;
    struct demand pod;
    struct schedule sc;
    struct brute b;
    struct price price = {0};
    roll_pod(&pod, 99);
    pod.priority += 3;
    if (node->n_allocations && odds(30))
        given = node->allocations[roll((uint32_t)node->n_allocations)];
    schedule_init(&sc, s, &pod);
    brute_init(&b, node, &pod, given);
    bool fits = sc.follows < 0 || sc.follows == 0;
    fits = brute_force(&sc, &b, &price) && fits;
    struct victims v = find_on(s, &pod, 0, given ? given->demand.name : NULL);
    cr_assert_eq(v.fits, fits, "round %u", round);
    if (fits) {
        unsigned set = named_set(&b, &v);
        struct price got = price_of(&b, set);
        cr_assert(makes_room(&sc, &b, set), "round %u", round);
        cr_assert_eq(compare_price(&got, &price), 0,
                     "round %u: %lld pairs, best %lld", round,
                     (long long)got.of[0], (long long)price.of[0]);
    }
    bool useful = v.fits && v.n > 0;
    victims_fini(&v);
    return useful;
}

Test(victims, smallest_sets, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", ROUNDS_OF(2000)),
             useful = 0;
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned i = 0; i < rounds; i++) {
        struct snapshot *s = fleet(1, 2 + 2 * roll(3));
        struct demand d;
        for (unsigned p = 0; p < 3 + roll(8); p++) {
            roll_pod(&d, p);
            (void)bind_to(&s, &d, 0);
        }
        useful += check_one(s, i);
        snapshot_unref(s);
    }
    cr_log_info("%u of %u name victims", useful, rounds);
    cr_assert(useful > rounds / 10, "%u of %u", useful, rounds);
}

/* --- whole jobs --------------------------------------------------------- */

/* Does the job fit, by plan? */
static bool fits_whole(const struct snapshot *s, const struct demand *pod)
{
    struct plan_refusal refusal;
    struct plan *plan = NULL;
    int r = job_plan(NULL, s, pod, NULL, 0, NODE_NONE, &plan, &refusal);
    plan_unref(r == 0 ? plan : NULL);
    return r == 0;
}

static void evict_all(struct snapshot **s, const struct demand *pod)
{
    for (size_t i = 0; i < (*s)->n_nodes; i++) {
        const struct node *node = snapshot_node(*s, i);
        struct brute b;
        struct victims v = {0};
        const struct allocation *all[PEOPLE_MAX];
        brute_init(&b, node, pod, NULL);
        for (unsigned k = 0; k < b.n; k++)
            for (size_t m = 0; m < b.n_members[k] && b.fair[k]; m++)
                all[v.n++] = b.members[k][m];
        v.named = all;
        evict(s, &v);
    }
}

static void roll_job(struct demand *pod)
{
    *pod = sim_need(sim_pod("q0", ROLE_HOST, "q", 0), 1 + roll(16), 64);
    pod->size = 2 + (int32_t)roll(5);
    pod->cards = pod->pair_cards = (uint8_t)(1 + roll(2));
    pod->cpu_milli = odds(50) ? 0 : roll(20000);
    pod->memory_mib = odds(50) ? 0 : 1 + roll(3000);
    pod->priority = 5;
    pod->within = (int8_t)(odds(50) ? DEMAND_ANYWHERE : (int)roll(2));
    if (odds(30)) {
        pod->n_shapes = 2;
        pod->shapes[0] = (struct pair_shape){.cards = pod->cards,
                                             .align = RELATION_SYS,
                                             .has_card_need = true,
                                             .card_cores = pod->card_cores,
                                             .card_memory_mib = 64,
                                             .cpu_milli = pod->cpu_milli};
        pod->shapes[0].memory_mib = pod->memory_mib;
        pod->shapes[1] = pod->shapes[0];
        pod->shapes[1].first = 1;
        pod->shapes[1].last = pod->size - 1;
        pod->shapes[1].cards = 2;
    }
}

/* Evict on the first node where somebody is named for the pod; how many. */
static size_t evict_once(struct snapshot **s, const struct demand *pod)
{
    struct victims_ask asks[8] = {0};
    struct victims v[8];
    size_t n = (*s)->n_nodes, at = 0, evicted = 0;
    for (size_t i = 0; i < n; i++)
        asks[i].node = (int32_t)i;
    victims_find(*s, pod, asks, n, v);
    while (at < n && v[at].n == 0)
        at++;
    if (at < n) {
        cr_assert(v[at].fits);
        evicted = v[at].n;
        for (size_t i = 0; i < evicted; i++)
            cr_assert(is_fair(v[at].named[i], pod));
        evict(s, &v[at]);
    }
    for (size_t i = 0; i < n; i++)
        victims_fini(&v[i]);
    return evicted;
}

/* As kube-scheduler does, for one pod of the job after the other, until nobody
 * is named any more.  Returns how many pods that took. */
static size_t evict_for(struct snapshot **s, const struct demand *pod,
                        unsigned round)
{
    size_t all = 0;
    for (unsigned turn = 0, idle = 0; idle < 2; turn++) {
        struct demand member;
        demand_pair(pod, (int32_t)(turn % 2), &member);
        (void)snprintf(member.name, sizeof member.name, "q%u", turn % 2);
        (void)snprintf(member.uid, sizeof member.uid, "uid-q%u", turn % 2);
        size_t evicted = evict_once(s, &member);
        all += evicted;
        idle = evicted ? 0 : idle + 1;
        cr_assert(turn < 20, "round %u", round);
    }
    return all;
}

/* Of some fleets the hosts have little memory left. */
static void limit_hosts(struct snapshot **s)
{
    struct draft *d = draft_create(*s);
    for (size_t i = 0, limited = odds(40); limited && i < (*s)->n_nodes; i++) {
        struct host_room room = {INT64_MAX, roll(6000), INT64_MAX};
        draft_set_room(d, snapshot_node(*s, i)->name, &room);
    }
    struct snapshot *next = draft_commit(d);
    snapshot_unref(*s);
    *s = next;
}

Test(victims, room_for_whole_jobs, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", ROUNDS_OF(2000)) /
                      2;
    unsigned useful = 0, late = 0, vain = 0;
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned i = 0; i < rounds; i++) {
        struct snapshot *s = fleet(4, 2 + 2 * roll(2));
        struct demand d, pod;
        for (unsigned p = 0; p < 30; p++) {
            roll_pod(&d, p);
            (void)bind_to(&s, &d, (int32_t)roll(4));
        }
        roll_job(&pod);
        limit_hosts(&s);
        struct snapshot *bare = snapshot_ref(s);
        evict_all(&bare, &pod);
        bool before = fits_whole(s, &pod), possible = fits_whole(bare, &pod);
        size_t evicted = evict_for(&s, &pod, i);
        bool after = fits_whole(s, &pod);
        cr_assert(!before || evicted == 0, "round %u: in vain", i);
        if (pod.n_shapes == 0) {
            cr_assert(evicted == 0 || after, "round %u: in vain", i);
            cr_assert_eq(after, possible, "round %u", i);
        }
        useful += evicted > 0;
        late += possible && !after;
        vain += evicted && !after;
        snapshot_unref(bare);
        snapshot_unref(s);
    }
    cr_log_info("%u of %u name victims; %u of several shapes find no "
                "plan, %u after evictions",
                useful, rounds, late, vain);
    cr_assert(useful > rounds / 5, "%u of %u", useful, rounds);
    /* of several shapes */
    cr_assert(late <= rounds / 100, "%u of %u", late, rounds);
    cr_assert(vain <= rounds / 200, "%u of %u", vain, rounds);
}
