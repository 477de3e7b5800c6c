#include "tests/lib/failchild.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

pid_t failchild_start(const char *points, const char *const *argv, int *ret_fd)
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
