/* biga-extender: settings, the server, and a signal that ends it. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "extender/admit/access.h"
#include "extender/server.h"
#include "lib/base/mem.h"
#include "lib/io/conf.h"
#include "lib/io/log.h"
#include "model/pod/patience.h"

/* What the server takes as it is, and what is made of words. */
struct settings {
    struct server_config server;
    const char *store, *plain_http, *gpu_resources, *plugin_align, *card_lost,
        *log_level;
};

#define AT(member) offsetof(struct settings, member)
static const struct conf_setting settings_table[] = {
    {.name = "scheduler-listen",
     .type = CONF_TEXT,
     .offset = AT(server.listen[SERVER_SCHEDULER]),
     .otherwise = "127.0.0.1:8701",
     .metavar = "ADDRESS:PORT",
     .help = "Where kube-scheduler asks: the urlPrefix of its extender "
             "configuration is http://ADDRESS:PORT/v1/scheduler."},
    {.name = "publish-listen",
     .type = CONF_TEXT,
     .offset = AT(server.listen[SERVER_PUBLISH]),
     .otherwise = "127.0.0.1:8702",
     .metavar = "ADDRESS:PORT",
     .help = "Where advertisers publish their ResourceSlices; kubectl can "
             "read them there."},
    {.name = "read-listen",
     .type = CONF_TEXT,
     .offset = AT(server.listen[SERVER_READ]),
     .otherwise = "127.0.0.1:8700",
     .metavar = "ADDRESS:PORT",
     .help = "Where people and tools read: topology, allocations, why, "
             "metrics."},
    {.name = "state",
     .type = CONF_TEXT,
     .offset = AT(server.state_dir),
     .metavar = "DIR",
     .help = "Directory of the database, created when missing. Without it "
             "everything is kept in memory only."},
    {.name = "history",
     .type = CONF_TEXT,
     .offset = AT(server.history_dir),
     .metavar = "DIR",
     .help = "Directory of the history: what happened, and what was at any "
             "moment (docs/history.md). Default: history below --state; "
             "without either none is kept."},
    {.name = "history-days",
     .type = CONF_INT,
     .offset = AT(server.history_days),
     .otherwise = "30",
     .min = 1,
     .max = 3650,
     .metavar = "N",
     .help = "How long the history is kept."},
    {.name = "history-mib",
     .type = CONF_INT,
     .offset = AT(server.history_mib),
     .otherwise = "1024",
     .min = 16,
     .max = 1048576,
     .metavar = "N",
     .help = "How large the history may become: then the oldest goes, before "
             "its days are over."},
    {.name = "store",
     .type = CONF_CHOICE,
     .offset = AT(store),
     .otherwise = "sqlite",
     .choices = "sqlite|kubernetes",
     .metavar = "KIND",
     .help = "Where the state is kept: in a database of its own (--state), "
             "or in the Kubernetes API server. With the latter, nodes, "
             "slices and pods are read from the API server, binds are "
             "written to it, and there is no publish listener."},
    {.name = "kubeconfig",
     .type = CONF_TEXT,
     .offset = AT(server.kubeconfig),
     .metavar = "FILE",
     .help = "How to reach the API server. Default: in a pod its service "
             "account, elsewhere $KUBECONFIG or ~/.kube/config."},
    {.name = "namespace",
     .type = CONF_TEXT,
     .offset = AT(server.namespace),
     .otherwise = "biga-system",
     .metavar = "NAME",
     .help = "Namespace of the Lease biga-extender, which elects the replica "
             "that binds."},
    {.name = "heartbeat-namespace",
     .type = CONF_TEXT,
     .offset = AT(server.heartbeats),
     .otherwise = "biga-nodes",
     .metavar = "NAME",
     .help = "Namespace of the Leases that advertisers renew."},
    {.name = "identity",
     .type = CONF_TEXT,
     .offset = AT(server.identity),
     .metavar = "NAME",
     .help = "The name of this replica in the election, such as its pod's "
             "name. Default: the host's name."},
    {.name = "elect",
     .type = CONF_FLAG,
     .offset = AT(server.elect),
     .otherwise = "true",
     .help = "Whether replicas elect the one that binds. Without it this one "
             "always binds, and there must be no other."},
    {.name = "events",
     .type = CONF_FLAG,
     .offset = AT(server.events),
     .otherwise = "true",
     .help = "Whether to write Events on pods."},
    {.name = "claims",
     .type = CONF_FLAG,
     .offset = AT(server.claims),
     .otherwise = "true",
     .help = "Whether to follow ResourceClaims: cards and GPUs that others "
             "have by claims are not planned with. Needs the right to list "
             "and watch resourceclaims, resourceclaimtemplates and "
             "deviceclasses."},
    {.name = "dpus",
     .type = CONF_FLAG,
     .offset = AT(server.dpus),
     .otherwise = "true",
     .help = "Whether to follow what DPU operators say of their DPUs, where "
             "they are in the cluster: no new pod gets a card whose DPU of "
             "NVIDIA's DPF or DataProcessingUnit of the OpenShift DPU "
             "operator is not ready. Needs the right to list and watch dpus "
             "and dataprocessingunits."},
    {.name = "policy",
     .type = CONF_TEXT,
     .offset = AT(server.policy),
     .metavar = "FILE",
     .help = "Quotas of namespaces and services' shares of cards, as JSON "
             "(schema/policy.md); read again whenever it changes. An invalid "
             "file is refused at the start; later, the policy that was read "
             "before stays in force."},
    {.name = "fabric",
     .type = CONF_LIST,
     .offset = AT(server.fabric),
     .metavar = "FILE,…",
     .help = "Which switches the hosts are connected to: the output of "
             "ibnetdiscover, Slurm's topology.conf, nodes with their labels "
             "as kubectl get nodes -o json lists them, or JSON "
             "(schema/fabric.md). A host is taken from the first file that "
             "names it. Read again whenever one changes. An invalid file is "
             "refused at the start; later, the fabric that was read before "
             "stays in force."},
    {.name = "fabric-labels",
     .type = CONF_LIST,
     .offset = AT(server.fabric_labels),
     .metavar = "KEY,…",
     .help = "Labels of nodes that name their switches, from leaf to core; "
             "or topograph, nvidia, gke or aws for the labels that these "
             "set. Default: each of the four is tried."},
    {.name = "max-candidates",
     .type = CONF_INT,
     .offset = AT(server.max_candidates),
     .otherwise = "16",
     .min = 0,
     .max = 100000,
     .metavar = "N",
     .help = "How many nodes filter answers with at most, the best ones; 0: "
             "all that fit. Fewer are faster: kube-scheduler decodes and "
             "scores only these."},
    {.name = "fresh",
     .type = CONF_DURATION,
     .offset = AT(server.fresh_ms),
     .otherwise = "15s",
     .min = 1000,
     .max = 3600000,
     .metavar = "TIME",
     .help = "A node whose advertiser has been silent for longer is stale: "
             "no pod is placed there."},
    {.name = "lease",
     .type = CONF_DURATION,
     .offset = AT(server.lease_ms),
     .otherwise = "30s",
     .min = 1000,
     .max = 3600000,
     .metavar = "TIME",
     .help = "How long the places of a whole job stay reserved after a bind "
             "of one of its pods; each further bind begins the time anew."},
    {.name = "card-lost",
     .type = CONF_TEXT,
     .offset = AT(card_lost),
     .otherwise = "5m",
     .metavar = "TIME|never",
     .help = "In a cluster, how long a pod stays on a card that does not "
             "answer before it is evicted, unless its annotation "
             "biga.dev/card-lost says otherwise."},
    {.name = "gpu-resources",
     .type = CONF_LIST,
     .offset = AT(gpu_resources),
     .otherwise = "nvidia.com/gpu,amd.com/gpu",
     .metavar = "NAME,…",
     .help = "Extended resources of pods that stand for devices of kind "
             "gpu."},
    {.name = "plugin-align",
     .type = CONF_CHOICE,
     .offset = AT(plugin_align),
     .otherwise = "planned",
     .choices = "planned|every",
     .metavar = "WHICH",
     .help = "In a cluster, what biga.dev/align holds for where a device "
             "plugin chooses a pod's GPUs: those that were planned with, or "
             "every choice that the plugin has. With every, a node where it "
             "may give a GPU that is too far is refused: claims pin GPUs."},
    {.name = "connections",
     .type = CONF_INT,
     .offset = AT(server.connections),
     .otherwise = "1024",
     .min = 8,
     .max = 60000,
     .metavar = "N",
     .help = "Connections that each listener accepts at once."},
    {.name = "request-timeout",
     .type = CONF_DURATION,
     .offset = AT(server.request_ms),
     .otherwise = "10s",
     .min = 100,
     .max = 600000,
     .metavar = "TIME",
     .help = "A request that has not arrived completely after this time is "
             "cut off."},
    {.name = "tls-cert",
     .type = CONF_TEXT,
     .offset = AT(server.tls_cert),
     .metavar = "FILE",
     .help = "Certificate of the listeners, in PEM form, followed by its "
             "intermediate certificates; with it they speak HTTPS. Read "
             "again whenever it, the key or the authority changes. An "
             "invalid set is refused at the start; later, the one that was "
             "read before stays in force."},
    {.name = "tls-key",
     .type = CONF_TEXT,
     .offset = AT(server.tls_key),
     .metavar = "FILE",
     .help = "The certificate's private key, in PEM form, without a "
             "password."},
    {.name = "client-ca",
     .type = CONF_TEXT,
     .offset = AT(server.client_ca),
     .metavar = "FILE",
     .help = "Authorities, in PEM form, that sign the certificates of "
             "kube-scheduler and of advertisers. The scheduler and the "
             "publish listener then answer only clients with such a "
             "certificate."},
    {.name = "scheduler-names",
     .type = CONF_LIST,
     .offset = AT(server.scheduler_names),
     .otherwise = ACCESS_SCHEDULER,
     .metavar = "NAME,…",
     .help = "Whose certificates may call the scheduler listener: common "
             "names or DNS names, compared in full."},
    {.name = "read-tokens",
     .type = CONF_TEXT,
     .offset = AT(server.token_file),
     .metavar = "FILE|kubernetes",
     .help =
         "Who may call the read listener. FILE: clients with a bearer "
         "token of the file, one line TOKEN,USER[,RIGHT,…] for each (read "
         "again when it changes), RIGHT as exec:NAMESPACE (docs/rights.md). "
         "kubernetes: clients that the API server knows and allows the "
         "path and the method (TokenReview, SubjectAccessReview). Without "
         "it, everybody who reaches it."},
    {.name = "plain-http",
     .type = CONF_CHOICE,
     .offset = AT(plain_http),
     .otherwise = "loopback",
     .choices = "loopback|anywhere",
     .metavar = "WHERE",
     .help = "Where the listeners may do without TLS: on loopback alone, or "
             "on any address, for a lab whose network is trusted."},
    {.name = "log-level",
     .type = CONF_CHOICE,
     .offset = AT(log_level),
     .otherwise = "info",
     .choices = "debug|info|warn|error",
     .metavar = "LEVEL",
     .help = "The least important events to log."},
};

static const struct conf_program program = {
    .name = "biga-extender",
    .summary = "scheduler extender that places pods of hosts and of their "
               "xPU cards together",
    .usage = "[OPTION]…",
    .text =
        "Takes in the topology of nodes as ResourceSlices from "
        "biga-advertiser, answers kube-scheduler's extender calls (filter, "
        "prioritize, bind, preempt) so that a host pod and its xPU pods land "
        "on one node, on cards, GPUs and NUMA nodes that belong together, and "
        "shows people what it decided and why.\n\n"
        "Each crowd has its own listener, so that one cannot starve another. "
        "Without TLS they stay on loopback, unless --plain-http says "
        "otherwise. With --store kubernetes the API server keeps the state "
        "and tells what nodes have, and replicas elect the one that "
        "binds.\n\n"
        "A bind is on disk, or taken by the API server, before it is answered. "
        "SIGTERM and SIGINT end the "
        "program cleanly; after a crash it starts with what it had "
        "acknowledged.",
    .settings = settings_table,
    .n_settings = ARRAY_LEN(settings_table),
};

/* --- set-up ------------------------------------------------------------- */

#define RESOURCE_CHARACTERS \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"

static int read_gpu_resources(const char *list, struct demand_config *config,
                              struct error *err)
{
    memset(config, 0, sizeof *config);
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, ",");
        if (config->n_gpu_resources == GPU_RESOURCES_MAX)
            return error_set(err, EINVAL, "gpu-resources: more than %d names",
                             GPU_RESOURCES_MAX);
        if (len == 0 || len > GPU_RESOURCE_NAME_MAX ||
            strspn(p, RESOURCE_CHARACTERS) < len)
            return error_set(err, EINVAL,
                             "gpu-resources: \"%.*s\": a name must have 1 to "
                             "%d letters, digits, '-', '_', '.' or '/'",
                             (int)len, p, GPU_RESOURCE_NAME_MAX);
        memcpy(config->gpu_resources[config->n_gpu_resources++], p, len);
        p += len;
        p += *p == ',';
    }
    return 0;
}

/* What is given but would do nothing was meant to do something. */
static int check_needs(const struct settings *s, struct error *err)
{
    static const char only_kube[] = "needs --store kubernetes";
    static const char not_kube[] =
        "cannot be combined with --store kubernetes, where nothing is kept in "
        "a directory and advertisers publish to the API server (--server "
        "kubernetes)";
    const bool kube = strcmp(s->store, "kubernetes") == 0;
    const struct server_config *c = &s->server;
    const bool review = c->token_file &&
                        strcmp(c->token_file, "kubernetes") == 0;
    const bool fabric = c->fabric && *c->fabric;
    const bool tls = c->tls_cert && *c->tls_cert;
    const struct conf_need needs[] = {
        {"state", !kube, not_kube},
        {"publish-listen", !kube, not_kube},
        {"kubeconfig", kube || review,
         "needs --store kubernetes, or --read-tokens kubernetes"},
        {"identity", kube, only_kube},
        {"namespace", kube, only_kube},
        {"namespace", c->elect, "cannot be combined with --elect=false"},
        {"heartbeat-namespace", kube, only_kube},
        {"elect", kube, only_kube},
        {"events", kube, only_kube},
        {"claims", kube, only_kube},
        {"dpus", kube, only_kube},
        {"card-lost", kube, only_kube},
        {"plugin-align", kube, only_kube},
        {"fabric-labels", kube || fabric,
         "needs --fabric, or --store kubernetes"},
        {"scheduler-names", tls, "needs --tls-cert"},
    };
    return conf_check_needs(&program, s, needs, ARRAY_LEN(needs), err);
}

static int read_card_lost(const char *text, int64_t *ret_s, struct error *err)
{
    if (patience_parse(text, ret_s))
        return 0;
    return error_set(err, EINVAL,
                     "card-lost: is \"%.40s\", must be a time such as 5m, at "
                     "most 8784h, or never",
                     text);
}

static int run(struct settings *s, struct error *err)
{
    cleanup_with(server) struct server *server = NULL;
    sigset_t ends;
    int signal_number;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    /* before any thread starts, so that all of them leave it to sigwait */
    (void)sigprocmask(SIG_BLOCK, &ends, NULL);
    (void)signal(SIGPIPE, SIG_IGN);

    bool in_cluster = strcmp(s->store, "kubernetes") == 0;
    s->server.store = in_cluster ? STORE_KUBERNETES : STORE_SQLITE;
    s->server.plain_anywhere = strcmp(s->plain_http, "anywhere") == 0;
    s->server.sweep_ms = 1000;
    int r = check_needs(s, err);
    if (r == 0)
        r = read_gpu_resources(s->gpu_resources, &s->server.demand, err);
    s->server.demand.device_plugins = in_cluster;
    s->server.demand.every_gpu = strcmp(s->plugin_align, "every") == 0;
    if (r == 0)
        r = read_card_lost(s->card_lost, &s->server.card_lost_s, err);
    if (r == 0)
        r = server_start(&s->server, &server, err);
    if (r < 0)
        return r;
    log_event(LOG_INFO, "ready", NULL);
    (void)sigwait(&ends, &signal_number);
    log_event(LOG_INFO, "stopping", "signal", strsignal(signal_number), NULL);
    return 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {0};
    struct error err = {0};
    int rest;
    int r = conf_read(&program, argc, argv, &settings, &rest, &err);
    if (r > 0)
        return 0;
    if (r == 0 && rest < argc)
        r = error_set(&err, EINVAL, "unexpected argument \"%s\"", argv[rest]);
    if (r == 0) {
        log_set_level((enum log_level)log_level_parse(settings.log_level));
        r = run(&settings, &err);
    }
    if (r < 0)
        (void)fprintf(stderr, "biga-extender: %s\n", err.text);
    conf_fini(&program, &settings);
    return r < 0 ? (r == -EINVAL ? 2 : 1) : 0;
}
