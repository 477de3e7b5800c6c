/* What binds.c (the requests under way) and binds_post.c (one of them)
 * share. */
#ifndef BIGA_EXTENDER_LEADER_BINDS_PRIVATE_H
#define BIGA_EXTENDER_LEADER_BINDS_PRIVATE_H

#include <pthread.h>

#include "extender/leader/binds.h"
#include "lib/base/strmap.h"

struct binds {
    struct binds_config config;
    pthread_mutex_t lock;
    struct strmap requests; /* struct request by UID */
    size_t n;
};

enum binds_end {
    BINDS_NOTHING, /* there was nothing to be bound */
    BINDS_BOUND,   /* the pod is bound as it was decided */
    BINDS_REFUSED, /* it is not, and this request will not bind it */
};
/* The allocation that was made. */
struct binds_place {
    char node[DEMAND_NAME_MAX + 1];
    uint64_t number;
};
struct binds_result {
    enum binds_end end;
    struct binds_place place; /* refused: what to give back */
};
/* A request ends.  If it was the pod's last, one was refused and none has
 * bound the pod, `give_back` is called before another request for the pod
 * can begin. */
typedef void binds_give_back_f(void *ctx, const struct binds_place *place);
void binds_finish(struct binds *x, const char *uid,
                  const struct binds_result *result,
                  binds_give_back_f *give_back, void *ctx);

#endif
