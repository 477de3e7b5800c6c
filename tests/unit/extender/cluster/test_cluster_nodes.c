#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/mem.h"
#include "lib/kube/lease.h"
#include "tests/lib/sim/simstate.h"

static struct writer *w;
static struct feed *feed;
static struct cluster_nodes *nodes;
static struct cluster_heartbeats *beats;
static int64_t now_s;

/* Silent for twice as long is stale: 300 s. */
enum { FRESH_MS = 150000 };

static void set_up(void)
{
    struct fabric_labels none = {.n_keys = 0};
    w = sim_writer(NULL);
    feed = feed_create(w);
    now_s = (int64_t)time(NULL);
    nodes = cluster_nodes_create(feed, &none);
    beats = cluster_heartbeats_create(feed, FRESH_MS);
    cr_assert_eq(sim_publish(w, "n1", 2, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n2", 2, "boot", 1), 0);
}

static void tear_down(void)
{
    feed_destroy(feed);
    cluster_nodes_destroy(nodes);
    cluster_heartbeats_destroy(beats);
    writer_stop(w);
}

TestSuite(cluster_nodes, .init = set_up, .fini = tear_down);

static void expect(const char *node, enum node_status status)
{
    writer_sweep(w); /* after all that is queued */
    writer_sweep(w);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t i = snapshot_find(s, node, strlen(node));
    cr_assert(i >= 0);
    enum node_status is = snapshot_node(s, (size_t)i)->status;
    cr_expect_eq(is, status, "%s is %s, not %s", node, node_status_name(is),
                 node_status_name(status));
}

static void put_node(const char *name, const char *labels, const char *ready)
{
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{%s}},\"spec\":{},"
        "\"status\":{\"conditions\":[{\"type\":\"MemoryPressure\",\"status\":"
        "\"False\"},{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
        name, labels, ready);
    cluster_nodes_handler.put(nodes, json, strlen(json));
}

static void gone_node(const char *name)
{
    cleanup_free char *json = xasprintf("{\"metadata\":{\"name\":\"%s\"}}",
                                        name);
    cluster_nodes_handler.gone(nodes, json, strlen(json));
}

Test(cluster_nodes, unready_nodes_are_lost)
{
    put_node("n1", "", "True");
    expect("n1", NODE_READY);
    put_node("n1", "", "Unknown");
    expect("n1", NODE_LOST);
    expect("n2", NODE_READY);
    put_node("n1", "", "True");
    expect("n1", NODE_READY);
    put_node("n1", "", "False");
    expect("n1", NODE_LOST);
    gone_node("n1");
    expect("n1", NODE_LOST);
    put_node("n1", "", "True");
    expect("n1", NODE_READY);
}

static void visit_both(void *ctx, void (*visit)(void *ctx, const char *node),
                       void *visit_ctx)
{
    (void)ctx;
    visit(visit_ctx, "n1");
    visit(visit_ctx, "n2");
}

Test(cluster_nodes, nodes_that_are_not_listed_are_lost)
{
    cluster_nodes_each(nodes, visit_both, NULL);
    cluster_nodes_check(nodes, "n2");
    expect("n2", NODE_READY); /* nothing is known yet */
    cluster_nodes_handler.list(nodes);
    put_node("n1", "", "True");
    cluster_nodes_handler.listed(nodes);
    expect("n1", NODE_READY);
    expect("n2", NODE_LOST);
    put_node("n2", "", "True");
    expect("n2", NODE_READY);
    cluster_nodes_handler.list(nodes);
    put_node("n2", "", "True");
    cluster_nodes_handler.listed(nodes);
    expect("n1", NODE_LOST);
    expect("n2", NODE_READY);
}

static void expect_labels(const char *text)
{
    cleanup_str struct str out = STR_INIT(65536);
    cluster_nodes_write(nodes, &out);
    cr_expect_str_eq(str_text(&out), text);
}

Test(cluster_nodes, labels_that_say_where_nodes_hang_are_picked)
{
    cr_expect_not(cluster_nodes_changed(nodes));
    expect_labels("");
    put_node("n2", "\"a\":\"b\",\"fabric.topograph.run/tier-0\":\"l\\u0032\"",
             "True");
    put_node("n1",
             "\"fabric.topograph.run/tier-0\":\"l1\",\"kubernetes.io/os\""
             ":\"linux\",\"fabric.topograph.run/tier-1\":\"s1\"",
             "True");
    put_node("n3", "\"kubernetes.io/os\":\"linux\"", "True");
    cr_expect(cluster_nodes_changed(nodes));
    cr_expect_not(cluster_nodes_changed(nodes));
    const char *both =
        "{\"kind\":\"NodeList\",\"items\":[\n{\"metadata\":{\"name\":\"n1\","
        "\"labels\":{\"fabric.topograph.run/tier-0\":\"l1\","
        "\"fabric.topograph.run/tier-1\":\"s1\"}}},\n{\"metadata\":{\"name\":"
        "\"n2\",\"labels\":{\"fabric.topograph.run/tier-0\":\"l\\u0032\"}}}"
        "]}\n";
    expect_labels(both);

    /* what the fabric makes of it */
    struct fabric_source source = {.name = "labels",
                                   .text = both,
                                   .size = strlen(both),
                                   .format = FABRIC_LABELS};
    cleanup_with(fabric) struct fabric *fabric = NULL;
    struct error err = {0};
    cr_assert_eq(fabric_read(&source, 1, NULL, &fabric, &err), 0, "%s",
                 err.text);
    cr_expect_eq(fabric_n_hosts(fabric), 2);

    put_node("n3", "\"kubernetes.io/os\":\"windows\"", "False");
    put_node("n1",
             "\"fabric.topograph.run/tier-0\":\"l1\",\"x\":\"y\","
             "\"fabric.topograph.run/tier-1\":\"s1\"",
             "True");
    cr_expect_not(cluster_nodes_changed(nodes), "none that matter");
    gone_node("n2");
    put_node("n1", "", "True");
    cr_expect(cluster_nodes_changed(nodes));
    expect_labels("");
}

/* --- heartbeats --------------------------------------------------------- */

static void put_beat(const char *node, int64_t ago_s, const char *holder)
{
    char text[40];
    kube_lease_time((now_s - ago_s) * 1000000, text);
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"biga-nodes\",\"uid\":"
        "\"u\",\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"%s\","
        "\"leaseDurationSeconds\":40,\"renewTime\":\"%s\"}}",
        node, holder, text);
    cluster_heartbeats_handler.put(beats, json, strlen(json));
}

Test(cluster_nodes, who_was_silent_when_listed_is_stale)
{
    cluster_heartbeats_handler.list(beats);
    put_beat("n1", 600, "a");
    put_beat("n2", 200, "a");
    cluster_heartbeats_handler.listed(beats);
    expect("n1", NODE_STALE);
    expect("n2", NODE_READY);

    /* its slices are listed later */
    cr_assert_eq(sim_publish(w, "n1", 2, "boot", 2), 0);
    expect("n1", NODE_READY);
    cluster_heartbeats_silence(beats);
    expect("n1", NODE_STALE);

    /* a clock that is wrong does no harm: it was renewed now */
    put_beat("n1", 599, "a");
    expect("n1", NODE_READY);
    cluster_heartbeats_silence(beats);
    expect("n1", NODE_READY);
}

/* With a walk for each of them it would be minutes. */
Test(cluster_nodes, very_many_may_be_gone_at_once, .timeout = 120)
{
    enum { MANY = 100000 };
    for (unsigned i = 0; i < MANY; i++) {
        char json[64];
        int n = snprintf(json, sizeof json, "{\"metadata\":{\"name\":\"b%u\"}}",
                         i);
        cluster_heartbeats_handler.put(beats, json, (size_t)n);
        cluster_nodes_handler.put(nodes, json, (size_t)n);
    }
    cluster_heartbeats_handler.list(beats);
    cluster_heartbeats_handler.listed(beats);
    cluster_nodes_handler.list(nodes);
    cluster_nodes_handler.listed(nodes);
}

Test(cluster_nodes, only_a_change_of_the_lease_is_a_heartbeat)
{
    cluster_heartbeats_handler.list(beats);
    put_beat("n1", 600, "a");
    cluster_heartbeats_handler.listed(beats);
    expect("n1", NODE_STALE);
    put_beat("n1", 600, "a"); /* e.g. its labels */
    expect("n1", NODE_STALE);
    put_beat("n1", 600, "b");
    expect("n1", NODE_READY);
    cluster_heartbeats_handler.put(beats, "{}", 2); /* passed over */
    cluster_heartbeats_handler.gone(beats, "[]", 2);
    expect("n1", NODE_READY);
}
