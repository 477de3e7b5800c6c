/* routes_console - the pages for a browser on the read listener: who may read
 * /v1/X sees the page /ui/X (extender/admit/access.h). */
#ifndef BIGA_EXTENDER_CONSOLE_ROUTES_CONSOLE_H
#define BIGA_EXTENDER_CONSOLE_ROUTES_CONSOLE_H

#include <stddef.h>

#include "lib/http/httpd.h"

/* ctx is the struct app. */
extern const struct httpd_route console_routes[];
extern const size_t n_console_routes;

/* For struct listener: answer a browser that was refused with a page that asks
 * for a token. */
void console_show_login(struct httpd_request *rq, const char *why);

#endif
