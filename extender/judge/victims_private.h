/* victims_private - what victims.c and victims_job.c share. */
#ifndef BIGA_EXTENDER_JUDGE_VICTIMS_PRIVATE_H
#define BIGA_EXTENDER_JUDGE_VICTIMS_PRIVATE_H

#include "extender/judge/schedule.h"
#include "extender/judge/victims.h"

/* A pair on a node. */
struct unit {
    const struct allocation *const *members;
    size_t n;
    int64_t priority; /* sum over its pods */
    uint8_t job;      /* the first unit of the same job; JOB_BROKEN: the
                       * given victims break it already */
};
enum { JOB_BROKEN = UINT8_MAX };

/* Who can be evicted on one node. */
struct pool {
    const struct node *node;
    const struct allocation **members; /* of the node, by pair */
    const struct allocation **gone;    /* the given victims' pairs, and room
                                        * for everybody else */
    size_t n_given;
    unsigned n_given_units;
    struct unit *units; /* by priority, then pair */
    unsigned n_units;
    uint32_t *steps; /* left */
};

/* False when the given victims must not be evicted. */
bool pool_init(struct pool *p, const struct node *node,
               const struct demand *pod, const struct victims_ask *ask);
void pool_fini(struct pool *p);

/* Is there room once `gone` are? */
typedef bool room_f(void *ctx, const struct allocation *const *gone, size_t n);

/* The best set of units that makes room beside those in `evicted`; false when
 * not even all do. */
bool pool_find(struct pool *p, uint64_t evicted, room_f *room, void *ctx,
               uint64_t *ret_units);
/* The given victims and the units of `set`; valid until the next call. */
const struct allocation *const *pool_gone(struct pool *p, uint64_t set,
                                          size_t *ret_n);
int64_t pool_priority(const struct pool *p, uint64_t set);
/* What an answer names: of the given pairs those that `ask` leaves out, and
 * the units of `set`. */
void pool_name(struct pool *p, const struct victims_ask *ask, uint64_t set,
               struct victims *ret_victims);

/* victims_find() for a pod whose job has to be planned. */
void victims_find_job(struct snapshot *snapshot,
                      const struct schedule *schedule,
                      const struct victims_ask *asks, size_t n,
                      struct victims *ret_victims);

#endif
