/* routes_bind - the bind verb of kube-scheduler's extender interface: decides
 * on the cards in the writer, and in a cluster makes that true in the API
 * server before it says so. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_BIND_H
#define BIGA_EXTENDER_SERVE_ROUTES_BIND_H

#include "extender/serve/app.h"
#include "lib/http/httpd.h"

/* `ctx` is the struct app. */
void handle_bind(struct httpd_request *rq, void *ctx);

#endif
