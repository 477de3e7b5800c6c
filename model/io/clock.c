#include "model/io/clock.h"

#include <stdatomic.h>
#include <time.h>

static _Atomic int64_t fake_ms = -1;

int64_t clock_ns(void)
{
    int64_t fake = atomic_load_explicit(&fake_ms, memory_order_relaxed);
    if (fake >= 0)
        return fake * 1000000;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail on Linux */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_ms(void)
{
    return clock_ns() / 1000000;
}

void clock_set_fake(int64_t ms)
{
    atomic_store_explicit(&fake_ms, ms, memory_order_relaxed);
}
