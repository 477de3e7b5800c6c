/* extender - the routes of the extender on a server of their own, with a
 * writer in memory. */
#ifndef BIGA_TESTS_LIB_SIM_EXTENDER_H
#define BIGA_TESTS_LIB_SIM_EXTENDER_H

#include "extender/app/app.h"

struct test_extender {
    struct app app;
    struct httpd *httpd;
    uint16_t port;
};

/* `write_error` as in httpd_config.  Aborts when it cannot start. */
void test_extender_start(struct test_extender *x,
                         const struct httpd_route *routes, size_t n_routes,
                         void (*write_error)(struct str *out, unsigned status,
                                             const char *text));
void test_extender_stop(struct test_extender *x);

#endif
