#include "extender/waker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extender/job.h"
#include "model/io/clock.h"
#include "model/io/log.h"
#include "model/kube/client.h"

enum {
    IDLE_MS = 1000, /* while somebody else leads */
    REST = 4,       /* times as long as a round took, so that judging takes a
                     * fifth of one CPU at most */
    PATH_MAX_BYTES = 2048,
    BODY_MAX_BYTES = 4096,
};

struct waker {
    struct waker_config config;
    struct kube_client *client;
    struct http_answer answer;
    pthread_t thread;
    bool started;

    /* the thread's */
    int64_t call_ms; /* when the next call may be made */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct waiting *waiting;
    struct candidates *last; /* pods that are refused alike share them */
    bool stopping, dirty;
    int64_t round_ms; /* not to look before */
};

/* --- judging -------------------------------------------------------------- */

/* How many of these nodes (NULL: all) the pod fits, as filter would say; of
 * one whose job is to be planned 1 when there is a plan. */
static size_t count_fitting(struct plans *memory,
                            const struct snapshot *snapshot,
                            const struct demand *pod, const int32_t *nodes,
                            size_t n)
{
    struct schedule s;
    struct plan_refusal ignored;
    cleanup_with(plan) struct plan *plan = NULL;
    schedule_init(&s, snapshot, pod);
    if (demand_is_planned(pod) && s.quota.kind == QUOTA_OK &&
        !job_is_placed(&s, nodes, n))
        return job_plan(memory, snapshot, pod, nodes, n, NODE_NONE, &plan,
                        &ignored) == 0;
    cleanup_free int32_t *all = NULL;
    if (!nodes) {
        n = snapshot->n_nodes;
        all = xcalloc(n + 1, sizeof *all);
        for (size_t i = 0; i < n; i++)
            all[i] = (int32_t)i;
        nodes = all;
    }
    uint32_t best;
    size_t fitting;
    (void)schedule_best(&s, nodes, n, 1, &best, &fitting);
    return fitting;
}

void waker_judge(struct plans *memory, const struct snapshot *snapshot,
                 const struct demand *pod, const struct candidates *named,
                 struct waiting_verdict *ret_verdict)
{
    size_t n;
    cleanup_free int32_t *nodes = candidates_indexes(named, snapshot, &n);
    size_t all = count_fitting(memory, snapshot, pod, NULL, 0);
    *ret_verdict = (struct waiting_verdict){
        .number = snapshot->number,
        .fits_named = nodes ? count_fitting(memory, snapshot, pod, nodes, n) > 0
                            : all > 0,
        .fitting = all,
    };
}

/* --- waking ----------------------------------------------------------------
 *
 * By server-side apply of one condition; its message differs each time, since
 * a pod that stays as it is wakes nobody. */
static int call(struct waker *w, const struct demand *pod, uint64_t number,
                struct error *err)
{
    char now[CLOCK_UTC_MAX];
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX_BYTES);
    clock_format_utc((int64_t)time(NULL), now);
    kube_path_object(&path, "/api/v1", pod->namespace, "pods", pod->name);
    str_add(&path, "/status?fieldManager=biga-room&force=true");
    str_add(&body, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
                   "\"name\":");
    str_add_json(&body, pod->name);
    str_add(&body, ",\"uid\":");
    str_add_json(&body, pod->uid);
    str_addf(
        &body,
        "},\"status\":{\"conditions\":[{\"type\":\"" PODOBJ_ROOM
        "\",\"status\":\"True\",\"reason\":\"RoomAppeared\","
        "\"lastTransitionTime\":\"%s\",\"message\":\"there is room for it, "
        "kube-scheduler may try it again (snapshot %llu)\"}]}}",
        now, (unsigned long long)number);
    struct kube_request request = {
        .method = "PATCH",
        .path = str_text(&path),
        .type = KUBE_APPLY,
        .body = body.data,
        .body_size = body.size,
        .timeout_ms = WAKER_CALL_MS,
    };
    return kube_call(w->client, &request, &w->answer, err);
}

static bool may_write(const struct waker *w)
{
    return !w->config.may_write ||
           w->config.may_write(w->config.ctx, WAKER_CALL_MS);
}

/* Called with the lock, which is let go meanwhile. */
static void wake_pod(struct waker *w, const struct demand *pod,
                     const struct waiting_verdict *verdict)
{
    struct error err = {0};
    pthread_mutex_unlock(&w->lock);
    w->call_ms = clock_ms() + 1000 / WAKER_PER_SECOND;
    int r = may_write(w) ? call(w, pod, verdict->number, &err) : -EPERM;
    if (r == 0)
        log_event(LOG_INFO, "woken", "namespace", pod->namespace, "pod",
                  pod->name, NULL);
    else if (r != -ENOENT && r != -EBUSY && r != -EPERM)
        log_event(LOG_WARN, "not-woken", "namespace", pod->namespace, "pod",
                  pod->name, "error", err.text, NULL);
    pthread_mutex_lock(&w->lock);
    waiting_woken(w->waiting, pod->uid, verdict, r, clock_ms());
}

/* --- a round ---------------------------------------------------------------- */

/* False when it is time to end. */
static bool wait_for_turn(struct waker *w)
{
    while (!w->stopping && clock_ms() < w->call_ms)
        (void)clock_wait(&w->wake, &w->lock, w->call_ms);
    return !w->stopping;
}

/* With what is so at that moment: those before may have taken the room. */
static void look_at(struct waker *w, const char *uid)
{
    struct demand pod;
    struct waiting_verdict verdict;
    cleanup_with(candidates) struct candidates *named =
        waiting_named(w->waiting, uid);
    pthread_mutex_unlock(&w->lock);
    bool known = w->config.find(w->config.ctx, uid, &pod);
    if (known) {
        cleanup_with(snapshot) struct snapshot *s =
            writer_snapshot(w->config.app->writer);
        waker_judge(w->config.app->plans, s, &pod, named, &verdict);
    }
    pthread_mutex_lock(&w->lock);
    if (!known) /* bound meanwhile, or not to be had: it comes back if it is */
        waiting_gone(w->waiting, uid);
    else if (waiting_judge(w->waiting, uid, &verdict, clock_ms()))
        wake_pod(w, &pod, &verdict);
}

static uint64_t present_number(const struct waker *w)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(w->config.app->writer);
    return s->number;
}

static void look(struct waker *w)
{
    size_t n;
    int64_t begun_ms = clock_ms();
    uint64_t number = present_number(w);
    cleanup_free struct waiting_pod *list = waiting_list(w->waiting, number,
                                                         &n);
    w->dirty = false;
    for (size_t i = 0; i < n && wait_for_turn(w); i++)
        look_at(w, list[i].uid);
    int64_t now_ms = clock_ms();
    int64_t rest_ms = REST * (now_ms - begun_ms);
    w->round_ms = now_ms +
                  (rest_ms > WAKER_GRACE_MS ? rest_ms : WAKER_GRACE_MS);
}

static void *waker_thread(void *ctx)
{
    struct waker *w = ctx;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        int64_t now_ms = clock_ms();
        int64_t due_ms = waiting_due(w->waiting, present_number(w));
        if (!w->dirty && due_ms > now_ms) {
            (void)clock_wait(&w->wake, &w->lock, due_ms);
            continue;
        }
        if (now_ms < w->round_ms) {
            (void)clock_wait(&w->wake, &w->lock, w->round_ms);
            continue;
        }
        if (!may_write(w)) {
            w->round_ms = now_ms + IDLE_MS;
            continue;
        }
        look(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* --- what is heard ----------------------------------------------------------- */

/* Called with the lock.  The first change begins the grace. */
static void changed(struct waker *w)
{
    int64_t grace_ms = clock_ms() + WAKER_GRACE_MS;
    if (!w->dirty && w->round_ms < grace_ms)
        w->round_ms = grace_ms;
    w->dirty = true;
    pthread_cond_signal(&w->wake);
}

static void on_snapshot(void *ctx)
{
    struct waker *w = ctx;
    pthread_mutex_lock(&w->lock);
    changed(w);
    pthread_mutex_unlock(&w->lock);
}

static void on_put(void *ctx, const struct podobj *pod)
{
    struct waker *w = ctx;
    struct waiting_state before, after;
    pthread_mutex_lock(&w->lock);
    waiting_state(w->waiting, pod->demand.uid, &before);
    waiting_put(w->waiting, pod);
    waiting_state(w->waiting, pod->demand.uid, &after);
    if (after.aside && !before.aside)
        changed(w);
    pthread_mutex_unlock(&w->lock);
}

static void on_gone(void *ctx, const char *uid)
{
    struct waker *w = ctx;
    pthread_mutex_lock(&w->lock);
    waiting_gone(w->waiting, uid);
    pthread_mutex_unlock(&w->lock);
}

struct cluster_pod_listener waker_listener(struct waker *w)
{
    return (struct cluster_pod_listener){
        .put = on_put, .gone = on_gone, .ctx = w};
}

void waker_lead(struct waker *w)
{
    pthread_mutex_lock(&w->lock);
    waiting_again(w->waiting);
    changed(w);
    pthread_mutex_unlock(&w->lock);
}

void waker_asked(struct waker *w, const char *uid,
                 const struct snapshot *snapshot, bool refused,
                 const int32_t *indexes, size_t n)
{
    cleanup_with(candidates) struct candidates *named = NULL, *like = NULL;
    if (refused) {
        pthread_mutex_lock(&w->lock);
        like = candidates_ref(w->last);
        pthread_mutex_unlock(&w->lock);
        named = candidates_create(snapshot, indexes, n, like);
    }
    pthread_mutex_lock(&w->lock);
    waiting_asked(w->waiting, uid, snapshot->number, refused, named);
    if (named) {
        candidates_unref(w->last);
        w->last = candidates_ref(named);
    }
    pthread_mutex_unlock(&w->lock);
}

void waker_state(struct waker *w, const char *uid,
                 struct waiting_state *ret_state)
{
    pthread_mutex_lock(&w->lock);
    waiting_state(w->waiting, uid, ret_state);
    pthread_mutex_unlock(&w->lock);
}

/* --- start and stop ----------------------------------------------------------- */

int waker_start(const struct waker_config *config, struct waker **ret_waker,
                struct error *err)
{
    cleanup_with(waker) struct waker *w = xcalloc(1, sizeof *w);
    w->config = *config;
    w->answer.body.max = KUBE_ANSWER_MAX;
    w->waiting = waiting_create();
    (void)pthread_mutex_init(&w->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&w->wake);
    int r = kube_client_create(config->kube, WAKER_CALL_MS, &w->client, err);
    if (r < 0)
        return r;
    int rc = pthread_create(&w->thread, NULL, waker_thread, w);
    if (rc)
        return error_errno(err, rc, "starting the thread that wakes pods");
    w->started = true;
    writer_watch(config->app->writer, on_snapshot, w);
    *ret_waker = steal(&w);
    return 0;
}

void waker_stop(struct waker *w)
{
    if (!w)
        return;
    if (w->started) {
        writer_unwatch(w->config.app->writer, w);
        pthread_mutex_lock(&w->lock);
        w->stopping = true;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        (void)pthread_join(w->thread, NULL); /* it was started, once */
    }
    waiting_destroy(w->waiting);
    candidates_unref(w->last);
    kube_client_destroy(w->client);
    str_fini(&w->answer.body);
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
