#include "advertiser/probe/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/hidden_text.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

enum {
    SAID_MAX = 512, /* bytes kept of what the child writes to stderr */
    EXIT_SCANNED = 0,
    EXIT_REFUSED = 3,
};

void scan_text(char ret_text[SCAN_TEXT_SIZE], const char *text)
{
    size_t size = text ? strlen(text) : 0, used = 0;
    while (size > 0 && *text == ' ') {
        text++;
        size--;
    }
    for (size_t i = 0, n; i < size; i += n) {
        bool hidden;
        n = hidden_text_next(text + i, size - i, &hidden);
        if (used + n > TOPO_TEXT_MAX)
            break;
        if (hidden)
            ret_text[used++] = '?';
        for (size_t k = 0; k < n && !hidden; k++)
            ret_text[used++] = text[i + k];
    }
    while (used > 0 && ret_text[used - 1] == ' ')
        used--;
    ret_text[used] = '\0';
}

void scan_free(struct scan *scan)
{
    if (scan)
        (void)munmap(scan, sizeof(*scan)); /* fails on a bad address only */
}

/* --- the child ---------------------------------------------------------- */

static void child_limit(int deadline_ms)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none); /* a crash is expected, not news */
    const rlim_t seconds = (rlim_t)(deadline_ms / 1000 + 1);
    const struct rlimit cpu = {seconds, seconds};
    (void)setrlimit(RLIMIT_CPU, &cpu); /* the parent's deadline is behind it */
#ifndef SANITIZED /* a sanitizer's shadow is larger than any limit */
    const struct rlimit memory = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    (void)setrlimit(RLIMIT_AS, &memory); /* only lowered: always allowed */
#endif
}

/* Never returns to the caller's code: no atexit handler, no buffer of the
 * parent is flushed twice. */
static _Noreturn void child_main(const struct scan_source *source,
                                 struct scan *scan, int said_fd,
                                 int deadline_ms)
{
    static const int signals[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT,
                                  SIGTERM, SIGINT,  SIGHUP,  SIGPIPE, SIGCHLD,
                                  SIGALRM, SIGUSR1, SIGUSR2, SIGQUIT};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        (void)signal(signals[i], SIG_DFL); /* all are valid signals */
    sigset_t empty;
    sigemptyset(&empty);
    (void)sigprocmask(SIG_SETMASK, &empty, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a valid signal */
    /* both are open; otherwise what hwloc says would be seen, no more */
    (void)dup2(said_fd, STDOUT_FILENO);
    (void)dup2(said_fd, STDERR_FILENO);
    child_limit(deadline_ms);
    scan_hwloc(source, scan);
    _exit(scan->code ? EXIT_REFUSED : EXIT_SCANNED);
}

/* --- the parent --------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Read until the child has closed its end, which it does by ending.  False
 * when the deadline passes first. */
static bool child_wait(int fd, int deadline_ms, char said[SAID_MAX])
{
    const int64_t end = now_ms() + deadline_ms;
    size_t used = 0;
    bool ended = false;
    for (;;) {
        const int64_t left = end - now_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left <= 0)
            break;
        int n = poll(&p, 1, (int)left);
        if (n == 0 || (n < 0 && errno == EINTR))
            continue;
        char buffer[4096];
        ssize_t size = n < 0 ? -1 : read(fd, buffer, sizeof(buffer));
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0) {
            ended = size == 0;
            break;
        }
        size_t kept = (size_t)size;
        if (kept > SAID_MAX - 1 - used)
            kept = SAID_MAX - 1 - used;
        memcpy(said + used, buffer, kept);
        used += kept;
    }
    said[used] = '\0';
    return ended;
}

/* The first line that the child said which says something, cut to fit into
 * an error.  hwloc opens and closes with advice about its own parser. */
static void said_fold(char said[SAID_MAX])
{
    static const char *const advice[] = {"Failed to parse XML input",
                                         "xmlbuffer: XML component"};
    char *line = said;
    for (char *next = said; next;) {
        line = next;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        bool useful = *line != '\0';
        for (size_t i = 0; i < ARRAY_LEN(advice); i++)
            if (strncmp(line, advice[i], strlen(advice[i])) == 0)
                useful = false;
        if (useful)
            break;
        line += strlen(line);
    }
    size_t size = strlen(line) < 160 ? strlen(line) : 160;
    memmove(said, line, size);
    said[size] = '\0';
    for (char *p = said; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = ' ';
}

static int status_read(int status, const struct scan *scan, char *said,
                       struct error *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SCANNED)
        return 0;
    said_fold(said);
    const char *open = *said ? " (" : "", *close = *said ? ")" : "";
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REFUSED)
        return error_set(err, scan->code, "%.*s%s%s%s", ERROR_TEXT_MAX - 200,
                         scan->text, open, said, close);
    if (WIFSIGNALED(status))
        return error_set(err, EINVAL, "hwloc crashed on it: %s%s%s%s",
                         strsignal(WTERMSIG(status)), open, said, close);
    return error_set(err, EINVAL, "hwloc ended with status %d%s%s%s",
                     WEXITSTATUS(status), open, said, close);
}

/* The child may have crashed half way or worse: trust no count or text. */
static int scan_check(struct scan *scan, struct error *err)
{
    if (scan->n_functions > SCAN_FUNCTIONS_MAX ||
        scan->n_numas > TOPO_NUMAS_MAX)
        return error_set(err, EINVAL, "hwloc left a damaged result");
    for (uint32_t i = 0; i < scan->n_functions; i++) {
        struct scan_function *f = &scan->functions[i];
        if (f->n_path > TOPO_PATH_MAX || f->n_foreign > f->n_path)
            return error_set(err, EINVAL, "hwloc left a damaged result");
        f->vendor[SCAN_TEXT_SIZE - 1] = f->model[SCAN_TEXT_SIZE - 1] = '\0';
        f->serial[SCAN_TEXT_SIZE - 1] = f->rdma[SCAN_TEXT_SIZE - 1] = '\0';
        f->look.link[PCI_FUNCTION_TEXT_SIZE - 1] = '\0';
        f->look.mode[PCI_FUNCTION_TEXT_SIZE - 1] = '\0';
        f->interface[SCAN_TEXT_SIZE - 1] = f->guid[SCAN_TEXT_SIZE - 1] = '\0';
    }
    for (uint32_t i = 0; i < scan->n_numas; i++)
        scan->numas[i].cpu_list[SCAN_TEXT_SIZE - 1] = '\0';
    return 0;
}

int scan_run(const struct scan_source *source, int deadline_ms,
             struct scan **ret_scan, struct error *err)
{
    void *map = mmap(NULL, sizeof(struct scan), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return error_errno(err, errno, "cannot share memory with a child");
    cleanup_with(scan) struct scan *scan = map;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    cleanup_fd int said_fd = fds[0];
    pid_t pid = fork();
    if (pid < 0) {
        int code = errno;
        (void)close(fds[1]);
        return error_errno(err, code, "cannot start a child process");
    }
    if (pid == 0)
        child_main(source, scan, fds[1], deadline_ms);
    (void)close(fds[1]); /* nothing was written to it */

    char said[SAID_MAX];
    bool ended = child_wait(said_fd, deadline_ms, said);
    if (!ended)
        (void)kill(pid, SIGKILL); /* our own child, not yet waited for */
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_errno(err, errno, "cannot wait for hwloc");
    if (!ended)
        return error_set(err, ETIMEDOUT, "hwloc took longer than %d ms",
                         deadline_ms);
    scan->text[ERROR_TEXT_MAX - 1] = '\0';
    int rc = status_read(status, scan, said, err);
    if (rc == 0)
        rc = scan_check(scan, err);
    if (rc == 0)
        *ret_scan = steal(&scan);
    return rc;
}
