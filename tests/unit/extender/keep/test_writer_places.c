/* Places of a job that are held over several batches, and the plan of filter
 * that a bind uses. */
#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/keep/writer.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/file_limit.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum { N_NODES = 6, N_CARDS = 4, SIZE = 16, PIECE = 3, OPS_MAX = 4 };

struct world {
    struct writer *w;
    struct plans *plans;
};

static struct world start_in(const char *dir, size_t piece)
{
    struct world x = {.plans = plans_create()};
    struct error err = {0};
    const struct writer_config config = {
        .state_dir = dir, .fresh_ms = 15000, .piece = piece, .plans = x.plans};
    log_set_level(LOG_ERROR);
    clock_set_fake(1000000);
    cr_assert_eq(writer_start(&config, &x.w, &err), 0, "%s", err.text);
    for (int i = 0; i < N_NODES; i++) {
        char node[8];
        (void)snprintf(node, sizeof node, "n%d", i);
        cr_assert_eq(sim_publish(x.w, node, N_CARDS, "boot", 1), 0);
    }
    return x;
}

static struct world start(size_t piece)
{
    return start_in(NULL, piece);
}

static void end(struct world *x)
{
    writer_stop(x->w);
    plans_destroy(x->plans);
    clock_set_fake(-1);
}

static struct demand member(int pair)
{
    char name[16];
    (void)snprintf(name, sizeof name, "m%d", pair);
    struct demand d = sim_member(name, ROLE_HOST, "job", pair, SIZE);
    d.exclusive = true;
    return d;
}

/* Where filter, which is told the names of all nodes, plans a rank. */
static void plan_node(struct world *x, int rank, char ret_node[8])
{
    struct plan_refusal refusal;
    struct demand pod = member(0);
    cleanup_with(plan) struct plan *plan = NULL;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x->w);
    cleanup_free int32_t *all = xcalloc(s->n_nodes, sizeof *all);
    for (size_t i = 0; i < s->n_nodes; i++)
        all[i] = (int32_t)i;
    cr_assert_eq(job_plan(x->plans, s, &pod, all, s->n_nodes, NODE_NONE, &plan,
                          &refusal),
                 0);
    size_t at = (size_t)plan->places[rank].node;
    (void)snprintf(ret_node, 8, "%s", snapshot_node(s, at)->name);
}

/* A node that the plan does not use. */
static void spare_node(struct world *x, char ret_node[8])
{
    char used[8];
    bool is_used = true;
    for (int i = 0; is_used && i < N_NODES; i++) {
        is_used = false;
        (void)snprintf(ret_node, 8, "n%d", i);
        for (int rank = 0; rank < SIZE && !is_used; rank++) {
            plan_node(x, rank, used);
            is_used = strcmp(used, ret_node) == 0;
        }
    }
    cr_assert(!is_used);
}

/* Operations that begin in one batch, and the order in which they end. */
struct group {
    struct writer *w;
    struct writer_op ops[OPS_MAX];
    size_t n, order[OPS_MAX], n_done;
    sem_t done;
    struct demand first; /* of add_first() */
    char node[8];
};

static void on_done(struct writer_op *op)
{
    struct group *g = op->ctx;
    g->order[g->n_done++] = (size_t)(op - g->ops);
    (void)sem_post(&g->done); /* never overflows */
}

static void post_all(void *ctx)
{
    struct group *g = ctx;
    for (size_t i = 0; i < g->n; i++) {
        g->ops[i].done = on_done;
        g->ops[i].ctx = g;
        writer_post(g->w, &g->ops[i]);
    }
}

static void run(struct group *g)
{
    struct writer_op call = {.kind = WRITER_CALL, .call = post_all, .ctx = g};
    (void)sem_init(&g->done, 0, 0); /* cannot fail with this value */
    (void)writer_run(g->w, &call);  /* a call has no result */
    for (size_t i = 0; i < g->n; i++)
        while (sem_wait(&g->done) != 0)
            ;
    for (size_t i = 0; i < g->n; i++)
        str_fini(&g->ops[i].out);
}

static void add_bind(struct group *g, const struct demand *pod,
                     const char *node)
{
    g->ops[g->n++] = (struct writer_op){.kind = WRITER_BIND,
                                        .node = node,
                                        .demand = pod,
                                        .out = STR_INIT(1 << 20)};
}

/* The bind of pair 0 where filter plans it. */
static void add_first(struct group *g, struct world *x)
{
    g->first = member(0);
    plan_node(x, 0, g->node);
    add_bind(g, &g->first, g->node);
}

/* All allocations, one a line. */
static char *dump(struct writer *w)
{
    size_t n;
    struct str out = STR_INIT(1 << 20);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++) {
        allocation_encode(list[i], &out);
        str_add_c(&out, '\n');
    }
    return str_steal(&out);
}

static size_t count(struct writer *w)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    return alloc_index_size(s->allocations);
}

/* Binds a pair of the job where filter plans it. */
static void bind_planned(struct world *x, int pair)
{
    char node[8];
    struct error err = {0};
    struct demand pod = member(pair);
    plan_node(x, pair, node);
    cr_assert_eq(sim_bind(x->w, &pod, node, NULL, &err), 0, "%s", err.text);
}

Test(writer_places, are_the_same_in_pieces)
{
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        struct world x = start(i ? PIECE : SIZE);
        bind_planned(&x, 0);
        cr_expect_eq(count(x.w), SIZE);
        texts[i] = dump(x.w);
        end(&x);
    }
    cr_expect_str_eq(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

Test(writer_places, others_come_between)
{
    struct world x = start(PIECE);
    struct demand second = member(1);
    struct demand other = sim_pod("other", ROLE_SERVICE, "", 0);
    struct group g = {.w = x.w};
    add_first(&g, &x);
    add_bind(&g, &second, g.node);
    add_bind(&g, &other, g.node);
    g.ops[g.n++] = (struct writer_op){
        .kind = WRITER_RELEASE, .namespace = "ns", .pod = "m0"};
    run(&g);
    cr_expect_eq(g.ops[2].result, -EBUSY, "exclusive cards are held: %d",
                 g.ops[2].result);
    cr_expect_eq(g.order[0], 2, "it waits for nobody");
    cr_expect_eq(g.order[1], 0, "the job's first bind");
    cr_expect_eq(g.ops[0].result, 0, "%s", g.ops[0].error.text);
    cr_expect_eq(g.ops[1].result, 0, "%s", g.ops[1].error.text);
    cr_expect_eq(g.ops[3].result, 0, "after its bind: %s", g.ops[3].error.text);
    cr_expect_eq(count(x.w), SIZE - 1, "the place of m0 alone is free");
    end(&x);
}

Test(writer_places, are_given_back_when_one_is_lost)
{
    char last[8];
    struct world x = start(PIECE);
    struct demand other = sim_pod("other", ROLE_HOST, "", 0);
    struct group g = {.w = x.w};
    other.cards = other.pair_cards = N_CARDS;
    add_first(&g, &x);
    plan_node(&x, SIZE - 1, last);
    cr_assert_str_neq(g.node, last);
    add_bind(&g, &other, last);
    run(&g);
    cr_expect_eq(g.ops[1].result, 0, "%s", g.ops[1].error.text);
    cr_expect_eq(g.ops[0].result, -EBUSY);
    cr_expect(strstr(g.ops[0].error.text, last), "%s", g.ops[0].error.text);
    cr_expect_eq(count(x.w), 1, "the other's");

    bind_planned(&x, 0);
    cr_expect_eq(count(x.w), SIZE + 1);
    end(&x);
}

Test(writer_places, are_given_back_by_who_leads_no_more)
{
    struct world x = start(PIECE);
    struct group g = {.w = x.w};
    add_first(&g, &x);
    g.ops[g.n++] = (struct writer_op){.kind = WRITER_FOLLOW};
    run(&g);
    cr_expect_eq(g.ops[0].result, -EBUSY);
    cr_expect(strstr(g.ops[0].error.text, "leads no more"));
    cr_expect_eq(count(x.w), 0);
    end(&x);
}

Test(writer_places, end_when_others_bind_the_pod)
{
    struct world x = start(PIECE);
    struct group g = {.w = x.w};
    add_first(&g, &x);
    struct allocation *a = allocation_create(&g.first, g.node);
    a->number = 1;
    g.ops[g.n++] = (struct writer_op){.kind = WRITER_ADOPT, .allocation = a};
    run(&g);
    allocation_unref(a);
    cr_expect_eq(g.ops[1].result, 0, "%s", g.ops[1].error.text);
    cr_expect_eq(g.ops[0].result, 0, "it is bound there: %s",
                 g.ops[0].error.text);
    cr_expect_not(g.ops[0].created);
    cr_expect_lt(count(x.w), SIZE, "the rest was not held");

    struct error err = {0};
    struct demand other = sim_member("o0", ROLE_HOST, "o", 0, N_CARDS);
    cr_expect_eq(sim_release(x.w, "m0"), 0);
    cr_expect_eq(count(x.w), 0, "with the last bound pod");
    cr_expect_eq(sim_bind(x.w, &other, g.node, NULL, &err), 0,
                 "nobody waits for it: %s", err.text);
    end(&x);
}

Test(writer_places, two_large_jobs_get_theirs_in_turn)
{
    char node[8];
    struct world x = start(1);
    struct demand pods[] = {
        sim_member("a0", ROLE_HOST, "a", 0, N_CARDS),
        sim_member("b0", ROLE_HOST, "b", 0, N_CARDS),
    };
    struct group g = {.w = x.w};
    plan_node(&x, 0, node);
    add_bind(&g, &pods[0], "n0");
    add_bind(&g, &pods[1], "n1");
    run(&g);
    cr_expect_eq(g.ops[0].result, 0, "%s", g.ops[0].error.text);
    cr_expect_eq(g.ops[1].result, 0, "%s", g.ops[1].error.text);
    cr_expect_eq(g.order[0], 0);
    cr_expect_eq(count(x.w), 2 * N_CARDS);
    end(&x);
}

Test(writer_places, of_all_pods_are_released_at_once)
{
    char names[SIZE][16];
    struct world x = start(PIECE);
    struct writer_op ops[SIZE];
    for (int i = 0; i < SIZE; i++) {
        struct demand pod = member(i);
        if (i < SIZE - PIECE) /* the others have held places alone */
            bind_planned(&x, i);
        memcpy(names[i], pod.name, sizeof names[i]);
        ops[i] = (struct writer_op){
            .kind = WRITER_RELEASE, .namespace = "ns", .pod = names[i]};
    }
    cr_assert_eq(count(x.w), SIZE);
    cleanup_with(snapshot) struct snapshot *before = writer_snapshot(x.w);
    cr_expect(alloc_index_has_bound(before->allocations, "ns", "job"));
    writer_run_all(x.w, ops, SIZE);
    for (int i = 0; i < SIZE; i++)
        cr_expect_eq(ops[i].result, i < SIZE - PIECE ? 0 : -ENOENT, "%d", i);
    cleanup_with(snapshot) struct snapshot *after = writer_snapshot(x.w);
    cr_expect_eq(after->number, before->number + 1, "in one transaction");
    cr_expect_eq(count(x.w), 0, "what was held went with the last of them");
    end(&x);
}

/* How many allocations there are after each change. */
struct seen {
    struct writer *w;
    size_t last, most; /* that went at once */
};

static void see(void *ctx)
{
    struct seen *seen = ctx;
    size_t now = count(seen->w);
    if (now < seen->last && seen->last - now > seen->most)
        seen->most = seen->last - now;
    seen->last = now;
}

static void sweep_until(struct writer *w, size_t n)
{
    for (int i = 0; i < SIZE && count(w) > n; i++)
        writer_sweep(w);
    cr_expect_eq(count(w), n);
}

Test(writer_places, of_a_lease_end_in_pieces)
{
    struct world x = start(PIECE);
    bind_planned(&x, 0);
    struct seen seen = {.w = x.w, .last = count(x.w)};
    cr_assert_eq(seen.last, SIZE);
    writer_watch(x.w, see, &seen);
    clock_set_fake(1000000 + WRITER_LEASE_MS + 1);
    sweep_until(x.w, 1);
    writer_unwatch(x.w, &seen);
    cr_expect_eq(seen.most, PIECE, "%zu at once", seen.most);
    int64_t until_ms;
    writer_sweep(x.w);
    cr_expect_not(writer_lease_end(x.w, "ns/job", &until_ms));
    end(&x);
}

Test(writer_places, end_in_pieces_behind_the_last_bound_pod)
{
    struct world x = start(PIECE);
    bind_planned(&x, 0);
    struct seen seen = {.w = x.w, .last = count(x.w)};
    writer_watch(x.w, see, &seen);
    cr_expect_eq(sim_release(x.w, "m0"), 0);
    sweep_until(x.w, 0); /* no lease has to run out for it */
    writer_unwatch(x.w, &seen);
    cr_expect_eq(seen.most, PIECE + 1, "%zu at once", seen.most);
    end(&x);
}

/* The release of the last bound pod fails: it is still bound, and so all that
 * is held for its job stays. */
Test(writer_places, stay_when_a_release_cannot_be_stored)
{
    char node[8];
    struct error err = {0};
    char *dir = tmpdir_create();
    struct world x = start_in(dir, PIECE);
    struct demand pod = member(0);
    int64_t before_ms = 0, after_ms = 0;
    plan_node(&x, 0, node);
    cr_assert_eq(sim_bind(x.w, &pod, node, NULL, &err), 0, "%s", err.text);
    cr_assert(writer_lease_end(x.w, "ns/job", &before_ms));
    log_set_level(LOG_ERROR + 1);
    file_limit_set(dir);
    cr_expect_lt(sim_release(x.w, "m0"), 0);
    file_limit_lift();
    for (int i = 0; i < SIZE; i++)
        writer_sweep(x.w);
    cr_expect_eq(count(x.w), SIZE);
    cr_expect(writer_lease_end(x.w, "ns/job", &after_ms));
    cr_expect_eq(after_ms, before_ms);
    cr_expect_eq(sim_release(x.w, "m0"), 0);
    sweep_until(x.w, 0);
    end(&x);
    tmpdir_remove(dir);
}

/* Binds the first `n` pairs of the job. */
static void bind_some(struct world *x, int n)
{
    for (int i = 0; i < n; i++)
        bind_planned(x, i);
    cr_assert_eq(count(x->w), SIZE);
}

static uint64_t newest(struct writer *w, const char *pod)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", pod);
    cr_assert(a, "%s", pod);
    return a->number;
}

static const struct job_name the_job = {"ns", "job"};

Test(writer_places, of_a_job_are_released_in_pieces)
{
    struct world x = start(PIECE);
    bind_some(&x, SIZE / 2);
    struct seen seen = {.w = x.w, .last = count(x.w)};
    writer_watch(x.w, see, &seen);
    struct writer_op op = {
        .kind = WRITER_RELEASE_JOB, .job = &the_job, .number = UINT64_MAX};
    cr_expect_eq(writer_run(x.w, &op), 0, "%s", op.error.text);
    writer_unwatch(x.w, &seen);
    cr_expect_eq(op.n_out, SIZE, "%zu", op.n_out);
    cr_expect_eq(count(x.w), 0);
    cr_expect_geq(seen.most, PIECE);
    cr_expect_leq(seen.most, 2 * PIECE, "%zu at once", seen.most);
    cr_expect_eq(writer_run(x.w, &op), -ENOENT);
    cr_expect_eq(op.n_out, 0);
    end(&x);
}

Test(writer_places, of_a_job_in_one_piece_are_one_transaction)
{
    struct world x = start(SIZE + 1);
    bind_some(&x, SIZE / 2);
    cleanup_with(snapshot) struct snapshot *before = writer_snapshot(x.w);
    struct writer_op op = {
        .kind = WRITER_RELEASE_JOB, .job = &the_job, .number = UINT64_MAX};
    cr_expect_eq(writer_run(x.w, &op), 0, "%s", op.error.text);
    cleanup_with(snapshot) struct snapshot *after = writer_snapshot(x.w);
    cr_expect_eq(after->number, before->number + 1);
    cr_expect_eq(count(x.w), 0);
    end(&x);
}

Test(writer_places, of_pods_that_were_bound_later_stay)
{
    struct world x = start(PIECE);
    bind_some(&x, SIZE);
    struct writer_op op = {.kind = WRITER_RELEASE_JOB,
                           .job = &the_job,
                           .number = newest(x.w, "m9")};
    cr_expect_eq(writer_run(x.w, &op), -EBUSY);
    cr_expect(strstr(op.error.text, "bound meanwhile"), "%s", op.error.text);
    cr_expect_eq(op.n_out, 10, "%zu", op.n_out);
    cr_expect_eq(count(x.w), SIZE - 10);
    (void)newest(x.w, "m10"); /* is there */
    end(&x);
}

Test(writer_places, of_pods_that_a_node_was_told_of_stay)
{
    static const char *const unfed[] = {"uid-m2", "uid-m7"};
    struct world x = start(PIECE);
    bind_some(&x, SIZE);
    char node[8];
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x.w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", "m7");
    cr_assert_str_eq(a->demand.uid, unfed[1]);
    (void)snprintf(node, sizeof node, "%s", a->node);
    const struct allocation *m2 = alloc_index_find(s->allocations, "ns", "m2");
    size_t stays = 1 + (strcmp(m2->node, node) == 0);
    struct writer_op fed = {
        .kind = WRITER_FED, .node = node, .number = a->number};
    cr_assert_eq(writer_run(x.w, &fed), 0);
    struct writer_op op = {.kind = WRITER_RELEASE_JOB,
                           .job = &the_job,
                           .number = UINT64_MAX,
                           .unfed_uids = unfed,
                           .n_unfed = ARRAY_LEN(unfed)};
    cr_expect_eq(writer_run(x.w, &op), -EBUSY);
    cr_expect(strstr(op.error.text, node), "%s", op.error.text);
    cr_expect_eq(count(x.w), stays);
    (void)newest(x.w, "m7"); /* is there */
    end(&x);
}

Test(writer_places, of_a_job_are_released_when_all_are_there)
{
    struct world x = start(PIECE);
    struct group g = {.w = x.w};
    add_first(&g, &x);
    g.ops[g.n++] = (struct writer_op){
        .kind = WRITER_RELEASE_JOB, .job = &the_job, .number = UINT64_MAX};
    run(&g);
    cr_expect_eq(g.ops[0].result, 0, "%s", g.ops[0].error.text);
    cr_expect_eq(g.ops[1].result, 0, "%s", g.ops[1].error.text);
    cr_expect_eq(g.order[0], 0, "it waits for the bind");
    cr_expect_eq(g.ops[1].n_out, SIZE);
    cr_expect_eq(count(x.w), 0);
    end(&x);
}

static uint64_t planned(struct world *x)
{
    struct plans_counts counts;
    plans_count(x->plans, &counts);
    return counts.planned;
}

Test(writer_places, of_filters_plan_are_used_while_they_are_free)
{
    char node[8], last[8], spare[8];
    struct error err = {0};
    struct world x = start(SIZE);
    struct demand pod = member(0);
    cr_assert_eq(sim_publish(x.w, "another", N_CARDS, "boot", 1), 0);
    cr_assert_eq(sim_withdraw(x.w, "another"), 0);
    plan_node(&x, 0, node); /* other nodes came and went */
    spare_node(&x, spare);
    uint64_t before = planned(&x);

    struct demand busy = sim_pod("busy", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(x.w, &busy, spare, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(sim_bind(x.w, &pod, node, NULL, &err), 0, "%s", err.text);
    cr_expect_eq(planned(&x), before, "the plan was not made again");
    cr_assert_eq(sim_release(x.w, "m0"), 0);

    plan_node(&x, 0, node);
    plan_node(&x, SIZE - 1, last);
    before = planned(&x);
    busy = sim_pod("other", ROLE_HOST, "", 0);
    busy.cards = busy.pair_cards = N_CARDS;
    cr_assert_eq(sim_bind(x.w, &busy, last, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(sim_bind(x.w, &pod, node, NULL, &err), 0, "%s", err.text);
    cr_expect_eq(planned(&x), before + 1, "one of its places was taken");
    cr_expect_eq(count(x.w), SIZE + 2);
    end(&x);
}
