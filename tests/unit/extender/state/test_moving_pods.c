/* Pods that come to a node or leave one: what the others of their pair and job
 * are told meanwhile. */
#include "extender/state/moving_pods.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/judge/schedule.h"
#include "extender/judge/victims.h"
#include "extender/keep/writer.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/simstate.h"

enum { N_NODES = 3, N_CARDS = 4 };

static struct writer *start(void)
{
    struct writer *w = sim_writer(NULL);
    for (int i = 0; i < N_NODES; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(sim_publish(w, name, N_CARDS, "boot", 1), 0);
    }
    return w;
}

static void move(struct writer *w, const struct demand *d, const char *node,
                 bool leaving)
{
    struct writer_op op = {
        .kind = WRITER_MOVE, .demand = d, .node = node, .gone = leaving};
    cr_assert_eq(writer_run(w, &op), 0);
}

/* As after a preempt reply. */
static int offer(struct writer *w, const struct demand *d, const char *node)
{
    struct writer_op op = {.kind = WRITER_OFFER, .demand = d, .node = node};
    return writer_run(w, &op);
}

/* The one node where the pod may go, "any" or "none". */
static const char *allowed(struct writer *w, const struct demand *d)
{
    static char name[64];
    struct schedule s;
    struct choice ignored;
    cleanup_with(snapshot) struct snapshot *now = writer_snapshot(w);
    unsigned n = 0;
    schedule_init(&s, now, d);
    for (int32_t i = 0; i < N_NODES; i++)
        if (schedule_choose(&s, i, &ignored) == REASON_NONE) {
            (void)snprintf(name, sizeof name, "%s",
                           snapshot_node(now, (size_t)i)->name);
            n++;
        }
    return n == 1 ? name : n ? "any" : "none";
}

Test(moving_pods, a_registry)
{
    struct demand host = sim_pod("h", ROLE_HOST, "j", 1);
    struct demand xpu = sim_pod("x", ROLE_XPU, "j", 1);
    struct demand other = sim_pod("o", ROLE_HOST, "k", 1);
    char key[DEMAND_PAIR_KEY_MAX];
    demand_pair_key(&host, key);
    cr_expect_null(moving_pods_with(NULL, &host, NULL, false));
    cr_expect_null(moving_pods_pair_node(NULL, key, ""));
    cleanup_with(moving_pods) struct moving_pods *one =
        moving_pods_with(NULL, &xpu, "n1", false);
    cleanup_with(moving_pods) struct moving_pods *two =
        moving_pods_with(one, &host, "n2", false);
    cleanup_with(moving_pods) struct moving_pods *m =
        moving_pods_with(two, &other, NULL, true);
    cr_expect_str_eq(moving_pods_pair_node(m, key, ""), "n2", "the host pod's");
    cr_expect_str_eq(moving_pods_pair_node(m, key, host.uid), "n1");
    cr_expect_str_eq(moving_pods_pair_node(one, key, ""), "n1",
                     "it is as it was");
    cr_expect_null(moving_pods_pair_node(one, key, xpu.uid), "not its own");
    cr_expect(moving_pods_has_job(m, &xpu, NULL));
    cr_expect(moving_pods_has_job(m, &xpu, "n1"));
    cr_expect_not(moving_pods_has_job(m, &xpu, "n0"));
    cr_expect_not(moving_pods_has_job(m, &other, NULL));
    cr_expect(moving_pods_is_leaving(m, other.uid));
    cr_expect_not(moving_pods_is_leaving(m, host.uid));
    cleanup_with(moving_pods) struct moving_pods *again =
        moving_pods_with(m, &host, "n0", false);
    cr_expect_str_eq(moving_pods_pair_node(again, key, xpu.uid), "n0");
}

/* While its host pod is nominated, an xPU pod goes nowhere else, though it fits
 * everywhere; in either order, until the nomination is gone. */
Test(moving_pods, a_pair_waits_where_room_is_made)
{
    struct writer *w = start();
    struct demand host = sim_pod("h", ROLE_HOST, "j", 0);
    struct demand xpu = sim_pod("x", ROLE_XPU, "j", 0);
    struct demand other = sim_pod("o", ROLE_XPU, "other", 0);
    struct error err = {0};
    cr_expect_str_eq(allowed(w, &xpu), "any");
    move(w, &host, "n1", false);
    cr_expect_str_eq(allowed(w, &xpu), "n1");
    cr_expect_str_eq(allowed(w, &host), "any", "of its own accord");
    cr_expect_str_eq(allowed(w, &other), "any");
    cr_expect_eq(sim_bind(w, &xpu, "n2", NULL, &err), -EBUSY);
    cr_expect_not_null(strstr(err.text, "makes room"), "%s", err.text);
    move(w, &host, NULL, false);
    cr_expect_str_eq(allowed(w, &xpu), "any");
    move(w, &xpu, "n2", false);
    cr_expect_str_eq(allowed(w, &host), "n2");
    cr_expect_eq(sim_bind(w, &xpu, "n0", NULL, NULL), 0);
    cr_expect_str_eq(allowed(w, &host), "n0", "who is bound has the last word");
    writer_stop(w);
}

Test(moving_pods, an_offer_in_the_registry)
{
    struct demand host = sim_pod("h", ROLE_HOST, "j", 1);
    struct demand xpu = sim_pod("x", ROLE_XPU, "j", 1);
    char key[DEMAND_PAIR_KEY_MAX];
    demand_pair_key(&host, key);
    cleanup_with(moving_pods) struct moving_pods *old =
        moving_pods_with(NULL, &host, "n1", false);
    cleanup_with(moving_pods) struct moving_pods *m =
        moving_pods_offer(old, &host, MOVING_PODS_UNSETTLED, 50);
    cr_expect_str_eq(moving_pods_pair_node(m, key, xpu.uid), "",
                     "what it was nominated to is old");
    cleanup_with(moving_pods) struct moving_pods *to =
        moving_pods_offer(m, &host, "n2", 50);
    cr_expect_str_eq(moving_pods_pair_node(to, key, xpu.uid), "n2");
    cr_expect_null(moving_pods_pair_node(to, key, host.uid), "not its own");
    cleanup_with(moving_pods) struct moving_pods *no =
        moving_pods_with(to, &host, NULL, false);
    cr_expect_str_eq(moving_pods_pair_node(no, key, ""), "n2",
                     "that may be older than the offer");
    cleanup_with(moving_pods) struct moving_pods *told =
        moving_pods_with(to, &host, "n3", false);
    cr_expect_str_eq(moving_pods_pair_node(told, key, ""), "n3");
    cr_expect_not(moving_pods_offer_ends(told, host.uid, 99), "it has");
    cr_expect_not(moving_pods_offer_ends(to, xpu.uid, 49));
    cr_expect(moving_pods_offer_ends(to, host.uid, 49));
    cr_expect(moving_pods_offer_ends(to, "", 50));
    cleanup_with(moving_pods) struct moving_pods *over =
        moving_pods_end_offers(to, "", 50);
    cr_expect_str_eq(moving_pods_pair_node(over, key, ""), "n1", "as before");
    cleanup_with(moving_pods) struct moving_pods *kept =
        moving_pods_end_offers(to, xpu.uid, 49);
    cr_expect_str_eq(moving_pods_pair_node(kept, key, ""), "n2");
    cr_expect_null(moving_pods_end_offers(NULL, "", 50));
}

/* kube-scheduler was told where it may make room for the host pod, and the watch
 * does not tell yet what it has made of that. */
Test(moving_pods, a_pair_waits_for_the_nomination)
{
    struct writer *w = start();
    struct demand host = sim_pod("h", ROLE_HOST, "j", 0);
    struct demand xpu = sim_pod("x", ROLE_XPU, "j", 0);
    struct demand other = sim_pod("o", ROLE_XPU, "other", 0);
    struct error err = {0};
    cr_assert_eq(offer(w, &host, MOVING_PODS_UNSETTLED), 0);
    cr_expect_str_eq(allowed(w, &xpu), "none");
    cr_expect_str_eq(allowed(w, &host), "any");
    cr_expect_str_eq(allowed(w, &other), "any");
    cr_expect_eq(sim_bind(w, &xpu, "n2", NULL, &err), -EBUSY);
    cr_expect_not_null(strstr(err.text, "has not said yet on which node"), "%s",
                       err.text);
    move(w, &host, "n1", false);
    cr_expect_str_eq(allowed(w, &xpu), "n1");
    cr_assert_eq(offer(w, &host, "n2"), 0);
    cr_expect_str_eq(allowed(w, &xpu), "n2");
    cr_expect_eq(sim_bind(w, &xpu, "n2", NULL, NULL), 0);
    cr_expect_eq(offer(w, &host, "n1"), -EEXIST, "a bind was faster");
    cr_expect_eq(offer(w, &host, MOVING_PODS_UNSETTLED), -EEXIST);
    cr_expect_eq(offer(w, &host, "n2"), 0);
    writer_stop(w);
}

/* Where another pod of that pod's pair comes to; "none". */
static const char *awaited(struct writer *w, const struct demand *d)
{
    static char name[64];
    char key[DEMAND_PAIR_KEY_MAX];
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    demand_pair_key(d, key);
    const char *node = moving_pods_pair_node(s->moves, key, d->uid);
    (void)snprintf(name, sizeof name, "%s", node ? node : "none");
    return name;
}

/* An offer that nobody takes up keeps nobody away for ever. */
Test(moving_pods, an_offer_ends_with_its_time)
{
    struct writer *w = start();
    struct demand host = sim_pod("h", ROLE_HOST, "j", 0);
    struct demand xpu = sim_pod("x", ROLE_XPU, "j", 0);
    int64_t now_ms = clock_ms();
    clock_set_fake(now_ms);
    cr_assert_eq(offer(w, &host, "n1"), 0);
    clock_set_fake(now_ms + MOVING_PODS_OFFER_MS - 1);
    writer_sweep(w);
    cr_expect_str_eq(awaited(w, &xpu), "n1");
    clock_set_fake(now_ms + MOVING_PODS_OFFER_MS);
    writer_sweep(w);
    cr_expect_str_eq(awaited(w, &xpu), "none");
    clock_set_fake(-1);
    writer_stop(w);
}

Test(moving_pods, an_offer_ends_with_its_pod)
{
    struct writer *w = start();
    struct demand host = sim_pod("h", ROLE_HOST, "j", 0);
    struct demand xpu = sim_pod("x", ROLE_XPU, "j", 0);
    struct writer_op gone = {
        .kind = WRITER_FREE, .namespace = "ns", .pod = "h", .uid = host.uid};
    struct allocation *a = allocation_create(&host, "n2");
    struct writer_op bound = {.kind = WRITER_ADOPT, .allocation = a};
    cr_assert_eq(offer(w, &host, "n1"), 0);
    (void)writer_run(w, &gone); /* it has nothing to be freed */
    cr_expect_str_eq(awaited(w, &xpu), "none");
    cr_assert_eq(offer(w, &host, "n1"), 0);
    cr_expect_eq(writer_run(w, &bound), 0, "%s", bound.error.text);
    cr_expect_str_eq(awaited(w, &xpu), "none");
    allocation_unref(a);
    writer_stop(w);
}

/* So does one whose pair is planned, also with a whole job. */
Test(moving_pods, a_plan_has_the_pair_there)
{
    for (int size = 1; size <= 3; size += 2) {
        struct writer *w = start();
        struct demand host = sim_member("h", ROLE_HOST, "j", 0, size);
        struct demand xpu = sim_member("x", ROLE_XPU, "j", 0, size);
        xpu.pair_gpus = host.pair_gpus = host.gpus = 0;
        xpu.cpu_milli = host.cpu_milli = 1;
        move(w, &host, "n2", false);
        struct plan *plan = NULL;
        struct plan_refusal refusal;
        cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
        cr_assert(demand_is_planned(&xpu));
        cr_assert_eq(
            job_plan(NULL, s, &xpu, NULL, 0, NODE_NONE, &plan, &refusal), 0);
        cr_expect_eq(plan->places[0].node, 2);
        plan_unref(plan);
        cr_expect_eq(sim_bind(w, &xpu, "n0", NULL, NULL), -EBUSY);
        cr_expect_eq(sim_bind(w, &xpu, "n2", NULL, NULL), 0);
        writer_stop(w);
    }
}

/* A node that nobody knows (any more) is not waited for, whoever asks. */
Test(moving_pods, nobody_waits_for_a_node_that_is_gone)
{
    for (int size = 1; size <= 3; size += 2) {
        struct writer *w = start();
        struct demand host = sim_member("h", ROLE_HOST, "j", 0, size);
        struct demand xpu = sim_member("x", ROLE_XPU, "j", 0, size);
        struct demand bare = sim_pod("b", ROLE_XPU, "j", 0);
        move(w, &host, "n9", false);
        cr_expect_str_eq(allowed(w, &bare), "any");
        cr_expect_str_eq(allowed(w, &xpu), "any");
        cr_expect_eq(sim_bind(w, &xpu, "n1", NULL, NULL), 0);
        writer_stop(w);
    }
}

/* --- preemption by the pods of one job ---------------------------------- */

enum { LOWS = N_NODES * N_CARDS };

static struct demand low_pod(int i)
{
    char name[32];
    (void)snprintf(name, sizeof name, "low%02d", i);
    struct demand d = sim_pod(name, ROLE_HOST, "", 0);
    d.exclusive = true;
    return d;
}

static struct demand member(int pair, enum pod_role role)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s%d", pod_role_name(role), pair);
    struct demand d = sim_member(name, role, "team", pair, 3);
    d.exclusive = true;
    d.priority = 10;
    return d;
}

/* Pods of low priority on the first cards of a node. */
static void fill(struct writer *w, int node, int n)
{
    for (int i = node * N_CARDS; i < node * N_CARDS + n; i++) {
        struct demand d = low_pod(i);
        char name[8];
        (void)snprintf(name, sizeof name, "n%d", node);
        cr_assert_eq(sim_bind(w, &d, name, NULL, NULL), 0);
    }
}

static void expect_hold(struct writer *w, int pair, const char *node)
{
    char name[16];
    (void)snprintf(name, sizeof name, "team/%d", pair);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", name);
    cr_assert_not_null(a, "%s", name);
    cr_expect_str_eq(a->node, node, "%s", name);
}

static void expect_sound(struct writer *w)
{
    cleanup_str struct str why = STR_INIT(1024);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cr_expect(sim_check(s, &why), "%s", str_text(&why));
}

/* What was held for a pair that now comes to another node is given to others,
 * and held for it no more. */
Test(moving_pods, a_hold_moves_with_its_pair)
{
    struct writer *w = start();
    fill(w, 0, N_CARDS - 2);
    fill(w, 1, N_CARDS - 1);
    fill(w, 2, N_CARDS - 1);
    struct demand first = member(0, ROLE_HOST), comes = member(1, ROLE_HOST);
    struct demand last = member(2, ROLE_HOST);
    cr_assert_eq(sim_bind(w, &first, "n0", NULL, NULL), 0);
    expect_hold(w, 1, "n0");
    move(w, &comes, "n2", false);
    cr_expect_eq(sim_bind(w, &last, "n0", NULL, NULL), 0);
    expect_sound(w);
    expect_hold(w, 1, "n2");
    cr_expect_eq(sim_bind(w, &comes, "n2", NULL, NULL), 0);
    expect_sound(w);
    writer_stop(w);
}

/* Is there no plan because room is still being made for others? */
static bool waits(struct writer *w, const struct demand *d)
{
    struct plan *plan = NULL;
    struct plan_refusal refusal = {0};
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int r = job_plan(NULL, s, d, NULL, 0, NODE_NONE, &plan, &refusal);
    plan_unref(plan);
    return r == -EBUSY && refusal.lack == PLAN_LACK_COMING;
}

/* No pair is bound before there is room for all of them; then all have it. */
Test(moving_pods, a_job_waits_until_all_have_room)
{
    struct writer *w = start();
    struct demand pods[N_NODES];
    struct error err = {0};
    for (int i = 0; i < N_NODES; i++) {
        char node[8];
        (void)snprintf(node, sizeof node, "n%d", i);
        fill(w, i, N_CARDS);
        pods[i] = member(i, ROLE_HOST);
        move(w, &pods[i], node, false);
    }
    for (int i = 0; i < N_NODES; i++) {
        struct demand low = low_pod(i * N_CARDS);
        cr_expect(waits(w, &pods[0]), "%d have left", i);
        cr_expect_eq(sim_bind(w, &pods[0], "n0", NULL, &err), -EBUSY);
        cr_assert_eq(sim_release(w, low.name), 0);
    }
    cr_expect_not_null(strstr(err.text, "room is being made for 1 other pair "
                                        "of its job"),
                       "%s", err.text);
    cr_expect_not(waits(w, &pods[0]));
    cr_expect_not(waits(w, &pods[2]));
    cr_expect_eq(sim_bind(w, &pods[0], "n0", NULL, NULL), 0);
    expect_hold(w, 1, "n1");
    expect_hold(w, 2, "n2");
    struct demand greedy = low_pod(N_CARDS);
    cr_expect_eq(sim_bind(w, &greedy, "n1", NULL, NULL), -EBUSY);
    cr_expect_eq(sim_bind(w, &pods[2], "n2", NULL, NULL), 0);
    cr_expect_eq(sim_bind(w, &pods[1], "n1", NULL, NULL), 0);
    expect_sound(w);
    writer_stop(w);
}

/* Nor before it is known where room is made for one of them. */
Test(moving_pods, a_job_waits_for_a_nomination)
{
    struct writer *w = start();
    struct demand first = member(0, ROLE_HOST), comes = member(1, ROLE_HOST);
    struct demand xpu = member(1, ROLE_XPU);
    struct error err = {0};
    cr_assert_eq(offer(w, &comes, MOVING_PODS_UNSETTLED), 0);
    cr_expect(waits(w, &first));
    cr_expect_not(waits(w, &comes), "for itself");
    cr_expect_str_eq(allowed(w, &xpu), "none");
    cr_expect_eq(sim_bind(w, &xpu, "n0", NULL, &err), -EBUSY);
    cr_expect_not_null(strstr(err.text, "has not said yet"), "%s", err.text);
    move(w, &comes, "n2", false);
    cr_expect_not(waits(w, &first));
    cr_expect_eq(sim_bind(w, &first, "n0", NULL, NULL), 0);
    expect_hold(w, 1, "n2");
    expect_sound(w);
    writer_stop(w);
}

/* Two that were nominated to the same room do not keep each other out. */
Test(moving_pods, who_is_first_has_another_place)
{
    struct writer *w = start();
    struct demand pods[2] = {sim_member("a", ROLE_HOST, "team", 0, 2),
                             sim_member("b", ROLE_HOST, "team", 1, 2)};
    fill(w, 0, N_CARDS - 1);
    fill(w, 1, N_CARDS - 1);
    fill(w, 2, N_CARDS);
    for (int i = 0; i < 2; i++) {
        pods[i].exclusive = true;
        move(w, &pods[i], "n1", false);
    }
    cr_expect_eq(sim_bind(w, &pods[0], "n1", NULL, NULL), -EBUSY);
    cr_expect_eq(sim_bind(w, &pods[0], "n0", NULL, NULL), 0);
    expect_hold(w, 1, "n1");
    cr_expect_eq(sim_bind(w, &pods[1], "n1", NULL, NULL), 0);
    expect_sound(w);
    writer_stop(w);
}

static int number_of(const struct allocation *a)
{
    return (int)strtol(a->demand.name + strlen("low"), NULL, 10);
}

/* Ask about all nodes, for each of which the scheduler proposes the last `n` of
 * its pods, and evict what is answered for the first that may. */
static unsigned preempt(struct writer *w, const struct demand *d, unsigned n,
                        bool *evicted, const char **ret_node)
{
    const struct allocation *given[N_NODES][N_CARDS];
    struct victims_ask asks[N_NODES];
    struct victims v[N_NODES];
    unsigned fresh = 0;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    for (int32_t i = 0; i < N_NODES; i++) {
        const struct node *node = snapshot_node(s, (size_t)i);
        asks[i] = (struct victims_ask){.node = i, .given = given[i]};
        for (size_t k = node->n_allocations; k-- > 0 && asks[i].n_given < n;)
            given[i][asks[i].n_given++] = node->allocations[k];
    }
    victims_choose(s, d, asks, N_NODES, v);
    *ret_node = NULL;
    for (int i = 0; i < N_NODES; i++) {
        for (size_t k = 0; k < v[i].n && !*ret_node; k++) {
            int number = number_of(v[i].named[k]);
            fresh += !evicted[number];
            evicted[number] = true;
        }
        for (size_t k = 0;
             k < asks[i].n_given && v[i].fits && !v[i].instead && !*ret_node;
             k++) {
            int number = number_of(given[i][k]);
            fresh += !evicted[number];
            evicted[number] = true;
        }
        if (v[i].fits && !*ret_node)
            *ret_node = i == 0 ? "n0" : i == 1 ? "n1" : "n2";
        victims_fini(&v[i]);
    }
    return fresh;
}

/* Of a job of three pairs each pod asks, with ever more proposed, since those
 * before it are nominated; with what they evict known, or not yet. */
Test(moving_pods, a_job_evicts_as_many_as_it_has_pairs)
{
    for (int known = 0; known < 2; known++) {
        struct writer *w = start();
        bool evicted[LOWS] = {false};
        unsigned n = 0;
        for (int i = 0; i < LOWS; i++) {
            struct demand d = low_pod(i);
            char node[8];
            (void)snprintf(node, sizeof node, "n%d", i / N_CARDS);
            cr_assert_eq(sim_bind(w, &d, node, NULL, NULL), 0);
        }
        for (int pair = 0; pair < 3; pair++) {
            struct demand d = member(pair, ROLE_HOST);
            const char *node;
            n += preempt(w, &d, (unsigned)pair + 1, evicted, &node);
            cr_assert_not_null(node, "pair %d", pair);
            move(w, &d, node, false);
            for (int i = 0; i < LOWS && known; i++) {
                struct demand low = low_pod(i);
                if (evicted[i])
                    move(w, &low, NULL, true);
            }
        }
        cr_expect_eq(n, 3, "%u went", n);
        /* the scheduler has heard that they are gone before we have: it
         * proposes others, which are of no use */
        struct demand late = member(1, ROLE_HOST);
        const char *node;
        if (known)
            cr_expect_eq(preempt(w, &late, 1, evicted, &node), 0);
        writer_stop(w);
    }
}

/* Who waits for room of the others asks again whom to evict: nobody but those who
 * leave already. */
Test(moving_pods, who_waits_evicts_nobody)
{
    struct writer *w = start();
    bool evicted[LOWS] = {false};
    struct demand pods[N_NODES], lows[N_NODES];
    const char *node;
    for (int i = 0; i < N_NODES; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%d", i);
        fill(w, i, N_CARDS);
        pods[i] = member(i, ROLE_HOST);
        lows[i] = low_pod(i * N_CARDS);
        move(w, &pods[i], name, false);
        move(w, &lows[i], NULL, true);
        evicted[i * N_CARDS] = true;
    }
    for (int i = 0; i < N_NODES - 1; i++) {
        cr_assert_eq(sim_release(w, lows[i].name), 0);
        cr_expect(waits(w, &pods[0]));
        cr_expect_eq(preempt(w, &pods[0], 1, evicted, &node), 0);
        cr_expect_str_eq(node, i == 0 ? "n1" : "n2", "where some still leave");
        move(w, &pods[0], node, false); /* as kube-scheduler does then */
    }
    cr_assert_eq(sim_release(w, lows[N_NODES - 1].name), 0);
    cr_expect_eq(sim_bind(w, &pods[0], "n0", NULL, NULL), 0);
    expect_hold(w, 1, "n1");
    expect_hold(w, 2, "n2");
    expect_sound(w);
    writer_stop(w);
}

/* No second node is emptied for a pair whose room is being made. */
Test(moving_pods, a_pair_evicts_on_one_node)
{
    for (int size = 0; size < 2; size++) {
        struct writer *w = start();
        bool evicted[LOWS] = {false};
        struct demand host = sim_member("h", ROLE_HOST, "vip", 0, 1);
        struct demand xpu = sim_member("x", ROLE_XPU, "vip", 0, 1);
        const char *node;
        host.exclusive = xpu.exclusive = true;
        host.priority = xpu.priority = 10;
        xpu.cpu_milli = size ? 1 : 0; /* says what its host pod asks */
        for (int i = 0; i < N_NODES; i++)
            fill(w, i, N_CARDS);
        cr_expect_eq(preempt(w, &host, 1, evicted, &node), 1);
        cr_assert_eq(offer(w, &host, MOVING_PODS_UNSETTLED), 0);
        cr_expect_eq(preempt(w, &xpu, 1, evicted, &node), 0);
        cr_expect_null(node);
        writer_stop(w);
    }
}

/* A pod that nobody else asks with gets what the scheduler has chosen, which may
 * be for a disruption budget. */
Test(moving_pods, one_pair_keeps_what_was_proposed)
{
    struct writer *w = start();
    struct demand d = sim_member("vip", ROLE_XPU, "vip", 0, 1);
    d.exclusive = true;
    d.cpu_milli = 1; /* its host pod's: so its pair is planned */
    d.priority = 10;
    for (int i = 0; i < N_NODES; i++)
        fill(w, i, N_CARDS);
    bool evicted[LOWS] = {false};
    const char *node;
    cr_assert(demand_is_planned(&d));
    cr_expect_eq(preempt(w, &d, 1, evicted, &node), 1);
    cr_expect_str_eq(node, "n0");
    cr_expect(evicted[N_CARDS - 1], "the last of its pods");
    writer_stop(w);
}

/* --- many at once --------------------------------------------------------- */

struct gate {
    sem_t waits, open;
};

static void wait_at(void *ctx)
{
    struct gate *g = ctx;
    (void)sem_post(&g->waits);
    (void)sem_wait(&g->open);
}

static void ignore(struct writer_op *op)
{
    (void)op;
}

/* Those that come together make one snapshot. */
Test(moving_pods, a_batch_makes_one_snapshot)
{
    enum { N = 8 };
    struct writer *w = start();
    struct gate gate;
    struct demand pods[N];
    struct writer_op ops[N];
    cr_assert_eq(sem_init(&gate.waits, 0, 0), 0);
    cr_assert_eq(sem_init(&gate.open, 0, 0), 0);
    struct writer_op busy = {
        .kind = WRITER_CALL, .call = wait_at, .ctx = &gate, .done = ignore};
    writer_post(w, &busy);
    (void)sem_wait(&gate.waits);
    cleanup_with(snapshot) struct snapshot *before = writer_snapshot(w);
    for (int i = 0; i < N; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%d", i);
        pods[i] = sim_pod(name, ROLE_HOST, "j", i);
        ops[i] = (struct writer_op){.kind = WRITER_MOVE,
                                    .demand = &pods[i],
                                    .node = "n1",
                                    .done = ignore};
        writer_post(w, &ops[i]);
    }
    (void)sem_post(&gate.open);
    struct demand last = sim_pod("last", ROLE_HOST, "j", N);
    move(w, &last, NULL, true);
    cleanup_with(snapshot) struct snapshot *after = writer_snapshot(w);
    size_t pos = 0, n = 0;
    int32_t pair;
    while (moving_pods_next_of_job(after->moves, &last, &pos, &pair))
        n++;
    cr_expect_eq(n, N);
    cr_expect(after->number <= before->number + 2, "%d snapshots",
              (int)(after->number - before->number));
    writer_stop(w);
}
