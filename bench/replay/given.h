/* given - which GPUs of its node each pair of a running job really has.
 *
 * A device plugin of a kubelet is asked for a number of GPUs and does not know
 * of any promise: here it gives those of the lowest index (the order of PCI
 * addresses) that are free, to pods in the order of their ranks.  A claim pins
 * the GPUs that were promised. */
#ifndef BIGA_BENCH_REPLAY_GIVEN_H
#define BIGA_BENCH_REPLAY_GIVEN_H

#include <stddef.h>
#include <stdint.h>

#include "bench/replay/fleet.h"
#include "bench/replay/policy.h"

enum gpus_by { GPUS_BY_PLUGIN, GPUS_BY_CLAIMS };

struct given {
    enum gpus_by by;
    const struct replay_fleet *fleet;
    uint16_t *taken;    /* GPUs of each node */
    struct spot **jobs; /* those that run: what their pairs have */
    size_t n_jobs;
};
void given_init(struct given *g, enum gpus_by by,
                const struct replay_fleet *fleet, size_t n_jobs);
void given_fini(struct given *g);

/* The job's `n` pairs start where they were promised to; no two promises that
 * stand share a GPU.  Returns the spots with the GPUs that they have, which
 * stay the book's until given_release(). */
const struct spot *given_take(struct given *g, uint32_t job,
                              const struct spot *promised, uint32_t n);
/* The job has ended. */
void given_release(struct given *g, uint32_t job, uint32_t n);

#endif
