/* The thread that writes. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "extender/history/history_db.h"
#include "extender/history/history_private.h"
#include "extender/history/history_record.h"
#include "lib/db/dbfile.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/rfc3339.h"
#include "lib/io/thread_name.h"

enum {
    LOOK_MS = 60000, /* between two looks at the age and the size */
    DAY_MS = 86400000,
    NICE = 10,       /* whoever binds goes first */
    TELL_MS = 15000, /* followers are told of nothing, too, so often */
};
#define MIB (INT64_C(1) << 20)

/* --- failures ------------------------------------------------------------- */

static void note_writes(struct history *h, const struct error *trouble)
{
    pthread_mutex_lock(&h->lock);
    bool wrote = h->state.writes;
    h->state.writes = !trouble;
    pthread_mutex_unlock(&h->lock);
    if (wrote && trouble)
        log_event(LOG_ERROR, "history-fails", "error", trouble->text, NULL);
    else if (!wrote && !trouble)
        log_event(LOG_INFO, "history-works", NULL);
}

/* What was not committed is lost, and what is remembered of the file with it:
 * it is opened again, and compared with what is so then. */
int history_give_up(struct history *h, const struct error *why)
{
    struct error err = {0};
    history_book_close(h->book);
    h->book = NULL;
    snapshot_unref(h->base);
    h->base = NULL;
    h->again_ms = clock_ms() + HISTORY_AGAIN_MS;
    note_writes(h, why);
    if (why->code != EBADMSG)
        return 0;
    if (history_book_renew(h->dir, why, &err) < 0) {
        log_event(LOG_ERROR, "history-fails", "error", err.text, NULL);
        return 0;
    }
    h->again_ms = 0;
    h->look_ms = 0; /* the one that is aside now counts */
    atomic_fetch_add(&h->generation, 1);
    return 0;
}

static void give_up(struct history *h, const struct error *why, size_t n_lost)
{
    pthread_mutex_lock(&h->lock);
    h->state.lost += n_lost;
    pthread_mutex_unlock(&h->lock);
    (void)history_give_up(h, why); /* it says so itself */
}

/* Whoever follows from now on is told of nothing before, also before the first
 * commit; and who followed a file that was damaged follows the new one. */
static void go_on(struct history *h)
{
    hold_lock(&h->lock);
    history_book_go_on(h->book, h->state.newest);
    h->state.newest = history_book_newest(h->book);
}

int history_open(struct history *h, struct error *err)
{
    int r = h->lock_fd < 0 ? dbfile_lock(h->dir, &h->lock_fd, err) : 0;
    if (r == 0)
        r = history_book_open(h->dir, &h->book, err);
    if (r < 0)
        return r;
    go_on(h);
    /* what a question found while there was none says nothing of this one */
    atomic_store(&h->suspect, false);
    return 0;
}

/* False: it cannot be written now. */
static bool have_book(struct history *h)
{
    struct error err = {0};
    if (!h->book && clock_ms() >= h->again_ms && history_open(h, &err) < 0)
        give_up(h, &err, 0);
    if (h->book && atomic_exchange(&h->suspect, false)) {
        (void)error_set(&err, EBADMSG, "history: a question found damage");
        give_up(h, &err, 0);
        return have_book(h);
    }
    if (!h->book || h->checked)
        return h->book;
    h->checked = true;
    if (history_book_check(h->book, &err) == 0)
        return true;
    give_up(h, &err, 0);
    return have_book(h);
}

/* --- what came ------------------------------------------------------------ */

static int take_snapshot(struct history *h, const struct history_item *item,
                         struct error *err)
{
    int r;
    if (!h->base)
        r = history_record_all(h->book, item->snapshot, item->ms, err);
    else if (item->snapshot->number > h->base->number)
        r = history_record_change(h->book, h->base, item->snapshot, item->ms,
                                  err);
    else
        return 0; /* take_now() was before it */
    if (r < 0)
        return r;
    snapshot_unref(h->base);
    h->base = snapshot_ref(item->snapshot);
    return 0;
}

/* The first set is what an earlier run has told of. */
static int take_pods(struct history *h, const struct history_item *item,
                     struct error *err)
{
    int r = h->base_pods ? history_record_pods(h->book, h->base_pods,
                                               item->pods, item->ms, err)
                         : 0;
    pod_set_unref(h->base_pods);
    h->base_pods = pod_set_ref(item->pods);
    return r;
}

/* A failure may have passed over the snapshot that there is now. */
static int take_now(struct history *h, int64_t ms, struct error *err)
{
    const struct history_item now = {
        .ms = ms, .snapshot = writer_snapshot(h->config.writer)};
    int r = take_snapshot(h, &now, err);
    snapshot_unref(now.snapshot);
    return r;
}

/* How pods were found at the start; then, once all is known, the first snapshot
 * that is recorded: those that came before lack some of what goes on, which
 * would be told to have ended. */
static int take_first(struct history *h, const struct history_item *items,
                      struct error *err)
{
    int r = 0;
    for (const struct history_item *i = items; i && r == 0; i = i->next)
        if (i->event.again)
            r = history_record_again(h->book, &i->event, err);
    if (r < 0 || h->base || !h->config.is_ready || !h->known)
        return r;
    return take_now(h, items ? items->ms : history_now_ms(), err);
}

static int take_item(struct history *h, const struct history_item *i,
                     struct error *err)
{
    if (i->pods)
        return take_pods(h, i, err);
    if (i->snapshot)
        return h->known ? take_snapshot(h, i, err) : 0;
    return i->event.again ? 0 : history_book_event(h->book, &i->event, err);
}

static int take_items(struct history *h, const struct history_item *items,
                      struct error *err)
{
    int r = history_book_begin(h->book, history_now_ms(), err);
    if (r == 0)
        r = take_first(h, items, err);
    for (const struct history_item *i = items; i && r == 0; i = i->next)
        r = take_item(h, i, err);
    if (r == 0 && h->known && !h->base)
        r = take_now(h, history_now_ms(), err);
    return r == 0 ? history_book_commit(h->book, err) : r;
}

static void tell_followers(struct history *h)
{
    hold_lock(&h->follow_lock);
    h->tell_ms = clock_ms() + TELL_MS;
    for (struct history_follower *f = h->followers; f; f = f->next)
        f->news(f);
}

static void note_state(struct history *h)
{
    struct error ignored;
    int64_t bytes = 0, oldest_ms = 0;
    uint64_t newest = history_book_newest(h->book);
    /* shown as far as they can be had */
    (void)history_book_size(h->book, &bytes, &ignored);
    (void)history_book_oldest(h->book, &oldest_ms, &ignored);
    pthread_mutex_lock(&h->lock);
    bool news = newest != h->state.newest;
    h->state.newest = newest;
    h->state.bytes = bytes + h->aside_bytes;
    h->state.commits++;
    h->state.oldest_ms = oldest_ms;
    pthread_mutex_unlock(&h->lock);
    if (news)
        tell_followers(h);
}

static void write_items(struct history *h, const struct history_item *items)
{
    struct error err = {0};
    size_t n = 0;
    for (const struct history_item *i = items; i; i = i->next)
        n++;
    if (!have_book(h)) {
        pthread_mutex_lock(&h->lock);
        h->state.lost += n;
        pthread_mutex_unlock(&h->lock);
        return;
    }
    if (n == 0 && h->base)
        return;
    if (take_items(h, items, &err) < 0) {
        give_up(h, &err, n);
        return;
    }
    note_writes(h, NULL);
    note_state(h);
}

/* --- what is old ---------------------------------------------------------- */

static void note_full(struct history *h, int64_t before_ms)
{
    char mib[24], before[RFC3339_SIZE];
    pthread_mutex_lock(&h->lock);
    bool said = h->state.full;
    h->state.full = true;
    pthread_mutex_unlock(&h->lock);
    if (said)
        return;
    (void)snprintf(mib, sizeof mib, "%lld", (long long)h->config.mib);
    rfc3339_format(before_ms, before);
    log_event(LOG_WARN, "history-full", "mib", mib, "oldest", before, "text",
              "the oldest goes from now on, before its days are over", NULL);
}

/* Files that are aside are older than all that is in this one, and are looked
 * at by nobody but an operator. */
static void drop_aside(struct history *h, int64_t bytes, int64_t before_ms)
{
    struct dbfile_aside aside;
    struct error err = {0};
    bool gone = true;
    do {
        dbfile_look_aside(h->dir, HISTORY_FILE, &aside);
        bool full = bytes + aside.bytes > h->config.mib * MIB;
        h->aside_bytes = aside.bytes;
        gone = aside.oldest && (full || aside.oldest_ms < before_ms);
        if (gone && full)
            note_full(h, aside.oldest_ms);
        if (gone && dbfile_drop_aside(aside.oldest, &err) < 0) {
            log_event(LOG_WARN, "history-aside", "error", err.text, NULL);
            gone = false; /* it is tried again */
        } else if (gone) {
            log_event(LOG_INFO, "history-aside", "removed", aside.oldest, NULL);
        }
        free(aside.oldest);
    } while (gone);
}

static void note_size(struct history *h, int64_t bytes)
{
    hold_lock(&h->lock);
    h->state.bytes = bytes + h->aside_bytes;
}

static int look_at_size(struct history *h, struct error *err)
{
    int64_t bytes, cut_ms;
    int r = history_book_size(h->book, &bytes, err);
    if (r < 0)
        return r;
    drop_aside(h, bytes, h->drop_ms);
    note_size(h, bytes);
    if (bytes + h->aside_bytes <= h->config.mib * MIB)
        return 0;
    r = history_book_sixteenth(h->book, &cut_ms, err);
    if (r < 0 || cut_ms <= h->drop_ms)
        return r;
    h->drop_ms = cut_ms;
    note_full(h, cut_ms);
    return 0;
}

/* One part; true: there is more to do. */
static bool drop_old(struct history *h)
{
    struct error err = {0};
    bool more = false;
    if (!h->book)
        return false;
    int r = 0;
    if (h->drop_ms == 0 && clock_ms() >= h->look_ms) {
        h->look_ms = clock_ms() + LOOK_MS;
        h->drop_ms = history_now_ms() - h->config.days * DAY_MS;
        r = look_at_size(h, &err);
    }
    if (r == 0 && h->drop_ms)
        r = history_book_drop(h->book, history_now_ms(), h->drop_ms, &more,
                              &err);
    if (r < 0)
        give_up(h, &err, 0);
    if (!more)
        h->drop_ms = 0;
    return more;
}

/* What was counted since it was written last would be lost. */
static void finish(struct history *h)
{
    struct error err = {0};
    if (h->book && history_book_finish(h->book, history_now_ms(), &err) < 0)
        give_up(h, &err, 0);
}

/* --- the thread ----------------------------------------------------------- */

/* When the thread looks around whatever happens. */
static int64_t next_look(const struct history *h)
{
    int64_t ms = h->book ? h->look_ms : h->again_ms;
    return ms < h->tell_ms ? ms : h->tell_ms;
}

static struct history_item *take_locked(struct history *h)
{
    struct history_item *items = h->first;
    h->first = NULL;
    h->last = &h->first;
    h->newest = h->newest_pods = NULL;
    h->n_snapshots = h->n_sets = h->n_events = 0;
    return items;
}

/* Is all known now?  Then all that was told before is among the items. */
static void look_around(struct history *h, struct history_item **items)
{
    if (h->known || (h->config.is_ready && !h->config.is_ready(h->config.ctx)))
        return;
    h->known = true;
    hold_lock(&h->lock);
    while (*items)
        items = &(*items)->next;
    *items = take_locked(h);
}

/* Until there is something to do, and for a while then: what comes in one after
 * the other is committed together.  False: it is to end, and nothing waits. */
static bool wait_for_items(struct history *h, bool at_once,
                           struct history_item **ret_items)
{
    int64_t look_ms = next_look(h);
    hold_lock(&h->lock);
    h->busy = false;
    while (!at_once && !h->first && !h->stopping && !h->hurry) {
        pthread_cond_broadcast(&h->idle);
        h->waiting = true;
        if (!clock_wait(&h->wake, &h->lock, look_ms))
            break;
    }
    h->waiting = false;
    int64_t due_ms = clock_ms() + HISTORY_COMMIT_MS;
    while (!at_once && h->first && !h->stopping && !h->hurry &&
           clock_wait(&h->wake, &h->lock, due_ms))
        ;
    bool more = h->first || !h->stopping;
    *ret_items = take_locked(h);
    h->busy = true;
    h->hurry = false;
    return more;
}

void *history_write_thread(void *ctx)
{
    struct history *h = ctx;
    struct history_item *items;
    bool at_once = true; /* the file is to be read, whole */
    thread_name("history", NULL);
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* this thread's alone */
    while (wait_for_items(h, at_once, &items)) {
        look_around(h, &items);
        write_items(h, items);
        history_items_free(items);
        if (clock_ms() >= h->tell_ms)
            tell_followers(h);
        at_once = drop_old(h);
    }
    finish(h);
    return NULL;
}
