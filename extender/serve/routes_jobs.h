/* routes_jobs - whole jobs on the read listener: GET /v1/jobs,
 * /v1/jobs/NS/NAME, /v1/jobs/NS/NAME/maps. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_JOBS_H
#define BIGA_EXTENDER_SERVE_ROUTES_JOBS_H

#include "lib/http/httpd.h"

/* ctx is the struct app. */
void on_jobs(struct httpd_request *rq, void *ctx);
void on_job(struct httpd_request *rq, void *ctx);
void on_job_maps(struct httpd_request *rq, void *ctx);

#endif
