#include "extender/app/followers.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/mem.h"

struct followers {
    pthread_mutex_t lock;
    size_t n, max, client_max;
    uint64_t clients[FOLLOWERS_MAX]; /* n of them, one of each follower */
};

struct followers *followers_create(size_t max)
{
    struct followers *f = xcalloc(1, sizeof *f);
    (void)pthread_mutex_init(&f->lock, NULL); /* cannot fail on Linux */
    f->max = max < FOLLOWERS_MAX ? max : FOLLOWERS_MAX;
    f->client_max = (f->max + FOLLOWERS_CLIENT_PART - 1) /
                    FOLLOWERS_CLIENT_PART;
    return f;
}

void followers_destroy(struct followers *f)
{
    if (!f)
        return;
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

static size_t count_locked(const struct followers *f, uint64_t client)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->clients[i] == client;
    return n;
}

bool followers_enter(struct followers *f, struct httpd_request *rq,
                     uint64_t client)
{
    if (!f)
        return true;
    hold_lock(&f->lock);
    if (count_locked(f, client) >= f->client_max) {
        httpd_fail(rq, 429,
                   "this client (its token, or without one its address) "
                   "follows %zu lists, pages and events already: end one of "
                   "them first",
                   f->client_max);
        return false;
    }
    if (f->n >= f->max) {
        httpd_fail(rq, 503, "%zu lists, pages and events are followed already",
                   f->max);
        return false;
    }
    f->clients[f->n++] = client;
    return true;
}

void followers_leave(struct followers *f, uint64_t client)
{
    if (!f)
        return;
    hold_lock(&f->lock);
    for (size_t i = 0; i < f->n; i++) {
        if (f->clients[i] != client)
            continue;
        f->clients[i] = f->clients[--f->n];
        return;
    }
}
