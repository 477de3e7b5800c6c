/* app - what every route handler is given: the parts of the running
 * extender.  It is each listener's ctx. */
#ifndef BIGA_EXTENDER_APP_APP_H
#define BIGA_EXTENDER_APP_APP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "extender/keep/writer.h"
#include "lib/http/httpd.h"
#include "lib/io/metrics.h"
#include "model/pod/demand.h"

struct app {
    struct writer *writer;
    struct metrics *metrics; /* of app_metrics_create() */
    struct demand_config demand;
    int64_t max_candidates;          /* nodes in a filter's answer; 0: all */
    struct pending_demands *demands; /* pods that were asked about */
    struct binds *binds;             /* that are under way in a cluster */
    struct plans *plans;             /* that were made; NULL: none is kept */
    struct scratch_pool *scratch;    /* working memory of scheduler requests */
    struct policy_file *policy;      /* NULL: none is configured */
    struct fabric_files *fabric;     /* the same */
    struct cluster *cluster;         /* NULL: embedded */
    struct applied *applied;         /* that were applied; NULL: in a cluster */
    struct node_reports *reports;    /* what nodes say of them; the same */
    struct runner *runner;           /* places them; the same */
    struct node_poll *node_poll;     /* nodes that wait for them; the same */
    struct access *access;           /* NULL: everybody may call everything */
    struct tls *tls;                 /* NULL: plain HTTP */
    uint64_t instance; /* another one after each start; in ETags */
    atomic_bool ready; /* the first snapshot is up; /readyz */
};

/* The metrics of the extender, in the order of their table. */
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
    APP_WRITABLE,      /* 1 or 0; embedded */
    APP_METRICS_COUNT
};
struct metrics *app_metrics_create(void);

/* The observe hook of every listener; ctx is the struct app. */
void app_observe(void *ctx, const struct httpd_observation *o);

#endif
