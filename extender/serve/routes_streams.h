/* routes_streams - logs, exec, attach and port-forward of pods (relay.h): what
 * clients ask of the read listener, and nodes of the publish listener.  The
 * routes' names say which right a token needs (access.h). */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_STREAMS_H
#define BIGA_EXTENDER_SERVE_ROUTES_STREAMS_H

#include <stddef.h>

#include "lib/http/httpd.h"

/* ctx is the struct app, as for all here. */
extern const struct httpd_route streams_routes[];
extern const size_t n_streams_routes;
/* Of the publish listener. */
extern const struct httpd_route node_streams_routes[];
extern const size_t n_node_streams_routes;
/* In a cluster: 501, kubectl has them. */
extern const struct httpd_route streams_elsewhere_routes[];
extern const size_t n_streams_elsewhere_routes;

#endif
