/* pairing - the thread that carries out what pairs.h names, while this replica
 * leads. */
#ifndef BIGA_EXTENDER_CLUSTER_PAIRING_H
#define BIGA_EXTENDER_CLUSTER_PAIRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/cluster/cluster_parts.h"
#include "extender/cluster/events.h"
#include "extender/cluster/pairs.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

enum { PAIRING_CALL_MS = 3000 };

struct pairing_config {
    const struct kube_config *kube; /* outlives it */
    struct demand_config demand;
    struct events *events; /* NULL: no Events are written; outlives it */
    /* Asked before every call; NULL: always. */
    bool (*may_write)(void *ctx, int64_t call_ms);
    void *ctx;
};

struct pairing;
int pairing_start(const struct pairing_config *config,
                  struct pairing **ret_pairing, struct error *err);
void pairing_stop(struct pairing *p); /* NULL allowed */
DEFINE_CLEANUP(pairing, struct pairing *, pairing_stop)

/* What cluster_pods tells; ctx is the struct pairing.  Nothing is done before
 * the first `listed`. */
struct cluster_pod_listener pairing_listener(struct pairing *p);
/* This replica leads from now on: look at everything again. */
void pairing_lead(struct pairing *p);

struct pairing_counts {
    uint64_t done[PAIRS_TELL + 1], failed[PAIRS_TELL + 1];
    size_t n_pods;
};
void pairing_counts(struct pairing *p, struct pairing_counts *ret_counts);

#endif
