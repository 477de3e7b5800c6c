/* routes_release - DELETE of an allocation, on the read listener. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_RELEASE_H
#define BIGA_EXTENDER_SERVE_ROUTES_RELEASE_H

#include "lib/http/httpd.h"

/* Arguments: namespace, pod.  ctx: the struct app. */
void handle_release(struct httpd_request *rq, void *ctx);

#endif
