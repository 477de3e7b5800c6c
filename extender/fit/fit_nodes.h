/* fit_nodes - may a pod be on a node, as kube-scheduler would judge it?  A
 * registry of what Nodes say and of what pods take of them, fed by one thread
 * (the reflector's), asked by any.
 *
 * Judged is, in this order: the Node is there; spec.unschedulable; taints;
 * node selector and required node affinity; host ports; the number of pods,
 * and every resource.  Left out: what pod_needs.unjudged says; anti-affinity
 * of pods that are there; features that nodes declare; settings of
 * kube-scheduler (an affinity that it adds, resources that it ignores); what
 * is allocated to a pod that is being resized (what its spec says counts).
 *
 * A pod that Biga has opened, but that is not bound yet, is assumed on its
 * node.
 *
 * Memory: 32 bytes a pod, at most two thirds of the slots in use, and what it
 * takes once for all that take the same; some 400 bytes a node, and its labels
 * and taints once for all that say the same (fit_kinds.h). */
#ifndef BIGA_EXTENDER_FIT_FIT_NODES_H
#define BIGA_EXTENDER_FIT_FIT_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/fit/pod_needs.h"

struct fit_nodes;
struct fit_nodes *fit_nodes_create(void);
void fit_nodes_destroy(struct fit_nodes *r); /* NULL allowed */

/* --- what is fed; one thread at a time ----------------------------------- */

/* A list of Nodes begins; it is complete: who was not put since is gone. */
void fit_nodes_list(struct fit_nodes *r);
void fit_nodes_listed(struct fit_nodes *r);
/* -EINVAL: it cannot be read; then it is as it was. */
int fit_nodes_put(struct fit_nodes *r, const char *json, size_t size,
                  struct error *err);
void fit_nodes_gone(struct fit_nodes *r, const char *name);

/* Pods are told by two that do not know of each other; a pod is of who put it
 * last, and only he can remove it. */
enum fit_source { FIT_OTHERS, FIT_ROLES };
/* A list of pods of a source begins, and is complete. */
void fit_nodes_list_pods(struct fit_nodes *r, enum fit_source source);
void fit_nodes_listed_pods(struct fit_nodes *r, enum fit_source source);
/* `node` is "" when it is not bound, or has finished: then it takes nothing,
 * unless it is assumed somewhere and not finished.  `json` is the Pod. */
struct fit_pod {
    const char *uid, *node;
    bool finished;
    const char *json;
    size_t size;
};
/* -EINVAL: what it takes cannot be read; then it takes one of the number. */
int fit_nodes_put_pod(struct fit_nodes *r, enum fit_source source,
                      const struct fit_pod *pod, struct error *err);
void fit_nodes_gone_pod(struct fit_nodes *r, enum fit_source source,
                        const char *uid);

/* --- what is asked and assumed; any thread -------------------------------- */

/* The pod is about to be bound to a node: charge it now.  Ends by itself once
 * the pod is put as bound or finished, or is gone; forget() ends it when it
 * has not been bound.  Assumed again, it is where it was assumed last; a pod
 * that is seen bound already is left alone. */
void fit_nodes_assume(struct fit_nodes *r, const char *uid, const char *node,
                      const struct pod_needs *needs);
void fit_nodes_forget(struct fit_nodes *r, const char *uid);
size_t fit_nodes_n_assumed(struct fit_nodes *r);

enum fit_reason {
    FIT_OK,
    FIT_NO_NODE,
    FIT_UNSCHEDULABLE,
    FIT_TAINT,
    FIT_AFFINITY,
    FIT_PORTS,
    FIT_RESOURCES, /* or the number of pods */
};

enum { FIT_TEXT_MAX = 512 };
struct fit_verdict {
    enum fit_reason reason;
    char text[FIT_TEXT_MAX]; /* "" when it is FIT_OK; in kube-scheduler's words,
                              * all that is lacking after one another:
                              * "Too many pods, Insufficient cpu" */
};
enum fit_reason fit_nodes_judge(struct fit_nodes *r,
                                const struct pod_needs *needs, const char *node,
                                struct fit_verdict *ret_verdict /* or NULL */);
/* The same as if some pods were not there: those that are to be evicted, or the
 * pod itself where it is assumed. */
struct fit_without {
    const char *const *uids;
    size_t n;
};
enum fit_reason fit_nodes_judge_without(struct fit_nodes *r,
                                        const struct pod_needs *needs,
                                        const char *node,
                                        const struct fit_without *without,
                                        struct fit_verdict *ret_verdict);
/* Many at once: `ret_reasons` has room for one of each.  Returns how many are
 * FIT_OK. */
size_t fit_nodes_judge_all(struct fit_nodes *r, const struct pod_needs *needs,
                           const char *const *nodes, size_t n,
                           enum fit_reason *ret_reasons);
/* The same, in one line for people, as kube-scheduler counts (a node may lack
 * several):
 * "0/12 nodes are available: 8 node(s) had untolerated taint(s) {dedicated:
 * infra}, 4 Insufficient nvidia.com/gpu"
 * At most FIT_TALLY_MAX reasons are told apart; the rest is "and more". */
enum { FIT_TALLY_MAX = 32 };
void fit_nodes_explain(struct fit_nodes *r, const struct pod_needs *needs,
                       const char *const *nodes, size_t n, struct str *out);

/* Resources that DeviceClasses give (spec.extendedResourceName, and
 * deviceclass.resource.kubernetes.io/NAME): on a node that has none of its own
 * kube-scheduler looks for devices, which is not judged here.  Replaces those
 * that were named before. */
void fit_nodes_set_by_class(struct fit_nodes *r, const char *const *resources,
                            size_t n);

/* How many pods with these needs fit there beside what is there; 0 where one
 * does not. */
int64_t fit_nodes_room(struct fit_nodes *r, const struct pod_needs *needs,
                       const char *node);

/* Grows whenever something changed by which a pod may fit that did not. */
uint64_t fit_nodes_version(struct fit_nodes *r);

#endif
