/* What a remote tells by itself.  Nothing of it is believed: an event has it
 * listed, no more often than lists would be without them. */
#include <errno.h>

#include "advertiser/cri/cri_watch.h"
#include "lib/base/backoff.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "router/remote/remote_private.h"

enum {
    TURN_MS = 60000, /* at most between two looks */
    /* A runtime without events says so at once; one with them says nothing
     * before the first. */
    STANDS_MS = 1000,
    RETRY_MIN_MS = 1000,
    RETRY_MAX_MS = 60000,
    WAKES = 16,   /* lists for events in a row; then one each REMOTE_LIST_MS */
    FLOOD = 8192, /* events that may come at once; and so many a second: */
    FLOOD_RATE = 128,
};

/* Of the thread alone. */
struct hearing {
    struct remote *r;
    struct cri_watch *watch; /* NULL: none */
    int64_t begun_ms, retry_ms;
    unsigned failures;
    bool none; /* it has no events; until it becomes ready again */
    int64_t wakes, wakes_ms, budget, budget_ms;
};

static void refill(int64_t *left, int64_t *since_ms, int64_t max, int64_t each)
{
    int64_t more = (clock_ms() - *since_ms) / each;
    if (more <= 0)
        return;
    *since_ms += more * each;
    *left = more < max - *left ? *left + more : max;
}

static int take_event(void *ctx, const struct cri_event *event, size_t size)
{
    struct hearing *h = ctx;
    (void)size; /* each is CRI_EVENT_MAX at most */
    refill(&h->budget, &h->budget_ms, FLOOD, 1000 / FLOOD_RATE);
    if (h->budget-- <= 0)
        return -ENOBUFS;
    refill(&h->wakes, &h->wakes_ms, WAKES, REMOTE_LIST_MS);
    if (!event || h->wakes <= 0)
        return 0;
    h->wakes--;
    (void)pthread_mutex_lock(&h->r->lock);
    remote_want_list(h->r);
    (void)pthread_mutex_unlock(&h->r->lock);
    return 0;
}

static void set_live(struct hearing *h, bool live)
{
    hold_lock(&h->r->lock);
    bool changed = h->r->events != live && !(live && h->r->deaf);
    if (!changed)
        return;
    h->r->events = live;
    remote_want_list(h->r); /* what it has not told is listed once */
}

static void take_end(void *ctx, int code, const struct error *err)
{
    struct hearing *h = ctx;
    h->watch = NULL;
    h->none = code == -ENOSYS;
    h->failures += h->failures < 32;
    if (code == -ENOBUFS)
        h->failures = 32;
    h->retry_ms = clock_ms() +
                  backoff_grown(RETRY_MIN_MS, RETRY_MAX_MS, h->failures);
    if (!h->none && (h->failures == 1 || code == -ENOBUFS))
        log_event(LOG_INFO, "remote-events-ended", "remote",
                  h->r->config.place.name, "error",
                  code == -ENOBUFS ? "it sends more of them than is of use"
                                   : err->text,
                  NULL);
    set_live(h, false);
}

static void open_watch(struct hearing *h)
{
    const struct grpc_config config = card_grpc(&h->r->config.place);
    const struct cri_watcher who = {take_event, take_end, h};
    struct error err = {0};
    int64_t now = clock_ms();
    h->begun_ms = h->budget_ms = h->wakes_ms = now;
    h->budget = FLOOD;
    h->wakes = WAKES;
    int e = cri_watch_open(h->r->hub, &config, &who, &h->watch, &err);
    if (e < 0)
        take_end(h, e, &err);
}

/* When to look again. */
static int64_t tend(struct hearing *h, bool ready)
{
    int64_t now = clock_ms();
    if (!ready) {
        cri_watch_close(h->watch);
        h->watch = NULL;
        h->none = false;
        h->failures = 0;
        h->retry_ms = now;
        set_live(h, false);
        return now + TURN_MS;
    }
    if (!h->watch && !h->none && h->retry_ms <= now)
        open_watch(h);
    if (!h->watch)
        return h->none ? now + TURN_MS : h->retry_ms;
    if (!cri_watch_stands(h->watch))
        return now + STANDS_MS;
    if (now - h->begun_ms < STANDS_MS)
        return h->begun_ms + STANDS_MS;
    set_live(h, true);
    h->failures = 0;
    return now + TURN_MS;
}

void *remote_events_thread(void *remote)
{
    struct hearing h = {.r = remote};
    struct remote *r = remote;
    thread_name("events", r->config.place.name);
    for (;;) {
        (void)pthread_mutex_lock(&r->lock);
        bool stopping = r->stopping, ready = r->health.now == ACT_READY;
        (void)pthread_mutex_unlock(&r->lock);
        if (stopping)
            break;
        int64_t due = tend(&h, ready), now = clock_ms();
        grpc_hub_turn(r->hub, due > now ? (unsigned)(due - now) : 0);
    }
    cri_watch_close(h.watch);
    return NULL;
}
