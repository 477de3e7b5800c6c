/* routes_ask - the questions that are answered by deciding again:
 * GET /v1/why?pod=NS/NAME and POST /v1/simulate. */
#ifndef BIGA_EXTENDER_SERVE_ROUTES_ASK_H
#define BIGA_EXTENDER_SERVE_ROUTES_ASK_H

#include <stddef.h>

#include "lib/http/httpd.h"

extern const struct httpd_route ask_routes[];
extern const size_t n_ask_routes;

#endif
