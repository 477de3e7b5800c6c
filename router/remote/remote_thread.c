/* The thread of a remote: probes it, lists what is there, and tells. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "router/remote/remote_private.h"
#include "router/remote/remote_saved.h"

enum verb { PROBE, LIST, PEEK, STATS };

/* What is asked, and what came of it; and what is kept from one to the next. */
struct round {
    bool unsaved;     /* the view was changed since it was saved */
    int64_t saved_ms; /* when that was */
    bool save_failed; /* and was told */

    enum verb verb;
    unsigned ms;
    int64_t sent_ms;
    uint64_t number; /* of the list */
    bool stirred;    /* somebody was at it before it began */
    struct remote_view *old;
    char touched[REMOTE_TOUCHED_MAX][KEPT_ID_MAX + 1];
    size_t n_touched; /* more than there is room for: all */

    int e;
    struct error err;
    struct remote_listed listed;
    struct remote_stats *stats;
    uint64_t sum; /* of PEEK */
};

/* --- when, and what: with the lock ------------------------------------------- */

static int64_t list_due(const struct remote *r)
{
    int64_t soon = r->begun_ms + REMOTE_GAP_MS;
    bool wanted = r->n_wanted > r->n_begun;
    return wanted && soon < r->list_ms ? soon : r->list_ms;
}

/* Nothing was done there, and all was listed a short time ago: then what its
 * containers are now says whether to look at the rest. */
static bool peek_will_do(const struct remote *r, int64_t now)
{
    return r->n_done > 0 && r->n_wanted <= r->n_begun && !r->stirred &&
           !r->lacking && !r->events && r->n_touched == 0 &&
           now - r->whole_ms < REMOTE_WHOLE_MS;
}

static int64_t stats_due(const struct remote *r, int64_t now)
{
    return now - r->stats_asked_ms < REMOTE_ASKED_MS ? r->stats_ms : INT64_MAX;
}

static int64_t next_due(const struct remote *r, int64_t now,
                        enum verb *ret_verb)
{
    int64_t due = r->health.due_ms;
    *ret_verb = PROBE;
    if (r->health.now != ACT_READY)
        return due;
    if (stats_due(r, now) <= due) {
        *ret_verb = STATS;
        due = stats_due(r, now);
    }
    if (list_due(r) <= due || list_due(r) <= now) {
        due = list_due(r);
        *ret_verb = peek_will_do(r, due > now ? due : now) ? PEEK : LIST;
    }
    return due;
}

static void begin(struct remote *r, struct round *q, int64_t now)
{
    q->ms = (unsigned)health_deadline_ms(&r->health);
    q->sent_ms = now;
    q->e = 0;
    q->err = (struct error){0};
    q->listed = (struct remote_listed){0};
    q->stats = NULL;
    q->old = remote_view_ref(r->view);
    if (q->verb == PEEK)
        r->begun_ms = now;
    if (q->verb != LIST)
        return;
    r->whole_ms = now;
    q->number = ++r->n_begun;
    q->n_touched = r->n_done ? r->n_touched : REMOTE_TOUCHED_MAX + 1;
    if (q->n_touched <= REMOTE_TOUCHED_MAX) /* pages nobody uses stay so */
        memcpy(q->touched, r->touched, q->n_touched * sizeof q->touched[0]);
    r->n_touched = 0;
    r->begun_ms = now;
    q->stirred = r->stirred;
    r->stirred = false;
}

/* --- asking: without it ------------------------------------------------------ */

static int ask_version(struct remote *r, struct round *q)
{
    cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
    struct grpc_end end;
    /* VersionRequest: version "v1" */
    int e = grpc_call(r->grpc, method_get(METHOD_VERSION)->path, "\x0a\x02v1",
                      4, q->ms, &reply, &end, &q->err);
    return e == -EREMOTEIO && end.code != GRPC_UNIMPLEMENTED ? 0 : e;
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
    if (q->verb == PROBE)
        q->e = ask_version(r, q);
    else if (q->verb == PEEK)
        q->e = remote_peek(r, q->ms, &q->sum, &q->err);
    else if (q->verb == STATS)
        q->e = remote_list_stats(r, q->ms, &q->stats, &q->err);
    else
        q->e = remote_list(r, q->old, all ? NULL : &touched, q->ms, &q->listed,
                           &q->err);
    if (q->e < 0)
        grpc_reconnect(r->grpc);
    else if (q->verb == LIST)
        reconcile(r, q);
}

/* --- what it came to: with the lock ------------------------------------------ */

static void take_bad(struct remote *r, const struct round *q, int64_t now)
{
    bool was_ready = r->health.now == ACT_READY;
    (void)snprintf(r->reason, sizeof r->reason, "%s", q->err.text);
    (void)health_bad(&r->health, q->sent_ms, now);
    if (was_ready)
        r->since_ms = now;
    if (r->health.now == ACT_LOST)
        remote_cut_calls(r);
    if (q->verb == LIST && q->n_touched > 0)
        r->n_touched = REMOTE_TOUCHED_MAX + 1; /* which, is forgotten */
}

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

int64_t remote_next_beat(int64_t begun_ms)
{
    return begun_ms - begun_ms % REMOTE_LIST_MS + REMOTE_LIST_MS;
}

static void take_peek(struct remote *r, const struct round *q, int64_t now)
{
    bool same = q->sum == r->view->sum;
    r->list_ms = same ? remote_next_beat(r->begun_ms) : now;
    if (!same)
        r->n_wanted = r->n_begun + 1;
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

static void take_good(struct remote *r, struct round *q, int64_t now)
{
    bool was_ready = r->health.now == ACT_READY;
    (void)health_good(&r->health, now);
    if (q->verb == LIST)
        take_list(r, q, now);
    if (q->verb == PEEK)
        take_peek(r, q, now);
    if (q->verb == STATS) {
        remote_stats_unref(r->stats);
        r->stats = steal(&q->stats);
        r->stats_ms = now + REMOTE_STATS_MS;
    }
    if (was_ready || r->health.now != ACT_READY)
        return;
    r->reason[0] = '\0';
    r->since_ms = now;
    r->list_ms = now;
    r->stats_ms = now;
    r->events = r->deaf = false;
}

/* Stats may take long where much runs: a probe tells whether it is there. */
static void put_off_stats(struct remote *r, int64_t now)
{
    r->stats_ms = now + REMOTE_ASKED_MS;
    r->health.due_ms = now;
}

static enum act_health judge(struct remote *r, struct round *q)
{
    int64_t now = clock_ms();
    if (q->e < 0 && q->verb == STATS)
        put_off_stats(r, now);
    else if (q->e < 0)
        take_bad(r, q, now);
    else
        take_good(r, q, now);
    r->judged = true;
    (void)pthread_cond_broadcast(&r->news);
    return r->health.now;
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
    if (q->verb == LIST && q->e == 0)
        remote_listed_fini(&q->listed);
}

void *remote_thread(void *remote)
{
    struct remote *r = remote;
    struct round *q = xcalloc(1, sizeof *q);
    enum act_health told = ACT_SUSPECT;
    thread_name("list", r->config.place.name);
    q->saved_ms = clock_ms() - REMOTE_SAVE_MS;
    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        int64_t now = clock_ms(), due = next_due(r, now, &q->verb);
        if (due > now) {
            (void)clock_wait(&r->wake, &r->lock, due);
            continue;
        }
        begin(r, q, now);
        (void)pthread_mutex_unlock(&r->lock);
        ask(r, q);
        (void)pthread_mutex_lock(&r->lock);
        bool stopping = r->stopping;
        enum act_health health = judge(r, q);
        (void)pthread_mutex_unlock(&r->lock);
        if (!stopping && q->verb == LIST && q->e == 0) {
            tell_changes(r, q);
            save(r, q);
        }
        if (!stopping)
            tell_health(r, health, &told);
        finish(q);
        (void)pthread_mutex_lock(&r->lock);
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (q->unsaved && r->saved)
        save_view(r, q, r->view);
    free(q);
    return NULL;
}
