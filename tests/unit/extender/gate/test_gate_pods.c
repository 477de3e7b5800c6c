/* Pods with a gate: what they are grouped by, in which order they come, and
 * what there is to do about a unit of them. */
#include "extender/gate/gate_pods.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static struct gate_pods *g;
static struct demand_config config;

static void set_up(void)
{
    g = gate_pods_create();
    demand_config_default(&config);
}

static void tear_down(void)
{
    gate_pods_destroy(g);
}

TestSuite(gate_pods, .init = set_up, .fini = tear_down);

/* A Pod of namespace "ns" and uid "uid-NAME", with the parts that are set. */
struct given {
    const char *name;
    const char *role; /* NULL: host */
    const char *job;
    int pair, size;
    int priority;
    const char *gates;  /* NULL: Biga's; "" none */
    const char *note;   /* an allocation */
    const char *node;   /* bound there */
    const char *phase;  /* NULL: Pending */
    const char *labels; /* more of them, and of each other part */
    const char *notes;
    const char *meta;
    const char *spec;
    bool refused;
};

#define PLACE "{\"name\":\"biga.dev/place\"}"
#define QUEUE "{\"name\":\"kueue.x-k8s.io/admission\"}"

static void write_metadata(const struct given *p, struct str *out)
{
    str_addf(out,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\","
             "\"uid\":\"uid-%s\",\"labels\":{\"biga.dev/role\":\"%s\"",
             p->name, p->name, p->role ? p->role : "host");
    if (p->job)
        str_addf(out, ",\"biga.dev/job\":\"%s\",\"biga.dev/pair\":\"%d\"",
                 p->job, p->pair);
    str_addf(out, "%s},\"annotations\":{\"x\":\"y\"%s",
             p->labels ? p->labels : "", p->notes ? p->notes : "");
    if (p->size)
        str_addf(out, ",\"biga.dev/size\":\"%d\"", p->size);
    if (p->note)
        str_addf(out, ",\"biga.dev/allocation\":\"%s\"", p->note);
    str_addf(out, "}%s}", p->meta ? p->meta : "");
}

static char *pod_text(const struct given *p)
{
    struct str out = STR_INIT(65536);
    write_metadata(p, &out);
    str_addf(&out, ",\"spec\":{\"priority\":%d,\"containers\":[]%s",
             p->priority, p->spec ? p->spec : "");
    if (!p->gates || *p->gates)
        str_addf(&out, ",\"schedulingGates\":[%s]",
                 p->gates ? p->gates : PLACE);
    if (p->node)
        str_addf(&out, ",\"nodeName\":\"%s\"", p->node);
    str_addf(&out, "},\"status\":{\"phase\":\"%s\"",
             p->phase ? p->phase : "Pending");
    if (p->refused)
        str_add(&out, ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
                      "\"False\",\"reason\":\"Unschedulable\"}]");
    str_add(&out, "}}");
    return str_steal(&out);
}

/* Was it opened by somebody else? */
static bool put_at(const struct given *p, int64_t now_ms)
{
    cleanup_free char *json = pod_text(p);
    struct kube_pod pod;
    struct error err = {0};
    bool stray;
    cr_assert_eq(kube_pod_read(json, strlen(json), &config, &pod, &err), 0,
                 "%s: %s", err.text, json);
    gate_pods_put(g, &pod, now_ms, &stray);
    return stray;
}

static bool put(const struct given *p)
{
    return put_at(p, 1000);
}

#define PUT(pod, ...) put(&(struct given){.name = (pod), ##__VA_ARGS__})

/* "ns/a ns/j/ ", as they are to be looked at. */
static void expect_turns(const char *wanted)
{
    cleanup_str struct str is = STR_INIT(4096);
    size_t n;
    cleanup_free struct gate_turn *turns = gate_pods_turns(g, &n);
    for (size_t i = 0; i < n; i++)
        str_addf(&is, "%s ", turns[i].key);
    cr_expect_str_eq(str_text(&is), wanted);
}

/* "a b ", in the order of the unit. */
static void expect_unit(const char *key, const char *wanted)
{
    cleanup_str struct str is = STR_INIT(4096);
    cleanup_gate_unit struct gate_unit unit;
    cr_expect_eq(gate_pods_unit(g, key, &unit), *wanted != '\0');
    for (size_t i = 0; i < unit.n; i++)
        str_addf(&is, "%s ", unit.pods[i]->demand.name);
    cr_expect_str_eq(str_text(&is), wanted);
}

/* `part` is in the text. */
static void expect_step(const char *key, int64_t now_ms, enum gate_step wanted,
                        const char *part)
{
    cleanup_str struct str text = STR_INIT(4096);
    cleanup_gate_unit struct gate_unit unit;
    cr_assert(gate_pods_unit(g, key, &unit), "%s is gone", key);
    enum gate_step step = gate_unit_judge(&unit, now_ms, &text);
    cr_expect_eq(step, wanted, "%s: %d: %s", key, (int)step, str_text(&text));
    cr_expect(strstr(str_text(&text), part), "\"%s\" lacks \"%s\"",
              str_text(&text), part);
}

/* --- grouping and order ------------------------------------------------- */

Test(gate_pods, a_pair_is_a_unit_and_so_is_a_job)
{
    PUT("x0", "xpu", "j", 0, 2);
    PUT("x1", "xpu", "j", 1, 2);
    PUT("h1", "host", "j", 1, 2);
    PUT("h0", "host", "j", 0, 2);
    PUT("pair-x", "xpu", "pair", 7);
    PUT("pair-h", "host", "pair", 7);
    PUT("alone");
    expect_turns("ns/j/ ns/pair/7 ns/alone ");
    expect_unit("ns/j/", "h0 x0 h1 x1 ");
    expect_unit("ns/pair/7", "pair-h pair-x ");
    expect_unit("ns/alone", "alone ");
    cr_expect_eq(gate_pods_count(g), 7);
    gate_pods_gone(g, "uid-pair-h");
    gate_pods_gone(g, "uid-pair-h");
    expect_unit("ns/pair/7", "pair-x ");
    gate_pods_gone(g, "uid-pair-x");
    expect_unit("ns/pair/7", "");
    cr_expect_eq(gate_pods_count(g), 5);
}

/* By the highest priority of its pods that wait, then as they came. */
Test(gate_pods, units_have_their_turn)
{
    PUT("a", .priority = 5);
    PUT("b", .priority = 5);
    PUT("c", .priority = 7);
    PUT("j0", .job = "j", .pair = 0, .size = 2);
    PUT("j1", .job = "j", .pair = 1, .size = 2, .priority = 6);
    PUT("d", .priority = -3);
    expect_turns("ns/c ns/j/ ns/a ns/b ns/d ");
    /* its turn stays as it changes; who has no gate any more has none */
    PUT("a", .priority = 5, .labels = ",\"l\":\"m\"");
    PUT("c", .priority = 7, .gates = "", .node = "n1", .note = "{}");
    PUT("j1", .job = "j", .pair = 1, .size = 2, .priority = 6,
        .meta = ",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"");
    expect_turns("ns/a ns/b ns/j/ ns/d ");
}

/* A unit has its turn until its last pod that waits has a place or goes. */
Test(gate_pods, who_waits_for_nothing_has_no_turn)
{
    PUT("j0", .job = "j", .pair = 0, .size = 2);
    PUT("j1", .job = "j", .pair = 1, .size = 2);
    PUT("j0", .job = "j", .pair = 0, .size = 2, .gates = "", .node = "n1",
        .note = "{}");
    expect_turns("ns/j/ ");
    gate_pods_gone(g, "uid-j0");
    expect_turns("ns/j/ ");
    PUT("j0", .job = "j", .pair = 0, .size = 2, .gates = "", .node = "n1",
        .note = "{}");
    gate_pods_gone(g, "uid-j1");
    expect_turns("");
    expect_unit("ns/j/", "j0 ");
    PUT("j1", .job = "j", .pair = 1, .size = 2);
    expect_turns("ns/j/ ");
}

Test(gate_pods, a_pod_is_found)
{
    PUT("a");
    cleanup_with(gate_pod) struct gate_pod *p = gate_pods_find(g, "ns", "a");
    cr_assert(p);
    cr_expect_eq(p->state, GATE_CLOSED);
    cr_expect(p->needs);
    cr_expect(p->json);
    cr_expect_null(gate_pods_find(g, "ns", "b"));
    cr_expect_null(gate_pods_find(g, "other", "a"));
    cr_expect_null(gate_pods_find_uid(g, "uid-b"));
    /* who has one keeps what it was */
    PUT("a", .gates = "", .node = "n1", .note = "{}");
    cr_expect_eq(p->state, GATE_CLOSED);
    cleanup_with(gate_pod) struct gate_pod *q = gate_pods_find_uid(g, "uid-a");
    cr_expect_eq(q->state, GATE_SETTLED);
    cr_expect(q->bound);
    cr_expect_null(q->json);
}

Test(gate_pods, a_pod_changes_its_unit_with_its_labels)
{
    PUT("a", .job = "j", .pair = 0, .size = 2);
    PUT("b", .job = "j", .pair = 1, .size = 2);
    expect_step("ns/j/", 0, GATE_PLACE, "");
    PUT("b", .job = "k", .pair = 1);
    expect_unit("ns/j/", "a ");
    expect_unit("ns/k/1", "b ");
    expect_step("ns/j/", 0, GATE_WAITS, "the host pod of pair 1");
    expect_step("ns/k/1", 0, GATE_PLACE, "");
    PUT("a", .job = "k", .pair = 1);
    expect_unit("ns/j/", "");
    expect_unit("ns/k/1", "a b ");
    PUT("a", .job = "k", .pair = 2);
    gate_pods_gone(g, "uid-a");
    expect_unit("ns/k/2", "");
}

Test(gate_pods, a_service_is_alone)
{
    PUT("s0", "service", "j", 0, 1);
    PUT("h0", "host", "j", 0, 1);
    expect_unit("ns/s0", "s0 ");
    expect_step("ns/s0", 0, GATE_PLACE, "");
    expect_unit("ns/j/0", "h0 ");
}

Test(gate_pods, others_are_none_of_them)
{
    PUT("a", .gates = "");
    PUT("b", .gates = "", .node = "n1");
    PUT("c", .gates = QUEUE);
    expect_turns("");
    cr_expect_eq(gate_pods_count(g), 0);
    expect_step("ns/a", 0, GATE_NOTHING, "");
    expect_step("ns/c", 0, GATE_NOTHING, "");
}

/* --- is it whole? ------------------------------------------------------- */

Test(gate_pods, a_job_waits_until_it_is_whole)
{
    PUT("h0", "host", "j", 0, 3);
    expect_step("ns/j/", 0, GATE_WAITS,
                "the host pod of pair 1, the host pod of pair 2");
    PUT("h1", "host", "j", 1, 3);
    PUT("h2", "host", "j", 2, 3);
    expect_step("ns/j/", 0, GATE_PLACE, "");
    PUT("x0", "xpu", "j", 0, 3);
    expect_step("ns/j/", 0, GATE_WAITS, "the xPU pod of pair 1");
    PUT("x1", "xpu", "j", 1, 3);
    PUT("x2", "xpu", "j", 2, 3);
    expect_step("ns/j/", 0, GATE_PLACE, "");
    PUT("h1", "host", "j", 1, 3,
        .meta = ",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"");
    expect_step("ns/j/", 0, GATE_WAITS, "the host pod of pair 1");
    gate_pods_gone(g, "uid-h1");
    expect_step("ns/j/", 0, GATE_WAITS, "the host pod of pair 1");
}

/* xPU pods are made for it: it is not whole without. */
Test(gate_pods, buddies_are_waited_for)
{
    static const char buddy[] = ",\"biga.dev/buddy\":\"card\"";
    PUT("h0", "host", "j", 0, 2, .notes = buddy);
    PUT("h1", "host", "j", 1, 2, .notes = buddy);
    expect_step("ns/j/", 0, GATE_WAITS, "the xPU pod of pair 0");
    PUT("x0", "xpu", "j", 0, 2);
    expect_step("ns/j/", 0, GATE_WAITS, "the xPU pod of pair 1");
    PUT("x1", "xpu", "j", 1, 2);
    expect_step("ns/j/", 0, GATE_PLACE, "");
}

/* By a leader before, or one after another when a pod was made anew. */
Test(gate_pods, a_job_that_has_begun_waits_for_nobody)
{
    PUT("h0", "host", "j", 0, 3, .gates = "", .note = "{}");
    PUT("h1", "host", "j", 1, 3);
    expect_step("ns/j/", 0, GATE_PLACE, "");
    PUT("h0", "host", "j", 0, 3, .gates = "", .note = "{}", .node = "n1",
        .phase = "Running");
    expect_step("ns/j/", 0, GATE_PLACE, "");
}

/* Pair 0 has done its work; pair 1 is tried once more. */
Test(gate_pods, who_has_succeeded_is_there)
{
    PUT("h0", "host", "j", 0, 2, .gates = "", .note = "{}", .node = "n1",
        .phase = "Succeeded");
    PUT("h1", "host", "j", 1, 2, .gates = "", .note = "{}", .node = "n1",
        .phase = "Failed");
    expect_step("ns/j/", 0, GATE_NOTHING, "");
    PUT("h1-again", "host", "j", 1, 2);
    expect_step("ns/j/", 0, GATE_PLACE, "");
}

/* The whole job has failed and comes again, pod by pod: all or none. */
Test(gate_pods, who_has_failed_is_waited_for)
{
    for (int i = 0; i < 2; i++)
        PUT(i ? "h1" : "h0", "host", "j", i, 2, .gates = "", .note = "{}",
            .node = "n1", .phase = "Failed");
    PUT("h1-again", "host", "j", 1, 2);
    expect_step("ns/j/", 0, GATE_WAITS, "the host pod of pair 0");
    PUT("h0-again", "host", "j", 0, 2);
    expect_step("ns/j/", 0, GATE_PLACE, "");
}

/* Those of an earlier one, which are about to go, have not begun this one. */
Test(gate_pods, who_leaves_has_not_begun)
{
    PUT("old", "host", "j", 0, 2, .gates = "", .note = "{}", .node = "n1",
        .phase = "Running", .meta = ",\"deletionTimestamp\":\"x\"");
    PUT("h1", "host", "j", 1, 2);
    expect_step("ns/j/", 0, GATE_WAITS, "the host pod of pair 0");
    PUT("h0", "host", "j", 0, 2);
    expect_step("ns/j/", 0, GATE_PLACE, "");
}

/* What remains of an earlier one of that name says nothing about its size. */
Test(gate_pods, the_size_is_that_of_who_waits)
{
    PUT("old", "host", "j", 0, 8, .gates = "", .node = "n1", .note = "{}",
        .phase = "Failed");
    PUT("h0", "host", "j", 0, 2);
    PUT("h1", "host", "j", 1, 2);
    expect_step("ns/j/", 0, GATE_PLACE, "");
}

/* --- what they wait for ------------------------------------------------- */

Test(gate_pods, other_gates_come_first)
{
    PUT("h0", "host", "j", 0, 2);
    PUT("h1", "host", "j", 1, 2, .gates = PLACE "," QUEUE);
    expect_step("ns/j/", 0, GATE_WAITS,
                "pod h1 has another scheduling gate, kueue.x-k8s.io/admission");
    PUT("h1", "host", "j", 1, 2);
    expect_step("ns/j/", 0, GATE_PLACE, "");
}

Test(gate_pods, what_breaks_the_contract_says_so)
{
    PUT("a", .notes = ",\"biga.dev/cards\":\"none\"");
    expect_turns("ns/a ");
    expect_step("ns/a", 0, GATE_WAITS, "pod a cannot be planned: ");
    expect_step("ns/a", 0, GATE_WAITS, "biga.dev/cards");
    cr_expect_eq(gate_pods_count(g), 1);
    PUT("a"); /* it was mended */
    expect_step("ns/a", 0, GATE_PLACE, "");
    cr_expect_not(PUT("a", .notes = ",\"biga.dev/cards\":\"none\""));
    expect_step("ns/a", 0, GATE_WAITS, "biga.dev/cards");
    gate_pods_gone(g, "uid-a");
    cr_expect_eq(gate_pods_count(g), 0);
    expect_turns("");
}

Test(gate_pods, a_job_is_not_begun_without_who_breaks_it)
{
    PUT("h0", "host", "j", 0, 2);
    PUT("h1", "host", "j", 1, 2);
    PUT("h1", "host", "j", 1, 2, .notes = ",\"biga.dev/cards\":\"none\"");
    expect_step("ns/j/", 0, GATE_WAITS, "the host pod of pair 1");
    expect_unit("ns/h1", "h1 ");
}

Test(gate_pods, what_cannot_be_read_says_so)
{
    cleanup_str struct str spec = STR_INIT(1 << 20);
    str_add(&spec, ",\"tolerations\":[{}");
    for (int i = 0; i < POD_NEEDS_TOLERATIONS_MAX; i++)
        str_add(&spec, ",{}");
    str_add(&spec, "]");
    PUT("a", .spec = str_text(&spec));
    expect_step("ns/a", 0, GATE_WAITS, "spec.tolerations");
}

/* --- somebody else ------------------------------------------------------ */

Test(gate_pods, a_gate_that_somebody_else_opens_is_told)
{
    cr_expect_not(PUT("a"));
    cr_expect(PUT("a", .gates = ""));
    cr_expect_not(PUT("a", .gates = ""), "once");
    expect_step("ns/a", 0, GATE_NOTHING, "");
    /* bound before it was seen open */
    cr_expect_not(PUT("b"));
    cr_expect(PUT("b", .gates = "", .node = "n1"));
    /* by Biga */
    cr_expect_not(PUT("c"));
    cr_expect_not(PUT("c", .gates = "", .note = "{}"));
    cr_expect_not(PUT("c", .gates = "", .note = "{}", .node = "n1"));
    cr_expect_not(PUT("d"));
    cr_expect_not(PUT("d", .gates = "", .note = "{}", .node = "n1"));
    /* it has ended before it began */
    cr_expect_not(PUT("e"));
    cr_expect_not(PUT("e", .phase = "Failed"));
    /* it had none when it came */
    cr_expect_not(PUT("f", .gates = ""));
    cr_expect_eq(gate_pods_count(g), 0);
}

/* An annotation on a pod whose gate is closed is nobody's decision. */
Test(gate_pods, a_gate_that_is_closed_is_closed)
{
    PUT("a", .note = "{}");
    expect_step("ns/a", 0, GATE_PLACE, "");
    PUT("b", .gates = QUEUE, .note = "{}");
    expect_step("ns/b", 0, GATE_NOTHING, "");
}

/* --- what kube-scheduler refuses ---------------------------------------- */

#define OPENED .gates = "", .note = "{}"

Test(gate_pods, a_refusal_counts_from_when_it_was_seen)
{
    PUT("a", OPENED);
    expect_turns("");
    put_at(&(struct given){"a", OPENED, .refused = true}, 5000);
    expect_turns("ns/a ");
    put_at(
        &(struct given){"a", OPENED, .refused = true, .labels = ",\"l\":\"m\""},
        6000);
    cleanup_gate_unit struct gate_unit unit;
    cr_assert(gate_pods_unit(g, "ns/a", &unit));
    cr_expect_eq(gate_unit_due(&unit, 5000), 5000 + GATE_REFUSED_MS);
    cr_expect_eq(gate_unit_due(&unit, 5000 + GATE_REFUSED_MS), INT64_MAX);
    expect_step("ns/a", 4999 + GATE_REFUSED_MS, GATE_NOTHING, "");
    expect_step("ns/a", 5000 + GATE_REFUSED_MS, GATE_REFUSED, "");
    /* it is tried again, and refused again */
    put_at(&(struct given){"a", OPENED}, 8000);
    expect_step("ns/a", 8000, GATE_NOTHING, "");
    put_at(&(struct given){"a", OPENED, .refused = true}, 9000);
    expect_step("ns/a", 9000, GATE_NOTHING, "");
    expect_step("ns/a", 9000 + GATE_REFUSED_MS, GATE_REFUSED, "");
    put_at(&(struct given){"a", OPENED, .refused = true,
                           .meta = ",\"deletionTimestamp\":\"x\""},
           9000);
    expect_step("ns/a", 9000 + GATE_REFUSED_MS, GATE_NOTHING, "");
    expect_turns("");
}

/* A pod whose gate is closed is not refused, whatever its conditions say, nor
 * one that is bound. */
Test(gate_pods, only_who_is_open_is_refused)
{
    put_at(&(struct given){"a", .refused = true}, 0);
    expect_step("ns/a", 100000, GATE_PLACE, "");
    put_at(&(struct given){"b", OPENED, .node = "n1", .refused = true}, 0);
    expect_step("ns/b", 100000, GATE_NOTHING, "");
    put_at(&(struct given){"c", .gates = "", .refused = true}, 0);
    expect_step("ns/c", 100000, GATE_NOTHING, "");
}

/* --- caps --------------------------------------------------------------- */

Test(gate_pods, so_many_and_no_more)
{
    char name[16];
    for (int i = 0; i <= GATE_PODS_MAX; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        PUT(name);
    }
    cr_expect_eq(gate_pods_count(g), GATE_PODS_MAX);
    cr_expect_null(gate_pods_find_uid(g, "uid-p32768"));
    PUT("b", .gates = "", .node = "n1"); /* takes no room */
    cr_expect_eq(gate_pods_count(g), GATE_PODS_MAX);
    PUT("p7", .gates = "", .node = "n1", .note = "{}");
    PUT("p32768");
    cr_expect_eq(gate_pods_count(g), GATE_PODS_MAX);
}

Test(gate_pods, who_was_turned_away_may_come_when_there_is_room)
{
    char name[16];
    for (int i = 0; i < GATE_PODS_MAX; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        PUT(name);
    }
    for (int i = 0; i < 2; i++) {
        (void)snprintf(name, sizeof name, "uid-p%d", i);
        gate_pods_gone(g, name);
    }
    cr_expect_not(gate_pods_take_room(g, 1000), "nobody was turned away");
    PUT("a");
    PUT("b");
    PUT("c");
    for (int i = 2; gate_pods_count(g) > GATE_PODS_ROOM; i++) {
        cr_expect_not(gate_pods_take_room(g, 1000 + GATE_PODS_WHILE_MS - 1),
                      "%d", i);
        (void)snprintf(name, sizeof name, "uid-p%d", i);
        gate_pods_gone(g, name);
    }
    cr_expect(gate_pods_take_room(g, 1000));
    cr_expect_not(gate_pods_take_room(g, 1000), "once");
}

Test(gate_pods, after_a_while_any_room_is_taken)
{
    char name[16];
    for (int i = 0; i <= GATE_PODS_MAX; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        PUT(name);
    }
    cr_expect_not(gate_pods_take_room(g, 1000 + GATE_PODS_WHILE_MS),
                  "there is none");
    gate_pods_gone(g, "uid-p0");
    cr_expect_not(gate_pods_take_room(g, 1000 + GATE_PODS_WHILE_MS - 1));
    cr_expect(gate_pods_take_room(g, 1000 + GATE_PODS_WHILE_MS));
}

/* --- pairs ---------------------------------------------------------------------- */

Test(gate_pods, the_pods_of_a_pair_are_adjacent)
{
    cleanup_gate_unit struct gate_unit unit;
    size_t n;
    PUT("x2", "xpu", "j", 2, 5);
    PUT("y2", "xpu", "j", 2, 5);
    PUT("h2", "host", "j", 2, 5);
    PUT("h0", "host", "j", 0, 5);
    PUT("h4", "host", "j", 4, 5);
    cr_assert(gate_pods_unit(g, "ns/j/", &unit));
    cr_expect_eq(gate_unit_pair(&unit, 0, &n), (size_t)0);
    cr_expect_eq(n, (size_t)1);
    cr_expect_eq(gate_unit_pair(&unit, 2, &n), (size_t)1);
    cr_expect_eq(n, (size_t)3);
    cr_expect_str_eq(unit.pods[1]->demand.name, "h2");
    cr_expect_eq(gate_unit_pair(&unit, 4, &n), (size_t)4);
    cr_expect_eq(n, (size_t)1);
    (void)gate_unit_pair(&unit, 1, &n);
    cr_expect_eq(n, (size_t)0);
    (void)gate_unit_pair(&unit, 9, &n);
    cr_expect_eq(n, (size_t)0);
}

/* --- who follows whom --------------------------------------------------------- */

#define CLAIMS                              \
    ",\"resourceClaims\":[{\"name\":\"c\"," \
    "\"resourceClaimName\":\"c\"}]"
#define GROUP ",\"schedulingGroup\":{\"podGroupName\":\"j\"}"

/* Whom the last pod of the unit follows; "" nobody. */
static void expect_claimer(const char *wanted)
{
    cleanup_gate_unit struct gate_unit unit;
    cr_assert(gate_pods_unit(g, "ns/j/", &unit));
    const struct gate_pod *p = gate_unit_claimer(&unit, unit.pods[unit.n - 1]);
    cr_expect_str_eq(p ? p->demand.name : "", wanted);
}

Test(gate_pods, an_xpu_pod_follows_the_claim_of_its_pair)
{
    PUT("x", "xpu", "j", 1, 2);
    expect_claimer("");
    PUT("h0", .job = "j", .size = 2, .spec = CLAIMS);
    expect_claimer("");
    PUT("h1", .job = "j", .size = 2, .pair = 1, .spec = CLAIMS);
    expect_claimer("h1");
    PUT("h1", .job = "j", .size = 2, .pair = 1, .spec = CLAIMS, .gates = "",
        .note = "{}");
    expect_claimer("h1");
    PUT("x", "xpu", "j", 1, 2, .spec = CLAIMS);
    expect_claimer("");
    PUT("x", "xpu", "j", 1, 2, .spec = GROUP);
    expect_claimer("");
    PUT("x", "xpu", "j", 1, 2);
    PUT("h1", .job = "j", .size = 2, .pair = 1, .spec = CLAIMS, .gates = "",
        .note = "{}", .node = "n");
    expect_claimer("");
}
