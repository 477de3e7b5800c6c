#include "extender/leader/binder.h"

#include <stdlib.h>
#include <string.h>

#include "extender/leader/binder_private.h"
#include "lib/base/hash.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

/* --- who is busy -------------------------------------------------------- */

/* All under the lock. */

static void busy_add(struct binder *x, const char *uid)
{
    struct busy *busy = strmap_get(&x->busy, uid);
    if (!busy) {
        busy = xcalloc(1, sizeof *busy);
        memcpy(busy->uid, uid, strnlen(uid, DEMAND_UID_MAX));
        (void)strmap_put(&x->busy, busy->uid, busy);
    }
    busy->n++;
    x->n_busy++;
}

static void busy_remove(struct binder *x, const char *uid)
{
    struct busy *busy = strmap_get(&x->busy, uid);
    x->n_busy--;
    if (--busy->n == 0)
        free(strmap_remove(&x->busy, uid));
}

bool binder_is_busy(struct binder *x, const char *uid)
{
    hold_lock(&x->lock);
    return strmap_get(&x->busy, uid) != NULL;
}

size_t binder_n_busy(struct binder *x)
{
    hold_lock(&x->lock);
    return x->n_busy;
}

/* --- who waits ---------------------------------------------------------- */

static void enqueue(struct binder *x, struct binding *b)
{
    bool is_last = x->last && x->last->due_ms <= b->due_ms;
    struct binding **at = is_last ? &x->last->next : &x->first;
    while (*at && (*at)->due_ms <= b->due_ms)
        at = &(*at)->next;
    b->next = *at;
    *at = b;
    if (!b->next)
        x->last = b;
    pthread_cond_signal(&x->wake);
}

int binder_post(struct binder *x, struct binding *b)
{
    int64_t now_ms = clock_ms();
    int result = 0;
    b->due_ms = now_ms;
    b->deadline_ms = now_ms + x->config.deadline_ms;
    b->unsure_until_ms = 0;
    b->seen_unbound = false;
    b->why[0] = '\0';
    b->looks = b->repeated;
    b->told = false;
    b->backoff = (struct backoff){.min_ms = 20,
                                  .max_ms = 1000,
                                  .random = hash_bytes(b->uid, strlen(b->uid))};
    hold_lock(&x->lock);
    if (x->n_busy >= BINDER_QUEUE_MAX || x->stopping) {
        result = -EAGAIN;
    } else {
        busy_add(x, b->uid);
        enqueue(x, b);
    }
    return result;
}

/* The binding's next step is due in `ms`. */
static void again(struct binder *x, struct binding *b, int64_t ms)
{
    b->due_ms = clock_ms() + ms;
    if (!b->told && b->due_ms > b->deadline_ms)
        b->due_ms = b->deadline_ms;
    hold_lock(&x->lock);
    enqueue(x, b);
}

/* Give the binding back to its poster. */
static void finish(struct binder *x, struct binding *b,
                   enum binder_outcome outcome, const char *reason)
{
    pthread_mutex_lock(&x->lock);
    busy_remove(x, b->uid);
    pthread_mutex_unlock(&x->lock);
    if (b->told)
        b->settled(b, outcome);
    else
        b->done(b, outcome, reason);
}

/* From here on it is settled(). */
static void tell_unknown(struct binding *b, const char *reason)
{
    log_event(LOG_WARN, "bind-unknown", "namespace", b->namespace, "pod",
              b->name, "node", b->node, "error", reason, NULL);
    b->told = true;
    b->done(b, BINDER_UNKNOWN, reason);
}

/* `b` may be freed once this has returned. */
static void follow(struct binder *x, struct binding *b,
                   const struct binding_outcome *o)
{
    switch (o->next) {
    case BINDING_AGAIN:
        again(x, b, o->ms);
        break;
    case BINDING_BOUND:
        finish(x, b, BINDER_BOUND, "");
        break;
    case BINDING_REFUSED:
        finish(x, b, BINDER_REFUSED, o->reason);
        break;
    case BINDING_UNKNOWN:
        tell_unknown(b, o->reason);
        b->looks = true;
        again(x, b, 0);
        break;
    case BINDING_ABANDONED:
        if (!b->told)
            tell_unknown(b, o->reason);
        finish(x, b, BINDER_UNKNOWN, o->reason);
        break;
    }
}

/* --- the threads -------------------------------------------------------- */

/* The next that is due; NULL when there is nothing more to come. */
static struct binding *next_due(struct binder *x)
{
    struct binding *b;
    hold_lock(&x->lock);
    for (;;) {
        b = x->first;
        if (x->stopping || (b && b->due_ms <= clock_ms()))
            break;
        (void)clock_wait(&x->wake, &x->lock, b ? b->due_ms : INT64_MAX);
    }
    if (b)
        x->first = b->next;
    if (!x->first)
        x->last = NULL;
    return b;
}

static void *binder_main(void *ctx)
{
    struct binder_thread *t = ctx;
    struct binding *b;
    thread_name("binder", NULL);
    while ((b = next_due(t->binder))) {
        struct binding_outcome o = binding_step(t, b);
        follow(t->binder, b, &o);
    }
    return NULL;
}

static int thread_start(struct binder *x, struct binder_thread *t,
                        struct error *err)
{
    t->binder = x;
    str_init(&t->answer.body, KUBE_OBJECT_MAX);
    str_init(&t->path, 4096);
    str_init(&t->body, KUBE_OBJECT_MAX);
    int e = kube_client_create(x->config.kube, BINDER_CALL_MS, &t->client, err);
    if (e < 0)
        return e;
    int rc = pthread_create(&t->thread, NULL, binder_main, t);
    if (rc)
        return error_errno(err, rc, "starting a thread of the binder");
    x->n_threads++;
    return 0;
}

int binder_start(const struct binder_config *config, struct binder **ret_binder,
                 struct error *err)
{
    struct binder *x = xcalloc(1, sizeof *x);
    int e = 0;
    x->config = *config;
    if (x->config.call_ms == 0)
        x->config.call_ms = BINDER_CALL_MS;
    if (x->config.deadline_ms == 0)
        x->config.deadline_ms = BINDER_DEADLINE_MS;
    (void)pthread_mutex_init(&x->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&x->wake);
    for (size_t i = 0; i < BINDER_THREADS && e == 0; i++)
        e = thread_start(x, &x->threads[i], err);
    if (e < 0) {
        binder_stop(x);
        return e;
    }
    *ret_binder = x;
    return 0;
}

void binder_stop(struct binder *x)
{
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    x->stopping = true;
    pthread_cond_broadcast(&x->wake);
    pthread_mutex_unlock(&x->lock);
    for (size_t i = 0; i < x->n_threads; i++)
        (void)pthread_join(x->threads[i].thread, NULL); /* it was started */
    for (size_t i = 0; i < BINDER_THREADS; i++) {
        struct binder_thread *t = &x->threads[i];
        kube_client_destroy(t->client);
        str_fini(&t->answer.body);
        str_fini(&t->path);
        str_fini(&t->body);
    }
    strmap_fini(&x->busy);
    (void)pthread_cond_destroy(&x->wake);
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
}
