/* nodestatus - what a node says of its pods and places (POST
 * /v1/nodes/NODE/status).  Pure. */
#ifndef BIGA_EXTENDER_PODS_NODESTATUS_H
#define BIGA_EXTENDER_PODS_NODESTATUS_H

#include <stddef.h>
#include <stdint.h>

#include "extender/pods/pods.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/topo/topo.h"

enum {
    NODESTATUS_PODS_MAX = 4096,
    NODESTATUS_PLACES_MAX = TOPO_CARDS_MAX + 1, /* its cards and the host */
    NODESTATUS_BODY_MAX = 16 << 20,
    NODESTATUS_BOOT_MAX = 63,
    NODESTATUS_RUNTIME_MAX = 127,
};

enum place_health {
    PLACE_READY,   /* answers */
    PLACE_SUSPECT, /* did not answer once: nothing new is begun there */
    PLACE_LOST,    /* for longer: its capacity is withdrawn */
    PLACE_DRAINED, /* by the operator: what runs stays, nothing new comes */
    PLACE_HEALTHS
};
const char *place_health_name(enum place_health health); /* "ready" … */

struct place_told {
    char name[TOPO_ID_MAX + 1]; /* of the card, or "host" */
    enum place_health health;
    char reason[PODS_MESSAGE_MAX + 1];
    char runtime[NODESTATUS_RUNTIME_MAX + 1]; /* "" not known */
};

struct nodestatus_pod {
    char uid[DEMAND_UID_MAX + 1];
    struct pod_status *status; /* owned */
};

struct nodestatus {
    char boot[NODESTATUS_BOOT_MAX + 1];
    bool whole; /* with this it has told of all its pods; older ones never do */
    struct nodestatus_pod *pods;
    size_t n_pods;
    struct place_told places[NODESTATUS_PLACES_MAX];
    size_t n_places;
};
void nodestatus_destroy(struct nodestatus *s); /* NULL allowed */
DEFINE_CLEANUP(nodestatus, struct nodestatus *, nodestatus_destroy)

/* 0, or -EINVAL with path and value: `pods[3].state: is "up", must be …`.
 * Reasons, messages and runtimes that are too long are cut; everything else
 * that is is refused.  Members that we do not know are skipped, for the node
 * may be newer; it is older when it does not say whether a pod `ran`. */
int nodestatus_parse(const char *json, size_t size,
                     struct nodestatus **ret_status, struct error *err);

#endif
