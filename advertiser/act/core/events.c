/* What runtimes tell by themselves: one stream of events per place that is
 * ready, all on one thread.  An event about a pod of ours has its place listed
 * at once; what it says is never taken for true.
 *
 * A runtime that has none (containerd before 1.7) is asked once each time it
 * becomes ready, and listed as often as ever; so is one whose events do not
 * all come.  A flood ends the stream of that place alone. */
#include "advertiser/act/core/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/card.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/threads.h"
#include "lib/base/backoff.h"
#include "lib/base/mem.h"
#include "lib/grpc/grpc.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

enum {
    TURN_MS = 60000, /* at most between two looks at the places */
    /* A runtime without events says so at once; one with them says nothing
     * before the first. */
    STANDS_MS = 1000,
    CALM_MS = 30000, /* a stream that stood so long did not fail */
    RETRY_MIN_MS = 1000,
    RETRY_MAX_MS = 60000,
    /* What may come of one place, an event counting EVENT_COST more bytes
     * than it has: so much at once, and so much a second. */
    FLOOD_BYTES = 8 << 20,
    FLOOD_RATE = 128 << 10,
    EVENT_COST = 1024,
    /* Lists for events: so many in a row, and one each PLACE_LIST_MS. */
    WAKES = 16,
    MISSED_MS = 1000, /* an event may be that late */
};

/* A stream, of the thread alone. */
struct stream {
    struct place *p;
    struct act_place desc;
    unsigned generation;
    struct cri_watch *watch; /* NULL: it has ended */
    int64_t begun_ms, stood_ms;
    int64_t budget, budget_ms; /* bytes that may come, as of */
};

struct events {
    struct actuator *a;
    struct grpc_hub *hub;
    struct stream *streams[PLACES_KEPT]; /* as in a->places; NULL none */
};

/* --- for the other files ------------------------------------------------ */

void events_wake(struct actuator *a)
{
    if (a->events)
        grpc_hub_wake(a->events);
}

int64_t events_due(const struct place *p, int64_t listed_ms)
{
    int64_t at = p->events.stirred_ms;
    if (at == 0 || at < listed_ms)
        return INT64_MAX;
    int64_t next = listed_ms + PLACE_BUSY_LIST_MS;
    return at > next ? at : next;
}

void events_missed(struct place *p, int64_t now_ms)
{
    if (p->events.live && p->events.missed_ms == 0)
        p->events.missed_ms = now_ms;
}

bool events_live(struct place *p, int64_t now_ms)
{
    struct place_events *e = &p->events;
    if (e->live && e->missed_ms && now_ms - e->missed_ms > MISSED_MS) {
        e->live = false;
        e->deaf = true;
        log_event(LOG_INFO, "place-events-lacking", "place", p->desc.name,
                  NULL);
    }
    return e->live;
}

/* --- one event ---------------------------------------------------------- */

static bool is_among(const struct machine_found *f, const char *id)
{
    for (size_t i = 0; i < f->n_containers; i++)
        if (strcmp(f->containers[i].id, id) == 0)
            return true;
    for (size_t i = 0; i < f->n_sandboxes; i++)
        if (strcmp(f->sandboxes[i].id, id) == 0)
            return true;
    return false;
}

static LOCKED struct pod_entry *entry_of(struct place *p,
                                         const struct cri_event *event)
{
    struct actuator *a = p->a;
    struct pod_entry *e = event->uid[0] ? pod_entry_by_uid(a, event->uid)
                                        : NULL;
    if (e)
        return pod_entry_is_on(e, p) ? e : NULL;
    for (size_t i = 0; i < a->n_entries; i++) {
        e = a->entries[i];
        if (pod_entry_is_on(e, p) && is_among(&e->m.found, event->container_id))
            return e;
    }
    return NULL;
}

/* Each event may cause a list, up to WAKES in a row and one per PLACE_LIST_MS
 * after that: events must not cost more lists than listing without them. */
static bool may_stir(struct place_events *e, int64_t now)
{
    int64_t more = (now - e->wakes_ms) / PLACE_LIST_MS;
    if (more > 0) {
        e->wakes = more < WAKES && e->wakes + more < WAKES
                       ? e->wakes + (unsigned)more
                       : WAKES;
        e->wakes_ms = now;
    }
    if (e->wakes == 0)
        return false;
    e->wakes--;
    return true;
}

static LOCKED void list_soon(struct place *p)
{
    int64_t now = clock_ms();
    if (!may_stir(&p->events, now)) {
        if (p->list_ms > now + PLACE_LIST_MS)
            p->list_ms = now + PLACE_LIST_MS;
        return;
    }
    p->events.stirred_ms = now;
    clock_wake_one(&p->wake);
}

void events_attend(struct place *p, const struct pod_entry *e)
{
    if (e->stirred)
        list_soon(p);
}

/* While a step of the pod is carried out, lists ignore it: it is listed when
 * the step has ended (events_attend()). */
static LOCKED void stir(struct place *p, struct pod_entry *e)
{
    p->events.missed_ms = 0;
    e->stirred = true;
    if (!e->busy)
        list_soon(p);
}

static bool is_flood(struct stream *s, size_t size)
{
    int64_t now = clock_ms();
    int64_t more = (now - s->budget_ms) * (FLOOD_RATE / 1000);
    s->budget = more < FLOOD_BYTES - s->budget ? s->budget + more : FLOOD_BYTES;
    s->budget_ms = now;
    s->budget -= (int64_t)size + EVENT_COST;
    return s->budget < 0;
}

/* What we make or start ourselves is known when the call has ended. */
static int take_event(void *ctx, const struct cri_event *event, size_t size)
{
    struct stream *s = ctx;
    struct actuator *a = s->p->a;
    if (is_flood(s, size))
        return -ENOBUFS;
    if (!event ||
        (event->kind != CRI_EVENT_STOPPED && event->kind != CRI_EVENT_DELETED))
        return 0;
    act_lock(a);
    struct pod_entry *e = s->generation == s->p->generation
                              ? entry_of(s->p, event)
                              : NULL;
    if (e)
        stir(s->p, e);
    act_unlock(a);
    return 0;
}

/* --- one stream --------------------------------------------------------- */

static LOCKED void calm_down(struct place *p, int64_t now)
{
    p->events.live = false;
    if (p->list_ms > now + PLACE_LIST_MS)
        p->list_ms = now + PLACE_LIST_MS;
    clock_wake_one(&p->wake);
}

static LOCKED void note_end(struct stream *s, int code, const struct error *err)
{
    struct place_events *e = &s->p->events;
    int64_t now = clock_ms();
    calm_down(s->p, now);
    if (code == -ENOSYS) {
        e->none = true;
        return;
    }
    if (s->stood_ms && now - s->stood_ms > CALM_MS)
        e->failures = 0;
    e->failures += e->failures < 32;
    if (code == -ENOBUFS)
        e->failures = 32;
    e->retry_ms = now + backoff_grown(RETRY_MIN_MS, RETRY_MAX_MS, e->failures);
    if (e->failures == 1 || code == -ENOBUFS)
        log_event(LOG_INFO, "place-events-ended", "place", s->desc.name,
                  "error",
                  code == -ENOBUFS ? "it sends more of them than is of use"
                                   : err->text,
                  NULL);
}

/* Called by grpc_hub_turn() on the thread of events, which has not the lock. */
static void take_end(void *ctx, int code, const struct error *err)
{
    struct stream *s = ctx;
    struct actuator *a = s->p->a;
    const struct error well = {.text = "the runtime has ended them"};
    s->watch = NULL;
    act_lock(a);
    if (s->generation == s->p->generation)
        note_end(s, code, code == 0 ? &well : err);
    act_unlock(a);
}

/* Releases the lock while it connects. */
static LOCKED void open_stream(struct events *v, size_t i)
{
    struct actuator *a = v->a;
    struct stream *s = xcalloc(1, sizeof *s);
    struct error err = {0};
    const struct cri_watcher who = {
        .visit = take_event, .ended = take_end, .ctx = s};
    s->p = a->places[i];
    s->desc = s->p->desc;
    s->generation = s->p->generation;
    s->begun_ms = s->budget_ms = clock_ms();
    s->budget = FLOOD_BYTES;
    s->p->events.deaf = false;
    s->p->events.missed_ms = 0;
    act_unlock(a);
    struct grpc_config config = card_grpc(&s->desc);
    int r = cri_watch_open(v->hub, &config, &who, &s->watch, &err);
    act_lock(a);
    v->streams[i] = s;
    if (r < 0 && s->generation == s->p->generation)
        note_end(s, r, &err);
}

static LOCKED void close_stream(struct events *v, size_t i)
{
    struct actuator *a = v->a;
    struct stream *s = v->streams[i];
    v->streams[i] = NULL;
    if (s->p->events.live)
        calm_down(s->p, clock_ms());
    act_unlock(a);
    cri_watch_close(s->watch);
    free(s);
    act_lock(a);
}

/* It stands for long enough: what it has not told is listed once. */
static int64_t tend_stream(struct stream *s, int64_t now)
{
    struct place_events *e = &s->p->events;
    if (e->live || e->deaf || !cri_watch_stands(s->watch))
        return now + (e->live || e->deaf ? TURN_MS : STANDS_MS);
    if (s->stood_ms == 0)
        s->stood_ms = now;
    if (now - s->stood_ms < STANDS_MS)
        return s->stood_ms + STANDS_MS;
    e->live = true;
    e->stirred_ms = now;
    clock_wake_one(&s->p->wake);
    return now + TURN_MS;
}

/* --- the thread --------------------------------------------------------- */

/* Opens and closes what is to be; when to look again. */
static LOCKED int64_t look(struct events *v)
{
    struct actuator *a = v->a;
    int64_t now = clock_ms(), due = now + TURN_MS;
    for (size_t i = 0; i < a->n_places && !a->stopping; i++) {
        struct place *p = a->places[i];
        struct stream *s = v->streams[i];
        bool wanted = place_works(p) && !p->events.none;
        int64_t next = INT64_MAX;
        if (s && (!s->watch || !wanted || s->generation != p->generation)) {
            close_stream(v, i);
            s = NULL;
            wanted = place_works(p) && !p->events.none;
        }
        if (!s && wanted && p->events.retry_ms <= now) {
            open_stream(v, i);
            s = v->streams[i];
            wanted = place_works(p) && !p->events.none;
        }
        if (s && s->watch)
            next = tend_stream(s, now);
        else if (wanted) /* also one that could not even be begun */
            next = p->events.retry_ms;
        due = next < due ? next : due;
    }
    return due;
}

static void *events_thread(void *arg)
{
    struct events v = {.a = arg};
    struct actuator *a = v.a;
    thread_name("events", NULL);
    act_lock(a);
    v.hub = a->events;
    while (!a->stopping) {
        int64_t due = look(&v), now = clock_ms();
        act_unlock(a);
        grpc_hub_turn(v.hub, due > now ? (unsigned)(due - now) : 0);
        act_lock(a);
    }
    for (size_t i = 0; i < PLACES_KEPT; i++)
        if (v.streams[i])
            close_stream(&v, i);
    a->events = NULL;
    act_unlock(a);
    grpc_hub_destroy(v.hub);
    act_lock(a);
    act_thread_ends(a);
    return NULL;
}

void events_begin(struct place *p)
{
    struct actuator *a = p->a;
    p->events = (struct place_events){.wakes = WAKES, .wakes_ms = clock_ms()};
    if (!a->events && !a->stopping) {
        a->events = grpc_hub_create();
        if (!act_thread(a, events_thread, a)) {
            grpc_hub_destroy(a->events);
            a->events = NULL;
        }
    }
    events_wake(a);
}
