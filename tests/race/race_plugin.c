/* The plugin of a kubelet, asked on several connections at once to prepare and
 * unprepare, while the topology changes, health is watched, and the plugin
 * itself comes and goes.  At the end nothing is left of what was unprepared. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/dra/dra_plugin.h"
#include "lib/base/proto.h"
#include "lib/h2/grpc_code.h"
#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/dra/drarig.h"
#include "tests/lib/grpc/rpcclient.h"

#define SERVICE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"

enum { N_KUBELETS = 3, ROUNDS = 40, LIVES = 3, PATIENCE_MS = 600000 };

static struct drarig rig;
static struct kube_config kube;
static char *registry, *socket_path;
static struct dra_plugin *plugin;
static atomic_uint n_asked;

static void need(bool truth, const char *what)
{
    if (truth)
        return;
    (void)fprintf(stderr, "race_plugin: %s\n", what);
    exit(1);
}

/* --- the API server, whose claims stay as they are ------------------------ */

static void on_claim(struct httpd_request *rq, void *ctx)
{
    struct error err = {0};
    (void)ctx;
    if (drarig_look_up(&rig, httpd_arg(rq, 0), httpd_arg(rq, 1),
                       httpd_reply(rq), &err) < 0)
        httpd_status(rq, 404);
}

static struct httpd *start_api(void)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/apis/resource.k8s.io/v1/namespaces/:/resourceclaims/:",
         on_claim, 0, "claim"}};
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .threads = 1};
    struct httpd *api = NULL;
    struct error err = {0};
    need(httpd_start(&config, &api, &err) == 0, "no API server");
    kube.server = xasprintf("http://127.0.0.1:%u", httpd_port(api));
    return api;
}

/* --- kubelets ------------------------------------------------------------- */

static void ask(struct rpc_client *c, const char *method, unsigned claim)
{
    cleanup_str struct str request = STR_INIT(4096), reply = STR_INIT(1 << 20);
    char text[16];
    size_t at = proto_open(&request, 1);
    proto_add_text(&request, 1, "default");
    (void)snprintf(text, sizeof text, "u-%u", claim);
    proto_add_text(&request, 2, text);
    (void)snprintf(text, sizeof text, "c%u", claim);
    proto_add_text(&request, 3, text);
    proto_close(&request, at);
    need(rpc_unary(c, method, str_text(&request), request.size, &reply) ==
             GRPC_OK,
         method);
    need(!memmem(str_text(&reply), reply.size, "ResourceClaim", 13),
         "a claim was refused");
    atomic_fetch_add(&n_asked, 1);
}

static void *be_kubelet(void *arg)
{
    unsigned own = *(unsigned *)arg;
    struct rpc_client *c = rpc_open(socket_path);
    for (unsigned i = 0; i < ROUNDS; i++) {
        ask(c, SERVICE "NodePrepareResources", own);
        ask(c, SERVICE "NodePrepareResources", N_KUBELETS);
        ask(c, SERVICE "NodeUnprepareResources", own);
    }
    ask(c, SERVICE "NodeUnprepareResources", N_KUBELETS);
    rpc_close(c);
    return NULL;
}

static void *watch_health(void *arg)
{
    struct rpc_client *c = rpc_open(socket_path);
    struct rpc_call watch;
    (void)arg;
    rpc_begin(c, &watch, "/v1.DRAResourceHealth/NodeWatchResources", NULL);
    rpc_send(&watch, "", 0);
    rpc_send_end(&watch);
    rpc_wait_bytes(&watch, 16);
    (void)rpc_wait(&watch); /* until the plugin goes */
    rpc_end(&watch);
    rpc_close(c);
    return NULL;
}

static void await_socket(void)
{
    int64_t due_ms = clock_ms() + PATIENCE_MS;
    while (access(registry, F_OK) != 0) {
        need(clock_ms() < due_ms, "it does not serve");
        (void)usleep(1000);
    }
}

static void live(const struct dra_plugin_config *config)
{
    pthread_t kubelets[N_KUBELETS], watcher;
    unsigned own[N_KUBELETS];
    struct error err = {0};
    need(dra_plugin_create(config, &plugin, &err) == 0, err.text);
    dra_plugin_look(plugin, rig.topo);
    await_socket();
    need(pthread_create(&watcher, NULL, watch_health, NULL) == 0, "threads");
    unsigned begun = atomic_load(&n_asked);
    for (unsigned i = 0; i < N_KUBELETS; i++) {
        own[i] = i;
        need(pthread_create(&kubelets[i], NULL, be_kubelet, &own[i]) == 0,
             "threads");
    }
    while (atomic_load(&n_asked) < begun + 3 * ROUNDS) {
        dra_plugin_look(plugin, rig.topo);
        (void)usleep(500);
    }
    for (unsigned i = 0; i < N_KUBELETS; i++)
        (void)pthread_join(kubelets[i], NULL);
    dra_plugin_destroy(plugin);
    (void)pthread_join(watcher, NULL);
}

int main(void)
{
    log_set_level(LOG_ERROR);
    drarig_init(&rig, NULL);
    for (unsigned i = 0; i <= N_KUBELETS; i++) {
        char name[16], uid[16];
        (void)snprintf(name, sizeof name, "c%u", i);
        (void)snprintf(uid, sizeof uid, "u-%u", i);
        drarig_claim(&rig, name, uid,
                     i % 2 ? "card-0000-17-00" : "card-0000-18-00");
    }
    struct httpd *api = start_api();
    cleanup_free char *kubelet = xasprintf("%s/kubelet", rig.root);
    registry = xasprintf("%s/plugins_registry/xpu.biga.dev-reg.sock", kubelet);
    socket_path = xasprintf("%s/plugins/xpu.biga.dev/dra.sock", kubelet);
    const struct dra_plugin_config config = {.node = "n1",
                                             .kubelet_dir = kubelet,
                                             .cdi_dir = rig.cdi_dir,
                                             .sysroot = rig.root,
                                             .kube = &kube,
                                             .timeout_ms = PATIENCE_MS,
                                             .grace_ms = 1000};
    for (int i = 0; i < LIVES; i++) {
        live(&config);
        need(drarig_n_files(&rig) == 0, "something is left");
    }
    httpd_stop(api);
    (void)printf("race_plugin: %u calls in %d lives, nothing left\n",
                 atomic_load(&n_asked), LIVES);
    drarig_fini(&rig);
    free(kube.server);
    free(registry);
    free(socket_path);
    return 0;
}
