#include "card/follow.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "tests/lib/tmpdir.h"

#define LINE "2026-01-01T00:00:00.000000001Z stdout F "

static char *top;

static void begin(void)
{
    (void)signal(SIGIO, SIG_IGN);
    top = tmpdir_create();
}

static void end(void)
{
    tmpdir_remove(top);
}

TestSuite(follow, .init = begin, .fini = end, .timeout = 60);

static void append(const char *name, const char *text)
{
    cleanup_free char *path = xasprintf("%s/%s", top, name);
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

struct call {
    const char *seq, *start, *wait, *max;
    const char *files[3];
    int rc;
    char *text; /* what it wrote */
    struct error err;
    pthread_t thread;
};

static void *run(void *arg)
{
    struct call *c = arg;
    cleanup_free char *dir = xasprintf("%s/meet", top);
    const char *argv[16] = {dir, "a1"};
    cleanup_free char *files[3] = {0};
    int argc = 2, out = memfd_create("out", MFD_CLOEXEC);
    const char *words[] = {c->seq ? c->seq : "1", c->start ? c->start : "first",
                           c->wait ? c->wait : "0", "0",
                           c->max ? c->max : "100000"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        argv[argc++] = words[i];
    for (size_t i = 0; i < 3 && c->files[i]; i++)
        argv[argc++] = files[i] = xasprintf(c->files[i], top);
    c->rc = card_follow(argc, argv, out, &c->err);
    off_t size = lseek(out, 0, SEEK_END);
    c->text = xcalloc(1, (size_t)size + 1);
    cr_assert_eq(pread(out, c->text, (size_t)size, 0), size);
    (void)close(out);
    for (size_t i = 0; i < 3; i++)
        free(steal(&files[i]));
    return NULL;
}

/* A round that is the first and waits for nothing, but for what is said. */
#define CALL(...)            \
    (struct call)            \
    {                        \
        .rc = 1, __VA_ARGS__ \
    }

static void expect(struct call c, int rc, const char *text)
{
    (void)run(&c);
    cr_expect_eq(c.rc, rc, "%d: %s", c.rc, c.err.text);
    cr_expect_str_eq(c.text, text);
    free(c.text);
}

Test(follow, gives_whole_lines_of_several)
{
    append("a", "one\ntwo\nthr");
    append("b", "other\n");
    expect(CALL(.files = {"3 0 0 0 0 %s/a", "5 0 2 0 0 %s/b"}), 0,
           "d 3 0 8\none\ntwo\nd 5 2 4\nher\nz 28\n");
    expect(CALL(.files = {"3 0 8 0 0 %s/a", "4 0 0 0 0 %s/none"}), 0, "z 0\n");
}

Test(follow, gives_the_end_when_nobody_writes)
{
    append("a", "one\ntwo");
    expect(CALL(.wait = "60000", .files = {"1 1 0 0 0 %s/a"}), 0,
           "d 1 0 7\none\ntwoe 1 7\nz 21\n");
    expect(CALL(.wait = "60000", .files = {"2 1 0 0 0 %s/none"}), 0,
           "m 2 2\nz 6\n");
    cleanup_free char *path = xasprintf("%s/a", top);
    cleanup_fd int fd = open(path, O_WRONLY | O_APPEND);
    expect(CALL(.files = {"1 1 7 0 0 %s/a"}), 0, "z 0\n");
}

Test(follow, keeps_to_its_arguments)
{
    expect(CALL(.files = {"1 0 0 0 0 a"}), -EINVAL, "");
    expect(CALL(.files = {"1 2 0 0 0 %s/a"}), -EINVAL, "");
    expect(CALL(.files = {"1 0 0 0 0 %s/../a"}), -EINVAL, "");
    expect(CALL(.files = {"1 0 0 0 %s/a"}), -EINVAL, "");
    expect(CALL(.files = {"2 0 0 0 0 %s/a", "2 0 0 0 0 %s/b"}), -EINVAL, "");
    expect(CALL(.seq = "0"), -EINVAL, "");
    expect(CALL(.start = "last"), -EINVAL, "");
    expect(CALL(.max = "9000000"), -EINVAL, "");
}

Test(follow, follows_no_link)
{
    cleanup_free char *link = xasprintf("%s/link", top);
    append("a", "one\n");
    cr_assert_eq(symlink("a", link), 0);
    cleanup_free char *text = xasprintf("m 1 %d\nz 7\n", ELOOP);
    expect(CALL(.files = {"1 0 0 0 0 %s/link"}), 0, text);
}

Test(follow, makes_holes_and_passes_them)
{
    cleanup_free char *path = xasprintf("%s/a", top);
    struct str text = STR_INIT(1 << 20);
    while (text.size < 200000)
        str_add(&text, LINE "what a pod has to say\n");
    append("a", text.data);
    expect(CALL(.files = {"1 0 200500 140000 0 %s/a"}), 0, "z 0\n");
    cleanup_fd int fd = open(path, O_RDONLY);
    off_t data = lseek(fd, 0, SEEK_DATA);
    if (data == 0)
        cr_skip("the file system makes no holes");
    cr_expect_eq(data, 131072);
    /* from there the next whole line, and all behind it */
    const char *line = strchr(text.data + 131072, '\n') + 1;
    size_t from = (size_t)(line - text.data);
    cleanup_free char *head = xasprintf("d 1 %zu %zu\n", from,
                                        text.size - from);
    cleanup_free char *all = xasprintf("%s%sz %zu\n", head, line,
                                       strlen(head) + strlen(line));
    expect(CALL(.files = {"1 0 0 0 0 %s/a"}, .max = "1000000"), 0, all);
    str_fini(&text);
}

Test(follow, keeps_to_a_limit)
{
    struct str text = STR_INIT(1 << 20);
    struct call c = CALL(.max = "8000000", .files = {"1 0 0 0 1000 %s/a"});
    while (text.size < 400000)
        str_add(&text, LINE "what a pod has to say\n");
    append("a", text.data);
    str_fini(&text);
    (void)run(&c);
    cr_expect(strlen(c.text) > 60000 && strlen(c.text) < 140000);
    free(c.text);
    /* that was two minutes' worth, whoever gave it */
    expect(CALL(.seq = "2", .start = "next", .files = {"1 0 0 0 1000 %s/a"}), 0,
           "z 0\n");
}

/* --- rounds that take over ------------------------------------------------ */

static void start(struct call *c)
{
    cr_assert_eq(pthread_create(&c->thread, NULL, run, c), 0);
}

static void ended(struct call *c, const char *text)
{
    cr_assert_eq(pthread_join(c->thread, NULL), 0);
    cr_expect_eq(c->rc, 0, "%s", c->err.text);
    cr_expect_str_eq(c->text, text);
    free(c->text);
}

Test(follow, the_next_goes_on_where_one_has_stopped)
{
    struct call one = CALL(.wait = "60000", .files = {"1 0 0 0 0 %s/a"});
    struct call two = CALL(.seq = "2", .start = "next", .wait = "60000",
                           .files = {"1 0 0 0 0 %s/a", "2 0 0 0 0 %s/b"});
    start(&one);
    start(&two);
    append("a", "one\n");
    ended(&one, "d 1 0 4\none\nz 12\n");
    append("b", "two\n");
    ended(&two, "d 2 0 4\ntwo\nz 12\n");
}

Test(follow, who_hurries_is_not_waited_for)
{
    struct call one = CALL(.wait = "60000", .files = {"1 0 0 0 0 %s/a"});
    struct call two = CALL(.seq = "2", .start = "next", .wait = "60000",
                           .files = {"1 0 0 0 0 %s/a"});
    struct call three = CALL(.seq = "3", .start = "hurry",
                             .files = {"1 0 0 0 0 %s/a"});
    start(&one);
    start(&two);
    start(&three);
    ended(&one, "z 0\n");
    ended(&two, "z 0\n");
    ended(&three, "z 0\n");
}

Test(follow, another_chain_ends_the_first)
{
    struct call one = CALL(.wait = "60000", .files = {"1 0 0 0 0 %s/a"});
    cleanup_free char *dir = xasprintf("%s/meet", top);
    const char *argv[] = {dir, "b2", "1", "first", "0", "0", "1000"};
    struct error err;
    start(&one);
    cleanup_fd int out = memfd_create("out", MFD_CLOEXEC);
    while (card_follow(ARRAY_LEN(argv), argv, out, &err) == 0 &&
           pthread_tryjoin_np(one.thread, NULL) != 0)
        ;
    free(one.text);
}

Test(follow, a_round_without_one_before_it_fails)
{
    cleanup_free char *dir = xasprintf("%s/meet", top);
    const char *argv[] = {dir, "a1", "1", "first", "0", "0", "1000"};
    struct error err;
    cleanup_fd int full = open("/dev/full", O_WRONLY);
    cr_expect_eq(card_follow(ARRAY_LEN(argv), argv, full, &err), -ENOSPC);
    expect(CALL(.seq = "2", .start = "next"), -ESTALE, "");
}

static void *run_stuck(void *arg)
{
    cleanup_free char *dir = xasprintf("%s/meet", top);
    cleanup_free char *file = xasprintf("1 0 0 0 0 %s/a", top);
    const char *argv[] = {dir, "c3", "1", "first", "0", "0", "1000000", file};
    struct error err;
    (void)card_follow(ARRAY_LEN(argv), argv, *(int *)arg, &err);
    return NULL;
}

Test(follow, one_that_hangs_is_in_nobodys_way)
{
    int ends[2];
    pthread_t thread;
    char byte;
    struct str text = STR_INIT(1 << 20);
    while (text.size < 400000)
        str_add(&text, LINE "what a pod has to say\n");
    append("a", text.data);
    str_fini(&text);
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(pthread_create(&thread, NULL, run_stuck, &ends[1]), 0);
    cr_assert_eq(read(ends[0], &byte, 1), 1); /* it writes, and is not read */
    expect(CALL(.files = {"1 0 0 0 0 %s/none"}), 0, "z 0\n");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close(ends[0]);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    (void)close(ends[1]);
}
