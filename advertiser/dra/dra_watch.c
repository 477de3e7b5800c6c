#include "advertiser/dra/dra_watch.h"

#include <pthread.h>
#include <string.h>

#include "advertiser/dra/dra_wire.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

struct card {
    char id[TOPO_ID_MAX + 1];
    enum dra_health health;
};

struct dra_watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t number; /* of changes */
    bool ended;
    char pool[DRA_NAME_MAX + 1];
    struct card *cards;
    size_t n;
};

struct dra_watch *dra_watch_create(void)
{
    struct dra_watch *w = xcalloc(1, sizeof *w);
    (void)pthread_mutex_init(&w->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&w->changed);
    return w;
}

void dra_watch_destroy(struct dra_watch *w)
{
    if (!w)
        return;
    free(w->cards);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

/* One that its operator drained works. */
static enum dra_health health_of(const struct device *card)
{
    if (strcmp(card->health, "lost") == 0)
        return DRA_UNHEALTHY;
    if (*card->health)
        return DRA_HEALTHY;
    return card->unhealthy ? DRA_UNHEALTHY : DRA_HEALTH_UNKNOWN;
}

static bool is_same(const struct dra_watch *w, const struct card *cards,
                    size_t n)
{
    bool same = n == w->n;
    for (size_t i = 0; i < n && same; i++)
        same = strcmp(cards[i].id, w->cards[i].id) == 0 &&
               cards[i].health == w->cards[i].health;
    return same;
}

void dra_watch_look(struct dra_watch *w, const struct topo *topo)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first);
    cleanup_free struct card *cards = xcalloc(n + 1, sizeof *cards);
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(topo, first + i);
        (void)snprintf(cards[i].id, sizeof cards[i].id, "%s", d->id);
        cards[i].health = health_of(d);
    }
    hold_lock(&w->lock);
    if (is_same(w, cards, n))
        return;
    (void)snprintf(w->pool, sizeof w->pool, "%s", topo_node(topo));
    free(w->cards);
    w->cards = steal(&cards);
    w->n = n;
    w->number++;
    clock_wake_all(&w->changed);
}

void dra_watch_end(struct dra_watch *w)
{
    hold_lock(&w->lock);
    w->ended = true;
    clock_wake_all(&w->changed);
}

static uint64_t write_all(struct dra_watch *w, struct str *out)
{
    hold_lock(&w->lock);
    for (size_t i = 0; i < w->n; i++) {
        const struct dra_fare fare = {.pool = w->pool,
                                      .device = w->cards[i].id,
                                      .health = w->cards[i].health,
                                      .unix_s = clock_wall_s(),
                                      .timeout_s = DRA_WATCH_OLD_S};
        dra_write_fare(&fare, out);
    }
    return w->number;
}

/* One that watches. */
struct watcher {
    struct dra_watch *watch;
    bool cancelled; /* under the watch's lock */
};

static void on_cancel(void *ctx)
{
    struct watcher *one = ctx;
    hold_lock(&one->watch->lock);
    one->cancelled = true;
    clock_wake_all(&one->watch->changed);
}

/* Until there is something to say; false: to nobody. */
static bool wait_for_news(struct watcher *one, uint64_t told)
{
    struct dra_watch *w = one->watch;
    int64_t due_ms = clock_ms() + DRA_WATCH_AGAIN_MS;
    hold_lock(&w->lock);
    while (!one->cancelled && !w->ended && w->number == told &&
           clock_wait(&w->changed, &w->lock, due_ms))
        ;
    return !one->cancelled && !w->ended;
}

void dra_watch_serve(void *ctx, struct grpcd_call *call)
{
    struct watcher one = {.watch = ctx};
    cleanup_str struct str out = STR_INIT(DRA_MESSAGE_MAX);
    bool goes_on = true;
    grpcd_call_on_cancel(call, on_cancel, &one);
    while (goes_on) {
        str_reset(&out);
        uint64_t told = write_all(one.watch, &out);
        goes_on = grpcd_call_send(call, str_text(&out), out.size) == 0 &&
                  wait_for_news(&one, told);
    }
    grpcd_call_on_cancel(call, NULL, NULL);
    grpcd_call_finish(call, GRPC_OK, NULL);
}
