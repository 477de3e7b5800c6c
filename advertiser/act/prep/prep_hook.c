/* The operator's hook: one executable, with a deadline, as a process group of
 * its own.
 *
 * What runs for a card holds the lock of the file DIR/hook-CARD: the hook has
 * it from us and gives it to all that it starts.  So whoever comes after us
 * waits for what we left behind, and what is written there says what it was:
 *
 *     begun NAME PID START NAMESPACE/POD
 *     ended NAME STATUS NAMESPACE/POD
 *
 * It writes to a file, hook-CARD.log, and not to a pipe, which would end it
 * with us: half of an image in a card's flash is worse than none. */
#include "advertiser/act/prep/prep_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/text.h"
#include "lib/io/clock.h"

enum {
    LOCK_FD = 3,       /* of the hook: what it leaves open holds the lock */
    RECORD_MAX = 1023, /* bytes of hook-CARD */
    KILL_WAIT_MS = 2000,
    ENV_MAX = 6 + PREP_ENV_MAX,
};

struct hook {
    const struct prep_config *config;
    const struct prep_request *request;
    struct prep_outcome *o;
    char path[PATH_MAX]; /* of the executable */
    int lock;            /* hook-CARD; -1: not remembered */
    bool left;           /* to itself: it has the lock */
    char *env[ENV_MAX];
    int out; /* what it writes */
    int64_t due_ms;
};

static int64_t limit_ms(const struct hook *h)
{
    return h->config->hook_ms > 0 ? h->config->hook_ms : PREP_HOOK_MS;
}

static bool is_kept(const struct hook *h)
{
    return !h->request->keep || h->request->keep(h->request->ctx);
}

static void sleep_ms(int ms)
{
    (void)poll(NULL, 0, ms); /* an early end does no harm */
}

/* --- may it run? --------------------------------------------------------- */

static bool is_ours(const struct stat *st)
{
    return (st->st_uid == 0 || st->st_uid == geteuid()) &&
           !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int refuse(struct hook *h, const char *path)
{
    return prep_say(h->o, "HookRefused",
                    "%s: must belong to root, and nobody else may write to "
                    "it: chown root and chmod go-w",
                    path);
}

/* Leaves a reason when it may not. */
static void check_file(struct hook *h)
{
    struct stat st;
    const char *dir = h->config->hooks_dir, *name = h->request->hook;
    if (!prepare_hook_ok(name)) {
        prep_say(h->o, "HookRefused", "hook \"%.64s\": is no name of a hook",
                 name);
        return;
    }
    if (!dir || !dir[0]) {
        prep_say(h->o, "HookMissing",
                 "hook %s: this node has no hooks: start its advertiser with "
                 "--hooks DIR",
                 name);
        return;
    }
    int n = snprintf(h->path, sizeof h->path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof h->path || stat(dir, &st) < 0)
        prep_say(h->o, "HookMissing", "%s: %s", dir, strerror(errno));
    else if (!is_ours(&st))
        refuse(h, dir);
    else if (lstat(h->path, &st) < 0)
        prep_say(h->o, "HookMissing",
                 "%s: %s: put the executable there, or ask for another hook",
                 h->path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        prep_say(h->o, "HookRefused", "%s: is no regular file", h->path);
    else if (!is_ours(&st))
        refuse(h, h->path);
    else if (!(st.st_mode & S_IXUSR))
        prep_say(h->o, "HookRefused", "%s: is not executable: chmod u+x",
                 h->path);
}

void prep_hook_check(const struct prep_config *config,
                     const struct prep_request *request,
                     struct prep_outcome *ret_outcome)
{
    cleanup_free struct hook *h = xcalloc(1, sizeof *h);
    struct prep_outcome o = {.reason = ""};
    *h = (struct hook){.config = config, .request = request, .o = &o};
    check_file(h);
    *ret_outcome = o;
}

/* --- what is written down ------------------------------------------------ */

/* When a process began, in ticks since the boot; 0 when it is not there. */
static unsigned long long start_of(pid_t pid)
{
    char path[64], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *p = strrchr(text, ')'); /* the name may hold anything */
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

static int record_write(const struct hook *h, const char *text,
                        struct error *err)
{
    size_t size = strlen(text);
    if (h->lock < 0)
        return 0;
    if (ftruncate(h->lock, 0) < 0 ||
        pwrite(h->lock, text, size, 0) != (ssize_t)size ||
        fdatasync(h->lock) < 0)
        return error_errno(err, errno ? errno : EIO, "%s/hook-%s",
                           h->config->dir, h->request->card);
    return 0;
}

static int record_begun(const struct hook *h, pid_t pid, struct error *err)
{
    cleanup_free char *text =
        xasprintf("begun %s %d %llu %s/%s\n", h->request->hook, (int)pid,
                  start_of(pid), h->request->namespace, h->request->pod);
    return record_write(h, text, err);
}

static void record_ended(const struct hook *h)
{
    struct error ignored; /* then its end is not known: it is run again */
    cleanup_free char *text = xasprintf("ended %s %d %s/%s\n", h->request->hook,
                                        h->o->signal ? 128 + h->o->signal
                                                     : h->o->exit_status,
                                        h->request->namespace, h->request->pod);
    (void)record_write(h, text, &ignored);
}

/* What stands there; false when the last one has ended, or never was one.
 * What cannot be read was being written when the machine went down. */
static bool record_read(const struct hook *h, char ret_name[64], pid_t *ret_pid,
                        unsigned long long *ret_start)
{
    char text[RECORD_MAX + 1];
    int pid = 0;
    ssize_t n = h->lock < 0 ? 0 : pread(h->lock, text, RECORD_MAX, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (strncmp(text, "ended ", 6) == 0)
        return false;
    *ret_start = 0;
    if (sscanf(text, "begun %63s %d %llu", ret_name, &pid, ret_start) != 3)
        (void)snprintf(ret_name, 64, "(unknown)");
    *ret_pid = pid;
    return true;
}

/* --- one at a time ------------------------------------------------------- */

static int open_in(const struct hook *h, const char *tail, int flags,
                   struct error *err)
{
    cleanup_free char *path = xasprintf("%s/hook-%s%s", h->config->dir,
                                        h->request->card, tail);
    int fd = open(path, flags | O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                  0600);
    return fd < 0 ? error_errno(err, errno, "%s", path) : fd;
}

static int lock_open(struct hook *h, struct error *err)
{
    const char *dir = h->config->dir;
    if (!dir)
        return 0;
    h->lock = open_in(h, "", 0, err);
    if (h->lock < 0)
        return h->lock;
    cleanup_fd int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 || fsync(folder) < 0 ? error_errno(err, errno, "%s", dir)
                                           : 0;
}

/* Once nobody else writes there. */
static int log_open(struct hook *h, struct error *err)
{
    if (h->config->dir) {
        h->out = open_in(h, ".log", O_APPEND | O_TRUNC, err);
        return h->out < 0 ? h->out : 0;
    }
    h->out = memfd_create("hook", MFD_CLOEXEC);
    if (h->out < 0 || fcntl(h->out, F_SETFL, O_APPEND) < 0)
        return error_errno(err, errno, "hook %s", h->request->hook);
    return 0;
}

/* What is said without end begins anew: it appends. */
static void log_cap(int out)
{
    struct stat st;
    if (fstat(out, &st) == 0 && st.st_size > PREP_LOG_MAX)
        (void)!ftruncate(out, 0); /* the next look tries again */
}

static void leftover_cap(const struct hook *h)
{
    struct error ignored; /* it is only for tidiness */
    cleanup_fd int out = open_in(h, ".log", O_APPEND, &ignored);
    if (out >= 0)
        log_cap(out);
}

/* The one that was left behind has had as long as any.  Its group is only
 * signalled while its first process is surely itself. */
static bool end_leftover(struct hook *h)
{
    char name[64];
    pid_t pid;
    unsigned long long start;
    if (!record_read(h, name, &pid, &start) || pid <= 1 || start == 0 ||
        start_of(pid) != start)
        return false;
    (void)kill(-pid, SIGKILL); /* it may end just now */
    for (int i = 0; i < KILL_WAIT_MS / PREP_KEEP_MS; i++) {
        if (flock(h->lock, LOCK_EX | LOCK_NB) == 0)
            return true;
        sleep_ms(PREP_KEEP_MS);
    }
    return false;
}

/* Wait for what another life of ours began.  Leaves a reason when it does not
 * end. */
static int lock_take(struct hook *h, struct error *err)
{
    char name[64];
    pid_t pid = 0;
    unsigned long long start;
    while (h->lock >= 0 && flock(h->lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_errno(err, errno, "hook-%s: flock", h->request->card);
        if (!is_kept(h))
            return error_set(err, ECANCELED, "card %s: given up",
                             h->request->card);
        if (clock_ms() < h->due_ms) {
            leftover_cap(h);
            sleep_ms(PREP_KEEP_MS);
        } else if (end_leftover(h)) {
            break;
        } else {
            h->o->hook_unknown = record_read(h, name, &pid, &start);
            return prep_say(h->o, "HookTimedOut",
                            "a hook that was begun before the advertiser "
                            "started still runs (process group %d): end it, "
                            "look at the card, and try again",
                            (int)pid);
        }
    }
    h->o->hook_unknown = record_read(h, name, &pid, &start);
    return 0;
}

/* --- the child ----------------------------------------------------------- */

struct child {
    int gate, null;
};

/* Only calls that are safe after fork(). */
static _Noreturn void become(const struct hook *h, const struct child *c,
                             sigset_t *none)
{
    char go;
    char *argv[] = {(char *)h->path, NULL};
    (void)setpgid(0, 0);
    if (read(c->gate, &go, 1) != 1)
        _exit(127); /* it could not be written down */
    struct sigaction usual = {.sa_handler = SIG_DFL};
    for (int s = 1; s < NSIG; s++)
        (void)sigaction(s, &usual, NULL); /* some cannot be set */
    (void)sigprocmask(SIG_SETMASK, none, NULL);
    if (chdir("/") < 0 || dup2(c->null, 0) < 0 || dup2(h->out, 1) < 0 ||
        dup2(h->out, 2) < 0)
        _exit(127);
    /* a duplicate stays open over exec; the original may itself be 3 */
    if ((h->lock == LOCK_FD && fcntl(LOCK_FD, F_SETFD, 0) < 0) ||
        (h->lock >= 0 && dup2(h->lock, LOCK_FD) < 0))
        _exit(127); /* without the lock two could run at a time */
    /* where the kernel has none (before 5.9): ours close on exec anyway */
    (void)close_range(h->lock < 0 ? LOCK_FD : LOCK_FD + 1, ~0U, 0);
    execve(h->path, argv, h->env);
    _exit(126);
}

static void env_fill(struct hook *h)
{
    const struct prep_request *r = h->request;
    size_t n = 0;
    h->env[n++] = xasprintf("BIGA_CARD=%s", r->card);
    h->env[n++] = xasprintf("BIGA_CARD_PCI=%s", r->pci);
    h->env[n++] = xasprintf("BIGA_NAMESPACE=%s", r->namespace);
    h->env[n++] = xasprintf("BIGA_POD=%s", r->pod);
    h->env[n++] = xstrdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    for (size_t i = 0; r->env && r->env[i] && i < PREP_ENV_MAX; i++)
        h->env[n++] = xstrdup(r->env[i]);
    h->env[n] = NULL;
}

/* Begun, and written down as that. */
static int begin(struct hook *h, pid_t *ret_pid, struct error *err)
{
    int gate[2];
    sigset_t none;
    sigemptyset(&none);
    cleanup_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || pipe2(gate, O_CLOEXEC) < 0)
        return error_errno(err, errno, "hook %s", h->request->hook);
    cleanup_fd int gate_in = gate[0], gate_out = gate[1];
    struct child c = {gate_in, null};
    pid_t pid = fork();
    if (pid < 0)
        return error_errno(err, errno, "hook %s", h->request->hook);
    if (pid == 0) {
        (void)close(gate_out); /* it may see the end of the gate */
        become(h, &c, &none);
    }
    (void)setpgid(pid, pid); /* whoever is first */
    int rc = record_begun(h, pid, err);
    if (rc == 0 && write(gate_out, "", 1) != 1)
        rc = error_errno(err, errno, "hook %s", h->request->hook);
    if (rc < 0) {
        (void)kill(-pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return rc;
    }
    *ret_pid = pid;
    return 0;
}

/* --- its output ---------------------------------------------------------- */

/* The last line with something on it. */
static void last_line(int out, struct str *ret_line)
{
    char tail[PREP_OUTPUT_MAX];
    struct stat st = {0};
    (void)fstat(out, &st); /* ours, open */
    off_t from = st.st_size > PREP_OUTPUT_MAX ? st.st_size - PREP_OUTPUT_MAX
                                              : 0;
    ssize_t n = pread(out, tail, sizeof tail, from);
    size_t end = n > 0 ? (size_t)n : 0;
    while (end > 0 && strchr(" \t\r\n", tail[end - 1]))
        end--; /* also a NUL, which strchr() finds */
    size_t begin = end;
    while (begin > 0 && tail[begin - 1] != '\n' && tail[begin - 1] != '\r')
        begin--;
    cleanup_str struct str line = STR_INIT(PREP_OUTPUT_MAX);
    for (; begin < end; begin++)
        str_add_c(&line, tail[begin] ? tail[begin] : '?');
    text_clean(str_text(&line), ret_line);
}

/* --- its end ------------------------------------------------------------- */

enum ended { ENDED, ENDED_LATE, ENDED_LEFT };

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
}

static enum ended follow(struct hook *h, pid_t pid)
{
    cleanup_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)poll(&p, fd >= 0, PREP_KEEP_MS); /* an early end does no harm */
        if (has_ended(pid))
            return ENDED;
        if (clock_ms() >= h->due_ms)
            return ENDED_LATE;
        if (!is_kept(h))
            return ENDED_LEFT;
        log_cap(h->out);
    }
}

/* Whoever it has started goes with it.  Its number is its own until it is
 * waited for. */
static void reap(struct hook *h, pid_t pid)
{
    int status = 0;
    (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    h->o->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    h->o->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int tell(struct hook *h, enum ended ended)
{
    struct prep_outcome *o = h->o;
    const char *name = h->request->hook;
    cleanup_str struct str line = STR_INIT(2 * PREP_OUTPUT_MAX);
    last_line(h->out, &line);
    const char *said = str_text(&line), *colon = said[0] ? ": " : "";
    const char *before = o->hook_unknown
                             ? "; how the hook before it ended is not known"
                             : "";
    if (ended == ENDED_LATE)
        return prep_say(o, "HookTimedOut",
                        "hook %s was killed after %" PRId64 " ms%s%s%.300s",
                        name, limit_ms(h), before, colon, said);
    if (o->signal || o->exit_status) {
        o->again = true;
        return prep_say(
            o, "HookFailed", "hook %s ended with %s %d%s%s%s%.300s", name,
            o->signal ? "signal" : "status",
            o->signal ? o->signal : o->exit_status,
            o->exit_status == 126 ? " (it could not be executed, perhaps)" : "",
            before, colon, said);
    }
    return prep_say(o, "", "hook %s took %" PRId64 " ms%s%s%.300s", name,
                    o->hook_ms, before, colon, said);
}

static int run(struct hook *h, struct error *err)
{
    pid_t pid = 0;
    int64_t begun = clock_ms();
    h->due_ms = begun + limit_ms(h);
    int rc = begin(h, &pid, err);
    if (rc < 0)
        return rc;
    enum ended ended = follow(h, pid);
    if (ended == ENDED_LEFT) { /* as written down: begun */
        h->left = true;
        return error_set(err, ECANCELED, "hook %s goes on by itself",
                         h->request->hook);
    }
    reap(h, pid);
    h->o->hook_ran = true;
    h->o->hook_ms = clock_ms() - begun;
    record_ended(h);
    return tell(h, ended);
}

int prep_hook(const struct prep_config *config,
              const struct prep_request *request, struct prep_outcome *o,
              struct error *err)
{
    cleanup_free struct hook *h = xcalloc(1, sizeof *h);
    *h = (struct hook){
        .config = config, .request = request, .o = o, .lock = -1, .out = -1};
    h->due_ms = clock_ms() + limit_ms(h);
    check_file(h);
    if (o->reason[0])
        return 0;
    int rc = lock_open(h, err);
    if (rc == 0)
        rc = lock_take(h, err);
    if (rc == 0 && o->reason[0] == '\0') {
        env_fill(h);
        rc = log_open(h, err);
        if (rc == 0)
            rc = run(h, err);
    }
    for (size_t i = 0; i < ENV_MAX; i++)
        free(h->env[i]);
    if (h->lock >= 0) {
        if (!h->left)
            (void)flock(h->lock, LOCK_UN); /* also for who left the group */
        (void)close(h->lock);
    }
    if (h->out >= 0)
        (void)close(h->out);
    return rc;
}
