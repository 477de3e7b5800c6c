/* routes_policy - GET /v1/policy on the read listener. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_POLICY_H
#define BIGA_EXTENDER_SERVE_ROUTES_POLICY_H

#include "extender/serve/app.h"
#include "lib/http/httpd.h"

/* ctx is the struct app. */
void on_policy(struct httpd_request *rq, void *ctx);

/* Bring the metrics of services' shares up to date. */
void gauge_policy(struct app *app, const struct snapshot *s);

#endif
