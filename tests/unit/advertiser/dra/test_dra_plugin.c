/* The plugin as a kubelet sees it: by its sockets. */
#include "advertiser/dra/dra_plugin.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/proto.h"
#include "lib/h2/grpc_code.h"
#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/dra/drarig.h"
#include "tests/lib/grpc/rpcclient.h"

#define V1 "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
#define BETA "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"

enum { PATIENCE_MS = 60000 };

struct node {
    struct drarig r;
    struct httpd *api;
    struct kube_config kube;
    char *kubelet, *registry, *socket;
    struct dra_plugin_config config;
    struct dra_plugin *plugin;
};

/* /apis/resource.k8s.io/v1/namespaces/NS/resourceclaims/NAME */
static void on_claim(struct httpd_request *rq, void *ctx)
{
    struct node *n = ctx;
    struct error err = {0};
    if (drarig_look_up(&n->r, httpd_arg(rq, 0), httpd_arg(rq, 1),
                       httpd_reply(rq), &err) < 0) {
        httpd_status(rq, 404);
        str_add(httpd_reply(rq), "{\"kind\":\"Status\",\"message\":\"none\"}");
    }
}

static void start_api(struct node *n)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/apis/resource.k8s.io/v1/namespaces/:/resourceclaims/:",
         on_claim, 0, "claim"}};
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .ctx = n,
                                        .threads = 1};
    struct error err = {0};
    cr_assert_eq(httpd_start(&config, &n->api, &err), 0, "%s", err.text);
    n->kube.server = xasprintf("http://127.0.0.1:%u", httpd_port(n->api));
}

static void start_plugin(struct node *n)
{
    struct error err = {0};
    cr_assert_eq(dra_plugin_create(&n->config, &n->plugin, &err), 0, "%s",
                 err.text);
    dra_plugin_look(n->plugin, n->r.topo);
}

static void start(struct node *n)
{
    memset(n, 0, sizeof *n);
    drarig_init(&n->r, NULL);
    start_api(n);
    n->kubelet = xasprintf("%s/kubelet", n->r.root);
    n->registry = xasprintf("%s/plugins_registry/xpu.biga.dev-reg.sock",
                            n->kubelet);
    n->socket = xasprintf("%s/plugins/xpu.biga.dev/dra.sock", n->kubelet);
    n->config = (struct dra_plugin_config){.node = "n1",
                                           .kubelet_dir = n->kubelet,
                                           .cdi_dir = n->r.cdi_dir,
                                           .sysroot = n->r.root,
                                           .kube = &n->kube,
                                           .timeout_ms = PATIENCE_MS,
                                           .grace_ms = 1000};
    start_plugin(n);
}

static void await_file(const char *path, bool there)
{
    int64_t due_ms = clock_ms() + PATIENCE_MS;
    while ((access(path, F_OK) == 0) != there) {
        cr_assert_lt(clock_ms(), due_ms, "%s", path);
        (void)usleep(1000);
    }
}

static void stop(struct node *n)
{
    dra_plugin_destroy(n->plugin);
    httpd_stop(n->api);
    free(n->kube.server);
    free(n->kubelet);
    free(n->registry);
    free(n->socket);
    drarig_fini(&n->r);
}

/* The text of field `number`, of the first level; "" when there is none. */
static char *text_of(struct proto_bytes m, uint32_t number)
{
    struct proto_field f = {0};
    return proto_find(m, number, PROTO_BYTES, &f, NULL) == 1
               ? xstrndup(f.bytes.data, f.bytes.size)
               : xstrdup("");
}
Test(dra_plugin, is_found_and_says_what_it_is)
{
    struct node n;
    cleanup_str struct str reply = STR_INIT(1 << 20), told = STR_INIT(100);
    start(&n);
    await_file(n.registry, true);
    struct rpc_client *c = rpc_open(n.registry);
    cr_expect_eq(
        rpc_unary(c, "/pluginregistration.Registration/GetInfo", "", 0, &reply),
        GRPC_OK);
    const struct proto_bytes info = {str_text(&reply), reply.size};
    cleanup_free char *type = text_of(info, 1), *name = text_of(info, 2),
                      *endpoint = text_of(info, 3), *last = text_of(info, 4);
    cr_expect_str_eq(type, "DRAPlugin");
    cr_expect_str_eq(name, "xpu.biga.dev");
    cr_expect_str_eq(endpoint, n.socket);
    cr_expect_str_eq(last, "v1alpha1.DRAResourceHealth");
    proto_add_varint(&told, 1, 1);
    cr_expect_eq(
        rpc_unary(c,
                  "/pluginregistration.Registration/NotifyRegistrationStatus",
                  str_text(&told), told.size, &reply),
        GRPC_OK);
    cr_expect_eq(
        rpc_unary(c, "/pluginregistration.Registration/No", "", 0, &reply),
        GRPC_UNIMPLEMENTED);
    rpc_close(c);
    stop(&n);
}
Test(dra_plugin, refuses_a_path_that_no_socket_may_have)
{
    struct dra_plugin_config config = {.node = "n", .cdi_dir = "/c"};
    struct dra_plugin *p = NULL;
    struct error err = {0};
    char dir[120];
    memset(dir, 'x', sizeof dir - 1);
    dir[0] = '/';
    dir[sizeof dir - 1] = '\0';
    config.kubelet_dir = dir;
    cr_expect_eq(dra_plugin_create(&config, &p, &err), -EINVAL);
    cr_expect(strstr(err.text, "--kubelet-dir"), "%s", err.text);
}
