#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/kube/collection.h"
#include "lib/kube/lease.h"

enum { BEAT_TEXT_MAX = KUBE_LEASE_HOLDER_MAX + 48 };

struct beat {
    struct collected in;
    char *node;
    char text[BEAT_TEXT_MAX]; /* who renewed it, and when they said they did */
    bool old;                 /* it was when it was listed */
};

struct cluster_heartbeats {
    struct feed *feed;
    int64_t fresh_ms;
    struct strmap heartbeats; /* by node */
    bool listing;
};

struct cluster_heartbeats *cluster_heartbeats_create(struct feed *feed,
                                                     int64_t fresh_ms)
{
    struct cluster_heartbeats *c = xcalloc(1, sizeof *c);
    c->feed = feed;
    c->fresh_ms = fresh_ms;
    return c;
}

static void beat_free(void *object)
{
    struct beat *b = object;
    free(b->node);
    free(b);
}

void cluster_heartbeats_destroy(struct cluster_heartbeats *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->heartbeats, beat_free);
    free(c);
}

static void on_list(void *ctx)
{
    struct cluster_heartbeats *c = ctx;
    c->listing = true;
    collection_list(&c->heartbeats);
}

/* When a MicroTime was, in ms since 1970; -1 when it is none. */
static int64_t wall_ms(const char *text)
{
    int64_t s = clock_parse_utc(text);
    return s < 0 ? -1 : s * 1000;
}

static int64_t wall_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t); /* cannot fail on Linux */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* In a list there are the Leases of nodes that fell silent long ago, too.
 * Only there the clocks of others are looked at. */
static bool is_old(const struct cluster_heartbeats *c,
                   const struct kube_lease *lease)
{
    int64_t renewed = wall_ms(lease->renewed);
    return c->listing &&
           (renewed < 0 || wall_now_ms() - renewed > 2 * c->fresh_ms);
}

static void post_heard(struct cluster_heartbeats *c, const char *node, bool old)
{
    struct feed_op *o = feed_new(c->feed, WRITER_HEARD, strlen(node) + 1);
    o->op.node = feed_text(o, node, strlen(node));
    o->op.gone = old;
    feed_post(o); /* a node without slices has nothing that could be stale */
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct cluster_heartbeats *c = ctx;
    struct kube_lease lease;
    struct error err = {0};
    char text[BEAT_TEXT_MAX];
    if (kube_lease_read(json, size, &lease, &err) < 0) {
        log_event(LOG_WARN, "heartbeat-refused", "error", err.text, NULL);
        return;
    }
    (void)snprintf(text, sizeof text, "%s %s", lease.renewed, lease.holder);
    struct beat *b = strmap_get(&c->heartbeats, lease.name);
    if (!b) {
        b = xcalloc(1, sizeof *b);
        b->node = xstrdup(lease.name);
        (void)strmap_put(&c->heartbeats, b->node, b);
    }
    b->in.listed = true;
    if (strcmp(b->text, text) == 0)
        return;
    memcpy(b->text, text, sizeof text);
    b->old = is_old(c, &lease);
    if (!b->old && lease.renewed[0])
        post_heard(c, lease.name, false);
}

static void forget(void *ctx, void *object)
{
    struct cluster_heartbeats *c = ctx;
    struct beat *b = object;
    (void)strmap_remove(&c->heartbeats, b->node);
    beat_free(b);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    struct cluster_heartbeats *c = ctx;
    struct kube_lease lease;
    if (kube_lease_read(json, size, &lease, NULL) < 0)
        return;
    struct beat *b = strmap_get(&c->heartbeats, lease.name);
    if (b)
        forget(c, b); /* its node goes stale by itself */
}

static void on_listed(void *ctx)
{
    struct cluster_heartbeats *c = ctx;
    c->listing = false;
    collection_listed(&c->heartbeats, forget, c);
    cluster_heartbeats_silence(c);
}

/* A slice that is listed counts as heard of; that of a node which fell silent
 * long ago must not. */
void cluster_heartbeats_silence(struct cluster_heartbeats *c)
{
    struct beat *b;
    size_t pos = 0;
    while ((b = strmap_next(&c->heartbeats, &pos)))
        if (b->old)
            post_heard(c, b->node, true);
}

const struct reflector_handler cluster_heartbeats_handler = {
    .list = on_list, .put = on_put, .gone = on_gone, .listed = on_listed};
