#include "lib/io/clock.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <sched.h>

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool set;
};

static void waiter_init(struct waiter *w)
{
    *w = (struct waiter){.set = false};
    (void)pthread_mutex_init(&w->lock, NULL);
    clock_wait_init(&w->wake);
}

static void waiter_fini(struct waiter *w)
{
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_mutex_destroy(&w->lock);
}

static void wait_out(struct waiter *w, int64_t due_ms)
{
    pthread_mutex_lock(&w->lock);
    while (clock_wait(&w->wake, &w->lock, due_ms))
        ;
    pthread_mutex_unlock(&w->lock);
}

Test(clock, a_wait_ends_when_it_is_due)
{
    struct waiter w;
    waiter_init(&w);
    int64_t due_ms = clock_ms() + 50;
    wait_out(&w, due_ms);
    cr_expect(clock_ms() >= due_ms);
    wait_out(&w, clock_ms() - 10);
    wait_out(&w, -1);
    waiter_fini(&w);
}

/* --- virtual time ---------------------------------------------------------- */

enum { N = 8, ROUNDS = 2000 };

struct sleeper {
    pthread_t thread;
    struct waiter w;
    int64_t due_ms, woken_ms;
};

static void *sleep_until_due(void *ctx)
{
    struct sleeper *s = ctx;
    wait_out(&s->w, s->due_ms);
    s->woken_ms = clock_ms();
    return NULL;
}

static void await_waiting(size_t n, int64_t next_ms)
{
    int64_t next;
    while (clock_waiting(&next) != n)
        (void)sched_yield();
    cr_assert_eq(next, next_ms);
}

Test(clock, virtual_time_wakes_who_is_due, .timeout = 180)
{
    static struct sleeper s[N];
    clock_set_fake(1000);
    for (int i = 0; i < N; i++) {
        waiter_init(&s[i].w);
        s[i].due_ms = 1001 + 1000000 * i;
        cr_assert_eq(pthread_create(&s[i].thread, NULL, sleep_until_due, &s[i]),
                     0);
    }
    for (int i = 0; i < N; i++) {
        await_waiting((size_t)(N - i), s[i].due_ms);
        clock_set_fake(s[i].due_ms - 1);
        await_waiting((size_t)(N - i), s[i].due_ms);
        clock_set_fake(s[i].due_ms);
        (void)pthread_join(s[i].thread, NULL);
        cr_expect_eq(s[i].woken_ms, s[i].due_ms);
        waiter_fini(&s[i].w);
    }
    await_waiting(0, INT64_MAX);
    clock_set_fake(-1);
}

/* Also when it begins to wait at the same time: none is forgotten. */
Test(clock, time_that_goes_on_meanwhile_is_noticed, .timeout = 180)
{
    static struct sleeper s;
    waiter_init(&s.w);
    for (int64_t ms = 1; ms <= ROUNDS; ms++) {
        clock_set_fake(ms - 1);
        s.due_ms = ms;
        cr_assert_eq(pthread_create(&s.thread, NULL, sleep_until_due, &s), 0);
        if (ms % 2)
            (void)sched_yield();
        clock_set_fake(ms);
        (void)pthread_join(s.thread, NULL);
    }
    clock_set_fake(-1);
    waiter_fini(&s.w);
}

static void *wait_once(void *ctx)
{
    struct sleeper *s = ctx;
    pthread_mutex_lock(&s->w.lock);
    s->woken_ms = clock_wait(&s->w.wake, &s->w.lock, s->due_ms);
    pthread_mutex_unlock(&s->w.lock);
    return NULL;
}

Test(clock, who_waits_is_told_that_time_is_real_again, .timeout = 180)
{
    static struct sleeper s = {.due_ms = 2000};
    waiter_init(&s.w);
    clock_set_fake(1000);
    cr_assert_eq(pthread_create(&s.thread, NULL, wait_once, &s), 0);
    await_waiting(1, 2000);
    clock_set_fake(-1);
    (void)pthread_join(s.thread, NULL);
    cr_expect(s.woken_ms, "its time has not come");
    waiter_fini(&s.w);
}

/* Wait for one condition, as often as it takes. */
static void *wait_until_set(void *ctx)
{
    struct waiter *w = ctx;
    pthread_mutex_lock(&w->lock);
    while (!w->set)
        (void)clock_wait(&w->wake, &w->lock, 2000);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* With the lock, so that whoever is woken cannot run. */
static void expect_waiting(size_t n, const char *when)
{
    int64_t next;
    cr_expect_eq(clock_waiting(&next), n, "%s", when);
    cr_expect_eq(next, n ? 2000 : INT64_MAX, "%s", when);
}

Test(clock, who_was_woken_waits_no_more, .timeout = 180)
{
    enum { N_THREADS = 3 };
    struct waiter w, other;
    pthread_t threads[N_THREADS];
    waiter_init(&w);
    waiter_init(&other);
    clock_set_fake(1000);
    for (int i = 0; i < N_THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, wait_until_set, &w), 0);
    for (int i = 0; i < ROUNDS; i++) {
        await_waiting(N_THREADS, 2000); /* whoever ran waits again */
        pthread_mutex_lock(&w.lock);
        clock_wake_one(&other.wake);
        expect_waiting(N_THREADS, "another's signal");
        clock_wake_one(&w.wake);
        expect_waiting(N_THREADS - 1, "a signal");
        if (i % 2)
            clock_wake_all(&w.wake);
        expect_waiting(i % 2 ? 0 : N_THREADS - 1, "all or none");
        clock_wake_one(&w.wake);
        expect_waiting(i % 2 ? 0 : N_THREADS - 2, "another signal");
        pthread_mutex_unlock(&w.lock);
    }
    pthread_mutex_lock(&w.lock);
    w.set = true;
    clock_wake_all(&w.wake);
    pthread_mutex_unlock(&w.lock);
    for (int i = 0; i < N_THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    clock_set_fake(-1);
    waiter_fini(&other);
    waiter_fini(&w);
}

Test(clock, utc_is_written_and_read)
{
    static const int64_t times[] = {0, 1, 1767323045, 4102444799};
    static const char *const bad[] = {"", "2026", "2026-01-02T03:04:05",
                                      "2026-13-02T03:04:05Z", "soon"};
    char text[CLOCK_UTC_MAX];
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        clock_format_utc(times[i], text);
        cr_assert_eq(clock_parse_utc(text), times[i], "%s", text);
    }
    cr_assert_eq(clock_parse_utc("2026-01-02T03:04:05.678901Z"), 1767323045);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_eq(clock_parse_utc(bad[i]), -1, "%s", bad[i]);
}

Test(clock, wall_time_can_be_set_ahead)
{
    int64_t now_s = clock_wall_s(), now_ns = clock_wall_ns();
    cr_expect_leq(now_ns / 1000000000 - now_s, 60);
    clock_set_wall_ahead(86400);
    cr_expect_geq(clock_wall_ns(), now_ns + INT64_C(86400000000000));
    cr_expect_geq(clock_wall_s(), now_s + 86400);
    clock_set_wall_ahead(0);
    cr_expect_lt(clock_wall_s(), now_s + 86400);
}

static void *set_it(void *ctx)
{
    struct waiter *w = ctx;
    pthread_mutex_lock(&w->lock);
    w->set = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

Test(clock, a_wait_for_ever_ends_with_a_signal, .timeout = 180)
{
    struct waiter w;
    pthread_t thread;
    waiter_init(&w);
    pthread_mutex_lock(&w.lock);
    cr_assert_eq(pthread_create(&thread, NULL, set_it, &w), 0);
    while (!w.set)
        cr_assert(clock_wait(&w.wake, &w.lock, INT64_MAX));
    pthread_mutex_unlock(&w.lock);
    (void)pthread_join(thread, NULL);
    waiter_fini(&w);
}

Test(clock, poll_waits_until_then)
{
    int64_t now = clock_ms();
    cr_expect_eq(clock_poll_ms(INT64_MAX), -1);
    cr_expect_eq(clock_poll_ms(now - 5), 0);
    cr_expect_eq(clock_poll_ms(INT64_MAX - 1), INT_MAX);
    int ms = clock_poll_ms(now + 1000000);
    cr_expect(ms > 0 && ms <= 1000000, "%d", ms);
}
