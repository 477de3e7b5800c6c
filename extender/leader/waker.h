/* waker - the thread that makes kube-scheduler retry refused pods as soon as
 * there is room for them (waiting_pods.h), while this replica leads.
 *
 * kube-scheduler retries a pod that it has put aside when that pod changes.  So
 * the thread writes a condition into its status, which says why; it changes
 * nothing else, and no other object. */
#ifndef BIGA_EXTENDER_LEADER_WAKER_H
#define BIGA_EXTENDER_LEADER_WAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/keep/writer.h"
#include "extender/leader/pod_listener.h"
#include "extender/leader/waiting_pods.h"
#include "extender/state/plans.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

enum { WAKER_CALL_MS = 3000 };

/* How a pod fares in a snapshot, as filter would answer.  Pure but for the
 * memory of plans, which may be NULL. */
void waker_judge(struct plans *memory, const struct snapshot *snapshot,
                 const struct demand *pod, const struct candidates *named,
                 struct waiting_pods_verdict *ret_verdict);

struct waker_config {
    const struct kube_config *kube; /* outlives it */
    struct writer *writer;
    struct plans *plans; /* NULL: none are kept */
    /* A pod that is not bound and keeps to the contract. */
    bool (*find)(void *ctx, const char *uid, struct demand *ret_demand);
    /* Asked before every call; NULL: always. */
    bool (*may_write)(void *ctx, int64_t call_ms);
    void *ctx;
};

struct waker;
int waker_start(const struct waker_config *config, struct waker **ret_waker,
                struct error *err);
/* Before the writer is stopped. NULL allowed */
void waker_stop(struct waker *w);
DEFINE_CLEANUP(waker, struct waker *, waker_stop)

/* What cluster_pods tells; ctx is the struct waker. */
struct pod_listener waker_listener(struct waker *w);
/* This replica leads from now on. */
void waker_lead(struct waker *w);

/* Filter has answered about a pod with that snapshot and the nodes that were
 * named (n indexes).  Any thread. */
void waker_asked(struct waker *w, const char *uid,
                 const struct snapshot *snapshot, bool refused,
                 const int32_t *indexes, size_t n);
/* Any thread. */
void waker_state(struct waker *w, const char *uid,
                 struct waiting_pods_state *ret_state);

#endif
