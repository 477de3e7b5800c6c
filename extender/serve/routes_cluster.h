/* routes_cluster - GET /v1/cluster: who leads, and each collection's state. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_CLUSTER_H
#define BIGA_EXTENDER_SERVE_ROUTES_CLUSTER_H

#include <stddef.h>

#include "lib/http/httpd.h"

/* ctx is the struct app, whose source of pods is a cluster. */
extern const struct httpd_route cluster_routes[];
extern const size_t n_cluster_routes;
/* The same path where there is no cluster. */
extern const struct httpd_route cluster_elsewhere_routes[];
extern const size_t n_cluster_elsewhere_routes;

#endif
