/* routes_drain - cards and nodes that are to take no new pod, as an operator
 * says: POST and DELETE of /v1/cards/NODE/CARD/drain and /v1/nodes/NODE/drain. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_DRAIN_H
#define BIGA_EXTENDER_SERVE_ROUTES_DRAIN_H

#include "lib/http/httpd.h"

enum { DRAIN_BODY_MAX = 8192 };

/* ctx is the struct app. */
void on_drain(struct httpd_request *rq, void *ctx);
void on_undrain(struct httpd_request *rq, void *ctx);

#endif
