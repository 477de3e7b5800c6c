/* armeasure - what a rank does in rounds, with its card and without: it sums up,
 * computes, and does both at once; every sum is checked. */
#ifndef BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARMEASURE_H
#define BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARMEASURE_H

#include <stdio.h>

#include "deploy/examples/allreduce/arring.h"
#include "deploy/examples/allreduce/arrole.h"

enum { AR_WORK = 4096 };
struct ar_rank {
    const struct ar_options *o;
    struct ar_link worker;
    struct ar_ring ring; /* of the hosts */
    uint32_t step;       /* of the worker's next sum */
    size_t n;            /* numbers of each buffer */
    double *buffer, *room;
    double work[AR_WORK];
    unsigned units; /* of computing, which take about as long as a sum */
    int result;     /* of the thread that hands the buffer over */
    struct error err;
};

/* Seconds of a round: of the sum alone, of computing alone, of both. */
struct ar_spent {
    double sum, compute, both;
};

/* The sum of `n` numbers of each rank by their workers, in place. */
int armeasure_offload(struct ar_rank *r, double *numbers, size_t n,
                      struct error *err);
/* Medians of the rounds.  -EBADMSG: a sum was wrong. */
int armeasure_run(struct ar_rank *r, bool offload, struct ar_spent *ret_spent,
                  struct error *err);
/* Of means over all ranks; `without` may be NULL. */
void armeasure_print(const struct ar_options *o, const struct ar_spent *with,
                     const struct ar_spent *without, FILE *out);

#endif
