/* applied_status - how a pod that was applied fares: immutable, ref-counted. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_STATUS_H
#define BIGA_EXTENDER_PODS_APPLIED_STATUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "model/pod/podspec.h"

enum {
    APPLIED_MAX = 65536,         /* pods, and configs, that are kept */
    APPLIED_CHANGES_MAX = 4096,  /* of one operation */
    APPLIED_BODY_MAX = 16 << 20, /* bytes of one request */
    APPLIED_MADE_MAX = 64 << 20, /* bytes of the objects that come of it */
    APPLIED_WATCHERS_MAX = 4,
    APPLIED_CONTAINERS_MAX = 2 * PODSPEC_CONTAINERS_MAX,
    APPLIED_REASON_MAX = 63,
    APPLIED_MESSAGE_MAX = 512,
    APPLIED_UID_SIZE = 36 + 1, /* of a UUID, with its NUL */
};

enum pod_state {
    POD_STATE_PENDING, /* it has no place; the reason says why */
    /* it has one; as the node says */
    POD_STATE_WANTED, /* also: the node has not said anything yet */
    POD_STATE_PREPARING,
    POD_STATE_PULLING,
    POD_STATE_CREATING,
    POD_STATE_RUNNING,
    POD_STATE_STOPPING,
    POD_STATE_GONE,
    POD_STATE_FAILED,
    POD_STATES
};
const char *pod_state_name(enum pod_state state); /* "pending" … */

struct pod_container {
    char name[64], state[16];
    int32_t exit_code;
    uint32_t restarts;
    char reason[APPLIED_REASON_MAX + 1];
};

struct pod_status {
    atomic_uint refs;
    enum pod_state state;
    bool ready;
    enum pod_ran {
        APPLIED_RAN_UNKNOWN, /* its node does not say */
        APPLIED_RAN_NEVER,
        APPLIED_RAN_ONCE, /* it was ready once, also before this start */
    } ran;
    uint32_t attempt;
    char reason[APPLIED_REASON_MAX + 1];   /* a word, "" none */
    char message[APPLIED_MESSAGE_MAX + 1]; /* what to do next, "" nothing */
    char address[64];                      /* "" not known */
    size_t n_containers;
    struct pod_container *containers; /* at most APPLIED_CONTAINERS_MAX */
};
/* POD_STATE_PENDING with nothing to say; fill it in before anybody else has it. */
struct pod_status *pod_status_create(size_t n_containers);
struct pod_status *pod_status_ref(struct pod_status *s);
void pod_status_unref(struct pod_status *s); /* NULL allowed */
DEFINE_CLEANUP(pod_status, struct pod_status *, pod_status_unref)
bool pod_status_equal(const struct pod_status *a, const struct pod_status *b);
/* Restarts of all containers together. */
uint32_t pod_status_restarts(const struct pod_status *s);
/* Has a container exited; or (`all_well`) have all, and none with an error? */
bool pod_status_has_exited(const struct pod_status *s, bool all_well);
/* Of one that does not run any more, POD_STATE_FAILED as its node tells it: has
 * it done what it was to do? */
bool pod_status_has_succeeded(const struct pod_status *s);

#endif
