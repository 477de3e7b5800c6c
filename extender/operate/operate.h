/* operate - what an operator does and looks at while the fleet runs, on the
 * read listener: cards and nodes are to take no new pod (POST and DELETE of
 * /v1/cards/NODE/CARD/drain and /v1/nodes/NODE/drain); what is used of what was
 * given (GET /v1/usage).  Each one's ctx is the struct app. */
#ifndef BIGA_EXTENDER_OPERATE_OPERATE_H
#define BIGA_EXTENDER_OPERATE_OPERATE_H

#include "lib/http/httpd.h"

enum { DRAIN_BODY_MAX = 8192 };

void on_drain(struct httpd_request *rq, void *ctx);
void on_undrain(struct httpd_request *rq, void *ctx);
void on_usage(struct httpd_request *rq, void *ctx);

extern const struct httpd_route operate_routes[];
extern const size_t n_operate_routes;

#endif
