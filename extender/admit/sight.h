/* sight - what the client of a request of the read listener may see, as its
 * admission has found out (access.h). */
#ifndef BIGA_EXTENDER_ADMIT_SIGHT_H
#define BIGA_EXTENDER_ADMIT_SIGHT_H

#include <stdbool.h>

#include "extender/state/scope.h"
#include "lib/http/httpd.h"

/* Pods of which namespaces; NULL: of all.  Borrowed for the request's life. */
struct scope *sight_scope(const struct httpd_request *rq);

/* May it be shown events beside what it asked for?  Only those who may read
 * /v1/events. */
bool sight_has_events(const struct httpd_request *rq);

/* --- of admission ----------------------------------------------------------- */

/* A reference is taken. */
void sight_set_scope(struct httpd_request *rq, struct scope *scope);
void sight_hide_events(struct httpd_request *rq);

#endif
