/* The operator's hooks: shell scripts, run for real. */
#include "advertiser/act/prep/prep.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

#define PCI "0000:17:00.0"
#define CARD "card-0000-17-00"

enum { PATIENCE_MS = 60000 };

/* A directory of hooks, one of state, and where hooks leave their marks. */
static struct lab {
    char *top, *hooks, *state;
} lab;

static void lab_begin(void)
{
    lab.top = tmpdir_create();
    lab.hooks = xasprintf("%s/hooks", lab.top);
    lab.state = xasprintf("%s/state", lab.top);
    cr_assert_eq(mkdir(lab.hooks, 0755), 0);
    cr_assert_eq(mkdir(lab.state, 0700), 0);
}

static void lab_end(void)
{
    tmpdir_remove(lab.top);
    free(lab.hooks);
    free(lab.state);
}

static char *in_lab(const char *name)
{
    return xasprintf("%s/%s", lab.top, name);
}

/* Scripts find the lab in $L. */
static void touch(const char *name)
{
    cleanup_free char *path = in_lab(name);
    FILE *f = fopen(path, "we");
    cr_assert(f);
    cr_assert_eq(fclose(f), 0);
}

static void put_hook(const char *name, const char *script)
{
    cleanup_free char *path = xasprintf("%s/%s", lab.hooks, name);
    FILE *f = fopen(path, "we");
    cr_assert(f);
    (void)fprintf(f, "#!/bin/sh\nL='%s'\n%s\n", lab.top, script);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(chmod(path, 0755), 0);
}

static char *contents(const char *name)
{
    cleanup_free char *path = in_lab(name);
    cleanup_file FILE *f = fopen(path, "re");
    char *text = xcalloc(1, 65536);
    if (f)
        (void)!fread(text, 1, 65535, f); /* NUL-terminated by xcalloc() */
    return text;
}

static bool exists(const char *name)
{
    cleanup_free char *path = in_lab(name);
    return access(path, F_OK) == 0;
}

static void wait_for(const char *name)
{
    for (int64_t end = clock_ms() + PATIENCE_MS; !exists(name);) {
        cr_assert_lt(clock_ms(), end, "%s does not appear", name);
        (void)poll(NULL, 0, 5);
    }
}

static bool keep_until(void *ctx)
{
    return !exists(ctx);
}

static void make(const char *name)
{
    cleanup_free char *path = in_lab(name);
    cleanup_file FILE *f = fopen(path, "we");
    cr_assert(f);
}

/* Makes the file once it waits, for its hook or for one before. */
static bool keep_and_make(void *ctx)
{
    make(ctx);
    return true;
}

/* A second of virtual time goes by, once, when the hook is that far. */
static bool keep_and_age(void *ctx)
{
    static bool aged;
    if (!aged && exists(ctx)) {
        virtual_take(1000);
        aged = true;
    }
    return true;
}

static int run_with(const char *hook, int64_t ms, bool (*keep)(void *ctx),
                    const char *ctx, struct prep_outcome *o, struct error *err)
{
    struct prep_config config = {
        .hooks_dir = lab.hooks, .dir = lab.state, .hook_ms = ms};
    struct prep_request request = {.card = CARD,
                                   .pci = PCI,
                                   .namespace = "team",
                                   .pod = "solver-0-xpu",
                                   .sriov_vfs = -1,
                                   .hook = hook,
                                   .keep = keep,
                                   .ctx = (void *)ctx};
    return prep_run(&config, &request, o, err);
}

static int run_for(const char *hook, int64_t ms, const char *until,
                   struct prep_outcome *o, struct error *err)
{
    return run_with(hook, ms, until ? keep_until : NULL, until, o, err);
}

static struct prep_outcome run_hook(const char *hook)
{
    struct prep_outcome o = {.exit_status = 77};
    struct error err = {0};
    cr_assert_eq(run_for(hook, PATIENCE_MS, NULL, &o, &err), 0, "%s", err.text);
    return o;
}

#define expect_reason(o, word, part)                           \
    do {                                                       \
        struct prep_outcome o_ = (o);                          \
        cr_expect_str_eq(o_.reason, word, "%s", o_.message);   \
        cr_expect(strstr(o_.message, part), "%s", o_.message); \
    } while (0)

TestSuite(prep_hook, .init = lab_begin, .fini = lab_end, .timeout = 120);

Test(prep_hook, what_it_is_given)
{
    put_hook("look", "env | sort >$L/env; pwd >$L/pwd; cat >$L/stdin;"
                     "ls /proc/self/fd | wc -l >$L/fds; echo \"$# $0\"");
    cr_assert_eq(setenv("BIGA_SECRET", "1", 1), 0);
    int leak = open("/dev/null", O_RDONLY); /* NOLINT: not for the hook */
    struct prep_outcome o = run_hook("look");
    expect_reason(o, "", "hook look took");
    cleanup_free char *env = contents("env"), *pwd = contents("pwd"),
                      *in = contents("stdin"), *fds = contents("fds");
    cr_expect(strstr(env, "BIGA_CARD=" CARD "\n"), "%s", env);
    cr_expect(strstr(env, "BIGA_CARD_PCI=" PCI "\n"), "%s", env);
    cr_expect(strstr(env, "BIGA_NAMESPACE=team\n"), "%s", env);
    cr_expect(strstr(env, "BIGA_POD=solver-0-xpu\n"), "%s", env);
    cr_expect_not(strstr(env, "BIGA_SECRET"), "%s", env);
    cr_expect_str_eq(pwd, "/\n");
    cr_expect_str_empty(in);
    /* 0, 1, 2, the lock, and the one by which ls looks */
    cr_expect_eq(strtol(fds, NULL, 10), 5, "%s", fds);
    cr_expect(o.hook_ran);
    cr_expect_eq(o.exit_status, 0);
    (void)close(leak);
}

Test(prep_hook, how_it_ends_is_told)
{
    put_hook("bad", "echo first; echo 'no card there' >&2; echo; exit 3");
    put_hook("killed", "kill -9 $$");
    struct prep_outcome o = run_hook("bad");
    expect_reason(o, "HookFailed", "ended with status 3: no card there");
    cr_expect_eq(o.exit_status, 3);
    cr_expect(o.again);
    o = run_hook("killed");
    expect_reason(o, "HookFailed", "ended with signal 9");
    cr_expect_eq(o.signal, 9);
    cr_expect_eq(o.exit_status, -1);
    cleanup_free char *record = contents("state/hook-" CARD);
    cr_expect_str_eq(record, "ended killed 137 team/solver-0-xpu\n");
}

Test(prep_hook, much_output_is_held_back)
{
    /* it does not outrun who cuts it, nor is its last line cut away */
    put_hook("loud", "size() { stat -c %s $L/state/hook-" CARD ".log; };"
                     "more() { head -c 100000 /dev/zero;"
                     " while [ $(size) -gt 2000000 ]; do sleep 0.01; done; };"
                     "i=0; while [ $i -lt 60 ]; do more; i=$((i+1)); done;"
                     "while [ $(size) -gt 1000000 ]; do more; done;"
                     "printf '\\na\\033[31mb\\001c\\n\\n  \\n'");
    struct prep_outcome o = run_hook("loud");
    expect_reason(o, "", "a?[31mb?c");
    cleanup_free char *path = in_lab("state/hook-" CARD ".log");
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_lt(st.st_size, 4 << 20, "%lld", (long long)st.st_size);
    put_hook("quiet", "true");
    expect_reason(run_hook("quiet"), "", " ms");
    put_hook("zeros", "head -c 10000 /dev/zero");
    expect_reason(run_hook("zeros"), "", " ms");
}

/* "fifo", which hooks hold open; the end that sees when none does any more. */
static int make_fifo(void)
{
    cleanup_free char *path = in_lab("fifo");
    cr_assert_eq(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    return fd;
}

static void expect_closed(int fd)
{
    struct pollfd end = {.fd = fd};
    cr_expect_eq(poll(&end, 1, PATIENCE_MS), 1, "a process of it went on");
    cr_expect_eq(end.revents, POLLHUP);
}

Test(prep_hook, its_deadline_ends_all_of_it)
{
    struct prep_outcome o;
    struct error err = {0};
    cleanup_fd int fd = make_fifo();
    put_hook("slow", "exec 3>$L/fifo; sleep 600 & echo waiting; touch $L/up;"
                     "sleep 600");
    virtual_begin();
    cr_assert_eq(run_with("slow", 300, keep_and_age, "up", &o, &err), 0, "%s",
                 err.text);
    virtual_end();
    expect_reason(o, "HookTimedOut", "killed after 300 ms: waiting");
    cr_expect_eq(o.signal, SIGKILL);
    expect_closed(fd);
}

Test(prep_hook, what_it_leaves_behind_ends_with_it)
{
    cleanup_fd int fd = make_fifo();
    put_hook("forks", "exec 4>$L/fifo; (sleep 600; touch $L/later) & exit 0");
    expect_reason(run_hook("forks"), "", "took");
    expect_closed(fd);
    cr_expect_not(exists("later"));
    /* who leaves the group stays, and is in nobody's way */
    put_hook("daemon", "setsid sh -c 'touch $0/up; sleep 30' \"$L\" &"
                       "while ! [ -e $L/up ]; do sleep 0.01; done");
    expect_reason(run_hook("daemon"), "", "took");
    expect_reason(run_hook("forks"), "", "took");
}

Test(prep_hook, it_is_left_to_itself_when_we_end)
{
    struct prep_outcome o = {.exit_status = 77};
    struct error err = {0};
    put_hook("flash", "echo begun >>$L/flash; touch $L/up;"
                      "while ! [ -e $L/go ]; do sleep 0.01; done;"
                      "echo end >>$L/flash");
    cr_assert_eq(run_for("flash", PATIENCE_MS, "up", &o, &err), -ECANCELED);
    cr_expect_eq(o.exit_status, 77, "written although it failed");
    cr_expect_str_eq(err.text, "hook flash goes on by itself");
    cleanup_free char *record = contents("state/hook-" CARD);
    cr_expect_eq(strncmp(record, "begun flash ", 12), 0, "%s", record);
    /* who waits for it then, and ends, leaves it alone as well */
    cr_assert_eq(run_for("flash", PATIENCE_MS, "up", &o, &err), -ECANCELED);
    touch("go");
    o = run_hook("flash");
    expect_reason(o, "", "how the hook before it ended is not known");
    cr_expect(o.hook_unknown);
    cleanup_free char *marks = contents("flash");
    cr_expect_str_eq(marks, "begun\nend\nbegun\nend\n"); /* never mixed */
}

Test(prep_hook, only_the_operators_files_are_run)
{
    cleanup_free char *file = in_lab("hooks/open"),
                      *link = in_lab("hooks/link"), *dir = in_lab("hooks/dir");
    put_hook("open", "touch $L/ran");
    expect_reason(run_hook("../hooks/open"), "HookRefused", "no name of");
    expect_reason(run_hook("Open"), "HookRefused", "no name of");
    expect_reason(run_hook("none"), "HookMissing", "No such file");
    cr_assert_eq(chmod(file, 0775), 0);
    expect_reason(run_hook("open"), "HookRefused", "chmod go-w");
    cr_assert_eq(chmod(file, 0757), 0);
    expect_reason(run_hook("open"), "HookRefused", "chmod go-w");
    cr_assert_eq(chmod(file, 0644), 0);
    expect_reason(run_hook("open"), "HookRefused", "is not executable");
    cr_assert_eq(chmod(file, 0755), 0);
    cr_assert_eq(symlink("open", link), 0);
    expect_reason(run_hook("link"), "HookRefused", "is no regular file");
    cr_assert_eq(mkdir(dir, 0755), 0);
    expect_reason(run_hook("dir"), "HookRefused", "is no regular file");
    cr_assert_eq(chmod(lab.hooks, 0777), 0);
    expect_reason(run_hook("open"), "HookRefused", "chmod go-w");
    cr_assert_eq(chmod(lab.hooks, 0755), 0);
    if (geteuid() == 0) {
        cr_assert_eq(chown(file, 65534, 0), 0);
        expect_reason(run_hook("open"), "HookRefused", "must belong to root");
    }
    cr_expect_not(exists("ran"));
    cr_expect_not(exists("state/hook-" CARD));
}

Test(prep_hook, a_node_without_hooks)
{
    struct prep_config config = {.dir = lab.state};
    struct prep_request request = {.card = CARD,
                                   .pci = PCI,
                                   .namespace = "team",
                                   .pod = "a",
                                   .sriov_vfs = -1,
                                   .hook = "x"};
    struct prep_outcome o;
    cr_assert_eq(prep_run(&config, &request, &o, NULL), 0);
    expect_reason(o, "HookMissing", "--hooks DIR");
    put_hook("bad", "");
    cleanup_free char *file = in_lab("hooks/bad");
    FILE *f = fopen(file, "we");
    cr_assert(f);
    (void)fputs("#!/nowhere/sh\n", f);
    cr_assert_eq(fclose(f), 0);
    expect_reason(run_hook("bad"), "HookFailed", "could not be executed");
}

Test(prep_hook, nothing_runs_that_is_not_written_down)
{
    struct prep_outcome o;
    struct error err = {0};
    put_hook("run", "touch $L/ran");
    cr_assert_eq(rmdir(lab.state), 0);
    cr_expect_eq(run_for("run", PATIENCE_MS, NULL, &o, &err), -ENOENT);
    cr_expect(strstr(err.text, "hook-" CARD), "%s", err.text);
    cr_expect_not(exists("ran"));
}

/* Runs the hook in another process, which dies while it runs. */
static void die_while_running(const char *hook, const char *mark)
{
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        struct prep_outcome o;
        (void)run_for(hook, PATIENCE_MS, NULL, &o, NULL);
        _exit(0);
    }
    wait_for(mark);
    cr_assert_eq(kill(pid, SIGKILL), 0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(prep_hook, one_that_outlives_us_is_waited_for)
{
    struct prep_outcome o = {.exit_status = 77};
    struct error err = {0};
    put_hook("flash",
             "echo flashing; touch $L/up;"
             "while ! [ -e $L/go ]; do sleep 0.01; done; echo on;"
             "echo written >>$L/flash; sleep 0.2; echo end >>$L/flash");
    die_while_running("flash", "up");
    cleanup_free char *record = contents("state/hook-" CARD);
    cr_expect_eq(strncmp(record, "begun flash ", 12), 0, "%s", record);
    cr_assert_eq(run_with("flash", PATIENCE_MS, keep_and_make, "go", &o, &err),
                 0, "%s", err.text);
    expect_reason(o, "", "how the hook before it ended is not known");
    cr_expect(o.hook_unknown);
    cleanup_free char *log = contents("flash");
    cr_expect_str_eq(log, "written\nend\nwritten\nend\n"); /* never mixed */
    o = run_hook("flash");
    cr_expect_not(o.hook_unknown);
}

Test(prep_hook, one_that_outlives_us_has_a_deadline)
{
    struct prep_outcome o;
    struct error err = {0};
    put_hook("hang", "touch $L/up; sleep 60; touch $L/later");
    put_hook("next", "touch $L/next");
    die_while_running("hang", "up");
    virtual_begin();
    cr_assert_eq(run_with("next", 500, keep_and_age, "up", &o, &err), 0, "%s",
                 err.text);
    virtual_end();
    expect_reason(o, "", "how the hook before it ended is not known");
    cr_expect(exists("next"));
}

Test(prep_hook, one_that_left_its_group_is_named)
{
    struct prep_outcome o;
    struct error err = {0};
    put_hook("leave", "setsid sh -c 'touch $0/up;"
                      "while [ -e $0/up ]; do sleep 0.05; done' \"$L\"");
    put_hook("next", "touch $L/next");
    die_while_running("leave", "up");
    cr_assert_eq(run_for("next", 300, "gone", &o, &err), 0, "%s", err.text);
    cr_expect(o.hook_unknown);
    expect_reason(o, "HookTimedOut", "still runs (process group ");
    cr_expect_not(exists("next"));
}

Test(prep_hook, a_record_that_was_cut_off_counts_as_begun)
{
    static const char *const texts[] = {"b",          "begun", "begun x",
                                        "begun x 1 ", "\n",    "ended"};
    put_hook("run", "true");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cleanup_free char *path = in_lab("state/hook-" CARD);
        FILE *f = fopen(path, "we");
        cr_assert(f);
        (void)fputs(texts[i], f);
        cr_assert_eq(fclose(f), 0);
        cr_expect(run_hook("run").hook_unknown, "%s", texts[i]);
        cr_expect_not(run_hook("run").hook_unknown);
    }
}
