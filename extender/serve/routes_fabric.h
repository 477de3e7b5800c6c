/* routes_fabric - GET /v1/fabric on the read listener. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_FABRIC_H
#define BIGA_EXTENDER_SERVE_ROUTES_FABRIC_H

#include "lib/http/httpd.h"

/* ctx is the struct app. */
void on_fabric(struct httpd_request *rq, void *ctx);

#endif
