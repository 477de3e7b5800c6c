#include "extender/leader/card_loss_controller.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "extender/leader/card_losses.h"
#include "extender/leader/eviction.h"
#include "extender/leader/pod_condition.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/kube/client.h"

enum { IDLE_MS = 1000 }; /* while somebody else leads */

struct card_loss_controller {
    struct card_loss_config config;
    struct kube_client *client;
    struct http_answer answer;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping, listed;
    int64_t due_ms;  /* of the next round, */
    int64_t rest_ms; /* which does not begin before */
    struct card_losses *losses;
    uint64_t n_evicted;
};

/* --- calls ---------------------------------------------------------------- */

static int tell(struct card_loss_controller *c,
                const struct card_losses_action *a, struct error *err)
{
    const struct pod_condition lost = {
        .namespace = a->namespace,
        .name = a->name,
        .uid = a->uid,
        .manager = "biga-card-lost",
        .type = KUBE_POD_CARD_LOST,
        .is_true = a->kind == CARD_LOSSES_LOST,
        .reason = a->reason,
        .message = a->text,
        .since_s = a->at_s,
    };
    return pod_condition_apply(c->client, &lost, CARD_LOSS_CALL_MS, &c->answer,
                               err);
}

/* By the Eviction API, so that PodDisruptionBudgets hold.  The pod stays until
 * its kubelet says that nothing of it runs, which it does not while the card
 * does not answer. */
static int evict(struct card_loss_controller *c,
                 const struct card_losses_action *a, struct error *err)
{
    const struct eviction eviction = {a->namespace, a->name, a->uid};
    return eviction_post(c->client, &eviction, CARD_LOSS_CALL_MS, &c->answer,
                         err);
}

/* --- one action ----------------------------------------------------------- */

static void post_event(struct card_loss_controller *c,
                       const struct card_losses_action *a,
                       enum events_reason reason, const char *text)
{
    const struct events_pod pod = {a->namespace, a->name, a->uid};
    events_post_named(c->config.events, &pod, reason, text);
}

static void tell_kept(struct card_loss_controller *c,
                      const struct card_losses_action *a,
                      const struct error *err)
{
    char text[EVENTS_TEXT_MAX];
    (void)snprintf(text, sizeof text,
                   "cannot be evicted, although %s, and is tried again: %.256s",
                   a->text, err->text);
    post_event(c, a, EVENTS_NOT_EVICTED, text);
}

static int carry_out(struct card_loss_controller *c,
                     const struct card_losses_action *a)
{
    static const enum events_reason reasons[] = {
        [CARD_LOSSES_LOST] = EVENTS_CARD_LOST,
        [CARD_LOSSES_BACK] = EVENTS_CARD_BACK,
        [CARD_LOSSES_EVICT] = EVENTS_EVICTED,
    };
    struct error err = {0};
    int r = a->kind == CARD_LOSSES_EVICT ? evict(c, a, &err) : tell(c, a, &err);
    if (r == -EBUSY) /* another pod has the name now */
        r = -ENOENT;
    bool kept = r < 0 && a->kind == CARD_LOSSES_EVICT;
    if (r == 0) {
        post_event(c, a, reasons[a->kind], a->text);
        log_event(LOG_INFO, "card-loss", "reason", a->reason, "namespace",
                  a->namespace, "pod", a->name, "text", a->text, NULL);
    } else if (r != -ENOENT) {
        if (kept)
            tell_kept(c, a, &err);
        log_event(LOG_WARN, "card-loss-failed", "reason",
                  kept ? "CardLostNotEvicted" : a->reason, "namespace",
                  a->namespace, "pod", a->name, "error", err.text, NULL);
    }
    return r;
}

/* --- the thread ----------------------------------------------------------- */

static bool may_write(const struct card_loss_controller *c)
{
    return !c->config.may_write ||
           c->config.may_write(c->config.ctx, CARD_LOSS_CALL_MS);
}

static enum card_sight look(void *ctx, const char *uid,
                            char ret_card[TOPO_ID_MAX + 1])
{
    return card_sight_of(ctx, uid, ret_card);
}

/* With the lock, which is let go during a call. */
static void step(struct card_loss_controller *c)
{
    struct card_losses_action a;
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(c->config.writer);
    const struct card_losses_view view = {
        .look = look, .ctx = s, .now_ms = clock_ms(), .now_s = clock_wall_s()};
    int64_t due_ms = INT64_MAX;
    if (!card_losses_next(c->losses, &view, &a, &due_ms)) {
        c->rest_ms = view.now_ms + CARD_LOSS_PAUSE_MS;
        c->due_ms = due_ms > c->rest_ms ? due_ms : c->rest_ms;
        return;
    }
    pthread_mutex_unlock(&c->lock);
    int r = carry_out(c, &a);
    pthread_mutex_lock(&c->lock);
    card_losses_report(c->losses, &a, r, clock_ms());
    c->n_evicted += a.kind == CARD_LOSSES_EVICT && r == 0;
}

static void *controller_thread(void *ctx)
{
    struct card_loss_controller *c = ctx;
    thread_name("card loss", NULL);
    hold_lock(&c->lock);
    while (!c->stopping) {
        int64_t now_ms = clock_ms();
        if (c->due_ms > now_ms)
            (void)clock_wait(&c->wake, &c->lock, c->due_ms);
        else if (!c->listed || !may_write(c))
            (void)clock_wait(&c->wake, &c->lock, now_ms + IDLE_MS);
        else
            step(c);
    }
    return NULL;
}

/* --- what is heard -------------------------------------------------------- */

/* Called with the lock. */
static void changed(struct card_loss_controller *c)
{
    if (c->due_ms <= c->rest_ms)
        return; /* it wakes for that already */
    c->due_ms = c->rest_ms;
    pthread_cond_signal(&c->wake);
}

static void on_snapshot(void *ctx)
{
    struct card_loss_controller *c = ctx;
    hold_lock(&c->lock);
    changed(c);
}

static void on_put(void *ctx, const struct kube_pod *pod)
{
    struct card_loss_controller *c = ctx;
    hold_lock(&c->lock);
    card_losses_put(c->losses, pod, clock_ms());
    changed(c);
}

static void on_gone(void *ctx, const char *uid)
{
    struct card_loss_controller *c = ctx;
    hold_lock(&c->lock);
    card_losses_gone(c->losses, uid);
}

static void on_listed(void *ctx)
{
    struct card_loss_controller *c = ctx;
    hold_lock(&c->lock);
    c->listed = true;
    changed(c);
}

struct pod_listener
card_loss_controller_listener(struct card_loss_controller *c)
{
    return (struct pod_listener){on_put, on_gone, on_listed, c};
}

size_t card_loss_controller_counts(struct card_loss_controller *c,
                                   uint64_t *ret_evicted)
{
    hold_lock(&c->lock);
    *ret_evicted = c->n_evicted;
    return card_losses_n_lost(c->losses);
}

/* --- start and stop ------------------------------------------------------- */

int card_loss_controller_start(const struct card_loss_config *config,
                               struct card_loss_controller **ret_controller,
                               struct error *err)
{
    cleanup_with(card_loss_controller) struct card_loss_controller *c =
        xcalloc(1, sizeof *c);
    c->config = *config;
    c->answer.body.max = KUBE_ANSWER_MAX;
    c->losses = card_losses_create(config->patience_s);
    (void)pthread_mutex_init(&c->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&c->wake);
    int r = kube_client_create(config->kube, CARD_LOSS_CALL_MS, &c->client,
                               err);
    if (r < 0)
        return r;
    int rc = pthread_create(&c->thread, NULL, controller_thread, c);
    if (rc)
        return error_errno(err, rc, "starting the thread of lost cards");
    c->started = true;
    writer_watch(config->writer, on_snapshot, c);
    *ret_controller = steal(&c);
    return 0;
}

static void join(struct card_loss_controller *c)
{
    writer_unwatch(c->config.writer, c);
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL); /* it was started, once */
}

void card_loss_controller_stop(struct card_loss_controller *c)
{
    if (!c)
        return;
    if (c->started)
        join(c);
    card_losses_destroy(c->losses);
    kube_client_destroy(c->client);
    str_fini(&c->answer.body);
    (void)pthread_cond_destroy(&c->wake);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}
