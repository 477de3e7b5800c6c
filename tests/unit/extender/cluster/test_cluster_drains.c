#include <criterion/criterion.h>
#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

static struct writer *w;
static struct feed *feed;
static struct cluster_drains *drains;

static void start(void)
{
    const struct writer_config config = {.store = STORE_KUBERNETES,
                                         .fresh_ms = 15000};
    struct error err;
    cr_assert_eq(writer_start(&config, &w, &err), 0);
    feed = feed_create(w);
    drains = cluster_drains_create(feed);
    cr_assert_eq(sim_publish(w, "n", 2, "boot", 1), 0);
}

static void stop(void)
{
    feed_destroy(feed);
    cluster_drains_destroy(drains);
    writer_stop(w);
}

TestSuite(cluster_drains, .init = start, .fini = stop);

static void put(const char *data)
{
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"biga-drains\"},\"data\":{%s}}", data);
    cluster_drains_handler.put(drains, json, strlen(json));
}

static void list(const char *data)
{
    cluster_drains_handler.list(drains);
    if (data)
        put(data);
    cluster_drains_handler.listed(drains);
}

/* Of the two cards, when the writer is done. */
static void expect(const char *first, const char *second)
{
    static struct writer_op op = {.kind = WRITER_HEARD, .node = "n"};
    (void)writer_run(w, &op);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct topo *topo = snapshot_node(s, 0)->topo;
    cr_expect_str_eq(topo_device(topo, 0)->barred, first);
    cr_expect_str_eq(topo_device(topo, 1)->barred, second);
}

#define ENTRY(key, reason)                      \
    "\"" key "\":\"{\\\"reason\\\":\\\"" reason \
    "\\\",\\\"since\\\":\\\"S\\\"}\""
#define FIRST "n_card-0000-12-00"

Test(cluster_drains, follow_the_config_map)
{
    list(ENTRY(FIRST, "fw"));
    expect("drained since S: fw", "");
    put(ENTRY("n", "rack"));
    expect("its node is drained since S: rack",
           "its node is drained since S: rack");
    put(ENTRY(FIRST, "other") "," ENTRY("gone", "x"));
    expect("drained since S: other", "");
    put("");
    expect("", "");
    put(ENTRY(FIRST, "fw"));
    cluster_drains_handler.gone(drains, "{}", 2);
    expect("", "");
}

Test(cluster_drains, that_are_not_listed_again_are_over)
{
    list(ENTRY(FIRST, "fw"));
    list(ENTRY(FIRST, "fw"));
    expect("drained since S: fw", "");
    list(NULL);
    expect("", "");
}

Test(cluster_drains, that_cannot_be_read_drain_all_the_same)
{
    put("\"" FIRST "\":\"{\",\"n_\":\"{}\"");
    expect("drained since ?: entry " FIRST
           " of ConfigMap biga-drains cannot be read",
           "");
    cluster_drains_handler.put(drains, "{", 1); /* and so it stays */
    expect("drained since ?: entry " FIRST
           " of ConfigMap biga-drains cannot be read",
           "");
}
