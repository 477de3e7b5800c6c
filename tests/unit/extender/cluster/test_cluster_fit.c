/* What the reflector tells of Nodes and pods, in what is judged of nodes. */
#include "extender/cluster/cluster_fit.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/app/app_metrics.h"
#include "extender/pods/pending_demands.h"
#include "lib/io/log.h"
#include "tests/lib/podtext.h"
#include "tests/lib/sim/simstate.h"

static struct writer *writer;
static struct metrics *metrics;
static struct pending_demands *demands;
static struct demand_config demand;
static struct feed *feed;
static struct cluster_nodes *nodes;
static struct cluster_pods *pods;
static struct host_capacity *others;
static struct fit_nodes *fit;
static struct pod_needs *needs; /* one CPU */

static void set_up(void)
{
    static const char pod[] =
        "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":1}}}"
        "]}}";
    struct fabric_labels none = {.n_keys = 0};
    log_set_level(LOG_ERROR);
    writer = sim_writer(NULL);
    metrics = app_metrics_create();
    demands = pending_demands_create();
    demand_config_default(&demand);
    feed = feed_create(writer);
    nodes = cluster_nodes_create(feed, &none);
    pods =
        cluster_pods_create(&(struct cluster_pods_config){.feed = feed,
                                                          .writer = writer,
                                                          .metrics = metrics,
                                                          .demands = demands,
                                                          .demand = &demand});
    others = host_capacity_create(feed, &demand);
    fit = fit_nodes_create();
    cluster_fit_follow(fit, nodes, pods, others);
    cr_assert_eq(pod_needs_read(pod, sizeof pod - 1, &needs, NULL), 0);
}

static void tear_down(void)
{
    host_capacity_destroy(others);
    feed_destroy(feed);
    cluster_pods_destroy(pods);
    cluster_nodes_destroy(nodes);
    writer_stop(writer);
    pending_demands_destroy(demands);
    metrics_destroy(metrics);
    pod_needs_unref(needs);
    fit_nodes_destroy(fit);
}

TestSuite(cluster_fit, .init = set_up, .fini = tear_down, .timeout = 60);

typedef void tell_f(void *ctx, const char *json, size_t size);

static void tell(tell_f *f, void *ctx, const char *text)
{
    cleanup_free char *json = pod_quoted(text);
    f(ctx, json, strlen(json));
}

static void tell_node(tell_f *f, const char *name, int cpu)
{
    cleanup_free char *text =
        xasprintf("{'metadata':{'name':'%s'},'spec':{},'status':{"
                  "'allocatable':{'cpu':'%d','memory':'1Gi','pods':'9'}}}",
                  name, cpu);
    tell(f, nodes, text);
}

/* `labels`: "", or those of a role; it takes one CPU. */
static void tell_pod(tell_f *f, void *ctx, const char *name, const char *labels,
                     const char *more)
{
    cleanup_free char *text = xasprintf(
        "{'metadata':{'name':'%s','namespace':'ns','uid':'uid-%s',"
        "'labels':{%s},'annotations':{}},'spec':{'containers':[{'name':'c',"
        "'resources':{'requests':{'cpu':'1'}}}]%s}}",
        name, name, labels, more);
    tell(f, ctx, text);
}

#define HOST "'biga.dev/role':'host'"
#define BOUND ",'nodeName':'n1'"
#define ENDED BOUND "},'status':{'phase':'Succeeded'"

static void expect(const char *node, int64_t room)
{
    cr_expect_eq(fit_nodes_room(fit, needs, node), room, "%s: %lld, not %lld",
                 node, (long long)fit_nodes_room(fit, needs, node),
                 (long long)room);
}

Test(cluster_fit, follows_nodes)
{
    const struct reflector_handler *h = &cluster_nodes_handler;
    h->list(nodes);
    tell_node(h->put, "n1", 4);
    tell_node(h->put, "n2", 3);
    h->listed(nodes);
    expect("n1", 4);
    expect("n2", 3);
    tell_node(h->put, "n2", 5);
    expect("n2", 5);
    tell_node(h->gone, "n2", 5);
    expect("n2", 0);
    h->list(nodes);
    tell_node(h->put, "n3", 2);
    h->listed(nodes);
    expect("n1", 0);
    expect("n3", 2);
    tell(h->put, nodes, "{'metadata':{'name':'n3','labels':{'a':1}}}");
    expect("n3", 2);
}

Test(cluster_fit, follows_pods_without_a_role)
{
    const struct reflector_handler *h = &host_capacity_pods;
    tell_node(cluster_nodes_handler.put, "n1", 4);
    h->list(others);
    tell_pod(h->put, others, "a", "", BOUND);
    tell_pod(h->put, others, "b", "", BOUND);
    h->listed(others);
    expect("n1", 2);
    tell_pod(h->gone, others, "b", "", BOUND);
    expect("n1", 3);
    tell_pod(h->put, others, "a", "", ENDED);
    expect("n1", 4);
    tell_pod(h->put, others, "c", "", BOUND);
    h->list(others);
    h->listed(others);
    expect("n1", 4);
}

Test(cluster_fit, follows_pods_with_a_role)
{
    const struct reflector_handler *h = &cluster_pods_handler;
    tell_node(cluster_nodes_handler.put, "n1", 4);
    h->list(pods);
    tell_pod(h->put, pods, "a", HOST, "");
    tell_pod(h->put, pods, "b", HOST, BOUND);
    h->listed(pods);
    expect("n1", 3);
    /* opened: it is on its node at once, and until it is seen there */
    fit_nodes_assume(fit, "uid-a", "n1", needs);
    expect("n1", 2);
    tell_pod(h->put, pods, "a", HOST, "");
    expect("n1", 2);
    tell_pod(h->put, pods, "a", HOST, BOUND);
    cr_expect_eq(fit_nodes_n_assumed(fit), 0);
    fit_nodes_forget(fit, "uid-a");
    expect("n1", 2);
    tell_pod(h->gone, pods, "a", HOST, BOUND);
    expect("n1", 3);
    /* one that goes away unbound */
    tell_pod(h->put, pods, "c", HOST, "");
    fit_nodes_assume(fit, "uid-c", "n1", needs);
    expect("n1", 2);
    h->list(pods);
    tell_pod(h->put, pods, "b", HOST, ENDED);
    h->listed(pods);
    expect("n1", 4);
    cr_expect_eq(fit_nodes_n_assumed(fit), 0);
}
