#include "extender/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "extender/achieved/achieved_watch.h"
#include "extender/admit/guard.h"
#include "extender/app/changes.h"
#include "extender/app/fabric_files.h"
#include "extender/app/followers.h"
#include "extender/app/policy_file.h"
#include "extender/app/reload.h"
#include "extender/app/scoped.h"
#include "extender/cluster/cluster.h"
#include "extender/console/routes_console.h"
#include "extender/gauge/fleet_tally.h"
#include "extender/operate/operate.h"
#include "extender/pods/pending_demands.h"
#include "extender/relay/relay.h"
#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "extender/serve/query.h"
#include "extender/serve/routes_ask.h"
#include "extender/serve/routes_cluster.h"
#include "extender/serve/routes_nodes.h"
#include "extender/serve/routes_pods.h"
#include "extender/serve/routes_publish.h"
#include "extender/serve/routes_read.h"
#include "extender/serve/routes_scheduler.h"
#include "extender/serve/routes_streams.h"
#include "extender/state/plans.h"
#include "extender/view/kube.h"
#include "extender/wire/scratch.h"
#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/io/log.h"

/* Tables of routes, one after the other. */
struct routes {
    struct httpd_route *table;
    size_t n;
};

struct server {
    struct app app;
    struct routes read, publish; /* what these listeners answer */
    struct httpd *listeners[SERVER_LISTENERS];
    struct reload *reload;
    struct guard guard;
    /* the source of pods is one of the two */
    struct embedded *embedded;
    struct cluster *cluster;
    struct kube_config *kube; /* of the cluster */
    struct achieved_watch *achieved;
    /* of a cluster: does the writer know all that was listed? */
    bool known;            /* of the history's thread */
    atomic_bool clustered; /* `cluster` is set */
};

enum { RELOAD_MS = 1000 };

static void add_routes(struct routes *r, const struct httpd_route *table,
                       size_t n)
{
    r->table = xrealloc(r->table, r->n + n, sizeof *r->table);
    memcpy(r->table + r->n, table, n * sizeof *table);
    r->n += n;
}

static void mount_routes(struct server *s, bool in_cluster)
{
    add_routes(&s->read, ask_routes, n_ask_routes);
    add_routes(&s->read, read_routes, n_read_routes);
    add_routes(&s->read, operate_routes, n_operate_routes);
    add_routes(&s->read, console_routes, n_console_routes);
    if (in_cluster) {
        add_routes(&s->read, cluster_routes, n_cluster_routes);
        add_routes(&s->read, pods_elsewhere_routes, n_pods_elsewhere_routes);
        add_routes(&s->read, streams_elsewhere_routes,
                   n_streams_elsewhere_routes);
        return;
    }
    add_routes(&s->read, cluster_elsewhere_routes, n_cluster_elsewhere_routes);
    add_routes(&s->read, pods_routes, n_pods_routes);
    add_routes(&s->publish, publish_routes, n_publish_routes);
    add_routes(&s->publish, node_routes, n_node_routes);
    add_routes(&s->read, streams_routes, n_streams_routes);
    add_routes(&s->publish, node_streams_routes, n_node_streams_routes);
}

enum {
    /* one is enough for kube-scheduler's own pace; others let a bind, or
     * another scheduler's filter, past one that plans a job: over HTTP/1.1,
     * for HTTP/2 has one thread (httpd.h) */
    SCHEDULER_THREADS = 4,
    FILES_SPARE = (SCHEDULER_THREADS - 1) * HTTPD_SPARE, /* of its threads */
    FILES_OWN = 64 + FILES_SPARE, /* for all else: database, epoll, logs */
    CONNECTIONS_MIN = 8,
    STREAMS_MAX = 1024, /* of a listener: those of pods, and those who watch */
};

/* The connections that each listener may have: descriptors are of the whole
 * process, so a crowd on one listener must not use up those of the others. */
static int fit_connections(unsigned asked, unsigned *ret_connections,
                           struct error *err)
{
    struct rlimit files;
    rlim_t need = FILES_OWN + SERVER_LISTENERS * ((rlim_t)asked + HTTPD_SPARE);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return error_errno(err, errno, "cannot read the limit of open files");
    if (files.rlim_cur < need) {
        files.rlim_cur = need < files.rlim_max ? need : files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* what it is, is read next */
        (void)getrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur >= need) {
        *ret_connections = asked;
        return 0;
    }
    rlim_t each = files.rlim_cur < FILES_OWN
                      ? 0
                      : (files.rlim_cur - FILES_OWN) / SERVER_LISTENERS;
    if (each < CONNECTIONS_MIN + HTTPD_SPARE)
        return error_set(err, EMFILE,
                         "the limit of open files is %llu, must be at least "
                         "%d",
                         (unsigned long long)files.rlim_cur,
                         FILES_OWN + SERVER_LISTENERS *
                                         (CONNECTIONS_MIN + HTTPD_SPARE));
    *ret_connections = (unsigned)each - HTTPD_SPARE;
    cleanup_free char *fewer = xasprintf("%u", *ret_connections);
    cleanup_free char *wanted = xasprintf("%u", asked);
    log_event(LOG_WARN, "fewer-connections", "asked", wanted, "accepted", fewer,
              "reason", "the limit of open files", NULL);
    return 0;
}

/* Streams keep their connections: half of them stay for all else. */
static unsigned fit_streams(unsigned connections)
{
    return connections / 2 < STREAMS_MAX ? connections / 2 : STREAMS_MAX;
}

/* Events are written a little later than what they tell of is there. */
static uint64_t version_now(void *ctx)
{
    const struct app *app = ctx;
    uint64_t events = app->history ? history_state(app->history).newest : 0;
    return query_version(app) + events;
}

static int start_listeners(struct server *s, const struct server_config *config,
                           unsigned connections, struct error *err)
{
    const struct {
        const char *name;
        const struct httpd_route *routes;
        size_t n_routes;
        enum httpd_admission (*admit)(struct httpd_request *rq, void *ctx);
        bool anonymous; /* people and probes show tokens, if anything */
        void (*write_error)(struct str *out, unsigned status, const char *text);
    } kinds[SERVER_LISTENERS] = {
        {"scheduler", scheduler_routes, n_scheduler_routes, access_scheduler,
         false, NULL},
        {"publish", s->publish.table, s->publish.n, access_publish, false,
         kube_write_error},
        {"read", s->read.table, s->read.n, access_read, true, NULL},
    };
    /* as many streams again are left for logs and commands */
    s->app.followers = followers_create(fit_streams(connections) / 2);
    int r = changes_start(version_now, &s->app, s->app.followers,
                          &s->app.changes, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < SERVER_LISTENERS; i++) {
        if (kinds[i].n_routes == 0)
            continue; /* advertisers publish to the API server */
        struct httpd_config c = {
            .name = kinds[i].name,
            .listen = config->listen[i],
            .routes = kinds[i].routes,
            .n_routes = kinds[i].n_routes,
            .ctx = &s->app,
            .threads = i == SERVER_SCHEDULER ? SCHEDULER_THREADS : 1,
            .connections_max = connections,
            .streams_max = fit_streams(connections),
            .repeats = "command", /* to execute, a word each */
            .request_ms = (unsigned)config->request_ms,
            .anonymous = kinds[i].anonymous,
            .admit = kinds[i].admit,
            .observe = listener_observe,
            .write_error = kinds[i].write_error,
        };
        guard_listener(&s->guard, &c);
        if (httpd_start(&c, &s->listeners[i], err) < 0)
            return guard_explain(kinds[i].name, err);
        char port[16];
        (void)snprintf(port, sizeof port, "%u", httpd_port(s->listeners[i]));
        log_event(LOG_INFO, "listening", "listener", kinds[i].name, "address",
                  config->listen[i], "port", port, NULL);
    }
    return 0;
}

static int start_guard(struct server *s, const struct server_config *config,
                       struct error *err)
{
    struct guard_config c = {.tls_cert = config->tls_cert,
                             .tls_key = config->tls_key,
                             .client_ca = config->client_ca,
                             .plain_anywhere = config->plain_anywhere,
                             .scheduler_names = config->scheduler_names,
                             .token_file = config->token_file,
                             .kubeconfig = config->kubeconfig,
                             .metrics = s->app.listener.metrics};
    int r = guard_start(&s->guard, &c, err);
    s->app.listener.access = s->guard.access;
    s->app.tls = s->guard.tls;
    s->app.listener.secure = s->guard.tls != NULL;
    s->app.listener.show_login = console_show_login;
    return r;
}

/* Look after the files that may change. */
/* Before anybody polls them, as the thread of a leader does at once. */
static void serve_files(struct server *s)
{
    if (s->app.policy)
        policy_file_serve(s->app.policy, s->app.writer,
                          s->app.listener.metrics);
    if (s->app.fabric)
        fabric_files_serve(s->app.fabric, s->app.writer,
                           s->app.listener.metrics);
}

/* What looks at the fleet begin with. */
static void keep_looks(void *ctx)
{
    struct app *app = ctx;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    scoped_keep(app->scoped, s);
    fleet_tally_keep(app->tally, s, app->achieved);
}

static int start_reload(struct server *s, struct error *err)
{
    struct reload_item items[RELOAD_ITEMS_MAX];
    size_t n = 0;
    if (s->app.policy)
        items[n++] = (struct reload_item){policy_file_poll, s->app.policy};
    if (s->app.fabric)
        items[n++] = (struct reload_item){fabric_files_poll, s->app.fabric};
    if (s->guard.tls)
        items[n++] = (struct reload_item){tls_poll, s->guard.tls};
    items[n++] = (struct reload_item){access_poll, s->guard.access};
    items[n++] = (struct reload_item){keep_looks, &s->app};
    return reload_start(items, n, RELOAD_MS, &s->reload, err);
}

static int start_cluster(struct server *s, const struct server_config *config,
                         struct error *err)
{
    if (config->store != STORE_KUBERNETES)
        return 0;
    int r = kube_config_load(config->kubeconfig, &s->kube, err);
    if (r < 0)
        return r;
    struct cluster_config c = {
        .writer = s->app.writer,
        .metrics = s->app.listener.metrics,
        .demands = s->app.demands,
        .plans = s->app.plans,
        .achieved = s->app.achieved,
        .history = s->app.history,
        .fabric = s->app.fabric,
        .demand = s->app.demand,
        .kube = s->kube,
        .namespace = config->namespace,
        .heartbeats = config->heartbeats,
        .identity = config->identity,
        .fresh_ms = config->fresh_ms,
        .elect = config->elect,
        .events = config->events,
        .claims = config->claims,
        .dpus = config->dpus,
        .card_lost_s = config->card_lost_s,
    };
    r = cluster_start(&c, &s->cluster, err);
    s->app.source = cluster_source(s->cluster);
    atomic_store(&s->clustered, r == 0);
    return r;
}

/* Embedded, we are what runs the pods, too. */
static int start_embedded(struct server *s, struct error *err)
{
    struct embedded *e = s->embedded;
    if (!e)
        return 0;
    s->app.used = used_book_create();
    e->store.writer = s->app.writer;
    e->store.metrics = s->app.listener.metrics;
    e->store.demands = s->app.demands;
    e->store.plans = s->app.plans;
    e->store.instance = s->app.instance;
    s->app.source = embedded_source(e);
    int r = embedded_start(e, err);
    return r == 0 ? relay_start(s->app.listener.metrics, &s->app.relay, err)
                  : r;
}

static void on_lost(void *ctx, const struct allocation *a, const char *text,
                    bool again)
{
    struct server *s = ctx;
    if (!again) /* Events say it again and again, for whoever leads then */
        history_post_placed(s->app.history, a, HISTORY_DEGRADED, text);
    if (s->cluster) /* each replica tells, and it is one Event */
        cluster_tell_lost(s->cluster, a, text);
    else if (!again)
        log_event(LOG_WARN, "alignment-lost", "namespace", a->demand.namespace,
                  "pod", a->demand.name, "node", a->node, "text", text, NULL);
}

static void on_back(void *ctx, const struct allocation *a)
{
    const struct server *s = ctx;
    history_post_placed(s->app.history, a, HISTORY_RECOVERED,
                        "it has what was promised");
    log_event(LOG_INFO, "alignment-back", "namespace", a->demand.namespace,
              "pod", a->demand.name, "node", a->node, NULL);
}

static int start_achieved(struct server *s, struct error *err)
{
    const struct achieved_watch_config c = {
        .writer = s->app.writer,
        .book = s->app.achieved,
        .told = {.lost = on_lost, .back = on_back, .ctx = s},
    };
    return achieved_watch_start(&c, &s->achieved, err);
}

static int start_source(struct server *s, const struct server_config *config,
                        struct error *err)
{
    int r = start_cluster(s, config, err);
    if (r == 0)
        r = start_embedded(s, err);
    return r == 0 ? start_achieved(s, err) : r;
}

enum { HISTORY_DAYS = 30, HISTORY_MIB = 1024 };

/* Nothing that is not known yet counts as gone: the writer has done all that
 * was listed, and knows who was silent, once it has looked around after it.  On
 * the history's thread. */
static bool is_all_known(void *ctx)
{
    struct server *s = ctx;
    if (!s->known && atomic_load(&s->clustered) &&
        cluster_is_synced(s->cluster)) {
        writer_sweep(s->app.writer);
        s->known = true;
    }
    return s->known;
}

static int start_history(struct server *s, const struct server_config *config,
                         struct error *err)
{
    const char *dir = config->history_dir;
    cleanup_free char *below = NULL;
    if (dir && !*dir)
        dir = NULL;
    if (!dir && config->state_dir && config->store == STORE_SQLITE)
        dir = below = xasprintf("%s/history", config->state_dir);
    if (!dir)
        return 0;
    const struct history_config c = {
        .dir = dir,
        .days = config->history_days ? config->history_days : HISTORY_DAYS,
        .mib = config->history_mib ? config->history_mib : HISTORY_MIB,
        .writer = s->app.writer,
        .applied = s->embedded ? s->embedded->store.applied : NULL,
        .is_ready = s->embedded ? NULL : is_all_known,
        .ctx = s,
    };
    return history_start(&c, &s->app.history, err);
}

int server_start(const struct server_config *config, struct server **ret,
                 struct error *err)
{
    cleanup_with(server) struct server *s = xcalloc(1, sizeof *s);
    struct writer_config w = {.store = config->store,
                              .state_dir = config->state_dir,
                              .fresh_ms = config->fresh_ms,
                              .lease_ms = config->lease_ms,
                              .sweep_ms = config->sweep_ms};
    s->app.max_candidates = config->max_candidates;
    s->app.demand = config->demand;
    s->app.listener.metrics = app_metrics_create();
    s->app.demands = pending_demands_create();
    s->app.achieved = achieved_book_create();
    w.plans = s->app.plans = plans_create();
    if (config->store == STORE_SQLITE) {
        s->embedded = embedded_create(&config->demand);
        w.pods = s->embedded->store.applied;
    }
    s->app.scratch = scratch_pool_create();
    s->app.scoped = scoped_create();
    s->app.tally = fleet_tally_create();
    /* cannot fail once booted */
    (void)!getrandom(&s->app.instance, sizeof s->app.instance, 0);
    mount_routes(s, config->store == STORE_KUBERNETES);
    unsigned connections = 0;
    cleanup_with(policy) struct policy *policy = NULL;
    int r = fit_connections((unsigned)config->connections, &connections, err);
    if (r == 0 && config->policy && *config->policy) {
        r = policy_file_open(config->policy, &s->app.policy, &policy, err);
        if (r < 0)
            return error_wrap(err, "--policy");
    }
    w.policy = policy;
    cleanup_with(fabric) struct fabric *fabric = NULL;
    bool in_cluster = config->store == STORE_KUBERNETES;
    if (r == 0 && (in_cluster || (config->fabric && *config->fabric))) {
        r = fabric_files_open(config->fabric ? config->fabric : "",
                              config->fabric_labels, &s->app.fabric, &fabric,
                              err);
        if (r < 0)
            return error_wrap(err, "--fabric");
    }
    w.fabric = fabric;
    if (r == 0)
        r = writer_start(&w, &s->app.writer, err);
    if (r == 0)
        serve_files(s);
    if (r == 0)
        r = start_guard(s, config, err);
    if (r == 0)
        r = start_history(s, config, err);
    if (r == 0)
        r = start_source(s, config, err);
    if (r == 0)
        r = start_listeners(s, config, connections, err);
    if (r == 0)
        r = start_reload(s, err);
    if (r < 0)
        return r;
    atomic_store(&s->app.ready, true);
    *ret = steal(&s);
    return 0;
}

void server_stop(struct server *s)
{
    if (!s)
        return;
    atomic_store(&s->app.ready, false);
    access_quiesce(s->app.listener.access);
    embedded_quiesce(s->embedded);
    relay_quiesce(s->app.relay);
    changes_quiesce(s->app.changes);
    cluster_quiesce(s->cluster);
    /* the writer outlives the listeners: it answers what waits for it */
    for (size_t i = SERVER_LISTENERS; i-- > 0;)
        httpd_stop(s->listeners[i]);
    relay_stop(s->app.relay);
    changes_stop(s->app.changes);
    reload_stop(s->reload);
    history_stop(s->app.history);
    achieved_watch_stop(s->achieved);
    cluster_stop(s->cluster);
    kube_config_destroy(s->kube);
    embedded_stop(s->embedded);
    writer_stop(s->app.writer);
    policy_file_close(s->app.policy);
    fabric_files_close(s->app.fabric);
    scratch_pool_destroy(s->app.scratch);
    scoped_destroy(s->app.scoped);
    fleet_tally_destroy(s->app.tally);
    pending_demands_destroy(s->app.demands);
    achieved_book_destroy(s->app.achieved);
    used_book_destroy(s->app.used);
    embedded_destroy(s->embedded);
    history_destroy(s->app.history);
    followers_destroy(s->app.followers);
    plans_destroy(s->app.plans);
    guard_fini(&s->guard);
    metrics_destroy(s->app.listener.metrics);
    free(s->read.table);
    free(s->publish.table);
    free(s);
}

uint16_t server_port(const struct server *s, enum server_listener which)
{
    return s->listeners[which] ? httpd_port(s->listeners[which]) : 0;
}

struct app *server_app(struct server *s)
{
    return &s->app;
}

struct embedded *server_embedded(struct server *s)
{
    return s->embedded;
}
