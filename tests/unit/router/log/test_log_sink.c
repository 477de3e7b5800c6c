#include "router/log/log_sink.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/file.h"
#include "tests/lib/tmpdir.h"

static char *top, *root_path;
static int root, states;
static struct error err;

static void begin(void)
{
    top = tmpdir_create();
    root_path = xasprintf("%s/pods", top);
    cleanup_free char *pod = xasprintf("%s/pod", root_path);
    cr_assert_eq(mkdir(root_path, 0755), 0);
    cr_assert_eq(mkdir(pod, 0755), 0);
    root = open(root_path, O_RDONLY | O_DIRECTORY);
    states = open(top, O_RDONLY | O_DIRECTORY);
}

static void end(void)
{
    (void)close(root);
    (void)close(states);
    free(root_path);
    tmpdir_remove(top);
}

TestSuite(log_sink, .init = begin, .fini = end, .timeout = 60);

static char *path_of(const char *name)
{
    return xasprintf("%s/%s", root_path, name);
}

static int try_open(const char *name, struct log_sink **ret_sink)
{
    cleanup_free char *path = path_of(name);
    struct log_sink_config config = {.root = root,
                                     .root_path = root_path,
                                     .states = states,
                                     .key = "k",
                                     .path = path};
    return log_sink_open(&config, ret_sink, &err);
}

static struct log_sink *open_log(void)
{
    struct log_sink *s = NULL;
    cr_assert_eq(try_open("pod/0.log", &s), 0, "%s", err.text);
    return s;
}

static void put(struct log_sink *s, const char *text)
{
    cr_assert_eq(log_sink_write(s, text, strlen(text), &err), 0, "%s",
                 err.text);
}

static void expect(const char *name, const char *text)
{
    cleanup_free char *path = path_of(name);
    char *got = NULL;
    size_t size;
    cr_assert_eq(file_read(path, 1 << 20, &got, &size, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(got, text, "%s", name);
    free(got);
}

static void rename_log(const char *from, const char *to)
{
    cleanup_free char *a = path_of(from);
    cleanup_free char *b = path_of(to);
    cr_assert_eq(rename(a, b), 0);
}

Test(log_sink, goes_on_where_it_stopped)
{
    struct log_sink *s = open_log();
    put(s, "one\n");
    log_sink_close(s);
    s = open_log();
    cr_expect_eq(log_sink_next(s), 4u);
    put(s, "two\n");
    log_sink_close(s);
    expect("pod/0.log", "one\ntwo\n");
}

Test(log_sink, rotation_loses_nothing)
{
    struct log_sink *s = open_log();
    uint64_t durable = 0;
    put(s, "one\n");
    rename_log("pod/0.log", "pod/0.log.1");
    put(s, "two\nthr");
    cr_assert_eq(log_sink_reopen(s, &err), 0, "%s", err.text);
    cr_expect_eq(log_sink_next(s), 8u, "a half line comes again");
    put(s, "three\nfo");
    cr_assert_eq(log_sink_sync(s, &durable, &err), 0);
    cr_expect_eq(durable, 14u, "what is whole");
    expect("pod/0.log.1", "one\ntwo\n");
    expect("pod/0.log", "three\nfo");
    log_sink_close(s);
    s = open_log();
    cr_expect_eq(log_sink_next(s), 16u);
    cr_expect_eq(log_sink_reopen(s, &err), 0, "nobody has renamed it");
    cr_expect_eq(log_sink_next(s), 16u);
    log_sink_close(s);
}

/* Nobody has to have more in memory to read one line; every byte is where it
 * was on the remote. */
Test(log_sink, a_line_without_end_has_one)
{
    enum { PIECE = 300000, PIECES = 9 };
    struct log_sink *s = open_log();
    cleanup_free char *path = path_of("pod/0.log");
    cleanup_free char *piece = xasprintf("%0*d", PIECE, 7);
    char *got = NULL;
    size_t size, run = 0, longest = 0;
    for (int i = 0; i < PIECES; i++)
        put(s, piece);
    put(s, "\nnext\n");
    cr_expect_eq(log_sink_next(s), PIECES * PIECE + 6u);
    log_sink_close(s);
    cr_assert_eq(file_read(path, 4 << 20, &got, &size, &err), 0, "%s",
                 err.text);
    cr_assert_eq(size, PIECES * PIECE + 6u);
    for (size_t i = 0; i < size; i++) {
        run = got[i] == '\n' ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    cr_expect_eq(longest, (size_t)LOG_LINE_MAX);
    cr_expect_str_eq(got + size - 7, "7\nnext\n"); /* a piece ends with 7 */
    free(got);
}

Test(log_sink, a_rename_that_nobody_told_of)
{
    struct log_sink *s = open_log();
    put(s, "one\n");
    log_sink_close(s);
    rename_log("pod/0.log", "pod/0.log.1");
    s = open_log();
    put(s, "two\n");
    cr_assert_eq(log_sink_reopen(s, &err), 0);
    put(s, "three\n");
    log_sink_close(s);
    expect("pod/0.log.1", "one\ntwo\n");
    expect("pod/0.log", "three\n");
}

Test(log_sink, a_rename_that_is_taken_back)
{
    struct log_sink *s = open_log();
    put(s, "one\n");
    rename_log("pod/0.log", "pod/0.log.1");
    cr_assert_eq(log_sink_reopen(s, &err), 0);
    put(s, "two\n");
    rename_log("pod/0.log.1", "pod/0.log"); /* the answer did not come */
    put(s, "three\n");
    expect("pod/0.log", "one\ntwo\nthree\n");
    log_sink_close(s);
    s = open_log();
    cr_expect_eq(log_sink_next(s), 14u);
    log_sink_close(s);
}

Test(log_sink, others_may_empty_it)
{
    struct log_sink *s = open_log();
    cleanup_free char *path = path_of("pod/0.log");
    put(s, "one\n");
    cr_assert_eq(truncate(path, 0), 0);
    put(s, "two\n");
    log_sink_close(s);
    expect("pod/0.log", "two\n");
    s = open_log();
    cr_expect_eq(log_sink_next(s), 8u);
    cr_assert_eq(log_sink_skip(s, 100, &err), 0);
    put(s, "far\n");
    log_sink_close(s);
    s = open_log();
    cr_expect_eq(log_sink_next(s), 104u);
    log_sink_close(s);
}

Test(log_sink, a_damaged_state_repeats_nothing)
{
    struct log_sink *s = open_log();
    put(s, "one\n");
    log_sink_close(s);
    cleanup_free char *state = xasprintf("%s/k.log", top);
    cr_assert_eq(truncate(state, 20), 0);
    s = open_log();
    cr_expect_eq(log_sink_next(s), 4u);
    cr_expect_eq(log_sink_forget(s, &err), 0);
    log_sink_close(s);
    s = open_log();
    cr_expect_eq(log_sink_next(s), 0u, "another container of that name");
    log_sink_close(s);
}

Test(log_sink, stays_below_the_kubelets_folder)
{
    static const char *const bad[] = {
        "0.log",      "pod/../0.log",    "pod/",
        "pod//0.log", "../pods/x/0.log", "pod/./0.log"};
    struct log_sink *s = NULL;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        cr_expect_eq(try_open(bad[i], &s), -EINVAL, "%s", bad[i]);
    cr_expect_eq(try_open("none/0.log", &s), -ENOENT);
    cleanup_free char *link = path_of("link");
    cleanup_free char *file = path_of("pod/1.log");
    cleanup_free char *fifo = path_of("pod/2.log");
    cleanup_free char *other = path_of("pod/3.log");
    cleanup_free char *hard = path_of("pod/4.log");
    cr_assert_eq(symlink("pod", link), 0);
    cr_assert_eq(symlink("/etc/passwd", file), 0);
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    (void)close(open(other, O_WRONLY | O_CREAT, 0600));
    cr_assert_eq(linkat(AT_FDCWD, other, AT_FDCWD, hard, 0), 0);
    cr_expect_lt(try_open("link/0.log", &s), 0);
    cr_expect_eq(try_open("pod/1.log", &s), -ELOOP);
    cr_expect_eq(try_open("pod/2.log", &s), -EINVAL);
    cr_expect_eq(try_open("pod/4.log", &s), -EINVAL, "two names");
}
