/* Kubelets that make, list and end pods on the home and on two cards, all at
 * once, while cards freeze and thaw and the router is replaced: for
 * ThreadSanitizer to watch, and that every call ends.
 *
 *   race_serve [ROUNDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/cri/cri.h"
#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "lib/grpcd/grpcd_call.h"
#include "lib/io/log.h"
#include "router/serve/serve.h"
#include "tests/lib/card/cardserver.h"
#include "tests/lib/tmpdir.h"

enum { KUBELETS = 4, PODS = 4, CARDS = 2, CALL_MS = 60000 };

static char *dir, *listen_path, *home_path, *state, *kubelet_dir, *url;
static struct cardserver *cards[CARDS];
static struct grpcd *home;
static struct act_place places[CARDS];
static atomic_uint n_done;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_serve: %s: %s\n", what, why);
    abort();
}

static struct cardserver *server_at(const char *path)
{
    static const struct cardserver_times quick = {0};
    const struct h2_config config = {.socket = path};
    return cardserver_start(&config, &quick);
}

/* --- the home: all calls of one connection at once ------------------------- */

static void answer(void *ctx, struct grpcd_call *call)
{
    static atomic_uint n_made;
    char id[65];
    cleanup_str struct str reply = STR_INIT(1024);
    (void)ctx;
    if (strstr(grpcd_call_method(call), "RunPodSandbox") ||
        strstr(grpcd_call_method(call), "CreateContainer")) {
        (void)snprintf(id, sizeof id, "%064x",
                       0xf0000000u + atomic_fetch_add(&n_made, 1));
        proto_add_text(&reply, 1, id);
    }
    grpcd_call_answer(call, str_text(&reply), reply.size);
}

static void route(void *ctx, const struct grpcd_call *call,
                  struct grpcd_route *ret_route)
{
    (void)ctx;
    (void)call;
    *ret_route = (struct grpcd_route){.how = GRPCD_HERE, .handle = answer};
}

static struct grpcd *home_at(const char *path)
{
    const struct grpcd_config config = {.path = path, .route = route};
    struct grpcd *s = NULL;
    struct error err = {0};
    if (grpcd_create(&config, &s, &err) < 0 || grpcd_start(s, &err) < 0)
        die("home", err.text);
    return s;
}

/* --- from start to end ------------------------------------------------------ */

static void set_up(void)
{
    dir = tmpdir_create();
    listen_path = xasprintf("%s/cri", dir);
    home_path = xasprintf("%s/home", dir);
    state = xasprintf("%s/state", dir);
    kubelet_dir = xasprintf("%s/kubelet", dir);
    url = xasprintf("unix://%s", listen_path);
    if (mkdir(state, 0700) < 0 || mkdir(kubelet_dir, 0700) < 0)
        die("mkdir", dir);
    home = home_at(home_path);
    for (int i = 0; i < CARDS; i++) {
        cleanup_free char *path = xasprintf("%s/card-%d", dir, i);
        (void)snprintf(places[i].name, sizeof places[i].name, "card-%d", i);
        (void)snprintf(places[i].endpoint, sizeof places[i].endpoint,
                       "unix://%s", path);
        cards[i] = server_at(path);
    }
}

static struct serve *begin(void)
{
    struct serve *s = NULL;
    struct error err = {0};
    const struct serve_config config = {
        .listen = listen_path,
        .home = home_path,
        .state = state,
        .kubelet_dir = kubelet_dir,
        .pod_logs = kubelet_dir,
        .node = "n",
        .cluster = "c",
        .handler = "xpu",
        .remote_handler = "",
        .default_remote = "card-0",
        .helper_image = "biga-card:1",
        .card_dir = "/var/lib/biga",
        .hooks = "",
        .timeout_ms = 2000,
        .pull_timeout_ms = 2000,
        .probe_ms = 50,
        .lost_ms = 400,
        .places = places,
        .n_places = CARDS,
    };
    if (serve_start(&config, &s, &err) < 0)
        die("start", err.text);
    return s;
}

/* Calls may fail, for cards freeze; they have to end. */
static void live(struct cri *cri, unsigned who, unsigned n)
{
    char name[32], id[CRI_ID_MAX + 1], container[CRI_ID_MAX + 1];
    struct cri_sandboxes list = {0};
    const struct cri_pairs all = {NULL, 0};
    (void)snprintf(name, sizeof name, "pod-%u-%u", who, n);
    const struct cri_sandbox_config pod = {
        .namespace = "ns",
        .name = name,
        .uid = name,
        .attempt = atomic_load(&n_done),
        .hostname = "",
        .log_directory = "",
        .runtime_handler = n % 2 ? "xpu" : "",
        .cgroup_parent = "",
        .run_as_user = -1,
    };
    const struct cri_container_config config = {
        .name = "main",
        .image = "image",
        .working_dir = "",
        .log_path = "",
        .cpuset_cpus = "",
        .cpuset_mems = "",
        .run_as_user = -1,
        .run_as_group = -1,
    };
    if (cri_list_sandboxes(cri, all, CALL_MS, &list, NULL) == 0)
        cri_sandboxes_fini(&list);
    if (cri_run_sandbox(cri, &pod, CALL_MS, id, NULL) < 0)
        return;
    if (cri_create_container(cri, id, &config, &pod, CALL_MS, container,
                             NULL) == 0) {
        (void)cri_start_container(cri, container, CALL_MS, NULL);
        (void)cri_stop_container(cri, container, 0, CALL_MS, NULL);
    }
    (void)cri_stop_sandbox(cri, id, CALL_MS, NULL);
    (void)cri_remove_sandbox(cri, id, CALL_MS, NULL);
}

static void *kubelet(void *arg)
{
    const struct grpc_config to = {.endpoint = url};
    struct error err = {0};
    struct cri *cri = NULL;
    unsigned who = *(unsigned *)arg;
    if (cri_create(&to, &cri, &err) < 0)
        die("kubelet", err.text);
    for (unsigned n = 0; n < PODS; n++) {
        live(cri, who, n);
        (void)atomic_fetch_add(&n_done, 1);
    }
    cri_destroy(cri);
    return NULL;
}

/* The router is replaced while the kubelets call. */
static void run_round(unsigned round)
{
    pthread_t threads[KUBELETS];
    unsigned who[KUBELETS];
    struct serve *s = begin();
    for (unsigned i = 0; i < KUBELETS; i++) {
        who[i] = round * KUBELETS + i;
        if (pthread_create(&threads[i], NULL, kubelet, &who[i]) != 0)
            die("thread", "none is to be had");
    }
    cardserver_freeze(cards[round % CARDS], true);
    if (round % 2) {
        serve_stop(s, 50);
        s = begin();
    }
    cardserver_freeze(cards[round % CARDS], false);
    for (unsigned i = 0; i < KUBELETS; i++)
        (void)pthread_join(threads[i], NULL);
    serve_stop(s, 0);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 4;
    log_set_level(LOG_ERROR);
    set_up();
    for (unsigned i = 0; i < rounds; i++)
        run_round(i);
    if (atomic_load(&n_done) != rounds * KUBELETS * PODS)
        die("pods", "not all were tried");
    grpcd_destroy(home);
    for (int i = 0; i < CARDS; i++)
        cardserver_stop(cards[i]);
    tmpdir_remove(dir);
    (void)printf("race_serve: %u pods\n", atomic_load(&n_done));
    return 0;
}
