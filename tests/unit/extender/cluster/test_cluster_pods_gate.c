/* Pods whose gate Biga has opened: they have what they say, bound or not. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/app/app_metrics.h"
#include "extender/cluster/cluster_parts.h"
#include "extender/pods/pending_demands.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"

/* `there` decides, as the replica that leads; the others are told. */
static struct writer *there, *here;
static struct metrics *metrics;
static struct pending_demands *demands;
static struct demand_config demand;
static struct feed *feed;
static struct cluster_pods *c;
static struct str told_why; /* who was told to have no allocation */
static char *decided;       /* of pod "a", on n1 */

static void on_unaccounted(void *ctx, const struct kube_pod *pod,
                           const char *why)
{
    (void)ctx;
    (void)why;
    str_addf(&told_why, "%s@%s ", pod->demand.name, pod->node);
}

static void set_up(void)
{
    struct demand d = sim_pod("a", ROLE_HOST, "", 0);
    cleanup_str struct str out = STR_INIT(65536);
    log_set_level(LOG_ERROR);
    there = sim_writer(NULL);
    here = sim_writer(NULL);
    metrics = app_metrics_create();
    demands = pending_demands_create();
    demand_config_default(&demand);
    for (unsigned i = 1; i <= 2; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%u", i);
        cr_assert_eq(sim_publish(there, name, 4, "boot", 1), 0);
        cr_assert_eq(sim_publish(here, name, 4, "boot", 1), 0);
    }
    feed = feed_create(here);
    c = cluster_pods_create(
        &(struct cluster_pods_config){.feed = feed,
                                      .writer = here,
                                      .metrics = metrics,
                                      .demands = demands,
                                      .demand = &demand,
                                      .unaccounted = on_unaccounted});
    str_init(&told_why, 65536);
    cr_assert_eq(sim_bind(there, &d, "n1", NULL, NULL), 0);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(there);
    allocation_encode(alloc_index_find(s->allocations, "ns", "a"), &out);
    decided = str_steal(&out);
}

static void tear_down(void)
{
    feed_destroy(feed);
    cluster_pods_destroy(c);
    writer_stop(here);
    writer_stop(there);
    pending_demands_destroy(demands);
    metrics_destroy(metrics);
    str_fini(&told_why);
    free(decided);
}

TestSuite(cluster_pods_gate, .init = set_up, .fini = tear_down);

/* Of uid "uid-NAME"; `gate`, `node` and `allocation` may be NULL: none. */
static void put(const char *name, const char *gate, const char *node,
                const char *allocation)
{
    cleanup_str struct str json = STR_INIT(65536);
    str_addf(&json,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":"
             "\"uid-%s\",\"labels\":{\"biga.dev/role\":\"host\"},"
             "\"annotations\":{\"biga.dev/cards\":\"1\"",
             name, name);
    if (allocation) {
        str_add(&json, ",\"biga.dev/allocation\":");
        str_add_json(&json, allocation);
    }
    str_add(&json, "}},\"spec\":{\"containers\":[]");
    if (gate)
        str_addf(&json, ",\"schedulingGates\":[{\"name\":\"%s\"}]", gate);
    if (node)
        str_addf(&json, ",\"nodeName\":\"%s\"", node);
    str_add(&json, "},\"status\":{\"phase\":\"Pending\"}}");
    cluster_pods_handler.put(c, json.data, json.size);
}

/* "a@n1 ", once the writer has heard all. */
static void expect(const char *text)
{
    struct writer_op op = {.kind = WRITER_LIST_SLICES,
                           .limit = 1,
                           .out = STR_INIT(STR_MAX_DEFAULT)};
    cleanup_str struct str is = STR_INIT(65536);
    size_t n;
    (void)writer_run(here, &op);
    str_fini(&op.out);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(here);
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++)
        str_addf(&is, "%s@%s ", list[i]->demand.name, list[i]->node);
    cr_expect_str_eq(str_text(&is), text);
}

static void expect_adoptions(const char *how, int64_t n)
{
    cr_expect_eq(metrics_get(metrics, APP_ADOPTIONS, &how), n, "%s", how);
}

Test(cluster_pods_gate, an_open_pod_has_what_it_says)
{
    put("a", "biga.dev/place", NULL, NULL);
    cr_expect_not(cluster_pods_is_bound(c, "uid-a"));
    put("a", NULL, NULL, decided);
    expect("a@n1 ");
    cr_expect(cluster_pods_is_bound(c, "uid-a"));
    expect_adoptions("adopted", 1);
    put("a", NULL, "n1", decided);
    expect("a@n1 ");
    cr_expect(cluster_pods_is_bound(c, "uid-a"));
    expect_adoptions("known", 1);
    expect_adoptions("healed", 0);
    cr_expect_str_eq(str_text(&told_why), "");
    cr_expect_eq(cluster_pods_n_unaccounted(c), 0);
}

/* A list finds it open still: nothing is given back. */
Test(cluster_pods_gate, an_open_pod_is_kept_by_a_list)
{
    put("a", NULL, NULL, decided);
    cluster_pods_handler.list(c);
    put("a", NULL, NULL, decided);
    cluster_pods_handler.listed(c);
    expect("a@n1 ");
    cluster_pods_handler.list(c);
    cluster_pods_handler.listed(c);
    expect("");
}

Test(cluster_pods_gate, an_annotation_behind_a_closed_gate_is_nothing)
{
    put("a", "biga.dev/place", NULL, decided);
    expect("");
    cr_expect_not(cluster_pods_is_bound(c, "uid-a"));
    put("a", "kueue.x-k8s.io/admission", NULL, decided);
    expect("");
    cr_expect_not(cluster_pods_is_bound(c, "uid-a"));
}

/* Nor is one of another pod, or that is none: the pod waits as any other.  A
 * leader that begins does not wait for what its watch has shown already. */
Test(cluster_pods_gate, what_is_no_allocation_of_it_is_nothing)
{
    static const char *const broken[] = {"", "{", "{}", "null"};
    struct demand d;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        put("a", NULL, NULL, broken[i]);
        expect("");
        cr_expect(cluster_pods_find(c, "uid-a", &d), "%s", broken[i]);
        cr_expect(cluster_pods_is_bound(c, "uid-a"));
    }
    put("b", NULL, NULL, decided);
    expect("");
    cr_expect(cluster_pods_find(c, "uid-b", &d));
    cr_expect(cluster_pods_is_bound(c, "uid-b"));
    cr_expect_eq(cluster_pods_n_unaccounted(c), 0);
    put("b", NULL, "n1", decided);
    cr_expect_str_eq(str_text(&told_why), "b@n1 ");
    expect("");
}

/* Before it runs anywhere: nobody would give it what it had. */
Test(cluster_pods_gate, an_open_pod_that_loses_it_has_nothing)
{
    put("a", NULL, NULL, decided);
    expect("a@n1 ");
    put("a", NULL, NULL, "{");
    expect("");
    put("a", NULL, NULL, decided);
    expect("a@n1 ");
    put("a", NULL, NULL, NULL);
    expect("");
    cr_expect_not(cluster_pods_is_bound(c, "uid-a"));
    put("a", NULL, "n1", decided);
    expect("a@n1 ");
    cr_expect_str_eq(str_text(&told_why), "");
}

/* By somebody who does not heed its affinity. */
Test(cluster_pods_gate, an_open_pod_that_is_bound_elsewhere_is_told)
{
    put("a", NULL, NULL, decided);
    expect("a@n1 ");
    put("a", NULL, "n2", decided);
    cr_expect_str_eq(str_text(&told_why), "a@n2 ");
    expect("");
    cr_expect_eq(cluster_pods_n_unaccounted(c), 1);
}

/* It runs on its cards whatever is made of its annotation. */
Test(cluster_pods_gate, a_bound_pod_that_loses_it_keeps_its_cards)
{
    put("a", NULL, NULL, decided);
    put("a", NULL, "n1", decided);
    put("a", NULL, "n1", NULL);
    expect("a@n1 ");
    cr_expect_eq(cluster_pods_n_unaccounted(c), 1);
}
