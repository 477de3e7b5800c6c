/* history_cluster - what a cluster tells of its pods beside their places: that
 * they run and end, as the API server says, and what this replica tells of them
 * in Events. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_CLUSTER_H
#define BIGA_EXTENDER_HISTORY_HISTORY_CLUSTER_H

#include "extender/history/history.h"
#include "extender/leader/events.h"
#include "extender/leader/pod_listener.h"

struct history_cluster;
/* The history outlives it. */
struct history_cluster *history_cluster_create(struct history *h);
void history_cluster_destroy(struct history_cluster *c); /* NULL allowed */

/* Of one thread. */
struct pod_listener history_cluster_listener(struct history_cluster *c);
/* Any thread, never waits; `ctx` is the struct. */
void history_cluster_told(void *ctx, const struct events_pod *pod,
                          enum events_reason reason, const char *text);

#endif
