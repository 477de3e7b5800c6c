/* A wall clock of one's own for one process: LD_PRELOAD=wall.so adds the
 * nanoseconds that the file $BIGA_SOAK_WALL holds (an int64_t, as in memory)
 * to CLOCK_REALTIME.  Whoever writes the file moves the clock of a process
 * that runs; the machine's own, and the monotonic one, stay as they are. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_ns;
static int (*real_gettime)(clockid_t clock, struct timespec *ret_now);

__attribute__((constructor)) static void wall_open(void)
{
    const char *path = getenv("BIGA_SOAK_WALL");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = MAP_FAILED;

    *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (fd >= 0) {
        map = mmap(NULL, sizeof(*offset_ns), PROT_READ, MAP_SHARED, fd, 0);
        (void)close(fd); /* the mapping stays */
    }
    if (map != MAP_FAILED)
        offset_ns = map;
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    int64_t ns;
    int r;

    if (!real_gettime) /* called before the constructor */
        *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    r = real_gettime(clock, ret_now);
    if (r || !offset_ns ||
        (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return r;
    ns = ret_now->tv_nsec + *offset_ns % 1000000000;
    ret_now->tv_sec += *offset_ns / 1000000000;
    if (ns < 0)
        ns += 1000000000, ret_now->tv_sec--;
    else if (ns >= 1000000000)
        ns -= 1000000000, ret_now->tv_sec++;
    ret_now->tv_nsec = ns;
    return 0;
}

time_t time(time_t *ret_now)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail on Linux */
    if (ret_now)
        *ret_now = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret_now, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail on Linux */
    ret_now->tv_sec = now.tv_sec;
    ret_now->tv_usec = now.tv_nsec / 1000;
    return 0;
}
