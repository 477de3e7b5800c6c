/* arrole - the two roles of the example: a worker on each card, and a rank on
 * the host that hands its buffer to its worker. */
#ifndef BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARROLE_H
#define BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARROLE_H

#include <stdbool.h>

#include "deploy/examples/allreduce/arhosts.h"

enum { AR_HOST_PORTS = 300 }; /* ports of ranks are so much above workers' */

struct ar_options {
    uint16_t rank, size; /* BIGA_RANK, BIGA_SIZE */
    const char *peer;    /* BIGA_PEER_ADDRESS: of the card's worker; or NULL */
    unsigned port;       /* of the worker of rank 0; the next ones' follow */
    unsigned timeout_s;
    bool once;                    /* worker: ends with its first job */
    const struct ar_hosts *cards; /* rank: of all workers */
    const struct ar_hosts *hosts; /* of all ranks; NULL: as they reach cards */
    bool offload_only;            /* rank: nothing is summed up by hosts */
    unsigned kib, rounds;
};

/* Serves its rank, and the next one; with `once` 0 or -errno. */
int arworker_run(const struct ar_options *o, struct error *err);
/* 0 when every sum was right. */
int arrank_run(const struct ar_options *o, struct error *err);

#endif
