/* card_loss_controller - the thread that carries out what card_losses.h names,
 * while this replica leads: conditions, evictions, Events. */
#ifndef BIGA_EXTENDER_LEADER_CARD_LOSS_CONTROLLER_H
#define BIGA_EXTENDER_LEADER_CARD_LOSS_CONTROLLER_H

#include "extender/keep/writer.h"
#include "extender/leader/events.h"
#include "extender/leader/pod_listener.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

enum { CARD_LOSS_CALL_MS = 3000, CARD_LOSS_PAUSE_MS = 1000 };

struct card_loss_config {
    const struct kube_config *kube; /* outlives it */
    struct writer *writer;
    struct events *events; /* NULL: none are written; outlives it */
    int64_t patience_s;    /* of pods that say nothing */
    /* Asked before every call; NULL: always. */
    bool (*may_write)(void *ctx, int64_t call_ms);
    void *ctx;
};

struct card_loss_controller;
int card_loss_controller_start(const struct card_loss_config *config,
                               struct card_loss_controller **ret_controller,
                               struct error *err);
/* Before the writer is stopped. NULL allowed */
void card_loss_controller_stop(struct card_loss_controller *c);
DEFINE_CLEANUP(card_loss_controller, struct card_loss_controller *,
               card_loss_controller_stop)

/* What cluster_pods tells; nothing is done before the first `listed`. */
struct pod_listener
card_loss_controller_listener(struct card_loss_controller *c);
/* Pods that are told that their card is lost, and how many were evicted by this
 * replica.  Any thread. */
size_t card_loss_controller_counts(struct card_loss_controller *c,
                                   uint64_t *ret_evicted);

#endif
