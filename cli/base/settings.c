#include "cli/base/settings.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/say.h"
#include "lib/base/mem.h"

#define SETTING(kind, word, member, text, ...)                           \
    {                                                                    \
        .name = (word), .type = (kind),                                  \
        .offset = offsetof(struct cli_settings, member), .help = (text), \
        __VA_ARGS__                                                      \
    }
#define TEXT(word, member, ...) SETTING(CONF_TEXT, word, member, __VA_ARGS__)
#define INT(word, member, ...) SETTING(CONF_INT, word, member, __VA_ARGS__)
#define CHOICE(word, member, words, text, ...) \
    SETTING(CONF_CHOICE, word, member, text, .choices = (words), __VA_ARGS__)
#define FLAG(word, member, text, ...) \
    SETTING(CONF_FLAG, word, member, text, .otherwise = "false", __VA_ARGS__)

static const struct conf_setting settings[] = {
    TEXT("server", server, "The read listener of the extender to ask.",
         .letter = 's', .otherwise = "http://127.0.0.1:8700", .metavar = "URL"),
    TEXT("ca", ca,
         "Authority, in PEM form, of an https:// server's certificate. "
         "Without it, those of the system.",
         .metavar = "FILE"),
    TEXT("cert", cert, "The client's certificate, in PEM form.",
         .metavar = "FILE"),
    TEXT("key", key, "The private key of --cert.", .metavar = "FILE"),
    TEXT("token-file", token_file,
         "File with the client's bearer token, for an extender with "
         "--read-tokens.",
         .metavar = "FILE"),
    CHOICE("output", output, "table|wide|json|yaml|name",
           "How to print the answer: a table, one with more columns, the "
           "server's JSON, that as YAML, or names alone.",
           .letter = 'o', .otherwise = "table"),
    FLAG("json", json, "The same as -o json.", .letter = 'j'),
    TEXT("selector", selector,
         "In lists: only what has these labels or members, as in "
         "'role=host,state in (running,failed)', 'cards.idle>0', "
         "'!biga.dev/job'.",
         .letter = 'l', .otherwise = "", .metavar = "SELECTOR"),
    TEXT("sort-by", sort_by,
         "Lists are in the order of this column, or of this path in the JSON "
         "of each, as .cards.idle.",
         .otherwise = "", .metavar = "COLUMN"),
    TEXT("namespace", namespace,
         "allocations, attach, card, cp, delete, events, exec, history, job, "
         "jobs, logs, pods, policy, port-forward, ps, release, rsh, run, top, "
         "wait, why: the namespace of a NAME without one, otherwise "
         "\"default\"; lists show only this namespace. run: -n N is how many "
         "pairs.",
         .letter = 'n', .otherwise = "", .metavar = "NAMESPACE"),
    FLAG("all-namespaces", all_namespaces,
         "Lists show all namespaces, whatever BIGA_NAMESPACE says.",
         .letter = 'A'),
    FLAG("watch", watch,
         "Go on: show what changes, until Ctrl-C. Lists show the rows that are "
         "new or different, and with -o json or yaml an event for each.",
         .letter = 'w'),
    TEXT("at", at,
         "history: the moment that is asked for: 14:05, -2h, -3d, \"2026-11-01 "
         "14:05\" or 2026-11-01T14:05:07Z. Default: now.",
         .otherwise = "", .metavar = "TIME"),
    TEXT("since", since,
         "events, logs: only what happened, or was written, from then on: 5m "
         "ago, 14:05, or 2026-11-01T14:05:07Z.",
         .otherwise = "", .metavar = "TIME"),
    TEXT("until", until, "events: only what happened until then.",
         .otherwise = "", .metavar = "TIME"),
    TEXT(
        "reason", reason,
        "drain, events: why, for those who wonder later; only events with this "
        "reason.",
        .otherwise = "", .metavar = "TEXT"),
    INT("limit", limit, "events: the newest N of them.", .otherwise = "100",
        .min = 1, .max = 1000, .metavar = "N"),
    FLAG("applied", applied,
         "simulate: as if given to biga apply, whose pods need a node whose "
         "biga-advertiser runs pods."),
    FLAG("hostfile", hostfile, "job: print Open MPI's hostfile of its hosts."),
    FLAG("pod-hostfile", pod_hostfile,
         "job: print Open MPI's hostfile of its host pods, for biga rsh."),
    FLAG("dpu-hostfile", dpu_hostfile,
         "job: print Open MPI's hostfile of its cards."),
    FLAG("rankfile", rankfile,
         "job: print Open MPI's rankfile, which binds each rank to CPUs "
         "near its card; needs --mca rmaps_rank_file_physical 1."),
    FLAG("ucx", ucx, "job: print UCX_NET_DEVICES of each rank."),
    FLAG("nccl", nccl, "job: print NCCL_IB_HCA of each rank."),
    FLAG("urom", urom,
         "job: print the file that DOCA_UROM_SERVICE_FILE names."),
    TEXT("check", check,
         "policy: check this policy file (- is stdin), without a server.",
         .metavar = "FILE"),
    FLAG("dot", dot, "fabric: print it as a graph for Graphviz."),
    FLAG("svg", svg,
         "fabric, topo, job: print it as a drawing (SVG), for a browser."),
    FLAG("evict", evict,
         "drain: the pods that are there are to end, too; in a cluster by the "
         "Eviction API, as far as disruption budgets let them."),
    INT("grace", grace,
        "delete: how long the pods may take to end; -1: as long as each pod "
        "states.",
        .otherwise = "-1", .min = -1, .max = 86400, .metavar = "SECONDS"),
    TEXT("socket", socket,
         "card, pods, logs, exec, rsh: the socket of this host's advertiser, "
         "actuator.sock in its --actuate folder.",
         .otherwise = SETTINGS_SOCKET, .metavar = "PATH"),
    TEXT("container", container,
         "attach, card, cp, exec, logs, rsh: the pod's container of this name. "
         "Default: the first.",
         .letter = 'c', .otherwise = "", .metavar = "NAME"),
    TEXT("job", job, "rsh: the job whose pod is meant, NAME or NAMESPACE/NAME.",
         .otherwise = "", .metavar = "NAME"),
    FLAG("follow", follow,
         "card, logs: go on printing what is written, until the pod ends.",
         .letter = 'f'),
    INT("limit-bytes", limit_bytes,
        "card, logs: print at most so many "
        "bytes.",
        .otherwise = "67108864", .min = 1, .max = INT64_C(1) << 40,
        .metavar = "N"),
    INT("exec-timeout", exec_timeout,
        "card, exec: how long the command may take.", .otherwise = "10",
        .min = 1, .max = 300, .metavar = "SECONDS"),
    INT("tail", tail, "logs: only so many lines at the end; -1: all.",
        .otherwise = "-1", .min = -1, .max = 100000000, .metavar = "N"),
    FLAG("previous", previous,
         "logs: of the container that was there before it was started again.",
         .letter = 'p'),
    FLAG("timestamps", timestamps,
         "logs: when each line was written, before it."),
    FLAG("interactive", interactive,
         "exec, attach: our standard input is for the command.", .letter = 'i'),
    FLAG("tty", tty, "exec, attach: our terminal is the command's, as it is.",
         .letter = 't'),
    TEXT("address", address, "port-forward: where to listen on this machine.",
         .otherwise = "127.0.0.1", .metavar = "ADDRESS"),
    TEXT("bfb", bfb, "card: flash: the image (BFB), a file of this host.",
         .otherwise = "", .metavar = "FILE"),
    TEXT("sha256", sha256,
         "card: flash: the SHA-256 of the image. Default: as FILE.sha256 "
         "says.",
         .otherwise = "", .metavar = "SUM"),
    TEXT("expect", expect,
         "card: flash: the version that is to boot then. Default: the name of "
         "the image without .bfb.",
         .otherwise = "", .metavar = "TEXT"),
    TEXT(
        "timeout", timeout,
        "card, delete, run, wait: how long it may take, in seconds, or as 90s, "
        "5m, 2h. Default: 45m for card flash, as long as it takes for others.",
        .otherwise = "", .metavar = "TIME"),
    TEXT(
        "for", wait_for,
        "wait: the state to wait for: placed, running, ready, done or deleted.",
        .otherwise = "done", .metavar = "STATE"),
    FLAG("wait", wait,
         "delete, run: until what is deleted is gone, or what runs has ended."),
    FLAG("rm", rm, "run: wait until the job has ended, then delete it."),
    FLAG("force", force,
         "card: flash: also while pods run on the card; they end with it."),
    TEXT("image", image, "run: the image of the host pods.", .otherwise = "",
         .metavar = "IMAGE"),
    TEXT("xpu-image", xpu_image,
         "run: the image of the xPU pods, one to each host pod. Default: no "
         "xPU pods.",
         .otherwise = "", .metavar = "IMAGE"),
    TEXT("xpu-command", xpu_command,
         "run: what the xPU pods run, by sh -c. Default: what their image "
         "says.",
         .otherwise = "", .metavar = "COMMAND"),
    /* a text, for hooks have $BIGA_CARD */
    TEXT("card", card, "run: cards of each pair, 1 to 16.", .otherwise = "1",
         .metavar = "N"),
    INT("card-cores", card_cores,
        "run: cores that the xPU pod takes of each card. 0: not stated.",
        .otherwise = "0", .min = 0, .max = 4096, .metavar = "N"),
    INT("card-memory-mib", card_memory_mib,
        "run: MiB that the xPU pod takes of each card. 0: not stated.",
        .otherwise = "0", .min = 0, .max = 16777216, .metavar = "MIB"),
    INT("gpus", gpus, "run: GPUs of each host pod.", .otherwise = "0", .min = 0,
        .max = 16, .metavar = "N"),
    TEXT("gpu-resource", gpu_resource, "run: what they are asked for by.",
         .otherwise = "nvidia.com/gpu", .metavar = "NAME"),
    INT("nics", nics, "run: compute NICs of each host pod.", .otherwise = "0",
        .min = 0, .max = 16, .metavar = "N"),
    TEXT("cpus", cpus, "run: CPUs of each host pod, such as 8 or 500m.",
         .otherwise = "", .metavar = "CPUS"),
    TEXT("align", align,
         "run: the worst relation that will do: pix, pxb, phb, node, socket or "
         "sys.",
         .otherwise = "", .metavar = "RELATION"),
    TEXT("prefer-align", prefer_align,
         "run: the worst relation that is called aligned.", .otherwise = "",
         .metavar = "RELATION"),
    TEXT("within", within,
         "run: the tier of the fabric that has to hold the job: leaf, spine …",
         .otherwise = "", .metavar = "TIER"),
    TEXT("prefer-within", prefer_within, "run: the tier that should hold it.",
         .otherwise = "", .metavar = "TIER"),
    FLAG("dry-run", dry_run,
         "run: print the Job (YAML, or JSON with -o json), and run nothing."),
    FLAG("once", once,
         "demo: end when the result is shown; exit 0 when every pod was "
         "placed as well as it can be."),
    TEXT("then", then,
         "demo: once the result is shown, run COMMAND by sh -c, with biga in "
         "its "
         "PATH asking the demo's server, and print its output; the demo fails "
         "when it fails.",
         .otherwise = "", .metavar = "COMMAND"),
    INT("hosts", hosts, "demo: how many hosts the fleet has.",
        .otherwise = "64", .min = 1, .max = 10000, .metavar = "N"),
    INT("pairs", pairs,
        "demo, run: how many pairs of a host pod and an xPU pod the job has; "
        "for run 1, or -n N.",
        .otherwise = "16", .min = 1, .max = 4096, .metavar = "N"),
    TEXT("scheduler-listen", scheduler_listen,
         "demo: where the extender answers kube-scheduler; "
         "127.0.0.1:8701, or a free port when that is taken.",
         .metavar = "ADDRESS:PORT"),
    TEXT("publish-listen", publish_listen,
         "demo: where advertisers publish; 127.0.0.1:8702, or a free "
         "port.",
         .metavar = "ADDRESS:PORT"),
    TEXT("read-listen", read_listen,
         "demo: where people ask; 127.0.0.1:8700, or a free port.",
         .metavar = "ADDRESS:PORT"),
};

const struct conf_setting *cli_settings_table(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(settings);
    return settings;
}

bool options_have(const char *options, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = options; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, name, n) == 0)
            return true;
        p += n;
    }
    return false;
}

static void complain_option(const struct conf_setting *s, const char *what,
                            const char *options)
{
    fprintf(stderr, "biga: %s: takes no --%s; it takes", what, s->name);
    for (const char *p = options; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        fprintf(stderr, "%s --%.*s", p == options ? "" : ",", (int)n, p);
        p += n;
    }
    fputs(*options ? "\n" : " no option\n", stderr);
}

int options_check(const struct cli *c, const char *what, const char *options)
{
    size_t n;
    const struct conf_setting *all = cli_settings_table(&n);
    for (size_t i = 0; c->given && i < n; i++)
        if (c->given[i] && !options_have(options, all[i].name)) {
            complain_option(&all[i], what, options);
            return CLI_USAGE;
        }
    return 0;
}

bool cli_is_given(const struct cli *c, const char *name)
{
    size_t n;
    const struct conf_setting *all = cli_settings_table(&n);
    for (size_t i = 0; c->given && i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return c->given[i];
    return false;
}

int settings_seconds(const struct cli *c, const char *what, int64_t otherwise,
                     int64_t max, int64_t *ret_seconds)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
    const char *text = c->set.timeout ? c->set.timeout : "";
    size_t digits = strspn(text, "0123456789");
    *ret_seconds = otherwise;
    if (!*text)
        return 0;
    for (size_t i = 0; digits > 0 && digits < 10 && i < ARRAY_LEN(units); i++) {
        int64_t n = strtoll(text, NULL, 10) * units[i].seconds;
        if (strcmp(text + digits, units[i].unit) == 0 && n >= 1 && n <= max) {
            *ret_seconds = n;
            return 0;
        }
    }
    return cli_usage(
        "%s: --timeout: is \"%s\", must be 1 to %lld seconds, or as "
        "90s, 5m, 2h",
        what, text, (long long)max);
}
