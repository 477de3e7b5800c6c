/* routes_pods - pods, ConfigMaps and Secrets that are applied in embedded
 * mode: apply, look, delete. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_PODS_H
#define BIGA_EXTENDER_SERVE_ROUTES_PODS_H

#include <stddef.h>

#include "lib/http/httpd.h"

/* ctx is the struct app, whose source of pods is embedded. */
extern const struct httpd_route pods_routes[];
extern const size_t n_pods_routes;
/* The same paths where pods are not applied: they say where to go.  What is
 * looked at there is in routes_cluster.h. */
extern const struct httpd_route pods_elsewhere_routes[];
extern const size_t n_pods_elsewhere_routes;

#endif
