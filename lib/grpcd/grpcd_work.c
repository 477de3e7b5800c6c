#include "lib/grpcd/grpcd_private.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    STACK = 512 << 10, /* bytes of a worker's; what it does not use is none */
    SPARE = 4,         /* workers of a lane that stay without work */
};

struct grpcd_worker {
    struct grpcd *s;
    struct grpcd_lane *lane;
    struct grpcd_worker *next;
    pthread_t thread;
};

void grpcd_lanes_init(struct grpcd *s)
{
    s->lanes[0].max = s->config.brief_threads;
    s->lanes[1].max = s->config.long_threads;
    for (size_t i = 0; i < ARRAY_LEN(s->lanes); i++)
        clock_wait_init(&s->lanes[i].wake);
}

/* With the lock: the next call, after a wait for one; NULL: the worker may
 * go. */
static struct grpcd_call *next_locked(struct grpcd *s, struct grpcd_lane *lane)
{
    while (!lane->first && !s->lanes_end && lane->n_idle < SPARE) {
        lane->n_idle++;
        (void)clock_wait(&lane->wake, &s->lock, INT64_MAX);
        lane->n_idle--;
    }
    struct grpcd_call *c = lane->first;
    if (c) {
        lane->first = c->next_work;
        lane->n_queued--;
    }
    return c;
}

static void *run(void *arg)
{
    struct grpcd_worker *w = arg;
    struct grpcd_lane *lane = w->lane;
    struct grpcd *s = w->s;
    struct grpcd_call *c;
    thread_name("grpc", lane == s->lanes ? "brief" : "long");
    pthread_mutex_lock(&s->lock);
    while ((c = next_locked(s, lane))) {
        const struct grpcd_route route = c->route;
        pthread_mutex_unlock(&s->lock);
        route.handle(route.ctx, c);
        pthread_mutex_lock(&s->lock);
    }
    lane->n_threads--;
    w->next = lane->ended;
    lane->ended = w;
    if (s->lanes_end)
        pthread_cond_broadcast(&lane->wake);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void join_all(struct grpcd_worker *w)
{
    while (w) {
        struct grpcd_worker *next = w->next;
        (void)pthread_join(w->thread, NULL);
        free(w);
        w = next;
    }
}

/* With the lock, which is what the thread begins with. */
static bool spawn_locked(struct grpcd *s, struct grpcd_lane *lane)
{
    struct grpcd_worker *w = xcalloc(1, sizeof *w);
    pthread_attr_t attributes;
    w->s = s;
    w->lane = lane;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK);
    int r = pthread_create(&w->thread, &attributes, run, w);
    (void)pthread_attr_destroy(&attributes);
    if (r)
        free(w);
    else
        lane->n_threads++;
    return r == 0;
}

void grpcd_work(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    struct grpcd_lane *lane = &s->lanes[c->route.how == GRPCD_LONG];
    pthread_mutex_lock(&s->lock);
    /* the idle ones have work, as soon as they wake up to it */
    bool none = lane->n_idle <= lane->n_queued && lane->n_threads < lane->max &&
                !spawn_locked(s, lane) && lane->n_threads == 0;
    if (!none) {
        lane->n_queued++;
        c->next_work = NULL;
        if (lane->first)
            lane->last->next_work = c;
        else
            lane->first = c;
        lane->last = c;
        pthread_cond_signal(&lane->wake);
    }
    struct grpcd_worker *ended = steal(&lane->ended);
    pthread_mutex_unlock(&s->lock);
    join_all(ended); /* these have done */
    if (none)
        grpcd_call_finish(c, GRPC_RESOURCE_EXHAUSTED,
                          "there can be no thread for the call");
}

void grpcd_lanes_join(struct grpcd *s)
{
    for (size_t i = 0; i < ARRAY_LEN(s->lanes); i++) {
        struct grpcd_lane *lane = &s->lanes[i];
        pthread_mutex_lock(&s->lock);
        s->lanes_end = true;
        pthread_cond_broadcast(&lane->wake);
        while (lane->n_threads > 0 || lane->ended) {
            struct grpcd_worker *ended = steal(&lane->ended);
            if (!ended)
                (void)clock_wait(&lane->wake, &s->lock, INT64_MAX);
            pthread_mutex_unlock(&s->lock);
            join_all(ended);
            pthread_mutex_lock(&s->lock);
        }
        pthread_mutex_unlock(&s->lock);
        (void)pthread_cond_destroy(&lane->wake);
    }
}
