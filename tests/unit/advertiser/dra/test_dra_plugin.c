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

static void add_claim(struct str *out, const char *uid, const char *name)
{
    size_t at = proto_open(out, 1);
    proto_add_text(out, 1, "default");
    proto_add_text(out, 2, uid);
    proto_add_text(out, 3, name);
    proto_close(out, at);
}

static struct proto_bytes value_of(const struct str *reply, const char *uid)
{
    struct proto_bytes value = {"", 0};
    struct error err = {0};
    cr_expect_eq(
        proto_find_pair((struct proto_bytes){str_text(reply), reply->size}, 1,
                        uid, &value, &err),
        1, "%s: %s", uid, err.text);
    return value;
}

/* The text of field `number`, of the first level; "" when there is none. */
static char *text_of(struct proto_bytes m, uint32_t number)
{
    struct proto_field f = {0};
    return proto_find(m, number, PROTO_BYTES, &f, NULL) == 1
               ? xstrndup(f.bytes.data, f.bytes.size)
               : xstrdup("");
}

static void call(struct node *n, const char *method, const struct str *request,
                 struct str *ret_reply)
{
    struct rpc_client *c = rpc_open(n->socket);
    int code = rpc_unary(c, method, str_text(request), request->size,
                         ret_reply);
    cr_expect_eq(code, GRPC_OK, "%s: %d", method, code);
    rpc_close(c);
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

/* One claim that cannot be prepared is no other claim's trouble. */
Test(dra_plugin, prepares_each_claim_by_itself)
{
    struct node n;
    cleanup_str struct str request = STR_INIT(4096), reply = STR_INIT(1 << 20);
    start(&n);
    drarig_claim(&n.r, "a", "u-1", "card-0000-17-00");
    drarig_claim(&n.r, "b", "u-2", "card-0000-77-00");
    await_file(n.registry, true);
    add_claim(&request, "u-2", "b");
    add_claim(&request, "u-1", "a");
    add_claim(&request, "u-3", "none");
    static const char *const methods[] = {V1 "NodePrepareResources",
                                          BETA "NodePrepareResources"};
    for (int i = 0; i < 2; i++) {
        call(&n, methods[i], &request, &reply);
        cleanup_free char *b = text_of(value_of(&reply, "u-2"), 2),
                          *a = text_of(value_of(&reply, "u-1"), 2),
                          *none = text_of(value_of(&reply, "u-3"), 2),
                          *device = text_of(value_of(&reply, "u-1"), 1);
        cr_expect(strstr(b, "ResourceClaim default/b: request r0: "
                            "card-0000-77-00 is not in this node"),
                  "%s", b);
        cr_expect_str_eq(a, "");
        cr_expect(strstr(none, "ResourceClaim default/none"), "%s", none);
        cr_expect(strstr(device, "xpu.biga.dev/card=u-1-card-0000-17-00"), "%s",
                  device);
    }
    cr_expect(drarig_has_cdi(&n.r, "u-1"));
    cr_expect(drarig_has_record(&n.r, "u-1"));
    call(&n, V1 "NodeUnprepareResources", &request, &reply);
    cr_expect_eq(value_of(&reply, "u-1").size, 0u);
    cr_expect_eq(value_of(&reply, "u-3").size, 0u);
    cr_expect_eq(drarig_n_files(&n.r), 0u);
    stop(&n);
}

Test(dra_plugin, comes_again_with_what_was_prepared)
{
    struct node n;
    cleanup_str struct str request = STR_INIT(4096), reply = STR_INIT(1 << 20);
    start(&n);
    drarig_claim(&n.r, "a", "u-1", "card-0000-17-00");
    await_file(n.registry, true);
    add_claim(&request, "u-1", "a");
    call(&n, V1 "NodePrepareResources", &request, &reply);
    dra_plugin_destroy(n.plugin);
    cr_expect_neq(access(n.registry, F_OK), 0,
                  "the kubelet thinks it is there");
    cr_expect(drarig_has_cdi(&n.r, "u-1"));
    cleanup_free char *cdi = xasprintf("%s/xpu.biga.dev-claim_u-1.json",
                                       n.r.cdi_dir);
    cr_assert_eq(unlink(cdi), 0);
    start_plugin(&n);
    await_file(n.registry, true);
    cr_expect(drarig_has_cdi(&n.r, "u-1"), "before it is found");
    stop(&n);
}

Test(dra_plugin, is_tried_again_until_it_can_serve)
{
    struct node n;
    start(&n);
    await_file(n.registry, true);
    struct dra_plugin *first = n.plugin;
    start_plugin(&n); /* a second one finds the sockets served */
    dra_plugin_destroy(first);
    await_file(n.registry, true);
    struct rpc_client *c = rpc_open(n.registry);
    cleanup_str struct str reply = STR_INIT(1 << 20);
    cr_expect_eq(
        rpc_unary(c, "/pluginregistration.Registration/GetInfo", "", 0, &reply),
        GRPC_OK);
    rpc_close(c);
    stop(&n);
}

Test(dra_plugin, refuses_what_is_no_request)
{
    struct node n;
    cleanup_str struct str reply = STR_INIT(1 << 20);
    start(&n);
    await_file(n.registry, true);
    struct rpc_client *c = rpc_open(n.socket);
    cr_expect_eq(rpc_unary(c, V1 "NodePrepareResources", "\x0a\x7f", 2, &reply),
                 GRPC_INVALID_ARGUMENT);
    cr_expect_eq(rpc_unary(c, V1 "NodePrepareResources", "", 0, &reply),
                 GRPC_OK);
    rpc_close(c);
    stop(&n);
}

/* The same cards, of which the first is lost. */
static struct topo *with_lost(const struct topo *topo)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(topo_node(topo));
    struct topo *made = NULL;
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        struct device d = *topo_device(topo, i);
        if (i == 0) {
            d.health = "lost";
            d.unhealthy = true;
        }
        topo_builder_add(b, &d, NULL);
    }
    cr_assert_eq(topo_build(b, &made, NULL), 0);
    return made;
}

static size_t count_in(const struct str *s, const char *text)
{
    size_t n = 0, size = strlen(text);
    for (size_t i = 0; i + size <= s->size; i++)
        n += memcmp(s->data + i, text, size) == 0;
    return n;
}

/* The health of each card, at once, and again when one changes; on a slow
 * machine also because DRA_WATCH_AGAIN_MS have passed. */
Test(dra_plugin, tells_health)
{
    struct node n;
    struct rpc_call watch;
    start(&n);
    await_file(n.registry, true);
    struct rpc_client *c = rpc_open(n.socket);
    rpc_begin(c, &watch, "/v1.DRAResourceHealth/NodeWatchResources", NULL);
    rpc_send(&watch, "", 0);
    rpc_send_end(&watch);
    while (count_in(&watch.in, "card-0000-19-00") < 1)
        rpc_turn(c, 10);
    cr_expect_eq(count_in(&watch.in, "gpu-"), 0u, "another driver's");
    cr_expect_geq(count_in(&watch.in, "card-0000-17-00"
                                      "\x10"),
                  1u, "nobody looks at it");
    cleanup_with(topo) struct topo *lost = with_lost(n.r.topo);
    dra_plugin_look(n.plugin, n.r.topo); /* nothing new */
    dra_plugin_look(n.plugin, lost);
    while (count_in(&watch.in, "card-0000-17-00\x10\x02") < 1)
        rpc_turn(c, 10);
    rpc_reset(&watch, 8);
    rpc_end(&watch);
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
