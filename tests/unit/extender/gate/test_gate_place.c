/* Places for the pods of a unit: all or none, where kube-scheduler takes them,
 * and the same as by the extender's door. */
#include "extender/gate/gate_place.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "extender/judge/job.h"
#include "tests/lib/sim/simstate.h"

static struct writer *w;
static struct fit_nodes *fit;
static struct pending_demands *demands;
static struct gate_pods *pods;
static struct demand_config config;
static struct gate_place_config place;
static int n_requests; /* begun and not refused */
static struct gate_placing placing;
static struct gate_no_place no_place;

static void begin(void *ctx, const char *uid)
{
    (void)ctx;
    n_requests += uid[0] != '\0';
}

static void refuse(void *ctx, const struct demand *pod, const char *why)
{
    (void)ctx;
    cr_expect(*why);
    n_requests -= pod->uid[0] != '\0';
}

static struct writer *start_writer(void)
{
    struct writer_config c = {.store = STORE_KUBERNETES, .fresh_ms = 15000};
    struct writer *ret = NULL;
    struct error err = {0};
    cr_assert_eq(writer_start(&c, &ret, &err), 0, "%s", err.text);
    return ret;
}

static void set_up(void)
{
    w = start_writer();
    fit = fit_nodes_create();
    demands = pending_demands_create();
    pods = gate_pods_create();
    demand_config_default(&config);
    place = (struct gate_place_config){.writer = w,
                                       .fit = fit,
                                       .demands = demands,
                                       .begin = begin,
                                       .refuse = refuse};
    n_requests = 0;
}

static void tear_down(void)
{
    gate_placing_fini(&placing);
    gate_no_place_fini(&no_place);
    gate_pods_destroy(pods);
    pending_demands_destroy(demands);
    fit_nodes_destroy(fit);
    writer_stop(w);
}

TestSuite(gate_place, .init = set_up, .fini = tear_down);

/* A Node of so many cards; `has` are members of its allocatable. */
static void add_node(const char *name, unsigned n_cards, const char *spec,
                     const char *has)
{
    cleanup_free char *json =
        xasprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s},\"status\":{"
                  "\"allocatable\":{\"cpu\":\"8\",\"memory\":\"64Gi\"%s}}}",
                  name, spec, has);
    struct error err = {0};
    cr_assert_eq(fit_nodes_put(fit, json, strlen(json), &err), 0, "%s",
                 err.text);
    cr_assert_eq(sim_publish(w, name, n_cards, "boot", 1), 0);
}

#define PODS ",\"pods\":\"110\""
#define GPUS(n) PODS ",\"example.com/gpu\":\"" n "\""
#define ONE_GPU "\"example.com/gpu\":\"1\""

/* A closed pod; `asks` are members of its container's requests. */
static void add_pod(const char *name, const char *role, const char *job,
                    int pair, int size, const char *asks)
{
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":"
        "\"uid-%s\",\"labels\":{\"biga.dev/role\":\"%s\",\"biga.dev/job\":"
        "\"%s\",\"biga.dev/pair\":\"%d\"},\"annotations\":{\"biga.dev/size\":"
        "\"%d\",\"biga.dev/exclusive\":\"true\"}},\"spec\":{\"containers\":[{"
        "\"name\":\"c\",\"resources\":{\"requests\":{%s}}}],"
        "\"schedulingGates\":[{\"name\":\"biga.dev/place\"}]},\"status\":{}}",
        name, name, role, job, pair, size, asks);
    struct kube_pod pod;
    struct error err = {0};
    bool stray;
    cr_assert_eq(kube_pod_read(json, strlen(json), &config, &pod, &err), 0,
                 "%s", err.text);
    cr_assert_not(pod.broken, "%s", pod.why.text);
    gate_pods_put(pods, &pod, 0, &stray);
}

/* Host pods of a job that has no others. */
static void add_job(int size, const char *asks)
{
    for (int i = 0; i < size; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "h%d", i);
        add_pod(name, "host", "j", i, size, asks);
    }
}

static int run(const char *key, const struct strmap *avoid)
{
    cleanup_gate_unit struct gate_unit unit;
    gate_placing_fini(&placing);
    gate_no_place_fini(&no_place);
    cr_assert(gate_pods_unit(pods, key, &unit));
    cleanup_gate_unit struct gate_unit closed = {0};
    gate_unit_select(&unit, gate_pod_is_closed, NULL, &closed);
    return gate_place(&place, &closed, avoid, &placing, &no_place);
}

/* All that is allocated or held, as texts without numbers that count up. */
static char *content_of(struct writer *writer)
{
    size_t n;
    struct str out = STR_INIT(1 << 20);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++) {
        const struct allocation *a = list[i];
        str_addf(&out, "%s%s@%s", a->held ? "held " : "", a->demand.name,
                 a->node);
        for (size_t k = 0; k < a->n_cards; k++)
            str_addf(&out, " %s", a->cards[k]);
        str_add(&out, "\n");
    }
    str_addf(&out, "%s", "");
    return str_steal(&out);
}

static void expect_nothing(const char *before)
{
    cleanup_free char *after = content_of(w);
    cr_expect_str_eq(after, before);
    cr_expect_eq(n_requests, 0, "%d", n_requests);
    cr_expect_eq(fit_nodes_n_assumed(fit), (size_t)0);
    cr_expect_eq(placing.n, (size_t)0);
}

static void expect_lacks(const char *part)
{
    cr_expect(strstr(str_text(&no_place.text), part), "\"%s\" lacks \"%s\"",
              str_text(&no_place.text), part);
}

static size_t count_on(const char *node)
{
    size_t n = 0;
    for (size_t i = 0; i < placing.n; i++)
        n += strcmp(placing.pods[i].node, node) == 0;
    return n;
}

static void expect_sound(void)
{
    cleanup_str struct str why = STR_INIT(4096);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cr_expect(sim_check(s, &why), "%s", str_text(&why));
    cr_expect_eq(n_requests, (int)placing.n);
    cr_expect_eq(fit_nodes_n_assumed(fit), placing.n);
    for (size_t i = 0; i < placing.n; i++) {
        const struct gate_placed *p = &placing.pods[i];
        const struct allocation *a = alloc_index_find_uid(s->allocations,
                                                          p->demand.uid);
        cr_assert(a);
        cr_expect_str_eq(a->node, p->node);
        cr_expect_eq(a->number, p->number);
        cr_expect(strstr(p->allocation, p->node));
    }
}

Test(gate_place, a_pair_is_on_one_node)
{
    add_node("n1", 4, "", PODS);
    add_node("n2", 4, "", PODS);
    add_pod("x", "xpu", "j", 0, 1, "");
    add_pod("h", "host", "j", 0, 1, "");
    cr_assert_eq(run("ns/j/0", NULL), 0, "%s", str_text(&no_place.text));
    cr_assert_eq(placing.n, (size_t)2);
    cr_expect_str_eq(placing.pods[0].demand.name, "h");
    cr_expect_str_eq(placing.pods[0].node, placing.pods[1].node);
    expect_sound();
    gate_unplace(&place, &placing, "tried enough");
    gate_placing_fini(&placing);
    expect_nothing("");
}

Test(gate_place, a_job_has_all_its_places_or_none)
{
    add_node("n1", 2, "", PODS);
    add_node("n2", 2, "", PODS);
    add_job(5, "");
    cleanup_free char *before = content_of(w);
    cr_assert_eq(run("ns/j/", NULL), -EBUSY);
    expect_nothing(before);
    cr_expect(no_place.no_room);
    cr_expect_eq(no_place.n_nodes, (size_t)2);
    expect_lacks("5");
    gate_pods_gone(pods, "uid-h4");
    for (int i = 0; i < 4; i++)
        gate_pods_gone(
            pods, (const char *[]){"uid-h0", "uid-h1", "uid-h2", "uid-h3"}[i]);
    add_job(4, "");
    cr_assert_eq(run("ns/j/", NULL), 0, "%s", str_text(&no_place.text));
    cr_expect_eq(count_on("n1"), (size_t)2);
    cr_expect_eq(count_on("n2"), (size_t)2);
    expect_sound();
}

Test(gate_place, kube_scheduler_says_which_nodes)
{
    add_node("n1", 4,
             "\"taints\":[{\"key\":\"dedicated\",\"value\":\"infra\","
             "\"effect\":\"NoSchedule\"}]",
             PODS);
    add_node("n2", 4, "\"unschedulable\":true", PODS);
    add_job(1, "");
    cr_assert_eq(run("ns/j/0", NULL), -EBUSY);
    expect_lacks("of 2 nodes kube-scheduler would take 0");
    expect_lacks("untolerated taint(s) {dedicated: infra}");
    cr_expect_not(no_place.no_room, "nobody is in its way");
    expect_nothing("");
    add_node("n3", 1, "", PODS);
    cr_assert_eq(run("ns/j/0", NULL), 0, "%s", str_text(&no_place.text));
    cr_expect_str_eq(placing.pods[0].node, "n3");
    expect_sound();
}

/* It is said how kube-scheduler narrows it, then why none of the rest will
 * do. */
Test(gate_place, both_reasons_are_told)
{
    add_node("n1", 4, "\"unschedulable\":true", PODS);
    add_node("n2", 1, "", PODS);
    add_job(2, "");
    cr_assert_eq(run("ns/j/", NULL), -EBUSY);
    expect_lacks("of 2 nodes kube-scheduler would take 1");
    expect_lacks("; of these: ");
    cr_expect(no_place.no_room);
    cr_expect_eq(no_place.n_nodes, (size_t)1);
    expect_nothing("");
}

Test(gate_place, nodes_are_passed_over)
{
    struct strmap avoid = {0};
    add_node("n1", 4, "", PODS);
    add_node("n2", 4, "", PODS);
    add_job(2, "");
    cr_assert_eq(run("ns/j/", NULL), 0);
    cleanup_free char *first = xstrdup(placing.pods[0].node);
    cr_expect_eq(count_on(first), (size_t)2, "both on one node");
    gate_unplace(&place, &placing, "kube-scheduler refuses it");
    (void)strmap_put(&avoid, first, first);
    cr_assert_eq(run("ns/j/", &avoid), 0);
    cr_expect_eq(count_on(first), (size_t)0);
    expect_sound();
    strmap_fini(&avoid);
}

/* By Biga's own judgement both pairs are on one node, which has one GPU. */
Test(gate_place, a_resource_that_runs_out_is_sought_elsewhere)
{
    add_node("n1", 4, "", GPUS("1"));
    add_node("n2", 4, "", GPUS("1"));
    add_node("n3", 4, "", GPUS("0"));
    add_job(2, ONE_GPU);
    cr_assert_eq(run("ns/j/", NULL), 0, "%s", str_text(&no_place.text));
    cr_expect_eq(count_on("n1"), (size_t)1);
    cr_expect_eq(count_on("n2"), (size_t)1);
    expect_sound();
}

Test(gate_place, each_node_takes_as_many_as_it_can)
{
    add_node("n1", 8, "", GPUS("2"));
    add_node("n2", 8, "", GPUS("3"));
    add_node("n3", 8, "", GPUS("1"));
    add_job(6, ONE_GPU);
    cr_assert_eq(run("ns/j/", NULL), 0, "%s", str_text(&no_place.text));
    cr_expect_eq(count_on("n1"), (size_t)2);
    cr_expect_eq(count_on("n2"), (size_t)3);
    cr_expect_eq(count_on("n3"), (size_t)1);
    expect_sound();
    gate_unplace(&place, &placing, "tried enough");
    gate_placing_fini(&placing);
    expect_nothing("");
}

Test(gate_place, a_resource_that_is_too_little_leaves_nothing)
{
    add_node("n1", 4, "", GPUS("1"));
    add_node("n2", 4, "", GPUS("1"));
    add_job(3, ONE_GPU);
    cr_assert_eq(run("ns/j/", NULL), -EBUSY);
    expect_nothing("");
    expect_lacks("Insufficient example.com/gpu");
}

/* The host pod fits on any node, both only on the last. */
Test(gate_place, a_pair_goes_where_both_fit)
{
    add_node("n1", 4, "", ",\"pods\":\"1\"");
    add_node("n2", 4, "", ",\"pods\":\"1\"");
    add_node("n3", 4, "", ",\"pods\":\"2\"");
    add_pod("h", "host", "j", 0, 1, "");
    add_pod("x", "xpu", "j", 0, 1, "");
    cr_assert_eq(run("ns/j/0", NULL), 0, "%s", str_text(&no_place.text));
    cr_expect_eq(count_on("n3"), (size_t)2);
    expect_sound();
}

/* Of several pairs, too: a node that is too full for one more takes those that
 * it can. */
Test(gate_place, pairs_go_where_both_fit)
{
    add_node("n1", 4, "", ",\"pods\":\"3\"");
    add_node("n2", 4, "", ",\"pods\":\"2\"");
    for (int i = 0; i < 2; i++) {
        add_pod(i ? "h1" : "h0", "host", "j", i, 2, "");
        add_pod(i ? "x1" : "x0", "xpu", "j", i, 2, "");
    }
    cr_assert_eq(run("ns/j/", NULL), 0, "%s", str_text(&no_place.text));
    cr_expect_eq(count_on("n1"), (size_t)2);
    cr_expect_eq(count_on("n2"), (size_t)2);
    expect_sound();
}

/* Whether the call that opened it has done so is not known: what it has stays,
 * whatever becomes of others. */
Test(gate_place, what_it_has_already_is_not_given_back)
{
    add_node("n1", 2, "", PODS);
    add_pod("h", "host", "j", 0, 1, "");
    cr_assert_eq(run("ns/j/0", NULL), 0);
    cleanup_free char *before = content_of(w);
    cr_assert_eq(run("ns/j/0", NULL), 0, "%s", str_text(&no_place.text));
    gate_unplace(&place, &placing, "another pod of its job has no place");
    cleanup_free char *after = content_of(w);
    cr_expect_str_eq(after, before);
}

/* --- the extender's door ------------------------------------------------ */

/* Binds as kube-scheduler does with the extender: pod by pod, each on the node
 * of its job's plan. */
static void bind_all(struct writer *writer, const struct gate_unit *unit)
{
    for (size_t i = 0; i < unit->n; i++) {
        const struct demand *d = &unit->pods[i]->demand;
        struct schedule schedule;
        struct plan_refusal refusal;
        struct error err = {0};
        cleanup_with(plan) struct plan *plan = NULL;
        cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
        schedule_init(&schedule, s, d);
        int32_t node = schedule.follows;
        if (node < 0 && job_is_placed(&schedule, NULL, 0)) {
            node = schedule.hold ? snapshot_find(s, schedule.hold->node,
                                                 strlen(schedule.hold->node))
                                 : NODE_NONE;
        } else if (node < 0) {
            cr_assert_eq(
                job_plan(NULL, s, d, NULL, 0, NODE_NONE, &plan, &refusal), 0);
            node = plan->places[job_rank(d)].node;
        }
        cr_assert_geq(node, 0);
        cr_assert_eq(sim_bind(writer, d, snapshot_node(s, (size_t)node)->name,
                              NULL, &err),
                     0, "%s", err.text);
    }
}

Test(gate_place, both_doors_decide_alike)
{
    struct writer *other = start_writer();
    uint64_t random = 5;
    for (unsigned i = 0; i < 12; i++) {
        char name[8];
        unsigned n_cards = 1 + sim_random(&random) % 8;
        (void)snprintf(name, sizeof name, "n%u", i);
        add_node(name, n_cards, "", PODS);
        cr_assert_eq(sim_publish(other, name, n_cards, "boot", 1), 0);
    }
    for (int k = 0; k < 8; k++) {
        char job[8], key[16], name[16];
        int size = 1 + (int)(sim_random(&random) % 5);
        (void)snprintf(job, sizeof job, "j%d", k);
        for (int i = 0; i < size; i++) {
            (void)snprintf(name, sizeof name, "%s-h%d", job, i);
            add_pod(name, "host", job, i, size, "");
            (void)snprintf(name, sizeof name, "%s-x%d", job, i);
            add_pod(name, "xpu", job, i, size, "");
        }
        (void)snprintf(key, sizeof key, size > 1 ? "ns/%s/" : "ns/%s/0", job);
        cleanup_gate_unit struct gate_unit unit;
        cr_assert(gate_pods_unit(pods, key, &unit), "%s", key);
        cr_assert_eq(run(key, NULL), 0, "%s", str_text(&no_place.text));
        bind_all(other, &unit);
        cleanup_free char *ours = content_of(w);
        cleanup_free char *theirs = content_of(other);
        cr_assert_str_eq(ours, theirs, "job %d", k);
    }
    writer_stop(other);
}
