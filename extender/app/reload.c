#include "extender/app/reload.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

struct reload {
    struct reload_item items[RELOAD_ITEMS_MAX];
    size_t n;
    int64_t every_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping;
};

/* False when it is time to end. */
static bool wait_turn(struct reload *r)
{
    int64_t due_ms = clock_ms() + r->every_ms;
    hold_lock(&r->lock);
    while (!r->stopping && clock_wait(&r->wake, &r->lock, due_ms))
        ;
    return !r->stopping;
}

static void *reload_thread(void *ctx)
{
    struct reload *r = ctx;
    thread_name("reload", NULL);
    while (wait_turn(r))
        for (size_t i = 0; i < r->n; i++)
            r->items[i].poll(r->items[i].ctx);
    return NULL;
}

static void reload_free(struct reload *r)
{
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    free(r);
}

int reload_start(const struct reload_item *items, size_t n, int64_t every_ms,
                 struct reload **ret_reload, struct error *err)
{
    struct reload *r = xcalloc(1, sizeof *r);
    r->n = n < RELOAD_ITEMS_MAX ? n : RELOAD_ITEMS_MAX;
    memcpy(r->items, items, r->n * sizeof *items);
    r->every_ms = every_ms;
    pthread_mutex_init(&r->lock, NULL);
    clock_wait_init(&r->wake);
    int e = pthread_create(&r->thread, NULL, reload_thread, r);
    if (e) {
        reload_free(r);
        return error_errno(err, e, "cannot start a thread");
    }
    *ret_reload = r;
    return 0;
}

void reload_stop(struct reload *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    reload_free(r);
}
