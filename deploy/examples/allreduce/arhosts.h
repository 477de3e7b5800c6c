/* arhosts - on which host each rank's side is, of a hostfile of Open MPI as
 * `biga job --dpu-hostfile` writes it: a line for each host, with so many ranks
 * as it has slots, in the order of ranks.  Pure. */
#ifndef BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARHOSTS_H
#define BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARHOSTS_H

#include "deploy/examples/allreduce/arframe.h"

struct ar_hosts {
    size_t n; /* ranks */
    char of[AR_RANKS_MAX][AR_HOST_MAX + 1];
};
/* "NAME [slots=N] [max_slots=N]" or a comment in each line; at most
 * AR_HELLO_MAX bytes.  -EINVAL names the line. */
int arhosts_read(const char *text, size_t size, struct ar_hosts *ret_hosts,
                 struct error *err);

#endif
