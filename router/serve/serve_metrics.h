/* serve_metrics - what biga-cri counts, for Prometheus. */
#ifndef BIGA_ROUTER_SERVE_SERVE_METRICS_H
#define BIGA_ROUTER_SERVE_SERVE_METRICS_H

#include "lib/grpcd/grpcd.h"
#include "lib/io/metrics.h"

enum serve_metric {
    SERVE_CALLS,         /* method, target: home or remote, code */
    SERVE_CALL_DURATION, /* method, target */
    SERVE_CALLS_NOW,
    SERVE_REMOTES,    /* remote, health: act_health_name() */
    SERVE_RECORDS,    /* remote, state: made or announced */
    SERVE_RECONCILED, /* remote, verdict: adopted, rebuilt, gone */
    SERVE_ORPHANS,    /* remote */
    SERVE_LOG_BYTES,
    SERVE_LOG_FAULTS,
    SERVE_LOG_LOST,
    SERVE_VOLUMES, /* result: delivered, failed */
    SERVE_IMAGES,  /* remote, why: age or disk */
    SERVE_STREAMS, /* result: opened, refused, cut */
    SERVE_STREAMS_NOW,
    SERVE_METRICS_COUNT
};
struct metrics *serve_metrics_create(void);
grpcd_ended_f serve_metrics_ended; /* ctx: struct serve * */

#endif
