/* biga-cri: settings, the router, and a signal that ends it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "lib/io/footprint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/process_metrics.h"
#include "lib/io/thread_name.h"
#include "router/remotes.h"
#include "router/serve/serve.h"
#include "router/settings.h"

enum {
    DRAIN_MS = 400,    /* for calls that are under way */
    END_MS = 600,      /* for all: the kubelet waits for the next biga-cri */
    FILES_MAX = 65536, /* descriptors: streams, connections, logs */
    HOST_PATHS_MAX = 64,
    METRICS_READERS = 8,
    TIDY_FIRST_S = 5,
    TIDY_S = 30,
};

static int complain(const struct error *err, int code)
{
    fprintf(stderr, "%s: %s\n", router_program.name, err->text);
    return code;
}

/* --- what is started ------------------------------------------------------ */

static int load_remotes(const struct router_settings *s,
                        struct remotes *ret_remotes, struct error *err)
{
    const char *const keys[] = {s->ca, s->cert, s->key};
    if (s->remote && *s->remote) {
        remotes_host(s->remote, s->plaintext ? NULL : keys, ret_remotes);
        return 0;
    }
    if (s->card_file && *s->card_file)
        return remotes_load(s->card_file, NULL, ret_remotes, err);
    ret_remotes->n = 0;
    return 0;
}

/* Cut in place. */
static size_t split(char *list, const char **ret_parts, size_t max)
{
    size_t n = 0;
    for (char *rest = list, *part; rest && n < max;) {
        part = strsep(&rest, ",");
        if (*part)
            ret_parts[n++] = part;
    }
    return n;
}

static enum serve_cores cores_of(const char *word)
{
    return strcmp(word, "none") == 0 ? SERVE_CORES_NONE : SERVE_CORES_QUOTA;
}

static int make_state(const char *dir, struct error *err)
{
    struct stat st;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return error_errno(err, errno, "--state: %s", dir);
    if (stat(dir, &st) < 0)
        return error_errno(err, errno, "--state: %s", dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
        return error_set(err, EPERM,
                         "--state: %s: must be a folder of our own that nobody "
                         "else may write to",
                         dir);
    return 0;
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static int start(const struct router_settings *s, const char *node,
                 const struct remotes *remotes, struct serve **ret_serve,
                 struct error *err)
{
    const char *paths[HOST_PATHS_MAX];
    cleanup_free char *list = xstrdup(text_or(s->host_paths, ""));
    bool other = s->remote && *s->remote;
    struct serve_config config = {
        .listen = router_settings_path(s->listen),
        .home = router_settings_path(s->home),
        .state = s->state,
        .kubelet_dir = s->kubelet_dir,
        .pod_logs = s->pod_logs,
        .node = node,
        .cluster = s->cluster,
        .handler = text_or(s->handler, other ? "host" : "xpu"),
        .remote_handler = text_or(s->remote_handler, ""),
        .default_remote = text_or(s->default_remote, ""),
        .helper_image = s->helper_image,
        .card_dir = s->card_dir,
        .hooks = text_or(s->hooks, ""),
        .host_paths = paths,
        .cores = cores_of(s->cores),
        .has_network = strcmp(s->network, "pod") == 0,
        .own_dns = strcmp(s->dns, "node") == 0,
        .images = {.high = s->image_gc_high,
                   .low = s->image_gc_low,
                   .min_age_ms = s->image_min_age_ms,
                   .max_age_ms = s->image_max_age_ms},
        .timeout_ms = s->timeout_ms,
        .pull_timeout_ms = s->pull_timeout_ms,
        .places = remotes->list,
        .n_places = remotes->n,
    };
    config.n_host_paths = split(list, paths, HOST_PATHS_MAX);
    int r = rights_parse(s->allow, &config.rights, err);
    if (r == 0)
        r = make_state(s->state, err);
    return r < 0 ? r : serve_start(&config, ret_serve, err);
}

/* --- from start to end ------------------------------------------------------ */

/* Before any thread is started, so that none takes them. */
static void block_signals(sigset_t *ret_set)
{
    (void)sigemptyset(ret_set);
    (void)sigaddset(ret_set, SIGTERM);
    (void)sigaddset(ret_set, SIGINT);
    (void)sigaddset(ret_set, SIGHUP);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)pthread_sigmask(SIG_BLOCK, ret_set, NULL);
}

/* Each stream has two descriptors, and the usual limit is 1024. */
static void raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    rlim_t wanted = limit.rlim_max < FILES_MAX ? limit.rlim_max : FILES_MAX;
    if (limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* then there are fewer streams */
}

/* --- metrics ----------------------------------------------------------------- */

static void on_metrics(struct httpd_request *rq, void *ctx)
{
    struct str *out = httpd_reply(rq);
    serve_write_metrics(ctx, out);
    process_metrics_build("biga_cri_build_info", out);
    process_metrics_write(out);
    httpd_content_type(rq, METRICS_CONTENT_TYPE);
}

/* The biga-cri that this one replaces may have the port still: then it is tried
 * again.  The kubelet does not wait for that. */
static struct httpd *serve_metrics_at(const char *listen, struct serve *serve)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/metrics", on_metrics, 0, "metrics"}};
    const struct httpd_config config = {.name = "metrics",
                                        .listen = listen,
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .ctx = serve,
                                        .threads = 1,
                                        .connections_max = METRICS_READERS,
                                        .loopback = true};
    struct httpd *httpd = NULL;
    struct error err = {0};
    if (httpd_start(&config, &httpd, &err) < 0)
        log_event(LOG_WARN, "metrics-not-served", "error", err.text, NULL);
    return httpd;
}

/* What cannot be read leaves all as it was. */
static void read_again(const struct router_settings *s, struct serve *serve)
{
    static struct remotes remotes;
    struct error err = {0};
    int r = load_remotes(s, &remotes, &err);
    if (r == 0)
        r = serve_set_places(serve, remotes.list, remotes.n, &err);
    cleanup_free char *n = xasprintf("%zu", remotes.n);
    if (r < 0)
        log_event(LOG_ERROR, "cards-not-read", "error", err.text, NULL);
    else
        log_event(LOG_INFO, "cards-read", "remotes", n, NULL);
}

/* The signal that ends the program.  What the start needed, and each burst of
 * calls, is given back meanwhile. */
static int wait_for_end(const struct router_settings *s,
                        const sigset_t *signals, struct serve *serve)
{
    struct timespec again = {.tv_sec = TIDY_FIRST_S};
    bool wanted = s->metrics_listen && *s->metrics_listen;
    struct httpd *httpd = NULL;
    int number;
    for (;;) {
        if (wanted && !httpd)
            httpd = serve_metrics_at(s->metrics_listen, serve);
        number = sigtimedwait(signals, NULL, &again);
        if (number == SIGHUP)
            read_again(s, serve);
        else if (number >= 0)
            break;
        serve_tidy(serve);
        footprint_trim();
        again.tv_sec = wanted && !httpd ? TIDY_FIRST_S : TIDY_S;
    }
    httpd_stop(httpd);
    return number;
}

/* --- the end ----------------------------------------------------------------- */

struct ending {
    struct serve *serve;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static void *end(void *arg)
{
    struct ending *e = arg;
    thread_name("end", NULL);
    serve_stop(e->serve, DRAIN_MS);
    hold_lock(&e->lock);
    e->done = true;
    (void)pthread_cond_signal(&e->changed);
    return NULL;
}

/* A call to a card that stands still would hold it up; at no moment is there
 * anything to be lost, as with kill -9. */
static void end_in_time(struct serve *serve)
{
    struct ending e = {.serve = serve, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    int64_t due_ms = clock_ms() + END_MS;
    clock_wait_init(&e.changed);
    if (pthread_create(&thread, NULL, end, &e) != 0)
        _exit(ROUTER_OK);
    (void)pthread_mutex_lock(&e.lock);
    while (!e.done && clock_wait(&e.changed, &e.lock, due_ms))
        ;
    if (!e.done) {
        log_event(LOG_INFO, "stopped-at-once", NULL);
        _exit(ROUTER_OK);
    }
    (void)pthread_mutex_unlock(&e.lock);
    (void)pthread_join(thread, NULL);
}

static int run(const struct router_settings *s, const char *node)
{
    static struct remotes remotes;
    struct serve *serve = NULL;
    struct error err = {0};
    sigset_t signals;
    block_signals(&signals);
    raise_files();
    log_set_level((enum log_level)log_level_parse(s->log_level));
    int r = load_remotes(s, &remotes, &err);
    if (r == 0)
        r = start(s, node, &remotes, &serve, &err);
    if (r < 0)
        return complain(&err, ROUTER_FAILED);
    cleanup_free char *n = xasprintf("%zu", remotes.n);
    log_event(LOG_INFO, "started", "node", node, "listen", s->listen, "home",
              s->home, "remotes", n, "version", BIGA_VERSION, NULL);
    footprint_trim();
    int signal_number = wait_for_end(s, &signals, serve);
    log_event(LOG_INFO, "stopping", "signal",
              signal_number == SIGINT ? "SIGINT" : "SIGTERM", NULL);
    end_in_time(serve);
    return ROUTER_OK;
}

int main(int argc, char **argv)
{
    struct router_settings set = {0};
    char node[ROUTER_NODE_MAX + 1];
    struct error err = {0};
    int first = 1;
    footprint_limit();
    int r = conf_read(&router_program, argc, argv, &set, &first, &err);
    if (r < 0)
        return complain(&err, ROUTER_USAGE);
    if (r > 0)
        return ROUTER_OK;
    if (first < argc)
        r = error_set(&err, EINVAL, "%.200s: no such argument; see --help",
                      argv[first]);
    if (r == 0)
        r = router_settings_check(&set, &err);
    if (r == 0)
        r = router_settings_node(&set, node, &err);
    int code = r < 0 ? complain(&err, ROUTER_USAGE) : run(&set, node);
    conf_fini(&router_program, &set);
    return code;
}
