/* What a history costs those who bind: the writers of two extenders bind in
 * turn, BURST pods at a time and durable, and one of them has a history.
 *
 *   bench_history_bind DIR [ROUNDS]
 *
 * Prints the medians of a bind without and with it, their ratio, the median of
 * the ratios of the rounds, and how many changes the history passed over. */
#include <semaphore.h>

#include "extender/history/history.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simstate.h"

enum { HOSTS = 1000, BURST = 16, ROUNDS = 400, ROUNDS_MAX = 1600 };

static void die(const char *what, const struct error *err)
{
    fprintf(stderr, "bench_history_bind: %s: %s\n", what, err->text);
    exit(1);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *list, size_t n, double q)
{
    qsort(list, n, sizeof *list, compare_doubles);
    size_t at = (size_t)(q * (double)n);
    return list[at < n ? at : n - 1];
}

struct side {
    struct writer *writer;
    struct history *history; /* NULL: without */
    size_t n_bound;
    double ns[ROUNDS_MAX];
};

static sem_t done;

static void on_done(struct writer_op *op)
{
    (void)op;
    (void)sem_post(&done); /* never overflows */
}

static void run_burst(struct writer *w, struct writer_op *ops)
{
    for (size_t i = 0; i < BURST; i++) {
        ops[i].done = on_done;
        writer_post(w, &ops[i]);
    }
    for (size_t i = 0; i < BURST; i++)
        while (sem_wait(&done) != 0)
            ;
}

static void bind_burst(struct side *s, size_t n_nodes, size_t round)
{
    struct writer_op ops[BURST] = {0};
    static struct demand demands[BURST];
    char names[BURST][32];
    for (size_t i = 0; i < BURST; i++) {
        (void)snprintf(names[i], sizeof names[i], "bench-%05zu",
                       (round * BURST + i) * 7 % n_nodes);
        char pod[32];
        (void)snprintf(pod, sizeof pod, "p%zu-%zu", round, i);
        demands[i] = sim_pod(pod, ROLE_HOST, "", 0);
        ops[i] = (struct writer_op){.kind = WRITER_BIND,
                                    .node = names[i],
                                    .demand = &demands[i],
                                    .out = STR_INIT(1 << 20)};
    }
    int64_t start = clock_ns();
    run_burst(s->writer, ops);
    s->ns[round] = (double)(clock_ns() - start) / BURST;
    for (size_t i = 0; i < BURST; i++) {
        s->n_bound += ops[i].result == 0;
        str_fini(&ops[i].out);
        ops[i] = (struct writer_op){
            .kind = WRITER_RELEASE, .namespace = "ns", .pod = demands[i].name};
    }
    run_burst(s->writer, ops);
}

static void side_start(struct side *s, const char *dir, const char *name,
                       bool with, size_t n_nodes)
{
    cleanup_free char *state = xasprintf("%s/%s", dir, name);
    cleanup_free char *past = xasprintf("%s/history", state);
    struct error err = {0};
    s->writer = sim_writer(state);
    for (size_t i = 0; i < n_nodes; i++) {
        char node[32];
        (void)snprintf(node, sizeof node, "bench-%05zu", i);
        cleanup_with(topo) struct topo *topo = benchhost_create(node, i);
        if (sim_publish_topo(s->writer, topo) < 0)
            die("publishing", &err);
    }
    const struct history_config c = {
        .dir = past, .days = 30, .mib = 1024, .writer = s->writer};
    if (with && history_start(&c, &s->history, &err) < 0)
        die(past, &err);
    if (with)
        history_settle(s->history); /* all that was there is recorded */
}

static void run(const char *dir, size_t rounds)
{
    static struct side sides[2];
    static double ratios[ROUNDS_MAX];
    (void)sem_init(&done, 0, 0); /* cannot fail with this value */
    side_start(&sides[0], dir, "without", false, HOSTS);
    side_start(&sides[1], dir, "with", true, HOSTS);
    for (size_t i = 0; i < rounds; i++) {
        size_t first = i % 2;
        bind_burst(&sides[first], HOSTS, i);
        bind_burst(&sides[1 - first], HOSTS, i);
        ratios[i] = sides[1].ns[i] / sides[0].ns[i];
    }
    struct history_state state = history_state(sides[1].history);
    history_stop(sides[1].history);
    printf("binds\twithout us\twith us\tratio of medians\tmedian ratio\tnot "
           "recorded\n");
    double a = quantile(sides[0].ns, rounds, 0.5) / 1e3,
           b = quantile(sides[1].ns, rounds, 0.5) / 1e3;
    printf("%zu\t%.1f\t%.1f\t%.3f\t%.3f\t%llu\n",
           sides[0].n_bound + sides[1].n_bound, a, b, b / a,
           quantile(ratios, rounds, 0.5), (unsigned long long)state.lost);
    for (size_t i = 0; i < 2; i++)
        writer_stop(sides[i].writer);
    history_destroy(sides[1].history);
}

int main(int argc, char **argv)
{
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : ROUNDS;
    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX) {
        fputs("usage: bench_history_bind DIR [ROUNDS]\n", stderr);
        return 2;
    }
    run(argv[1], (size_t)rounds);
    return 0;
}
