/* Whoever sees some namespaces alone: every route has a line, which says how it
 * keeps to them. */
#include "extender/admit/reach.h"

#include <criterion/criterion.h>

#include "extender/console/routes_console.h"
#include "extender/operate/operate.h"
#include "extender/serve/routes_ask.h"
#include "extender/serve/routes_cluster.h"
#include "extender/serve/routes_pods.h"
#include "extender/serve/routes_read.h"
#include "extender/serve/routes_streams.h"
#include "lib/base/mem.h"

/* All tables of the read listener. */
static const struct {
    const struct httpd_route *routes;
    const size_t *n;
} tables[] = {
    {ask_routes, &n_ask_routes},
    {read_routes, &n_read_routes},
    {operate_routes, &n_operate_routes},
    {console_routes, &n_console_routes},
    {cluster_routes, &n_cluster_routes},
    {cluster_elsewhere_routes, &n_cluster_elsewhere_routes},
    {pods_routes, &n_pods_routes},
    {pods_elsewhere_routes, &n_pods_elsewhere_routes},
    {streams_routes, &n_streams_routes},
    {streams_elsewhere_routes, &n_streams_elsewhere_routes},
};

Test(reach, each_route_has_its_line)
{
    static const unsigned methods[] = {HTTPD_GET, HTTPD_PUT, HTTPD_POST,
                                       HTTPD_DELETE, HTTPD_PATCH};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        for (size_t i = 0; i < *tables[t].n; i++) {
            const struct httpd_route *r = &tables[t].routes[i];
            for (size_t m = 0; m < ARRAY_LEN(methods); m++)
                if (r->methods & methods[m])
                    cr_expect_neq(
                        reach_of(methods[m], r->path), REACH_UNKNOWN,
                        "%s has no line in reach.c: what does it show "
                        "to a token of one namespace?",
                        r->path);
        }
    }
    cr_expect_eq(reach_of(HTTPD_GET, "/v1/nothing"), REACH_UNKNOWN);
    cr_expect_eq(reach_of(HTTPD_PUT, "/v1/nodes"), REACH_UNKNOWN);
}

Test(reach, paths_of_pods_and_jobs_are_of_their_namespace)
{
    static const char *const paths[] = {
        "/v1/pods/:/:",       "/v1/jobs/:/:",     "/v1/allocations/:/:",
        "/v1/configmaps/:/:", "/v1/secrets/:/:",  "/ui/pods/:/:",
        "/ui/jobs/:/:",       "/v1/pods/:/:/log", "/v1/pods/:/:/exec"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        cr_expect_eq(reach_of(HTTPD_GET, paths[i]), REACH_PATH, "%s", paths[i]);
    cr_expect_eq(reach_of(HTTPD_DELETE, "/v1/pods/:/:"), REACH_PATH);
    cr_expect_eq(reach_of(HTTPD_DELETE, "/v1/jobs/:/:"), REACH_PATH);
    cr_expect_eq(reach_of(HTTPD_DELETE, "/v1/jobs/:/:/allocations"),
                 REACH_PATH);
}
