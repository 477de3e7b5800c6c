/* uplink - what the jobs that run send over the uplinks of leaf switches: a
 * flow for each two neighbours of a job's ring of ranks that are on different
 * leaves. */
#ifndef BIGA_BENCH_REPLAY_UPLINK_H
#define BIGA_BENCH_REPLAY_UPLINK_H

#include "bench/replay/cost.h"
#include "bench/replay/fleet.h"
#include "bench/replay/policy.h"

struct uplinks {
    const struct replay_fleet *fleet;
    /* by domain of the fabric; NULL: links are not shared */
    double *links; /* in links of a card */
    double *flows; /* each way */
};
void uplinks_init(struct uplinks *u, const struct replay_fleet *fleet,
                  const struct costs_model *costs);
void uplinks_fini(struct uplinks *u);

/* A job starts on `spots`, or it has ended there. */
void uplinks_start(struct uplinks *u, const struct spot *spots, uint32_t n);
void uplinks_end(struct uplinks *u, const struct spot *spots, uint32_t n);

/* What a job that starts now would share; borrows `u`. */
struct cost_net uplinks_net(const struct uplinks *u);

#endif
