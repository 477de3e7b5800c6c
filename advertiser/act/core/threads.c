#include "advertiser/act/core/threads.h"

#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"

void act_notify(struct actuator *a)
{
    clock_wake_all(&a->news);
    if (a->changed)
        a->changed(a->ctx);
}

bool act_thread(struct actuator *a, void *(*f)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    (void)pthread_attr_init(&attr); /* cannot fail on Linux */
    (void)pthread_attr_setstacksize(&attr, PLACE_STACK);
    a->n_threads++;
    int code = pthread_create(&thread, &attr, f, arg);
    (void)pthread_attr_destroy(&attr);
    if (code == 0)
        return true;
    a->n_threads--;
    log_event(LOG_ERROR, "act-no-thread", "error", strerror(code), NULL);
    return false;
}

/* What libraries keep for a thread goes after its last line, so each waits for
 * the one that ended before it, and whoever ends all for the last. */
void act_thread_ends(struct actuator *a)
{
    bool other = a->has_ended;
    pthread_t before = a->ended;
    a->ended = pthread_self();
    a->has_ended = true;
    a->n_threads--;
    clock_wake_all(&a->news);
    act_unlock(a);
    if (other)
        (void)pthread_join(before, NULL);
}
