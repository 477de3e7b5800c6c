#include "extender/leader/drainer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/leader/drain_entry.h"
#include "extender/leader/eviction.h"
#include "lib/base/backoff.h"
#include "lib/base/strmap.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/kube/client.h"

enum {
    IDLE_MS = 1000, /* while somebody else leads */
    PATH_MAX_BYTES = 2048,
    BODY_MAX_BYTES = 65536,
};

/* A pod that is to leave, and was asked to. */
struct leaver {
    char uid[DEMAND_UID_MAX + 1];
    int64_t retry_ms;
    unsigned failures;
    bool told;      /* that it is evicted */
    uint64_t round; /* the last that saw it */
};

struct drainer {
    struct drainer_config config;
    pthread_t thread;
    bool started;

    /* the thread's alone */
    struct kube_client *client;
    struct http_answer answer;
    struct strmap leavers;
    uint64_t round;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping, quiet;
    int64_t due_ms;  /* of the next round, */
    int64_t rest_ms; /* which does not begin before */
    struct pod_drain *first, **last;
    size_t n_waiting;
};

/* --- written down --------------------------------------------------------- */

/* One key of the ConfigMap, by a patch: those that others write at the same
 * time stay. */
static int write_entry(struct drainer *d, const struct pod_drain *drain,
                       struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX_BYTES);
    int r = drain->gone
                ? drain_entry_remove(drain->node, drain->bar, &body, err)
                : drain_entry_patch(drain->node, drain->bar, &body, err);
    if (r < 0)
        return r;
    kube_path_object(&path, "/api/v1", d->config.namespace, "configmaps",
                     DRAIN_CONFIGMAP);
    const struct kube_request request = {.method = "PATCH",
                                         .path = str_text(&path),
                                         .type = drain->gone ? KUBE_JSON_PATCH
                                                             : KUBE_MERGE_PATCH,
                                         .body = body.data,
                                         .body_size = body.size,
                                         .timeout_ms = DRAINER_CALL_MS};
    r = kube_call(d->client, &request, &d->answer, err);
    if (r == -ENOENT) /* which the deployment has, and may not be made here */
        return error_set(err, EAGAIN,
                         "ConfigMap %s/" DRAIN_CONFIGMAP
                         " is not there: it is part of the manifests in "
                         "deploy/",
                         d->config.namespace);
    if (r == -EINVAL && drain->gone) /* there is no such key */
        return error_set(err, ENOENT, "%s%s%s is not drained", drain->node,
                         drain->bar->card[0] ? "/" : "", drain->bar->card);
    return r;
}

static void answer(struct pod_drain *drain, int result)
{
    if (result < 0)
        log_event(LOG_WARN, "drain-not-written", "node", drain->node, "card",
                  drain->bar->card, "error", drain->error.text, NULL);
    drain->result = result;
    drain->done(drain);
}

static void refuse(struct pod_drain *drain, const char *why)
{
    answer(drain, error_set(&drain->error, EAGAIN, "%s", why));
}

/* With the lock, which is let go during the call. */
static void write_next(struct drainer *d)
{
    struct pod_drain *drain = d->first;
    bool quiet = d->quiet;
    d->first = drain->next;
    if (!d->first)
        d->last = &d->first;
    d->n_waiting--;
    pthread_mutex_unlock(&d->lock);
    if (quiet)
        refuse(drain, "the server is stopping");
    else
        answer(drain, write_entry(d, drain, &drain->error));
    pthread_mutex_lock(&d->lock);
}

void drainer_post(struct drainer *d, struct pod_drain *drain)
{
    drain->next = NULL;
    pthread_mutex_lock(&d->lock);
    bool taken = !d->quiet && d->n_waiting < DRAINER_WAITING_MAX;
    if (taken) {
        *d->last = drain;
        d->last = &drain->next;
        d->n_waiting++;
        pthread_cond_signal(&d->wake);
    }
    pthread_mutex_unlock(&d->lock);
    if (!taken)
        refuse(drain, "too many requests wait for the API server, or the "
                      "server is stopping");
}

/* --- evictions ------------------------------------------------------------ */

/* The drain that has the pod leave; NULL: none. */
static const struct card_bar *find_drain(const struct node *node,
                                         const struct allocation *a)
{
    for (size_t i = 0; i < a->n_cards; i++) {
        const struct card_bar *drain = card_bars_eviction(node->bars,
                                                          a->cards[i]);
        if (drain)
            return drain;
    }
    return NULL;
}

static struct leaver *leaver_get(struct drainer *d, const char *uid)
{
    struct leaver *l = strmap_get(&d->leavers, uid);
    if (!l) {
        l = xcalloc(1, sizeof *l);
        (void)snprintf(l->uid, sizeof l->uid, "%s", uid);
        (void)strmap_put(&d->leavers, l->uid, l);
    }
    l->round = d->round;
    return l;
}

static void tell(struct drainer *d, const struct allocation *a,
                 const struct card_bar *drain, const struct error *err)
{
    char text[EVENTS_TEXT_MAX];
    const char *why = err ? err->text : "";
    (void)snprintf(text, sizeof text, "%s%s: %s%s%.256s",
                   err ? "cannot be evicted from " : "evicted from ", a->node,
                   drain->why, err ? "; it is tried again: " : "", why);
    events_post(d->config.events, &a->demand,
                err ? EVENTS_NOT_DRAINED : EVENTS_DRAINED, text);
    log_event(err ? LOG_WARN : LOG_INFO, err ? "not-evicted" : "evicted",
              "namespace", a->demand.namespace, "pod", a->demand.name, "node",
              a->node, "error", why, NULL);
}

/* Asked again as long as it is there: the first time that is told. */
static void evict(struct drainer *d, const struct allocation *a,
                  const struct card_bar *drain, struct leaver *l)
{
    struct error err = {0};
    const struct eviction eviction = {a->demand.namespace, a->demand.name,
                                      a->demand.uid};
    int r = eviction_post(d->client, &eviction, DRAINER_CALL_MS, &d->answer,
                          &err);
    bool left = r == 0 || r == -ENOENT || r == -EBUSY;
    if (r == 0 && !l->told)
        tell(d, a, drain, NULL);
    else if (!left)
        tell(d, a, drain, &err);
    l->told |= r == 0;
    l->failures = left ? 0 : l->failures + 1;
    l->retry_ms = clock_ms() +
                  (left ? DRAINER_RETRY_MAX_MS
                        : backoff_grown(DRAINER_RETRY_MS, DRAINER_RETRY_MAX_MS,
                                        l->failures));
}

static bool may_write(const struct drainer *d)
{
    return !d->config.may_write ||
           d->config.may_write(d->config.ctx, DRAINER_CALL_MS);
}

static void forget_others(struct drainer *d)
{
    size_t pos = 0;
    for (struct leaver *l; (l = strmap_next(&d->leavers, &pos));) {
        if (l->round == d->round)
            continue;
        (void)strmap_remove(&d->leavers, l->uid);
        free(l);
        pos = 0; /* others have moved */
    }
}

/* Does somebody wait for something else? */
static bool is_wanted(struct drainer *d)
{
    hold_lock(&d->lock);
    return d->first || d->quiet;
}

/* False: the rest has to wait. */
static bool evict_of(struct drainer *d, const struct node *node,
                     int64_t *due_ms)
{
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        const struct card_bar *drain = a->held ? NULL : find_drain(node, a);
        if (!drain)
            continue;
        struct leaver *l = leaver_get(d, a->demand.uid);
        if (l->retry_ms <= clock_ms() && is_wanted(d))
            return false;
        if (l->retry_ms <= clock_ms() && may_write(d))
            evict(d, a, drain, l);
        if (l->retry_ms < *due_ms)
            *due_ms = l->retry_ms;
    }
    return true;
}

/* When there is something to do though nothing changes. */
static int64_t evict_all(struct drainer *d)
{
    int64_t due_ms = INT64_MAX;
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(d->config.writer);
    d->round++;
    for (size_t i = 0; i < s->n_nodes; i++)
        if (snapshot_node(s, i)->bars &&
            !evict_of(d, snapshot_node(s, i), &due_ms))
            return clock_ms();
    forget_others(d);
    return due_ms;
}

/* With the lock, which is let go meanwhile. */
static void run_round(struct drainer *d)
{
    d->due_ms = INT64_MAX; /* a change from now on counts */
    pthread_mutex_unlock(&d->lock);
    int64_t due_ms = may_write(d) ? evict_all(d) : clock_ms() + IDLE_MS;
    pthread_mutex_lock(&d->lock);
    d->rest_ms = clock_ms() + DRAINER_PAUSE_MS;
    if (due_ms < d->due_ms)
        d->due_ms = due_ms;
    if (d->due_ms < d->rest_ms)
        d->due_ms = d->rest_ms;
}

/* --- the thread ----------------------------------------------------------- */

static void *drainer_thread(void *ctx)
{
    struct drainer *d = ctx;
    thread_name("drainer", NULL);
    hold_lock(&d->lock);
    while (!d->stopping || d->first) {
        if (d->first)
            write_next(d);
        else if (d->due_ms > clock_ms())
            (void)clock_wait(&d->wake, &d->lock, d->due_ms);
        else
            run_round(d);
    }
    return NULL;
}

static void on_snapshot(void *ctx)
{
    struct drainer *d = ctx;
    hold_lock(&d->lock);
    if (d->due_ms <= d->rest_ms)
        return; /* it wakes for that already */
    d->due_ms = d->rest_ms;
    pthread_cond_signal(&d->wake);
}

/* --- start and stop ------------------------------------------------------- */

int drainer_start(const struct drainer_config *config,
                  struct drainer **ret_drainer, struct error *err)
{
    cleanup_with(drainer) struct drainer *d = xcalloc(1, sizeof *d);
    d->config = *config;
    d->answer.body.max = KUBE_ANSWER_MAX;
    d->last = &d->first;
    (void)pthread_mutex_init(&d->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&d->wake);
    int r = kube_client_create(config->kube, DRAINER_CALL_MS, &d->client, err);
    if (r < 0)
        return r;
    int rc = pthread_create(&d->thread, NULL, drainer_thread, d);
    if (rc)
        return error_errno(err, rc, "starting the thread of drains");
    d->started = true;
    writer_watch(config->writer, on_snapshot, d);
    *ret_drainer = steal(&d);
    return 0;
}

void drainer_quiesce(struct drainer *d)
{
    if (!d)
        return;
    hold_lock(&d->lock);
    d->quiet = true;
    pthread_cond_signal(&d->wake);
}

static void join(struct drainer *d)
{
    writer_unwatch(d->config.writer, d);
    pthread_mutex_lock(&d->lock);
    d->stopping = d->quiet = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    (void)pthread_join(d->thread, NULL); /* it was started, once */
}

void drainer_stop(struct drainer *d)
{
    if (!d)
        return;
    if (d->started)
        join(d);
    strmap_fini_with(&d->leavers, free);
    kube_client_destroy(d->client);
    str_fini(&d->answer.body);
    (void)pthread_cond_destroy(&d->wake);
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}
