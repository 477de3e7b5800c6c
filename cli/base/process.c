#include "cli/base/process.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum { STOP_MS = 5000, STEP_MS = 20, TAIL_BYTES = 1500 };

static sigset_t held_set(void)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGCHLD);
    return held;
}

void signals_hold(void)
{
    sigset_t held = held_set();
    sigprocmask(SIG_BLOCK, &held, NULL);
}

int signal_wait(int ms)
{
    sigset_t held = held_set();
    struct timespec limit = {ms / 1000, (long)(ms % 1000) * 1000000};
    int sig = ms < 0 ? sigwaitinfo(&held, NULL)
                     : sigtimedwait(&held, NULL, &limit);
    return sig < 0 ? 0 : sig;
}

/* The folder that our own program lies in. */
static int own_folder(char **ret_folder, struct error *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return error_errno(err, errno, "/proc/self/exe");
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    *ret_folder = xstrdup(self);
    return 0;
}

int process_introduce(const char *server, struct error *err)
{
    cleanup_free char *folder = NULL;
    const char *path = getenv("PATH");
    int rc = own_folder(&folder, err);
    if (rc < 0)
        return rc;
    cleanup_free char *paths = xasprintf("%s:%s", folder,
                                         path ? path : "/usr/bin:/bin");
    if (setenv("BIGA_SERVER", server, true) < 0 ||
        setenv("PATH", paths, true) < 0)
        return error_errno(err, errno, "the environment");
    return 0;
}

int process_find(const char *name, char **ret_path, struct error *err)
{
    cleanup_free char *folder = NULL;
    int rc = own_folder(&folder, err);
    if (rc < 0)
        return rc;
    cleanup_free char *path = xasprintf("%s/%s", folder, name);
    if (access(path, X_OK))
        return error_errno(err, errno, "%s, which must lie beside biga", path);
    *ret_path = steal(&path);
    return 0;
}

/* The environment without settings: those of the caller are not meant for
 * the programs of a demo, which are told all on their command lines. */
static char **plain_environment(void)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **plain = xcalloc(n + 1, sizeof *plain);
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "BIGA_", 5) != 0)
            plain[kept++] = environ[i];
    return plain;
}

/* In the child: only calls that are safe after fork(). */
static void become(char *const argv[], char *const environment[], int log,
                   pid_t parent)
{
    (void)setpgid(0, 0); /* Ctrl-C is for us, who end it in order */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    sigset_t none;
    sigemptyset(&none);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(127);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(argv[0], argv, environment);
    _exit(127);
}

int process_start(struct process *p, char *const argv[], const char *log,
                  struct error *err)
{
    const char *slash = strrchr(argv[0], '/');
    cleanup_free char **environment = plain_environment();
    cleanup_fd int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                             0600);
    if (fd < 0)
        return error_errno(err, errno, "%s", log);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return error_errno(err, errno, "starting %s", argv[0]);
    if (pid == 0)
        become(argv, environment, fd, parent);
    free(p->log);
    *p = (struct process){
        .pid = pid,
        .name = slash ? slash + 1 : argv[0],
        .log = xstrdup(log),
    };
    return 0;
}

int process_start_shell(struct process *p, const char *command,
                        struct error *err)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)command, NULL};
    pid_t parent = getpid(), pid = fork();
    sigset_t none;
    sigemptyset(&none);
    if (pid < 0)
        return error_errno(err, errno, "starting %s", command);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(127);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execv(argv[0], argv);
        _exit(127);
    }
    *p = (struct process){.pid = pid, .name = "sh"};
    return 0;
}

bool process_alive(struct process *p)
{
    if (p->pid && waitpid(p->pid, &p->status, WNOHANG) == p->pid)
        p->pid = 0;
    return p->pid != 0;
}

void process_stop(struct process *p)
{
    int64_t limit = clock_ms() + STOP_MS;
    if (process_alive(p))
        (void)kill(p->pid, SIGTERM);
    while (process_alive(p) && clock_ms() < limit)
        (void)signal_wait(STEP_MS);
    if (process_alive(p)) {
        (void)kill(p->pid, SIGKILL);
        (void)waitpid(p->pid, &p->status, 0);
        p->pid = 0;
    }
    free(p->log);
    p->log = NULL;
}

void process_tail(const struct process *p, struct str *out)
{
    char text[TAIL_BYTES + 1];
    cleanup_file FILE *f = p->log ? fopen(p->log, "re") : NULL;
    if (!f)
        return;
    if (fseek(f, -TAIL_BYTES, SEEK_END))
        rewind(f);
    size_t n = fread(text, 1, TAIL_BYTES, f);
    text[n] = '\0';
    const char *line = n == TAIL_BYTES ? strchr(text, '\n') : NULL;
    str_add(out, line ? line + 1 : text);
}
