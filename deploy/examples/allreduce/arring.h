/* arring - the sum of the buffers of all, at all: each sends to the next of the
 * ring, in the order of ranks, and receives from the one before. */
#ifndef BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARRING_H
#define BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARRING_H

#include "deploy/examples/allreduce/arlink.h"

struct ar_ring {
    uint16_t rank, size;
    struct ar_link next, before; /* of none when there is one rank */
    uint32_t step;               /* of the next frame */
};
/* `n` doubles; `room` has as many, for what comes.  All ranks call it with the
 * same n, as often. */
int arring_sum(struct ar_ring *r, double *buffer, double *room, size_t n,
               struct error *err);
/* Begin the connection to the next one. */
int arring_join(struct ar_ring *r, const char *host, unsigned port,
                const char *what, int timeout_ms, struct error *err);
/* Is the one who connected the one before?  Then `l` is the ring's. */
int arring_take(struct ar_ring *r, struct ar_link *l, const struct ar_frame *f,
                struct error *err);
void arring_close(struct ar_ring *r);

#endif
