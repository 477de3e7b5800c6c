/* When a card is asked for its logs, and for how long: in virtual time, with
 * calls that the test answers. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/log/log_copier.h"
#include "tests/lib/card/follower.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

enum { CALLS_MAX = 64, LANES_MORE_MS = 25000, BACKOFF_MAX_MS = 5000 };
enum { SEQ = 4, START, WAIT, FIRST_FILE = 9 }; /* of argv */

/* One of the card's, in the order in which they came. */
struct call {
    char start[8];
    unsigned wait_ms, ms;
    uint64_t seq;
    size_t n_files;
    uint32_t tag;    /* of the first file */
    uint64_t offset; /* and from where it is wanted */
    bool answered, fails;
    char out[64];
};

static char *top;
static struct log_copier *copier;
static struct error err;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct call calls[CALLS_MAX];
static size_t n_calls, n_taken;
static bool ending;

static void note(struct call *k, const char *const *argv, size_t n_argv,
                 unsigned ms)
{
    (void)snprintf(k->start, sizeof k->start, "%s", argv[START]);
    k->wait_ms = (unsigned)strtoul(argv[WAIT], NULL, 10);
    k->seq = strtoull(argv[SEQ], NULL, 10);
    k->ms = ms;
    k->n_files = n_argv - FIRST_FILE;
    char *at = NULL;
    if (k->n_files == 0)
        return;
    k->tag = (uint32_t)strtoul(argv[FIRST_FILE], &at, 10);
    (void)strtoul(at, &at, 10);
    k->offset = strtoull(at, NULL, 10);
}

static int exec(void *ctx, const char *remote, unsigned lane,
                const char *const *argv, size_t n_argv, unsigned ms,
                struct cri_exec *ret_exec, struct error *ret_err)
{
    (void)ctx;
    (void)remote;
    (void)lane;
    hold_lock(&lock);
    cr_assert_lt(n_calls, (size_t)CALLS_MAX);
    struct call *k = &calls[n_calls++];
    note(k, argv, n_argv, ms);
    ending |= k->wait_ms == 0; /* those that still wait return at once */
    (void)pthread_cond_broadcast(&changed);
    while (!k->answered && !ending)
        (void)pthread_cond_wait(&changed, &lock);
    if (k->fails)
        return error_set(ret_err, ECONNREFUSED, "as the test wants it");
    str_init(&ret_exec->out, ret_exec->max);
    str_init(&ret_exec->err, 1);
    str_add(&ret_exec->out, *k->out ? k->out : "z 0\n");
    return 0;
}

static void begin(void)
{
    virtual_begin();
    log_set_level(LOG_ERROR);
    top = tmpdir_create();
    log_copier_destroy(follower_copier(&(struct follower){0}, top));
    cleanup_free char *pods = xasprintf("%s/pods", top);
    cleanup_free char *states = xasprintf("%s/states", top);
    const struct log_copier_config config = {
        .pod_logs = pods, .states = states, .remote_dir = "/f", .exec = exec};
    cr_assert_eq(log_copier_create(&config, &copier, &err), 0, "%s", err.text);
}

static void end(void)
{
    log_copier_destroy(copier);
    virtual_end();
    tmpdir_remove(top);
}

TestSuite(log_copier_round, .init = begin, .fini = end, .timeout = 120);

static void add(const char *name)
{
    cr_assert_eq(follower_add(copier, top, name, &err), 0, "%s", err.text);
}

/* The next call, as soon as it is there. */
static struct call *take(void)
{
    hold_lock(&lock);
    while (n_calls == n_taken)
        (void)pthread_cond_wait(&changed, &lock);
    return &calls[n_taken++];
}

static void answer(struct call *k)
{
    virtual_take(k->wait_ms); /* it may have been less */
    hold_lock(&lock);
    k->answered = true;
    (void)pthread_cond_broadcast(&changed);
}

static void answer_bytes(struct call *k)
{
    char frame[32];
    int n = snprintf(frame, sizeof frame, "d %u %llu 3\nab\n", (unsigned)k->tag,
                     (unsigned long long)k->offset);
    (void)snprintf(k->out, sizeof k->out, "%sz %d\n", frame, n);
    answer(k);
}

static void fail(struct call *k)
{
    k->fails = true;
    answer(k);
}

static struct call *expect_call(const char *start, unsigned wait_ms)
{
    struct call *k = take();
    cr_expect_str_eq(k->start, start);
    cr_expect_eq(k->wait_ms, wait_ms, "%u", k->wait_ms);
    cr_expect_eq(k->ms, wait_ms + LANES_MORE_MS, "%u", k->ms);
    return k;
}

/* Nothing comes, until this is what is waited for. */
static struct call *be_silent(unsigned wait_ms)
{
    struct call *k;
    while ((k = take())->wait_ms < wait_ms)
        answer(k);
    return k;
}

Test(log_copier_round, silence_is_waited_for_longer)
{
    add("0.log");
    answer(expect_call("first", 5000));
    answer(expect_call("first", 10000));
    answer(expect_call("first", 20000));
    answer(expect_call("first", 30000));
    answer_bytes(expect_call("first", 30000));
    struct call *two[] = {take(), take()}; /* at once, as bytes come */
    for (int i = 0; i < 2; i++) {
        cr_expect_str_eq(two[i]->start, two[i]->seq == 6 ? "first" : "next");
        cr_expect_eq(two[i]->wait_ms, 5000u);
        answer(two[i]);
    }
    expect_call("first", 10000);
}

/* Whatever is to be told to a card ends the call that waits there. */
Test(log_copier_round, who_comes_meanwhile_is_not_kept_waiting)
{
    add("0.log");
    struct call *silent = be_silent(30000);
    int64_t now = clock_ms();
    add("1.log");
    struct call *k = expect_call("hurry", 5000);
    cr_expect_eq(k->n_files, 2u);
    cr_expect_eq(k->seq, silent->seq + 1);
    cr_expect_eq(clock_ms(), now);
    answer(silent);
    answer(k);
    k = expect_call("first", 10000);
    cr_expect_eq(k->n_files, 2u);
}

Test(log_copier_round, a_card_that_comes_back_is_asked_as_at_first)
{
    add("0.log");
    struct call *k = be_silent(20000);
    log_copier_cut(copier, "card", true);
    fail(k);
    virtual_settle(LOG_LANES);
    log_copier_cut(copier, "card", false);
    answer(expect_call("first", 5000));
    fail(expect_call("first", 10000));
    virtual_settle(LOG_LANES);
    virtual_take(BACKOFF_MAX_MS);
    expect_call("first", 5000);
}

/* A call that fails does not tell the one that waits on the card to return. */
Test(log_copier_round, a_failure_does_not_wait_for_silence)
{
    add("0.log");
    struct call *silent = be_silent(30000);
    add("1.log");
    struct call *k = expect_call("hurry", 5000);
    fail(k);
    virtual_settle(LOG_LANES - 1);
    virtual_take(BACKOFF_MAX_MS);
    k = expect_call("first", 5000);
    cr_expect_eq(k->n_files, 2u);
    answer(silent);
    answer_bytes(k);
    cr_expect_eq(take()->offset, 3u);
}
