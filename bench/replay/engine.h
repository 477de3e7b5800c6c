/* engine - a trace replayed in virtual time under one policy, and what was
 * seen of it. */
#ifndef BIGA_BENCH_REPLAY_ENGINE_H
#define BIGA_BENCH_REPLAY_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/replay/cost.h"
#include "bench/replay/fleet.h"
#include "bench/replay/given.h"
#include "bench/replay/policy.h"
#include "bench/replay/trace.h"

enum {
    REPLAY_SAMPLES = 120, /* over the time that jobs arrive */
    BACKFILL_DEPTH = 64,  /* jobs behind the first that are tried */
    UNIT_PAIRS = 8,       /* of the job that fragmentation is counted in */
    DECISIONS_MAX = 1 << 20,
};

struct replay_config {
    const struct replay_fleet *fleet;
    const struct trace *trace;
    const struct costs_model *costs;
    const struct profile *profile;
    bool want_gpus;
    enum gpus_by gpus_by;
    bool loss;     /* what does not fit at once is turned away */
    bool backfill; /* jobs behind one that waits may start before it */
    uint64_t seed;
    /* told now and then how far it is, 0 to 1; may be NULL */
    void (*progress)(void *ctx, double done);
    void *ctx;
};

struct replay_sample {
    int64_t at_us;
    double used;    /* share of all cards */
    uint32_t pairs; /* aligned pairs of one card that could still start */
    uint32_t jobs;  /* jobs of UNIT_PAIRS such pairs, each below one leaf */
    uint32_t hosts; /* aligned pairs that take a whole host */
};

struct size_count {
    uint64_t asked, started;
};

struct replay_result {
    enum replay_policy policy;
    uint64_t jobs, started, rejected, impossible;
    struct size_count by_cards[TOPO_CARDS_MAX + 1]; /* jobs, by cards of a
                                                     * pair */
    /* pairs */
    uint64_t pairs, by_relation[RELATION_COUNT];
    uint64_t aligned;              /* as good as the hardware offers */
    uint64_t wide, wide_aligned;   /* of two or more cards */
    uint64_t narrow, narrow_apart; /* of two to four cards; over several NUMA
                                     * nodes */
    /* the same pairs with the GPUs that they were given */
    uint64_t achieved_by_relation[RELATION_COUNT], achieved_aligned;
    uint64_t farther, nearer;                      /* than promised */
    double promised_bandwidth, achieved_bandwidth; /* of all, bytes/s */
    /* jobs of several pairs */
    uint64_t gangs, leaves, crossings;
    uint64_t by_tier[COST_TIERS];
    double held_up; /* by shared links: of the time alone, added up */
    /* time */
    int64_t wait_p50_us, wait_p99_us, makespan_us;
    double wait_mean_us;
    double utilisation; /* while jobs arrive */
    struct replay_sample samples[REPLAY_SAMPLES];
    size_t n_samples;
    double *comm_s; /* of each job; 0: one pair, or never started */
    double *achieved_comm_s;
    /* measured, thus not the same every time */
    uint64_t n_decisions;
    double decide_p50_us, decide_p99_us, wall_s;
};

void replay_run(const struct replay_config *config, enum replay_policy policy,
                struct replay_result *ret_result);
void replay_result_fini(struct replay_result *r);

/* The modelled communication time of `r` over that of `base`, for the jobs
 * that both started; 0 when there are none. */
double replay_comm_ratio(const struct replay_result *r,
                         const struct replay_result *base, size_t n_jobs);
/* That of `r` as achieved over as promised; and the bandwidth of pairs. */
double replay_achieved_ratio(const struct replay_result *r, size_t n_jobs);
double replay_bandwidth_ratio(const struct replay_result *r);
/* Means over the samples. */
void replay_mean_sample(const struct replay_result *r, double *ret_pairs,
                        double *ret_jobs, double *ret_hosts);

#endif
