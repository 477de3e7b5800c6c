#include "advertiser/act/prep/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/mem.h"
#include "lib/base/text.h"
#include "lib/io/clock.h"

enum { WORDS_MAX = 300 }; /* bytes of its last words */

extern char **environ;

/* It leads a group of its own, so that all that it starts can be ended. */
static int start(const char *const *argv, int out, int words, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all, none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, out, 1);
    (void)posix_spawn_file_actions_adddup2(&files, words, 2);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setpgroup(&attr, 0);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    int code = posix_spawnp(ret_pid, argv[0], &files, &attr,
                            (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return code;
}

static bool is_too_long(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > TOOL_OUT_MAX;
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
}

/* Its wait status, or -errno when it was killed. */
static int follow(pid_t pid, int out, int words, int64_t due_ms)
{
    cleanup_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int status = 0, why = 0;
    while (!has_ended(pid) && why == 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)poll(&p, fd >= 0, TOOL_LOOK_MS); /* an early end does no harm */
        if (is_too_long(out) || is_too_long(words))
            why = -EFBIG;
        else if (!has_ended(pid) && clock_ms() >= due_ms)
            why = -ETIMEDOUT;
    }
    (void)kill(-pid, SIGKILL); /* what it left */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return why ? why : status;
}

static void read_all(int fd, struct str *to)
{
    char piece[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(fd, piece, sizeof piece, at)) > 0; at += n)
        str_add_n(to, piece, (size_t)n);
}

/* Its last line on stderr with something on it, clean. */
static void last_words(int fd, struct str *ret)
{
    cleanup_str struct str all = STR_INIT(2 * TOOL_OUT_MAX);
    read_all(fd, &all);
    size_t end = all.size;
    while (end > 0 && strchr(" \t\r\n", all.data[end - 1]))
        end--; /* also a NUL, which strchr() finds */
    size_t begin = end;
    while (begin > 0 && all.data[begin - 1] != '\n' && end - begin < WORDS_MAX)
        begin--;
    cleanup_str struct str line = STR_INIT(WORDS_MAX + 1);
    for (; begin < end; begin++)
        str_add_c(&line, all.data[begin] ? all.data[begin] : '?');
    text_clean(str_text(&line), ret);
}

static int tell(const char *name, int result, int64_t limit_ms, int words,
                struct error *err)
{
    cleanup_str struct str said = STR_INIT(4 * WORDS_MAX);
    last_words(words, &said);
    if (result == -ETIMEDOUT)
        return error_set(err, ETIMEDOUT, "%s: was killed after %lld ms%s%s",
                         name, (long long)limit_ms, said.size ? ": " : "",
                         str_text(&said));
    if (result < 0)
        return error_set(err, -result, "%s: printed more than %d bytes", name,
                         TOOL_OUT_MAX);
    if (WIFEXITED(result) && WEXITSTATUS(result) == 0)
        return 0;
    if (said.size == 0)
        str_addf(&said, "ended with %s %d",
                 WIFSIGNALED(result) ? "signal" : "status",
                 WIFSIGNALED(result) ? WTERMSIG(result) : WEXITSTATUS(result));
    return error_set(err, EREMOTEIO, "%s: %s", name, str_text(&said));
}

int tool_run(const char *const *argv, int64_t limit_ms, struct str *ret_out,
             struct error *err)
{
    pid_t pid = 0;
    cleanup_fd int out = memfd_create("tool-out", MFD_CLOEXEC);
    cleanup_fd int words = memfd_create("tool-words", MFD_CLOEXEC);
    if (out < 0 || words < 0)
        return error_errno(err, errno, "%s", argv[0]);
    int64_t due_ms = clock_ms() + limit_ms;
    int code = start(argv, out, words, &pid);
    if (code != 0)
        return error_errno(err, code, "%s", argv[0]);
    int e = tell(argv[0], follow(pid, out, words, due_ms), limit_ms, words,
                 err);
    if (e == 0)
        read_all(out, ret_out);
    return e;
}
