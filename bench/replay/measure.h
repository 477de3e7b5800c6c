/* measure - what is counted of a replay. */
#ifndef BIGA_BENCH_REPLAY_MEASURE_H
#define BIGA_BENCH_REPLAY_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/replay/engine.h"
#include "bench/replay/uplink.h"

struct measure {
    const struct replay_config *config;
    struct replay_result *r;
    struct cost_place *places; /* of a job's pairs */
    int32_t *leaves;
    size_t places_cap;
    struct uplinks uplinks;
    uint32_t *leaf_room; /* while room is counted; by domain */
    uint64_t *memo_key;  /* what a node's free devices have room for */
    uint64_t *memo_room;
    uint32_t *decisions; /* in ns, cut at UINT32_MAX */
};
void measure_init(struct measure *m, const struct replay_config *config,
                  struct replay_result *r);
void measure_fini(struct measure *m);

void measure_decision(struct measure *m, int64_t ns);
/* A job that was started on `spots`, and what its pairs were given there. */
void measure_job(struct measure *m, const struct replay_job *job, size_t number,
                 const struct spot *spots, const struct spot *given);
/* It has ended: what its pairs had. */
void measure_job_end(struct measure *m, const struct spot *spots, uint32_t n);
/* What could still start now. */
void measure_room(struct measure *m, const struct snapshot *s,
                  struct replay_sample *ret_sample);
/* At the end.  Sorts the array. */
void measure_waits(struct replay_result *r, int64_t *waits, size_t n);
void measure_decisions(struct measure *m);

#endif
