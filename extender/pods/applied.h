/* applied - what was applied in embedded mode, where no API server keeps it:
 * pods, ConfigMaps and Secrets, and what became of the pods.
 *
 * What was applied is durable (the store's tables pods and configs) and is
 * changed by the writer thread alone, by operations WRITER_PODS.  How pods
 * fare is kept in memory, is set by any thread, and is told again after a
 * start.  Readers take the current set, which never changes under them. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_H
#define BIGA_EXTENDER_PODS_APPLIED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/pod/demand.h"
#include "model/pod/podspec.h"

enum {
    APPLIED_MAX = 65536,         /* pods, and configs, that are kept */
    APPLIED_CHANGES_MAX = 4096,  /* of one operation */
    APPLIED_BODY_MAX = 16 << 20, /* bytes of one request */
    APPLIED_WATCHERS_MAX = 4,
    APPLIED_CONTAINERS_MAX = 2 * PODSPEC_CONTAINERS_MAX,
    APPLIED_REASON_MAX = 63,
    APPLIED_MESSAGE_MAX = 512,
    APPLIED_UID_SIZE = 36 + 1, /* of a UUID, with its NUL */
};

/* --- how a pod fares: immutable, ref-counted ------------------------------ */

enum pod_state {
    APPLIED_PENDING, /* it has no place; the reason says why */
    /* it has one; as the node says */
    APPLIED_WANTED, /* also: the node has not said anything yet */
    APPLIED_PREPARING,
    APPLIED_PULLING,
    APPLIED_CREATING,
    APPLIED_RUNNING,
    APPLIED_STOPPING,
    APPLIED_GONE,
    APPLIED_FAILED,
    APPLIED_STATES
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
/* APPLIED_PENDING with nothing to say; fill it in before anybody else has it. */
struct pod_status *pod_status_create(size_t n_containers);
struct pod_status *pod_status_ref(struct pod_status *s);
void pod_status_unref(struct pod_status *s); /* NULL allowed */
DEFINE_CLEANUP(pod_status, struct pod_status *, pod_status_unref)
bool pod_status_equal(const struct pod_status *a, const struct pod_status *b);
/* Restarts of all containers together. */
uint32_t pod_status_restarts(const struct pod_status *s);

/* --- what was applied: immutable, ref-counted ----------------------------- */

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
     * { state: ended, reason, message }.  APPLIED_GONE: it ended well;
     * APPLIED_FAILED; APPLIED_PENDING: it is not over. */
    enum pod_state ended;
    struct pod_status *end;    /* what it ended with; NULL: it is not over */
    struct pod_status *status; /* never NULL */
    struct applied_pod *next; /* of a service that was applied again: what takes
                                * its place when it is forgotten; NULL none */
    uint64_t version;         /* of the set in which it changed last */
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

/* --- the set: immutable, ref-counted -------------------------------------- */

struct pod_set {
    atomic_uint refs;
    uint64_t version; /* grows with each change, also of a status; from another
                       * number after each start */
    struct applied_pod **pods; /* by namespace, name */
    size_t n_pods, applied_cap;
    struct applied_pod **by_uid;
    struct applied_config **configs; /* by namespace, kind, name */
    size_t n_configs, configs_cap;
};
struct pod_set *pod_set_ref(struct pod_set *s);
void pod_set_unref(struct pod_set *s); /* NULL allowed */
DEFINE_CLEANUP(pod_set, struct pod_set *, pod_set_unref)

/* Borrowed from the set; NULL when there is none. */
struct applied_pod *pod_set_find(const struct pod_set *s, const char *namespace,
                                 const char *name);
struct applied_pod *pod_set_find_uid(const struct pod_set *s, const char *uid);
/* What of a pod its node has to run: RUNS_… bits. */
uint8_t applied_pod_runs(const struct applied_pod *p);
/* What is decided on to place it: its demand, with what the node has to run of
 * it and of those that go with it: its pair, or its job when that is planned
 * as a whole. */
void pod_set_demand(const struct pod_set *s, const struct applied_pod *p,
                    struct demand *ret_demand);
struct applied_config *pod_set_config(const struct pod_set *s, bool secret,
                                      const char *namespace, const char *name);
/* What podspec_parse() takes files and variables from; borrows the set. */
struct podspec_source pod_set_source(const struct pod_set *s);

/* --- the registry --------------------------------------------------------- */

struct applied;
struct applied *applied_create(const struct demand_config *config);
void applied_destroy(struct applied *p); /* NULL allowed */

/* The current set; the caller owns the reference.  Any thread; hardly ever
 * waits. */
struct pod_set *applied_get(struct applied *p);
uint64_t applied_version(struct applied *p);

/* Have `changed` called after each change, on the thread that made it, without
 * a lock being held.  It must not block; applied_get() may be called in it. At
 * most APPLIED_WATCHERS_MAX; not while threads use `p`. */
void applied_watch(struct applied *p, void (*changed)(void *ctx), void *ctx);

/* How the pod of that uid fares (a reference is taken). -ENOENT: there is no
 * such pod. 0 also when it is no news: then nobody is called.  Any thread. */
int applied_set_status(struct applied *p, const char *uid,
                       struct pod_status *status);
/* The same of many at once; unknown uids are passed over. */
struct pod_report {
    const char *uid;
    struct pod_status *status;
};
void applied_set_statuses(struct applied *p, const struct pod_report *list,
                          size_t n);

/* --- changes: operations WRITER_PODS (writer.h) --------------------------- */

/* All changes of one operation are made, or none.  The poster owns everything
 * until it is done. */
struct pod_change {
    enum pod_change_kind {
        APPLIED_APPLY, /* pod: a new one; one that is there with the same spec is
                    * APPLIED_UNCHANGED, another spec -EEXIST; but a service's is
                    * APPLIED_REPLACED: it is what comes next */
        APPLIED_DELETE, /* it is to end: namespace, name, grace_s (< 0: its own).
                     * Again with another grace: that counts. -ENOENT */
        APPLIED_END, /* it is over: namespace, name, ended, status (whose state,
                       * reason and message it has from now on; a reference is
                       * taken; statuses of state FAILED and GONE that nodes
                       * tell later leave reason and message as they are).
                       * Again: APPLIED_UNCHANGED. -ENOENT */
        APPLIED_FORGET, /* it is gone from its node and has no allocation (release
                     * it first, or before it in the same batch): namespace,
                     * name. -ENOENT */
        CONFIG_APPLY,  /* config: new, or in place of the one there; of one that
                        * is immutable other entries, or that it is so no more:
                        * -EEXIST */
        CONFIG_DELETE, /* secret, namespace, name. -ENOENT */
    } kind;
    struct applied_pod *pod;
    struct applied_config *config;
    bool secret;
    const char *namespace, *name;
    const char *uid; /* delete, end, forget: only the pod of that uid; NULL:
                      * any */
    int64_t grace_s;
    bool roll;            /* delete: for what comes next; else nothing does */
    enum pod_state ended; /* end: APPLIED_GONE or APPLIED_FAILED */
    struct pod_status *status; /* end */

    /* the outcome */
    enum pod_result {
        APPLIED_UNCHANGED,
        APPLIED_CREATED,
        APPLIED_REPLACED,
        APPLIED_DELETED, /* or: is to be */
        APPLIED_ENDED,
    } result;
    char result_uid[APPLIED_UID_SIZE]; /* of the pod that is there now */
};
const char *pod_result_name(enum pod_result result); /* "unchanged" … */

#endif
