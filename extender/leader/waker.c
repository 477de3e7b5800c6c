#include "extender/leader/waker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extender/judge/job.h"
#include "extender/leader/wake_pace.h"
#include "lib/base/jwrite.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/kube/client.h"

enum {
    IDLE_MS = 1000, /* while somebody else leads */
    PATH_MAX_BYTES = 2048,
    BODY_MAX_BYTES = 4096,
};

struct waker {
    struct waker_config config;
    struct kube_client *client;
    struct http_answer answer;
    pthread_t thread;
    bool started;

    /* the thread's: the pods of a round, and how many of them were judged */
    struct waiting_pods_pod *round;
    size_t n_round, n_judged;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct waiting_pods *waiting;
    struct candidates *last; /* pods that are refused alike share them */
    struct wake_pace pace;
    bool stopping;
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
                 struct waiting_pods_verdict *ret_verdict)
{
    size_t n;
    cleanup_free int32_t *nodes = candidates_indexes(named, snapshot, &n);
    size_t all = count_fitting(memory, snapshot, pod, NULL, 0);
    *ret_verdict = (struct waiting_pods_verdict){
        .number = snapshot->number,
        .fits_named = nodes ? count_fitting(memory, snapshot, pod, nodes, n) > 0
                            : all > 0,
        .fitting = all,
    };
}

/* --- waking ----------------------------------------------------------------
 *
 * By server-side apply of one condition; its message differs each time, since
 * a pod that stays as it is wakes nobody.  It stays on the pod for good: so it
 * says what was, and when. */
static int call(struct waker *w, const struct demand *pod, uint64_t number,
                struct error *err)
{
    char now[CLOCK_UTC_MAX];
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX_BYTES);
    clock_format_utc((int64_t)time(NULL), now);
    kube_path_object(&path, "/api/v1", pod->namespace, "pods", pod->name);
    str_add(&path, "/status?fieldManager=biga-room&force=true");
    str_add(&body, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{");
    jwrite_text(&body, "name", pod->name);
    jwrite_text(&body, "uid", pod->uid);
    str_addf(
        &body,
        "},\"status\":{\"conditions\":[{\"type\":\"" KUBE_POD_ROOM
        "\",\"status\":\"True\",\"reason\":\"RoomAppeared\","
        "\"lastTransitionTime\":\"%s\",\"message\":\"there was room for it "
        "at %s (snapshot %llu)\"}]}}",
        now, now, (unsigned long long)number);
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

/* Called with the lock, which is released during the call. */
static void wake_pod(struct waker *w, const struct demand *pod,
                     const struct waiting_pods_verdict *verdict)
{
    struct error err = {0};
    wake_pace_call(&w->pace, clock_ms());
    pthread_mutex_unlock(&w->lock);
    int r = may_write(w) ? call(w, pod, verdict->number, &err) : -EPERM;
    if (r == 0)
        log_event(LOG_INFO, "woken", "namespace", pod->namespace, "pod",
                  pod->name, NULL);
    else if (r != -ENOENT && r != -EBUSY && r != -EPERM)
        log_event(LOG_WARN, "not-woken", "namespace", pod->namespace, "pod",
                  pod->name, "error", err.text, NULL);
    pthread_mutex_lock(&w->lock);
    waiting_pods_woken(w->waiting, pod->uid, verdict, r, clock_ms());
}

/* --- one step ---------------------------------------------------------------
 *
 * Each is called with the lock, which is let go meanwhile. */

/* Judge the pod with the present snapshot; true if it is to be woken now. */
static bool look_at(struct waker *w, const char *uid, struct demand *ret_pod,
                    struct waiting_pods_verdict *ret_verdict)
{
    cleanup_with(candidates) struct candidates *named =
        waiting_pods_named(w->waiting, uid);
    pthread_mutex_unlock(&w->lock);
    int64_t begun_ns = clock_ns();
    bool known = w->config.find(w->config.ctx, uid, ret_pod);
    if (known) {
        cleanup_with(snapshot) struct snapshot *s =
            writer_snapshot(w->config.writer);
        waker_judge(w->config.plans, s, ret_pod, named, ret_verdict);
    }
    int64_t took_ns = clock_ns() - begun_ns, ripe_ms = INT64_MAX;
    pthread_mutex_lock(&w->lock);
    if (known)
        ripe_ms = waiting_pods_judge(w->waiting, uid, ret_verdict, clock_ms());
    else /* bound meanwhile, or not known: the watch shows it again if it
          * waits */
        waiting_pods_gone(w->waiting, uid);
    wake_pace_judged(&w->pace, took_ns, ripe_ms);
    return ripe_ms <= clock_ms();
}

static uint64_t present_number(const struct waker *w)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(w->config.writer);
    return s->number;
}

static void begin_round(struct waker *w)
{
    wake_pace_begin(&w->pace);
    free(w->round);
    w->round = waiting_pods_list(w->waiting, present_number(w), &w->n_round);
    w->n_judged = 0;
}

static void judge_next(struct waker *w)
{
    struct demand pod;
    struct waiting_pods_verdict verdict;
    if (w->n_judged < w->n_round)
        (void)look_at(w, w->round[w->n_judged++].uid, &pod, &verdict);
    else
        wake_pace_end(&w->pace, clock_ms());
}

static void wake_next(struct waker *w)
{
    struct waiting_pods_pod first;
    struct demand pod;
    struct waiting_pods_verdict verdict;
    int64_t now_ms = clock_ms(), due_ms;
    wake_pace_look(&w->pace, now_ms);
    if (!waiting_pods_next(w->waiting, now_ms, &first, &due_ms))
        wake_pace_none(&w->pace, due_ms);
    else if (look_at(w, first.uid, &pod, &verdict))
        wake_pod(w, &pod, &verdict);
}

static void *waker_thread(void *ctx)
{
    struct waker *w = ctx;
    thread_name("waker", NULL);
    hold_lock(&w->lock);
    while (!w->stopping) {
        int64_t now_ms = clock_ms(), due_ms;
        enum wake_pace_step step = wake_pace_next(&w->pace, now_ms, &due_ms);
        if (step == WAKE_PACE_WAIT)
            (void)clock_wait(&w->wake, &w->lock, due_ms);
        else if (step == WAKE_PACE_JUDGE)
            judge_next(w);
        else if (!may_write(w))
            wake_pace_idle(&w->pace, now_ms + IDLE_MS);
        else if (step == WAKE_PACE_BEGIN)
            begin_round(w);
        else
            wake_next(w);
    }
    return NULL;
}

/* --- what is heard -------------------------------------------------------- */

/* Called with the lock. */
static void changed(struct waker *w)
{
    wake_pace_hear(&w->pace, clock_ms());
    pthread_cond_signal(&w->wake);
}

static void on_snapshot(void *ctx)
{
    struct waker *w = ctx;
    hold_lock(&w->lock);
    changed(w);
}

static void on_put(void *ctx, const struct kube_pod *pod)
{
    struct waker *w = ctx;
    struct waiting_pods_state before, after;
    hold_lock(&w->lock);
    waiting_pods_state(w->waiting, pod->demand.uid, &before);
    waiting_pods_put(w->waiting, pod);
    waiting_pods_state(w->waiting, pod->demand.uid, &after);
    if (after.aside && !before.aside)
        changed(w);
}

static void on_gone(void *ctx, const char *uid)
{
    struct waker *w = ctx;
    hold_lock(&w->lock);
    waiting_pods_gone(w->waiting, uid);
}

struct pod_listener waker_listener(struct waker *w)
{
    return (struct pod_listener){.put = on_put, .gone = on_gone, .ctx = w};
}

void waker_lead(struct waker *w)
{
    hold_lock(&w->lock);
    waiting_pods_again(w->waiting);
    changed(w);
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
    bool late = refused && snapshot->number < present_number(w);
    hold_lock(&w->lock);
    waiting_pods_asked(w->waiting, uid, snapshot->number, refused, named);
    if (late) /* a judgement with a newer snapshot may have come before the
               * refusal */
        changed(w);
    if (named) {
        candidates_unref(w->last);
        w->last = candidates_ref(named);
    }
}

void waker_state(struct waker *w, const char *uid,
                 struct waiting_pods_state *ret_state)
{
    hold_lock(&w->lock);
    waiting_pods_state(w->waiting, uid, ret_state);
}

/* --- start and stop ------------------------------------------------------- */

int waker_start(const struct waker_config *config, struct waker **ret_waker,
                struct error *err)
{
    cleanup_with(waker) struct waker *w = xcalloc(1, sizeof *w);
    w->config = *config;
    w->answer.body.max = KUBE_ANSWER_MAX;
    w->waiting = waiting_pods_create();
    wake_pace_init(&w->pace);
    (void)pthread_mutex_init(&w->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&w->wake);
    int r = kube_client_create(config->kube, WAKER_CALL_MS, &w->client, err);
    if (r < 0)
        return r;
    int rc = pthread_create(&w->thread, NULL, waker_thread, w);
    if (rc)
        return error_errno(err, rc, "starting the thread that wakes pods");
    w->started = true;
    writer_watch(config->writer, on_snapshot, w);
    *ret_waker = steal(&w);
    return 0;
}

void waker_stop(struct waker *w)
{
    if (!w)
        return;
    if (w->started) {
        writer_unwatch(w->config.writer, w);
        pthread_mutex_lock(&w->lock);
        w->stopping = true;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        (void)pthread_join(w->thread, NULL); /* it was started, once */
    }
    free(w->round);
    waiting_pods_destroy(w->waiting);
    candidates_unref(w->last);
    kube_client_destroy(w->client);
    str_fini(&w->answer.body);
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
