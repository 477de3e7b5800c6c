/* pair_controller - the thread that carries out what pair_rules.h names, while
 * this replica leads. */
#ifndef BIGA_EXTENDER_LEADER_PAIR_CONTROLLER_H
#define BIGA_EXTENDER_LEADER_PAIR_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/leader/events.h"
#include "extender/leader/pair_rules.h"
#include "extender/leader/pod_listener.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

enum { PAIR_CONTROLLER_CALL_MS = 3000 };

struct pair_controller_config {
    const struct kube_config *kube; /* outlives it */
    struct demand_config demand;
    struct events *events; /* NULL: no Events are written; outlives it */
    /* Asked before every call; NULL: always. */
    bool (*may_write)(void *ctx, int64_t call_ms);
    void *ctx;
};

struct pair_controller;
int pair_controller_start(const struct pair_controller_config *config,
                          struct pair_controller **ret_pairing,
                          struct error *err);
void pair_controller_stop(struct pair_controller *p); /* NULL allowed */
DEFINE_CLEANUP(pair_controller, struct pair_controller *, pair_controller_stop)

/* What cluster_pods tells; ctx is the struct pair_controller.  Nothing is done
 * before the first `listed`. */
struct pod_listener pair_controller_listener(struct pair_controller *p);
/* This replica leads from now on: look at everything again. */
void pair_controller_lead(struct pair_controller *p);

#endif
