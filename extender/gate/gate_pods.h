/* gate_pods - the pods that Biga plans before kube-scheduler sees them: those
 * with the scheduling gate biga.dev/place, and what became of them, grouped by
 * what is planned together.
 *
 *   closed    the gate is there: to be planned
 *   opened    Biga has opened it with an allocation; kube-scheduler has not
 *             bound the pod yet
 *   settled   it is bound or finished, or never was ours to plan
 *
 * A registry, no I/O, no clock: its caller (gate_controller.h) plans and opens.
 * Not thread-safe. */
#ifndef BIGA_EXTENDER_GATE_GATE_PODS_H
#define BIGA_EXTENDER_GATE_GATE_PODS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/fit/pod_needs.h"
#include "extender/judge/job.h"
#include "extender/pods/kube_pod.h"
#include "lib/base/str.h"

enum {
    GATE_PODS_MAX = 32768, /* closed and opened pods; others are turned away */
    GATE_PODS_ROOM = GATE_PODS_MAX / 4 * 3, /* with no more than that, those
                             * may come again; after a while with any room */
    GATE_PODS_WHILE_MS = 60000,
    GATE_REFUSED_MS = 2000, /* kube-scheduler has had time to try again: what it
                             * still refuses is planned anew */
    GATE_FAULT_MAX = 512,
};

enum gate_state { GATE_CLOSED, GATE_OPENED, GATE_SETTLED };

/* One pod at one time; immutable. */
struct gate_pod {
    atomic_uint refs;
    struct demand demand; /* without what its claims ask */
    enum gate_state state;
    bool buddy;      /* a host pod for which an xPU pod is made */
    bool controlled; /* a controller makes it anew when it is deleted */
    bool never_preempts;
    bool deleting, bound;
    bool finished, failed;     /* failed: that is how */
    bool has_claims, in_group; /* of a PodGroup */
    bool claims_due;    /* its status does not name all of them yet: Kubernetes'
                      * controller makes them of their templates */
    int64_t refused_ms; /* opened, and refused by kube-scheduler since then; 0:
                         * it is not */
    uint64_t turn;      /* counts up in the order of arrival */
    char owner[DEMAND_UID_MAX + 1];       /* uid of its controller; "" none */
    char other_gate[DEMAND_NAME_MAX + 1]; /* not Biga's; "" none */
    char fault[GATE_FAULT_MAX]; /* why it cannot be planned; "" it can */
    struct pod_needs *needs;    /* NULL when it is settled or at fault */
    char *json; /* the Pod, of one that is closed or opened; else NULL */
    size_t json_size;
};
struct gate_pod *gate_pod_ref(struct gate_pod *p);
void gate_pod_unref(struct gate_pod *p); /* NULL allowed */
DEFINE_CLEANUP(gate_pod, struct gate_pod *, gate_pod_unref)

/* Pods that are planned together (job_lease_key()), by pair, host pods first,
 * then as they came.  The caller's: gate_unit_fini(). */
struct gate_unit {
    char key[JOB_LEASE_KEY_MAX];
    struct gate_pod **pods;
    size_t n;
};
void gate_unit_fini(struct gate_unit *u);
static inline void cleanup_gate_unit_p(struct gate_unit *u)
{
    gate_unit_fini(u);
}
#define cleanup_gate_unit __attribute__((__cleanup__(cleanup_gate_unit_p)))

/* Those of its pods for which `wants` says so. */
void gate_unit_select(const struct gate_unit *u,
                      bool (*wants)(const void *ctx, const struct gate_pod *p),
                      const void *ctx, struct gate_unit *ret_unit);
/* The pods of one pair, which are adjacent: the index of the first, and how
 * many; 0: none. */
size_t gate_unit_pair(const struct gate_unit *u, int32_t pair, size_t *ret_n);
/* A `wants`: its gate is closed, and it is not about to go. */
bool gate_pod_is_closed(const void *ctx, const struct gate_pod *p);
/* The pod of its pair that `xpu`, which has no claims, is to come after: it has
 * some, and kube-scheduler has not allocated them yet, so that the card may
 * still go to somebody else's claim.  NULL: there is none, or it is of a
 * PodGroup, whose pods kube-scheduler binds together. */
const struct gate_pod *gate_unit_claimer(const struct gate_unit *u,
                                         const struct gate_pod *xpu);

struct gate_pods;
struct gate_pods *gate_pods_create(void);
void gate_pods_destroy(struct gate_pods *g); /* NULL allowed */

/* A pod as it is now, or it is gone.  `put` tells whether somebody else has
 * opened the gate of a pod that was closed. */
void gate_pods_put(struct gate_pods *g, const struct kube_pod *pod,
                   int64_t now_ms, bool *ret_stray);
void gate_pods_gone(struct gate_pods *g, const char *uid);

/* What there is to do: the keys of units with a closed pod, or one that
 * kube-scheduler refuses; by priority, then as their first pod came.  The
 * caller frees the array. */
struct gate_turn {
    char key[JOB_LEASE_KEY_MAX];
    int64_t priority;
    uint64_t turn;
};
struct gate_turn *gate_pods_turns(const struct gate_pods *g, size_t *ret_n);
/* False when it is gone. */
bool gate_pods_unit(const struct gate_pods *g, const char *key,
                    struct gate_unit *ret_unit);
/* A reference, or NULL. */
struct gate_pod *gate_pods_find(const struct gate_pods *g,
                                const char *namespace, const char *name);
/* The first closed pod of a job, or NULL: none is. */
struct gate_pod *gate_pods_find_job(const struct gate_pods *g,
                                    const char *namespace, const char *job);
struct gate_pod *gate_pods_find_uid(const struct gate_pods *g, const char *uid);
/* Closed and opened ones. */
size_t gate_pods_count(const struct gate_pods *g);
/* Is there room again for pods that were turned away?  Once. */
bool gate_pods_take_room(struct gate_pods *g, int64_t now_ms);

/* What to do about a unit. */
enum gate_step {
    GATE_NOTHING,
    GATE_WAITS,   /* for something that `text` tells */
    GATE_PLACE,   /* its closed pods */
    GATE_REFUSED, /* what kube-scheduler refuses is to be planned anew */
};
enum gate_step gate_unit_judge(const struct gate_unit *u, int64_t now_ms,
                               struct str *text);
/* The same, whatever kube-scheduler refuses. */
enum gate_step gate_unit_judge_closed(const struct gate_unit *u,
                                      struct str *text);
/* When that may differ though nothing changes; INT64_MAX: never. */
int64_t gate_unit_due(const struct gate_unit *u, int64_t now_ms);

#endif
