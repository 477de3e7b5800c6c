#include "extender/history/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/history/history_private.h"
#include "extender/history/history_record_private.h"
#include "lib/io/clock.h"

enum { SETS_MAX = 64 }; /* of pods that wait; then as of snapshots */

int64_t history_now_ms(void)
{
    return clock_wall_ns() / 1000000;
}

/* --- the queue ------------------------------------------------------------ */

/* Whoever writes is woken for the first item, and when a queue is half full,
 * and else lets some more come. */
static void append_locked(struct history *h, struct history_item *item)
{
    bool half = h->n_snapshots == HISTORY_SNAPSHOTS_MAX / 2 ||
                h->n_sets == SETS_MAX / 2 ||
                h->n_events == HISTORY_QUEUE_MAX / 2;
    *h->last = item;
    h->last = &item->next;
    h->hurry |= half;
    if (!h->waiting && !half)
        return;
    h->waiting = false;
    clock_wake_one(&h->wake);
}

void history_items_free(struct history_item *items)
{
    while (items) {
        struct history_item *next = items->next;
        snapshot_unref(items->snapshot);
        pod_set_unref(items->pods);
        free(items);
        items = next;
    }
}

static struct history_item *item_create(void)
{
    struct history_item *item = xcalloc(1, sizeof *item);
    item->ms = history_now_ms();
    return item;
}

/* On the writer's thread, for each snapshot; at the start beside it. */
static void on_snapshot(void *ctx)
{
    struct history *h = ctx;
    struct history_item *item = item_create();
    struct snapshot *passed = NULL;
    item->snapshot = writer_snapshot(h->config.writer);
    pthread_mutex_lock(&h->lock);
    if (!h->stopping && item->snapshot->number > h->snapshot_number) {
        h->snapshot_number = item->snapshot->number;
        if (h->n_snapshots < HISTORY_SNAPSHOTS_MAX) {
            h->n_snapshots++;
            h->newest = item;
            append_locked(h, steal(&item));
        } else {
            passed = h->newest->snapshot;
            h->newest->snapshot = steal(&item->snapshot);
            h->state.lost++;
        }
    }
    pthread_mutex_unlock(&h->lock);
    snapshot_unref(passed);
    history_items_free(item);
}

/* On any thread: who comes second may have the older set. */
static void on_pods(void *ctx)
{
    struct history *h = ctx;
    struct history_item *item = item_create();
    struct pod_set *passed = NULL;
    item->pods = applied_get(h->config.applied);
    pthread_mutex_lock(&h->lock);
    if (!h->stopping && item->pods->version > h->pods_version) {
        h->pods_version = item->pods->version;
        if (h->n_sets < SETS_MAX) {
            h->n_sets++;
            h->newest_pods = item;
            append_locked(h, steal(&item));
        } else {
            passed = h->newest_pods->pods;
            h->newest_pods->pods = steal(&item->pods);
            h->state.lost++;
        }
    }
    pthread_mutex_unlock(&h->lock);
    pod_set_unref(passed);
    history_items_free(item);
}

/* Copy so much of a text to `*to`, which is moved behind it. */
static const char *put_text(char **to, const char *text, size_t size)
{
    const char *at = *to;
    memcpy(*to, text, size);
    (*to)[size] = '\0';
    *to += size + 1;
    return at;
}

static const char *or_none(const char *text)
{
    return text ? text : "";
}

static struct history_item *item_of(const struct history_event *e)
{
    const char *object = or_none(e->object), *node = or_none(e->node),
               *job = or_none(e->job), *message = or_none(e->message);
    /* what waits is to be small, too */
    size_t said = strnlen(message, HISTORY_MESSAGE_MAX);
    size_t size = strlen(object) + strlen(node) + strlen(job) + said + 4;
    struct history_item *item = xmalloc(sizeof *item + size);
    char *to = (char *)(item + 1);
    *item = (struct history_item){
        .ms = e->time_ms ? e->time_ms : history_now_ms(), .event = *e};
    item->event.time_ms = item->ms;
    item->event.object = put_text(&to, object, strlen(object));
    item->event.node = put_text(&to, node, strlen(node));
    item->event.job = put_text(&to, job, strlen(job));
    item->event.message = put_text(&to, message, said);
    return item;
}

void history_post(struct history *h, const struct history_event *e)
{
    if (!h)
        return;
    struct history_item *item = item_of(e);
    pthread_mutex_lock(&h->lock);
    if (!h->stopping && h->n_events < HISTORY_QUEUE_MAX) {
        h->n_events++;
        append_locked(h, steal(&item));
    } else {
        h->state.lost += !e->again;
    }
    pthread_mutex_unlock(&h->lock);
    history_items_free(item);
}

void history_post_placed(struct history *h, const struct allocation *a,
                         enum history_reason reason, const char *text)
{
    const struct demand *d = &a->demand;
    char pod[HISTORY_OBJECT_MAX + 1], job[HISTORY_OBJECT_MAX + 1];
    record_pod_key(d, pod);
    record_job_key(d, job);
    history_post(h, &(struct history_event){.kind = HISTORY_POD,
                                            .reason = reason,
                                            .object = pod,
                                            .node = a->node,
                                            .job = job,
                                            .pair = *job ? d->pair : -1,
                                            .message = text});
}

/* --- followers ------------------------------------------------------------ */

void history_follow(struct history *h, struct history_follower *f)
{
    hold_lock(&h->follow_lock);
    f->next = h->followers;
    h->followers = f;
}

void history_unfollow(struct history *h, struct history_follower *f)
{
    hold_lock(&h->follow_lock);
    struct history_follower **at = &h->followers;
    while (*at && *at != f)
        at = &(*at)->next;
    if (*at)
        *at = f->next;
}

/* --- how it fares --------------------------------------------------------- */

struct history_state history_state(struct history *h)
{
    hold_lock(&h->lock);
    return h->state;
}

void history_settle(struct history *h)
{
    hold_lock(&h->lock);
    h->hurry = true;
    clock_wake_one(&h->wake);
    while ((h->first || h->busy || h->hurry) && !h->stopping)
        (void)pthread_cond_wait(&h->idle, &h->lock); /* never fails */
}

/* --- start and stop ------------------------------------------------------- */

static struct history *create(const struct history_config *config)
{
    struct history *h = xcalloc(1, sizeof *h);
    h->config = *config;
    h->dir = xstrdup(config->dir);
    h->lock_fd = -1;
    h->last = &h->first;
    h->last_question = &h->questions;
    h->state.writes = true;
    /* none of these can fail on Linux */
    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_mutex_init(&h->follow_lock, NULL);
    (void)pthread_cond_init(&h->idle, NULL);
    clock_wait_init(&h->wake);
    clock_wait_init(&h->asked);
    return h;
}

static int start_threads(struct history *h, struct error *err)
{
    int rc = pthread_create(&h->writer, NULL, history_write_thread, h);
    h->writes = rc == 0;
    if (rc == 0)
        rc = pthread_create(&h->reader, NULL, history_read_thread, h);
    h->reads = h->writes && rc == 0;
    return rc ? error_errno(err, rc, "starting the threads of the history") : 0;
}

int history_start(const struct history_config *config,
                  struct history **ret_history, struct error *err)
{
    struct history *h = create(config);
    int r = history_open(h, err);
    if (r == -ENOSPC || r == -EDQUOT || r == -EIO) /* no reason not to serve */
        r = history_give_up(h, err);
    if (r == 0)
        r = start_threads(h, err);
    if (r < 0) {
        history_destroy(h);
        return error_wrap(err, "--history");
    }
    writer_watch(config->writer, on_snapshot, h);
    on_snapshot(h); /* what is so now */
    if (config->applied) {
        applied_watch(config->applied, on_pods, h);
        on_pods(h);
    }
    *ret_history = h;
    return 0;
}

void history_stop(struct history *h)
{
    if (!h || !h->writes)
        return;
    if (h->reads) /* it was watched then */
        writer_unwatch(h->config.writer, h);
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    clock_wake_all(&h->wake);
    clock_wake_all(&h->asked);
    pthread_cond_broadcast(&h->idle);
    pthread_mutex_unlock(&h->lock);
    (void)pthread_join(h->writer, NULL); /* they were started, once */
    if (h->reads)
        (void)pthread_join(h->reader, NULL);
    h->writes = h->reads = false;
}

void history_destroy(struct history *h)
{
    if (!h)
        return;
    history_stop(h);
    history_book_close(h->book);
    history_items_free(h->first);
    snapshot_unref(h->base);
    pod_set_unref(h->base_pods);
    if (h->lock_fd >= 0)
        (void)close(h->lock_fd); /* nothing was written there */
    (void)pthread_cond_destroy(&h->wake);
    (void)pthread_cond_destroy(&h->asked);
    (void)pthread_cond_destroy(&h->idle);
    (void)pthread_mutex_destroy(&h->follow_lock);
    (void)pthread_mutex_destroy(&h->lock);
    free(h->dir);
    free(h);
}
