/* routes_doubt - after damage: nodes of which it is known again what was given
 * there, because an operator says so or because they have told themselves. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_DOUBT_H
#define BIGA_EXTENDER_SERVE_ROUTES_DOUBT_H

#include <stdbool.h>

#include "extender/pods/node_report.h"
#include "lib/http/httpd.h"

struct app;

/* DELETE /v1/doubt[/NODE], on the read listener.  ctx: the struct app. */
void handle_trust(struct httpd_request *rq, void *ctx);

/* Is it asked to tell everything again? */
bool doubt_wants(struct app *app, const char *node);
/* It has told `status`, which has been taken. */
void doubt_heard(struct app *app, const char *node,
                 const struct node_report *status);
/* When it has told of all there is, and nothing is there any more that is
 * unknown here, it is trusted.  For whenever the node is heard: what could not
 * be written down is tried again. */
void doubt_end(struct app *app, const char *node);

#endif
