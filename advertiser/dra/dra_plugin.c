#include <stdlib.h>
#include <string.h>

#include "advertiser/dra/dra_plugin_private.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/io/unix_socket.h"

enum { CONNECTIONS = 16 };

/* --- the API server ------------------------------------------------------- */

static int look_up(void *ctx, const char *namespace, const char *name,
                   struct str *ret_json, struct error *err)
{
    struct dra_plugin *p = ctx;
    cleanup_str struct str path = STR_INIT(2048);
    struct http_answer answer = {.body = STR_INIT(KUBE_ANSWER_MAX)};
    kube_path_object(&path, "/apis/resource.k8s.io/v1", namespace,
                     "resourceclaims", name);
    const struct kube_request request = {.method = "GET",
                                         .path = str_text(&path)};
    int r = kube_call(p->client, &request, &answer, err);
    if (r == 0)
        str_move(ret_json, &answer.body);
    str_fini(&answer.body);
    return r;
}

/* --- what is there -------------------------------------------------------- */

void dra_plugin_host(struct dra_plugin *p, struct cdi_host *ret_host,
                     struct topo **ret_topo)
{
    const char *path = p->config.card_file;
    struct cardfile *cards = NULL;
    struct error err = {0};
    if (path && *path && cardfile_load(path, &cards, &err) == 0) {
        cardfile_destroy(p->cards);
        p->cards = cards;
    }
    if (*err.text && strcmp(err.text, p->unread.text) != 0)
        log_event(LOG_WARN, "card-file-not-read", "error", err.text, NULL);
    p->unread = err;
    hold_lock(&p->lock);
    *ret_topo = topo_ref(p->topo);
    *ret_host = (struct cdi_host){
        .topo = p->topo, .sysroot = p->config.sysroot, .cards = p->cards};
}

/* --- servers -------------------------------------------------------------- */

/* Who listens there is the only one that touches what is prepared. */
static int listen_at(struct dra_plugin *p, bool last, struct error *err)
{
    const struct grpcd_config config = {
        .path = last ? p->registry_path : p->path,
        .route = dra_plugin_route,
        .ctx = p,
        .connections = CONNECTIONS,
        .calls = DRA_QUEUE_MAX,
        .brief_threads = 1,
        .long_threads = DRA_WATCH_THREADS,
        .message_max = DRA_MESSAGE_MAX,
    };
    struct grpcd *server = NULL;
    int r = dra_make_dirs(last ? p->registry_dir : p->dir, 0750, err);
    if (r == 0)
        r = grpcd_create(&config, &server, err);
    if (r == 0 && last)
        r = grpcd_start(server, err);
    if (r < 0) {
        grpcd_destroy(server);
        return r;
    }
    hold_lock(&p->lock);
    *(last ? &p->registry : &p->server) = server;
    return 0;
}

static int start_server(struct dra_plugin *p, struct error *err)
{
    int r = grpcd_start(p->server, err);
    hold_lock(&p->lock);
    p->serves = r == 0;
    return r;
}

static int open_claims(struct dra_plugin *p, struct error *err)
{
    const struct dra_plugin_config *c = &p->config;
    const struct dra_claims_config config = {
        .node = c->node,
        .dir = p->claims_dir,
        .cdi_dir = c->cdi_dir,
        .grace_ms = c->grace_ms,
        .look_up = look_up,
        .ctx = p,
    };
    return dra_claims_open(&config, &p->claims, err);
}

static void restore(struct dra_plugin *p)
{
    cleanup_with(topo) struct topo *topo = NULL;
    struct cdi_host host;
    dra_plugin_host(p, &host, &topo);
    dra_claims_restore(p->claims, &host);
}

/* In this order, so that a kubelet finds no more than what works: everything
 * that was prepared is there before it hears of us. */
static int open_all(struct dra_plugin *p, struct error *err)
{
    int r = p->client ? 0
                      : kube_client_create(p->config.kube, p->config.timeout_ms,
                                           &p->client, err);
    if (r == 0 && !p->server)
        r = listen_at(p, false, err);
    if (r == 0 && !p->claims) {
        r = open_claims(p, err);
        if (r == 0)
            restore(p);
    }
    if (r == 0 && !p->serves)
        r = start_server(p, err);
    return r == 0 && !p->registry ? listen_at(p, true, err) : r;
}

static void try_to_open(struct dra_plugin *p)
{
    struct error err = {0};
    int r = open_all(p, &err);
    p->retry_ms = clock_ms() + DRA_RETRY_MS;
    if (r == 0) {
        log_event(LOG_INFO, "plugin-serves", "driver", DRA_DRIVER, "socket",
                  p->path, NULL);
        p->sweep_ms = clock_ms();
    } else if (strcmp(p->last.text, err.text) != 0) {
        log_event(LOG_ERROR, "plugin-not-served", "driver", DRA_DRIVER, "error",
                  err.text, NULL);
    }
    p->last = err;
}

/* --- the thread ----------------------------------------------------------- */

enum work { WORK_STOP, WORK_OPEN, WORK_CALL, WORK_RESTORE, WORK_SWEEP };

/* Until there is something to do. */
static enum work wait_for_work(struct dra_plugin *p,
                               struct dra_waiting *ret_call)
{
    hold_lock(&p->lock);
    for (;;) {
        bool open = p->registry != NULL || p->leaving;
        int64_t due_ms = open ? p->sweep_ms : p->retry_ms;
        if (p->n > 0) {
            *ret_call = p->queue[p->first];
            p->first = (p->first + 1) % DRA_QUEUE_MAX;
            p->n--;
            return WORK_CALL;
        }
        if (p->stopping)
            return WORK_STOP;
        if (!p->topo || p->leaving) {
            (void)clock_wait(&p->wake, &p->lock, INT64_MAX);
            continue;
        }
        if (open && p->looked) {
            p->looked = false;
            return WORK_RESTORE;
        }
        if (clock_ms() >= due_ms)
            return open ? WORK_SWEEP : WORK_OPEN;
        (void)clock_wait(&p->wake, &p->lock, due_ms);
    }
}

static void *run(void *arg)
{
    struct dra_plugin *p = arg;
    struct dra_waiting call;
    thread_name("claims", NULL);
    for (;;)
        switch (wait_for_work(p, &call)) {
        case WORK_OPEN:
            try_to_open(p);
            break;
        case WORK_CALL:
            dra_plugin_answer(p, &call);
            break;
        case WORK_RESTORE:
            restore(p);
            break;
        case WORK_SWEEP:
            if (!dra_claims_sweep(p->claims, clock_ms()))
                p->sweep_ms = clock_ms() + (p->config.grace_ms < DRA_SWEEP_MS
                                                ? p->config.grace_ms
                                                : DRA_SWEEP_MS);
            break;
        case WORK_STOP:
            return NULL;
        }
}

/* --- from start to end ---------------------------------------------------- */

static int check_path(const char *path, struct error *err)
{
    return unix_path_is_good(path)
               ? 0
               : error_set(err, EINVAL,
                           "--kubelet-dir: \"%.200s\" is no path that a socket "
                           "may have: it must be absolute, and is too long "
                           "else",
                           path);
}

int dra_plugin_create(const struct dra_plugin_config *config,
                      struct dra_plugin **ret_plugin, struct error *err)
{
    struct dra_plugin *p = xcalloc(1, sizeof *p);
    p->config = *config;
    p->registry_dir = xasprintf("%s/plugins_registry", config->kubelet_dir);
    p->registry_path = xasprintf("%s/" DRA_DRIVER "-reg.sock", p->registry_dir);
    p->dir = xasprintf("%s/plugins/" DRA_DRIVER, config->kubelet_dir);
    p->path = xasprintf("%s/dra.sock", p->dir);
    p->claims_dir = xasprintf("%s/claims", p->dir);
    p->watch = dra_watch_create();
    (void)pthread_mutex_init(&p->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&p->wake);
    int r = check_path(p->registry_path, err);
    if (r == 0)
        r = check_path(p->path, err);
    if (r == 0) {
        r = -pthread_create(&p->thread, NULL, run, p);
        p->started = r == 0;
        if (r < 0)
            r = error_errno(err, -r, "a thread for claims");
    }
    if (r < 0) {
        dra_plugin_destroy(p);
        return r;
    }
    *ret_plugin = p;
    return 0;
}

/* The kubelet is to hear of the end before calls fail. */
static void stop_servers(struct dra_plugin *p)
{
    struct grpcd *registry, *server;
    {
        hold_lock(&p->lock);
        p->leaving = true;
        registry = p->registry;
        server = p->serves ? p->server : NULL;
    }
    dra_watch_end(p->watch);
    if (registry)
        grpcd_stop(registry, 0);
    if (server)
        grpcd_stop(server, DRA_DRAIN_MS);
}

static void stop_thread(struct dra_plugin *p)
{
    {
        hold_lock(&p->lock);
        p->stopping = true;
        clock_wake_all(&p->wake);
    }
    if (p->started)
        (void)pthread_join(p->thread, NULL); /* it is there */
}

void dra_plugin_destroy(struct dra_plugin *p)
{
    if (!p)
        return;
    stop_servers(p);
    stop_thread(p);
    grpcd_destroy(p->registry);
    grpcd_destroy(p->server);
    dra_claims_close(p->claims);
    kube_client_destroy(p->client);
    cardfile_destroy(p->cards);
    dra_watch_destroy(p->watch);
    topo_unref(p->topo);
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->registry_dir);
    free(p->registry_path);
    free(p->dir);
    free(p->path);
    free(p->claims_dir);
    free(p);
}

void dra_plugin_look(struct dra_plugin *p, struct topo *topo)
{
    dra_watch_look(p->watch, topo);
    hold_lock(&p->lock);
    topo_unref(p->topo);
    p->topo = topo_ref(topo);
    p->looked = true;
    clock_wake_one(&p->wake);
}
