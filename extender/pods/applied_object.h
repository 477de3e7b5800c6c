/* applied_object - a Pod, ConfigMap or Secret as it was applied: immutable,
 * ref-counted. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_OBJECT_H
#define BIGA_EXTENDER_PODS_APPLIED_OBJECT_H

#include "extender/pods/applied_status.h"
#include "lib/base/error.h"
#include "model/pod/demand.h"

struct applied_pod {
    atomic_uint refs;
    char uid[APPLIED_UID_SIZE]; /* given by us when it was applied */
    char *namespace, *name;
    char *json; /* the Pod, with namespace and uid; without its status and what
                 * only an API server writes; members in order of their
                 * names */
    size_t size;
    struct podspec_ref *sources; /* what it takes from, of its namespace */
    size_t n_sources;
    struct demand demand; /* with a role, always */
    /* The order of being applied: whoever came first is placed first.  Of the
     * store; all pods of one request have different ones. */
    uint64_t number;
    bool deleting;    /* somebody wants it gone; it stays so */
    uint32_t grace_s; /* how long it has to end, when deleting */
    /* Over for good: it is stopped where it is, and not placed again.  Durable,
     * with the reason and message of its status, which after a start is
     * { state: ended, reason, message }.  POD_STATE_GONE: it ended well;
     * POD_STATE_FAILED; POD_STATE_PENDING: it is not over. */
    enum pod_state ended;
    struct pod_status *end;    /* what it ended with; NULL: it is not over */
    struct pod_status *status; /* never NULL */
    struct applied_pod *next; /* of a service that was applied again: what takes
                                * its place when it is forgotten; NULL none */
    uint64_t version;         /* of the set in which it changed last */
    /* when it ran first, and was over, in seconds since 1970; 0: not, or it is
     * not known, as after a restart */
    int64_t started_s, ended_s;
    bool watched; /* its start, if it comes, is seen */
    /* A newer program stored it, and we do not understand it: why.  It is not
     * placed; where it has a place it is left as it is, until somebody deletes
     * it.  Of its demand hardly anything may be known.  NULL: we do. */
    char *fault;
};
struct applied_pod *applied_pod_ref(struct applied_pod *p);
void applied_pod_unref(struct applied_pod *p); /* NULL allowed */
DEFINE_CLEANUP(applied_pod, struct applied_pod *, applied_pod_unref)
struct applied_pod_names {
    const char *namespace, *name, *uid;
};
/* Reads a Pod (as applied_pod.json says) whose metadata.uid is `uid`; -EINVAL
 * with path and value when it is no pod that may be applied. */
int applied_pod_create(const char *json, size_t size, const char *uid,
                       const struct demand_config *config,
                       struct applied_pod **ret_pod, struct error *err);

/* A Pod that was stored and that applied_pod_create() refuses, `why`; NULL when
 * not even its names can be used. */
struct applied_pod *
applied_pod_create_foreign(const struct applied_pod_names *names,
                           const char *json, size_t size,
                           const struct demand_config *config, const char *why);

struct config_entry {
    char *key, *data;
    size_t size;
};
struct applied_config {
    atomic_uint refs;
    bool secret;
    bool immutable; /* its entries stay, and it stays so, until it is deleted */
    char *namespace, *name;
    char *json; /* as applied, normalised as a pod's */
    size_t size;
    struct config_entry *entries; /* by key; of data, binaryData, stringData,
                                   * decoded */
    size_t n_entries;
    uint64_t version;
};
struct applied_config *applied_config_ref(struct applied_config *c);
void applied_config_unref(struct applied_config *c); /* NULL allowed */
DEFINE_CLEANUP(applied_config, struct applied_config *, applied_config_unref)
int applied_config_create(const char *json, size_t size,
                          struct applied_config **ret_config,
                          struct error *err);

#endif
