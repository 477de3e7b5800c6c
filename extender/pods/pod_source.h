/* pod_source - where pods come from and where their state goes, as the
 * listeners see it.  There are two:
 *
 *   embedded   pods are applied to this extender, kept in its store, placed by
 *              its runner and run by its nodes (run/embedded.h)
 *   cluster    pods are the API server's; binds become true there
 *              (cluster/cluster.h)
 *
 * An operation that a source lacks (NULL) finds nothing and adds nothing.  All
 * may be called by any thread, through pod_source_ask() and _tell() or, where
 * something else holds without it, a function below.  `ctx` is the source's. */
#ifndef BIGA_EXTENDER_PODS_POD_SOURCE_H
#define BIGA_EXTENDER_PODS_POD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/pods/job_pod.h"
#include "extender/state/allocation.h"
#include "extender/state/card_bars.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"
#include "model/pod/demand.h"

enum { POD_SOURCE_LEADER_MAX = 254 };

struct ended_jobs; /* extender/jobs/ended_jobs.h */

/* What a source says of a pod, or of a job's pod, that asks for a place. */
struct pod_account {
    struct demand demand;
    /* NULL: it waits, and is to be judged, and `text` is "" or says something
     * beside that; else a constant word, and `text` says why */
    const char *state;
    struct str text;
    const struct allocation *place; /* it has one; the rest is not set */
};

/* What filter has answered about a pod. */
struct pod_answer {
    const struct demand *pod;
    const struct snapshot *snapshot;
    const int32_t *nodes; /* indexes of those that were named */
    size_t n;
    const char *refusal; /* why no node fits; NULL: one does */
    const char *broken;  /* how the pod breaks its contract; NULL: it does
                          * not */
};

/* A bind that the writer has decided.  What it points to lives until `done`,
 * which is called once, by any thread. */
struct pod_bind {
    const char *namespace, *name, *uid, *node;
    const struct demand *demand;
    const char *allocation; /* as JSON; size 0: it holds nothing of ours */
    size_t allocation_size;
    uint64_t number;   /* of the allocation; 0: there is none */
    bool created;      /* decided now, not by an earlier request */
    const char *patch; /* a merge patch that opens the pod's gate, in place of a
                        * bind; NULL: none */
    size_t patch_size;
    /* `result` is a word of APP_BINDS; `error` is "" when it is bound */
    void (*done)(struct pod_bind *b, const char *result, const char *error);
};

/* A card or a node is to be drained, or is no longer.  What it points to lives
 * until `done`, which is called once, by any thread. */
struct pod_drain {
    const char *node;
    const struct card_bar *bar;
    bool gone;
    int result; /* 0 when it is durable, or -errno */
    struct error error;
    void (*done)(struct pod_drain *d);
    void *ctx;
    struct pod_drain *next; /* the source's */
};

struct pod_source_ops {
    /* --- this replica --- */

    /* May it bind?  And who may, as far as it knows; NULL: it may. */
    bool (*leads)(void *ctx, char ret_leader[POD_SOURCE_LEADER_MAX]);
    /* Can it do all that it is for?  Else why not. */
    bool (*is_ready)(void *ctx, struct str *why);
    /* Brings its metrics up to date. */
    void (*gauge)(void *ctx, const struct snapshot *s);

    /* --- what it knows of pods --- */

    /* A pod that waits for a node, and keeps to the contract. */
    bool (*find_demand)(void *ctx, const char *uid, struct demand *ret_demand);
    /* A pod without an allocation; ret->text is the caller's. */
    bool (*find)(void *ctx, const struct snapshot *s, const char *namespace,
                 const char *name, struct pod_account *ret);
    /* The pod that tells most of why a job does not run. */
    bool (*find_job)(void *ctx, const struct snapshot *s, const char *namespace,
                     const char *job, struct pod_account *ret);
    /* A key of the pod that is none of the contract's. */
    bool (*find_unknown_key)(void *ctx, const char *namespace, const char *name,
                             struct str *text);
    /* Join what a pod's claims ask into its demand; `at_gate`: Biga is to plan
     * it, else kube-scheduler asks about it.  0; -EDOM: they cannot be planned
     * with, and why. */
    int (*join_claims)(void *ctx, const struct snapshot *s,
                       const struct jtext *pod, bool at_gate,
                       struct demand *demand, struct error *err);
    /* How a pod fares that has its place: "; …", or nothing. */
    void (*add_health)(void *ctx, const struct allocation *a, struct str *text);
    /* What a pod that fits still waits for: "; …", or nothing.  False: it does
     * not know, so it is kube-scheduler's to say. */
    bool (*add_waiting)(void *ctx, const struct demand *pod, struct str *text);

    /* Every pod that it knows, is Biga's and is asked for. */
    void (*each_pod)(void *ctx, const struct snapshot *s,
                     const struct pods_asked *asked, job_pod_f *visit,
                     void *arg);
    /* Others, without a place, that a scheduler of elsewhere asks about: all. */
    void (*each_asking)(void *ctx, const struct snapshot *s, job_pod_f *visit,
                        void *arg);
    /* The jobs of those of each_pod(), no services, in the order of their names:
     * at most `most` behind that one.  `visit` may be called under a lock. */
    void (*each_job)(void *ctx, const struct job_name *behind, size_t most,
                     job_name_f *visit, void *arg);
    /* Changes when that may tell otherwise, for ETags. */
    uint64_t (*pods_version)(void *ctx);
    /* The jobs of which all pods are gone; the source's. */
    struct ended_jobs *(*ended)(void *ctx);

    /* --- what it adds to an object that is shown --- */

    /* Changes when that may have changed, for ETags. */
    uint64_t (*version)(void *ctx);
    /* `out` ends with an object, which gets further members. */
    void (*add_to_allocation)(void *ctx, const struct allocation *a,
                              struct str *out);
    void (*add_to_card)(void *ctx, const struct node *node, size_t card,
                        struct str *out);

    /* --- what it is told --- */

    /* Filter has answered; whoever was refused is tried again when there is
     * room. */
    void (*answered)(void *ctx, const struct pod_answer *answer);
    /* May an operator end this allocation?  Else why not.  `*ret_unfed`: its
     * node was never told of it. */
    bool (*may_release)(void *ctx, const char *namespace, const char *name,
                        bool *ret_unfed, struct str *why);

    /* Where drains are kept elsewhere than in the store, which the writer is
     * told of then. */
    void (*drain)(void *ctx, struct pod_drain *d);

    /* --- binds, where they have to become true elsewhere (all or none) --- */

    /* A request begins, before anything is decided. */
    void (*bind_begin)(void *ctx, const char *uid);
    /* It was decided: make it true, and call b->done(). */
    void (*bind)(void *ctx, struct pod_bind *b);
    /* It was refused: it ends here, without b->done(). */
    void (*bind_refused)(void *ctx, const struct pod_bind *b,
                         const char *reason);
};

struct pod_source {
    const struct pod_source_ops *ops;
    void *ctx;
};

/* Does the source have this operation?  One without any is that of a test. */
#define pod_source_has(s, op) ((s)->ops && (s)->ops->op)
/* The result of an operation; false or 0 where the source lacks it. */
#define pod_source_ask(s, op, ...) \
    (pod_source_has(s, op) ? (s)->ops->op((s)->ctx, ##__VA_ARGS__) : 0)
/* An operation without a result; nothing where the source lacks it. */
#define pod_source_tell(s, op, ...)                \
    do {                                           \
        if (pod_source_has(s, op))                 \
            (s)->ops->op((s)->ctx, ##__VA_ARGS__); \
    } while (0)

/* Operations that hold where the source lacks them: it leads and is ready,
 * every allocation may be released, and what is decided is bound. */
bool pod_source_leads(const struct pod_source *s,
                      char ret_leader[POD_SOURCE_LEADER_MAX]);
bool pod_source_is_ready(const struct pod_source *s, struct str *why);
bool pod_source_may_release(const struct pod_source *s, const char *namespace,
                            const char *name, bool *ret_unfed, struct str *why);
void pod_source_bind(const struct pod_source *s, struct pod_bind *b);

#endif
