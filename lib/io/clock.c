#include "lib/io/clock.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* Virtual time, which only tests have; -1 is none. */
static _Atomic int64_t fake_ms = -1;
static _Atomic int64_t wall_ahead_s;

/* A thread within clock_wait() while time is virtual. */
struct waiter {
    struct waiter *next;
    pthread_cond_t *wake;
    pthread_mutex_t *lock;
    int64_t due_ms;
    bool woken;    /* for its time */
    bool signaled; /* or another of that condition was, and it is not */
};

/* Taken after the lock of who waits.  clock_set_fake() has it first and only
 * tries the other one. */
static pthread_mutex_t waiters_lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *waiters;

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

static bool wait_real(pthread_cond_t *wake, pthread_mutex_t *lock,
                      int64_t due_ms)
{
    if (due_ms == INT64_MAX)
        return pthread_cond_wait(wake, lock) == 0;
    if (due_ms < 0)
        due_ms = 0;
    struct timespec due = {.tv_sec = (time_t)(due_ms / 1000),
                           .tv_nsec = (long)(due_ms % 1000) * 1000000};
    return pthread_cond_timedwait(wake, lock, &due) == 0;
}

/* With the waiters' lock: one that waits for that. */
static struct waiter *find_waiter(const pthread_cond_t *wake, bool signaled)
{
    struct waiter *w = waiters;
    while (w && (w->wake != wake || w->woken || w->signaled != signaled))
        w = w->next;
    return w;
}

/* Which of those that wait has a signal is known when it has left. */
static void leave(struct waiter *me)
{
    struct waiter **at = &waiters, *other;
    while (*at != me)
        at = &(*at)->next;
    *at = me->next;
    other = me->woken || me->signaled ? NULL : find_waiter(me->wake, true);
    if (other)
        other->signaled = false;
}

/* Until clock_set_fake() or a signal wakes it. */
static bool wait_virtual(struct waiter *me)
{
    pthread_mutex_lock(&waiters_lock);
    /* it may have become real or later since it was looked at */
    bool due = atomic_load(&fake_ms) >= me->due_ms;
    bool real = atomic_load(&fake_ms) < 0;
    if (due || real) {
        pthread_mutex_unlock(&waiters_lock);
        return !due;
    }
    me->next = waiters;
    waiters = me;
    pthread_mutex_unlock(&waiters_lock);
    (void)pthread_cond_wait(me->wake, me->lock);
    pthread_mutex_lock(&waiters_lock);
    leave(me);
    due = atomic_load(&fake_ms) >= me->due_ms;
    pthread_mutex_unlock(&waiters_lock);
    return !due;
}

bool clock_wait(pthread_cond_t *wake, pthread_mutex_t *lock, int64_t due_ms)
{
    if (atomic_load_explicit(&fake_ms, memory_order_relaxed) < 0)
        return wait_real(wake, lock, due_ms);
    struct waiter me = {.wake = wake, .lock = lock, .due_ms = due_ms};
    return wait_virtual(&me);
}

int clock_poll_ms(int64_t due_ms)
{
    if (due_ms == INT64_MAX)
        return -1;
    int64_t ms = due_ms - clock_ms();
    return ms < 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms;
}

static void note_signal(const pthread_cond_t *wake, bool all)
{
    struct waiter *w;
    if (!clock_is_fake())
        return;
    pthread_mutex_lock(&waiters_lock);
    while ((w = find_waiter(wake, false))) {
        w->signaled = true;
        if (!all)
            break;
    }
    pthread_mutex_unlock(&waiters_lock);
}

void clock_wake_one(pthread_cond_t *wake)
{
    note_signal(wake, false);
    (void)pthread_cond_signal(wake);
}

void clock_wake_all(pthread_cond_t *wake)
{
    note_signal(wake, true);
    (void)pthread_cond_broadcast(wake);
}

/* With the waiters' lock: false when one holds its lock, so that it cannot be
 * woken now. */
static bool wake_due(int64_t ms)
{
    bool all = true;
    for (struct waiter *w = waiters; w; w = w->next) {
        if (w->woken || (ms >= 0 && w->due_ms > ms))
            continue;
        /* with its lock: it may be between its look and its wait */
        if (pthread_mutex_trylock(w->lock) == 0) {
            w->woken = true;
            (void)pthread_cond_broadcast(w->wake);
            (void)pthread_mutex_unlock(w->lock);
        } else {
            all = false;
        }
    }
    return all;
}

void clock_set_fake(int64_t ms)
{
    pthread_mutex_lock(&waiters_lock);
    atomic_store(&fake_ms, ms);
    while (!wake_due(ms)) {
        pthread_mutex_unlock(&waiters_lock);
        (void)sched_yield();
        pthread_mutex_lock(&waiters_lock);
    }
    pthread_mutex_unlock(&waiters_lock);
}

bool clock_is_fake(void)
{
    return atomic_load_explicit(&fake_ms, memory_order_relaxed) >= 0;
}

size_t clock_waiting(int64_t *ret_next_ms)
{
    size_t n = 0;
    *ret_next_ms = INT64_MAX;
    pthread_mutex_lock(&waiters_lock);
    for (const struct waiter *w = waiters; w; w = w->next) {
        if (w->woken || w->signaled)
            continue;
        n++;
        if (w->due_ms < *ret_next_ms)
            *ret_next_ms = w->due_ms;
    }
    pthread_mutex_unlock(&waiters_lock);
    return n;
}

int64_t clock_wall_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail on Linux */
    int64_t s = (int64_t)now.tv_sec +
                atomic_load_explicit(&wall_ahead_s, memory_order_relaxed);
    return s * 1000000000 + now.tv_nsec;
}

int64_t clock_wall_s(void)
{
    return clock_wall_ns() / 1000000000;
}

void clock_set_wall_ahead(int64_t s)
{
    atomic_store_explicit(&wall_ahead_s, s, memory_order_relaxed);
}

void clock_format_utc(int64_t unix_s, char ret_text[CLOCK_UTC_MAX])
{
    struct tm tm;
    time_t t = (time_t)unix_s;
    if (!gmtime_r(&t, &tm) ||
        !strftime(ret_text, CLOCK_UTC_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm))
        (void)snprintf(ret_text, CLOCK_UTC_MAX, "%lld", (long long)unix_s);
}

int64_t clock_parse_utc(const char *text)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    return rest && (*rest == '.' || *rest == 'Z') ? (int64_t)timegm(&tm) : -1;
}
