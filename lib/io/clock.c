#include "lib/io/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static _Atomic int64_t fake_ms = -1;

static int64_t real_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail on Linux */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_ns(void)
{
    int64_t fake = atomic_load_explicit(&fake_ms, memory_order_relaxed);
    return fake >= 0 ? fake * 1000000 : real_ns();
}

int64_t clock_ms(void)
{
    return clock_ns() / 1000000;
}

void clock_wait_init(pthread_cond_t *ret_wake)
{
    pthread_condattr_t attr;
    /* none of these can fail on Linux */
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(ret_wake, &attr);
    (void)pthread_condattr_destroy(&attr);
}

bool clock_wait(pthread_cond_t *wake, pthread_mutex_t *lock, int64_t due_ms)
{
    if (due_ms == INT64_MAX)
        return pthread_cond_wait(wake, lock) == 0;
    int64_t fake = atomic_load_explicit(&fake_ms, memory_order_relaxed);
    if (fake >= 0) /* the same time from now */
        due_ms += real_ns() / 1000000 - fake;
    if (due_ms < 0)
        due_ms = 0;
    struct timespec due = {.tv_sec = (time_t)(due_ms / 1000),
                           .tv_nsec = (long)(due_ms % 1000) * 1000000};
    return pthread_cond_timedwait(wake, lock, &due) == 0;
}

void clock_set_fake(int64_t ms)
{
    atomic_store_explicit(&fake_ms, ms, memory_order_relaxed);
}

void clock_format_utc(int64_t unix_s, char ret_text[CLOCK_UTC_MAX])
{
    struct tm tm;
    time_t t = (time_t)unix_s;
    if (!gmtime_r(&t, &tm) ||
        !strftime(ret_text, CLOCK_UTC_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm))
        (void)snprintf(ret_text, CLOCK_UTC_MAX, "%lld", (long long)unix_s);
}
