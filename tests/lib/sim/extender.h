/* extender - the routes of the extender on a server of their own, with a
 * writer in memory. */
#ifndef BIGA_TESTS_LIB_SIM_EXTENDER_H
#define BIGA_TESTS_LIB_SIM_EXTENDER_H

#include "extender/run/embedded.h"
#include "extender/serve/app.h"

struct test_extender {
    struct app app;
    struct embedded *embedded; /* its source of pods, without threads */
    struct httpd *httpd;
    uint16_t port;
};

/* `write_error` as in httpd_config.  Aborts when it cannot start. */
void test_extender_start(struct test_extender *x,
                         const struct httpd_route *routes, size_t n_routes,
                         void (*write_error)(struct str *out, unsigned status,
                                             const char *text));
/* From now on with that writer; the one before is stopped. */
void test_extender_write(struct test_extender *x, struct writer *writer);
void test_extender_stop(struct test_extender *x);

#endif
