#include "extender/leader/binds.h"

#include <stdbool.h>
#include <stdlib.h>

#include "extender/leader/binds_private.h"
#include "lib/base/mem.h"

/* Of one pod. */
struct request {
    char *uid;
    size_t n; /* how many */
    bool bound, refused;
    struct binds_place place; /* that was refused */
};

struct binds *binds_create(const struct binds_config *config)
{
    struct binds *x = xcalloc(1, sizeof *x);
    x->config = *config;
    (void)pthread_mutex_init(&x->lock, NULL); /* cannot fail on Linux */
    return x;
}

static void request_destroy(void *request)
{
    struct request *e = request;
    free(e->uid);
    free(e);
}

void binds_destroy(struct binds *x)
{
    if (!x)
        return;
    strmap_fini_with(&x->requests, request_destroy);
    (void)pthread_mutex_destroy(&x->lock); /* nobody holds it */
    free(x);
}

void binds_begin(struct binds *x, const char *uid)
{
    hold_lock(&x->lock);
    struct request *e = strmap_get(&x->requests, uid);
    if (!e) {
        e = xcalloc(1, sizeof *e);
        e->uid = xstrdup(uid);
        (void)strmap_put(&x->requests, e->uid, e);
    }
    e->n++;
    x->n++;
}

void binds_finish(struct binds *x, const char *uid,
                  const struct binds_result *result,
                  binds_give_back_f *give_back, void *ctx)
{
    hold_lock(&x->lock);
    struct request *e = strmap_get(&x->requests, uid);
    e->bound = e->bound || result->end == BINDS_BOUND;
    e->refused = e->refused || result->end == BINDS_REFUSED;
    if (result->end == BINDS_REFUSED)
        e->place = result->place;
    x->n--;
    if (--e->n == 0) {
        if (e->refused && !e->bound)
            give_back(ctx, &e->place);
        (void)strmap_remove(&x->requests, uid);
        request_destroy(e);
    }
}

size_t binds_count(struct binds *x)
{
    hold_lock(&x->lock);
    return x->n;
}
