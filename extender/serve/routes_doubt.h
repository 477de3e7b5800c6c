/* routes_doubt - after damage to the state: an operator says that it is known
 * again what runs on a node. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_DOUBT_H
#define BIGA_EXTENDER_SERVE_ROUTES_DOUBT_H

#include "lib/http/httpd.h"

/* DELETE /v1/doubt[/NODE], on the read listener.  ctx: the struct app. */
void handle_trust(struct httpd_request *rq, void *ctx);

#endif
