/* routes_publish - the resourceslices of resource.k8s.io/v1 as an API server
 * serves them: advertisers publish here, and kubectl can look.  Slices are
 * listed, read, put (created or replaced), posted (created) and deleted;
 * there is no patch and no watch. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_PUBLISH_H
#define BIGA_EXTENDER_SERVE_ROUTES_PUBLISH_H

#include <stddef.h>

#include "lib/http/httpd.h"

/* ctx is the struct app; the listener's write_error is kube_write_error. */
extern const struct httpd_route publish_routes[];
extern const size_t n_publish_routes;

#endif
