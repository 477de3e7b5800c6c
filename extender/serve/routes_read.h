/* routes_read - what people and tools may see: nodes, cards, topology,
 * allocations, metrics, health, the description of the interface, a page. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_READ_H
#define BIGA_EXTENDER_SERVE_ROUTES_READ_H

#include <stddef.h>

#include "lib/http/httpd.h"

/* ctx is the struct app. */
extern const struct httpd_route read_routes[];
extern const size_t n_read_routes;

#endif
