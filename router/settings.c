#include "router/settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "model/pod/rights.h"

#define SETTING(kind, word, member, text, ...)                              \
    {                                                                       \
        .name = (word), .type = (kind),                                     \
        .offset = offsetof(struct router_settings, member), .help = (text), \
        __VA_ARGS__                                                         \
    }
#define TEXT(word, member, ...) SETTING(CONF_TEXT, word, member, __VA_ARGS__)

static const struct conf_setting settings[] = {
    TEXT("listen", listen,
         "Where the kubelet calls: its containerRuntimeEndpoint. The socket "
         "is root's alone.",
         .otherwise = "unix:///run/biga/cri.sock", .metavar = "URL"),
    TEXT("home", home,
         "The container runtime of the machine that the kubelet runs on; it "
         "is called for every pod that does not ask for --handler.",
         .otherwise = "unix:///run/containerd/containerd.sock",
         .metavar = "URL"),
    TEXT("state", state,
         "The folder that keeps which sandbox and which container is where; "
         "created when missing.",
         .otherwise = "/var/lib/biga-cri", .metavar = "DIR"),
    TEXT("kubelet-dir", kubelet_dir,
         "The kubelet's folder, where it makes the volumes of pods: its "
         "--root-dir.",
         .otherwise = "/var/lib/kubelet", .metavar = "DIR"),
    TEXT("pod-logs", pod_logs,
         "The folder of the logs of pods: the podLogsDir of the kubelet's "
         "configuration.",
         .otherwise = "/var/log/pods", .metavar = "DIR"),
    TEXT("card-file", card_file,
         "The operator's file of cards (schema/cards.md): those that it gives "
         "an endpoint are the remote runtimes.",
         .metavar = "FILE"),
    TEXT("remote", remote,
         "Instead of --card-file: the runtime of the one other machine, as in "
         "tcp://192.168.100.1:7443. So a kubelet on a card runs pods on that "
         "card's host.",
         .metavar = "URL"),
    TEXT("ca", ca,
         "With --remote: the authority, in PEM form, that signed its "
         "certificate. This file, --cert and --key are read again for every "
         "connection.",
         .metavar = "FILE"),
    TEXT("cert", cert, "With --remote: our certificate, in PEM form.",
         .metavar = "FILE"),
    TEXT("key", key, "The private key of --cert.", .metavar = "FILE"),
    SETTING(CONF_FLAG, "plaintext", plaintext,
            "With --remote: call it without TLS, as in a lab. Whoever reaches "
            "its port then controls that machine.",
            .otherwise = "false"),
    TEXT("node", node,
         "The name of this machine's Kubernetes node. Default: the host name "
         "in lower case.",
         .letter = 'n', .metavar = "NAME"),
    TEXT("cluster", cluster,
         "The value of the label biga.dev/cluster of all that is started on "
         "remotes; two clusters that share a card must differ.",
         .otherwise = "biga", .metavar = "NAME"),
    TEXT("handler", handler,
         "The handler of the RuntimeClass whose pods run on remotes. Default: "
         "xpu, with --remote host.",
         .metavar = "NAME"),
    TEXT("remote-handler", remote_handler,
         "The handler that runtimes of remotes are told for these pods. "
         "Default: none, which is their own default.",
         .otherwise = "", .metavar = "NAME"),
    TEXT("default-remote", default_remote,
         "The card, as in card-0000-17-00, for pods without the annotation "
         "biga.dev/allocation, as conformance tests make them. Without it "
         "they are refused.",
         .metavar = "NAME"),
    TEXT("allow", allow,
         "The rights that pods on remotes may ask for beyond those of every "
         "pod: privileged, host-pid, host-ipc, a capability such as "
         "NET_ADMIN, or ALL for every capability, but not privileged. "
         "Pods that ask for more are refused. Default: none.",
         .metavar = "RIGHT,…"),
    SETTING(
        CONF_LIST, "host-paths", host_paths,
        "Paths of a remote that pods there may mount with hostPath, or name "
        "as a Localhost seccomp profile, with all that is below them. "
        "Default: none.",
        .metavar = "PREFIX,…"),
    SETTING(CONF_CHOICE, "cores", cores,
            "How the card-cores of an allocation are held to on the card: by "
            "a quota of time, or not at all.",
            .otherwise = "quota", .choices = "quota|none", .metavar = "HOW"),
    SETTING(CONF_CHOICE, "network", network,
            "The network of pods on remotes: node, that of the remote itself, "
            "or pod, that of its CNI plugins.",
            .otherwise = "node", .choices = "node|pod", .metavar = "WHICH"),
    SETTING(CONF_CHOICE, "dns", dns,
            "The name servers of pods on remotes: those that the kubelet gives "
            "the pod, or those of the remote itself, which may not reach the "
            "cluster's.",
            .otherwise = "pod", .choices = "pod|node", .metavar = "WHOSE"),
    TEXT("helper-image", helper_image,
         "The image that writes files and reads logs on a remote.",
         .otherwise = "biga-card:" BIGA_VERSION, .metavar = "IMAGE"),
    TEXT("card-dir", card_dir,
         "The folder on each remote for files and logs of pods.",
         .otherwise = "/var/lib/biga", .metavar = "DIR"),
    TEXT("hooks", hooks,
         "The folder of the hooks, executables that a pod may have run to "
         "prepare its card before it starts. Default: no hooks.",
         .metavar = "DIR"),
    SETTING(CONF_DURATION, "timeout", timeout_ms,
            "How long a call to a remote may take at most, unless the kubelet "
            "gives it less; pulls of images and commands have their own.",
            .otherwise = "2m", .min = 1000, .max = 600000, .metavar = "TIME"),
    SETTING(CONF_DURATION, "pull-timeout", pull_timeout_ms,
            "How long the pull of one image to a remote may take.",
            .otherwise = "15m", .min = 1000, .max = 86400000,
            .metavar = "TIME"),
    SETTING(CONF_INT, "image-gc-high", image_gc_high,
            "When the disk that a card has its images on is full to so many "
            "per cent, images that no container there has are removed, the "
            "least recently used first, down to --image-gc-low. 100: never.",
            .otherwise = "85", .min = 1, .max = 100, .metavar = "PERCENT"),
    SETTING(CONF_INT, "image-gc-low", image_gc_low,
            "See --image-gc-high; less than that.", .otherwise = "80", .min = 0,
            .max = 99, .metavar = "PERCENT"),
    SETTING(CONF_DURATION, "image-min-age", image_min_age_ms,
            "An image that came to a card later than this ago stays.",
            .otherwise = "2m", .min = 0, .max = 86400000, .metavar = "TIME"),
    SETTING(CONF_DURATION, "image-max-age", image_max_age_ms,
            "An image that no container on its card has had for so long goes, "
            "whatever room there is. 0s: none does for its age.",
            .otherwise = "0s", .min = 0, .max = 31536000000, .metavar = "TIME"),
    TEXT("metrics-listen", metrics_listen,
         "Where Prometheus reads metrics, at /metrics: an address of this "
         "machine's loopback, as in 127.0.0.1:8704. Default: nowhere.",
         .metavar = "ADDRESS:PORT"),
    SETTING(CONF_CHOICE, "log-level", log_level,
            "The least important events to log.", .otherwise = "info",
            .choices = "debug|info|warn|error", .metavar = "LEVEL"),
};

static const char *const extra[] = {
    "SIGNALS",
    "SIGTERM and SIGINT end the program; pods go on. SIGHUP reads the card "
    "file again.",
    "EXIT STATUS",
    "0: stopped. 1: it could not start, or go on. 2: a setting is wrong.",
    NULL,
};

const struct conf_program router_program = {
    .name = "biga-cri",
    .summary = "the kubelet's container runtime endpoint, before cards",
    .usage = "[OPTION]…",
    .text = "Speaks the Container Runtime Interface (CRI v1) to the kubelet. "
            "Calls for pods of other RuntimeClasses are relayed, as they are, "
            "to the runtime of this machine. A pod of the RuntimeClass "
            "--handler runs on the card that its annotation "
            "biga.dev/allocation names, by that card's own runtime.\n\n"
            "What a card that does not answer has run last is told from "
            "memory, so that nothing else on the node waits for it. Pods go "
            "on while biga-cri does not run; it finds them again.",
    .settings = settings,
    .n_settings = ARRAY_LEN(settings),
    .extra = extra,
};

/* --- what each must look like --------------------------------------------- */

static bool is_word(const char *text, size_t max, const char *between)
{
    size_t size = strlen(text);
    bool plain = size > 0 && size <= max && isalnum((unsigned char)*text) &&
                 isalnum((unsigned char)text[size - 1]);
    for (size_t i = 0; i < size && plain; i++)
        plain = isalnum((unsigned char)text[i]) || strchr(between, text[i]);
    return plain;
}

static bool is_lower(const char *text)
{
    for (; *text; text++)
        if (isupper((unsigned char)*text))
            return false;
    return true;
}

static bool is_handler(const char *text)
{
    return is_word(text, ROUTER_HANDLER_MAX, "-") && is_lower(text);
}

const char *router_settings_path(const char *url)
{
    return url + strlen("unix://");
}

static int check_socket(const char *name, const char *url, struct error *err)
{
    if (strncmp(url, "unix:///", 8) == 0 && url[8] &&
        strlen(router_settings_path(url)) <= ROUTER_SOCKET_MAX)
        return 0;
    return error_set(err, EINVAL,
                     "--%s: is \"%.200s\", must be like "
                     "unix:///run/biga/cri.sock, with a path of at most %d "
                     "bytes",
                     name, url, ROUTER_SOCKET_MAX);
}

static int check_absolute(const char *name, const char *path, struct error *err)
{
    return path[0] == '/' ? 0
                          : error_set(err, EINVAL,
                                      "--%s: is \"%.200s\", must be an "
                                      "absolute path",
                                      name, path);
}

static int check_metrics(const char *listen, struct error *err)
{
    if (!listen || !*listen || strncmp(listen, "127.", 4) == 0 ||
        strncmp(listen, "[::1]:", 6) == 0)
        return 0;
    return error_set(err, EINVAL,
                     "--metrics-listen: is \"%.200s\", must be an address of "
                     "loopback with a port, like 127.0.0.1:8704",
                     listen);
}

static int check_host_paths(const char *list, struct error *err)
{
    while (list && *list) {
        size_t size = strcspn(list, ",");
        if (list[0] != '/' || memmem(list, size, "/..", 3))
            return error_set(err, EINVAL,
                             "--host-paths: has \"%.*s\", must be absolute "
                             "paths without ..",
                             (int)(size < 200 ? size : 200), list);
        list += size + (list[size] == ',');
    }
    return 0;
}

static int check_words(const struct router_settings *s, struct error *err)
{
    if (s->handler && *s->handler && !is_handler(s->handler))
        return error_set(err, EINVAL,
                         "--handler: is \"%.80s\", must be 1 to %d lower-case "
                         "letters, digits and '-'",
                         s->handler, ROUTER_HANDLER_MAX);
    if (*s->remote_handler && !is_handler(s->remote_handler))
        return error_set(err, EINVAL,
                         "--remote-handler: is \"%.80s\", must be 1 to %d "
                         "lower-case letters, digits and '-'",
                         s->remote_handler, ROUTER_HANDLER_MAX);
    if (!is_word(s->cluster, 63, "-_."))
        return error_set(err, EINVAL,
                         "--cluster: is \"%.80s\", must be 1 to 63 letters, "
                         "digits, '-', '_' and '.', and begin and end with a "
                         "letter or digit",
                         s->cluster);
    return 0;
}

/* --- what needs what -------------------------------------------------------- */

static int check_needs(const struct router_settings *s, struct error *err)
{
    static const char only_remote[] = "needs --remote";
    const bool remote = s->remote && *s->remote;
    const struct conf_need needs[] = {
        {"card-file", !remote, "cannot be combined with --remote"},
        {"ca", remote, only_remote},
        {"cert", remote, only_remote},
        {"key", remote, only_remote},
        {"plaintext", remote, only_remote},
        {"ca", !s->plaintext, "cannot be combined with --plaintext"},
    };
    return conf_check_needs(&router_program, s, needs, ARRAY_LEN(needs), err);
}

static int check_remote(const struct router_settings *s, struct error *err)
{
    int n_keys = !!s->ca + !!s->cert + !!s->key;
    if (!s->remote || !*s->remote)
        return 0;
    if (strncmp(s->remote, "tcp://", 6) != 0 || strlen(s->remote) > 200)
        return error_set(err, EINVAL,
                         "--remote: is \"%.200s\", must be tcp://HOST:PORT",
                         s->remote);
    if (s->plaintext ? n_keys > 0 : n_keys != 3)
        return error_set(err, EINVAL,
                         "--ca, --cert and --key: %d of them are given, all "
                         "or, with --plaintext, none must be",
                         n_keys);
    return 0;
}

int router_settings_check(const struct router_settings *s, struct error *err)
{
    struct rights rights;
    if (rights_parse(s->allow, &rights, err) < 0)
        return error_wrap(err, "--allow");
    int r = check_needs(s, err);
    if (r == 0)
        r = check_remote(s, err);
    if (r == 0)
        r = check_socket("listen", s->listen, err);
    if (r == 0)
        r = check_socket("home", s->home, err);
    if (r == 0)
        r = check_absolute("state", s->state, err);
    if (r == 0)
        r = check_absolute("kubelet-dir", s->kubelet_dir, err);
    if (r == 0)
        r = check_absolute("pod-logs", s->pod_logs, err);
    if (r == 0)
        r = check_absolute("card-dir", s->card_dir, err);
    if (r == 0)
        r = check_host_paths(s->host_paths, err);
    if (r == 0)
        r = check_metrics(s->metrics_listen, err);
    if (r == 0)
        r = check_words(s, err);
    if (r == 0 && s->image_gc_low >= s->image_gc_high)
        r = error_set(err, EINVAL,
                      "--image-gc-low: is %" PRId64 ", must be less than "
                      "--image-gc-high, which is %" PRId64,
                      s->image_gc_low, s->image_gc_high);
    if (r == 0 && strcmp(s->listen, s->home) == 0)
        r = error_set(err, EINVAL, "--listen and --home: both are \"%.200s\"",
                      s->home);
    return r;
}

int router_settings_node(const struct router_settings *s,
                         char ret_node[ROUTER_NODE_MAX + 1], struct error *err)
{
    char name[ROUTER_NODE_MAX + 1] = "";
    bool given = s->node && *s->node;
    if (!given && gethostname(name, sizeof name - 1) < 0)
        return error_errno(err, errno, "host name (or set --node)");
    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    const char *node = given ? s->node : name;
    if (!is_word(node, ROUTER_NODE_MAX, "-.") || !is_lower(node))
        return error_set(err, EINVAL,
                         "%s: is \"%.80s\", must be 1 to %d lower-case "
                         "letters, digits, '-' and '.'",
                         given ? "--node" : "host name (or set --node)", node,
                         ROUTER_NODE_MAX);
    memmove(ret_node, node, strlen(node) + 1);
    return 0;
}
