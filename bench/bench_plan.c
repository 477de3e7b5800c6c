/* Planning whole jobs on a fleet that is in use: hosts of 8 cards, 32 to a
 * leaf, 8 leaves to a spine, each with half to four fifths of its cards
 * taken.  Beside it, in the same run: filling nodes in the order of their
 * names, which is what placing pod after pod does at best, and a walk over
 * all states, which no planner can do without.
 *
 *   bench_plan [SEED]    lines of WHAT, HOSTS, P50 and P99 in microseconds,
 *                        and P99 and P50 of the processor time alone
 */

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "model/decide/decide_private.h"
#include "model/plan/plan.h"
#include "tests/lib/cpu_clock.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simfabric.h"

enum { ROUNDS = 120, PAIRS = 512, HOSTS_MAX = 100000 };

struct publisher {
    size_t n;
    struct shape *shapes[BENCHHOST_SHAPES];
    struct node_state idle[BENCHHOST_SHAPES];
    const struct node_state **states; /* equal ones shared */
    struct node_state *pool;          /* open addressing by content */
    size_t pool_mask;
    int32_t *leaves;
    struct host_room *rooms; /* a third of them short of memory */
    struct fabric *fabric;
};

static uint64_t chance;
static volatile uint64_t sink; /* so that floors are computed */

static uint32_t roll(uint32_t n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)((chance * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

/* --- the fleet ---------------------------------------------------------- */

static struct demand pair_of(unsigned cards, unsigned gpus)
{
    struct demand d = {.role = ROLE_HOST, .align = RELATION_SYS};
    d.cards = d.pair_cards = (uint8_t)cards;
    d.gpus = d.pair_gpus = (uint8_t)gpus;
    return d;
}

static const struct node_state *pooled(struct publisher *f,
                                       const struct node_state *state)
{
    size_t at = hash_bytes(state, sizeof *state) & f->pool_mask;
    while (f->pool[at].shape && memcmp(&f->pool[at], state, sizeof *state) != 0)
        at = (at + 1) & f->pool_mask;
    f->pool[at] = *state;
    return &f->pool[at];
}

/* Pods of random size come to a host, and some of them go again, until half
 * to four fifths of its cards are taken. */
static void load_host(struct publisher *f, size_t i)
{
    static const uint8_t sizes[8][2] = {{1, 1}, {1, 1}, {1, 0}, {1, 0},
                                        {2, 2}, {2, 1}, {1, 2}, {4, 0}};
    struct node_state state = f->idle[i % BENCHHOST_SHAPES];
    unsigned wanted = 4 + roll(3);
    for (unsigned tries = 0; tries < 16; tries++) {
        const uint8_t *size = sizes[roll(8)];
        struct demand d = pair_of(size[0], size[1]);
        struct choice choice;
        if ((unsigned)__builtin_popcount(state.occupied) + size[0] > wanted ||
            !decide_search(&state, &d, 0, (uint16_t)(0x0f | roll(256)),
                           &choice))
            continue;
        node_state_take(&state, &d, &choice);
    }
    f->states[i] = pooled(f, &state);
}

/* Memory for 0 to 3 pairs of 16 GiB, or plenty.  (CPUs would also be looked
 * for on NUMA nodes, which is not what is compared here.) */
static void room_host(struct publisher *f, size_t i)
{
    bool short_of = roll(3) == 0;
    f->rooms[i] = (struct host_room){
        .cpu_milli = 100000 + roll(48000),
        .memory_mib = (short_of ? 0 : 2000000) + roll(65536),
        .pods = 110 - roll(60),
    };
}

/* With room for so many different states, a power of two. */
static void fleet_init(struct publisher *f, size_t n, size_t states)
{
    const size_t per[2] = {8, 16};
    memset(f, 0, sizeof *f);
    f->n = n;
    f->states = xcalloc(n, sizeof *f->states);
    f->leaves = xcalloc(n, sizeof *f->leaves);
    f->rooms = xcalloc(n, sizeof *f->rooms);
    f->pool_mask = states - 1;
    f->pool = xcalloc(f->pool_mask + 1, sizeof *f->pool);
    f->fabric = simfabric_create((n + 31) / 32, per, 3);
    for (size_t i = 0; i < BENCHHOST_SHAPES; i++) {
        struct topo *topo = benchhost_create("host", i);
        f->shapes[i] = shape_create(topo);
        node_state_init(&f->idle[i], topo, f->shapes[i]);
        topo_unref(topo);
    }
    for (size_t i = 0; i < n; i++) {
        f->leaves[i] = (int32_t)(i / 32);
        load_host(f, i);
    }
    uint64_t before = chance; /* the hosts stay those of a run without */
    for (size_t i = 0; i < n; i++)
        room_host(f, i);
    chance = before;
}

/* Each host has of one card left what no other has. */
static void tell_apart(struct publisher *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct node_state state = *f->states[i];
        uint32_t taken = (uint32_t)(i / BENCHHOST_SHAPES);
        state.free_memory_mib[taken % BENCHHOST_CARDS] -= taken % 16384;
        state.free_cores[(taken + 1) % BENCHHOST_CARDS] -= taken / 16384;
        f->states[i] = pooled(f, &state);
    }
}

static void fleet_fini(struct publisher *f)
{
    for (size_t i = 0; i < BENCHHOST_SHAPES; i++)
        shape_destroy(f->shapes[i]);
    fabric_unref(f->fabric);
    free(f->states);
    free(f->leaves);
    free(f->rooms);
    free(f->pool);
}

/* --- what is measured --------------------------------------------------- */

struct task {
    struct publisher *fleet;
    struct demand demand;
    uint32_t size;
    int within;
    bool rooms;   /* what hosts have left is known */
    bool refused; /* what comes out */
    struct plan_score score;
};

static void run_plan(struct task *t)
{
    struct plan_cluster cluster = {
        .fabric = t->fleet->fabric,
        .n_nodes = t->fleet->n,
        .states = t->fleet->states,
        .leaves = t->fleet->leaves,
        .rooms = t->rooms ? t->fleet->rooms : NULL,
    };
    struct plan_job job = {.size = t->size,
                           .shapes = &t->demand,
                           .n_shapes = 1,
                           .within = t->within,
                           .prefer_within = PLAN_ANYWHERE,
                           .pin_rank = -1,
                           .pin_node = -1};
    struct plan *plan;
    struct plan_refusal no;
    t->refused = plan_make(&cluster, &job, &plan, &no) < 0;
    if (t->refused)
        return;
    t->score = plan->score;
    plan_unref(plan);
}

/* Node after node, as many pairs as fit. */
static void run_names(struct task *t)
{
    uint32_t left = t->size;
    for (size_t i = 0; i < t->fleet->n && left; i++) {
        struct node_state state = *t->fleet->states[i];
        struct choice choice;
        while (left &&
               decide_search(&state, &t->demand, 0, UINT16_MAX, &choice)) {
            node_state_take(&state, &t->demand, &choice);
            sink += choice.cards;
            left--;
        }
    }
    t->refused = left > 0;
}

static void run_scan(struct task *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->fleet->n; i++) {
        const struct node_state *state = t->fleet->states[i];
        sum += (unsigned)__builtin_popcount(state->usable & ~state->occupied) +
               state->gpus_used;
    }
    sink += sum;
}

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* A few hosts change between rounds. */
static void measure(const char *what, struct task *t,
                    void (*run)(struct task *), unsigned rounds)
{
    int64_t took[ROUNDS], busy[ROUNDS];
    run(t);
    for (unsigned i = 0; i < rounds; i++) {
        for (size_t k = 0; k < t->fleet->n / 100; k++)
            load_host(t->fleet, roll((uint32_t)t->fleet->n));
        int64_t begin = clock_ns(), begin_cpu = thread_cpu_ns();
        run(t);
        busy[i] = thread_cpu_ns() - begin_cpu;
        took[i] = clock_ns() - begin;
    }
    qsort(took, rounds, sizeof took[0], compare_ns);
    qsort(busy, rounds, sizeof busy[0], compare_ns);
    printf("%s%s\t%zu\t%.1f\t%.1f\t%.1f\t%.1f\n", what,
           t->refused ? "-refused" : "", t->fleet->n,
           (double)took[rounds / 2] / 1000,
           (double)took[rounds - 1 - rounds / 100] / 1000,
           (double)busy[rounds - 1 - rounds / 100] / 1000,
           (double)busy[rounds / 2] / 1000);
    (void)fflush(stdout);
}

static void measure_fleet(size_t n, unsigned rounds)
{
    struct publisher f;
    fleet_init(&f, n, 1 << 16);
    struct task gpu = {.fleet = &f,
                       .demand = pair_of(1, 1),
                       .size = PAIRS,
                       .within = PLAN_ANYWHERE};
    struct task card = {.fleet = &f,
                        .demand = pair_of(1, 0),
                        .size = PAIRS,
                        .within = PLAN_ANYWHERE};
    struct task many = {.fleet = &f,
                        .demand = pair_of(8, 0),
                        .size = PAIRS,
                        .within = PLAN_ANYWHERE};
    struct task few = {.fleet = &f,
                       .demand = pair_of(1, 1),
                       .size = 8,
                       .within = PLAN_ANYWHERE};
    struct task leaf = {
        .fleet = &f, .demand = pair_of(1, 1), .size = PAIRS, .within = 0};
    measure("scan", &gpu, run_scan, rounds);
    measure("names", &gpu, run_names, rounds);
    measure("names-card", &card, run_names, rounds);
    measure("plan", &gpu, run_plan, rounds);
    fprintf(stderr, "plan: %u unaligned, tier %u, %u leaves, %u crossings\n",
            gpu.score.unaligned, gpu.score.tier, gpu.score.leaves,
            gpu.score.crossings);
    measure("plan-card", &card, run_plan, rounds);
    measure("plan-8-pairs", &few, run_plan, rounds);
    measure("plan-whole-hosts", &many, run_plan, rounds);
    measure("plan-one-leaf", &leaf, run_plan, rounds);
    gpu.rooms = few.rooms = leaf.rooms = true;
    gpu.demand.memory_mib = few.demand.memory_mib = 16384;
    measure("plan-rooms", &gpu, run_plan, rounds);
    measure("plan-rooms-8-pairs", &few, run_plan, rounds);
    measure("plan-rooms-one-leaf", &leaf, run_plan, rounds);
    fleet_fini(&f);
}

static void measure_apart(size_t n, unsigned rounds)
{
    struct publisher f;
    fleet_init(&f, n, 1 << 19);
    tell_apart(&f);
    struct task task = {.fleet = &f,
                        .demand = pair_of(1, 1),
                        .size = PAIRS,
                        .within = PLAN_ANYWHERE};
    measure("plan-apart", &task, run_plan, rounds);
    fleet_fini(&f);
}

int main(int argc, char **argv)
{
    chance = (argc > 1 ? strtoull(argv[1], NULL, 0) : 1) * 2 + 1;
    measure_fleet(1000, ROUNDS);
    measure_fleet(10000, 30);
    measure_fleet(HOSTS_MAX, 10);
    measure_apart(HOSTS_MAX, 10);
    return 0;
}
