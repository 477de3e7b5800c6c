/* A place: how it is watched, when threads are scarce, and when it goes. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/lib/actrig.h"

/* The actuator's threads alone are begun with attributes. */
static atomic_bool no_threads;
static atomic_uint n_refused;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                   void *(*f)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                       void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (attr && atomic_load(&no_threads)) {
        atomic_fetch_add(&n_refused, 1);
        return EAGAIN;
    }
    return real(thread, attr, f, arg);
}

Test(act_place, a_thread_that_cannot_be_had_blocks_nobody, .timeout = 30)
{
    struct actrig r;
    struct act_place_view v[ACT_PLACES_MAX] = {0};
    actrig_init(&r, 1);
    actrig_open(&r);
    /* the prober, and its connection, are there */
    while (actuator_places(r.a, v) != 1 || !v[0].runtime[0])
        (void)usleep(1000);
    atomic_store(&no_threads, true);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    for (int i = 0; i < 10; i++) {
        (void)usleep(20000);
        cr_assert_eq(actuator_places(r.a, v), 1);
    }
    cr_assert_eq(cardserver_live(r.cards[0], "x"), 0);
    cr_assert_lt(atomic_load(&n_refused), 20, "it tries again without a pause");
    atomic_store(&no_threads, false);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_fini(&r);
}
