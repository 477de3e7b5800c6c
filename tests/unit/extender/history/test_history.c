/* The history of a writer: what it says of what happened, over restarts, full
 * disks and damage. */
#include "extender/history/history.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "extender/history/history_view.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/smalldisk.h"
#include "tests/lib/tmpdir.h"

static char *dir, *past;
static struct writer *writer;
static struct history *history;

static int64_t mib;

static void begin(void)
{
    struct error err = {0};
    const struct history_config c = {
        .dir = past, .days = 30, .mib = mib, .writer = writer};
    cr_assert_eq(history_start(&c, &history, &err), 0, "%s", err.text);
}

static void end(void)
{
    history_stop(history);
    history_destroy(history);
    history = NULL;
}

static void set_up(void)
{
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
    past = xasprintf("%s/history", dir);
    writer = sim_writer(NULL);
    mib = 1024;
    begin();
}

static void tear_down(void)
{
    history_stop(history);
    writer_stop(writer);
    history_destroy(history);
    tmpdir_remove(dir);
    free(past);
}

TestSuite(history, .init = set_up, .fini = tear_down);

/* --- questions ------------------------------------------------------------ */

struct asked {
    struct history_question question; /* first */
    struct history_filter filter;
    const char *node; /* or what a node was at `ms` */
    int64_t ms;
    struct str *out;
    int result;
    sem_t done;
};

static void add_line(void *ctx, const struct history_event *e)
{
    str_addf(ctx, "%s %s %s x%u: %s\n", history_kind_name(e->kind), e->object,
             history_reason_name(e->reason), e->count, e->message);
}

static void answer(struct history_question *q, struct history_reader *r)
{
    struct asked *a = (struct asked *)q;
    uint64_t next;
    a->result = !r        ? -q->error.code
                : a->node ? history_view_object(r, HISTORY_NODE, a->node, a->ms,
                                                a->out, &q->error)
                          : history_read_events(r, &a->filter, add_line, a->out,
                                                &next, &q->error);
    (void)sem_post(&a->done);
}

static int ask(struct asked *a)
{
    history_settle(history);
    str_reset(a->out);
    a->question.answer = answer;
    cr_assert_eq(sem_init(&a->done, 0, 0), 0);
    cr_assert_eq(history_ask(history, &a->question), 0);
    while (sem_wait(&a->done) != 0)
        ;
    (void)sem_destroy(&a->done);
    return a->result;
}

/* All events of an object, or all there are, a line each. */
static int events_of(const char *object, struct str *out)
{
    struct asked a = {.filter = {.kind = HISTORY_KINDS,
                                 .reason = HISTORY_REASONS,
                                 .object = object,
                                 .limit = HISTORY_PAGE_MAX},
                      .out = out};
    return ask(&a);
}

static void expect_events(const char *object, const char *lines)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    cr_expect_eq(events_of(object, &out), 0);
    cr_expect_str_eq(str_text(&out), lines);
}

static void refuse(const char *pod, int64_t ms, const char *why)
{
    history_post(history, &(struct history_event){.time_ms = ms,
                                                  .kind = HISTORY_POD,
                                                  .reason = HISTORY_REFUSED,
                                                  .object = pod,
                                                  .pair = -1,
                                                  .message = why});
}

static void note(const char *pod, const char *text)
{
    history_post(history, &(struct history_event){.kind = HISTORY_POD,
                                                  .reason = HISTORY_DEGRADED,
                                                  .object = pod,
                                                  .pair = -1,
                                                  .message = text});
}

static int64_t now_ms(void)
{
    struct timespec t;
    cr_assert_eq(clock_gettime(CLOCK_REALTIME, &t), 0);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void bind_pod(const char *pod, const char *node)
{
    struct demand d = sim_pod(pod, ROLE_HOST, "", 0);
    struct error err = {0};
    cr_assert_eq(sim_bind(writer, &d, node, NULL, &err), 0, "%s", err.text);
}

/* --- what happens --------------------------------------------------------- */

Test(history, tells_of_nodes_and_pods_that_come_and_go)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    cr_assert_eq(sim_publish(writer, "n1", 4, "boot", 1), 0);
    bind_pod("p1", "n1");
    cr_assert_eq(sim_release(writer, "p1"), 0);
    cr_assert_eq(sim_withdraw(writer, "n1"), 0);
    expect_events("n1", "node n1 NodeReady x1: \n"
                        "node n1 NodeGone x1: nothing is published for it any "
                        "more\n");
    cr_expect_eq(events_of("ns/p1", &out), 0);
    cr_expect(strstr(str_text(&out), "pod ns/p1 Bound x1: card "), "%s",
              str_text(&out));
    cr_expect(strstr(str_text(&out), "pod ns/p1 Released x1: its place"), "%s",
              str_text(&out));
    cr_expect_eq(history_state(history).lost, 0);
}

Test(history, tells_of_a_job_that_is_planned_bound_and_ended)
{
    cr_assert_eq(sim_publish(writer, "n1", 4, "boot", 1), 0);
    for (int i = 0; i < 2; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "m%d", i);
        struct demand d = sim_member(name, ROLE_HOST, "ring", i, 2);
        cr_assert_eq(sim_bind(writer, &d, "n1", NULL, NULL), 0);
    }
    cr_assert_eq(sim_release(writer, "m0"), 0);
    cr_assert_eq(sim_release(writer, "m1"), 0);
    expect_events("ns/ring",
                  "job ns/ring Planned x1: places for 2 of 2 pairs are held\n"
                  "job ns/ring Bound x1: all of its 2 pairs have a place\n"
                  "job ns/ring Ended x1: none of its pods has a place any "
                  "more\n");
}

/* Places come and go in several transactions. */
Test(history, tells_of_a_large_job_as_of_a_small_one)
{
    struct demand d = sim_member("m0", ROLE_HOST, "ring", 0, 12);
    d.exclusive = true;
    end();
    writer_stop(writer);
    writer = sim_writer_piece(NULL, 2);
    begin();
    for (int i = 0; i < 3; i++) {
        char node[8];
        (void)snprintf(node, sizeof node, "n%d", i);
        cr_assert_eq(sim_publish(writer, node, 4, "boot", 1), 0);
    }
    cleanup_with(snapshot) struct snapshot *empty = writer_snapshot(writer);
    cr_assert_eq(sim_bind(writer, &d, "n1", NULL, NULL), 0);
    cleanup_with(snapshot) struct snapshot *full = writer_snapshot(writer);
    cr_assert_gt(full->number, empty->number + 1, "in pieces");
    cr_assert_eq(sim_release(writer, "m0"), 0);
    for (int i = 0; i < 12; i++)
        writer_sweep(writer);
    expect_events("ns/ring",
                  "job ns/ring Planned x1: places for 12 of 12 pairs are held\n"
                  "job ns/ring Released x1: the places held for 11 pairs were "
                  "given back\n"
                  "job ns/ring Ended x1: none of its pods has a place any "
                  "more\n");
}

Test(history, says_what_a_node_was_and_who_was_there)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    struct asked a = {.node = "n1", .out = &out, .ms = INT64_MAX / 2};
    cr_assert_eq(sim_publish(writer, "n1", 2, "boot", 1), 0);
    bind_pod("p1", "n1");
    cr_expect_eq(ask(&a), 0);
    cr_expect(strstr(str_text(&out), "\"status\":\"ready\""), "%s",
              str_text(&out));
    cr_expect(strstr(str_text(&out), "\"pods\":[\"ns/p1\"]"), "%s",
              str_text(&out));
    a.ms = 1;
    cr_expect_eq(ask(&a), 0);
    cr_expect(strstr(str_text(&out), "\"status\":\"unknown\""), "%s",
              str_text(&out));
    a.node = "n11";
    cr_expect_eq(ask(&a), -ENOENT);
    cr_expect(strstr(a.question.error.text, "did you mean n1?"), "%s",
              a.question.error.text);
}

Test(history, counts_refusals_that_are_alike)
{
    int64_t ms = now_ms() - 60000;
    refuse("ns/p", ms, "fits none of 3 nodes; 2: no card");
    refuse("ns/p", ms + 100, "fits none of 4 nodes; 3: no card");
    refuse("ns/q", ms + 100, "fits none of 3 nodes");
    refuse("ns/p", ms + 2000, "fits none of 40 nodes; 31: no card");
    refuse("ns/p", ms + 2500, "its quota is used up"); /* too soon */
    refuse("ns/p", ms + 4000, "its quota is used up");
    history_settle(history);
    end(); /* counts are written at the latest now */
    begin();
    refuse("ns/p", ms + 5000, "its quota is used up"); /* as before */
    history_settle(history);
    end();
    begin();
    expect_events("ns/p",
                  "pod ns/p Refused x4: fits none of 3 nodes; 2: no card\n"
                  "pod ns/p Refused x2: its quota is used up\n");
    expect_events("ns/q", "pod ns/q Refused x1: fits none of 3 nodes\n");
}

/* Commits write counts now and then alone. */
Test(history, an_end_writes_what_was_counted)
{
    refuse("ns/p", now_ms() - 60000, "its quota is used up");
    history_settle(history);
    refuse("ns/p", now_ms() - 50000, "its quota is used up");
    history_settle(history);
    end();
    begin();
    expect_events("ns/p", "pod ns/p Refused x2: its quota is used up\n");
}

/* --- restarts ------------------------------------------------------------- */

Test(history, a_restart_tells_what_is_different_and_nothing_twice)
{
    cleanup_str struct str before = STR_INIT(1 << 20),
                           after = STR_INIT(1 << 20);
    cr_assert_eq(sim_publish(writer, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_publish(writer, "n2", 4, "boot", 1), 0);
    bind_pod("p1", "n1");
    bind_pod("p2", "n2");
    cr_expect_eq(events_of(NULL, &before), 0);
    end();
    begin();
    cr_expect_eq(events_of(NULL, &after), 0);
    cr_expect_str_eq(str_text(&after), str_text(&before));
    end();
    cr_assert_eq(sim_release(writer, "p1"), 0);
    bind_pod("p3", "n1");
    begin();
    cr_expect_eq(events_of(NULL, &after), 0);
    const char *news = str_text(&after) + before.size;
    cr_expect(strstr(news, "pod ns/p1 Released x1: its place was given back "
                           "before this start"),
              "%s", news);
    cr_expect(strstr(news, "pod ns/p3 Bound"), "%s", news);
    cr_expect_not(strstr(news, "p2"), "%s", news);
    cr_expect_not(strstr(news, "NodeReady"), "%s", news);
}

Test(history, one_directory_has_one_history)
{
    struct history *other = NULL;
    struct error err = {0};
    const struct history_config c = {
        .dir = past, .days = 1, .mib = 16, .writer = writer};
    cr_expect_eq(history_start(&c, &other, &err), -EBUSY);
    cr_expect(strstr(err.text, "--history"), "%s", err.text);
}

/* --- trouble -------------------------------------------------------------- */

static void damage_file(const char *what, size_t size)
{
    cleanup_free char *path = xasprintf("%s/history.db", past);
    static char data[1 << 20];
    cleanup_fd int fd = open(path, O_RDWR);
    ssize_t n = read(fd, data, sizeof data);
    char *at = n > 0 ? memmem(data, (size_t)n, what, size) : NULL;
    cr_assert(at, "\"%s\" is not in the file", what);
    (void)memset(at, 'X', size);
    cr_assert_eq(pwrite(fd, data, (size_t)n, 0), n);
}

/* One of so many bytes that was written to so long ago. */
static void put_aside(int number, size_t size, int64_t age_s)
{
    cleanup_free char *path = xasprintf("%s/history.db.damaged-%d", past,
                                        number);
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT, 0600);
    const struct timespec when = {.tv_sec = now_ms() / 1000 - age_s};
    cr_assert_eq(ftruncate(fd, (off_t)size), 0);
    cr_assert_eq(futimens(fd, (struct timespec[]){when, when}), 0);
}

static bool has_aside(int number)
{
    cleanup_free char *path = xasprintf("%s/history.db.damaged-%d", past,
                                        number);
    return access(path, F_OK) == 0;
}

Test(history, files_that_are_aside_count_and_the_oldest_goes)
{
    end();
    put_aside(1, 900000, 10);
    put_aside(2, 900000, 3600);
    put_aside(3, 900000, 60);
    put_aside(4, 10, 40 * 86400);
    mib = 2;
    begin();
    note("ns/p", "");
    history_settle(history);
    cr_expect(has_aside(1));
    cr_expect_not(has_aside(2), "it is the oldest but for one");
    cr_expect(has_aside(3));
    cr_expect_not(has_aside(4), "its days are over");
    cr_expect(history_state(history).full);
    cr_expect_gt(history_state(history).bytes, 1800000);
    expect_events("ns/p", "pod ns/p Degraded x1: \n"); /* younger than they */
}

Test(history, a_file_that_is_none_is_set_aside)
{
    note("ns/p", "before");
    history_settle(history);
    end();
    damage_file("SQLite format 3", 15);
    begin();
    cr_expect(has_aside(1));
    note("ns/p", "after");
    expect_events("ns/p", "pod ns/p Degraded x1: after\n");
}

Test(history, a_row_that_is_damaged_is_found_when_it_is_asked_for)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    cr_assert_eq(sim_publish(writer, "n1", 4, "boot", 1), 0);
    note("ns/p", "a text that will be damaged");
    history_settle(history);
    end();
    damage_file("will be", 7);
    begin();
    cr_expect_eq(events_of("ns/p", &out), -EBADMSG);
    while (!has_aside(1)) /* the reader says so once it has answered */
        history_settle(history);
    expect_events("n1", "node n1 NodeReady x1: \n"); /* it is told anew */
    note("ns/p", "after");
    expect_events("ns/p", "pod ns/p Degraded x1: after\n");
    cr_expect(history_state(history).writes);
}

Test(history, a_full_disk_loses_events_and_ends)
{
    cleanup_free char *filler = xasprintf("%s/filler", past);
    end();
    if (!smalldisk_mount(past)) {
        begin();
        cr_skip_test("may not mount a small disk");
    }
    begin();
    cr_assert_eq(sim_publish(writer, "n1", 4, "boot", 1), 0);
    history_settle(history);
    smalldisk_fill(filler);
    for (int i = 0; history_state(history).writes; i++) {
        char text[900];
        (void)memset(text, 'a' + i % 26, sizeof text - 1);
        (void)snprintf(text + sizeof text - 16, 16, "%d", i);
        cr_assert_lt(i, 5000, "the disk is not full");
        note("ns/p", text);
        history_settle(history);
    }
    cr_expect_gt(history_state(history).lost, 0);
    bind_pod("p1", "n1"); /* while nothing is recorded */
    end();
    begin(); /* a full disk is no reason not to serve */
    end();
    cr_assert_eq(unlink(filler), 0);
    begin();
    note("ns/q", "after");
    expect_events("ns/q", "pod ns/q Degraded x1: after\n");
    cleanup_str struct str out = STR_INIT(1 << 20);
    cr_expect_eq(events_of("ns/p1", &out), 0);
    cr_expect(strstr(str_text(&out), "pod ns/p1 Bound"), "%s", str_text(&out));
    end();
    smalldisk_umount(past);
    begin();
}

/* --- crowds --------------------------------------------------------------- */

struct blocker {
    struct history_follower follower; /* first */
    sem_t entered, leave;
};

static void block(struct history_follower *f)
{
    struct blocker *b = (struct blocker *)f;
    (void)sem_post(&b->entered);
    while (sem_wait(&b->leave) != 0)
        ;
}

Test(history, nobody_waits_for_a_history_that_is_slow)
{
    enum { TOO_MANY = 100 };
    struct blocker b = {.follower = {.news = block}};
    cr_assert_eq(sem_init(&b.entered, 0, 0), 0);
    cr_assert_eq(sem_init(&b.leave, 0, 0), 0);
    cr_assert_eq(sim_publish(writer, "n1", 4, "boot", 1), 0);
    history_settle(history);
    history_follow(history, &b.follower);
    note("ns/p", "");
    while (sem_wait(&b.entered) != 0)
        ;
    for (int i = 0; i < HISTORY_QUEUE_MAX + TOO_MANY; i++)
        note("ns/p", "");
    for (int i = 0; i < HISTORY_SNAPSHOTS_MAX; i++) {
        bind_pod("p1", "n1");
        cr_assert_eq(sim_release(writer, "p1"), 0);
    }
    bind_pod("p2", "n1");
    uint64_t lost = history_state(history).lost;
    cr_expect_geq(lost, TOO_MANY + HISTORY_SNAPSHOTS_MAX);
    for (int i = 0; i < 1000; i++) /* and any news from now on */
        (void)sem_post(&b.leave);
    history_unfollow(history, &b.follower);
    cleanup_str struct str out = STR_INIT(1 << 20);
    cr_expect_eq(events_of("ns/p2", &out), 0);
    cr_expect(strstr(str_text(&out), "Bound"), "what is so is told of");
    (void)sem_destroy(&b.entered);
    (void)sem_destroy(&b.leave);
}

struct questions {
    struct history_question question; /* first */
    sem_t *answered, *leave;          /* leave: the reader waits for it */
};

static void hold(struct history_question *q, struct history_reader *r)
{
    struct questions *x = (struct questions *)q;
    (void)r;
    while (x->leave && sem_wait(x->leave) != 0)
        ;
    (void)sem_post(x->answered);
}

Test(history, those_who_follow_leave_room_for_questions)
{
    enum { N = HISTORY_QUESTIONS_MAX + 10 };
    static struct questions apart[N], some[N];
    sem_t answered, leave;
    cr_assert_eq(sem_init(&answered, 0, 0), 0);
    cr_assert_eq(sem_init(&leave, 0, 0), 0);
    for (size_t i = 0; i < N; i++) {
        apart[i].question = (struct history_question){.answer = hold,
                                                      .apart = true};
        some[i].question = (struct history_question){.answer = hold};
        apart[i].answered = some[i].answered = &answered;
    }
    apart[0].leave = &leave; /* the others wait behind it */
    for (size_t i = 0; i < N; i++)
        cr_assert_eq(history_ask(history, &apart[i].question), 0);
    for (size_t i = 0; i < N; i++)
        cr_expect_eq(history_ask(history, &some[i].question),
                     i < HISTORY_QUESTIONS_MAX ? 0 : -EAGAIN);
    (void)sem_post(&leave);
    for (size_t i = 0; i < N + HISTORY_QUESTIONS_MAX; i++)
        while (sem_wait(&answered) != 0)
            ;
    (void)sem_destroy(&answered);
    (void)sem_destroy(&leave);
}

Test(history, the_newest_number_is_known_from_the_start_on)
{
    note("ns/p", "");
    history_settle(history);
    uint64_t newest = history_state(history).newest;
    cr_assert_gt(newest, 0);
    end();
    begin(); /* and at once, before anything is written */
    cr_expect_geq(history_state(history).newest, newest);
}
