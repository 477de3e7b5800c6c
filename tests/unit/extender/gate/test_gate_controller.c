/* The thread that opens gates, against an API server that is played here; time
 * is virtual, and stands still but where it is moved. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "extender/gate/gate_controller_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/bindserver.h"
#include "tests/lib/sim/simstate.h"

enum { BEGIN_MS = 1000000, PATIENCE_MS = 60000, CALM_MS = 600000 };

static struct bindserver *server;
static struct writer *w;
static struct fit_nodes *fit;
static struct pending_demands *demands;
static struct binder *binder;
static struct binds *binds;
static struct gate_controller *g;
static struct pod_listener listener;
static struct demand_config config;
static atomic_bool follows;
static atomic_uint n_asked, n_bound;
static bool evicted_end; /* at once */
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static struct str told;

static bool may_write(void *ctx, int64_t call_ms)
{
    (void)ctx;
    (void)call_ms;
    atomic_fetch_add(&n_asked, 1);
    return !follows;
}

static void give_back(const char *pod)
{
    cleanup_free char *uid = xasprintf("uid-%s", pod);
    struct writer_op op = {
        .kind = WRITER_FREE, .namespace = "ns", .pod = pod, .uid = uid};
    cr_assert_eq(writer_run(w, &op), 0);
}

static void tell(void *ctx, const struct demand *pod, enum events_reason reason,
                 const char *text)
{
    (void)ctx;
    if (reason == EVENTS_PREEMPTED && evicted_end)
        give_back(pod->name);
    hold_lock(&told_lock);
    str_addf(&told, "%s: %s\n", pod->name, text);
}

static void bound(void *ctx, const struct demand *pod)
{
    (void)ctx;
    cr_expect(pod->uid[0]);
    atomic_fetch_add(&n_bound, 1);
}

static void unsure(void *ctx)
{
    (void)ctx;
}

static void start_writer(void)
{
    struct writer_config c = {.store = STORE_KUBERNETES, .fresh_ms = 15000};
    struct error err = {0};
    cr_assert_eq(writer_start(&c, &w, &err), 0, "%s", err.text);
}

static void start_binds(void)
{
    struct error err = {0};
    /* calls take real time, of which a busy machine has little */
    const struct binder_config b = {.kube = bindserver_config(server),
                                    .may_bind = may_write,
                                    .call_ms = CALM_MS,
                                    .deadline_ms = CALM_MS};
    cr_assert_eq(binder_start(&b, &binder, &err), 0, "%s", err.text);
    /* kept by it */
    static struct binds_config c;
    c = (struct binds_config){.writer = w,
                              .binder = binder,
                              .tell = tell,
                              .bound = bound,
                              .unsure = unsure};
    binds = binds_create(&c);
}

static void set_up(void)
{
    struct error err = {0};
    log_set_level((enum log_level)(LOG_ERROR + 1));
    clock_set_fake(BEGIN_MS);
    follows = evicted_end = false;
    n_asked = n_bound = 0;
    str_init(&told, 1 << 20);
    server = bindserver_start();
    start_writer();
    fit = fit_nodes_create();
    demands = pending_demands_create();
    demand_config_default(&config);
    start_binds();
    const struct gate_config c = {.kube = bindserver_config(server),
                                  .writer = w,
                                  .fit = fit,
                                  .demands = demands,
                                  .binds = binds,
                                  .tell = tell,
                                  .may_write = may_write};
    cr_assert_eq(gate_controller_start(&c, &g, &err), 0, "%s", err.text);
    listener = gate_controller_listener(g);
}

static void tear_down(void)
{
    gate_controller_quiesce(g);
    binder_stop(binder);
    gate_controller_destroy(g);
    binds_destroy(binds);
    fit_nodes_destroy(fit);
    pending_demands_destroy(demands);
    writer_stop(w);
    bindserver_stop(server);
    str_fini(&told);
    clock_set_fake(-1);
}

TestSuite(gate_controller, .init = set_up, .fini = tear_down);

/* --- the cluster -------------------------------------------------------- */

static void add_node(const char *name, unsigned n_cards)
{
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":{"
        "\"cpu\":\"8\",\"pods\":\"110\"}}}",
        name);
    struct error err = {0};
    cr_assert_eq(fit_nodes_put(fit, json, strlen(json), &err), 0, "%s",
                 err.text);
    cr_assert_eq(sim_publish(w, name, n_cards, "boot", 1), 0);
}

/* A Pod of uid "uid-NAME" as the watch shows it. */
struct shown {
    const char *name, *role, *job;
    int pair, size, priority;
    bool open, refused;
    bool stray;       /* open, without an allocation */
    bool lonely;      /* without a controller */
    const char *node; /* bound there */
    const char *spec; /* more of it */
};

static void write_metadata(const struct shown *p, struct str *out)
{
    str_addf(out,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":"
             "\"uid-%s\",\"labels\":{\"biga.dev/role\":\"%s\","
             "\"biga.dev/job\":\"%s\",\"biga.dev/pair\":\"%d\"},"
             "\"annotations\":{\"biga.dev/size\":\"%d\","
             "\"biga.dev/exclusive\":\"true\"",
             p->name, p->name, p->role ? p->role : "host",
             p->job ? p->job : p->name, p->pair, p->size ? p->size : 1);
    if (p->open)
        str_add(out, ",\"biga.dev/allocation\":\"{}\"");
    str_add_c(out, '}');
    if (!p->lonely)
        str_add(out, ",\"ownerReferences\":[{\"kind\":\"Job\",\"apiVersion\":"
                     "\"batch/v1\",\"name\":\"j\",\"uid\":\"u\","
                     "\"controller\":true}]");
}

static void show(const struct shown *p)
{
    cleanup_str struct str json = STR_INIT(65536);
    struct kube_pod pod;
    struct error err = {0};
    write_metadata(p, &json);
    str_addf(&json, "},\"spec\":{\"priority\":%d,\"containers\":[]%s%s",
             p->priority, p->spec ? p->spec : "",
             p->open || p->stray
                 ? ""
                 : ",\"schedulingGates\":[{\"name\":\"biga.dev/place\"}]");
    if (p->node)
        str_addf(&json, ",\"nodeName\":\"%s\"", p->node);
    str_add(&json, "},\"status\":{\"phase\":\"Pending\"");
    if (p->refused)
        str_add(&json, ",\"conditions\":[{\"type\":\"PodScheduled\","
                       "\"status\":\"False\",\"reason\":\"Unschedulable\"}]");
    str_add(&json, "}}");
    cr_assert_eq(kube_pod_read(json.data, json.size, &config, &pod, &err), 0,
                 "%s", err.text);
    cr_assert_not(pod.broken, "%s", pod.why.text);
    listener.put(listener.ctx, &pod);
}

#define SHOW(pod, ...) show(&(struct shown){.name = (pod), ##__VA_ARGS__})

/* It is made in the API server, too. */
static void make(const struct shown *p)
{
    cleanup_free char *uid = xasprintf("uid-%s", p->name);
    bindserver_gated(server, p->name, uid);
    show(p);
}

#define MAKE(pod, ...) make(&(struct shown){.name = (pod), ##__VA_ARGS__})

static void pass(int64_t ms)
{
    clock_set_fake(clock_ms() + ms);
}

static unsigned count_calls(const char *call)
{
    unsigned n = 0;
    cleanup_free char *calls = bindserver_calls(server);
    for (const char *at = calls; (at = strstr(at, call)); at++)
        n++;
    return n;
}

/* Until that call was made so often. */
static void await_calls(const char *call, unsigned n)
{
    for (int i = 0; i < PATIENCE_MS && count_calls(call) < n; i++)
        (void)usleep(1000);
    cleanup_free char *calls = bindserver_calls(server);
    cr_assert_eq(count_calls(call), n, "%s: %s%s", call, calls,
                 str_text(&told));
}

/* The gate of pod `name` is opened: all that came before it were looked at. */
static void await_round(const char *name)
{
    cleanup_free char *call = xasprintf("PATCH %s ", name);
    make(&(struct shown){.name = name, .priority = -1000});
    await_calls(call, 1);
    make(&(struct shown){.name = name, .priority = -1000, .open = true});
}

static enum gate_story explain(const char *name, struct str *text)
{
    struct demand d;
    str_reset(text);
    return gate_controller_explain(g, "ns", name, &d, text);
}

/* Until that is told of it. */
static bool says(const char *name, const char *part, struct str *text)
{
    (void)explain(name, text);
    return strstr(str_text(text), part);
}

static void await_text(const char *name, const char *part)
{
    cleanup_str struct str text = STR_INIT(65536);
    for (int i = 0; i < PATIENCE_MS; i++) {
        if (says(name, part, &text))
            return;
        (void)usleep(1000);
    }
    cr_assert(false, "%s: \"%s\" lacks \"%s\"", name, str_text(&text), part);
}

static void node_of(const char *pod, char ret_node[64])
{
    cr_assert(bindserver_pin(server, pod, ret_node), "%s is closed", pod);
}

static size_t n_allocations(void)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    return alloc_index_size(s->allocations);
}

/* --- opening ------------------------------------------------------------ */

Test(gate_controller, opens_all_gates_of_a_job)
{
    static const char *const names[] = {"h0", "x0", "h1", "x1"};
    add_node("n1", 1);
    add_node("n2", 1);
    listener.listed(listener.ctx);
    for (int i = 0; i < 3; i++)
        MAKE(names[i], i % 2 ? "xpu" : "host", "j", i / 2, 2);
    await_text("h0", "missing: the xPU pod of pair 1");
    cr_expect_eq(count_calls("PATCH"), 0u);
    MAKE("x1", "xpu", "j", 1, 2);
    await_calls("PATCH", 4);
    for (int i = 0; i < 4; i++) {
        char node[64], other[64];
        bindserver_await_pin(server, names[i], node);
        node_of(names[i - i % 2], other);
        cr_expect_str_eq(node, other);
    }
    cr_expect_eq(n_allocations(), (size_t)4);
    for (int i = 0; i < PATIENCE_MS && n_bound < 4; i++)
        (void)usleep(1000);
    cr_expect_eq(n_bound, 4u);
    for (int i = 0; i < 4; i++)
        SHOW(names[i], i % 2 ? "xpu" : "host", "j", i / 2, 2, .open = true);
    cleanup_str struct str out = STR_INIT(4096);
    gate_controller_write(g, &out);
    cr_expect(strstr(str_text(&out), "\"opening\":0"), "%s", str_text(&out));
    SHOW("h0", "host", "j", 0, 2, .open = true, .node = "n1");
    cr_expect_eq(explain("h0", &out), GATE_STORY_NONE);
}

Test(gate_controller, does_nothing_before_it_has_heard_all)
{
    add_node("n1", 4);
    MAKE("a");
    for (int i = 0; i < 5; i++)
        pass(1000); /* whoever looks, looks now */
    cr_expect_eq(count_calls("PATCH"), 0u);
    listener.listed(listener.ctx);
    await_calls("PATCH a n1", 1);
}

Test(gate_controller, opens_nothing_while_another_leads)
{
    add_node("n1", 4);
    follows = true;
    listener.listed(listener.ctx);
    MAKE("a");
    for (unsigned n = 0; n < 5; n++) {
        unsigned before = n_asked;
        pass(1000);
        while (n_asked == before)
            (void)usleep(1000);
    }
    cr_expect_eq(count_calls("PATCH"), 0u);
    cr_expect_eq(n_allocations(), (size_t)0);
    follows = false;
    gate_controller_wake(g);
    await_calls("PATCH a n1", 1);
}

Test(gate_controller, backs_off_when_it_is_forbidden)
{
    add_node("n1", 4);
    bindserver_always(server, "PATCH", FAULT_FORBIDDEN);
    listener.listed(listener.ctx);
    MAKE("a");
    await_text("a", "its gate could not be opened: ");
    await_text("a", "forbidden");
    for (unsigned i = 1; i <= 3; i++) {
        cr_expect_eq(count_calls("PATCH a"), i);
        bindserver_always(server, "PATCH", FAULT_NONE);
        cleanup_free char *name = xasprintf("other%u", i);
        await_round(name);
        cr_expect_eq(count_calls("PATCH a"), i, "no more at that time");
        if (i == 3)
            break;
        bindserver_always(server, "PATCH", FAULT_FORBIDDEN);
        pass(2000 << i);
        await_calls("PATCH a", i + 1);
        await_text("a", "could not be opened");
    }
    pass(60000);
    await_calls("PATCH a", 4);
    SHOW("a", .open = true);
}

/* Nothing else happens: it is tried again all the same. */
Test(gate_controller, tries_again_by_itself)
{
    add_node("n1", 4);
    bindserver_faults(server, "PATCH",
                      (enum bindserver_fault[]){FAULT_INVALID, FAULT_INVALID},
                      2);
    listener.listed(listener.ctx);
    MAKE("a");
    for (unsigned i = 1; i <= 3; i++) {
        await_calls("PATCH a", i);
        if (i < 3)
            await_text("a", "could not be opened");
        pass(5000);
    }
}

/* Its back-off is virtual time. */
static void await_idle_binder(void)
{
    while (binder_n_busy(binder)) {
        pass(100);
        (void)usleep(1000);
    }
}

/* Rounds go on until it is. */
static void await_forgotten(const char *key)
{
    for (int i = 0; i < PATIENCE_MS; i++) {
        listener.gone(listener.ctx, "somebody");
        (void)usleep(1000);
        hold_lock(&g->lock);
        if (!strmap_get(&g->told, key))
            return;
    }
    cr_assert(false, "it keeps what nobody asks for");
}

/* What it keeps of units ends with them, in whichever order it hears. */
Test(gate_controller, forgets_what_is_open)
{
    add_node("n1", 4);
    bindserver_faults(server, "PATCH", &(enum bindserver_fault){FAULT_CUT_DONE},
                      1);
    bindserver_always(server, "GET", FAULT_ERROR);
    listener.listed(listener.ctx);
    MAKE("a");
    await_calls("GET a", 1);
    SHOW("a", .open = true); /* before the call is answered */
    await_round("b");
    bindserver_always(server, "GET", FAULT_NONE);
    await_idle_binder();
    await_forgotten("ns/a/0");
}

/* It is deleted while its gate is being opened. */
Test(gate_controller, forgets_what_is_gone)
{
    add_node("n1", 4);
    bindserver_always(server, "PATCH", FAULT_ERROR);
    listener.listed(listener.ctx);
    MAKE("a");
    await_calls("PATCH a", 1);
    listener.gone(listener.ctx, "uid-a");
    bindserver_delete(server, "a");
    bindserver_always(server, "PATCH", FAULT_NONE);
    await_round("b");
    await_idle_binder();
    await_forgotten("ns/a/0");
}

Test(gate_controller, says_that_somebody_else_has_opened_it)
{
    add_node("n1", 4);
    bindserver_always(server, "PATCH", FAULT_INVALID);
    listener.listed(listener.ctx);
    MAKE("a");
    SHOW("a", .stray = true);
    hold_lock(&told_lock);
    cr_expect(strstr(str_text(&told), "a: its gate biga.dev/place was opened "
                                      "by somebody else"),
              "%s", str_text(&told));
}

/* --- planned anew ------------------------------------------------------- */

/* The pod's gate is opened, and kube-scheduler refuses it. */
static void open_and_refuse(const char *name, bool lonely, char ret_node[64])
{
    cleanup_free char *call = xasprintf("PATCH %s ", name);
    make(&(struct shown){.name = name, .job = "j", .lonely = lonely});
    await_calls(call, 1);
    bindserver_await_pin(server, name, ret_node);
    SHOW(name, .job = "j", .lonely = lonely, .open = true, .refused = true);
}

Test(gate_controller, deletes_what_is_refused_and_avoids_its_node)
{
    char node[64], other[64];
    add_node("n1", 2);
    add_node("n2", 2);
    listener.listed(listener.ctx);
    open_and_refuse("a", false, node);
    await_round("b");
    cr_expect_eq(count_calls("DELETE"), 0u, "kube-scheduler tries again");
    pass(GATE_REFUSED_MS);
    await_calls("DELETE a", 1);
    while (bindserver_is_there(server, "a"))
        (void)usleep(1000);
    give_back("a");
    listener.gone(listener.ctx, "uid-a");
    MAKE("a2", .job = "j");
    await_calls("PATCH a2", 1);
    bindserver_await_pin(server, "a2", other);
    cr_expect_str_neq(other, node);
}

Test(gate_controller, keeps_what_nobody_would_make_anew)
{
    char node[64];
    cleanup_str struct str text = STR_INIT(4096);
    add_node("n1", 2);
    add_node("n2", 2);
    listener.listed(listener.ctx);
    open_and_refuse("a", true, node);
    pass(GATE_REFUSED_MS);
    await_text("a", "no controller would make its pair anew");
    cr_expect_eq(explain("a", &text), GATE_STORY_OPENED);
    cr_expect(strstr(str_text(&text), node), "%s", str_text(&text));
    await_round("b");
    cr_expect_eq(count_calls("DELETE"), 0u);
}

/* --- preemption --------------------------------------------------------- */

/* A pod that has the only card of n1. */
static void take_the_card(void)
{
    struct demand d = sim_pod("low", ROLE_HOST, "", 0);
    d.exclusive = true;
    add_node("n1", 1);
    bindserver_pod(server, "low", "uid-low");
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    listener.listed(listener.ctx);
}

Test(gate_controller, evicts_who_is_less_important)
{
    take_the_card();
    MAKE("a", .priority = 100);
    await_calls("EVICT low", 1);
    await_text("a", "room is made for it by evicting 1 pods");
    pass(10000);
    /* the round that evicted may be resting from then on */
    cleanup_str struct str text = STR_INIT(65536);
    while (!says("a", "1 evicted pods have to end first", &text)) {
        pass(100);
        (void)usleep(1000);
    }
    cr_expect_eq(count_calls("EVICT low"), 1u);
    cr_expect_eq(count_calls("PATCH"), 0u);
    give_back("low");
    await_calls("PATCH a n1", 1);
}

/* Before the call that evicts it has ended. */
Test(gate_controller, sees_what_becomes_free_while_it_evicts)
{
    evicted_end = true;
    take_the_card();
    MAKE("a", .priority = 100);
    await_calls("PATCH a n1", 1);
    cr_expect_eq(count_calls("EVICT low"), 1u);
}

Test(gate_controller, evicts_nobody_for_who_never_preempts)
{
    take_the_card();
    MAKE("a", .priority = 100, .spec = ",\"preemptionPolicy\":\"Never\"");
    await_text("a", "(preemptionPolicy: Never)");
    cr_expect_eq(count_calls("EVICT"), 0u);
    cleanup_str struct str text = STR_INIT(4096);
    cr_expect_eq(explain("a", &text), GATE_STORY_JUDGED);
    give_back("low");
    await_calls("PATCH a n1", 1);
}

Test(gate_controller, asks_again_when_a_budget_forbids_it)
{
    take_the_card();
    bindserver_faults(server, "POST", &(enum bindserver_fault){FAULT_BUSY}, 1);
    MAKE("a", .priority = 100);
    await_calls("EVICT low", 1);
    await_text("a", "could not be evicted for it");
    while (count_calls("EVICT low") < 2) { /* that round may be resting */
        pass(100);
        (void)usleep(1000);
    }
    await_text("a", "evicting 1 pods");
    cr_expect_eq(count_calls("EVICT low"), 2u);
}

Test(gate_controller, ends_at_any_time)
{
    add_node("n1", 4);
    listener.listed(listener.ctx);
    bindserver_always(server, "PATCH", FAULT_ERROR);
    MAKE("a");
    await_calls("PATCH a", 1);
}
