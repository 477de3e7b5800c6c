/* routes_drawing - what is drawn as the answer to a request: SVG, with an ETag
 * as lists have. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_DRAWING_H
#define BIGA_EXTENDER_SERVE_ROUTES_DRAWING_H

#include "extender/serve/app.h"
#include "extender/view/drawing.h"
#include "extender/view/job_view.h"

/* `node`: of the snapshot. */
void reply_node_drawing(struct httpd_request *rq, struct app *app,
                        const struct snapshot *s, const struct node *node);
void reply_job_drawing(struct httpd_request *rq, struct app *app,
                       const struct job_view *job);
/* For struct node_drawing: what the node told of a card's health; `ctx` is the
 * app. */
void drawing_add_health(void *ctx, const struct node *node, size_t card,
                        struct str *text);

#endif
