/* trace - the jobs of a replay: when they come, how long they run, how many
 * pairs they are.
 *
 * Read from a trace of real jobs, or made from a seed.  Times are virtual:
 * microseconds since the trace's own zero. */
#ifndef BIGA_BENCH_REPLAY_TRACE_H
#define BIGA_BENCH_REPLAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    TRACE_JOBS_MAX = 100000000,
    TRACE_PROCS_MAX = 1 << 24,  /* of a machine, in a header */
    TRACE_LINE_MAX = 65536,     /* bytes */
    TRACE_SIZES_MAX = 16,       /* different sizes that are generated */
    TRACE_CPU_MAX = 1000000000, /* thousandths, for a pair */
    TRACE_MEMORY_MAX = 1 << 30, /* MiB, for a pair or of a card */
    TRACE_CORES_MAX = 65535,    /* of a card */
};
#define TRACE_TEXT_MAX ((size_t)8 << 30) /* bytes of one file */
#define TRACE_TIME_MAX_S 1e10            /* some 317 years */

struct replay_job {
    int64_t arrival_us, duration_us;
    uint32_t pairs;           /* 1 … DEMAND_SIZE_MAX */
    uint8_t cards;            /* of each pair, 1 … TOPO_CARDS_MAX */
    uint16_t card_cores;      /* of each card; 0, and so the memory: the whole
                               * card, with nobody else */
    uint32_t card_memory_mib; /* of each card */
    uint32_t cpu_milli, memory_mib; /* of the host, for each pair; 0: not
                                     * counted */
};

struct trace {
    struct replay_job *jobs; /* by arrival, then as they came */
    size_t n, cap;
    uint64_t n_no_card; /* left out: they take no card */
    uint64_t n_no_time; /* left out: they never ran */
    uint64_t n_late;    /* left out by trace_limit() */
    uint32_t max_procs; /* of the machine, as SWF's header says; 0: unknown */
};
void trace_fini(struct trace *t);
static inline void trace_cleanup_p(struct trace *t)
{
    trace_fini(t);
}

enum trace_format { TRACE_AUTO, TRACE_JSONL, TRACE_SWF };

/* Read a whole file; `name` is for errors, which name the line.  JSONL is one
 * job per line (bench/README.md); SWF is the Standard Workload Format 2.2 of
 * the Parallel Workloads Archive, whose processors become pairs of one card.
 * `t` must be zero; on failure it is left empty. */
int trace_read(const char *name, const char *text, size_t size,
               enum trace_format format, struct trace *t, struct error *err);

/* Make a trace from a text such as "mpi", "mpi:jobs=200,load=0.8",
 * "poisson:load=0.95,jobs=1000,sizes=1:40,2:25,4:25,8:10": jobs arrive as a
 * Poisson process that offers `load` of `n_cards` cards, and run for
 * exponentially distributed times of `mean` seconds.  The same text, seed and
 * number of cards give the same trace. */
int trace_generate(const char *spec, uint64_t seed, uint64_t n_cards,
                   struct trace *t, struct error *err);

/* What pairs ask of which the trace does not say it, from a text such as
 * "cpu=4000,memory=8192,card-cores=4,card-memory=2048": thousandths of CPUs
 * and MiB of the host for each pair, cores and MiB of each of its cards. */
int trace_need(const char *text, struct trace *t, struct error *err);
/* Does any job ask something of its hosts? */
bool trace_asks_hosts(const struct trace *t);

/* Leave out the jobs that arrive later than this after the first one. */
void trace_limit(struct trace *t, int64_t limit_us);
/* Let jobs come `factor` times as fast, for the same time each. */
void trace_compress(struct trace *t, double factor);

/* --- random numbers: the same on every machine -------------------------- */
uint64_t random_u64(uint64_t *state);
/* 0 … n - 1; n > 0. */
uint32_t random_below(uint64_t *state, uint32_t n);
/* In (0, 1]. */
double random_unit(uint64_t *state);

#endif
