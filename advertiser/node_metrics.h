/* node_metrics - what this node's advertiser counts, served for Prometheus at
 * /metrics, and nothing else: cards by health; where it runs pods, these by
 * state, and calls to each card by how they ended; the process itself.  What is
 * told is counted when somebody asks; no card is asked for it. */
#ifndef BIGA_ADVERTISER_NODE_METRICS_H
#define BIGA_ADVERTISER_NODE_METRICS_H

#include <stdint.h>

#include "advertiser/act/core/actuator.h"
#include "lib/base/error.h"
#include "model/topo/topo.h"

enum { NODE_METRICS_READERS = 8 }; /* connections; one more ends the oldest */

struct node_metrics_config {
    const char *listen;
    const char *cert, *key, *client_ca; /* all, or NULL: then it has to be on
                                         * loopback */
    struct actuator *actuator;          /* outlives it; NULL: runs no pods */
};

struct node_metrics;
int node_metrics_start(const struct node_metrics_config *config,
                       struct node_metrics **ret_metrics, struct error *err);
void node_metrics_stop(struct node_metrics *m); /* NULL allowed */

/* Tests: where it listens. */
uint16_t node_metrics_port(const struct node_metrics *m);

/* The topology as it is published. */
void node_metrics_look(struct node_metrics *m, const struct topo *topo);
/* Are there new files of TLS?  Those that are expired would keep everybody from
 * asking. */
void node_metrics_step(struct node_metrics *m);

#endif
