/* cluster - the extender in a Kubernetes cluster: everything that an embedded
 * one is told over its publish listener or keeps in SQLite comes from the API
 * server, and its binds go there.
 *
 *   reflector ─▶ cluster_slices ────┐
 *             ─▶ cluster_heartbeats ┤ operations, in order  snapshot
 *             ─▶ cluster_nodes ─────┼──────────▶ writer ──────────▶ readers
 *             ─▶ cluster_pods ──────┤              │
 *             ─▶ cluster_dpus ──────┤              │
 *             ─▶ claim_book ────────┘              │
 *   elect ── lead / follow ────────────────────────┤
 *   scheduler's bind ── binds ─────────────────────┴─▶ binder ─▶ API server
 *   pair_controller: what the leader does about pairs (buddies, orphans)
 *   card_losses: tells of pods on lost cards, and evicts them
 *   waker: has pods that were refused tried again when there is room
 *   gate_controller: plans gated pods, and has the binder open their gates
 */
#ifndef BIGA_EXTENDER_CLUSTER_CLUSTER_H
#define BIGA_EXTENDER_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/achieved/achieved_book.h"
#include "extender/app/fabric_files.h"
#include "extender/claims/claim_book.h"
#include "extender/history/history.h"
#include "extender/keep/writer.h"
#include "extender/leader/binder.h"
#include "extender/leader/events.h"
#include "extender/leader/waiting_pods.h"
#include "extender/pods/pending_demands.h"
#include "extender/pods/pod_source.h"
#include "extender/state/plans.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/io/metrics.h"
#include "lib/kube/config.h"

struct cluster_config {
    struct writer *writer; /* store kind STORE_KUBERNETES */
    struct metrics *metrics;
    struct pending_demands *demands;
    struct plans *plans;
    struct achieved_book *achieved;
    struct history *history;     /* NULL: none is kept; outlives it */
    struct fabric_files *fabric; /* what its Nodes' labels say joins it */
    struct demand_config demand;
    const struct kube_config *kube; /* outlives it */
    const char *namespace;          /* of the election's Lease: biga-system */
    const char *heartbeats;         /* namespace of the nodes' Leases and
                                     * reports: biga-nodes */
    const char *identity;           /* of this replica; NULL: made up */
    int64_t fresh_ms;               /* of the writer */
    bool elect;          /* false: the only replica, always the leader
                                * (tests, one replica without a Lease) */
    bool events;         /* write Events and conditions */
    bool claims;         /* follow ResourceClaims (claims/claim_book.h) */
    bool dpus;           /* follow DPU operators' objects (dpu_object.h) */
    int64_t card_lost_s; /* how long pods stay on a lost card that say nothing
                          * themselves (model/pod/patience.h) */
};

struct cluster;
struct cluster_ps;
/* Returns once its threads run; ready follows later, when synced and
 * leading. */
int cluster_start(const struct cluster_config *config,
                  struct cluster **ret_cluster, struct error *err);
/* Requests that wait for the API server are answered: before the listeners are
 * stopped. */
void cluster_quiesce(struct cluster *c); /* NULL allowed */
/* After the listeners have been stopped, before the writer is. NULL allowed */
void cluster_stop(struct cluster *c);
DEFINE_CLEANUP(cluster, struct cluster *, cluster_stop)

struct pod_source cluster_source(struct cluster *c);
/* Of such a source alone. */
struct cluster *cluster_of(const struct pod_source *source);

/* Everything listed at least once: filter can be answered.  What was listed is
 * on its way to the writer, at least. */
bool cluster_is_synced(const struct cluster *c);
/* How its pods fare (cluster_ps.h); lives as long. */
struct cluster_ps *cluster_ps_of(struct cluster *c);
/* What is known of claims; NULL without `claims`. Lives as long. */
struct claim_book *cluster_claims_of(struct cluster *c);
/* An Event: the pod got less than it was promised.  Any thread. */
void cluster_tell_lost(struct cluster *c, const struct allocation *a,
                       const char *text);
/* As JSON, for /v1/cluster: who leads, and each collection's state. */
void cluster_write(struct cluster *c, struct str *out);
void cluster_write_text(struct cluster *c, struct str *out); /* as a table */
#endif
