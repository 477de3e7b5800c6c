/* making - one RunPodSandbox or CreateContainer on a remote, never twice:
 *
 *     announce (durable) -> send -> note the id (durable) -> tell the kubelet
 *
 * A call that was announced before and has no known end is looked for first:
 * what has its key, its hash and has not run is adopted, anything else with its
 * key that is not running is removed; then it is sent.  The same when the
 * remote says that the name is reserved. */
#ifndef BIGA_ROUTER_KEEP_MAKING_H
#define BIGA_ROUTER_KEEP_MAKING_H

#include "lib/base/error.h"
#include "router/keep/keep.h"

/* The calls of a remote; each blocks for its own deadline at most. */
struct making_calls {
    /* 0 with the id; -EEXIST: the name is reserved; with any other error
     * `*ret_unmade`: nothing was made by it, and nothing will be. */
    int (*send)(void *ctx, char ret_id[KEPT_ID_MAX + 1], bool *ret_unmade,
                struct error *err);
    /* All there is of that pod, asked for at once. */
    int (*look)(void *ctx, const char *uid, struct seen *ret_seen,
                struct error *err);
    /* That id is nothing of the home's; NULL: nobody asks. */
    int (*judge)(void *ctx, const char *id, struct error *err);
    /* Stopped and removed; one that is not there is a success. */
    int (*remove)(void *ctx, const char *id, bool sandbox, struct error *err);
    void *ctx;
};

/* 0 with its id, which is durable; -EEXIST: what has its key runs, or has run;
 * -EBUSY: the same call is under way; else as the calls say. */
int making_run(struct keep *k, const struct kept *what,
               const struct making_calls *calls, char ret_id[KEPT_ID_MAX + 1],
               struct error *err);

#endif
