/* runner - in embedded mode, what kube-scheduler, controllers and kubelets are
 * in a cluster: a thread that places applied pods by the same filter, score
 * and bind, sees to it that they end together, and takes back what they had
 * once their node says that nothing of them is left.
 *
 * What it does next follows from what is stored and from what nodes say, so
 * that after a crash it goes on where it was.  It looks when something has
 * changed, and rests otherwise; after a look also for four times as long as
 * that took, up to a second.
 *
 *   a pod     is placed when it fits, by priority, then in the order of being
 *             applied; it stays pending, with the reason, until then (of more
 *             than a thousand that wait a look tries the first, and goes on
 *             with those that the last one has not come to)
 *   a job     (biga.dev/size above 1) is begun when all of its pods were
 *             applied and all of its pairs fit; it is ended whole when one of
 *             its pods cannot start
 *   a pair    ends with its host pod, and then its xPU pods
 *   an end    of a pod is written down first; then its node stops it, its
 *             place is given back, and, when it was deleted, it is forgotten
 */
#ifndef BIGA_EXTENDER_RUN_RUNNER_H
#define BIGA_EXTENDER_RUN_RUNNER_H

#include "extender/pods/applied.h"
#include "lib/base/error.h"

struct pod_store;

enum {
    RUNNER_RETRY_MS = 1000,  /* after the store has failed */
    RUNNER_STUCK_MS = 30000, /* of a job that is placed in part, and of which
                              * nothing runs yet, before it is ended */
};

struct runner;
/* The store outlives it. */
int runner_start(const struct pod_store *store, struct runner **ret_runner,
                 struct error *err);
/* Its thread ends; pods go on. NULL allowed. */
void runner_stop(struct runner *r);
/* After the writer and the pods are gone, too, which call it. NULL allowed. */
void runner_destroy(struct runner *r);

/* Look again. Any thread; does not wait. */
void runner_wake(struct runner *r); /* NULL allowed */

/* How a pod fares as its node says, completed by what the node does not know:
 * the reason why it is over, that its xPU pod has failed.  The caller owns the
 * reference. */
struct pod_status *runner_status(const struct applied_pod *pod,
                                 struct pod_status *told);

/* Tests: wait until there is nothing left to do. */
void runner_settle(struct runner *r);

#endif
