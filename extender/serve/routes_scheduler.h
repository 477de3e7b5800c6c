/* routes_scheduler - the verbs of kube-scheduler's extender interface:
 * POST …/filter, …/prioritize, …/bind, …/preempt.  The verb is the last
 * segment of the path; what stands before it is the urlPrefix of the
 * scheduler's configuration, "/v1/scheduler" by default. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_SCHEDULER_H
#define BIGA_EXTENDER_SERVE_ROUTES_SCHEDULER_H

#include "extender/serve/app.h"
#include "lib/http/httpd.h"

extern const struct httpd_route scheduler_routes[];
extern const size_t n_scheduler_routes;

/* The same verbs as functions of (request, snapshot), for simulation: the
 * body of the answer is appended to `out`. 0, or -EINVAL with the reason. */
int scheduler_filter(struct app *app, const struct snapshot *snapshot,
                     const char *body, size_t size, struct str *out,
                     struct error *err);
int scheduler_prioritize(struct app *app, const struct snapshot *snapshot,
                         const char *body, size_t size, struct str *out,
                         struct error *err);

#endif
