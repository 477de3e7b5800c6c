/* One decision, step by step: reading what a pod asks, and choosing on one
 * node without any memory of earlier choices.  Beside each, a floor measured
 * in the same run: skipping over the same bytes, and adding up the state.
 *
 *   bench_choose [POD.json]      a table, then the same as one line of JSON
 */
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/io/clock.h"
#include "model/decide/decide.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/testdata.h"

enum { ROUNDS = 200, ROUND_NS = 500000 };

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

struct case_choice {
    const char *name;
    unsigned cards, gpus, nics;
    uint16_t busy; /* cards and GPUs that are taken */
};

static void report_choice(const struct case_choice *ask, struct topo *topo,
                          struct str *json)
{
    struct task t = {.name = ask->name, .run = choose, .floor = add_state};
    struct shape *shape = shape_create(topo);
    node_state_init(&t.state, topo, shape);
    t.demand.role = ROLE_HOST;
    t.demand.cards = t.demand.pair_cards = (uint8_t)ask->cards;
    t.demand.gpus = (uint8_t)ask->gpus;
    t.demand.nics = (uint8_t)ask->nics;
    t.demand.align = RELATION_SYS;
    t.state.closed = t.state.occupied = t.state.shared = ask->busy;
    t.state.gpus_used = ask->busy;
    report(&t, json);
    shape_destroy(shape);
}

static const struct case_choice on_eight[] = {
    {"1 of 8 cards", 1, 0, 0, 0},
    {"1 of 8 cards, 1 GPU", 1, 1, 0, 0},
    {"2 of 5 free cards, 2 GPUs", 2, 2, 0, 0x25},
    {"4 of 8 cards, 2 GPUs", 4, 2, 0, 0},
};
static const struct case_choice on_sixteen[] = {
    {"8 of 16 cards", 8, 0, 0, 0},
    {"8 of 16 cards, 8 GPUs", 8, 8, 0, 0},
    {"8 of 16 cards, 3 GPUs", 8, 3, 0, 0},
    {"8 of 9 free cards, 3 GPUs", 8, 3, 0, 0x9552},
};

/* Four cards, 16 GPUs and 16 NICs on eight switches. */
static const struct case_choice on_board[] = {
    {"1 of 4 cards, 2 of 16 GPUs", 1, 2, 0, 0},
    {"1 of 4 cards, 2 of 16 GPUs, 2 NICs", 1, 2, 2, 0},
    {"2 of 4 cards, 8 of 16 GPUs, 8 NICs", 2, 8, 8, 0},
};

/* As kube-scheduler sends it: without white space between the tokens. */
static size_t compact(char *json, size_t size)
{
    size_t n = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        if (json[i] == '"' && (i == 0 || json[i - 1] != '\\'))
            in_string = !in_string;
        if (in_string || !strchr(" \t\r\n", json[i]))
            json[n++] = json[i];
    }
    return n;
}

int main(int argc, char **argv)
{
    struct task t = {.name = "read a pod", .run = read_pod, .floor = skip_pod};
    cleanup_str struct str json = STR_INIT(65536);
    cleanup_free char *pod =
        testdata_read(argc > 1 ? argv[1] : "bench/pod.json", &t.pod_size);
    cleanup_with(topo) struct topo *eight = benchhost_create("n", 0);
    cleanup_with(topo) struct topo *sixteen = simhost_topo("n", 16);
    cleanup_with(topo) struct topo *board = simhost_board("n", 2, 2);
    t.pod = pod;
    t.pod_size = compact(pod, t.pod_size);
    demand_config_default(&t.config);
    printf("%-40s %10s %10s %9s\n", "what", "ns", "floor", "ratio");
    str_add_c(&json, '[');
    report(&t, &json);
    for (size_t i = 0; i < ARRAY_LEN(on_eight); i++)
        report_choice(&on_eight[i], eight, &json);
    for (size_t i = 0; i < ARRAY_LEN(on_sixteen); i++)
        report_choice(&on_sixteen[i], sixteen, &json);
    for (size_t i = 0; i < ARRAY_LEN(on_board); i++)
        report_choice(&on_board[i], board, &json);
    str_add_c(&json, ']');
    printf("%s\n", str_text(&json));
    return 0;
}
