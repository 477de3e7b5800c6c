/* What the files of routes share: handlers that stand in tables of other files.
 * Each one's ctx is the struct app. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_PRIVATE_H
#define BIGA_EXTENDER_SERVE_ROUTES_PRIVATE_H

#include "extender/history/history_query.h"
#include "extender/serve/app.h"
#include "extender/serve/waiting.h"
#include "lib/http/httpd.h"

/* The bind verb of kube-scheduler's extender interface: decides on the cards
 * in the writer, and in a cluster makes that true in the API server before it
 * says so. */
void handle_bind(struct httpd_request *rq, void *ctx);

/* --- of the publish listener ---------------------------------------------- */

/* The node of the path, when the client may speak for it: with certificates a
 * node sees its own pods, which hold Secrets, and nobody else does.  NULL, and
 * answered, when it may not. */
const char *node_take(struct httpd_request *rq);

/* --- of the read listener ------------------------------------------------- */

void on_fabric(struct httpd_request *rq, void *ctx); /* GET /v1/fabric */
/* Whole jobs: GET /v1/jobs, /v1/jobs/NS/NAME, and its /maps and /drawing. */
void on_jobs(struct httpd_request *rq, void *ctx);
void on_job(struct httpd_request *rq, void *ctx);
void on_job_drawing(struct httpd_request *rq, void *ctx);
void on_job_maps(struct httpd_request *rq, void *ctx);
void on_pending(struct httpd_request *rq, void *ctx); /* GET /v1/pending */
void on_usage(struct httpd_request *rq, void *ctx);   /* GET /v1/usage */
void on_metrics(struct httpd_request *rq, void *ctx); /* GET /metrics */
void on_policy(struct httpd_request *rq, void *ctx);  /* GET /v1/policy */
enum {
    SIMULATE_BODY_MAX = 16 << 20,
    SIMULATE_PODS_MAX = 4096,
    SIMULATE_WORK_MAX = 25000000, /* pods × nodes: seconds, at most */
};
/* POST /v1/simulate. */
void handle_simulate(struct httpd_request *rq, void *ctx);
/* After damage to the state, an operator says that it is known again what runs
 * on a node, or on all: DELETE /v1/doubt[/NODE]. */
void handle_trust(struct httpd_request *rq, void *ctx);
/* What was: GET /v1/events, /v1/history/KIND/…, /v1/topology?at= */
void on_events(struct httpd_request *rq, void *ctx);
void on_history(struct httpd_request *rq, void *ctx);
void on_topology_then(struct httpd_request *rq, void *ctx);
/* GET /v1/events?follow=true */
void follow_events(struct httpd_request *rq, struct app *app,
                   const struct history_query *query);
/* DELETE of the allocation of a pod: namespace, name. */
void handle_release(struct httpd_request *rq, void *ctx);
/* … of those of all pods of a job: namespace, name. */
void handle_release_job(struct httpd_request *rq, void *ctx);

/* Bring the metrics of services' shares up to date. */
void gauge_policy(struct app *app, const struct snapshot *s);

#endif
