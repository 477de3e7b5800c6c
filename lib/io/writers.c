#include "lib/io/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

enum {
    SETTLE_MS = 200, /* where nobody tells: unchanged for so long */
    LOOK_MS = 5,
};

/* For such a file alone a lease is given. */
bool writers_are_gone(int fd)
{
    struct timespec now;
    struct stat st;
    /* to whom the lease is in the way: we give it back at once.  SIGIO would
     * end us, this one is ignored unless it is asked for */
    if (fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
        return fcntl(fd, F_SETLEASE, F_UNLCK) == 0;
    if (errno == EAGAIN || fstat(fd, &st) != 0)
        return false;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* is always there */
    int64_t ms = (int64_t)(now.tv_sec - st.st_mtim.tv_sec) * 1000 +
                 (now.tv_nsec - st.st_mtim.tv_nsec) / 1000000;
    return ms < 0 || ms > SETTLE_MS;
}

static int64_t now_ms(void)
{
    struct timespec t;
    /* no virtual time: others write meanwhile */
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* is always there */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool writers_await(int fd, unsigned timeout_ms)
{
    const struct timespec nap = {.tv_nsec = LOOK_MS * 1000000L};
    int64_t end = now_ms() + timeout_ms;
    while (!writers_are_gone(fd)) {
        if (now_ms() >= end)
            return false;
        (void)nanosleep(&nap, NULL); /* a signal: we look sooner */
    }
    return true;
}
