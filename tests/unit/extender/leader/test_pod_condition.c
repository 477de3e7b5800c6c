/* A condition, as an API server gets it. */
#include "extender/leader/pod_condition.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/http/httpd.h"

struct server {
    unsigned status; /* to answer with */
    char got[1024];  /* the last request */
};

static void on_call(struct httpd_request *rq, void *ctx)
{
    struct server *s = ctx;
    size_t size;
    const char *body = httpd_body(rq, &size);
    (void)snprintf(s->got, sizeof s->got, "%s %s %s %s %.*s", httpd_path(rq),
                   httpd_query(rq, "fieldManager"), httpd_query(rq, "force"),
                   httpd_header(rq, "Content-Type"), (int)size, body);
    httpd_status(rq, s->status);
    str_add(httpd_reply(rq), "{}");
}

static int apply(struct server *s, unsigned status, const char *message)
{
    static const struct httpd_route route = {HTTPD_PATCH, "/::", on_call, 65536,
                                             "pods"};
    const struct httpd_config config = {.name = "api",
                                        .listen = "127.0.0.1:0",
                                        .routes = &route,
                                        .n_routes = 1,
                                        .ctx = s,
                                        .threads = 1};
    const struct pod_condition c = {.namespace = "ns",
                                    .name = "p",
                                    .uid = "u-1",
                                    .manager = "biga-card-lost",
                                    .type = "biga.dev/CardLost",
                                    .is_true = true,
                                    .reason = "CardLost",
                                    .message = message,
                                    .since_s = 1767323045};
    struct httpd *api;
    struct error err = {0};
    struct kube_client *client;
    struct http_answer answer = {.body = {.max = 4096}};
    s->status = status;
    cr_assert_eq(httpd_start(&config, &api, &err), 0, "%s", err.text);
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", httpd_port(api));
    const struct kube_config to = {.server = url};
    cr_assert_eq(kube_client_create(&to, 60000, &client, &err), 0, "%s",
                 err.text);
    int r = pod_condition_apply(client, &c, 60000, &answer, &err);
    kube_client_destroy(client);
    httpd_stop(api);
    str_fini(&answer.body);
    return r;
}

Test(pod_condition, is_applied_to_that_pod_alone)
{
    struct server s;
    cr_assert_eq(apply(&s, 200, "of \"c0\""), 0);
    cr_expect_str_eq(
        s.got, "/api/v1/namespaces/ns/pods/p/status biga-card-lost true "
               "application/apply-patch+yaml "
               "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
               "\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u-1\"},"
               "\"status\":{\"conditions\":[{\"type\":\"biga.dev/CardLost\","
               "\"status\":\"True\",\"reason\":\"CardLost\","
               "\"lastTransitionTime\":\"2026-01-02T03:04:05Z\","
               "\"message\":\"of \\\"c0\\\"\"}]}}");
}

Test(pod_condition, of_a_pod_whose_name_another_one_has)
{
    struct server s;
    cr_expect_eq(apply(&s, 409, ""), -ENOENT);
    cr_expect_eq(apply(&s, 404, ""), -ENOENT);
    cr_expect_eq(apply(&s, 503, ""), -EAGAIN);
}
