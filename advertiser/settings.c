#include "advertiser/settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/hostside/host_side.h"
#include "advertiser/publish/publisher.h"
#include "lib/base/mem.h"
#include "model/pod/rights.h"
#include "model/topo/topo_builder.h"

#define SETTING(kind, word, member, text, ...)                       \
    {                                                                \
        .name = (word), .type = (kind),                              \
        .offset = offsetof(struct settings, member), .help = (text), \
        __VA_ARGS__                                                  \
    }
#define TEXT(word, member, ...) SETTING(CONF_TEXT, word, member, __VA_ARGS__)
enum { ACHIEVED_MIN_MS = 100 };
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

static const struct conf_setting settings[] = {
    TEXT("topology", topology,
         "Read the topology from an hwloc XML (version 1 or 2) instead of "
         "this host.",
         .letter = 't', .metavar = "FILE"),
    TEXT("fsroot", fsroot,
         "Read the topology from the /sys tree below DIR instead of this "
         "host's.",
         .metavar = "DIR"),
    TEXT("hostfile", hostfile,
         "Read the topology from a host description, a file or the name "
         "of one that is compiled in (schema/hostfile.md).",
         .metavar = "FILE"),
    TEXT("node", node,
         "The name of this host's Kubernetes node. Default: the host name in "
         "lower case.",
         .letter = 'n', .metavar = "NAME"),
    TEXT("card-file", card_file,
         "The operator's file of cards: adds, excludes and describes them "
         "(schema/cards.md).",
         .metavar = "FILE"),
    SETTING(CONF_CHOICE, "print", print,
            "Print the topology and exit, instead of publishing it: as a "
            "tree, as the matrix of nvidia-smi topo -m, its relations as "
            "JSON, or its ResourceSlices as a JSON list. Settings for "
            "publishing are checked, but not used.",
            .letter = 'p', .choices = "tree|matrix|relations|slices",
            .metavar = "WHAT"),
    TEXT("server", server,
         "Where to publish: the extender's publish listener, or "
         "kubernetes for the API server of a cluster, where the slices "
         "belong to the Node and the heartbeat is a Lease.",
         .letter = 's', .otherwise = "http://127.0.0.1:8702", .metavar = "URL"),
    TEXT("kubeconfig", kubeconfig,
         "With --server kubernetes: how to reach the API server, and with "
         "which credentials. Default: in a pod its service account, "
         "elsewhere $KUBECONFIG or ~/.kube/config.",
         .metavar = "FILE"),
    TEXT("heartbeat-namespace", heartbeat_namespace,
         "With --server kubernetes: the namespace of the heartbeats, which "
         "are Leases with the names of their nodes.",
         .otherwise = "biga-nodes", .metavar = "NAME"),
    TEXT("ca", ca,
         "Authority, in PEM form, that signed the certificate of an https:// "
         "server. Default: those of the system.",
         .metavar = "FILE"),
    TEXT("cert", cert,
         "This node's certificate, in PEM form, with the common name "
         "system:node:NAME. It, its key and --ca are read again for every "
         "connection; when the server refuses the certificate, a new "
         "connection is made.",
         .metavar = "FILE"),
    TEXT("key", key, "The private key of --cert.", .metavar = "FILE"),
    SETTING(CONF_DURATION, "heartbeat", heartbeat_ms,
            "How often to publish again although nothing has changed; with "
            "--server kubernetes, how often to renew the Lease. The extender "
            "places no pods on a node after 15 s of silence.",
            .otherwise = "5s", .min = 100, .max = 3600000, .metavar = "TIME"),
    SETTING(CONF_DURATION, "interval", interval_ms,
            "How often to look at this host again; 0s: only on SIGHUP. Files "
            "are read again on SIGHUP alone.",
            .otherwise = "30s", .min = 0, .max = 86400000, .metavar = "TIME"),
    SETTING(CONF_DURATION, "timeout", timeout_ms,
            "How long one request may take.", .otherwise = "3s", .min = 10,
            .max = 60000, .metavar = "TIME"),
    SETTING(CONF_FLAG, "withdraw", withdraw,
            "Delete the slices at a clean stop. With --withdraw=false they "
            "stay, as for a short restart, and the node turns stale.",
            .otherwise = "true"),
    TEXT("boot-id", boot_id,
         "An identifier that differs for each boot of the host. Default: the "
         "content of " BOOT_ID_FILE ".",
         .metavar = "ID"),
    SETTING(CONF_INT, "fleet", fleet,
            "Publish N simulated hosts instead of this one, for labs and "
            "demonstrations.",
            .otherwise = "0", .min = 0, .max = PUBLISHER_MAX, .metavar = "N"),
    SETTING(CONF_LIST, "fleet-shapes", fleet_shapes,
            "What the simulated hosts look like, in turn: names of "
            "compiled-in host descriptions. Default: all of them.",
            .metavar = "SHAPE,…"),
    TEXT("fleet-prefix", fleet_prefix,
         "What the names of the simulated hosts start with, before their "
         "number.",
         .otherwise = "host", .metavar = "TEXT"),
    SETTING(CONF_FLAG, "claims", claims,
            "With --server kubernetes: cards are given by ResourceClaims, "
            "whole or shared, and to nobody else. Without it Biga gives them "
            "to pods that ask for "
            "biga.dev/card, and a taint keeps claims away "
            "(schema/slice.md).",
            .otherwise = "false"),
    TEXT("card-health", card_health,
         "Where biga-cri of this host says how its cards fare: "
         "health/cards.json in the folder of its --state. Cards that are lost "
         "are withdrawn. A file that is not there says nothing.",
         .metavar = "FILE"),
    TEXT("kubelet-dir", kubelet_dir,
         "With --server kubernetes: the folder of this host's kubelet, as in "
         "/var/lib/kubelet. The advertiser is a plugin of it, by which pods "
         "get the cards of their ResourceClaims (schema/claims.md). Default: "
         "no plugin.",
         .metavar = "DIR"),
    TEXT("cdi-dir", cdi_dir,
         "With --kubelet-dir: where this host's container runtime looks for "
         "CDI files.",
         .otherwise = "/var/run/cdi", .metavar = "DIR"),
    SETTING(CONF_DURATION, "claim-grace", claim_grace_ms,
            "With --kubelet-dir: how long what was prepared for a claim stays "
            "when the claim is gone and the kubelet does not ask to unprepare "
            "it.",
            .otherwise = "10m", .min = 1000, .max = 86400000,
            .metavar = "TIME"),
    SETTING(CONF_DURATION, "achieved", achieved_ms,
            "How often to look at what the containers of this host really "
            "have, which is published beside what they were promised "
            "(schema/achieved.md); 0s: not at all.",
            .otherwise = "1s", .min = 0, .max = 60000, .metavar = "TIME"),
    TEXT("pod-resources", pod_resources,
         "The socket by which this host's kubelet tells what its pods were "
         "given; \"\": none is asked. Default: pod-resources/kubelet.sock in "
         "--kubelet-dir, and on a host that is looked at itself in "
         "/var/lib/kubelet.",
         .metavar = "SOCKET"),
    TEXT("actuate", actuate,
         "Run pods on this host's cards, by the container runtimes that the "
         "card file names. DIR keeps which pods are to run, and files and "
         "logs of host pods. Pods come from the extender at --server, and "
         "from clients of the unix socket DIR/actuator.sock. Without it no "
         "pod is started.",
         .metavar = "DIR"),
    TEXT("cluster", cluster,
         "With --actuate: the value of the label biga.dev/cluster of all "
         "that is started; two clusters that share a card must differ.",
         .otherwise = "biga", .metavar = "NAME"),
    TEXT("host-runtime", host_runtime,
         "With --actuate: this host's own container runtime, as in "
         "unix:///run/containerd/containerd.sock, to run host pods, too. "
         "Without it host pods are left to others.",
         .metavar = "URL"),
    TEXT("helper-image", helper_image,
         "With --actuate: the image that writes files and reads logs on a "
         "card.",
         .otherwise = "biga-card:" BIGA_VERSION, .metavar = "IMAGE"),
    TEXT("card-dir", card_dir,
         "With --actuate: the folder on each card for files and logs of "
         "pods.",
         .otherwise = "/var/lib/biga", .metavar = "DIR"),
    TEXT("hooks", hooks,
         "With --actuate: the folder of the hooks, executables that a pod "
         "may have run to prepare its card before it starts. Default: no "
         "hooks.",
         .metavar = "DIR"),
    TEXT("devlink", devlink,
         "With --actuate: the command devlink (of iproute2), by which scalable "
         "functions of cards are made and a card's firmware is read.",
         .otherwise = "devlink", .metavar = "COMMAND"),
    SETTING(CONF_LIST, "allow", allow,
            "With --actuate: the rights that pods may ask for beyond those "
            "of every pod: privileged, host-pid, host-ipc, a capability such "
            "as NET_ADMIN, or ALL for every capability, but not "
            "privileged. Pods that ask for more are refused. Default: none.",
            .metavar = "RIGHT,…"),
    SETTING(CONF_LIST, "host-devices", host_devices,
            "With --actuate: the files below /dev that host pods get of the "
            "cards, NICs and GPUs that they were given: rdma (verbs), gpu, "
            "vfio, named (device-nodes of the card file), or none.",
            .otherwise = HOST_SIDE_KINDS, .metavar = "KIND,…"),
    TEXT("metrics-listen", metrics_listen,
         "Where Prometheus reads metrics of this node, at /metrics: an address "
         "of loopback, as in 127.0.0.1:8705, or with --metrics-cert any. "
         "Default: nowhere.",
         .metavar = "ADDRESS:PORT"),
    TEXT("metrics-cert", metrics_cert,
         "With --metrics-listen: TLS, with this certificate in PEM form. It, "
         "its key and --metrics-client-ca are read again every minute.",
         .metavar = "FILE"),
    TEXT("metrics-key", metrics_key, "The private key of --metrics-cert.",
         .metavar = "FILE"),
    TEXT("metrics-client-ca", metrics_client_ca,
         "With --metrics-cert: the authority, in PEM form, of those who may "
         "read metrics, each with a certificate of his own.",
         .metavar = "FILE"),
    SETTING(CONF_CHOICE, "log-level", log_level,
            "The least important events to log. Default: info, with --fleet "
            "warn.",
            .choices = "debug|info|warn|error", .metavar = "LEVEL"),
};

static const char *const extra[] = {
    "SIGNALS",
    "SIGTERM and SIGINT withdraw the slices and end the program; a second one "
    "ends it at once. SIGHUP looks at the host, or reads the files, again.",
    "EXIT STATUS",
    "0: printed, or stopped and withdrawn. 1: the topology could not be read. "
    "2: a setting is wrong. 3: stopped, but slices may be left on the server; "
    "they expire there.",
    NULL,
};

const struct conf_program advertiser_program = {
    .name = "biga-advertiser",
    .summary = "publish what is inside a host, and how close it is",
    .usage = "[OPTION]…",
    .text = "Finds the NUMA nodes, cards, GPUs and NICs of a host and the PCI "
            "tree between them, and publishes them as ResourceSlices of the "
            "driver " SLICE_DRIVER
            ": at the start, whenever something changes, "
            "and as a heartbeat. What the server has lost is there again after "
            "the next heartbeat, in a cluster at once; while it cannot be "
            "reached the advertiser goes "
            "on trying, with a growing pause of up to 30 s.\n\n"
            "With --actuate it also runs pods on the cards, and says how they "
            "fare; `biga card ps` shows it on the host. Pods go on while the "
            "advertiser does not run, and while nothing can be reached.\n\n"
            "With --print it shows what it found and exits.",
    .settings = settings,
    .n_settings = ARRAY_LEN(settings),
    .extra = extra,
};

bool settings_in_cluster(const struct settings *s)
{
    return strcmp(s->server, "kubernetes") == 0;
}

/* The value of a label of Kubernetes that is not empty. */
static bool is_label_value(const char *text)
{
    size_t size = strlen(text);
    bool plain = size > 0 && size <= 63 && isalnum((unsigned char)*text) &&
                 isalnum((unsigned char)text[size - 1]);
    for (size_t i = 0; i < size && plain; i++)
        plain = isalnum((unsigned char)text[i]) || strchr("-_.", text[i]);
    return plain;
}

/* What is given but would do nothing was meant to do something.  With --print
 * all that is about publishing stands, so that one word more shows what would
 * be published. */
static int check_needs(const struct settings *s, struct error *err)
{
    static const char only_kube[] = "needs --server kubernetes";
    static const char not_kube[] =
        "cannot be combined with --server kubernetes, where the kubeconfig "
        "says it";
    static const char only_https[] = "needs an https:// server";
    static const char only_fleet[] = "needs --fleet";
    static const char not_fleet[] = "cannot be combined with --fleet";
    static const char not_file[] =
        "cannot be combined with --topology, --fsroot or --hostfile, which "
        "are read again on SIGHUP alone";
    static const char only_acting[] = "needs --actuate";
    static const char only_plugin[] = "needs --kubelet-dir";
    const bool kube = settings_in_cluster(s), fleet = s->fleet > 0;
    const bool https = kube || s->print || strncmp(s->server, "https:", 6) == 0;
    const bool file = s->topology || s->fsroot || s->hostfile;
    const bool acting = s->actuate && *s->actuate;
    const bool plugin = s->kubelet_dir && *s->kubelet_dir;
    const struct conf_need needs[] = {
        {"topology", !fleet, not_fleet},
        {"fsroot", !fleet, not_fleet},
        {"hostfile", !fleet, not_fleet},
        {"node", !fleet, not_fleet},
        {"card-file", !fleet, not_fleet},
        {"print", !fleet, not_fleet},
        {"interval", !fleet, not_fleet},
        {"interval", !file || s->interval_ms == 0, not_file},
        {"claims", kube || s->print, only_kube},
        {"card-health", !fleet, not_fleet},
        {"card-health", kube, only_kube},
        {"card-health", !acting,
         "cannot be combined with --actuate, which asks the cards itself"},
        {"kubelet-dir", !fleet, not_fleet},
        {"kubelet-dir", kube, only_kube},
        {"cdi-dir", plugin, only_plugin},
        {"claim-grace", plugin, only_plugin},
        {"achieved", !fleet, not_fleet},
        {"pod-resources", !fleet, not_fleet},
        {"pod-resources", s->achieved_ms > 0, "needs --achieved"},
        {"actuate", !fleet, not_fleet},
        {"actuate", !s->print, "cannot be combined with --print"},
        {"fleet-shapes", fleet, only_fleet},
        {"fleet-prefix", fleet, only_fleet},
        {"kubeconfig", kube, only_kube},
        {"heartbeat-namespace", kube, only_kube},
        {"ca", !kube, not_kube},
        {"cert", !kube, not_kube},
        {"key", !kube, not_kube},
        {"ca", https, only_https},
        {"cert", https, only_https},
        {"cluster", acting, only_acting},
        {"host-runtime", acting, only_acting},
        {"helper-image", acting, only_acting},
        {"card-dir", acting, only_acting},
        {"hooks", acting, only_acting},
        {"allow", acting, only_acting},
        {"host-devices", acting, only_acting},
        {"metrics-listen", !fleet, not_fleet},
    };
    return conf_check_needs(&advertiser_program, s, needs, ARRAY_LEN(needs),
                            err);
}

static int check_metrics(const struct settings *s, struct error *err)
{
    static const char only_listen[] = "needs --metrics-listen";
    const bool listens = s->metrics_listen && *s->metrics_listen;
    const struct conf_need needs[] = {
        {"metrics-cert", listens, only_listen},
        {"metrics-key", listens, only_listen},
        {"metrics-client-ca", listens, only_listen},
    };
    if (conf_check_needs(&advertiser_program, s, needs, ARRAY_LEN(needs), err) <
        0)
        return -EINVAL;
    if (!s->metrics_cert == !s->metrics_key &&
        !s->metrics_cert == !s->metrics_client_ca)
        return 0;
    return error_set(err, EINVAL,
                     "--metrics-cert, --metrics-key and --metrics-client-ca: "
                     "all three are to be given, or none");
}

static int check_actuate(const struct settings *s, struct error *err)
{
    const char *runtime = s->host_runtime ? s->host_runtime : "";
    struct rights rights;
    unsigned kinds;
    if (rights_parse(s->allow, &rights, err) < 0)
        return error_wrap(err, "--allow");
    if (host_side_kinds(s->host_devices, &kinds, err) < 0)
        return error_wrap(err, "--host-devices");
    if (!is_label_value(s->cluster))
        return error_set(err, EINVAL,
                         "--cluster: is \"%.80s\", must be 1 to 63 letters, "
                         "digits, '-', '_' and '.', and begin and end with a "
                         "letter or digit",
                         s->cluster);
    if (*runtime &&
        (strncmp(runtime, "unix:///", 8) != 0 || strlen(runtime) > 200))
        return error_set(err, EINVAL,
                         "--host-runtime: is \"%.200s\", must be like "
                         "unix:///run/containerd/containerd.sock",
                         runtime);
    if (s->card_dir[0] != '/')
        return error_set(err, EINVAL,
                         "--card-dir: is \"%.200s\", must be an absolute "
                         "path",
                         s->card_dir);
    return 0;
}

static int check_plugin(const struct settings *s, struct error *err)
{
    const struct {
        const char *name, *path;
    } dirs[] = {{"kubelet-dir", s->kubelet_dir},
                {"cdi-dir", s->cdi_dir},
                {"pod-resources", s->pod_resources}};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (dirs[i].path && *dirs[i].path && *dirs[i].path != '/')
            return error_set(err, EINVAL,
                             "--%s: is \"%.200s\", must be an absolute path",
                             dirs[i].name, dirs[i].path);
    return 0;
}

static int check_achieved(const struct settings *s, struct error *err)
{
    if (s->achieved_ms > 0 && s->achieved_ms < ACHIEVED_MIN_MS)
        return error_set(err, EINVAL,
                         "--achieved: is %" PRId64
                         "ms, must be 0s, or 100ms to 1m",
                         s->achieved_ms);
    return 0;
}

static bool is_label(const char *text)
{
    size_t size = strlen(text);
    bool plain = size > 0 && size <= 63 && *text != '-' &&
                 text[size - 1] != '-';
    for (size_t i = 0; i < size && plain; i++)
        plain = islower((unsigned char)text[i]) ||
                isdigit((unsigned char)text[i]) || text[i] == '-';
    return plain;
}

int settings_check(const struct settings *s, struct error *err)
{
    if (!!s->topology + !!s->fsroot + !!s->hostfile > 1)
        return error_set(err, EINVAL,
                         "--topology, --fsroot, --hostfile: only one of them "
                         "may be given");
    if (check_needs(s, err) < 0)
        return -EINVAL;
    if (!s->cert != !s->key)
        return error_set(err, EINVAL, "--cert and --key: only one is given");
    if (!is_label(s->heartbeat_namespace))
        return error_set(err, EINVAL,
                         "--heartbeat-namespace: is \"%.80s\", must be 1 to "
                         "63 lower-case letters, digits and '-'",
                         s->heartbeat_namespace);
    if (check_plugin(s, err) < 0 || check_achieved(s, err) < 0 ||
        check_metrics(s, err) < 0)
        return -EINVAL;
    return check_actuate(s, err);
}

char *settings_kubelet(const struct settings *s)
{
    const bool file = s->topology || s->fsroot || s->hostfile;
    const char *dir = s->kubelet_dir && *s->kubelet_dir ? s->kubelet_dir
                      : file || s->actuate              ? NULL
                                                        : "/var/lib/kubelet";
    if (s->pod_resources)
        return xstrdup(s->pod_resources);
    return dir ? xasprintf("%s/pod-resources/kubelet.sock", dir) : xstrdup("");
}

/* topo_build knows what a node may be called. */
static int check_node(const char *node, struct error *err)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(node);
    cleanup_with(topo) struct topo *topo = NULL;
    return topo_build(b, &topo, err);
}

const char *settings_sysroot(const struct settings *s)
{
    if (s->fsroot)
        return s->fsroot;
    return s->topology || s->hostfile ? NULL : "";
}

int settings_node(const struct settings *s, char ret_node[SLICE_NAME_MAX + 1],
                  struct error *err)
{
    char name[SLICE_NAME_MAX + 1] = "";
    const char *node = s->node;
    int r;
    if (!node || !*node) {
        if (gethostname(name, sizeof name - 1) < 0)
            return error_errno(err, errno, "host name (or set --node)");
        for (char *p = name; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        node = name;
        r = check_node(node, err);
        if (r < 0)
            return error_wrap(err, "host name (or set --node)");
    } else {
        r = check_node(node, err);
        if (r < 0)
            return error_wrap(err, "--node");
    }
    memmove(ret_node, node, strlen(node) + 1);
    return 0;
}

static int read_boot_id(char ret_text[SLICE_BOOT_ID_MAX + 1], struct error *err)
{
    cleanup_file FILE *f = fopen(BOOT_ID_FILE, "re");
    if (!f || !fgets(ret_text, SLICE_BOOT_ID_MAX + 1, f))
        return error_errno(err, errno ? errno : EIO,
                           BOOT_ID_FILE " (or set --boot-id)");
    ret_text[strcspn(ret_text, "\n")] = '\0';
    return 0;
}

int settings_boot_id(const struct settings *s,
                     char ret_boot_id[SLICE_BOOT_ID_MAX + 1], struct error *err)
{
    char text[SLICE_BOOT_ID_MAX + 1];
    const char *id = s->boot_id;
    if (!id || !*id) {
        int r = read_boot_id(text, err);
        if (r < 0)
            return r;
        id = text;
    }
    size_t size = strlen(id);
    bool plain = size > 0 && size <= SLICE_BOOT_ID_MAX;
    for (size_t i = 0; i < size && plain; i++)
        plain = isalnum((unsigned char)id[i]) || strchr("-._", id[i]);
    if (!plain)
        return error_set(err, EINVAL,
                         "--boot-id: is \"%.80s\", must be 1 to %d letters, "
                         "digits, '-', '.' and '_'",
                         id, SLICE_BOOT_ID_MAX);
    memmove(ret_boot_id, id, size + 1);
    return 0;
}
