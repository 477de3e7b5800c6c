#include "extender/cluster/binds.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/strmap.h"

struct entry {
    char *uid;
    size_t n; /* requests */
    bool bound, refused;
    struct binds_place place; /* that was refused */
};

struct binds {
    pthread_mutex_t lock;
    struct strmap entries; /* by UID */
    size_t n;
};

struct binds *binds_create(void)
{
    struct binds *x = xcalloc(1, sizeof *x);
    (void)pthread_mutex_init(&x->lock, NULL); /* cannot fail on Linux */
    return x;
}

static void entry_destroy(struct entry *e)
{
    free(e->uid);
    free(e);
}

void binds_destroy(struct binds *x)
{
    size_t pos = 0;
    struct entry *e;
    if (!x)
        return;
    while ((e = strmap_next(&x->entries, &pos)))
        entry_destroy(e);
    strmap_fini(&x->entries);
    (void)pthread_mutex_destroy(&x->lock); /* nobody holds it */
    free(x);
}

void binds_begin(struct binds *x, const char *uid)
{
    pthread_mutex_lock(&x->lock);
    struct entry *e = strmap_get(&x->entries, uid);
    if (!e) {
        e = xcalloc(1, sizeof *e);
        e->uid = xstrdup(uid);
        (void)strmap_put(&x->entries, e->uid, e);
    }
    e->n++;
    x->n++;
    pthread_mutex_unlock(&x->lock);
}

void binds_finish(struct binds *x, const char *uid,
                  const struct binds_result *result,
                  binds_give_back_f *give_back, void *ctx)
{
    pthread_mutex_lock(&x->lock);
    struct entry *e = strmap_get(&x->entries, uid);
    e->bound = e->bound || result->end == BINDS_BOUND;
    e->refused = e->refused || result->end == BINDS_REFUSED;
    if (result->end == BINDS_REFUSED)
        e->place = result->place;
    x->n--;
    if (--e->n == 0) {
        if (e->refused && !e->bound)
            give_back(ctx, &e->place);
        (void)strmap_remove(&x->entries, uid);
        entry_destroy(e);
    }
    pthread_mutex_unlock(&x->lock);
}

size_t binds_count(struct binds *x)
{
    pthread_mutex_lock(&x->lock);
    size_t n = x->n;
    pthread_mutex_unlock(&x->lock);
    return n;
}
