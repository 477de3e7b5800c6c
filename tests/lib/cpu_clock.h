/* cpu_clock - the processor time of this thread, or of all of the process. */
#ifndef BIGA_TESTS_LIB_CPU_CLOCK_H
#define BIGA_TESTS_LIB_CPU_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t cpu_clock_ns(clockid_t of)
{
    struct timespec t;
    (void)clock_gettime(of, &t); /* these clocks are always there */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t thread_cpu_ns(void)
{
    return cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline int64_t process_cpu_ns(void)
{
    return cpu_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
