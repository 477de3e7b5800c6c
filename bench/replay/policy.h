/* policy - who chooses where the pairs of a job go.
 *
 * Biga asks what the extender asks when it serves: schedule_best() and
 * schedule_choose() for a pod by itself, job_plan() for a whole job.  The
 * others place pair by pair, by a rule of their own, on what the same
 * snapshot says is free; all or none. */
#ifndef BIGA_BENCH_REPLAY_POLICY_H
#define BIGA_BENCH_REPLAY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/replay/fleet.h"
#include "bench/replay/leaf_fit.h"
#include "bench/replay/left.h"
#include "bench/replay/trace.h"
#include "extender/judge/job.h"
#include "lib/base/error.h"

enum replay_policy {
    POLICY_RANDOM,        /* any node, any devices */
    POLICY_FIRST_FIT,     /* the first node by name, the first devices by slice
                       * order, as DRA's allocator */
    POLICY_LEAST,         /* the emptiest node, any devices */
    POLICY_MOST,          /* the fullest node, any devices */
    POLICY_MOST_ALIGNED,  /* the fullest node, its best-aligned devices */
    POLICY_NUMA,          /* nodes where one NUMA node holds the pair first;
                          * of them the fullest, any devices there */
    POLICY_GREEDY,        /* the closest devices of all nodes, pod by pod */
    POLICY_FIRST_ALIGNED, /* the first node, its best-aligned devices */
    POLICY_NUMA_ALIGNED,  /* as numa-only, the best-aligned devices there */
    POLICY_LEAF,          /* leaf_fit's leaf for a job of several pairs; the
                           * fullest node, its best-aligned devices */
    POLICY_BIGA,
    POLICY_COUNT
};
const char *replay_policy_name(enum replay_policy policy);

/* A comma-separated list of names, or "all", as bits. */
int replay_policies_parse(const char *text, unsigned *ret_policies,
                          struct error *err);

/* Where a pair goes. */
struct spot {
    int32_t node;
    uint16_t cards, gpus;
};

struct chooser {
    enum replay_policy policy;
    const struct replay_fleet *fleet;
    bool want_gpus; /* as many as cards */
    uint64_t random;
    int32_t *candidates;    /* all nodes */
    int32_t *fitting;       /* those whose hosts have room */
    struct left left;       /* of the others, while a job is placed */
    struct leaf_fit leaves; /* POLICY_LEAF alone */
    struct spot *closest;   /* on devices that are free, remembered */
    uint64_t *closest_key;
};
void chooser_init(struct chooser *c, enum replay_policy policy,
                  const struct replay_fleet *fleet, bool want_gpus,
                  uint64_t seed);
void chooser_fini(struct chooser *c);

/* What pair `rank` of the job asks, as its host pod; `number` names the
 * job. */
void replay_demand(const struct chooser *c, const struct replay_job *job,
                   size_t number, uint32_t rank, struct demand *ret_demand);

/* All pairs of the job into `ret_spots`, or false. */
bool chooser_place(struct chooser *c, const struct snapshot *s,
                   const struct replay_job *job, size_t number,
                   struct spot *ret_spots);

#endif
