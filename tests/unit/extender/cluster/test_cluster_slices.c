#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/app/app_metrics.h"
#include "extender/cluster/cluster_parts.h"
#include "lib/base/mem.h"
#include "model/slice/slice.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

static struct writer *w;
static struct feed *feed;
static struct metrics *metrics;
static struct cluster_slices *c;
static unsigned version;

static void set_up(void)
{
    w = sim_writer(NULL);
    feed = feed_create(w);
    metrics = app_metrics_create();
    c = cluster_slices_create(
        &(struct cluster_slices_config){.feed = feed, .metrics = metrics});
    version = 100;
}

static void tear_down(void)
{
    feed_destroy(feed);
    cluster_slices_destroy(c);
    writer_stop(w);
    metrics_destroy(metrics);
}

TestSuite(cluster_slices, .init = set_up, .fini = tear_down);

/* A node with 100 devices in each of its slices. */
enum { NICS = 50 };

struct content {
    const char *node, *boot;
    int64_t generation;
    unsigned n_nics; /* slices: one for each 128 */
};

static char *slice_text(const struct content *x, size_t index, unsigned rv)
{
    cleanup_with(topo) struct topo *topo = simhost_nics(x->node, x->n_nics,
                                                        NULL);
    cleanup_str struct str json = STR_INIT(SLICE_BODY_MAX);
    struct slice_epoch epoch = {.generation = x->generation};
    char text[16];
    struct slice_meta meta = {.owner_uid = "1-2-3", .resource_version = text};
    (void)snprintf(epoch.boot_id, sizeof epoch.boot_id, "%s", x->boot);
    (void)snprintf(text, sizeof text, "%u", rv);
    slice_encode_object(topo, &epoch, index, &meta, &json);
    return str_steal(&json);
}

static void settle(void)
{
    struct writer_op op = {.kind = WRITER_LIST_SLICES,
                           .limit = 1,
                           .out = STR_INIT(STR_MAX_DEFAULT)};
    (void)writer_run(w, &op);
    str_fini(&op.out);
}

static void put(const char *json)
{
    cluster_slices_handler.put(c, json, strlen(json));
}

static void put_slice(const struct content *x, size_t index)
{
    cleanup_free char *json = slice_text(x, index, ++version);
    put(json);
}

static void gone_slice(const struct content *x, size_t index)
{
    cleanup_free char *json = slice_text(x, index, version);
    cluster_slices_handler.gone(c, json, strlen(json));
}

/* "ready boot-a/3 100 devices", or "" */
static char *shown(const char *node)
{
    settle();
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t i = snapshot_find(s, node, strlen(node));
    if (i < 0)
        return xstrdup("");
    const struct node *n = snapshot_node(s, (size_t)i);
    return xasprintf(
        "%s %s/%lld %zu", node_status_name(n->status), n->epoch.boot_id,
        (long long)n->epoch.generation,
        n->topo && n->status == NODE_READY ? topo_n_devices(n->topo) : 0);
}

#define EXPECT(node, text)                   \
    do {                                     \
        cleanup_free char *is = shown(node); \
        cr_expect_str_eq(is, text);          \
    } while (0)

Test(cluster_slices, generations_go_on)
{
    put_slice(&(struct content){"n", "a", 1, 10}, 0);
    EXPECT("n", "ready a/1 10");
    put_slice(&(struct content){"n", "a", 2, 11}, 0);
    EXPECT("n", "ready a/2 11");
    gone_slice(&(struct content){"n", "a", 2, 11}, 0);
    EXPECT("n", "");
}

/* What cannot be joined takes nobody's place for good: what was there before
 * goes when its slice goes. */
Test(cluster_slices, what_a_refused_slice_followed_is_withdrawn)
{
    static const char devices[] = "\"devices\":[";
    struct content old = {"n", "a", 1, 10}, broken = {"n", "a", 2, 10};
    cleanup_free char *text = slice_text(&broken, 0, 200);
    char *name = strstr(text, "biga.dev-0"), *at = strstr(text, devices);
    cr_assert(name && at, "%s", text);
    name[strlen("biga.dev-")] = '9';
    at += strlen(devices);
    cleanup_free char *json =
        xasprintf("%.*s{\"name\":\"numa-7\",\"attributes\":{\"biga.dev/kind\":"
                  "{\"string\":\"numa\"},\"resource.kubernetes.io/numaNode\":"
                  "{\"int\":7},\"biga.dev/package\":{\"int\":0},"
                  "\"biga.dev/distances\":{\"string\":\"10 20 30 40 50\"}}},%s",
                  (int)(at - text), text, at);
    put_slice(&old, 0);
    EXPECT("n", "ready a/1 10");
    put(json);
    settle();
    const char *invalid = "invalid";
    cr_assert_eq(metrics_get(metrics, APP_SLICES_REJECTED, &invalid), 1);
    gone_slice(&old, 0);
    EXPECT("n", "");
    version = 300;
    put_slice(&(struct content){"n", "a", 3, 11}, 0);
    EXPECT("n", "ready a/3 11");
}

Test(cluster_slices, an_older_generation_that_was_written_later_holds)
{
    put_slice(&(struct content){"n", "a", 7, 10}, 0);
    put_slice(&(struct content){"n", "a", 3, 11}, 0);
    EXPECT("n", "ready a/3 11");
    put_slice(&(struct content){"n", "a", 3, 12}, 0);
    EXPECT("n", "ready a/3 12");
}

Test(cluster_slices, boots_may_come_back)
{
    put_slice(&(struct content){"n", "a", 2, 10}, 0);
    put_slice(&(struct content){"n", "b", 1, 10}, 0);
    EXPECT("n", "ready b/1 10");
    put_slice(&(struct content){"n", "a", 1, 10}, 0);
    EXPECT("n", "ready a/1 10");
    put_slice(&(struct content){"n", "b", 1, 10}, 0);
    EXPECT("n", "ready b/1 10");
}

Test(cluster_slices, the_newest_of_a_list_holds_in_any_order)
{
    struct content old = {"n", "a", 5, 2 * NICS}, new = {"n", "a", 1, 2 * NICS};
    cleanup_free char *old_0 = slice_text(&old, 0, 50);
    cleanup_free char *new_1 = slice_text(&new, 1, 60);
    cleanup_free char *new_0 = slice_text(&new, 0, 70);
    cluster_slices_handler.list(c);
    put(new_1);
    put(old_0);
    cluster_slices_handler.listed(c);
    EXPECT("n", "incomplete a/1 0");
    put(new_0);
    EXPECT("n", "ready a/1 100");
}

Test(cluster_slices, what_is_not_listed_is_gone)
{
    struct content stays = {"n", "a", 1, 10}, goes = {"m", "a", 1, 10};
    cleanup_free char *json = slice_text(&stays, 0, 1);
    put(json);
    put_slice(&goes, 0);
    EXPECT("m", "ready a/1 10");
    cluster_slices_handler.list(c);
    put(json);
    cluster_slices_handler.listed(c);
    EXPECT("n", "ready a/1 10");
    EXPECT("m", "");
}

Test(cluster_slices, nonsense_withdraws_what_was_there)
{
    struct content x = {"n", "a", 1, 10};
    put_slice(&x, 0);
    EXPECT("n", "ready a/1 10");
    put("{\"metadata\":{\"name\":\"n-xpu.biga.dev-0\"},\"spec\":{}}");
    put("[");
    EXPECT("n", "");
    put_slice(&x, 0);
    EXPECT("n", "ready a/1 10");
}

/* --- at random ---------------------------------------------------------- */

enum { SLOTS = 3, STEPS = ROUNDS_OF(3000) };

/* What the API server has of node "n". */
struct stored {
    bool there;
    unsigned rv;
    char boot;
    int generation;
    unsigned n_nics;
};

static size_t count_of(unsigned n_nics)
{
    return n_nics == 0 ? 1
                       : (n_nics + SLICE_DEVICES_MAX - 1) / SLICE_DEVICES_MAX;
}

static char *stored_text(const struct stored *s, size_t slot)
{
    const char boot[] = {s->boot, '\0'};
    struct content x = {"n", boot, s->generation, s->n_nics};
    return slice_text(&x, slot, s->rv);
}

/* What must be shown: the newest slice decides. */
static char *expected(const struct stored *slots)
{
    const struct stored *newest = NULL;
    size_t n = 0;
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].there && (!newest || slots[i].rv > newest->rv))
            newest = &slots[i];
    if (!newest)
        return xstrdup("");
    for (size_t i = 0; i < SLOTS; i++)
        n += slots[i].there && slots[i].boot == newest->boot &&
             slots[i].generation == newest->generation &&
             count_of(slots[i].n_nics) == count_of(newest->n_nics);
    if (n > count_of(newest->n_nics))
        n = count_of(newest->n_nics);
    bool whole = n == count_of(newest->n_nics);
    return xasprintf("%s %c/%d %u", whole ? "ready" : "incomplete",
                     newest->boot, newest->generation,
                     whole ? newest->n_nics : 0);
}

static unsigned turn(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 16) % n;
}

static void relist(const struct stored *slots, unsigned *seed)
{
    size_t first = turn(seed, SLOTS);
    cluster_slices_handler.list(c);
    for (size_t i = 0; i < SLOTS; i++) {
        size_t slot = (first + i) % SLOTS;
        if (!slots[slot].there)
            continue;
        cleanup_free char *json = stored_text(&slots[slot], slot);
        put(json);
    }
    cluster_slices_handler.listed(c);
}

/* One advertiser at a time writes whole pools, others may do so in between;
 * the number of devices follows from who writes what, as it must not be other
 * content under the same epoch. */
Test(cluster_slices, random_writes, .timeout = 180)
{
    struct stored slots[SLOTS] = {0};
    unsigned seed = 42;
    for (unsigned step = 0; step < STEPS; step++) {
        size_t slot = turn(&seed, SLOTS);
        struct stored *s = &slots[slot];
        unsigned what = turn(&seed, 10);
        if (what == 0) {
            relist(slots, &seed);
        } else if (what == 1 && s->there) {
            cleanup_free char *json = stored_text(s, slot);
            s->there = false;
            cluster_slices_handler.gone(c, json, strlen(json));
        } else {
            s->boot = (char)('a' + turn(&seed, 2));
            s->generation = 1 + (int)turn(&seed, 3);
            unsigned n = (unsigned)(s->generation * 2 + s->boot) % 3;
            s->n_nics = (n + 1) * NICS;
            if (slot >= count_of(s->n_nics))
                s->n_nics = SLOTS * NICS;
            s->there = true;
            s->rv = ++version;
            cleanup_free char *json = stored_text(s, slot);
            put(json);
        }
        cleanup_free char *must = expected(slots);
        cleanup_free char *is = shown("n");
        cr_assert_str_eq(is, must, "step %u: %s, must be %s", step, is, must);
    }
}
