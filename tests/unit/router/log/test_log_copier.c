#include "router/log/log_copier.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/io/file.h"
#include "tests/lib/card/follower.h"
#include "tests/lib/tmpdir.h"

#define LINE "2026-01-01T00:00:00.000000001Z stdout F "

enum { HANGS_MS = 60000, BLOCK = 200000 };

static char *top;
static struct follower card;
static struct log_copier *copier;
static struct error err;
static struct str written; /* all that a container wrote */

static void begin(void)
{
    top = tmpdir_create();
    copier = follower_copier(&card, top);
    str_init(&written, 64 << 20);
}

static void end(void)
{
    log_copier_destroy(copier);
    str_fini(&written);
    tmpdir_remove(top);
}

TestSuite(log_copier, .init = begin, .fini = end, .timeout = 120);

static void add(const char *name)
{
    cr_assert_eq(follower_add(copier, top, name, &err), 0, "%s", err.text);
}

static void finish(const char *name)
{
    cr_assert_eq(log_copier_finish(copier, name, HANGS_MS, &err), 0, "%s",
                 err.text);
}

/* Some lines more in the log of "0.log". */
static void say(size_t size)
{
    static unsigned n;
    size_t from = written.size;
    while (written.size - from < size)
        str_addf(&written, LINE "%u what a pod has to say\n", n++);
    follower_write(top, "0.log", written.data + from, written.size - from);
}

static char *path_of(const char *folder, const char *name)
{
    return xasprintf("%s/%s/%s", top, folder, name);
}

static void add_file(struct str *all, const char *name)
{
    cleanup_free char *path = path_of("pods/pod", name);
    char *text = NULL;
    size_t size;
    cr_assert_eq(file_read(path, 64 << 20, &text, &size, &err), 0, "%s",
                 err.text);
    str_add_n(all, text, size);
    free(text);
}

/* `n` files, of which all but the last are rotated: 0.log.0, … 0.log */
static void expect_written(unsigned n)
{
    struct str all = STR_INIT(64 << 20);
    for (unsigned i = 0; i + 1 < n; i++) {
        cleanup_free char *name = xasprintf("0.log.%u", i);
        add_file(&all, name);
    }
    add_file(&all, "0.log");
    cr_expect_eq(all.size, written.size);
    cr_expect(all.size == written.size &&
              memcmp(all.data, written.data, all.size) == 0);
    str_fini(&all);
}

/* Until so much is written in all, or the test's time is over. */
static void wait_bytes(uint64_t size)
{
    struct log_copier_counts counts;
    do
        log_copier_count(copier, &counts);
    while (counts.bytes < size && usleep(1000) == 0);
}

Test(log_copier, copies_what_comes)
{
    add("0.log");
    say(BLOCK);
    wait_bytes(written.size);
    say(BLOCK);
    follower_write(top, "0.log", "half", 4);
    str_add(&written, "half");
    finish("0.log");
    expect_written(1);
    finish("0.log");
    finish("none");
    cr_expect_eq(log_copier_reopen(copier, "none", &err), -ENOENT);
}

Test(log_copier, several_at_once)
{
    add("0.log");
    add("1.log");
    add("2.log");
    follower_write(top, "2.log", "two\n", 4);
    say(8 * BLOCK);
    follower_write(top, "1.log", "one\n", 4);
    finish("1.log");
    finish("2.log");
    finish("0.log");
    expect_written(1);
    struct str all = STR_INIT(100);
    add_file(&all, "1.log");
    add_file(&all, "2.log");
    cr_expect_str_eq(all.data, "one\ntwo\n");
    str_fini(&all);
}

Test(log_copier, rotates)
{
    add("0.log");
    cleanup_free char *from = path_of("pods/pod", "0.log");
    for (unsigned i = 0; i < 5; i++) {
        cleanup_free char *name = xasprintf("0.log.%u", i);
        cleanup_free char *to = path_of("pods/pod", name);
        say(BLOCK);
        wait_bytes(written.size - BLOCK / 2);
        cr_assert_eq(rename(from, to), 0);
        cr_assert_eq(log_copier_reopen(copier, "0.log", &err), 0, "%s",
                     err.text);
    }
    say(BLOCK);
    finish("0.log");
    expect_written(6);
}

Test(log_copier, goes_on_after_a_restart)
{
    add("0.log");
    for (int i = 0; i < 5; i++) {
        say(BLOCK);
        log_copier_destroy(copier);
        copier = follower_copier(&card, top);
        add("0.log");
        add("0.log");
    }
    finish("0.log");
    expect_written(1);
}

Test(log_copier, calls_that_fail_cost_nothing)
{
    add("0.log");
    for (int i = 0; i < 4; i++) {
        say(BLOCK);
        atomic_store(&card.n_fail, i);
        atomic_store(&card.n_cut, i);
        wait_bytes(written.size);
    }
    finish("0.log");
    expect_written(1);
}

Test(log_copier, what_is_durable_is_freed)
{
    struct stat st;
    struct log_copier_counts counts;
    cleanup_free char *path = path_of("remote", "0.log");
    add("0.log");
    do {
        say(BLOCK);
        wait_bytes(written.size);
        cr_assert_eq(stat(path, &st), 0);
    } while (st.st_blocks * 512 > st.st_size - (1 << 20) &&
             written.size < (16 << 20));
    cr_expect_lt(st.st_blocks * 512, st.st_size);
    finish("0.log");
    log_copier_count(copier, &counts);
    cr_expect_eq(counts.lost, 0u);
    expect_written(1);
}

Test(log_copier, a_remote_that_is_cut_off)
{
    add("0.log");
    log_copier_cut(copier, "card", true);
    say(BLOCK);
    cr_expect_eq(log_copier_finish(copier, "0.log", HANGS_MS, &err),
                 -ENETUNREACH);
    log_copier_cut(copier, "card", false);
    finish("0.log");
    expect_written(1);
}

Test(log_copier, refuses)
{
    struct log_copier *other = NULL;
    cleanup_free char *states = xasprintf("%s/states", top);
    struct log_copier_config config = {
        .pod_logs = top, .states = states, .remote_dir = top};
    cr_expect_eq(log_copier_create(&config, &other, &err), -EBUSY);
    struct log_target target = {
        .key = "0.log", .remote = "card", .remote_path = "/a", .path = "/b"};
    cr_expect_eq(log_copier_add(copier, &target, &err), -EINVAL);
    add("0.log");
    cr_expect_eq(log_copier_add(copier, &target, &err), -EEXIST);
    target.remote_path = "/a/../b";
    cr_expect_eq(log_copier_add(copier, &target, &err), -EINVAL);
    log_copier_remove(copier, "0.log");
    log_copier_remove(copier, "0.log");
    add("0.log");
    log_copier_stop(copier);
    cr_expect_eq(follower_add(copier, top, "1.log", &err), -ECANCELED);
    cr_expect_eq(log_copier_finish(copier, "0.log", 1, &err), -ECANCELED);
}

static void note_rest(void *ctx, const char *remote, unsigned lane)
{
    atomic_uint *rested = ctx;
    (void)remote;
    (void)atomic_fetch_or(rested, 1U << lane);
}

static int rest_exec(void *ctx, const char *remote, unsigned lane,
                     const char *const *argv, size_t n_argv, unsigned ms,
                     struct cri_exec *ret_exec, struct error *why)
{
    (void)ctx;
    return follower_exec(&card, remote, lane, argv, n_argv, ms, ret_exec, why);
}

/* A second lane is for bytes that come; without any, one is enough. */
Test(log_copier, a_lane_that_is_not_needed_rests)
{
    static atomic_uint rested;
    cleanup_free char *pods = xasprintf("%s/pods", top);
    cleanup_free char *states = xasprintf("%s/other", top);
    cleanup_free char *meet = xasprintf("%s/meet", top);
    const struct log_copier_config config = {.pod_logs = pods,
                                             .states = states,
                                             .remote_dir = meet,
                                             .exec = rest_exec,
                                             .rest = note_rest,
                                             .ctx = &rested,
                                             .rest_ms = 1};
    struct log_copier *c = NULL;
    cr_assert_eq(log_copier_create(&config, &c, &err), 0, "%s", err.text);
    cr_assert_eq(follower_add(c, top, "a", &err), 0, "%s", err.text);
    while (!(atomic_load(&rested) & 2)) {
        follower_write(top, "a", LINE "x\n", sizeof LINE + 1);
        (void)sched_yield();
    }
    log_copier_destroy(c);
}
