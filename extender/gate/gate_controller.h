/* gate_controller - the thread that plans gated pods and opens their gates,
 * while this replica leads, so that a kube-scheduler which knows nothing of
 * Biga binds them where they belong.
 *
 *   a unit    (a pair, or a job of several pairs) is planned when all its pods
 *             are there and no other gate holds one of them: all of its closed
 *             pods get a place, or none does; by priority, then as they came
 *   a gate    is opened in one PATCH with the allocation and what pins the pod
 *             to its node
 *   a refusal by kube-scheduler, which may know of more than Biga judges, makes
 *             the unit be planned anew, without that node for a while
 */
#ifndef BIGA_EXTENDER_GATE_GATE_CONTROLLER_H
#define BIGA_EXTENDER_GATE_GATE_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/claims/claim_book.h"
#include "extender/fit/fit_nodes.h"
#include "extender/keep/writer.h"
#include "extender/leader/binds.h"
#include "extender/leader/events.h"
#include "extender/leader/pod_listener.h"
#include "extender/pods/pending_demands.h"
#include "extender/state/plans.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/config.h"

enum {
    GATE_CALL_MS = 3000,
    GATE_AGAIN_MS = 12000, /* a unit that was planned anew is not again before
                            * kube-scheduler has tried it: its back-off is 10 s
                            * at most; doubled each time */
    GATE_AGAIN_MAX_MS = 600000,
    GATE_LOOK_MS = 1000,   /* while units wait: a Node may have changed */
    GATE_AVOID_MS = 60000, /* a node that kube-scheduler refused a unit's pod on
                            * is not planned with for it */
};

struct gate_config {
    const struct kube_config *kube; /* all of it outlives the controller */
    struct writer *writer;
    struct plans *plans;
    struct fit_nodes *fit;
    struct claim_book *claims; /* NULL: pods with claims are not planned */
    struct pending_demands *demands;
    struct binds *binds;
    /* An Event about a pod. */
    void (*tell)(void *ctx, const struct demand *pod, enum events_reason reason,
                 const char *text);
    /* Have every pod told again: some were more than GATE_PODS_MAX. */
    void (*relist)(void *ctx);
    /* Asked before every call; NULL: always. */
    bool (*may_write)(void *ctx, int64_t call_ms);
    void *ctx;
};

struct gate_controller;
int gate_controller_start(const struct gate_config *config,
                          struct gate_controller **ret_gate, struct error *err);
/* Its thread ends, before the binder is stopped, which ends the openings that
 * are under way; then it is destroyed. NULL allowed for both. */
void gate_controller_quiesce(struct gate_controller *g);
void gate_controller_destroy(struct gate_controller *g);

/* What cluster_pods tells; ctx is the struct gate_controller.  Nothing is done
 * before the first `listed`. */
struct pod_listener gate_controller_listener(struct gate_controller *g);
/* Look at everything again: this replica leads from now on, or what claims may
 * have is different.  Any thread. */
void gate_controller_wake(struct gate_controller *g);

/* Any thread.  A pod whose gate is closed, or that kube-scheduler refuses: its
 * demand, and what is told of it. */
enum gate_story {
    GATE_STORY_NONE,   /* there is no such pod */
    GATE_STORY_WAITS,  /* its gate waits for what `text` says */
    GATE_STORY_JUDGED, /* no node will do: `text`, and who judges it says more */
    GATE_STORY_OPENED, /* it has its place, but kube-scheduler refuses it */
};
enum gate_story gate_controller_explain(struct gate_controller *g,
                                        const char *namespace, const char *name,
                                        struct demand *ret_demand,
                                        struct str *text);
/* The same of the first pod of a job whose gate is closed. */
enum gate_story gate_controller_explain_job(struct gate_controller *g,
                                            const char *namespace,
                                            const char *job,
                                            struct demand *ret_demand,
                                            struct str *text);
/* As a member of a JSON object: how many pods wait. */
void gate_controller_write(struct gate_controller *g, struct str *out);

#endif
