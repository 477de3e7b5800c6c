#include "tests/lib/failchild.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"

/* What it writes is read from `ret_fd`; -1: errno. */
static pid_t start(const char *points, const char *const *argv, int *ret_fd)
{
    int fds[2];
    if (pipe(fds) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        (void)setenv("BIGA_FAILPOINTS", points, 1);
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execv("/proc/self/exe", (char *const *)argv);
        _exit(127);
    }
    int code = errno;
    (void)close(fds[1]); /* the child's */
    if (pid < 0)
        (void)close(fds[0]);
    errno = code;
    *ret_fd = fds[0];
    return pid;
}

int failchild_run(const char *points, const char *const *argv, size_t size,
                  failchild_learn_f *learn, void *ctx)
{
    cleanup_free void *record = xmalloc(size);
    int status, fd;
    pid_t pid = start(points, argv, &fd);
    if (pid < 0)
        return -1;
    while (read(fd, record, size) == (ssize_t)size)
        learn(ctx, record);
    (void)close(fd);
    return waitpid(pid, &status, 0) == pid ? status : -1;
}
