/* The thread that looks and tells, against a kubelet and an extender that stand
 * in for real ones: 500 pods come and go, and nothing that one of them never
 * had is ever told of it. */
#include "advertiser/achieved/achieved.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/describe/hostfile.h"
#include "lib/base/json.h"
#include "lib/grpcd/grpcd_call.h"
#include "lib/http/httpd.h"
#include "lib/io/log.h"
#include "tests/lib/randnode.h"
#include "tests/lib/tmpdir.h"

enum { PODS = 500, ALIVE = 32, GPUS = 8, MESSAGE_MAX = 1 << 20 };

static const char host[] = "package 0\n"
                           "  numa 0 cpus=64 cpu-list=0-63 memory=16GiB\n"
                           "    root 0000:00\n"
                           "      bridge 0000:00:01.0\n"
                           "        gpu 0000:10:00.0 id=10de:2330\n"
                           "        gpu 0000:11:00.0 id=10de:2330\n"
                           "        gpu 0000:12:00.0 id=10de:2330\n"
                           "        gpu 0000:13:00.0 id=10de:2330\n"
                           "        gpu 0000:14:00.0 id=10de:2330\n"
                           "        gpu 0000:15:00.0 id=10de:2330\n"
                           "        gpu 0000:16:00.0 id=10de:2330\n"
                           "        gpu 0000:17:00.0 id=10de:2330\n";

/* What each has in the end. */
struct truth {
    uint8_t gpus; /* a bit for each */
    int cpu;      /* -1: none of its own */
};

struct world {
    char *dir;
    struct grpcd *kubelet;
    struct httpd *extender;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct truth pods[PODS];
    size_t born, gone; /* those from `gone` to `born` are there */
    bool told[PODS];
    size_t n_wrong, n_put, n_refused;
    bool refuse; /* the extender has no time */
    bool settled;
    char wrong[512]; /* the first */
};

/* --- control groups ------------------------------------------------------- */

static void put(const char *dir, const char *path, const char *text)
{
    cleanup_free char *whole = xasprintf("%s/%s", dir, path);
    for (char *slash = whole; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        (void)mkdir(whole, 0755); /* it may be there */
        *slash = '/';
    }
    FILE *f = fopen(whole, "we");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", whole);
}

static void uid_of(size_t i, char ret_uid[37])
{
    (void)snprintf(ret_uid, 37, "%08zx-0000-0000-0000-000000000000", i);
}

/* Where it waits to come, and is when it has gone. */
static void make_groups(struct world *w, size_t i)
{
    char uid[37], path[256];
    uid_of(i, uid);
    for (unsigned c = 0; c < 2; c++) {
        (void)snprintf(path, sizeof path, "parked/pod%s/%064zx/cpuset.cpus",
                       uid, 2 * i + c);
        put(w->dir, path, "0-63\n");
        (void)snprintf(path, sizeof path, "parked/pod%s/%064zx/cpuset.mems",
                       uid, 2 * i + c);
        put(w->dir, path, "0\n");
    }
    (void)snprintf(path, sizeof path, "var/log/pods/d_p-%zu_%s/x", i, uid);
    put(w->dir, path, "");
}

static void move_groups(struct world *w, size_t i, bool come)
{
    char uid[37];
    uid_of(i, uid);
    cleanup_free char *parked = xasprintf("%s/parked/pod%s", w->dir, uid);
    cleanup_free char *there = xasprintf("%s/sys/fs/cgroup/cpuset/pod%s",
                                         w->dir, uid);
    cr_assert_eq(come ? rename(parked, there) : rename(there, parked), 0);
}

/* --- the kubelet ---------------------------------------------------------- */

static void write_pod(const struct world *w, size_t i, bool whole,
                      struct str *out)
{
    const struct truth *t = &w->pods[i];
    char text[64];
    size_t pod = proto_open(out, 1);
    (void)snprintf(text, sizeof text, "p-%zu", i);
    proto_add_text(out, 1, text);
    proto_add_text(out, 2, "d");
    size_t container = proto_open(out, 3);
    for (unsigned g = 0; whole && g < GPUS; g++)
        if (t->gpus >> g & 1) {
            size_t device = proto_open(out, 2);
            (void)snprintf(text, sizeof text, "0000:1%u:00.0", g);
            proto_add_text(out, 1, "example.org/gpu");
            proto_add_text(out, 2, text);
            proto_close(out, device);
        }
    if (whole && t->cpu >= 0)
        proto_add_varint(out, 3, (uint64_t)t->cpu);
    proto_close(out, container);
    proto_close(out, pod);
}

/* With each call one more has come, which is given what it gets with the next,
 * and one may be gone. */
static void on_list(void *ctx, struct grpcd_call *call)
{
    struct world *w = ctx;
    cleanup_str struct str out = STR_INIT(MESSAGE_MAX);
    hold_lock(&w->lock);
    size_t whole = w->born;
    if (w->born < PODS)
        move_groups(w, w->born++, true);
    if (w->born - w->gone > ALIVE)
        move_groups(w, w->gone++, false);
    for (size_t i = w->gone; i < w->born; i++)
        write_pod(w, i, i < whole, &out);
    grpcd_call_answer(call, str_text(&out), out.size);
}

static void on_route(void *ctx, const struct grpcd_call *call,
                     struct grpcd_route *ret_route)
{
    bool list = strcmp(grpcd_call_method(call), POD_RESOURCES_LIST) == 0;
    *ret_route = (struct grpcd_route){
        .how = GRPCD_HERE, .handle = list ? on_list : NULL, .ctx = ctx};
}

/* --- the extender --------------------------------------------------------- */

static void wrong(struct world *w, const cJSON *pod)
{
    char *text = cJSON_PrintUnformatted(pod);
    if (w->n_wrong++ == 0)
        (void)snprintf(w->wrong, sizeof w->wrong, "%s", text);
    free(text);
}

static bool has_gpus(const struct truth *t, const cJSON *gpus)
{
    uint8_t found = 0;
    const cJSON *each;
    cJSON_ArrayForEach(each, gpus)
    {
        unsigned g = 99;
        if (sscanf(each->valuestring, "0000:1%u:00.0", &g) == 1 && g < GPUS)
            found |= (uint8_t)(1u << g);
    }
    return found == t->gpus;
}

/* All that is told is as it is. */
static void check_pod(struct world *w, const cJSON *pod)
{
    size_t i = PODS;
    char cpus[24], uid[37];
    const cJSON *name = cJSON_GetObjectItem(pod, "name");
    if (sscanf(name->valuestring, "p-%zu", &i) != 1 || i >= PODS) {
        wrong(w, pod);
        return;
    }
    const struct truth *t = &w->pods[i];
    const cJSON *gpus = cJSON_GetObjectItem(pod, "gpus"),
                *at = cJSON_GetObjectItem(pod, "cpus"),
                *id = cJSON_GetObjectItem(pod, "uid");
    (void)snprintf(cpus, sizeof cpus, t->cpu < 0 ? "0-63" : "%d", t->cpu);
    uid_of(i, uid);
    if (!gpus || !at || !id || !has_gpus(t, gpus) ||
        strcmp(at->valuestring, cpus) != 0 || strcmp(id->valuestring, uid) != 0)
        wrong(w, pod);
    w->told[i] = true;
}

static void on_put(struct httpd_request *rq, void *ctx)
{
    struct world *w = ctx;
    cleanup_with(json) cJSON *tree = NULL;
    struct error err = {0};
    size_t size;
    const char *body = httpd_body(rq, &size);
    hold_lock(&w->lock);
    if (w->refuse) {
        w->n_refused++;
        httpd_fail(rq, 503, "no time");
    } else {
        cr_assert_eq(json_parse(body, size, &tree, &err), 0, "%s", err.text);
        const cJSON *pods = cJSON_GetObjectItem(tree, "pods"), *pod;
        cJSON_ArrayForEach(pod, pods) check_pod(w, pod);
        w->n_put++;
        w->settled = w->born == PODS &&
                     cJSON_GetArraySize(pods) == (int)(w->born - w->gone);
        httpd_status(rq, 204);
    }
    (void)pthread_cond_broadcast(&w->changed);
}

/* --- all of it ------------------------------------------------------------ */

static void world_init(struct world *w)
{
    static const struct httpd_route routes[] = {
        {HTTPD_PUT, "/v1/nodes/h/achieved", on_put, FACTS_REPORT_MAX, "put"}};
    struct error err = {0};
    *w = (struct world){.dir = tmpdir_create()};
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->changed, NULL);
    (void)chance_init();
    put(w->dir, "sys/fs/cgroup/cpuset/cpuset.mems", "0\n");
    for (size_t i = 0; i < PODS; i++) {
        w->pods[i] = (struct truth){(uint8_t)(roll(256) & roll(256)),
                                    odds(30) ? (int)roll(64) : -1};
        make_groups(w, i);
    }
    cleanup_free char *path = xasprintf("%s/kubelet.sock", w->dir);
    const struct grpcd_config kubelet = {
        .path = path, .route = on_route, .ctx = w};
    const struct httpd_config extender = {.name = "publish",
                                          .listen = "127.0.0.1:0",
                                          .routes = routes,
                                          .n_routes = 1,
                                          .ctx = w,
                                          .threads = 1};
    cr_assert_eq(grpcd_create(&kubelet, &w->kubelet, &err), 0, "%s", err.text);
    cr_assert_eq(grpcd_start(w->kubelet, &err), 0, "%s", err.text);
    cr_assert_eq(httpd_start(&extender, &w->extender, &err), 0, "%s", err.text);
}

static void world_fini(struct world *w)
{
    httpd_stop(w->extender);
    grpcd_destroy(w->kubelet);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    tmpdir_remove(w->dir);
}

static void wait_until(struct world *w, bool (*is_so)(const struct world *w))
{
    hold_lock(&w->lock);
    while (!is_so(w))
        (void)pthread_cond_wait(&w->changed, &w->lock);
}

static bool is_settled(const struct world *w)
{
    return w->settled;
}

static bool is_refused_twice(const struct world *w)
{
    return w->n_refused >= 2;
}

Test(achieved, of_500_pods_nothing_is_told_that_is_not_so)
{
    struct world w;
    struct error err = {0};
    cleanup_with(topo) struct topo *topo = NULL;
    struct achieved *a = NULL;
    log_set_level(LOG_ERROR);
    world_init(&w);
    cr_assert_eq(hostfile_read(host, strlen(host), "h", &topo, &err), 0);
    cleanup_free char *socket = xasprintf("%s/kubelet.sock", w.dir);
    cleanup_free char *base = xasprintf("http://127.0.0.1:%u",
                                        httpd_port(w.extender));
    const struct sender_config sending = {
        .http = {.base = base, .timeout_ms = 10000}};
    const struct achieved_config config = {.node = "h",
                                           .kubelet = socket,
                                           .sysroot = w.dir,
                                           .sending = &sending,
                                           .look_ms = 1,
                                           .again_ms = 50,
                                           .backoff_min_ms = 1,
                                           .backoff_max_ms = 10,
                                           .withdraw = true};
    cr_assert_eq(achieved_start(&config, topo, &a, &err), 0, "%s", err.text);
    wait_until(&w, is_settled);
    /* an extender that was busy, or started anew, gets all again */
    pthread_mutex_lock(&w.lock);
    w.refuse = true;
    pthread_mutex_unlock(&w.lock);
    wait_until(&w, is_refused_twice);
    pthread_mutex_lock(&w.lock);
    w.refuse = w.settled = false;
    pthread_mutex_unlock(&w.lock);
    wait_until(&w, is_settled);
    achieved_look(a, topo);
    achieved_stop(a);
    cr_expect_eq(w.n_wrong, 0u, "%zu, first %s", w.n_wrong, w.wrong);
    for (size_t i = 0; i < PODS; i++)
        cr_expect(w.told[i], "of pod %zu nothing was told", i);
    cr_expect(!w.settled, "it was withdrawn at the end");
    world_fini(&w);
}

/* Without a kubelet nothing is told, and it ends at once. */
Test(achieved, of_no_kubelet_nothing_is_told)
{
    struct world w;
    struct error err = {0};
    cleanup_with(topo) struct topo *topo = NULL;
    struct achieved *a = NULL;
    log_set_level(LOG_ERROR);
    world_init(&w);
    cr_assert_eq(hostfile_read(host, strlen(host), "h", &topo, &err), 0);
    cleanup_free char *base = xasprintf("http://127.0.0.1:%u",
                                        httpd_port(w.extender));
    const struct sender_config sending = {
        .http = {.base = base, .timeout_ms = 10000}};
    struct achieved_config config = {.node = "h",
                                     .kubelet = "/nonexistent/kubelet.sock",
                                     .sysroot = w.dir,
                                     .sending = &sending,
                                     .look_ms = 1,
                                     .again_ms = 50,
                                     .backoff_min_ms = 1,
                                     .backoff_max_ms = 10,
                                     .withdraw = true};
    cr_assert_eq(achieved_start(&config, topo, &a, &err), 0, "%s", err.text);
    achieved_stop(a);
    cr_expect_eq(w.n_put, 0u);
    char path[300];
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    config.kubelet = path;
    cr_expect_eq(achieved_start(&config, topo, &a, &err), -EINVAL);
    world_fini(&w);
}
