#include "router/remote/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/refs.h"
#include "lib/io/clock.h"
#include "router/remote/remote_private.h"
#include "router/remote/remote_saved.h"

/* --- begin ---------------------------------------------------------------- */

static int copy_text(const char *what, const char *text,
                     char ret_text[CRI_TEXT_MAX], struct error *err)
{
    size_t size = text ? strlen(text) : 0;
    if (size >= CRI_TEXT_MAX)
        return error_set(err, EINVAL, "%s: has %zu bytes, %d are allowed", what,
                         size, CRI_TEXT_MAX - 1);
    memcpy(ret_text, text ? text : "", size + 1);
    return 0;
}

static int take_config(struct remote *r, const struct remote_config *c,
                       struct error *err)
{
    r->config = *c;
    int e = copy_text("cluster", c->cluster, r->cluster, err);
    if (e == 0)
        e = copy_text("node", c->node, r->node, err);
    if (e == 0)
        e = copy_text("spared", c->spared, r->spared, err);
    r->labels[0] = (struct cri_pair){ACT_LABEL_CLUSTER, r->cluster};
    r->labels[1] = (struct cri_pair){ACT_LABEL_NODE, r->node};
    r->config.cluster = r->cluster;
    r->config.node = r->node;
    r->config.spared = r->spared;
    return e;
}

/* What it had when the router of before had seen it last. */
static void load_view(struct remote *r)
{
    const char *name = r->config.place.name;
    if (!r->config.state || strchr(name, '/'))
        return;
    r->saved = xasprintf("%s/remote-%s.view", r->config.state, name);
    struct remote_view *v = remote_saved_load(r->saved);
    if (!v)
        return;
    remote_view_unref(r->view);
    r->view = v;
}

static int start_thread(struct remote *r, void *(*f)(void *), struct error *err)
{
    pthread_attr_t attr;
    (void)pthread_attr_init(&attr); /* cannot fail on Linux */
    (void)pthread_attr_setstacksize(&attr, REMOTE_STACK);
    int code = pthread_create(&r->threads[r->n_threads], &attr, f, r);
    (void)pthread_attr_destroy(&attr);
    if (code != 0)
        return error_errno(err, EAGAIN, "%s: no thread", r->config.place.name);
    r->n_threads++;
    return 0;
}

static struct remote *create(void)
{
    struct remote *r = xcalloc(1, sizeof *r);
    (void)pthread_mutex_init(&r->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&r->wake);
    clock_wait_init(&r->news);
    clock_wait_init(&r->sweep);
    r->view = remote_view_create();
    r->stats = xcalloc(1, sizeof *r->stats);
    atomic_init(&r->stats->refs, 1);
    return r;
}

int remote_start(const struct remote_config *config, struct remote **ret_remote,
                 struct error *err)
{
    cleanup_with(remote) struct remote *r = create();
    int e = take_config(r, config, err);
    if (e < 0)
        return e;
    const struct grpc_config to = card_grpc(&r->config.place);
    e = grpc_create(&to, &r->grpc, err);
    if (e < 0)
        return e;
    load_view(r);
    r->hub = grpc_hub_create();
    r->since_ms = clock_ms();
    r->stats_asked_ms = r->since_ms - REMOTE_ASKED_MS;
    health_init(&r->health, config->probe_ms, config->lost_ms, r->since_ms);
    (void)snprintf(r->reason, sizeof r->reason, "it was not asked yet");
    r->sleeps_ms = INT64_MIN;
    if (config->beat && to.ca)
        remote_beat_join(config->beat, r);
    e = start_thread(r, remote_thread, err);
    if (e == 0)
        e = start_thread(r, remote_sweep_thread, err);
    if (e == 0)
        e = start_thread(r, remote_events_thread, err);
    if (e < 0)
        return e;
    *ret_remote = steal(&r);
    return 0;
}

/* --- end ------------------------------------------------------------------ */

static void stop_all(struct remote *r)
{
    hold_lock(&r->lock);
    r->stopping = true;
    if (r->grpc)
        grpc_cancel(r->grpc);
    remote_cut_calls(r);
    (void)pthread_cond_broadcast(&r->wake);
    (void)pthread_cond_broadcast(&r->news);
    (void)pthread_cond_broadcast(&r->sweep);
}

void remote_stop(struct remote *r)
{
    if (!r)
        return;
    stop_all(r);
    if (r->hub)
        grpc_hub_wake(r->hub);
    while (r->n_threads > 0)
        (void)pthread_join(r->threads[--r->n_threads], NULL);
    remote_beat_leave(r);
}

void remote_destroy(struct remote *r)
{
    if (!r)
        return;
    remote_stop(r);
    while (r->n_idle > 0)
        grpc_destroy(r->idle[--r->n_idle]);
    grpc_destroy(r->grpc);
    grpc_hub_destroy(r->hub);
    remote_view_unref(r->view);
    remote_stats_unref(r->stats);
    sweep_fini(&r->sweeping);
    free(r->saved);
    (void)pthread_cond_destroy(&r->wake);
    (void)pthread_cond_destroy(&r->news);
    (void)pthread_cond_destroy(&r->sweep);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

/* --- what others read ----------------------------------------------------- */

const char *remote_name(const struct remote *r)
{
    return r->config.place.name;
}

const struct act_place *remote_place(const struct remote *r)
{
    return &r->config.place;
}

enum act_health remote_health(struct remote *r,
                              char ret_reason[ACT_MESSAGE_MAX])
{
    hold_lock(&r->lock);
    if (ret_reason)
        (void)snprintf(ret_reason, ACT_MESSAGE_MAX, "%s", r->reason);
    return r->health.now;
}

struct remote_view *remote_view(struct remote *r)
{
    hold_lock(&r->lock);
    return remote_view_ref(r->view);
}

struct remote_stats *remote_stats(struct remote *r)
{
    hold_lock(&r->lock);
    int64_t now = clock_ms();
    bool awake = now - r->stats_asked_ms < REMOTE_ASKED_MS;
    r->stats_asked_ms = now;
    if (!awake)
        (void)pthread_cond_signal(&r->wake);
    atomic_fetch_add_explicit(&r->stats->refs, 1, memory_order_relaxed);
    return r->stats;
}

void remote_count(struct remote *r, struct remote_counts *ret_counts)
{
    hold_lock(&r->lock);
    *ret_counts = r->counts;
}

/* --- freshness ------------------------------------------------------------ */

void remote_want_list(struct remote *r)
{
    r->stirred = true;
    r->n_wanted = r->n_begun + 1;
    (void)pthread_cond_signal(&r->wake);
}

void remote_touch(struct remote *r, const char *id)
{
    hold_lock(&r->lock);
    if (r->n_touched < REMOTE_TOUCHED_MAX)
        (void)snprintf(r->touched[r->n_touched], sizeof r->touched[0], "%s",
                       id);
    r->n_touched += r->n_touched <= REMOTE_TOUCHED_MAX;
    remote_want_list(r);
}

int remote_fresh(struct remote *r, int64_t due_ms, struct error *err)
{
    hold_lock(&r->lock);
    uint64_t want = r->n_begun + 1;
    remote_want_list(r);
    while (r->n_done < want) {
        if (r->stopping)
            return error_set(err, ECANCELED, "%s: the router stops",
                             r->config.place.name);
        if (r->health.now != ACT_READY)
            return error_set(err, EHOSTDOWN, "%s does not answer: %.300s",
                             r->config.place.name, r->reason);
        if (clock_ms() >= due_ms)
            return error_set(err, ETIMEDOUT, "%s: was not listed in time",
                             r->config.place.name);
        (void)clock_wait(&r->news, &r->lock, due_ms);
    }
    return 0;
}
