/* Whole jobs through the writer: leases, arrival orders, races. */
#include "extender/judge/job.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum { N_NODES = 4, N_CARDS = 4, ALL = N_NODES * N_CARDS };

static const char *const nodes[N_NODES] = {"n0", "n1", "n2", "n3"};

static struct writer *start(const char *dir)
{
    log_set_level(LOG_ERROR);
    clock_set_fake(1000000);
    struct writer *w = sim_writer(dir);
    for (int i = 0; i < N_NODES; i++)
        cr_assert_eq(sim_publish(w, nodes[i], N_CARDS, "boot", 1), 0);
    return w;
}

static void finish(struct writer *w)
{
    writer_stop(w);
    clock_set_fake(-1);
}

static struct demand member(const char *job, int pair, int size,
                            enum pod_role role)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s-%s-%d", job, pod_role_name(role),
                   pair);
    return sim_member(name, role, job, pair, size);
}

/* Where the job's plan has the pod now, or NULL. */
static const char *planned(struct writer *w, const struct demand *pod,
                           const int32_t *candidates, size_t n)
{
    static char name[64];
    struct schedule s;
    struct plan_refusal refusal;
    cleanup_with(plan) struct plan *plan = NULL;
    cleanup_with(snapshot) struct snapshot *now = writer_snapshot(w);
    schedule_init(&s, now, pod);
    int32_t node = s.follows;
    if (!job_is_placed(&s, candidates, n)) {
        if (job_plan(NULL, now, pod, candidates, n, NODE_NONE, &plan,
                     &refusal) < 0)
            return NULL;
        node = plan->places[job_rank(pod)].node;
    }
    (void)snprintf(name, sizeof name, "%s",
                   snapshot_node(now, (size_t)node)->name);
    return name;
}

static int bind_planned(struct writer *w, const struct demand *pod)
{
    const char *node = planned(w, pod, NULL, 0);
    return node ? sim_bind(w, pod, node, NULL, NULL) : -EBUSY;
}

static void count(struct writer *w, const char *job, size_t *ret_bound,
                  size_t *ret_held)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_str struct str why = STR_INIT(4096);
    size_t n;
    cleanup_free const struct allocation **list =
        alloc_index_find_job(s->allocations, "ns", job, &n);
    cr_assert(sim_check(s, &why), "%s", str_text(&why));
    *ret_bound = *ret_held = 0;
    for (size_t i = 0; i < n; i++)
        *(list[i]->held ? ret_held : ret_bound) += 1;
}

#define cr_counts(w, job, bound, held)                                  \
    do {                                                                \
        size_t n_bound_, n_held_;                                       \
        count(w, job, &n_bound_, &n_held_);                             \
        cr_assert_eq(n_bound_, (size_t)(bound), "%zu bound", n_bound_); \
        cr_assert_eq(n_held_, (size_t)(held), "%zu held", n_held_);     \
    } while (0)

static int32_t index_of(const char *node)
{
    for (int32_t i = 0; i < N_NODES; i++)
        if (node && strcmp(node, nodes[i]) == 0)
            return i;
    return NODE_NONE;
}

/* A scheduler that tries a PodGroup as a whole fills nodes in its mind, and
 * does not name them for those that come later. */
Test(job, group_gets_one_plan_from_fewer_and_fewer_nodes)
{
    enum { SIZE = 12 };
    struct writer *w = start(NULL);
    int32_t places[SIZE];
    int used[N_NODES] = {0};
    for (int i = 0; i < SIZE; i++) {
        struct demand pod = member("a", i, SIZE, ROLE_HOST);
        places[i] = index_of(planned(w, &pod, NULL, 0));
        cr_assert_geq(places[i], 0);
    }
    for (int i = 0; i < SIZE; i++) {
        struct demand pod = member("a", i, SIZE, ROLE_HOST);
        int32_t left[N_NODES];
        size_t n = 0;
        for (int32_t k = 0; k < N_NODES; k++)
            if (used[k] < N_CARDS)
                left[n++] = k;
        pod.grouped = true;
        cr_assert_eq(index_of(planned(w, &pod, left, n)), places[i], "pair %d",
                     i);
        used[places[i]]++;
        pod.grouped = false; /* what is not named is ruled out */
        if (n * N_CARDS < SIZE)
            cr_assert_null(planned(w, &pod, left, n), "pair %d", i);
    }
    finish(w);
}

Test(job, group_does_without_a_node_that_is_ruled_out)
{
    struct writer *w = start(NULL);
    struct demand pod = member("a", 0, 12, ROLE_HOST);
    int32_t left[N_NODES], out = index_of(planned(w, &pod, NULL, 0));
    size_t n = 0;
    for (int32_t k = 0; k < N_NODES; k++)
        if (k != out)
            left[n++] = k;
    pod.grouped = true;
    int32_t other = index_of(planned(w, &pod, left, n));
    cr_assert(other >= 0 && other != out, "%d", (int)other);
    finish(w);
}

Test(job, first_bind_holds_the_rest)
{
    struct writer *w = start(NULL);
    struct demand first = member("a", 0, 6, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &first), 0);
    cr_counts(w, "a", 1, 5);
    for (int i = 1; i < 6; i++) {
        struct demand pod = member("a", i, 6, ROLE_HOST);
        cr_assert_eq(bind_planned(w, &pod), 0);
        cr_counts(w, "a", 1 + i, 5 - i);
    }
    for (int i = 0; i < 6; i++) {
        struct demand pod = member("a", i, 6, ROLE_XPU);
        cr_assert_eq(bind_planned(w, &pod), 0);
    }
    cr_counts(w, "a", 12, 0);
    finish(w);
}

Test(job, xpu_pods_may_come_first)
{
    struct writer *w = start(NULL);
    struct demand xpu = member("a", 2, 4, ROLE_XPU);
    struct demand host = member("a", 2, 4, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &xpu), 0);
    cr_counts(w, "a", 1, 4); /* its own host pod's place, too */
    cr_assert_eq(bind_planned(w, &host), 0);
    cr_counts(w, "a", 2, 3);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns",
                                                  host.name);
    const struct allocation *b = alloc_index_find(s->allocations, "ns",
                                                  xpu.name);
    cr_assert_str_eq(a->node, b->node);
    cr_assert_str_eq(a->cards[0], b->cards[0]);
    finish(w);
}

Test(job, any_order_twice)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct writer *w = start(NULL);
        struct demand pods[16];
        uint64_t random = seed;
        for (int i = 0; i < 16; i++)
            pods[i] = member("a", i / 2, 8, i % 2 ? ROLE_XPU : ROLE_HOST);
        for (unsigned i = 15; i > 0; i--) {
            unsigned k = sim_random(&random) % (i + 1);
            struct demand swap = pods[i];
            pods[i] = pods[k];
            pods[k] = swap;
        }
        for (int i = 0; i < 16; i++) {
            bool created;
            const char *node = planned(w, &pods[i], NULL, 0);
            cr_assert_not_null(node);
            cleanup_free char *there = xstrdup(node);
            cr_assert_str_eq(planned(w, &pods[i], NULL, 0), there);
            cr_assert_eq(sim_bind(w, &pods[i], there, &created, NULL), 0);
            cr_assert(created);
            cr_assert_eq(sim_bind(w, &pods[i], there, &created, NULL), 0);
            cr_assert_not(created);
            cr_assert_str_eq(planned(w, &pods[i], NULL, 0), there);
        }
        cr_counts(w, "a", 16, 0);
        finish(w);
    }
}

Test(job, missing_siblings_give_back_at_the_end_of_the_lease)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, 6, ROLE_HOST);
    struct demand b = member("a", 5, 6, ROLE_HOST);
    struct demand c = member("a", 3, 6, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &a), 0);
    clock_set_fake(1000000 + WRITER_LEASE_MS - 1);
    writer_sweep(w);
    cr_counts(w, "a", 1, 5);
    for (int i = 0; i < N_NODES; i++) /* they speak */
        cr_assert_eq(sim_publish(w, nodes[i], N_CARDS, "boot", 2), 0);
    cr_assert_eq(bind_planned(w, &b), 0); /* renews it */
    clock_set_fake(1000000 + 2 * WRITER_LEASE_MS - 2);
    writer_sweep(w);
    cr_counts(w, "a", 2, 4);
    clock_set_fake(1000000 + 2 * WRITER_LEASE_MS - 1);
    writer_sweep(w);
    cr_counts(w, "a", 2, 0);
    writer_sweep(w);
    for (int i = 0; i < N_NODES; i++)
        cr_assert_eq(sim_publish(w, nodes[i], N_CARDS, "boot", 3), 0);
    cr_assert_eq(bind_planned(w, &c), 0); /* and all are leased again */
    cr_counts(w, "a", 3, 3);
    finish(w);
}

Test(job, ended_lease_is_not_honoured_before_the_sweep)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, ALL, ROLE_HOST);
    struct demand b = member("b", 0, ALL - 1, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &a), 0);
    cr_counts(w, "a", 1, ALL - 1);
    cr_assert_eq(sim_bind(w, &b, "n3", NULL, NULL), -EBUSY);
    clock_set_fake(1000000 + WRITER_LEASE_MS);
    cr_assert_eq(sim_bind(w, &b, "n3", NULL, NULL), 0);
    cr_counts(w, "a", 1, 0);
    cr_counts(w, "b", 1, ALL - 2);
    finish(w);
}

Test(job, last_member_takes_the_lease_along)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, 5, ROLE_HOST);
    struct demand b = member("a", 1, 5, ROLE_XPU);
    cr_assert_eq(bind_planned(w, &a), 0);
    cr_assert_eq(bind_planned(w, &b), 0);
    cr_counts(w, "a", 2, 4);
    cr_assert_eq(sim_release(w, a.name), 0);
    cr_counts(w, "a", 1, 4);
    cr_assert_eq(sim_release(w, b.name), 0);
    cr_counts(w, "a", 0, 0);
    finish(w);
}

Test(job, last_member_may_say_another_size)
{
    struct writer *w = start(NULL);
    struct demand first = member("a", 0, 4, ROLE_HOST);
    struct demand other = member("a", 1, 1, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &first), 0);
    cr_assert_eq(bind_planned(w, &other), 0);
    cr_assert_eq(sim_release(w, first.name), 0);
    cr_counts(w, "a", 1, 2);
    cr_assert_eq(sim_release(w, other.name), 0);
    cr_counts(w, "a", 0, 0);
    finish(w);
}

Test(job, held_places_go_as_a_whole)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, 5, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &a), 0);
    cr_assert_eq(sim_release(w, "a/0"), -ENOENT, "it is bound");
    cr_assert_eq(sim_release(w, "a/3"), 0);
    cr_counts(w, "a", 1, 0);
    finish(w);
}

Test(job, pair_whose_pod_left_is_planned_anew)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, 5, ROLE_HOST);
    struct demand b = member("a", 1, 5, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &a), 0);
    cr_assert_eq(bind_planned(w, &b), 0);
    cr_assert_eq(sim_release(w, b.name), 0);
    cr_counts(w, "a", 1, 3);
    (void)snprintf(b.uid, sizeof b.uid, "another");
    cr_assert_eq(bind_planned(w, &b), 0);
    cr_counts(w, "a", 2, 3);
    finish(w);
}

Test(job, two_jobs_never_hold_halves)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, ALL / 2 + 1, ROLE_HOST);
    struct demand b = member("b", 0, ALL / 2 + 1, ROLE_HOST);
    cleanup_free char *for_a = xstrdup(planned(w, &a, NULL, 0));
    cleanup_free char *for_b = xstrdup(planned(w, &b, NULL, 0));
    struct error err;
    cr_assert_eq(sim_bind(w, &b, for_b, NULL, NULL), 0);
    cr_assert_eq(sim_bind(w, &a, for_a, NULL, &err), -EBUSY);
    cr_assert(strstr(err.text, "9 pairs") || strstr(err.text, "leased"), "%s",
              err.text);
    cr_counts(w, "a", 0, 0);
    cr_counts(w, "b", 1, ALL / 2);
    finish(w);
}

Test(job, held_place_moves_when_its_node_is_ruled_out)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, 6, ROLE_HOST);
    struct demand b = member("a", 5, 6, ROLE_HOST);
    int32_t rest[N_NODES];
    size_t n = 0;
    cr_assert_eq(bind_planned(w, &a), 0);
    cleanup_free char *held = xstrdup(planned(w, &b, NULL, 0));
    for (int i = 0; i < N_NODES; i++)
        if (strcmp(nodes[i], held) != 0)
            rest[n++] = i;
    cleanup_free char *other = xstrdup(planned(w, &b, rest, n));
    cr_assert_str_neq(other, held);
    cr_assert_eq(sim_bind(w, &b, other, NULL, NULL), 0);
    cr_counts(w, "a", 2, 4);
    finish(w);
}

/* Names that have nothing in common with the lease. */
Test(job, held_place_moves_to_other_names)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, 8, ROLE_HOST);
    struct demand b = member("a", 7, 8, ROLE_HOST);
    static const int32_t other[] = {2, 3};
    cr_assert_eq(bind_planned(w, &a), 0);
    const char *node = planned(w, &b, other, 2);
    cr_assert(node && (strcmp(node, "n2") == 0 || strcmp(node, "n3") == 0));
    cr_assert_eq(sim_bind(w, &b, node, NULL, NULL), 0);
    cr_counts(w, "a", 2, 6);
    finish(w);
}

Test(job, leases_survive_a_restart)
{
    char *dir = tmpdir_create();
    struct writer *w = start(dir);
    struct demand a = member("a", 0, 6, ROLE_HOST);
    struct demand b = member("a", 4, 6, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &a), 0);
    cleanup_free char *before = xstrdup(planned(w, &b, NULL, 0));
    clock_set_fake(2000000);
    writer_stop(w);
    w = sim_writer(dir);
    cr_counts(w, "a", 1, 5);
    cr_assert_str_eq(planned(w, &b, NULL, 0), before);
    clock_set_fake(2000000 + WRITER_LEASE_MS - 1);
    writer_sweep(w);
    cr_counts(w, "a", 1, 5);
    clock_set_fake(2000000 + WRITER_LEASE_MS);
    writer_sweep(w);
    cr_counts(w, "a", 1, 0);
    writer_stop(w);
    w = sim_writer(dir);
    cr_counts(w, "a", 1, 0);
    finish(w);
    tmpdir_remove(dir);
}

Test(job, too_large_is_refused_with_its_numbers)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, ALL + 1, ROLE_HOST);
    struct demand pair;
    struct schedule s;
    struct plan_refusal refusal;
    struct plan *plan;
    struct choice choice;
    cleanup_str struct str text = STR_INIT(1024);
    cleanup_with(snapshot) struct snapshot *now = writer_snapshot(w);
    cr_assert_eq(job_plan(NULL, now, &a, NULL, 0, NODE_NONE, &plan, &refusal),
                 -EBUSY);
    demand_pair(&a, 0, &pair);
    schedule_init_job(&s, now, &pair, &refusal);
    cr_assert_eq(schedule_choose(&s, 0, &choice), REASON_JOB_ROOM);
    schedule_brief(&s, REASON_JOB_ROOM, &text);
    cr_assert_str_eq(str_text(&text),
                     "its job needs 17 pairs; there is room for 16");
    finish(w);
}

Test(job, what_is_leased_is_said_to_be)
{
    struct writer *w = start(NULL);
    struct demand a = member("a", 0, ALL, ROLE_HOST);
    struct demand alone = sim_pod("alone", ROLE_XPU, "", 0);
    struct schedule s;
    struct choice choice;
    cr_assert_eq(bind_planned(w, &a), 0);
    cleanup_with(snapshot) struct snapshot *now = writer_snapshot(w);
    const struct allocation *bound = alloc_index_find(now->allocations, "ns",
                                                      a.name);
    schedule_init(&s, now, &alone);
    for (int i = 0; i < N_NODES; i++)
        cr_assert_eq(schedule_choose(&s, i, &choice), REASON_LEASED);
    cr_assert_not_null(bound);
    finish(w);
}

/* Anew for other candidates, and for another job. */
Test(job, memory_counts_what_was_planned)
{
    struct writer *w = start(NULL);
    struct plans *memory = plans_create();
    struct plans_counts counts;
    cleanup_with(snapshot) struct snapshot *now = writer_snapshot(w);
    static const int32_t some[] = {0};
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            struct demand fits = member("a", i, 8, ROLE_HOST);
            struct demand large = member("b", i, ALL + 1, ROLE_HOST);
            cleanup_with(plan) struct plan *p = NULL;
            cleanup_with(plan) struct plan *q = NULL;
            struct plan_refusal no;
            (void)job_plan(memory, now, &fits, NULL, 0, NODE_NONE, &p, &no);
            (void)job_plan(memory, now, &fits, some, 1, NODE_NONE, &q, &no);
            cr_expect_not_null(p);
            cr_expect_null(q);
            cr_expect_lt(
                job_plan(memory, now, &large, NULL, 0, NODE_NONE, &q, &no), 0);
        }
    plans_count(memory, &counts);
    cr_expect_eq(counts.planned, 3);
    cr_expect_eq(counts.refused[PLAN_LACK_ROOM], 2);
    cr_expect_eq(counts.refused[PLAN_LACK_TIER], 0);
    plans_destroy(memory);
    finish(w);
}

Test(job, memory_changes_no_answer)
{
    struct writer *w = start(NULL);
    struct plans *memory = plans_create();
    struct demand other = member("b", 1, 3, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &other), 0);
    cleanup_with(snapshot) struct snapshot *now = writer_snapshot(w);
    static const int32_t some[] = {0, 2, 3};
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 8; i++) {
            struct demand pod = member("a", i, 8, i % 2 ? ROLE_XPU : ROLE_HOST);
            cleanup_with(plan) struct plan *p = NULL;
            cleanup_with(plan) struct plan *q = NULL;
            struct plan_refusal no;
            const int32_t *names = round ? some : NULL;
            cr_assert_eq(
                job_plan(memory, now, &pod, names, 3, NODE_NONE, &p, &no), 0);
            cr_assert_eq(
                job_plan(NULL, now, &pod, names, 3, NODE_NONE, &q, &no), 0);
            for (uint32_t r = 0; r < 8; r++) {
                cr_assert_eq(p->places[r].node, q->places[r].node);
                cr_assert_eq(p->places[r].choice.cards,
                             q->places[r].choice.cards);
            }
        }
    plans_destroy(memory);
    finish(w);
}
