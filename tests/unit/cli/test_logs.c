/* biga logs, from the file on a card to standard output: through the card's
 * runtime, the actuator and its socket.  And against advertisers that answer
 * otherwise. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/stat.h>

#include "advertiser/act/api/socket.h"
#include "cli/base/settings.h"
#include "cli/verb/logs.h"
#include "cli/verb/verb.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

#define HEAD "2026-01-02T03:04:05.600000000Z stdout "

enum {
    FIRST = 256 << 10, /* the first piece that is asked for */
    OLD = 1 << 20,     /* what an advertiser of before gives */
    LOOK_US = 50000,   /* between two looks */
    HANGS = 2400,      /* looks; then it will not come any more */
};

static struct {
    struct actrig r;
    struct act_socket *s;
    struct httpd *other; /* an advertiser that is none of ours */
    char *dir, *path, *out;
    struct cli c;
} at;

static void begin(void)
{
    cr_redirect_stderr();
    at.dir = tmpdir_create();
    at.path = xasprintf("%s/s.sock", at.dir);
    at.out = xasprintf("%s/out", at.dir);
    at.c = (struct cli){.set = {.socket = at.path,
                                .container = "",
                                .tail = -1,
                                .since = "",
                                .limit_bytes = 1 << 30,
                                .exec_timeout = 3},
                        .out = STR_INIT(1 << 20)};
}

static void end(void)
{
    httpd_stop(at.other);
    tmpdir_remove(at.dir);
    free(at.path);
    free(at.out);
    str_fini(&at.c.out);
}

TestSuite(logs, .init = begin, .fini = end, .timeout = 180);

/* A pod that runs on a card, with a helper beside it. */
static void start_card(void)
{
    struct error err;
    actrig_init(&at.r, 1);
    at.r.config.helper_image = "helper";
    /* not while it reads 8 MiB for a call, either */
    at.r.config.lost_ms = 240000;
    cardserver_take(at.r.cards[0], &(struct cardserver_times){0});
    cardserver_logs(at.r.cards[0], at.dir);
    actrig_open(&at.r);
    cr_assert_eq(actrig_want(&at.r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&at.r, "x", ACT_RUNNING));
    cr_assert(actrig_live(&at.r, 0, "biga-helper-card-0", 2));
    cr_assert_eq(act_socket_start(at.r.a, at.path, &at.s, &err), 0, "%s",
                 err.text);
}

static void stop_card(void)
{
    cr_expect(act_socket_stop(at.s));
    actrig_fini(&at.r);
}

/* The log of container "a" in that attempt. */
static void write_log(unsigned attempt, const struct str *text)
{
    cleanup_free char *path = xasprintf("%s/a-%u.log", at.dir, attempt);
    FILE *f = fopen(path, "we");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(str_text(text), 1, text->size, f), text->size);
    cr_assert_eq(fclose(f), 0);
}

/* `size` bytes that a container wrote, and the log of them: lines of all
 * lengths, some in several parts; the last has no end. */
static void make_log(size_t size, struct str *plain, struct str *log)
{
    unsigned n = 0;
    for (size_t at_byte = 0; at_byte < size; n++) {
        size_t length = n * 7919 % (n % 50 ? 150 : 20000);
        size_t rest = size - at_byte;
        bool whole = n % 5 != 0 && length + 1 < rest;
        size_t text = whole ? length : length < rest ? length : rest;
        str_add(log, whole ? HEAD "F " : HEAD "P ");
        for (size_t i = 0; i < text; i++) {
            char c = (char)(' ' + (n * 31 + i * 7) % 95);
            str_add_c(plain, c);
            str_add_c(log, c);
        }
        if (whole)
            str_add_c(plain, '\n');
        str_add_c(log, '\n');
        at_byte = plain->size;
    }
}

/* So that complains() reads what comes after it, and its pipe is not full. */
static void forget_complaints(void)
{
    char got[4096];
    FILE *f = cr_get_redirected_stderr();
    (void)fflush(stderr);
    while (fread(got, 1, sizeof got, f) > 0)
        ;
    clearerr(f); /* nothing is there now; there may be later */
}

/* `biga logs lab/x`, as it is run: an exit code. */
static int run_logs(struct str *ret_text)
{
    forget_complaints();
    size_t size;
    char pod[] = "lab/x", *argv[] = {pod, NULL};
    int fd = open(at.out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int before = dup(STDOUT_FILENO);
    cr_assert(fd >= 0 && before >= 0);
    (void)fflush(stdout);
    (void)dup2(fd, STDOUT_FILENO);
    int rc = verb_logs(&at.c, 1, argv);
    (void)fflush(stdout);
    (void)dup2(before, STDOUT_FILENO);
    (void)close(before);
    (void)close(fd);
    cleanup_free char *text = testdata_read(at.out, &size);
    str_reset(ret_text);
    str_add_n(ret_text, text, size);
    return rc;
}

static void complains(const char *text)
{
    char got[4096] = "";
    (void)fflush(stderr);
    size_t n = fread(got, 1, sizeof got - 1, cr_get_redirected_stderr());
    got[n] = '\0';
    cr_expect(strstr(got, text), "not \"%s\" in:\n%s", text, got);
}

static void expect_same(const struct str *got, const struct str *wanted)
{
    size_t i = 0;
    while (i < got->size && i < wanted->size && got->data[i] == wanted->data[i])
        i++;
    cr_expect(got->size == wanted->size && i == wanted->size,
              "%zu bytes of %zu, of which %zu are right", got->size,
              wanted->size, i);
}

/* The helper is known to run once it was listed. */
static void until_read(struct str *text)
{
    for (int i = 0; i < HANGS && run_logs(text) != 0; i++)
        (void)usleep(LOOK_US);
}

Test(logs, are_whole_whatever_their_size)
{
    static const size_t sizes[] = {
        0,       1,   2,       3,         FIRST - 1,     FIRST,       FIRST + 1,
        OLD - 1, OLD, OLD + 1, 3 * FIRST, 3 * FIRST + 1, ACT_LOG_MAX, 30 << 20};
    cleanup_str struct str got = STR_INIT(64 << 20);
    start_card();
    write_log(1, &got);
    until_read(&got);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        cleanup_str struct str plain = STR_INIT(64 << 20);
        cleanup_str struct str log = STR_INIT(128 << 20);
        make_log(sizes[i], &plain, &log);
        cr_assert_eq(plain.size, sizes[i]);
        write_log(1, &log);
        cr_expect_eq(run_logs(&got), 0, "%zu", sizes[i]);
        expect_same(&got, &plain);
    }
    stop_card();
}

/* What a runtime drops is no short log. */
Test(logs, fail_when_bytes_are_lost_on_the_way)
{
    cleanup_str struct str got = STR_INIT(64 << 20), log = STR_INIT(4096);
    str_add(&log, HEAD "F one\n" HEAD "F two\n");
    start_card();
    write_log(1, &log);
    until_read(&got);
    cr_expect_str_eq(str_text(&got), "one\ntwo\n");
    cardserver_logs(at.r.cards[0], NULL);
    cardserver_exec(at.r.cards[0], 0, "one\n", "bytes=8\nnext=80\n");
    cr_expect_eq(run_logs(&got), CLI_FAILED);
    complains("biga-card gave 8 bytes of a log, and 4 came");
    stop_card();
}

/* A card with a biga-card of before gives less at a time, and all of it. */
Test(logs, come_from_an_older_helper_too)
{
    cleanup_str struct str got = STR_INIT(64 << 20), plain = STR_INIT(8 << 20);
    cleanup_str struct str log = STR_INIT(32 << 20);
    make_log(6 * OLD + 5, &plain, &log);
    start_card();
    write_log(1, &log);
    cardserver_logs_max(at.r.cards[0], OLD);
    until_read(&got);
    expect_same(&got, &plain);
    stop_card();
}

/* --- over a restart --------------------------------------------------------- */

static void expect_log(struct act_log_ask ask, const char *text,
                       uint32_t attempt, uint64_t next)
{
    struct act_log log;
    struct error err;
    ask.namespace = "lab";
    ask.name = "x";
    ask.container = "a";
    cr_assert_eq(actuator_logs(at.r.a, &ask, &log, &err), 0, "%s", err.text);
    cr_expect_str_eq(str_text(&log.text), text);
    cr_expect_eq(log.attempt, attempt, "%u", log.attempt);
    cr_expect_eq(log.next, next, "%" PRIu64, log.next);
    str_fini(&log.text);
}

static void restart(struct str *text)
{
    cr_assert_eq(cardserver_exit(at.r.cards[0], "x"), 1);
    for (int i = 0; i < HANGS && strcmp(str_text(text), "second\n") != 0; i++) {
        (void)usleep(LOOK_US);
        (void)run_logs(text);
    }
    cr_assert_str_eq(str_text(text), "second\n");
}

Test(logs, go_on_with_the_next_attempt)
{
    enum { HEAD_SIZE = sizeof HEAD "F " - 1 };
    cleanup_str struct str got = STR_INIT(4096), log = STR_INIT(4096);
    start_card();
    str_add(&log, HEAD "F first\n" HEAD "F and more\n");
    write_log(1, &log);
    uint64_t end = log.size;
    until_read(&got);
    str_reset(&log);
    str_add(&log, HEAD "F second\n");
    write_log(2, &log);
    restart(&got);
    expect_log((struct act_log_ask){0}, "second\n", 2, log.size);
    expect_log((struct act_log_ask){.attempt = 1, .offset = HEAD_SIZE + 6},
               "and more\n", 1, end);
    expect_log((struct act_log_ask){.attempt = 1, .offset = end}, "", 2, 0);
    expect_log((struct act_log_ask){.attempt = 2}, "second\n", 2, log.size);
    expect_log((struct act_log_ask){.attempt = 2, .offset = log.size}, "", 2,
               log.size);
    expect_log((struct act_log_ask){.attempt = 9, .offset = 50}, "second\n", 2,
               log.size);
    stop_card();
}

static void *follow(void *arg)
{
    at.c.set.follow = true;
    cr_expect_eq(run_logs(arg), 0);
    return NULL;
}

/* What has been printed so far. */
static void until_printed(const char *text)
{
    bool there = false;
    for (int i = 0; i < HANGS && !there; i++) {
        size_t size;
        cleanup_free char *now = testdata_read(at.out, &size);
        there = strcmp(now, text) == 0;
        (void)usleep(LOOK_US);
    }
    cr_assert(there, "not printed: %s", text);
}

Test(logs, are_followed_over_a_restart)
{
    pthread_t thread;
    cleanup_str struct str got = STR_INIT(4096), log = STR_INIT(4096);
    start_card();
    str_add(&log, HEAD "F first\n" HEAD "F and more\n");
    write_log(1, &log);
    until_read(&got);
    cr_assert_eq(truncate(at.out, 0), 0); /* nothing is printed yet */
    cr_assert_eq(pthread_create(&thread, NULL, follow, &got), 0);
    until_printed("first\nand more\n");
    /* a longer one, of which none is left out */
    str_reset(&log);
    str_add(&log, HEAD "F second\n" HEAD "F and third\n" HEAD "F and last\n");
    write_log(2, &log);
    cr_assert_eq(cardserver_exit(at.r.cards[0], "x"), 1);
    until_printed("first\nand more\nsecond\nand third\nand last\n");
    cr_assert_eq(actuator_unwant(at.r.a, "x", 0, NULL), 0);
    (void)pthread_join(thread, NULL);
    cr_expect_str_eq(str_text(&got),
                     "first\nand more\nsecond\nand third\nand last\n");
    stop_card();
}

/* --- other advertisers ---------------------------------------------------- */

static struct {
    struct str log;
    size_t max;    /* bytes that it gives at once, and more is refused */
    size_t excess; /* bytes that it gives beyond */
    bool silent;   /* no headers of ours */
    unsigned n_asks;
} old;

static void on_logs(struct httpd_request *rq, void *ctx)
{
    static const char *const names[] = {"container", "offset", "max", NULL};
    char next[24];
    (void)ctx;
    if (!httpd_query_only(rq, names))
        return;
    size_t from = strtoull(httpd_query(rq, "offset"), NULL, 10);
    size_t max = strtoull(httpd_query(rq, "max"), NULL, 10);
    old.n_asks++;
    if (max > old.max) {
        httpd_fail(rq, 400, "max: is \"%zu\", must be 0 to %zu", max, old.max);
        return;
    }
    max += old.excess;
    size_t n = old.log.size - from < max ? old.log.size - from : max;
    str_add_n(httpd_reply(rq), old.log.data + from, n);
    httpd_content_type(rq, "text/plain");
    (void)snprintf(next, sizeof next, "%zu", from + n);
    if (!old.silent)
        httpd_set_header(rq, "Biga-Next", next);
}

static void on_exec(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq),
            "{\"exitCode\":0,\"stdout\":\"Zm9v!\",\"stderr\":\"\"}");
}

static void start_other(size_t size, size_t max)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/v1/pods/:/:/logs", on_logs, 0, "logs"},
        {HTTPD_POST, "/v1/pods/:/:/exec", on_exec, 1 << 20, "exec"},
    };
    struct error err;
    cleanup_free char *listen = xasprintf("unix:%s", at.path);
    const struct httpd_config config = {.name = "other",
                                        .listen = listen,
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .threads = 1};
    cleanup_str struct str log = STR_INIT(64 << 20);
    old.log = STR_INIT(32 << 20);
    old.max = max;
    make_log(size, &old.log, &log);
    cr_assert_eq(httpd_start(&config, &at.other, &err), 0, "%s", err.text);
}

Test(logs, come_from_an_older_advertiser_too)
{
    cleanup_str struct str got = STR_INIT(64 << 20);
    start_other(5 * OLD + 7, OLD);
    cr_expect_eq(run_logs(&got), 0);
    expect_same(&got, &old.log);
    cr_expect_leq(old.n_asks, 10, "it was asked %u times", old.n_asks);
    str_fini(&old.log);
}

Test(logs, end_where_they_are_to_end)
{
    cleanup_str struct str got = STR_INIT(64 << 20);
    start_other(FIRST + 5, ACT_LOG_MAX);
    old.excess = 2;
    for (int64_t limit = FIRST - 1; limit <= FIRST + 1; limit++) {
        at.c.set.limit_bytes = limit;
        cr_expect_eq(run_logs(&got), 0);
        cr_expect_eq(got.size, (size_t)limit);
        cr_expect_eq(memcmp(got.data, old.log.data, got.size), 0);
    }
    str_fini(&old.log);
}

Test(logs, say_that_an_answer_cannot_be_read)
{
    cleanup_str struct str got = STR_INIT(4096);
    start_other(5, OLD);
    old.silent = true;
    cr_expect_eq(run_logs(&got), CLI_FAILED);
    cr_expect_eq(got.size, 0);
    complains("has no number in Biga-Next");
    str_fini(&old.log);
}

Test(logs, say_that_what_a_command_wrote_cannot_be_read)
{
    char pod[] = "lab/x", ls[] = "ls", *argv[] = {pod, ls, NULL};
    start_other(0, OLD);
    cr_expect_eq(verb_exec(&at.c, 2, argv), CLI_FAILED);
    complains("\"stdout\" must be base64");
    str_fini(&old.log);
}
