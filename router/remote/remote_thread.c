/* The thread of a remote: lists what is there, and tells; it probes what the
 * beat does not. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "router/remote/remote_private.h"
#include "router/remote/remote_saved.h"

/* What is asked, and what came of it; and what is kept from one to the next. */
struct round {
    bool unsaved;     /* the view was changed since it was saved */
    int64_t saved_ms; /* when that was */
    bool save_failed; /* and was told */
    enum act_health told;
    int64_t expected_ms; /* of the beat, as it was told */

    struct remote_asked asked;
    uint64_t number; /* of the list */
    bool stirred;    /* somebody was at it before it began */
    struct remote_view *old;
    char touched[REMOTE_TOUCHED_MAX][KEPT_ID_MAX + 1];
    size_t n_touched; /* more than there is room for: all */

    struct remote_listed listed;
    struct remote_stats *stats;
};

/* --- beginning: with the lock ------------------------------------------------ */

static void begin(struct remote *r, struct round *q, enum remote_verb verb,
                  int64_t now)
{
    remote_begin(r, &q->asked, verb, now);
    q->listed = (struct remote_listed){0};
    q->stats = NULL;
    q->old = remote_view_ref(r->view);
    if (verb != REMOTE_LIST)
        return;
    r->whole_ms = now;
    q->number = ++r->n_begun;
    q->n_touched = r->n_done ? r->n_touched : REMOTE_TOUCHED_MAX + 1;
    if (q->n_touched <= REMOTE_TOUCHED_MAX) /* pages nobody uses stay so */
        memcpy(q->touched, r->touched, q->n_touched * sizeof q->touched[0]);
    r->n_touched = 0;
    q->stirred = r->stirred;
    r->stirred = false;
}

/* --- asking: without it ------------------------------------------------------ */

static int ask_version(struct remote *r, struct remote_asked *a)
{
    cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
    const struct proto_bytes request = remote_probe_request();
    struct grpc_end end;
    int e = grpc_call(r->grpc, method_get(METHOD_VERSION)->path, request.data,
                      request.size, a->ms, &reply, &end, &a->err);
    return remote_probe_judge(e, &end);
}

/* Those that may be written down are not the home's: what one that is says of
 * itself counts no more.  -errno: nobody knows. */
static int judge_asked(struct remote *r, struct seen *seen)
{
    struct error err = {0};
    for (size_t i = 0; i < seen->n; i++) {
        struct seen_item *item = &seen->list[i];
        int e = item->asked ? remote_judge_id(r, item->id, &err) : -ENOENT;
        item->ours |= e == 0;
        if (!item->asked || e == 0)
            continue;
        log_event(LOG_WARN, "remote-id", "remote", r->config.place.name, "id",
                  item->id, "error", err.text, NULL);
        if (e != -EEXIST)
            return e;
        item->kept[0] = '\0';
    }
    return 0;
}

/* Containers are known after their sandboxes, therefore again and again. */
static void count(struct remote *r, const struct keep_found *found)
{
    hold_lock(&r->lock);
    r->counts.n_adopted += found->n_adopted;
    r->counts.n_rebuilt += found->n_rebuilt;
    r->counts.n_gone += found->n_gone;
}

static void reconcile(struct remote *r, struct round *q)
{
    struct seen *seen = &q->listed.seen;
    struct keep_found found = {0};
    struct error err = {0};
    int e = 0;
    do {
        if (keep_seen(r->config.keep, r->config.place.name, q->listed.mark,
                      seen, &found, &err) < 0)
            log_event(LOG_ERROR, "keep-failed", "remote", r->config.place.name,
                      "error", err.text, NULL);
        count(r, &found);
        if (found.n_asked > 0)
            e = judge_asked(r, seen);
    } while (found.n_asked > 0 && e == 0);
    /* of what waits for an answer others may be a part */
    for (size_t i = 0; e < 0 && i < seen->n; i++)
        seen->list[i].stray = false;
}

static void ask(struct remote *r, struct round *q)
{
    const struct remote_touched touched = {q->touched, q->n_touched};
    bool all = q->n_touched > REMOTE_TOUCHED_MAX;
    struct remote_asked *a = &q->asked;
    if (a->verb == REMOTE_PROBE)
        a->e = ask_version(r, a);
    else if (a->verb == REMOTE_PEEK)
        a->e = remote_peek(r, a->ms, &a->sum, &a->err);
    else if (a->verb == REMOTE_STATS)
        a->e = remote_list_stats(r, a->ms, &q->stats, &a->err);
    else
        a->e = remote_list(r, q->old, all ? NULL : &touched, a->ms, &q->listed,
                           &a->err);
    if (a->e < 0)
        grpc_reconnect(r->grpc);
    else if (a->verb == REMOTE_LIST)
        reconcile(r, q);
}

/* --- what it came to: with the lock ------------------------------------------ */

static bool has_changed(const struct remote_view *old,
                        const struct remote_view *new)
{
    if (old->n != new->n)
        return true;
    for (size_t i = 0; i < old->n; i++)
        if (strcmp(old->items[i].id, new->items[i].id) != 0 ||
            old->items[i].state != new->items[i].state)
            return true;
    return false;
}

/* A change that it had told nothing of: what it tells is not all. */
static void judge_events(struct remote *r, const struct round *q)
{
    bool ours = q->stirred || r->stirred || r->n_calls > 0;
    bool missed = r->events && !ours && has_changed(q->old, q->listed.view);
    if (!missed)
        return;
    r->events = false;
    r->deaf = true;
    log_event(LOG_INFO, "remote-events-lacking", "remote", r->config.place.name,
              NULL);
}

static bool lacks_statuses(const struct remote_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (!v->items[i].status)
            return true;
    return false;
}

static void take_list(struct remote *r, struct round *q, int64_t now)
{
    judge_events(r, q);
    bool busy = q->listed.seen.n > 0 && !r->events;
    sweep_update(&r->sweeping, &q->listed.seen, r->spared, now);
    (void)pthread_cond_signal(&r->sweep);
    remote_view_unref(r->view);
    r->view = remote_view_ref(q->listed.view);
    r->lacking = lacks_statuses(r->view);
    r->n_done = q->number;
    r->list_ms = busy ? remote_next_beat(r->begun_ms)
                      : r->begun_ms + REMOTE_SWEEP_MS;
}

static void take_stats(struct remote *r, struct round *q, int64_t now)
{
    remote_stats_unref(r->stats);
    r->stats = steal(&q->stats);
    r->stats_ms = now + REMOTE_STATS_MS;
}

/* Stats may take long where much runs: a probe tells whether it is there. */
static void put_off_stats(struct remote *r, int64_t now)
{
    r->stats_ms = now + REMOTE_ASKED_MS;
    r->health.due_ms = now;
}

static void judge(struct remote *r, struct round *q)
{
    int64_t now = clock_ms();
    const struct remote_asked *a = &q->asked;
    r->asking = false;
    r->own = false;
    if (a->verb == REMOTE_STATS && a->e < 0)
        put_off_stats(r, now);
    else
        remote_judge(r, a, now);
    if (a->verb == REMOTE_STATS && a->e == 0)
        take_stats(r, q, now);
    if (a->verb == REMOTE_LIST && a->e == 0)
        take_list(r, q, now);
    else if (a->verb == REMOTE_LIST && q->n_touched > 0)
        r->n_touched = REMOTE_TOUCHED_MAX + 1; /* which, is forgotten */
}

/* --- who is told: without it -------------------------------------------------- */

static void tell(struct remote *r, const struct remote_item *item,
                 enum cri_event_kind kind)
{
    struct remote_change c = {.kind = kind, .sandbox = item->sandbox};
    memcpy(c.id, item->id, sizeof c.id);
    memcpy(c.sandbox_id, item->sandbox_id, sizeof c.sandbox_id);
    r->config.changed(r->config.ctx, r, &c);
}

/* As a runtime tells what it is now; what was between is not known. */
static enum cri_event_kind kind_of(const struct remote_item *item)
{
    if (item->sandbox)
        return item->state == 0 ? CRI_EVENT_STARTED : CRI_EVENT_STOPPED;
    if (item->state == CRI_CREATED)
        return CRI_EVENT_CREATED;
    return item->state == CRI_RUNNING ? CRI_EVENT_STARTED : CRI_EVENT_STOPPED;
}

/* Before the first list nobody was told what is there, and asks. */
static void tell_changes(struct remote *r, const struct round *q)
{
    const struct remote_view *old = q->old, *new = q->listed.view;
    if (!r->config.changed || old->time_ms == 0)
        return;
    for (size_t i = 0; i < new->n; i++) {
        const struct remote_item *was = remote_view_item(old, new->items[i].id);
        if (!was || was->state != new->items[i].state)
            tell(r, &new->items[i], kind_of(&new->items[i]));
    }
    for (size_t i = 0; i < old->n; i++)
        if (!remote_view_item(new, old->items[i].id))
            tell(r, &old->items[i], CRI_EVENT_DELETED);
}

static void tell_health(struct remote *r, enum act_health now,
                        enum act_health *was)
{
    if (now == *was)
        return;
    *was = now;
    grpc_hub_wake(r->hub);
    if (r->config.health)
        r->config.health(r->config.ctx, r, now);
}

static void save_view(struct remote *r, struct round *q,
                      const struct remote_view *view)
{
    struct error err = {0};
    q->saved_ms = clock_ms();
    int e = remote_saved_store(view, r->saved, &err);
    q->unsaved = e < 0;
    if (e < 0 && !q->save_failed)
        log_event(LOG_WARN, "remote-not-saved", "remote", r->config.place.name,
                  "error", err.text, NULL);
    q->save_failed = e < 0;
}

/* With the next list after a change, once a second at most. */
static void save(struct remote *r, struct round *q)
{
    int64_t due = q->saved_ms + REMOTE_SAVE_MS;
    q->unsaved |= q->n_touched > 0 || has_changed(q->old, q->listed.view);
    if (!r->saved || !q->unsaved)
        return;
    if (clock_ms() >= due) {
        save_view(r, q, q->listed.view);
        return;
    }
    hold_lock(&r->lock);
    if (r->list_ms > due)
        r->list_ms = due;
}

static void finish(struct round *q)
{
    remote_view_unref(q->old);
    remote_stats_unref(q->stats);
    if (q->asked.verb == REMOTE_LIST && q->asked.e == 0)
        remote_listed_fini(&q->listed);
}

/* One call, and what follows from it; with the lock before and after. */
static void go_round(struct remote *r, struct round *q, enum remote_verb verb,
                     int64_t now)
{
    begin(r, q, verb, now);
    q->expected_ms = INT64_MAX; /* if it looks meanwhile, it forgets */
    (void)pthread_mutex_unlock(&r->lock);
    ask(r, q);
    (void)pthread_mutex_lock(&r->lock);
    judge(r, q);
    bool stopping = r->stopping;
    (void)pthread_mutex_unlock(&r->lock);
    if (!stopping && verb == REMOTE_LIST && q->asked.e == 0) {
        tell_changes(r, q);
        save(r, q);
    }
    finish(q);
    (void)pthread_mutex_lock(&r->lock);
}

static void sleep_until(struct remote *r, int64_t due)
{
    r->sleeps_ms = due;
    (void)clock_wait(&r->wake, &r->lock, due);
    r->sleeps_ms = INT64_MIN;
}

/* What there is to do first; with the lock before and after. */
static void do_next(struct remote *r, struct round *q)
{
    enum remote_verb verb, other;
    enum act_health health = r->health.now;
    int64_t now = clock_ms(), due = remote_own_due(r, now, &verb);
    int64_t beat = remote_beat_due(r, now, &other);
    if (health != q->told) {
        (void)pthread_mutex_unlock(&r->lock);
        tell_health(r, health, &q->told);
        (void)pthread_mutex_lock(&r->lock);
    } else if (r->asking) {
        sleep_until(r, INT64_MAX);
    } else if (due <= now) {
        go_round(r, q, verb, now);
    } else if (beat != INT64_MAX && beat != q->expected_ms) {
        q->expected_ms = beat;
        (void)pthread_mutex_unlock(&r->lock);
        remote_beat_expect(r->member, beat);
        (void)pthread_mutex_lock(&r->lock);
    } else {
        sleep_until(r, due);
    }
}

void *remote_thread(void *remote)
{
    struct remote *r = remote;
    struct round *q = xcalloc(1, sizeof *q);
    thread_name("list", r->config.place.name);
    q->told = ACT_SUSPECT;
    q->saved_ms = clock_ms() - REMOTE_SAVE_MS;
    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopping)
        do_next(r, q);
    (void)pthread_mutex_unlock(&r->lock);
    if (q->unsaved && r->saved)
        save_view(r, q, r->view);
    free(q);
    return NULL;
}
