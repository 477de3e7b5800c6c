/* routes_metrics - GET /metrics on the read listener. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_METRICS_H
#define BIGA_EXTENDER_SERVE_ROUTES_METRICS_H

#include "lib/http/httpd.h"

/* ctx is the struct app. */
void on_metrics(struct httpd_request *rq, void *ctx);

#endif
