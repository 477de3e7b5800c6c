/* app_metrics - the metrics of the extender, in the order of their table. */
#ifndef BIGA_EXTENDER_APP_APP_METRICS_H
#define BIGA_EXTENDER_APP_APP_METRICS_H

#include "lib/io/metrics.h"

enum app_metric {
    APP_HTTP_REQUESTS,   /* listener, route, code */
    APP_HTTP_DURATION,   /* listener, route */
    APP_FILTER_REFUSALS, /* reason: reason_word() */
    APP_PRIORITIZE_ERRORS,
    APP_BINDS,           /* result: bound, repeated, refused, error, foreign;
                          * in a cluster also follower, unknown */
    APP_RELEASES,        /* result: released, unknown, error */
    APP_SLICES_ACCEPTED, /* kind: heartbeat, created, changed */
    APP_SLICES_REJECTED, /* reason: invalid, stale, foreign, error */
    APP_NODES,           /* status: node_status_name() */
    APP_CARDS,           /* state: card_state_name() */
    APP_ALLOCATIONS,
    APP_ALLOCATION_CONFLICTS,
    APP_FOREIGN_CLAIMS,
    APP_SNAPSHOT,     /* its number */
    APP_POLICY_READS, /* result: accepted, refused */
    APP_FABRIC_READS, /* the same */
    APP_SHARES,       /* state: share_state_name() */
    APP_REFUSALS,     /* listener, reason: httpd_observation's refusal */
    APP_TLS_NOT_AFTER,
    APP_TLS_READS,   /* result: accepted, refused */
    APP_TOKEN_READS, /* the same */
    APP_REVIEWS,     /* verdict: review_verdict_name() */
    APP_ADOPTIONS,   /* result: adopted, healed, known, refused */
    APP_ORPHANS,
    APP_UNACCOUNTED,
    APP_LEADER,
    APP_BINDS_IN_FLIGHT,
    APP_KUBE_LISTS,    /* collection: its name */
    APP_KUBE_WATCHES,  /* the same */
    APP_KUBE_EVENTS,   /* the same */
    APP_KUBE_FAILURES, /* the same */
    APP_KUBE_AGE,      /* the same */
    APP_PODS,          /* state: pod_state_name() */
    APP_PLACES,        /* health: place_health_name() */
    APP_LOST_PODS,
    APP_EVICTED,
    APP_WRITABLE,      /* 1 or 0; embedded */
    APP_ALIGNMENT,     /* promised, achieved: relation_name(), "unknown" */
    APP_ACHIEVED,      /* state: achieved_state_name() */
    APP_STREAMS,       /* kind: relay_kind_name() */
    APP_STREAMS_TOTAL, /* kind, result: joined, left, refused, away, late,
                        * full, failed, stopped */
    APP_STREAM_BYTES,  /* way: to-client, to-node */
    APP_BIND_WAIT,     /* role: pod_role_name() */
    APP_PLANS,
    APP_PLANS_REFUSED, /* reason: plan_lack_name() */
    APP_HISTORY_BYTES,
    APP_HISTORY_OLDEST, /* event, in seconds since 1970 */
    APP_HISTORY_LOST,
    APP_HISTORY_FULL,     /* 1 or 0 */
    APP_HISTORY_WRITABLE, /* the same */
    APP_METRICS_COUNT
};
struct metrics *app_metrics_create(void);

/* A pod was bound, so long after it was seen first; < 0: that is not known. */
void app_metrics_waited(struct metrics *m, const char *role, int64_t ms);

#endif
