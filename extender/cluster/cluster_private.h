/* What cluster.c, cluster_lead.c and cluster_view.c share. */
#ifndef BIGA_EXTENDER_CLUSTER_CLUSTER_PRIVATE_H
#define BIGA_EXTENDER_CLUSTER_CLUSTER_PRIVATE_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "extender/cluster/cluster.h"
#include "extender/cluster/cluster_fit.h"
#include "extender/cluster/cluster_parts.h"
#include "extender/cluster/cluster_ps.h"
#include "extender/cluster/host_capacity.h"
#include "extender/fit/fit_nodes.h"
#include "extender/gate/gate_controller.h"
#include "extender/history/history_cluster.h"
#include "extender/leader/binds.h"
#include "extender/leader/card_loss_controller.h"
#include "extender/leader/drainer.h"
#include "extender/leader/elect.h"
#include "extender/leader/events.h"
#include "extender/leader/pair_controller.h"
#include "extender/leader/waker.h"
#include "lib/kube/client.h"
#include "lib/kube/reflector.h"

enum cluster_kind {
    CLUSTER_SLICES,
    CLUSTER_HEARTBEATS,
    CLUSTER_NODES,
    CLUSTER_PODS,
    CLUSTER_OTHER_PODS,
    CLUSTER_ACHIEVED,
    CLUSTER_DRAINS,
    CLUSTER_BASE, /* these are always followed */
    CLUSTER_OTHER_SLICES = CLUSTER_BASE,
    CLUSTER_CLAIMS,
    CLUSTER_CLASSES,
    CLUSTER_TEMPLATES,
    CLUSTER_DPF,
    CLUSTER_OPENSHIFT,
    CLUSTER_KINDS
};

/* What a new leader has to do before it leads, on a thread of its own, because
 * the Lease has to be renewed meanwhile. */
struct cluster_lead {
    struct cluster *cluster;
    struct kube_client *client;
    pthread_mutex_t lock; /* guards thread and running */
    pthread_t thread;
    bool running;           /* there is a thread to join */
    atomic_bool stop, done; /* of one lead */
    atomic_bool ended;      /* nothing leads any more */
};

struct cluster {
    struct cluster_config config;
    char *identity, *heartbeats_path, *achieved_path, *drains_path;
    struct feed *feed;
    struct cluster_slices *slices;
    struct cluster_heartbeats *heartbeats;
    struct cluster_nodes *nodes;
    struct cluster_achieved *achieved;
    struct cluster_drains *drains;
    struct cluster_pods *pods;
    struct claim_book *claims; /* NULL: they are not followed */
    struct cluster_dpus *dpus; /* the same */
    struct host_capacity *host_capacity;
    struct cluster_ps *ps;
    struct fit_nodes *fit; /* what kube-scheduler would judge */
    struct binder *binder;
    struct binds *binds;
    struct reflector *reflector;
    struct elect *elect;
    atomic_bool electing;  /* elect is there; the others start before it */
    struct events *events; /* NULL: none are written */
    struct pair_controller *pair_controller;
    struct waker *waker;
    struct card_loss_controller *card_losses;
    struct gate_controller *gate;
    struct history_cluster *history;
    struct drainer *drainer;
    struct cluster_lead lead;
};

/* Synced and leading; else false, with the reason. */
bool cluster_is_ready(struct cluster *c, struct str *why);
/* May this replica bind?  `ret_leader` is who may, as far as we know. */
bool cluster_leads(struct cluster *c, char ret_leader[POD_SOURCE_LEADER_MAX]);
/* An Event about a pod, if this replica leads and Events are written.  ctx is
 * the struct cluster. */
void cluster_tell(void *ctx, const struct demand *pod,
                  enum events_reason reason, const char *text);
/* Brings its metrics up to date. */
void cluster_gauge(struct cluster *c);

/* Of elect_config; ctx is the struct cluster. */
int cluster_lead(void *ctx);
void cluster_follow(void *ctx);
/* From here on cluster_lead() touches nothing, and its thread has ended. */
void cluster_lead_end(struct cluster *c);

#endif
