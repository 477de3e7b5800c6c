/* cost - what communication costs a job where it was placed: an alpha-beta
 * model (R. W. Hockney, "The communication challenge for MPP", Parallel
 * Computing 20, 1994) over the relations and fabric tiers of its pairs.
 *
 * A message of m bytes between two pairs takes alpha + m / bandwidth; alpha
 * is that of the farthest tier between them, the bandwidth that of the worse
 * relation of the two pairs, times the factor of the tier.  A collective is
 * as slow as its slowest link in each step.
 *
 * The uplinks of a leaf switch are shared by all jobs: when more flows want to
 * go up (or down) than there are links, each gets the same part. */
#ifndef BIGA_BENCH_REPLAY_COST_H
#define BIGA_BENCH_REPLAY_COST_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "model/fabric/fabric.h"
#include "model/topo/topo.h"

/* Where the parts of a job are to each other. */
enum cost_tier {
    COST_NODE,  /* on one node */
    COST_LEAF,  /* below one leaf switch */
    COST_SPINE, /* one tier above the leaf */
    COST_CORE,  /* higher, or nothing is known */
    COST_TIERS
};

/* The constants, from a file (costs.json). */
struct costs_model {
    double bytes_per_s[RELATION_COUNT];
    double alpha_s[COST_TIERS];
    double factor[COST_TIERS];
    double tapered;   /* cards below a leaf per link above; 0: links are not
                       * shared */
    double contended; /* of its bandwidth a shared link still carries */
};

enum collective {
    COLL_BARRIER,
    COLL_BCAST,
    COLL_ALLREDUCE,
    COLL_ALLGATHER,
    COLL_REDUCE_SCATTER,
    COLL_ALLTOALL,
    COLL_ALLTOALLV,
    COLL_COUNT
};

enum {
    PROFILE_CALLS_MAX = 4096,
    PROFILE_TEXT_MAX = 64 << 20,
    COSTS_TEXT_MAX = 1 << 20,
};

/* One kind of call: how often, with how many bytes.  The bytes are those of
 * a whole vector (bcast, allreduce, reduce-scatter: the input; allgather: the
 * result), or what one rank sends to one other (alltoall, alltoallv). */
struct profile_call {
    enum collective what;
    double bytes;
    uint64_t count;
};

struct profile {
    struct profile_call calls[PROFILE_CALLS_MAX];
    size_t n;
    uint64_t n_skipped; /* point-to-point and other lines without a model */
};

/* --- reading ------------------------------------------------------------ */

/* JSON: see costs.json.  Strict but for members named "source" and
 * "note". */
int costs_read(const char *name, const char *text, size_t size,
               struct costs_model *ret_model, struct error *err);
/* AICB's CSV, SimGrid's time-independent trace of one rank, or UCC's ini of
 * alltoallv matrices; told from the text. */
int profile_read(const char *name, const char *text, size_t size,
                 struct profile *ret_profile, struct error *err);
/* The project's own: one iteration of an MPI+UCC application. */
void profile_default(struct profile *ret_profile);

/* --- the model ---------------------------------------------------------- */

/* A pair as the model sees it. */
struct cost_place {
    int32_t node;
    int32_t leaf; /* domain of tier 0 of `fabric`, or FABRIC_NONE */
    uint8_t relation;
};

enum cost_tier cost_tier(const struct fabric *fabric,
                         const struct cost_place *a,
                         const struct cost_place *b);

/* What a job talks over, and who else does. */
struct cost_net {
    const struct fabric *fabric;
    /* by domain of tier 0; NULL: it has all links to itself */
    const double *links;  /* upwards, each as fast as a card's */
    const double *others; /* flows of other jobs, each way */
};

/* Seconds that one run through the profile takes with `n` pairs, in the order
 * of their ranks. */
double cost_job(const struct costs_model *m, const struct profile *profile,
                const struct cost_net *net, const struct cost_place *places,
                size_t n);

#endif
