/* pod_listener - is told of the pods with a role that the API server has. */
#ifndef BIGA_EXTENDER_LEADER_POD_LISTENER_H
#define BIGA_EXTENDER_LEADER_POD_LISTENER_H

#include "extender/pods/kube_pod.h"

/* Told of every pod with a role label, bound or not, broken or not. `pod` is
 * borrowed for the call.  After a gap, pods that are not there any more are
 * gone before `listed`. */
struct pod_listener {
    void (*put)(void *ctx, const struct kube_pod *pod);
    void (*gone)(void *ctx, const char *uid);
    void (*listed)(void *ctx); /* may be NULL */
    void *ctx;
};

#endif
