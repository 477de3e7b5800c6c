#include "tests/lib/sim/extender.h"

#include <stdio.h>
#include <stdlib.h>

#include "extender/pods/pending_demands.h"
#include "extender/wire/scratch.h"
#include "tests/lib/sim/simstate.h"

void test_extender_start(struct test_extender *x,
                         const struct httpd_route *routes, size_t n_routes,
                         void (*write_error)(struct str *out, unsigned status,
                                             const char *text))
{
    struct error err;
    *x = (struct test_extender){0};
    demand_config_default(&x->app.demand);
    x->embedded = embedded_create(&x->app.demand);
    test_extender_write(x, sim_writer_with(NULL, x->embedded->store.applied));
    x->app.listener.metrics = app_metrics_create();
    x->app.demands = pending_demands_create();
    x->app.achieved = achieved_book_create();
    x->app.scratch = scratch_pool_create();
    x->app.instance = 1;
    x->embedded->store.metrics = x->app.listener.metrics;
    x->embedded->store.demands = x->app.demands;
    x->embedded->store.instance = x->app.instance;
    x->app.source = embedded_source(x->embedded);
    struct httpd_config config = {
        .name = "test",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = n_routes,
        .ctx = &x->app,
        .observe = listener_observe,
        .write_error = write_error,
    };
    if (httpd_start(&config, &x->httpd, &err)) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    x->port = httpd_port(x->httpd);
}

void test_extender_write(struct test_extender *x, struct writer *writer)
{
    x->app.writer = writer;
    x->embedded->store.writer = writer;
}

void test_extender_stop(struct test_extender *x)
{
    httpd_stop(x->httpd);
    writer_stop(x->app.writer);
    embedded_destroy(x->embedded);
    scratch_pool_destroy(x->app.scratch);
    pending_demands_destroy(x->app.demands);
    achieved_book_destroy(x->app.achieved);
    metrics_destroy(x->app.listener.metrics);
}
