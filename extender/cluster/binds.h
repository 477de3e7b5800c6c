/* binds - the bind requests that are under way, by pod, so that what was
 * allocated is given back by the last of them only, and by none once one of
 * them has bound the pod: kube-scheduler asks again while an earlier call may
 * still become true.  Any thread. */
#ifndef BIGA_EXTENDER_CLUSTER_BINDS_H
#define BIGA_EXTENDER_CLUSTER_BINDS_H

#include <stddef.h>
#include <stdint.h>

#include "model/pod/demand.h"

struct binds;
struct binds *binds_create(void);
void binds_destroy(struct binds *x); /* NULL allowed */

/* A request begins, before anything is allocated for it. */
void binds_begin(struct binds *x, const char *uid);

enum binds_end {
    BINDS_NOTHING, /* there was nothing to be bound */
    BINDS_BOUND,   /* the pod is bound as it was decided */
    BINDS_REFUSED, /* it is not, and not by this request any more */
};
/* What was allocated. */
struct binds_place {
    char node[DEMAND_NAME_MAX + 1];
    uint64_t number;
};
struct binds_result {
    enum binds_end end;
    struct binds_place place; /* refused: what is */
};
/* It ends.  When it is the last one of its pod, one of them was refused, and
 * none bound, `give_back` is called, before another request for the pod can
 * begin. */
typedef void binds_give_back_f(void *ctx, const struct binds_place *place);
void binds_finish(struct binds *x, const char *uid,
                  const struct binds_result *result,
                  binds_give_back_f *give_back, void *ctx);

/* Requests under way, of all pods. */
size_t binds_count(struct binds *x);

#endif
