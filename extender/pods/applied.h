/* applied - what was applied in embedded mode, where no API server keeps it:
 * pods, ConfigMaps and Secrets, and what became of the pods.
 *
 * What was applied is durable (the store's tables pods and configs) and is
 * changed by the writer thread alone, by operations WRITER_PODS.  How pods
 * fare is kept in memory, is set by any thread, and is told again after a
 * start.  Readers take the current set, which never changes under them. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_H
#define BIGA_EXTENDER_PODS_APPLIED_H

#include "extender/pods/applied_set.h"

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

/* Have `gone` called with each pod that is forgotten, as it was last, on the
 * writer's thread and under our lock: nothing of ours may be called in it.  Not
 * while threads use `p`. */
void applied_watch_gone(struct applied *p,
                        void (*gone)(void *ctx, const struct applied_pod *pod),
                        void *ctx);

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
    enum pod_state ended; /* end: POD_STATE_GONE or POD_STATE_FAILED */
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
