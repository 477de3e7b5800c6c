#include "extender/keep/slice_loader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/thread_name.h"
#include "model/slice/slice_pattern.h"

enum {
    CHUNK_SLICES = 32,       /* that are passed to a thread at once, or fewer */
    CHUNK_BYTES = 256 << 10, /* with so much JSON */
    CHUNKS_AHEAD = 4,        /* of each thread, that wait to be visited */
    THREADS_MAX = 8,         /* beside the one that adds */
    PATTERNS_MAX = 32,       /* each that does not fit costs a little */
};

struct chunk {
    struct chunk *next;
    enum { CHUNK_WAITS, CHUNK_TAKEN, CHUNK_DECODED } state;
    size_t n, bytes;
    struct stored_slice items[CHUNK_SLICES]; /* their texts are owned */
};

struct slice_loader {
    slice_loader_f *visit;
    void *ctx;
    struct chunk *filling; /* NULL: none */
    pthread_t threads[THREADS_MAX];
    size_t n_threads;

    pthread_mutex_t lock; /* guards what follows, and the chunks' states */
    pthread_cond_t work, decoded;
    struct chunk *first, **last; /* in the order in which they were added */
    size_t n_chunks;
    bool ending;
    /* only more of them come, and each stays as it is */
    struct slice_pattern *patterns[PATTERNS_MAX];
    size_t n_patterns;
};

/* --- decoding ------------------------------------------------------------- */

/* By one of the first `n`, beginning with the one that fitted last; false: none
 * fits. */
static bool read_by_pattern(const struct slice_loader *l, size_t n,
                            struct stored_slice *s, size_t *last)
{
    for (size_t i = 0; i < n && !s->slice; i++) {
        size_t at = (*last + i) % n;
        s->slice = slice_pattern_read(l->patterns[at], s->json, s->size);
        if (s->slice)
            *last = at;
    }
    return s->slice;
}

static void chunk_decode(const struct slice_loader *l, size_t n_patterns,
                         struct chunk *c)
{
    size_t last = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct stored_slice *s = &c->items[i];
        s->digest = slice_digest(s->json, s->size);
        if (!read_by_pattern(l, n_patterns, s, &last))
            s->is_new = slice_decode(s->json, s->size, &s->slice, &s->error) ==
                        0;
    }
}

/* Decode one that waits; false: none does.  The lock is released meanwhile. */
static bool decode_one_locked(struct slice_loader *l)
{
    struct chunk *c = l->first;
    while (c && c->state != CHUNK_WAITS)
        c = c->next;
    if (!c)
        return false;
    size_t n_patterns = l->n_patterns;
    c->state = CHUNK_TAKEN;
    pthread_mutex_unlock(&l->lock);
    chunk_decode(l, n_patterns, c);
    pthread_mutex_lock(&l->lock);
    c->state = CHUNK_DECODED;
    pthread_cond_signal(&l->decoded);
    return true;
}

static void *loader_thread(void *ctx)
{
    struct slice_loader *l = ctx;
    thread_name("slice loader", NULL);
    hold_lock(&l->lock);
    while (!l->ending)
        if (!decode_one_locked(l))
            (void)pthread_cond_wait(&l->work, &l->lock); /* never fails */
    return NULL;
}

/* --- visiting ------------------------------------------------------------- */

/* The first one, once it is decoded; this thread decodes, too. */
static struct chunk *take_first(struct slice_loader *l)
{
    hold_lock(&l->lock);
    struct chunk *c = l->first;
    while (c->state != CHUNK_DECODED)
        if (!decode_one_locked(l))
            (void)pthread_cond_wait(&l->decoded, &l->lock); /* never fails */
    l->first = c->next;
    if (!l->first)
        l->last = &l->first;
    l->n_chunks--;
    return c;
}

static void visit_first(struct slice_loader *l)
{
    struct chunk *c = take_first(l);
    for (size_t i = 0; i < c->n; i++) {
        struct stored_slice *s = &c->items[i];
        l->visit(l->ctx, s);
        slice_unref(s->slice);
        free((char *)s->name);
        free((char *)s->json);
    }
    free(c);
}

static void queue_filled(struct slice_loader *l)
{
    struct chunk *c = steal(&l->filling);
    hold_lock(&l->lock);
    *l->last = c;
    l->last = &c->next;
    l->n_chunks++;
    pthread_cond_signal(&l->work);
}

void slice_loader_learn(struct slice_loader *l, const struct stored_slice *s,
                        const struct topo *topo)
{
    struct stored_slice again = {.json = s->json, .size = s->size};
    size_t last = 0;
    if (!s->is_new || l->n_patterns == PATTERNS_MAX)
        return;
    if (read_by_pattern(l, l->n_patterns, &again, &last)) {
        slice_unref(again.slice); /* known since it was decoded */
        return;
    }
    struct slice_pattern *p = slice_pattern_create(s->json, s->size, s->slice,
                                                   topo);
    if (!p)
        return;
    hold_lock(&l->lock);
    l->patterns[l->n_patterns++] = p;
}

/* --- adding --------------------------------------------------------------- */

struct slice_loader *slice_loader_create(slice_loader_f *visit, void *ctx)
{
    struct slice_loader *l = xcalloc(1, sizeof *l);
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = n_cpus > 1 ? (size_t)n_cpus - 1 : 0;
    l->visit = visit;
    l->ctx = ctx;
    l->last = &l->first;
    /* none of these can fail on Linux */
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->work, NULL);
    (void)pthread_cond_init(&l->decoded, NULL);
    /* with fewer threads it takes longer, and no harm is done */
    for (size_t i = 0; i < n && i < THREADS_MAX; i++)
        if (pthread_create(&l->threads[l->n_threads], NULL, loader_thread, l) ==
            0)
            l->n_threads++;
    return l;
}

void slice_loader_add(struct slice_loader *l, const char *name,
                      const char *json, size_t size, uint64_t resource_version)
{
    if (!l->filling)
        l->filling = xcalloc(1, sizeof *l->filling);
    struct chunk *c = l->filling;
    c->items[c->n++] = (struct stored_slice){
        .name = xstrdup(name),
        .json = xmemdup(json, size),
        .size = size,
        .resource_version = resource_version,
    };
    c->bytes += size;
    if (c->n < CHUNK_SLICES && c->bytes < CHUNK_BYTES)
        return;
    queue_filled(l);
    if (l->n_chunks > CHUNKS_AHEAD * (l->n_threads + 1))
        visit_first(l);
}

void slice_loader_destroy(struct slice_loader *l)
{
    if (l->filling)
        queue_filled(l);
    while (l->first)
        visit_first(l);
    pthread_mutex_lock(&l->lock);
    l->ending = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < l->n_threads; i++)
        (void)pthread_join(l->threads[i], NULL); /* it was started, once */
    for (size_t i = 0; i < l->n_patterns; i++)
        slice_pattern_destroy(l->patterns[i]);
    (void)pthread_cond_destroy(&l->work);
    (void)pthread_cond_destroy(&l->decoded);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}
