#include "lib/io/clock.h"

#include <criterion/criterion.h>

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

Test(clock, a_wait_is_as_long_when_the_time_is_made_up)
{
    struct waiter w;
    waiter_init(&w);
    int64_t begun_ms = clock_ms();
    clock_set_fake(1000);
    wait_out(&w, 1050);
    cr_expect_eq(clock_ms(), 1000);
    clock_set_fake(-1);
    cr_expect(clock_ms() >= begun_ms + 49); /* a part of a ms is lost */
    waiter_fini(&w);
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
