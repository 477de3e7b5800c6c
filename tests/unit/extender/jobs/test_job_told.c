#include "extender/jobs/job_told.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/jobs/ended_jobs.h"
#include "extender/state/scope.h"
#include "extender/view/known_jobs.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simstate.h"

enum { PODS_MAX = 64 };

/* A source that tells of these. */
static struct {
    struct job_pod list[PODS_MAX];
    size_t n;
    struct ended_jobs *ended;
} world;

static void each_pod(void *ctx, const struct snapshot *s,
                     const struct pods_asked *asked, job_pod_f *visit,
                     void *arg)
{
    (void)ctx;
    (void)s;
    for (size_t i = 0; i < world.n; i++)
        if (strcmp(asked->namespace, world.list[i].namespace) == 0 &&
            strcmp(asked->job, world.list[i].job) == 0 &&
            world.list[i].role != ROLE_SERVICE)
            visit(arg, &world.list[i]);
}

static struct ended_jobs *ended(void *ctx)
{
    (void)ctx;
    return world.ended;
}

static void each_job(void *ctx, const struct job_name *behind, size_t most,
                     job_name_f *visit, void *arg)
{
    struct job_name last = *behind;
    (void)ctx;
    for (size_t n = 0; n < most; n++) {
        struct job_name next = {NULL, NULL};
        unsigned states = 0;
        for (size_t i = 0; i < world.n; i++) {
            const struct job_pod *p = &world.list[i];
            const struct job_name job = {p->namespace, p->job};
            if (*p->job && p->role != ROLE_SERVICE &&
                job_name_compare(&last, &job) < 0 &&
                (!next.name || job_name_compare(&job, &next) < 0))
                next = job;
        }
        if (!next.name)
            return;
        for (size_t i = 0; i < world.n; i++) {
            const struct job_pod *p = &world.list[i];
            const struct job_name job = {p->namespace, p->job};
            if (p->role != ROLE_SERVICE && job_name_compare(&job, &next) == 0)
                states |= 1u << p->state;
        }
        visit(arg, &next, states);
        last = next;
    }
}

static const struct pod_source_ops ops = {
    .each_pod = each_pod, .each_job = each_job, .ended = ended};
static const struct pod_source source = {.ops = &ops};

/* All that is told, one after the other. */
struct list {
    struct job_told *list;
    size_t n, cap;
};

static void list_read(struct list *ret)
{
    struct jobs_told t;
    const struct job_name *name;
    *ret = (struct list){NULL, 0, 0};
    jobs_told_begin(&t, &source, NULL, &(const struct job_name){"", ""});
    while ((name = jobs_told_peek(&t))) {
        ret->list = xgrow(ret->list, ret->n, &ret->cap, sizeof *ret->list);
        struct job_told *job = &ret->list[ret->n++];
        cr_assert(jobs_told_get(&t, name, job));
        const struct known_jobs known = {.is_told = true,
                                         .pod_states = t.next_states};
        cr_assert(known_jobs_may_be(&known, job->state), "%s is %s, of %x",
                  job->name, job_state_name(job->state), t.next_states);
        jobs_told_pass(&t);
    }
    jobs_told_fini(&t);
}

static void start(void)
{
    world.n = 0;
    world.ended = ended_jobs_create();
}

static void stop(void)
{
    ended_jobs_destroy(world.ended);
}

TestSuite(job_told, .init = start, .fini = stop);

static struct job_pod *put(const char *name, const char *job, int pair,
                           enum pod_state state)
{
    struct job_pod *p = &world.list[world.n++];
    *p = (struct job_pod){.namespace = "ns",
                          .name = name,
                          .uid = name,
                          .job = job,
                          .role = strchr(name, 'x') ? ROLE_XPU : ROLE_HOST,
                          .pair = pair,
                          .size = 2,
                          .state = state,
                          .told = true,
                          .reason = "",
                          .message = ""};
    return p;
}

/* The only job there is. */
static struct job_told one(void)
{
    struct list told;
    list_read(&told);
    cr_assert_eq(told.n, 1, "%zu jobs", told.n);
    struct job_told job = told.list[0];
    free(told.list);
    return job;
}

Test(job_told, waits_for_what_its_pods_wait_for)
{
    put("a", "j", 0, POD_STATE_PENDING)->reason = "JobNotPlaced";
    struct job_pod *b = put("b", "j", 1, POD_STATE_PENDING);
    b->reason = "NoPlace";
    b->message = "fits none of 3 nodes;\nno card";
    b->submitted_s = 100;
    world.list[0].submitted_s = 90;
    struct job_told job = one();
    cr_expect_str_eq(job_state_name(job.state), "Pending");
    cr_expect_str_eq(job.reason, "NoPlace: fits none of 3 nodes; no card");
    cr_expect_str_eq(job.pod, "b");
    cr_expect_eq(job.size, 2);
    cr_expect_eq(job.submitted_s, 90);
    cr_expect_eq(job.started_s, 0);
    b->told = false; /* whoever judges says more */
    cr_expect(one().asks);
}

Test(job_told, runs_by_pairs)
{
    put("a", "j", 0, POD_STATE_RUNNING)->started_s = 7;
    put("ax", "j", 0, POD_STATE_CREATING);
    struct job_told job = one();
    cr_expect_eq(job.state, JOB_RUNNING);
    cr_expect_eq(job.running, 0, "its xPU pod does not yet");
    world.list[1].state = POD_STATE_RUNNING;
    world.list[0].ready = true;
    world.list[1].started_s = 9;
    job = one();
    cr_expect_eq(job.running, 1);
    cr_expect_eq(job.ready, 0);
    cr_expect_eq(job.started_s, 7);
    world.list[1].ready = true;
    cr_expect_eq(one().ready, 1);
}

Test(job_told, ends_with_its_host_pods)
{
    put("a", "j", 0, POD_STATE_GONE)->ended_s = 20;
    put("ax", "j", 0, POD_STATE_RUNNING);
    put("b", "j", 1, POD_STATE_RUNNING);
    cr_expect_eq(one().state, JOB_RUNNING);
    cr_expect_eq(one().ended_s, 0);
    world.list[2].state = POD_STATE_GONE;
    world.list[2].ended_s = 30;
    cr_expect_eq(one().state, JOB_SUCCEEDED);
    cr_expect_eq(one().ended_s, 30);
    world.list[2].state = POD_STATE_FAILED;
    world.list[2].reason = "Error";
    world.list[2].message = "exit code 3";
    cr_expect_eq(one().state, JOB_FAILED);
    cr_expect_str_eq(one().reason, "Error: exit code 3");
}

/* By the controller of Jobs in a cluster. */
Test(job_told, a_pod_that_was_made_anew_counts_in_its_place)
{
    struct job_pod *old = put("a", "j", 0, POD_STATE_FAILED);
    old->submitted_s = 10;
    old->reason = "Error";
    put("ax", "j", 0, POD_STATE_FAILED)->submitted_s = 11; /* its buddy */
    struct job_pod *new = put("b", "j", 0, POD_STATE_RUNNING);
    new->submitted_s = 30;
    put("c", "j", 1, POD_STATE_GONE)->submitted_s = 10;
    cr_expect_eq(one().state, JOB_RUNNING);
    cr_expect_str_eq(one().reason, "");
    new->state = POD_STATE_GONE;
    cr_expect_eq(one().state, JOB_SUCCEEDED);
    new->state = POD_STATE_FAILED;
    new->reason = "OOMKilled";
    cr_expect_eq(one().state, JOB_FAILED);
    cr_expect_str_eq(one().reason, "OOMKilled");
}

Test(job_told, what_it_does_not_know_it_does_not_say)
{
    put("a", "j", 0, POD_STATE_RUNNING)->started_s = 5;
    put("b", "j", 1, POD_STATE_RUNNING);
    cr_expect_eq(one().started_s, 0, "the other may have run before");
}

Test(job_told, other_pods_make_no_job)
{
    struct list told;
    put("a", "", 0, POD_STATE_RUNNING);
    put("b", "s", 0, POD_STATE_RUNNING)->role = ROLE_SERVICE;
    list_read(&told);
    cr_expect_eq(told.n, 0);
    free(told.list);
}

Test(job_told, of_others_is_not_told)
{
    static const char *const names[] = {"ns", "other"};
    const struct job_name name = {"ns", "j"};
    cleanup_with(snapshot) struct snapshot *s = simfleet_create(1, 1);
    struct job_told job;
    put("a", "j", 0, POD_STATE_RUNNING);
    for (size_t i = 0; i < 2; i++) {
        cleanup_with(scope) struct scope *scope = scope_create(&names[i], 1);
        cleanup_with(snapshot) struct snapshot *seen = snapshot_scoped(s, scope,
                                                                       NULL);
        struct jobs_told t;
        cr_expect_eq(job_told_read(&source, seen, &name, &job), i == 0);
        jobs_told_begin(&t, &source, seen, &(const struct job_name){"", ""});
        cr_expect_eq(jobs_told_peek(&t) != NULL, i == 0);
        cr_expect_eq(jobs_told_get(&t, &name, &job), i == 0);
        jobs_told_fini(&t);
    }
}

Test(job_told, a_long_reason_is_cut_between_letters)
{
    char long_text[2 * JOB_REASON_MAX], text[JOB_REASON_MAX];
    for (size_t shift = 0; shift < 2; shift++) {
        memset(long_text, 'a', sizeof long_text);
        for (size_t i = shift; i + 2 < sizeof long_text; i += 2)
            memcpy(long_text + i, "ä", 2);
        long_text[sizeof long_text - 1] = '\0';
        job_reason("Word", long_text, text);
        size_t n = strlen(text);
        cr_assert_lt(n, sizeof text);
        cr_expect_str_eq(text + n - 3, "…");
        cr_expect_eq((text[n - 4] & 0xc0) == 0xc0, false, "half a letter");
    }
}

/* --- those that are gone --------------------------------------------------- */

static void go(size_t i, int64_t now_s)
{
    ended_jobs_add(world.ended, &world.list[i], now_s);
}

Test(job_told, what_is_gone_is_kept_for_a_while)
{
    const int64_t now_s = clock_wall_s();
    put("a", "j", 0, POD_STATE_GONE)->ended_s = now_s - 5;
    put("ax", "j", 0, POD_STATE_STOPPING); /* ended with its host pod */
    go(1, now_s);
    go(0, now_s);
    world.n = 0;
    struct job_told job = one();
    cr_expect(job.gone);
    cr_expect_eq(job.state, JOB_SUCCEEDED);
    cr_expect_str_eq(job.reason, "");
    cr_expect_eq(job.ended_s, now_s - 5);
    put("a", "j", 0, POD_STATE_PENDING);
    cr_expect_not(one().gone, "there is a new one of that name");
    world.n = 0;
    clock_set_wall_ahead(ENDED_JOBS_S + 60);
    struct list told;
    list_read(&told);
    cr_expect_eq(told.n, 0);
    free(told.list);
    clock_set_wall_ahead(0);
}

Test(job_told, what_was_deleted_before_its_end_has_failed)
{
    const int64_t now_s = clock_wall_s();
    put("a", "j", 0, POD_STATE_STOPPING)->submitted_s = now_s - 50;
    go(0, now_s - 10);
    world.list[0].state = POD_STATE_GONE;
    world.list[0].submitted_s = now_s - 5; /* another job of that name */
    cr_expect_eq(one().state, JOB_SUCCEEDED);
    world.n = 0;
    struct job_told job = one();
    cr_expect_eq(job.state, JOB_FAILED);
    cr_expect_str_eq(job.reason, "Deleted: before it had ended");
    cr_expect_eq(job.ended_s, now_s - 10);
    world.n = 1;
    go(0, now_s);
    world.n = 0;
    cr_expect_eq(one().state, JOB_SUCCEEDED);
    cr_expect_str_eq(one().reason, "");
}

Test(job_told, the_oldest_makes_room)
{
    const int64_t now_s = clock_wall_s();
    char name[16];
    struct list told;
    struct job_pod *p = put("a", name, 0, POD_STATE_GONE);
    for (int i = 0; i < ENDED_JOBS_MAX + 3; i++) {
        (void)snprintf(name, sizeof name, "j%04d", i);
        ended_jobs_add(world.ended, p, now_s - ENDED_JOBS_MAX + i);
    }
    world.n = 0;
    list_read(&told);
    cr_assert_eq(told.n, ENDED_JOBS_MAX);
    cr_expect_str_eq(told.list[0].name, "j0003");
    free(told.list);
    struct job_told one_of;
    const struct job_name known = {"ns", "j0500"}, other = {"other", "j0500"};
    cr_expect(job_told_read(&source, NULL, &known, &one_of));
    cr_expect_not(job_told_read(&source, NULL, &other, &one_of));
}

/* In the n-th of all orders. */
static void go_in_order(unsigned n, int64_t now_s)
{
    bool gone[PODS_MAX] = {false};
    for (size_t left = world.n; left > 0; left--) {
        size_t i = 0, skip = n % left;
        n /= (unsigned)left;
        while (gone[i] || skip-- > 0)
            i++;
        gone[i] = true;
        go(i, now_s);
    }
    world.n = 0;
}

/* A Job with a backoffLimit is deleted: its pods go in any order. */
Test(job_told, what_was_made_anew_ends_as_its_last_try)
{
    enum { ORDERS = 2 * 3 * 4 * 5 };
    for (unsigned n = 0; n < 3 * ORDERS; n++) {
        const int64_t now_s = clock_wall_s();
        struct job_pod *old = put("a", "j", 0, POD_STATE_FAILED);
        old->submitted_s = now_s - 30;
        old->reason = "Error";
        put("ax", "j", 0, POD_STATE_FAILED)->submitted_s = now_s - 29;
        struct job_pod *new = put("b", "j", 0, POD_STATE_GONE);
        new->submitted_s = now_s - 10;
        put("bx", "j", 0, POD_STATE_STOPPING)->submitted_s = now_s - 10;
        struct job_pod *other = put("c", "j", 1, POD_STATE_GONE);
        other->submitted_s = now_s - 30;
        if (n / ORDERS == 1) {
            new->state = POD_STATE_FAILED;
            new->reason = "OOMKilled";
        } else if (n / ORDERS == 2) {
            new->state = POD_STATE_RUNNING;
        }
        go_in_order(n % ORDERS, now_s);
        struct job_told job = one();
        cr_assert_eq(job.state, n / ORDERS == 0 ? JOB_SUCCEEDED : JOB_FAILED,
                     "%u", n);
        cr_assert_str_eq(job.reason, n / ORDERS == 0 ? ""
                                     : n / ORDERS == 1
                                         ? "OOMKilled"
                                         : "Deleted: before it had ended");
        stop();
        start();
    }
}

Test(job_told, pairs_have_a_limit_too)
{
    const int64_t now_s = clock_wall_s();
    struct job_pod *p = put("a", "j", 0, POD_STATE_GONE);
    p->size = DEMAND_SIZE_MAX;
    for (int i = 0; i <= ENDED_PAIRS_MAX; i++) {
        static const char *const names[] = {"j0", "j1", "j2", "j3", "j4"};
        p->job = names[i / DEMAND_SIZE_MAX];
        p->pair = i % DEMAND_SIZE_MAX;
        ended_jobs_add(world.ended, p, now_s + i / DEMAND_SIZE_MAX);
    }
    struct list told;
    world.n = 0;
    list_read(&told);
    cr_assert_eq(told.n, 4);
    cr_expect_str_eq(told.list[0].name, "j1", "the oldest made room");
    free(told.list);
}

/* --- any pods ----------------------------------------------------------------- */

/* What holds of the jobs of any pods in any order. */
static void check(const struct job_told *job)
{
    size_t pods = 0, hosts = 0, over = 0, hosts_over = 0, failed = 0;
    for (size_t i = 0; i < world.n; i++) {
        const struct job_pod *p = &world.list[i];
        bool is_over = p->state == POD_STATE_GONE ||
                       p->state == POD_STATE_FAILED;
        if (strcmp(p->job, job->name) != 0)
            continue;
        pods++;
        over += is_over;
        hosts += p->role == ROLE_HOST;
        hosts_over += p->role == ROLE_HOST && is_over;
        failed += p->state == POD_STATE_FAILED;
    }
    bool ended = job->state == JOB_SUCCEEDED || job->state == JOB_FAILED;
    cr_assert_gt(pods, 0);
    cr_assert_leq(job->ready, job->running);
    cr_assert_leq(job->running, job->size);
    cr_assert(over < pods || ended, "all is over");
    cr_assert(!ended || hosts == 0 || hosts_over == hosts);
    cr_assert(!ended || (job->state == JOB_FAILED) == (failed > 0));
    cr_assert(!ended || job->running == 0);
    cr_assert(job->running == 0 || job->state == JOB_RUNNING);
    cr_assert(job->state != JOB_SUCCEEDED || !*job->reason);
}

Test(job_told, holds_for_any_pods)
{
    static const char *const jobs[] = {"j", "k", ""};
    static char names[PODS_MAX][8];
    uint64_t random = 16;
    for (int round = 0; round < 2000; round++) {
        struct list told;
        world.n = 0;
        size_t n = sim_random(&random) % 12;
        for (size_t i = 0; i < n; i++) {
            bool xpu = sim_random(&random) % 2;
            (void)snprintf(names[i], sizeof names[i], "%s%zu", xpu ? "x" : "h",
                           i);
            struct job_pod *p =
                put(names[i], jobs[sim_random(&random) % 3],
                    (int)(sim_random(&random) % 3),
                    (enum pod_state)(sim_random(&random) % POD_STATES));
            p->ready = sim_random(&random) % 2;
            p->reason = sim_random(&random) % 2 ? "Reason" : "";
        }
        list_read(&told);
        cr_assert_leq(told.n, 2);
        for (size_t i = 0; i < told.n; i++)
            check(&told.list[i]);
        free(told.list);
    }
}
