/* cluster_parts - the handlers of the reflector's collections: what the API
 * server tells of slices, Leases, Nodes and pods, handed on to the writer.
 *
 * All run on the reflector's thread. */
#ifndef BIGA_EXTENDER_CLUSTER_CLUSTER_PARTS_H
#define BIGA_EXTENDER_CLUSTER_CLUSTER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/achieved/achieved_book.h"
#include "extender/cluster/dpu_object.h"
#include "extender/cluster/feed.h"
#include "extender/leader/pod_listener.h"
#include "lib/kube/reflector.h"
#include "model/fabric/fabric.h"

/* --- objects ------------------------------------------------------------ */

/* What every handler reads of an object, without a DOM. */
struct cluster_object {
    char name[254];
    char uid[64];              /* "" when it has none */
    char resource_version[64]; /* the same */
    struct jtext labels;       /* the JSON object; data NULL: none */
    struct jtext spec, status; /* the same; all are borrowed */
};
/* -EINVAL when it is no sound JSON or has no name. */
int cluster_object_read(const char *json, size_t size,
                        struct cluster_object *ret_object, struct error *err);

/* --- the collections ---------------------------------------------------------
 *
 * Each has a reflector_handler whose ctx is what its create() returned.
 * `destroy` takes NULL. */

/* ResourceSlices of ours.  In the API server the newest resourceVersion is
 * the truth (advertisers see to it that it is theirs alone), so where ingest
 * would call a slice older than what it has, what it has is withdrawn
 * first. */
struct cluster_slices;
struct cluster_slices_config {
    struct feed *feed;
    struct metrics *metrics;
    /* Both may be NULL.  Something was published for a node of which nothing
     * was known; all slices are listed. */
    void (*appeared)(void *ctx, const char *node);
    void (*listed)(void *ctx);
    void *ctx;
};
struct cluster_slices *
cluster_slices_create(const struct cluster_slices_config *config);
/* Every node with slices. */
void cluster_slices_each(struct cluster_slices *c,
                         void (*visit)(void *ctx, const char *node), void *ctx);
void cluster_slices_destroy(struct cluster_slices *c);
extern const struct reflector_handler cluster_slices_handler;

/* Leases of the nodes: a node whose Lease was renewed is heard. */
struct cluster_heartbeats;
struct cluster_heartbeats *cluster_heartbeats_create(struct feed *feed,
                                                     int64_t fresh_ms);
void cluster_heartbeats_destroy(struct cluster_heartbeats *c);
/* Slices were listed: tell again which nodes are silent. */
void cluster_heartbeats_silence(struct cluster_heartbeats *c);
extern const struct reflector_handler cluster_heartbeats_handler;

/* Reports of what pods have, in ConfigMaps named as their nodes. */
struct cluster_achieved;
struct cluster_achieved *cluster_achieved_create(struct achieved_book *book);
void cluster_achieved_destroy(struct cluster_achieved *c);
extern const struct reflector_handler cluster_achieved_handler;

/* Nodes: whether they are there and ready, and the labels that say where they
 * hang; all are handed on to others, too. */
struct cluster_nodes;
struct cluster_nodes *cluster_nodes_create(struct feed *feed,
                                           const struct fabric_labels *labels);
/* A node with slices that is no Node is lost, too: called for each that
 * appears, and for all once Nodes are listed, by `each`. */
void cluster_nodes_check(void *ctx, const char *node);
void cluster_nodes_each(struct cluster_nodes *c,
                        void (*each)(void *ctx,
                                     void (*visit)(void *ctx, const char *node),
                                     void *visit_ctx),
                        void *ctx);
/* One more, up to CLUSTER_NODES_NEXT_MAX; before the reflector starts. */
enum { CLUSTER_NODES_NEXT_MAX = 4 };
void cluster_nodes_next(struct cluster_nodes *c,
                        const struct reflector_handler *next, void *ctx);
/* For fabric_files_join(): any thread. */
bool cluster_nodes_changed(void *ctx);
void cluster_nodes_write(void *ctx, struct str *out);
void cluster_nodes_destroy(struct cluster_nodes *c);
extern const struct reflector_handler cluster_nodes_handler;

/* What DPU operators say of their DPUs (dpu_object.h): cards that are not ready
 * are barred.  Each kind has a ctx of its own. */
struct cluster_dpus;
struct cluster_dpus *cluster_dpus_create(struct feed *feed);
void cluster_dpus_destroy(struct cluster_dpus *c);
struct cluster_dpus_of;
struct cluster_dpus_of *cluster_dpus_of(struct cluster_dpus *c,
                                        enum dpu_kind kind);
extern const struct reflector_handler cluster_dpus_handler;

/* Drains: ConfigMap biga-drains (leader/drain_entry.h). */
struct cluster_drains;
struct cluster_drains *cluster_drains_create(struct feed *feed);
void cluster_drains_destroy(struct cluster_drains *c);
extern const struct reflector_handler cluster_drains_handler;

/* Pods with a role. */
struct cluster_pods;
struct cluster_pods_config {
    struct feed *feed;
    struct writer *writer;
    struct metrics *metrics;
    struct pending_demands *demands;
    const struct demand_config *demand; /* outlives it */
    /* of the binder: keep an allocation that it works at; or NULL */
    bool (*is_busy)(void *ctx, const char *uid);
    /* told once of a pod that is bound without an allocation; or NULL */
    void (*unaccounted)(void *ctx, const struct kube_pod *pod, const char *why);
    void *ctx;
};
struct cluster_pods *
cluster_pods_create(const struct cluster_pods_config *config);
void cluster_pods_destroy(struct cluster_pods *c);
/* Before the reflector starts. */
void cluster_pods_listen(struct cluster_pods *c,
                         const struct pod_listener *listener);
extern const struct reflector_handler cluster_pods_handler;
/* Any thread: a pod that is not bound, and keeps to the contract. */
bool cluster_pods_find(struct cluster_pods *c, const char *uid,
                       struct demand *ret_demand);
/* Any thread: has the watch shown it as bound, opened (kube_pod_is_opened()),
 * or finished? */
bool cluster_pods_is_bound(struct cluster_pods *c, const char *uid);
/* As members of a JSON object: counts, and the pods that are bound without
 * an allocation that can be read.  Any thread. */
void cluster_pods_write(struct cluster_pods *c, struct str *out);
size_t cluster_pods_n_unaccounted(struct cluster_pods *c);
/* Has the pod a key that is none of the contract's?  Then which.  Any
 * thread. */
bool cluster_pods_find_unknown_key(struct cluster_pods *c,
                                   const char *namespace, const char *name,
                                   struct str *text);
/* Is it one of them?  Then where it is, and why, for people.  Any thread. */
bool cluster_pods_find_unaccounted(struct cluster_pods *c,
                                   const char *namespace, const char *name,
                                   struct str *text);

#endif
