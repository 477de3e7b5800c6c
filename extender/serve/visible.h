/* visible - what is shown to the client of a request: the newest snapshot, as
 * far as it may see it.  What reads lists for people begins here. */
#ifndef BIGA_EXTENDER_SERVE_VISIBLE_H
#define BIGA_EXTENDER_SERVE_VISIBLE_H

#include "extender/state/snapshot.h"
#include "lib/http/httpd.h"

struct app;
/* A reference. */
struct snapshot *visible_snapshot(const struct app *app,
                                  const struct httpd_request *rq);

#endif
