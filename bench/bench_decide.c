/* The decision without a server: on snapshots of N nodes with 8 cards each,
 * loaded with seeded pods, how long it takes to find the best 16 nodes for a
 * pod when its class is known (each look at all nodes), the first time for a
 * new class, and to find a node by its name.  The floor is what no decision
 * can beat: one look into a plain table per node, and the least of them.
 * Then the same where no two of the nodes are alike ("apart"), beside adding
 * up the numbers of their states, and pods of several classes in turn.
 *
 *   bench_decide
 *
 * Prints lines: what, N, nanoseconds of processor time per node. */
#include <stdbool.h>

#include "extender/judge/schedule.h"
#include "extender/state/draft.h"
#include "extender/state/snapshot.h"
#include "lib/base/mem.h"
#include "tests/lib/cpu_clock.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simfleet.h"

enum {
    BEST = 16,
    LOAD_ROUNDS = 3,
    NAME_SIZE = 16,
    TAKEN_MIB = 16384, /* that services take of a card, at most */
    CLASSES_MAX = 1000,
    MEASURE_NS = 300000000, /* at least this long for each figure */
    REPEATS_MIN = 5,
};

static uint64_t random_state = 1;

static uint64_t random_next(void)
{
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static struct demand host_demand(uint8_t cards)
{
    struct demand d = {
        .role = ROLE_HOST,
        .size = 1,
        .cards = cards,
        .gpus = cards,
        .align = RELATION_SYS,
    };
    (void)snprintf(d.name, sizeof d.name, "asking");
    (void)snprintf(d.namespace, sizeof d.namespace, "bench");
    (void)snprintf(d.uid, sizeof d.uid, "uid-asking");
    return d;
}

/* A pod of the load: a host pod with its cards, or a service. */
static struct demand load_demand(size_t number, bool service)
{
    uint64_t r = random_next();
    struct demand d = host_demand((uint8_t)(r % 2 + 1));
    if (r >> 8 & 1 || service) {
        d.role = ROLE_SERVICE;
        d.gpus = 0;
        d.has_card_need = true;
        d.card_cores = (uint32_t)(r >> 16) % 6 + 1;
        d.card_memory_mib = 1024;
    }
    (void)snprintf(d.name, sizeof d.name, "load-%zu", number);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%zu", number);
    return d;
}

static struct snapshot *publish(size_t n)
{
    struct snapshot *empty = snapshot_create_empty();
    struct draft *draft = draft_create(empty);
    for (size_t i = 0; i < n; i++) {
        char name[NAME_SIZE];
        (void)snprintf(name, sizeof name, "node-%06zu", i);
        cleanup_with(topo) struct topo *topo = benchhost_create(name, i);
        simfleet_put(draft, topo);
    }
    struct snapshot *s = draft_commit(draft);
    snapshot_unref(empty);
    return s;
}

/* One more pod on about half of the nodes. */
static struct snapshot *load(struct snapshot *s, size_t *number)
{
    struct draft *draft = draft_create(s);
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct schedule schedule;
        struct choice choice;
        if (random_next() % 2)
            continue;
        struct demand d = load_demand((*number)++, false);
        schedule_init(&schedule, s, &d);
        if (schedule_choose(&schedule, (int32_t)i, &choice) == REASON_NONE)
            draft_allocate(draft,
                           schedule_allocation(&schedule, (int32_t)i, &choice));
    }
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(s);
    return next;
}

/* A service on each node, which takes of a card what nobody else takes.  They
 * come to the nodes in any order, some at a time, so that the numbers of states
 * are in no order either. */
static struct snapshot *tell_apart(struct snapshot *s, size_t *number)
{
    enum { COMMITS = 64 };
    size_t n = s->n_nodes;
    struct draft *draft = draft_create(s);
    for (size_t i = 0; i < n; i++) {
        int32_t node = (int32_t)(i * 7919 % n); /* a prime that n has not */
        struct schedule schedule;
        struct choice choice;
        struct demand d = load_demand((*number)++, true);
        d.cards = 1;
        d.card_memory_mib = (uint32_t)(1 + i % TAKEN_MIB);
        d.card_cores = (uint32_t)(i / TAKEN_MIB);
        schedule_init(&schedule, s, &d);
        if (schedule_choose(&schedule, node, &choice) == REASON_NONE)
            draft_allocate(draft,
                           schedule_allocation(&schedule, node, &choice));
        if ((i + 1) % (n / COMMITS) == 0) {
            struct snapshot *next = draft_commit(draft);
            snapshot_unref(s);
            draft = draft_create(s = next);
        }
    }
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(s);
    return next;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct asking {
    struct snapshot *snapshot;
    size_t n;
    int32_t *candidates;
    struct jtext *names;
    int32_t *found;
    uint32_t *table;  /* cost by state */
    uint32_t *states; /* of each node */
    char *texts;      /* of the names */
    uint8_t cards;
    uint32_t classes, class; /* how many there are, which is next */
};

static void ask_for(struct asking *a, const struct demand *d)
{
    uint32_t best[BEST];
    size_t fitting;
    struct schedule s;
    schedule_init(&s, a->snapshot, d);
    if (!schedule_best(&s, a->candidates, a->n, BEST, best, &fitting))
        abort(); /* a fleet without room measures nothing */
}

static void ask_best(struct asking *a)
{
    struct demand d = host_demand(a->cards);
    ask_for(a, &d);
}

static void ask_class(struct asking *a)
{
    struct demand d = host_demand(a->cards);
    d.has_card_need = true;
    d.card_cores = 1;
    d.card_memory_mib = 1 + a->class ++ % a->classes;
    ask_for(a, &d);
}

/* The cost of each node straight from an array, by its state. */
static void ask_floor(struct asking *a)
{
    static volatile uint32_t result; /* so that it is computed */
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < a->n; i++) {
        uint32_t cost = a->table[a->states[i]];
        least = cost < least ? cost : least;
    }
    result = least;
    (void)result;
}

/* The number of each node's state, and nothing made of it. */
static void ask_states(struct asking *a)
{
    static volatile uint64_t result;
    uint64_t sum = 0;
    for (size_t i = 0; i < a->n; i++)
        sum += snapshot_state(a->snapshot, (size_t)a->candidates[i]);
    result = sum;
    (void)result;
}

/* What ask_floor looks at: the costs that ask_best has found. */
static void fill_floor(struct asking *a)
{
    struct demand d = host_demand(a->cards);
    struct schedule s;
    schedule_init(&s, a->snapshot, &d);
    a->table = xcalloc(state_intern_count(a->snapshot->states) + 1,
                       sizeof *a->table);
    a->states = xcalloc(a->n, sizeof *a->states);
    for (size_t i = 0; i < a->n; i++) {
        a->states[i] = snapshot_state(a->snapshot, i);
        a->table[a->states[i]] = schedule_cost(&s, (int32_t)i);
    }
}

static void ask_names(struct asking *a)
{
    snapshot_find_many(a->snapshot, a->names, a->n, a->found);
    if (a->found[a->n / 2] == NODE_NONE)
        abort();
}

/* The median of many goes, per node; of small clusters several are one go,
 * since reading that clock takes its time. */
static void measure(const char *what, struct asking *a,
                    void (*ask)(struct asking *))
{
    enum { REPEATS_MAX = 20000, NODES_PER_GO = 100000 };
    size_t n = 0, asks = 1 + NODES_PER_GO / a->n;
    int64_t *times = xcalloc(REPEATS_MAX, sizeof *times);
    int64_t begin = thread_cpu_ns(), now = begin;
    while (n < REPEATS_MAX && (n < REPEATS_MIN || now - begin < MEASURE_NS)) {
        int64_t start = now;
        for (size_t i = 0; i < asks; i++)
            ask(a);
        now = thread_cpu_ns();
        times[n++] = now - start;
    }
    qsort(times, n, sizeof *times, compare);
    printf("%s\t%zu\t%.3f\n", what, a->n,
           (double)times[n / 2] / (double)(a->n * asks));
    fflush(stdout);
    free(times);
}

static void measure_first(const char *what, struct asking *a)
{
    int64_t start = thread_cpu_ns();
    ask_best(a);
    printf("%s\t%zu\t%.3f\n", what, a->n,
           (double)(thread_cpu_ns() - start) / (double)a->n);
}

/* All classes in turn, some times: the mean of a look. */
static void measure_turns(const char *what, struct asking *a)
{
    int64_t begin = thread_cpu_ns(), now = begin;
    size_t looks = 0;
    while (looks < REPEATS_MIN * a->classes || now - begin < MEASURE_NS) {
        for (uint32_t k = 0; k < a->classes; k++)
            ask_class(a);
        looks += a->classes;
        now = thread_cpu_ns();
    }
    printf("%s\t%zu\t%.3f\n", what, a->n,
           (double)(now - begin) / (double)looks / (double)a->n);
}

static void shuffle(struct asking *a)
{
    for (size_t i = a->n - 1; i > 0; i--) {
        size_t k = random_next() % (i + 1);
        struct jtext held = a->names[i];
        a->names[i] = a->names[k];
        a->names[k] = held;
    }
}

static struct asking asking_create(size_t n, struct snapshot *snapshot)
{
    struct asking a = {.n = n, .cards = 1, .snapshot = snapshot};
    a.candidates = xcalloc(n, sizeof *a.candidates);
    a.found = xcalloc(n, sizeof *a.found);
    a.names = xcalloc(n, sizeof *a.names);
    a.texts = xcalloc(n, NAME_SIZE);
    for (size_t i = 0; i < n; i++) {
        char *text = a.texts + i * NAME_SIZE;
        int size = snprintf(text, NAME_SIZE, "node-%06zu", i);
        a.candidates[i] = (int32_t)i;
        a.names[i] = (struct jtext){text, (size_t)size, false};
    }
    return a;
}

static void asking_fini(struct asking *a)
{
    free(a->texts);
    free(a->table);
    free(a->states);
    free(a->names);
    free(a->found);
    free(a->candidates);
    snapshot_unref(a->snapshot);
}

static void print_states(const struct asking *a, const char *what)
{
    fprintf(stderr, "  %zu nodes%s: %zu pods, %u states\n", a->n, what,
            alloc_index_size(a->snapshot->allocations),
            state_intern_count(a->snapshot->states));
}

static struct snapshot *make_fleet(size_t n, size_t *number)
{
    struct snapshot *s = publish(n);
    for (int i = 0; i < LOAD_ROUNDS; i++)
        s = load(s, number);
    return s;
}

static void bench(size_t n)
{
    size_t number = 0;
    struct asking a = asking_create(n, make_fleet(n, &number));
    print_states(&a, "");
    measure_first("decide-first", &a);
    measure("decide", &a, ask_best);
    fill_floor(&a);
    measure("decide-floor", &a, ask_floor);
    measure("find", &a, ask_names);
    shuffle(&a);
    measure("find-shuffled", &a, ask_names);
    asking_fini(&a);
}

static void bench_apart(size_t n)
{
    size_t number = 0;
    struct snapshot *s = tell_apart(make_fleet(n, &number), &number);
    struct asking a = asking_create(n, s);
    print_states(&a, ", each as no other");
    measure_first("apart-first", &a);
    measure("apart", &a, ask_best);
    fill_floor(&a);
    measure("apart-floor", &a, ask_floor);
    measure("apart-states", &a, ask_states);
    asking_fini(&a);
}

/* Pods of so many classes by turns. */
static void bench_classes(size_t n)
{
    static const uint32_t classes[] = {1, 256, 300, CLASSES_MAX};
    size_t number = 0;
    struct asking a = asking_create(n, make_fleet(n, &number));
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        char what[32];
        (void)snprintf(what, sizeof what, "classes-%u", classes[i]);
        a.classes = classes[i];
        for (uint32_t k = 0; k < classes[i]; k++)
            ask_class(&a);
        measure_turns(what, &a);
    }
    asking_fini(&a);
}

int main(void)
{
    bench(1000);
    bench(10000);
    bench(100000);
    bench_apart(100000);
    bench_classes(5000);
    return 0;
}
