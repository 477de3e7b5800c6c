#include "extender/run/node_poll.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/node_pods.h"
#include "extender/run/pod_store.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

/* Versions stay whole numbers in a double: 30 bits of the instance, 20 bits to
 * count from there. */
enum { VERSION_SHIFT = 20 };

struct waiter {
    struct httpd_request *rq;
    char *node;
    uint64_t version;
    int64_t due_ms;
    bool fresh; /* nobody has looked since it waits */
    struct waiter *next;
};

struct version {
    char *node;
    uint64_t number, sum;
};

struct node_poll {
    const struct pod_store *store;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct strmap versions; /* by node */
    struct waiter *waiters;
    bool dirty; /* something has changed */
    bool fresh; /* somebody has come to wait */
    bool stopping;
};

/* --- versions ----------------------------------------------------------- */

static uint64_t first_version(const struct node_poll *w)
{
    return ((w->store->instance & (INT32_MAX >> 1)) | 1) << VERSION_SHIFT;
}

bool node_poll_knows(const struct node_poll *w, uint64_t version)
{
    return version >> VERSION_SHIFT == first_version(w) >> VERSION_SHIFT;
}

/* NULL when there are too many. */
static struct version *version_open(struct node_poll *w, const char *node,
                                    uint64_t sum)
{
    struct version *v = strmap_get(&w->versions, node);
    if (v || w->versions.n >= NODE_POLL_NODES_MAX)
        return v;
    v = xcalloc(1, sizeof *v);
    v->node = xstrdup(node);
    v->number = first_version(w);
    v->sum = sum - 1;
    (void)strmap_put(&w->versions, v->node, v);
    return v;
}

static uint64_t version_set(struct node_poll *w, const char *node, uint64_t sum)
{
    uint64_t number = first_version(w) | (sum & ((1 << VERSION_SHIFT) - 1));
    hold_lock(&w->lock);
    struct version *v = version_open(w, node, sum);
    if (v && v->sum != sum)
        v->number++;
    if (v) {
        v->sum = sum;
        number = v->number;
    }
    return number;
}

uint64_t node_poll_version(struct node_poll *w, const struct pod_set *set,
                           const struct snapshot *s, const char *node)
{
    return version_set(w, node, node_pods_sum(set, s, node));
}

/* --- waiting ------------------------------------------------------------ */

static void waiter_resume(struct waiter *x)
{
    httpd_resume(x->rq);
    free(x->node);
    free(x);
}

/* Those who waited long enough, or for what is there now; the others wait
 * on. */
static void resume_due(struct node_poll *w, struct waiter *list, bool changed)
{
    cleanup_with(pod_set) struct pod_set *set = applied_get(w->store->applied);
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(w->store->writer);
    int64_t now_ms = clock_ms();
    while (list) {
        struct waiter *x = list;
        list = x->next;
        bool look = changed || x->fresh;
        x->fresh = false;
        if (x->due_ms <= now_ms ||
            (look && node_poll_version(w, set, s, x->node) != x->version)) {
            waiter_resume(x);
            continue;
        }
        hold_lock(&w->lock);
        x->next = w->waiters;
        w->waiters = x;
    }
}

static int64_t next_due(const struct node_poll *w)
{
    int64_t due_ms = INT64_MAX;
    for (const struct waiter *x = w->waiters; x; x = x->next)
        if (x->due_ms < due_ms)
            due_ms = x->due_ms;
    return due_ms;
}

static void *poll_thread(void *ctx)
{
    struct node_poll *w = ctx;
    pthread_mutex_lock(&w->lock);
    thread_name("node polls", NULL);
    while (!w->stopping) {
        if (!w->dirty && !w->fresh &&
            clock_wait(&w->wake, &w->lock, next_due(w)))
            continue;
        bool changed = w->dirty;
        struct waiter *list = steal(&w->waiters);
        w->dirty = w->fresh = false;
        pthread_mutex_unlock(&w->lock);
        if (list)
            resume_due(w, list, changed);
        pthread_mutex_lock(&w->lock);
    }
    struct waiter *list = steal(&w->waiters);
    pthread_mutex_unlock(&w->lock);
    while (list) {
        struct waiter *next = list->next;
        waiter_resume(list);
        list = next;
    }
    return NULL;
}

bool node_poll_suspend(struct node_poll *w, struct httpd_request *rq,
                       const char *node, uint64_t version, int64_t wait_ms)
{
    hold_lock(&w->lock);
    bool waits = !w->stopping;
    if (waits) {
        struct waiter *x = xcalloc(1, sizeof *x);
        x->rq = rq;
        x->node = xstrdup(node);
        x->version = version;
        x->due_ms = clock_ms() + wait_ms;
        x->next = w->waiters;
        w->waiters = x;
        httpd_suspend(rq);
        /* what changed since the caller looked must not be missed */
        x->fresh = w->fresh = true;
        pthread_cond_signal(&w->wake);
    }
    return waits;
}

static void on_changed(void *ctx)
{
    struct node_poll *w = ctx;
    hold_lock(&w->lock);
    w->dirty = true;
    pthread_cond_signal(&w->wake);
}

/* --- start and stop ----------------------------------------------------- */

int node_poll_start(const struct pod_store *store, struct node_poll **ret_wait,
                    struct error *err)
{
    struct node_poll *w = xcalloc(1, sizeof *w);
    w->store = store;
    (void)pthread_mutex_init(&w->lock, NULL); /* never fails on Linux */
    clock_wait_init(&w->wake);
    pthread_mutex_lock(&w->lock); /* the thread waits until all is set up */
    int rc = pthread_create(&w->thread, NULL, poll_thread, w);
    w->started = rc == 0;
    if (w->started) {
        applied_watch(store->applied, on_changed, w);
        writer_watch(store->writer, on_changed, w);
    }
    pthread_mutex_unlock(&w->lock);
    if (rc) {
        node_poll_destroy(w);
        return error_errno(err, rc, "starting the thread of waiting nodes");
    }
    *ret_wait = w;
    return 0;
}

void node_poll_stop(struct node_poll *w)
{
    if (!w || !w->started)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL); /* it was started, once */
    w->started = false;
}

static void version_free(void *version)
{
    struct version *v = version;
    free(v->node);
    free(v);
}

void node_poll_destroy(struct node_poll *w)
{
    if (!w)
        return;
    node_poll_stop(w);
    strmap_fini_with(&w->versions, version_free);
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
