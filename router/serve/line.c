#include "router/serve/line.h"

#include <errno.h>
#include <pthread.h>

#include "lib/io/clock.h"

struct lines {
    struct act_place place;
    pthread_mutex_t lock;
    pthread_cond_t given;
    struct cri *kept[LINE_KEPT];
    size_t n_kept, n_used;
    size_t n_spare; /* of those that are kept nobody needed so many */
};

struct lines *lines_create(const struct act_place *place)
{
    struct lines *l = xcalloc(1, sizeof *l);
    l->place = *place;
    (void)pthread_mutex_init(&l->lock, NULL);
    clock_wait_init(&l->given);
    return l;
}

void lines_destroy(struct lines *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n_kept; i++)
        cri_destroy(l->kept[i]);
    (void)pthread_mutex_destroy(&l->lock);
    (void)pthread_cond_destroy(&l->given);
    free(l);
}

/* The one that was used last: others may be closed by the remote by then. */
static int reserve(struct lines *l, int64_t due_ms, struct cri **ret_cri,
                   struct error *err)
{
    hold_lock(&l->lock);
    while (l->n_used == LINE_MAX)
        if (!clock_wait(&l->given, &l->lock, due_ms))
            return error_set(err, EBUSY, "%s: %d calls are under way",
                             l->place.name, LINE_MAX);
    l->n_used++;
    *ret_cri = l->n_kept ? l->kept[--l->n_kept] : NULL;
    if (l->n_kept < l->n_spare)
        l->n_spare = l->n_kept;
    return 0;
}

int lines_take(struct lines *l, int64_t due_ms, struct line *ret_line,
               struct error *err)
{
    struct grpc_config config = card_grpc(&l->place);
    struct line line = {0};
    int r = reserve(l, due_ms, &line.cri, err);
    if (r < 0)
        return r;
    if (!line.cri)
        r = cri_create(&config, &line.cri, err);
    if (r < 0) {
        lines_give(l, &line, true);
        return r;
    }
    *ret_line = line;
    return 0;
}

void lines_give(struct lines *l, struct line *line, bool broken)
{
    struct cri *cri = line->cri;
    (void)pthread_mutex_lock(&l->lock);
    l->n_used--;
    if (!broken && l->n_kept < LINE_KEPT)
        l->kept[l->n_kept++] = steal(&cri);
    (void)pthread_cond_signal(&l->given);
    (void)pthread_mutex_unlock(&l->lock);
    cri_destroy(cri);
    line->cri = NULL;
}

size_t lines_tidy(struct lines *l)
{
    struct cri *spare[LINE_KEPT];
    size_t n;
    (void)pthread_mutex_lock(&l->lock);
    for (n = 0; n < l->n_spare; n++)
        spare[n] = l->kept[--l->n_kept];
    l->n_spare = l->n_kept;
    (void)pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < n; i++)
        cri_destroy(spare[i]);
    return n;
}
