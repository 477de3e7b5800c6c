/* node_report - what a node says of its pods and places (POST
 * /v1/nodes/NODE/status).  Pure. */
#ifndef BIGA_EXTENDER_PODS_NODE_REPORT_H
#define BIGA_EXTENDER_PODS_NODE_REPORT_H

#include <stddef.h>

#include "extender/pods/applied.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/topo/topo.h"

enum {
    NODE_REPORT_PODS_MAX = 4096,
    NODE_REPORT_PLACES_MAX = TOPO_CARDS_MAX + 1, /* its cards and the host */
    NODE_REPORT_BODY_MAX = 16 << 20,
    NODE_REPORT_BOOT_MAX = 63,
    NODE_REPORT_RUNTIME_MAX = 127,
    USED_AT_MAX = 39,
};
#define USED_MAX (INT64_C(1) << 40) /* of either */

/* What a pod, or all pods of a place, use. */
struct used {
    bool known;
    int64_t cpu_milli, memory_mib;
    char at[USED_AT_MAX + 1]; /* when, RFC 3339; "" not told */
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
    char reason[APPLIED_MESSAGE_MAX + 1];
    char runtime[NODE_REPORT_RUNTIME_MAX + 1]; /* "" not known */
};

struct node_report_pod {
    char uid[DEMAND_UID_MAX + 1];
    struct pod_status *status; /* owned */
    struct used used;
};

struct node_report {
    char boot[NODE_REPORT_BOOT_MAX + 1];
    bool whole; /* with this it has told of all its pods; older ones never do */
    struct node_report_pod *pods;
    size_t n_pods;
    struct place_told places[NODE_REPORT_PLACES_MAX];
    struct used used[NODE_REPORT_PLACES_MAX]; /* of the places */
    size_t n_places;
};
void node_report_destroy(struct node_report *s); /* NULL allowed */
DEFINE_CLEANUP(node_report, struct node_report *, node_report_destroy)

/* 0, or -EINVAL with path and value: `pods[3].state: is "up", must be …`.
 * Reasons, messages and runtimes that are too long are cut; everything else
 * that is is refused.  Members that we do not know are skipped, for the node
 * may be newer; it is older when it does not say whether a pod `ran`. */
int node_report_parse(const char *json, size_t size,
                      struct node_report **ret_status, struct error *err);

#endif
