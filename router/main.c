/* biga-cri: settings, the router, and a signal that ends it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/io/footprint.h"
#include "lib/io/log.h"
#include "router/remotes.h"
#include "router/serve/serve.h"
#include "router/settings.h"

enum {
    DRAIN_MS = 500,    /* the next biga-cri answers by then already */
    FILES_MAX = 65536, /* descriptors: streams, connections, logs */
    HOST_PATHS_MAX = 64,
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

static int run(const struct router_settings *s, const char *node)
{
    static struct remotes remotes;
    struct serve *serve = NULL;
    struct error err = {0};
    sigset_t signals;
    int signal_number = 0;
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
    (void)sigwait(&signals, &signal_number);
    log_event(LOG_INFO, "stopping", "signal",
              signal_number == SIGINT ? "SIGINT" : "SIGTERM", NULL);
    serve_stop(serve, DRAIN_MS);
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
