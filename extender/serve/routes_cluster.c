#include "extender/serve/routes_cluster.h"

#include "extender/cluster/cluster.h"
#include "extender/serve/app.h"
#include "lib/base/mem.h"

static const char *const no_params[] = {NULL};

static void on_cluster(struct httpd_request *rq, void *ctx)
{
    const struct app *app = ctx;
    struct cluster *cluster = cluster_of(&app->source);
    if (!httpd_query_only(rq, no_params))
        return;
    if (httpd_wants_text(rq)) {
        cluster_write_text(cluster, httpd_reply(rq));
        httpd_content_type(rq, HTTPD_TEXT);
    } else {
        cluster_write(cluster, httpd_reply(rq));
    }
}

const struct httpd_route cluster_routes[] = {
    {HTTPD_GET, "/v1/cluster", on_cluster, 0, "cluster"},
};
const size_t n_cluster_routes = ARRAY_LEN(cluster_routes);

static void on_elsewhere(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    if (httpd_query_only(rq, no_params))
        httpd_fail(rq, 404,
                   "this extender keeps its state itself (--store sqlite), so "
                   "it is in no cluster");
}

const struct httpd_route cluster_elsewhere_routes[] = {
    {HTTPD_GET, "/v1/cluster", on_elsewhere, 0, "cluster"},
};
const size_t n_cluster_elsewhere_routes = ARRAY_LEN(cluster_elsewhere_routes);
