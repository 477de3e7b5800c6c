/* One decision, step by step: reading what a pod asks, and choosing on one
 * node without any memory of earlier choices.  Beside each, a floor measured
 * in the same run: skipping over the same bytes, and adding up the state.
 *
 *   bench_choose [POD.json]      a table, then the same as one line of JSON
 */
#include "model/base/mem.h"
#include "model/base/str.h"
#include "model/decide.h"
#include "model/io/clock.h"
#include "tests/lib/benchhost.h"
#include "tests/lib/simhost.h"
#include "tests/lib/testdata.h"

enum { ROUNDS = 15, ROUND_NS = 10000000 };

struct task {
    const char *name;
    void (*run)(struct task *);
    void (*floor)(struct task *);
    /* reading */
    const char *pod;
    size_t pod_size;
    struct demand_config config;
    /* choosing */
    struct node_state state;
    struct demand demand;
};

static volatile uint64_t sink; /* so that floors are computed */

static void read_pod(struct task *t)
{
    struct jscan s;
    struct error err;
    struct demand d;
    jscan_init(&s, t->pod, t->pod_size);
    if (demand_read(&s, &t->config, &d, &err) < 0) {
        fprintf(stderr, "bench_choose: %s\n", err.text);
        exit(1);
    }
    sink += d.cards;
}

static void skip_pod(struct task *t)
{
    struct jscan s;
    jscan_init(&s, t->pod, t->pod_size);
    sink += jscan_skip(&s);
}

static void choose(struct task *t)
{
    sink += decide_cost(&t->state, &t->demand);
}

static void add_state(struct task *t)
{
    uint64_t sum = 0;
    for (unsigned c = 0; c < TOPO_CARDS_MAX; c++)
        sum += t->state.free_cores[c] + t->state.free_memory_mib[c];
    sink += sum;
}

/* Nanoseconds for one run: the fastest of some rounds, which is what the
 * machine can do when nobody disturbs it. */
static double time_one(struct task *t, void (*run)(struct task *))
{
    double best = 1e18;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t n = 0;
        int64_t begin = clock_ns(), now = begin;
        while (now - begin < ROUND_NS) {
            for (unsigned k = 0; k < 16; k++)
                run(t);
            n += 16;
            now = clock_ns();
        }
        double each = (double)(now - begin) / (double)n;
        best = each < best ? each : best;
    }
    return best;
}

static void report(struct task *t, struct str *json)
{
    double run = time_one(t, t->run), floor = time_one(t, t->floor);
    printf("%-40s %10.0f %10.1f %8.1fx\n", t->name, run, floor, run / floor);
    str_addf(json, "%s{\"what\":\"%s\",\"ns\":%.1f,\"floor_ns\":%.1f}",
             json->size > 1 ? "," : "", t->name, run, floor);
}

/* Choosing `cards` and `gpus` on a node of which `busy` cards are taken. */
static void report_choice(const char *name, struct topo *topo, unsigned cards,
                          unsigned gpus, unsigned busy, struct str *json)
{
    struct task t = {.name = name, .run = choose, .floor = add_state};
    struct shape *shape = shape_create(topo);
    node_state_init(&t.state, topo, shape);
    t.demand.role = ROLE_HOST;
    t.demand.cards = t.demand.pair_cards = (uint8_t)cards;
    t.demand.gpus = (uint8_t)gpus;
    t.demand.align = RELATION_SYS;
    t.state.closed = t.state.occupied = t.state.shared = (uint16_t)busy;
    t.state.gpus_used = (uint16_t)busy;
    report(&t, json);
    shape_destroy(shape);
}

int main(int argc, char **argv)
{
    struct task t = {
        .name = "read a pod", .run = read_pod, .floor = skip_pod};
    cleanup_str struct str json = STR_INIT(65536);
    cleanup_free char *pod =
        testdata_read(argc > 1 ? argv[1] : "bench/pod.json", &t.pod_size);
    cleanup_with(topo) struct topo *eight = benchhost_create("n", 0);
    cleanup_with(topo) struct topo *sixteen = simhost_topo("n", 16);
    t.pod = pod;
    demand_config_default(&t.config);
    printf("%-40s %10s %10s %9s\n", "what", "ns", "floor", "ratio");
    str_add_c(&json, '[');
    report(&t, &json);
    report_choice("1 of 8 cards", eight, 1, 0, 0, &json);
    report_choice("1 of 8 cards, 1 GPU", eight, 1, 1, 0, &json);
    report_choice("2 of 5 free cards, 2 GPUs", eight, 2, 2, 0x25, &json);
    report_choice("4 of 8 cards, 2 GPUs", eight, 4, 2, 0, &json);
    report_choice("8 of 16 cards", sixteen, 8, 0, 0, &json);
    report_choice("8 of 16 cards, 8 GPUs", sixteen, 8, 8, 0, &json);
    report_choice("8 of 16 cards, 3 GPUs", sixteen, 8, 3, 0, &json);
    report_choice("8 of 9 free cards, 3 GPUs", sixteen, 8, 3, 0x9552, &json);
    str_add_c(&json, ']');
    printf("%s\n", str_text(&json));
    return 0;
}
