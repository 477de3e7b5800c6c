/* Explaining a job of 512 pairs that cannot be had, on a fleet that is in
 * use: hosts of 8 cards, 32 to a leaf, 8 leaves to a spine, with four to six
 * cards of each taken by jobs of 64 pairs.  Beside it, in the same run: the
 * refusal alone, which says no and not what would help.
 *
 *   bench_why [SEED]    lines of WHAT, HOSTS, P50 and P99 in microseconds of
 *                       processor time
 */
#include <string.h>

#include "extender/judge/why.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "tests/lib/cpu_clock.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simfleet.h"

enum {
    ROUNDS = 60,
    PAIRS = 512,
    LEAF_HOSTS = 32,
    SPINE_LEAVES = 8,
    FEW_HOSTS = 1000,
};

static uint64_t chance;

static uint32_t roll(uint32_t n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)((chance * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

/* --- the fleet ---------------------------------------------------------- */

static void put_host(struct draft *d, size_t i)
{
    char name[16];
    (void)snprintf(name, sizeof name, "host%05zu", i);
    cleanup_with(topo) struct topo *topo = benchhost_create(name, i);
    simfleet_put(d, topo);
}

static struct demand pair_of(const char *job, int rank, unsigned cards,
                             unsigned gpus)
{
    struct demand d = {.role = ROLE_HOST,
                       .pair = rank,
                       .size = 64,
                       .align = RELATION_SYS,
                       .prefer_align = RELATION_SYS,
                       .within = DEMAND_ANYWHERE,
                       .prefer_within = DEMAND_ANYWHERE,
                       .has_card_need = true,
                       .card_cores = 4};
    (void)snprintf(d.name, sizeof d.name, "%s-%d", job, rank);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%s-%d", job, rank);
    (void)snprintf(d.job, sizeof d.job, "%s", job);
    memcpy(d.namespace, "bench", sizeof "bench");
    d.cards = d.pair_cards = (uint8_t)cards;
    d.gpus = d.pair_gpus = (uint8_t)gpus;
    return d;
}

/* Some pairs, each with its cards to itself. */
static void load_host(struct draft *d, const struct snapshot *s, size_t i,
                      unsigned *number)
{
    const struct node *node = snapshot_node(s, i);
    struct node_state state = node->state;
    unsigned wanted = 4 + roll(3);
    for (unsigned tries = 0; tries < 16; tries++) {
        char job[16];
        struct choice choice;
        (void)snprintf(job, sizeof job, "job%u", *number / 64);
        struct demand pair = pair_of(job, (int)(*number % 64), 1 + roll(2),
                                     roll(2));
        pair.exclusive = true;
        if ((unsigned)__builtin_popcount(state.occupied) + pair.cards >
                wanted ||
            decide(&state, &pair, 0, (uint16_t)(0x0f | roll(256)), &choice) !=
                REASON_NONE)
            continue;
        node_state_take(&state, &pair, &choice);
        draft_allocate(d, schedule_place(&pair, node, &choice));
        (*number)++;
    }
}

static struct snapshot *make_fleet(size_t n)
{
    struct snapshot *empty = snapshot_create_empty();
    struct draft *d = draft_create(empty);
    struct fabric *fabric = benchhost_fabric(n, 5, LEAF_HOSTS, SPINE_LEAVES);
    unsigned number = 0;
    for (size_t i = 0; i < n; i++)
        put_host(d, i);
    draft_set_fabric(d, fabric);
    struct snapshot *idle = draft_commit(d);
    d = draft_create(idle);
    for (size_t i = 0; i < n; i++)
        load_host(d, idle, i, &number);
    struct snapshot *s = draft_commit(d);
    fabric_unref(fabric);
    snapshot_unref(idle);
    snapshot_unref(empty);
    return s;
}

/* --- what is measured --------------------------------------------------- */

static size_t explain(const struct snapshot *s, const struct demand *pod,
                      struct str *out)
{
    struct why why;
    str_reset(out);
    why_init(&why, s, pod, NULL, NULL);
    why_advise(&why);
    why_write(&why, out);
    size_t n = why.advice.n_changes;
    if (why.plan)
        fprintf(stderr, "bench_why: %s can be had\n", pod->job);
    why_fini(&why);
    return n;
}

static void refuse(const struct snapshot *s, const struct demand *pod)
{
    struct plan *plan = NULL;
    struct plan_refusal refusal;
    if (job_plan(NULL, s, pod, NULL, 0, NODE_NONE, &plan, &refusal) == 0)
        plan_unref(plan);
}

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *what, const char *job, size_t n, int64_t *took,
                   size_t rounds)
{
    qsort(took, rounds, sizeof *took, compare_ns);
    printf("%s-%s\t%zu\t%.1f\t%.1f\n", what, job, n,
           (double)took[rounds / 2] / 1000,
           (double)took[rounds - 1 - rounds / 100] / 1000);
    (void)fflush(stdout);
}

static void measure(const struct snapshot *s, const struct demand *pod,
                    size_t rounds)
{
    int64_t why[ROUNDS], no[ROUNDS];
    cleanup_str struct str out = STR_INIT(16 << 20);
    size_t changes = explain(s, pod, &out);
    for (size_t i = 0; i < rounds; i++) {
        int64_t begin = thread_cpu_ns();
        refuse(s, pod);
        int64_t refused = thread_cpu_ns();
        (void)explain(s, pod, &out);
        no[i] = refused - begin;
        why[i] = thread_cpu_ns() - refused;
    }
    report("refuse", pod->job, s->n_nodes, no, rounds);
    report("why", pod->job, s->n_nodes, why, rounds);
    const char *text = strstr(str_text(&out), "\"changes\"");
    fprintf(stderr, "why-%s: %zu changes: %s\n", pod->job, changes, text);
}

static void measure_fleet(size_t n, size_t rounds)
{
    struct snapshot *s = make_fleet(n);
    struct demand whole = pair_of("whole-hosts", 0, 8, 0);
    struct demand leaf = pair_of("one-leaf", 0, 1, 1);
    struct demand tight = pair_of("aligned", 0, 4, 4);
    struct demand large = pair_of("too-large", 0, 1, 0);
    leaf.within = 0;
    tight.align = RELATION_PIX;
    large.card_memory_mib = UINT32_MAX;
    struct demand *pods[] = {&whole, &leaf, &large, &tight};
    size_t n_pods = ARRAY_LEN(pods) - (n > FEW_HOSTS); /* it fits on many */
    for (size_t i = 0; i < n_pods; i++) {
        pods[i]->size = PAIRS;
        measure(s, pods[i], rounds);
    }
    snapshot_unref(s);
}

int main(int argc, char **argv)
{
    chance = (argc > 1 ? strtoull(argv[1], NULL, 0) : 1) * 2 + 1;
    measure_fleet(FEW_HOSTS, ROUNDS);
    measure_fleet(10000, 10);
    measure_fleet(100000, 10);
    return 0;
}
