#include "tests/lib/virtual.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/io/clock.h"

enum { BEGIN_MS = 1000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_on;

void virtual_begin(void)
{
    atomic_store(&is_on, true);
    clock_set_fake(BEGIN_MS);
}

void virtual_end(void)
{
    clock_set_fake(-1);
    atomic_store(&is_on, false);
}

bool virtual_is_on(void)
{
    return atomic_load(&is_on);
}

void virtual_settle(size_t n)
{
    int64_t next_ms;
    while (clock_waiting(&next_ms) < n)
        (void)poll(NULL, 0, 1);
}

void virtual_step(size_t n, int64_t max_ms)
{
    int64_t next_ms;
    virtual_settle(n);
    (void)clock_waiting(&next_ms);
    int64_t ms = next_ms - clock_ms();
    virtual_take(ms < max_ms ? ms : max_ms);
    virtual_settle(n);
}

void virtual_take(int64_t ms)
{
    pthread_mutex_lock(&lock);
    clock_set_fake(clock_ms() + ms);
    pthread_mutex_unlock(&lock);
}
