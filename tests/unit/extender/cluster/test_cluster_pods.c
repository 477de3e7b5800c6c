#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "extender/app/app_metrics.h"
#include "extender/cluster/cluster_parts.h"
#include "extender/pods/pending_demands.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simstate.h"

/* `there` binds, as another replica; `app` is told. */
static struct writer *there;
static struct {
    struct writer *writer;
    struct metrics *metrics;
    struct pending_demands *demands;
    struct demand_config demand;
} app;
static struct feed *feed;
static struct cluster_pods *c;
static struct str told;     /* what a listener was told */
static struct str told_why; /* who was told to have no allocation */
static const char *busy;

static bool is_busy(void *ctx, const char *uid)
{
    (void)ctx;
    return busy && strcmp(uid, busy) == 0;
}

static void on_unaccounted(void *ctx, const struct kube_pod *pod,
                           const char *why)
{
    (void)ctx;
    (void)why;
    str_addf(&told_why, "%s ", pod->demand.name);
}

/* Of a pod that has ended, whether it still has its place, too. */
static void on_put(void *ctx, const struct kube_pod *pod)
{
    (void)ctx;
    str_addf(&told, "+%s ", pod->demand.name);
    if (pod->phase != POD_SUCCEEDED)
        return;
    writer_sweep(app.writer); /* it has done what it was given before */
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app.writer);
    if (alloc_index_find(s->allocations, "ns", pod->demand.name))
        str_add(&told, "placed ");
}

static void on_gone(void *ctx, const char *uid)
{
    (void)ctx;
    str_addf(&told, "-%s ", uid);
}

static void on_listed(void *ctx)
{
    (void)ctx;
    str_add(&told, ". ");
}

static void set_up(void)
{
    there = sim_writer(NULL);
    app.writer = sim_writer(NULL);
    app.metrics = app_metrics_create();
    app.demands = pending_demands_create();
    demand_config_default(&app.demand);
    for (unsigned i = 1; i <= 2; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%u", i);
        cr_assert_eq(sim_publish(there, name, 4, "boot", 1), 0);
        cr_assert_eq(sim_publish(app.writer, name, 4, "boot", 1), 0);
    }
    feed = feed_create(app.writer);
    c = cluster_pods_create(
        &(struct cluster_pods_config){.feed = feed,
                                      .writer = app.writer,
                                      .metrics = app.metrics,
                                      .demands = app.demands,
                                      .demand = &app.demand,
                                      .is_busy = is_busy,
                                      .unaccounted = on_unaccounted});
    cluster_pods_listen(c, &(struct pod_listener){.put = on_put,
                                                  .gone = on_gone,
                                                  .listed = on_listed});
    str_init(&told, 65536);
    str_init(&told_why, 65536);
    busy = NULL;
}

static void tear_down(void)
{
    feed_destroy(feed);
    cluster_pods_destroy(c);
    writer_stop(app.writer);
    writer_stop(there);
    pending_demands_destroy(app.demands);
    metrics_destroy(app.metrics);
    str_fini(&told);
    str_fini(&told_why);
}

TestSuite(cluster_pods, .init = set_up, .fini = tear_down);

static char *pod_text(const char *name, const char *node, const char *phase,
                      const char *allocation)
{
    cleanup_str struct str out = STR_INIT(65536);
    str_addf(&out,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":"
             "\"uid-%s\",\"labels\":{\"biga.dev/role\":\"host\"},"
             "\"annotations\":{\"biga.dev/cards\":\"1\"",
             name, name);
    if (allocation) {
        str_add(&out, ",\"biga.dev/allocation\":");
        str_add_json(&out, allocation);
    }
    str_add(&out, "}},\"spec\":{\"containers\":[{\"name\":\"main\"}]");
    if (node)
        str_addf(&out, ",\"nodeName\":\"%s\"", node);
    str_addf(&out, "},\"status\":{\"phase\":\"%s\"}}", phase);
    return str_steal(&out);
}

/* Bind it there; the text of its allocation. */
static char *bind_there(const char *name, const char *node)
{
    struct demand d = sim_pod(name, ROLE_HOST, "", 0);
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(65536);
    cr_assert_eq(sim_bind(there, &d, node, NULL, &err), 0, "%s", err.text);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(there);
    allocation_encode(alloc_index_find(s->allocations, "ns", name), &out);
    return str_steal(&out);
}

/* With an annotation that is none, or another instead. */
static void put_noted(const char *name, const char *key)
{
    char json[512];
    (void)snprintf(
        json, sizeof json,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":"
        "\"uid-%s\",\"labels\":{\"biga.dev/role\":\"host\"},"
        "\"annotations\":{\"%s\":\"pix\"}},\"spec\":{}}",
        name, name, key);
    cluster_pods_handler.put(c, json, strlen(json));
}

static void put(const char *name, const char *node, const char *phase,
                const char *allocation)
{
    cleanup_free char *json = pod_text(name, node, phase, allocation);
    cluster_pods_handler.put(c, json, strlen(json));
}

static void gone(const char *name)
{
    cleanup_free char *json = pod_text(name, NULL, "Running", NULL);
    cluster_pods_handler.gone(c, json, strlen(json));
}

/* "ns/a@n1 ns/b@n2 ", once the writer has heard all. */
static void expect(const char *text)
{
    struct writer_op op = {.kind = WRITER_LIST_SLICES,
                           .limit = 1,
                           .out = STR_INIT(STR_MAX_DEFAULT)};
    cleanup_str struct str is = STR_INIT(65536);
    (void)writer_run(app.writer, &op);
    str_fini(&op.out);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app.writer);
    size_t n;
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++)
        str_addf(&is, "%s@%s ", list[i]->demand.name, list[i]->node);
    cr_expect_str_eq(str_text(&is), text);
}

Test(cluster_pods, bound_pods_have_what_they_say)
{
    cleanup_free char *a = bind_there("a", "n1");
    cleanup_free char *b = bind_there("b", "n2");
    cluster_pods_handler.list(c);
    put("a", "n1", "Running", a);
    put("b", "n2", "Pending", b);
    cluster_pods_handler.listed(c);
    expect("a@n1 b@n2 ");
    cr_expect(cluster_pods_is_bound(c, "uid-a"));
    put("a", "n1", "Succeeded", a);
    expect("b@n2 ");
    gone("b");
    expect("");
    cr_expect_str_eq(str_text(&told), "+a +b . +a placed -uid-b ");
}

Test(cluster_pods, what_is_not_listed_again_is_gone)
{
    cleanup_free char *a = bind_there("a", "n1");
    cleanup_free char *b = bind_there("b", "n2");
    put("a", "n1", "Running", a);
    put("b", "n2", "Running", b);
    put("w", NULL, "Pending", NULL);
    cluster_pods_handler.list(c);
    put("b", "n2", "Running", b);
    expect("a@n1 b@n2 ");
    cluster_pods_handler.listed(c);
    expect("b@n2 ");
    struct demand d;
    cr_expect_not(cluster_pods_find(c, "uid-w", &d));
}

Test(cluster_pods, a_key_that_is_none_is_known_and_refuses_nothing)
{
    cleanup_str struct str text = STR_INIT(1024);
    struct demand d;
    put_noted("a", "biga.dev/aling");
    cr_expect(cluster_pods_find(c, "uid-a", &d));
    cr_expect_eq(d.align, RELATION_SYS);
    cr_expect(cluster_pods_find_unknown_key(c, "ns", "a", &text));
    cr_expect_str_eq(str_text(&text),
                     "metadata.annotations[\"biga.dev/aling\"]: is no key of "
                     "Biga; did you mean biga.dev/align?");
    cr_expect_not(cluster_pods_find_unknown_key(c, "other", "a", &text));
    put_noted("a", "biga.dev/align"); /* it was mended */
    cr_expect_not(cluster_pods_find_unknown_key(c, "ns", "a", &text));
    cr_expect(cluster_pods_find(c, "uid-a", &d));
    cr_expect_eq(d.align, RELATION_PIX);
}

/* What this replica has decided, and its binder works at. */
Test(cluster_pods, a_bind_under_way_is_kept)
{
    struct demand d = sim_pod("a", ROLE_HOST, "", 0);
    struct demand e = sim_pod("b", ROLE_HOST, "", 0);
    struct demand f = sim_pod("f", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(app.writer, &d, "n1", NULL, NULL), 0);
    cr_assert_eq(sim_bind(app.writer, &e, "n1", NULL, NULL), 0);
    cr_assert_eq(sim_bind(app.writer, &f, "n2", NULL, NULL), 0);
    put("x", NULL, "Pending", NULL); /* later than these */
    busy = "uid-a";
    cluster_pods_handler.list(c);
    put("f", NULL, "Pending", NULL); /* the list is older than its bind */
    cluster_pods_handler.listed(c);
    expect("a@n1 f@n2 ");
}

Test(cluster_pods, what_is_bound_after_the_list_was_asked_for_stays)
{
    struct demand d = sim_pod("a", ROLE_HOST, "", 0);
    put("x", NULL, "Pending", NULL);
    cr_assert_eq(sim_bind(app.writer, &d, "n1", NULL, NULL), 0);
    cluster_pods_handler.list(c);
    cluster_pods_handler.listed(c);
    expect("a@n1 ");
}

Test(cluster_pods, pods_win_over_what_was_decided)
{
    struct demand d = sim_pod("a", ROLE_HOST, "", 0);
    cleanup_free char *a = bind_there("a", "n2");
    cr_assert_eq(sim_bind(app.writer, &d, "n1", NULL, NULL), 0);
    put("a", "n2", "Running", a);
    expect("a@n2 ");
    const char *healed = "healed", *adopted = "adopted";
    cr_expect_eq(metrics_get(app.metrics, APP_ADOPTIONS, &healed), 1);
    put("b", "n2", "Running", NULL);
    cleanup_free char *b = bind_there("b", "n2");
    put("b", "n2", "Running", b);
    expect("a@n2 b@n2 ");
    cr_expect_eq(metrics_get(app.metrics, APP_ADOPTIONS, &adopted), 1);
    cr_expect_eq(metrics_get(app.metrics, APP_ADOPTIONS, &healed), 1);
}

static void expect_unaccounted(const char *name, const char *word)
{
    cleanup_str struct str out = STR_INIT(65536);
    cluster_pods_write(c, &out);
    cr_expect(strstr(str_text(&out), name) && strstr(str_text(&out), word),
              "%s", str_text(&out));
}

Test(cluster_pods, allocations_that_are_not_the_pods_are_reported)
{
    cleanup_free char *a = bind_there("a", "n1");
    put("a", "n2", "Running", a);
    expect_unaccounted("\"pod\":\"a\"", "node: is \\\"n1\\\"");
    put("b", "n1", "Running", a);
    expect_unaccounted("\"pod\":\"b\"", "pod.name: is \\\"a\\\"");
    put("d", "n1", "Running", NULL);
    expect_unaccounted("\"pod\":\"d\"", "bound without");
    put("e", "n1", "Running", "{\"node\":");
    expect_unaccounted("\"pod\":\"e\"", "biga.dev/allocation");
    expect("");
    cr_expect_eq(cluster_pods_n_unaccounted(c), 4);
    cleanup_str struct str text = STR_INIT(4096);
    cr_expect(cluster_pods_find_unaccounted(c, "ns", "d", &text));
    cr_expect(strstr(str_text(&text), "on node n1, bound without"), "%s",
              str_text(&text));
    cr_expect_not(cluster_pods_find_unaccounted(c, "other", "d", &text));
    cr_expect_str_eq(str_text(&told_why), "a b d e ");
    put("a", "n1", "Running", a);
    expect("a@n1 ");
    gone("b");
    gone("d");
    gone("e");
    cr_expect_eq(cluster_pods_n_unaccounted(c), 0);
}

static void *ask_always(void *ctx)
{
    atomic_bool *over = ctx;
    cleanup_str struct str out = STR_INIT(65536);
    while (!*over) {
        str_reset(&out);
        cluster_pods_write(c, &out);
    }
    return NULL;
}

/* A reader finds each of them with its node and the reason, at any time. */
Test(cluster_pods, who_asks_meanwhile_reads_whole_ones)
{
    atomic_bool over = false;
    pthread_t reader;
    log_set_level(LOG_ERROR);
    cr_assert_eq(pthread_create(&reader, NULL, ask_always, &over), 0);
    for (int i = 0; i < ROUNDS_OF(20000); i++) {
        put("a", "n1", "Running", NULL);
        gone("a");
    }
    over = true;
    (void)pthread_join(reader, NULL);
}

/* It runs on its cards whatever is made of its annotation. */
Test(cluster_pods, an_annotation_that_is_lost_frees_no_cards)
{
    cleanup_free char *a = bind_there("a", "n1");
    put("a", "n1", "Running", a);
    put("a", "n1", "Running", NULL);
    expect_unaccounted("\"pod\":\"a\"", "bound without");
    expect("a@n1 ");
    put("a", "n1", "Running", "{\"node\":");
    expect("a@n1 ");
    cluster_pods_handler.list(c);
    put("a", "n1", "Running", NULL);
    cluster_pods_handler.listed(c);
    expect("a@n1 ");
    put("a", "n1", "Running", a);
    cr_expect_eq(cluster_pods_n_unaccounted(c), 0);
    put("a", "n1", "Running", NULL);
    put("a", "n1", "Succeeded", NULL);
    expect("");
}

/* A hundred thousand pods that came and went in a gap; with a walk for each it
 * would be minutes. */
Test(cluster_pods, many_that_are_gone_are_forgotten_at_once, .timeout = 180)
{
    enum { MANY = 100000 };
    char name[16];
    cluster_pods_handler.list(c);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        put(name, "n1", "Succeeded", NULL);
        str_reset(&told);
    }
    cluster_pods_handler.listed(c);
    str_reset(&told);
    cluster_pods_handler.list(c);
    cluster_pods_handler.listed(c);
    expect("");
}

Test(cluster_pods, pods_that_wait_are_known)
{
    struct demand d, seen;
    put("a", NULL, "Pending", NULL);
    cr_assert(cluster_pods_find(c, "uid-a", &d));
    cr_expect_eq(d.role, ROLE_HOST);
    cr_expect(pending_demands_find_uid(app.demands, "uid-a", &seen));
    /* what filter saw is not overwritten */
    struct demand asked = sim_pod("b", ROLE_HOST, "", 0);
    asked.cards = asked.pair_cards = 3;
    pending_demands_put(app.demands, &asked);
    put("b", NULL, "Pending", NULL);
    cr_assert(pending_demands_find_uid(app.demands, "uid-b", &seen));
    cr_expect_eq(seen.cards, 3);
    put("a", "n1", "Pending", NULL);
    cr_expect_not(cluster_pods_find(c, "uid-a", &d));
    gone("b");
    cr_expect_not(pending_demands_find_uid(app.demands, "uid-b", &seen));
}

#define REFUSED                                                        \
    "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\"," \
    "\"reason\":\"Unschedulable\"}],"

static void put_status(const char *meta, const char *spec, const char *status)
{
    cleanup_str struct str json = STR_INIT(4096);
    str_addf(
        &json,
        "{\"metadata\":{\"name\":\"h\",\"namespace\":\"ns\",\"uid\":\"u\","
        "\"labels\":{\"biga.dev/role\":\"host\",\"biga.dev/job\":\"j\"}%s},"
        "\"spec\":{%s},\"status\":{%s}}",
        meta, spec, status);
    cluster_pods_handler.put(c, str_text(&json), json.size);
}

static bool comes_to(const char *node)
{
    char key[DEMAND_PAIR_KEY_MAX];
    struct demand d = sim_pod("x", ROLE_XPU, "j", 0);
    demand_pair_key(&d, key);
    expect("");
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app.writer);
    const char *is = moving_pods_pair_node(s->moves, key, d.uid);
    return node ? is && strcmp(is, node) == 0 : !is;
}

static bool is_leaving(void)
{
    expect("");
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app.writer);
    return moving_pods_is_leaving(s->moves, "u");
}

Test(cluster_pods, who_comes_and_who_leaves_is_known)
{
    put_status("", "", "");
    cr_expect(comes_to(NULL));
    put_status("", "", "\"nominatedNodeName\":\"n1\"");
    cr_expect(comes_to(NULL), "it is about to be bound");
    put_status("", "", REFUSED "\"nominatedNodeName\":\"n1\"");
    cr_expect(comes_to("n1"));
    put_status("", "\"schedulingGroup\":{\"podGroupName\":\"g\"}",
               REFUSED "\"nominatedNodeName\":\"n1\"");
    cr_expect(comes_to(NULL), "its group is planned as a whole");
    put_status("", "", REFUSED "\"nominatedNodeName\":\"n2\"");
    cr_expect(comes_to("n2"));
    put_status("", "\"nodeName\":\"n2\"", "\"nominatedNodeName\":\"n2\"");
    cr_expect(comes_to(NULL), "it is there");
    cr_expect_not(is_leaving());
    put_status(",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"",
               "\"nodeName\":\"n2\"", "");
    cr_expect(is_leaving());
    put_status("", "\"nodeName\":\"n2\"", "\"phase\":\"Failed\"");
    cr_expect_not(is_leaving(), "it is gone");
}

Test(cluster_pods, nonsense_is_passed_over)
{
    cluster_pods_handler.put(c, "{", 1);
    cluster_pods_handler.put(c, "{\"metadata\":{}}", 15);
    cluster_pods_handler.gone(c, "[]", 2);
    expect("");
    cr_expect_str_eq(str_text(&told), "");
}
