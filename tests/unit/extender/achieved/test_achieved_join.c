#include "extender/achieved/achieved.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/state/draft.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"

/* node000 has cards 12:00.0, 13:00.0 (one switch, NUMA node 0), 22:00.0 and
 * 23:00.0 (another switch, NUMA node 1); the GPU of each is at function
 * 01.0 of its bus. */
#define CARD "card-0000-12-00"
#define GPU "gpu-0000-12-01-0"

static char (*ids(const char *id))[TOPO_ID_MAX + 1]
{
    char(*one)[TOPO_ID_MAX + 1] = xcalloc(1, sizeof *one);
    (void)snprintf(one[0], sizeof one[0], "%s", id);
    return one;
}

/* A pod of pair 0 of job "j" on the first card, near NUMA node 0. */
static struct allocation *pod(const char *name, enum pod_role role,
                              const char *gpu, uint32_t cpu_milli)
{
    struct demand d = {.namespace = "ns", .role = role, .cpu_milli = cpu_milli};
    (void)snprintf(d.name, sizeof d.name, "%s", name);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%s", name);
    (void)snprintf(d.job, sizeof d.job, "%s", role == ROLE_SERVICE ? "" : "j");
    struct allocation *a = allocation_create(&d, "node000");
    a->cards = ids(CARD);
    a->n_cards = 1;
    if (gpu) {
        a->gpus = ids(gpu);
        a->n_gpus = 1;
    }
    a->numa = role == ROLE_SERVICE ? -1 : 0;
    a->relation = gpu ? RELATION_PIX : RELATION_NODE;
    return a;
}

static struct snapshot *fleet(const char *gpu, uint32_t cpu_milli)
{
    struct draft *d = simfleet_draft(simhost_topo, 1, 4);
    draft_allocate(d, pod("h", ROLE_HOST, gpu, cpu_milli));
    draft_allocate(d, pod("x", ROLE_XPU, NULL, 0));
    draft_allocate(d, pod("s", ROLE_SERVICE, NULL, 0));
    return draft_commit(d);
}

struct expected {
    const char *facts; /* of pods h, x and s: "…" each, as JSON */
    const char *pod;
    enum achieved_state state;
    const char *word, *text;
};

static struct achieved_report *report(const char *pods)
{
    struct achieved_report *r = NULL;
    struct error err = {0};
    cleanup_free char *json = xasprintf("{\"node\":\"node000\",\"pods\":[%s]}",
                                        pods);
    cr_assert_eq(achieved_report_parse(json, strlen(json), &r, &err), 0, "%s",
                 err.text);
    return r;
}

static void expect(const struct snapshot *s, const struct expected *e)
{
    cleanup_with(achieved_report) struct achieved_report *r =
        e->facts ? report(e->facts) : NULL;
    cleanup_str struct str why = STR_INIT(4096);
    struct achieved x;
    const struct allocation *a = alloc_index_find(s->allocations, "ns", e->pod);
    cr_assert_not_null(a);
    achieved_judge(s, a, r, &x, &why);
    cr_expect_str_eq(achieved_state_name(x.state),
                     achieved_state_name(e->state), "%s: %s", e->facts,
                     str_text(&why));
    cr_expect_str_eq(achieved_word(&x), e->word, "%s", e->facts);
    cr_expect_str_eq(str_text(&why), e->text, "%s", e->facts);
}

#define H(members) "{\"namespace\":\"ns\",\"name\":\"h\"," members "}"
#define X(members) "{\"namespace\":\"ns\",\"name\":\"x\"," members "}"
#define ON(card) X("\"cards\":[\"0000:" card "\"]")
#define S(members) "{\"namespace\":\"ns\",\"name\":\"s\"," members "}"

Test(achieved, with_gpus)
{
    static const struct expected cases[] = {
        {NULL, "h", ACHIEVED_UNKNOWN, "unknown",
         "node node000 has not told what it has"},
        {ON("12:00.0"), "h", ACHIEVED_UNKNOWN, "unknown",
         "node node000 has not told what it has"},
        {H("\"uid\":\"uid-earlier\",\"gpus\":[\"0000:12:01.0\"]"), "h",
         ACHIEVED_UNKNOWN, "unknown", "node node000 has not told what it has"},
        {H("\"cpus\":\"0-7\",\"numa\":[0]"), "h", ACHIEVED_UNKNOWN, "unknown",
         "its node does not tell which GPUs it has"},
        {H("\"gpus\":[\"0000:12:01.0\"],\"cards\":[]") "," ON("12:00.0"), "h",
         ACHIEVED_KEPT, "PIX", ""},
        /* nobody tells of cards: Biga runs its xPU pod on that promised */
        {H("\"gpus\":[\"0000:12:01.0\"]"), "h", ACHIEVED_KEPT, "PIX", ""},
        {H("\"gpus\":[\"0000:12:01.0\"]") "," X("\"cpus\":\"0\""), "h",
         ACHIEVED_KEPT, "PIX", ""},
        {H("\"gpus\":[\"0000:22:01.0\"]"), "h", ACHIEVED_LOST, "SYS",
         "promised GPU gpu-0000-12-01-0 (PIX to card card-0000-12-00), has "
         "0000:22:01.0 (SYS): each transfer crosses the socket link; claim "
         "GPUs to pin them"},
        /* but for one that is told, and not published */
        {H("\"gpus\":[\"0000:12:01.0\"]") "," ON("99:00.0"), "h", ACHIEVED_KEPT,
         "unknown", ""},
        {H("\"gpus\":[\"0000:12:01.0\"],\"cards\":[\"0000:12:00.0\"]"), "h",
         ACHIEVED_KEPT, "PIX", ""},
        {H("\"gpus\":[\"0000:12:01.0\",\"0000:22:01.0\"]") "," ON("12:00.0"),
         "h", ACHIEVED_KEPT, "PIX", ""},
        {H("\"gpus\":[\"0000:22:01.0\"]") "," ON("12:00.0"), "h", ACHIEVED_LOST,
         "SYS",
         "promised GPU gpu-0000-12-01-0 (PIX to card card-0000-12-00), has "
         "0000:22:01.0 (SYS): each transfer crosses the socket link; claim "
         "GPUs to pin them"},
        {H("\"gpus\":[\"0000:13:01.0\"]") "," ON("12:00.0"), "h", ACHIEVED_LOST,
         "PIX",
         "promised GPU gpu-0000-12-01-0 (PIX to card card-0000-12-00), has "
         "0000:13:01.0 (PIX): not farther than promised, but not its own: "
         "what "
         "others were promised may be gone; claim GPUs to pin them"},
        {H("\"gpus\":[]") "," ON("12:00.0"), "h", ACHIEVED_LOST, "unknown",
         "promised GPU gpu-0000-12-01-0 (PIX to card card-0000-12-00), has "
         "none; claim GPUs to pin them"},
        {H("\"gpus\":[\"0000:99:00.0\"]") "," ON("12:00.0"), "h",
         ACHIEVED_UNKNOWN, "unknown",
         "it has GPUs that its node has not published"},
    };
    cleanup_with(snapshot) struct snapshot *s = fleet(GPU, 8000);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect(s, &cases[i]);
}

Test(achieved, with_gpus_and_all_else_elsewhere)
{
    static const struct expected cases[] = {
        /* the GPU is right, and the card is not */
        {H("\"gpus\":[\"0000:12:01.0\"]") "," ON("22:00.0"), "h", ACHIEVED_LOST,
         "SYS",
         "promised card card-0000-12-00 (PIX), the xPU pods of its pair "
         "are on "
         "card-0000-22-00 (SYS): each transfer crosses the socket link"},
        {H("\"gpus\":[\"0000:12:01.0\"],\"cards\":[\"0000:22:00.0\"]"), "h",
         ACHIEVED_LOST, "SYS",
         "promised card card-0000-12-00, has functions of 0000:22:00.0 "
         "(SYS): "
         "each transfer crosses the socket link"},
        /* CPUs and memory elsewhere */
        {H("\"gpus\":[\"0000:12:01.0\"],\"cpus\":\"32-39\",\"numa\":["
           "1]") "," ON("12:00.0"),
         "h", ACHIEVED_LOST, "PIX",
         "promised CPUs of NUMA node 0, has 32-39, those of NUMA node "
         "1: what "
         "they compute is far from its card; the kubelet's CPU manager "
         "chose "
         "them"},
        {H("\"gpus\":[\"0000:12:01.0\"],\"numa\":[0,1]") "," ON("12:00.0"), "h",
         ACHIEVED_KEPT, "PIX", ""},
        {H("\"gpus\":[\"0000:12:01.0\"],\"memoryNuma\":[1]") "," ON("12:00.0"),
         "h", ACHIEVED_LOST, "PIX",
         "promised NUMA node 0, its memory is of NUMA node 1: each access "
         "crosses between NUMA nodes"},
    };
    cleanup_with(snapshot) struct snapshot *s = fleet(GPU, 8000);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect(s, &cases[i]);
}

Test(achieved, without_gpus)
{
    static const struct expected cases[] = {
        {H("\"cpus\":\"0-7\",\"numa\":[0]") "," ON("12:00.0"), "h",
         ACHIEVED_KEPT, "NODE", ""},
        {H("\"gpus\":[]") "," ON("12:00.0"), "h", ACHIEVED_UNKNOWN, "unknown",
         "its node does not tell which CPUs it has"},
        /* all of the host: nobody has pinned it */
        {H("\"cpus\":\"0-63\",\"numa\":[0,1]") "," ON("12:00.0"), "h",
         ACHIEVED_UNKNOWN, "unknown",
         "its CPUs are not pinned to one NUMA node: where it runs is the "
         "kernel's choice"},
        /* its own eight, of which it uses each */
        {H("\"cpus\":\"0-3,32-35\",\"numa\":[0,1]") "," ON("12:00.0"), "h",
         ACHIEVED_LOST, "SYS",
         "promised CPUs of NUMA node 0 (NODE), has 0-3,32-35, those of NUMA "
         "nodes 0,1 (SYS): each transfer crosses the socket link; the "
         "kubelet's CPU manager chose them"},
        {H("\"cpus\":\"32-39\",\"numa\":[1]") "," ON("12:00.0"), "h",
         ACHIEVED_LOST, "SYS",
         "promised CPUs of NUMA node 0 (NODE), has 32-39, those of NUMA node 1 "
         "(SYS): each transfer crosses the socket link; the kubelet's CPU "
         "manager chose them"},
        {H("\"numa\":[1]"), "h", ACHIEVED_LOST, "SYS",
         "promised CPUs of NUMA node 0 (NODE), has those of NUMA node 1 (SYS): "
         "each transfer crosses the socket link; the kubelet's CPU manager "
         "chose them"},
        {H("\"numa\":[1]") "," ON("99:00.0"), "h", ACHIEVED_LOST, "unknown",
         "promised CPUs of NUMA node 0 (NODE), has those of NUMA node 1: what "
         "they compute is far from its card; the kubelet's CPU manager chose "
         "them"},
    };
    cleanup_with(snapshot) struct snapshot *s = fleet(NULL, 8000);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect(s, &cases[i]);
}

Test(achieved, on_cards)
{
    static const struct expected cases[] = {
        {ON("12:00.0"), "x", ACHIEVED_KEPT, "unknown", ""},
        {H("\"gpus\":[\"0000:12:01.0\"]") "," ON("12:00.0"), "x", ACHIEVED_KEPT,
         "PIX", ""},
        {H("\"gpus\":[\"0000:22:01.0\"]") "," ON("12:00.0"), "x", ACHIEVED_KEPT,
         "SYS", ""},
        {H("\"gpus\":[\"0000:12:01.0\"]") "," ON("22:00.0"), "x", ACHIEVED_LOST,
         "SYS",
         "promised card card-0000-12-00, is on 0000:22:00.0 (SYS): each "
         "transfer crosses the socket link"},
        {X("\"cards\":[]"), "x", ACHIEVED_LOST, "unknown",
         "promised card card-0000-12-00, is on none"},
        {X("\"cpus\":\"0\""), "x", ACHIEVED_UNKNOWN, "unknown",
         "its node does not tell which cards it has"},
        {S("\"cards\":[\"0000:12:00.0\"]"), "s", ACHIEVED_KEPT, "unknown", ""},
    };
    cleanup_with(snapshot) struct snapshot *s = fleet(GPU, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect(s, &cases[i]);
}

Test(achieved, as_json)
{
    cleanup_with(snapshot) struct snapshot *s = fleet(GPU, 0);
    cleanup_with(achieved_report) struct achieved_report *r =
        report(H("\"gpus\":[\"0000:12:01.0\"],\"nics\":[],\"cpus\":\"0-63\","
                 "\"numa\":[0,1]") "," ON("12:00.0"));
    cleanup_str struct str out = STR_INIT(4096);
    const struct allocation *h = alloc_index_find(s->allocations, "ns", "h");
    achieved_write(s, h, r, &out);
    cr_expect_str_eq(
        str_text(&out),
        "\"achieved\":{\"state\":\"kept\",\"relation\":\"PIX\",\"gpus\":["
        "\"0000:12:01.0\"],\"nics\":[],\"cpus\":\"0-63\",\"numa\":[0,1]}");
    str_reset(&out);
    achieved_write(s, h, NULL, &out);
    cr_expect_str_eq(str_text(&out),
                     "\"achieved\":{\"state\":\"unknown\",\"relation\":null,"
                     "\"text\":\"node node000 has not told what it has\"}");
    cr_expect(achieved_counts(h));
    cr_expect_not(achieved_counts(alloc_index_find(s->allocations, "ns", "s")));
}

/* A node that is gone has no topology to compare with. */
Test(achieved, on_a_node_that_is_gone)
{
    cleanup_with(snapshot) struct snapshot *none = snapshot_create_empty();
    cleanup_with(achieved_report) struct achieved_report *r =
        report(H("\"gpus\":[\"0000:22:01.0\"],\"cards\":[\"0000:22:00.0\"]"));
    cleanup_with(allocation) struct allocation *h = pod("h", ROLE_HOST, GPU, 0);
    cleanup_str struct str why = STR_INIT(4096);
    struct achieved x;
    achieved_judge(none, h, r, &x, &why);
    cr_expect_eq(x.state, ACHIEVED_UNKNOWN);
    cr_expect_str_eq(str_text(&why),
                     "it has GPUs that its node has not published; it has "
                     "cards that its node has not published");
}
