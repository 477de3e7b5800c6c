/* routes_nodes - the node's side of what was applied: which pods it is to
 * have, and what became of them.  Of the publish listener, embedded. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_NODES_H
#define BIGA_EXTENDER_SERVE_ROUTES_NODES_H

#include "lib/http/httpd.h"

extern const struct httpd_route node_routes[];
extern const size_t n_node_routes;

#endif
