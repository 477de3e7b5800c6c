#include "cli/base/settings.h"

#include <string.h>

#include "lib/base/mem.h"

#define SETTING(field) offsetof(struct cli_settings, field)

static const struct conf_setting settings[] = {
    {.name = "server",
     .letter = 's',
     .type = CONF_TEXT,
     .offset = SETTING(server),
     .otherwise = "http://127.0.0.1:8700",
     .metavar = "URL",
     .help = "The read listener of the extender to ask."},
    {.name = "ca",
     .type = CONF_TEXT,
     .offset = SETTING(ca),
     .metavar = "FILE",
     .help = "Authority, in PEM form, of an https:// server's certificate. "
             "Without it, those of the system."},
    {.name = "cert",
     .type = CONF_TEXT,
     .offset = SETTING(cert),
     .metavar = "FILE",
     .help = "A certificate of our own to show, in PEM form."},
    {.name = "key",
     .type = CONF_TEXT,
     .offset = SETTING(key),
     .metavar = "FILE",
     .help = "The private key of --cert."},
    {.name = "token-file",
     .type = CONF_TEXT,
     .offset = SETTING(token_file),
     .metavar = "FILE",
     .help = "File with the bearer token to show, as --read-tokens of "
             "biga-extender asks for."},
    {.name = "json",
     .letter = 'j',
     .type = CONF_FLAG,
     .offset = SETTING(json),
     .otherwise = "false",
     .help = "Print the server's JSON instead of a table."},
    {.name = "namespace",
     .letter = 'n',
     .type = CONF_TEXT,
     .offset = SETTING(namespace),
     .otherwise = "",
     .metavar = "NAMESPACE",
     .help = "allocations, card, delete, exec, job, jobs, logs, pods, ps, "
             "release, why: of a name that is given without one, else "
             "\"default\"; of lists, only what is in it."},
    {.name = "applied",
     .type = CONF_FLAG,
     .offset = SETTING(applied),
     .otherwise = "false",
     .help = "simulate: as pods that biga apply is given, which need a node "
             "whose biga-advertiser runs pods."},
    {.name = "hostfile",
     .type = CONF_FLAG,
     .offset = SETTING(hostfile),
     .otherwise = "false",
     .help = "job: print Open MPI's hostfile of its hosts."},
    {.name = "dpu-hostfile",
     .type = CONF_FLAG,
     .offset = SETTING(dpu_hostfile),
     .otherwise = "false",
     .help = "job: print Open MPI's hostfile of its cards."},
    {.name = "rankfile",
     .type = CONF_FLAG,
     .offset = SETTING(rankfile),
     .otherwise = "false",
     .help = "job: print Open MPI's rankfile, which binds each rank to CPUs "
             "near its card; needs --mca rmaps_rank_file_physical 1."},
    {.name = "ucx",
     .type = CONF_FLAG,
     .offset = SETTING(ucx),
     .otherwise = "false",
     .help = "job: print UCX_NET_DEVICES of each rank."},
    {.name = "urom",
     .type = CONF_FLAG,
     .offset = SETTING(urom),
     .otherwise = "false",
     .help = "job: print the file that DOCA_UROM_SERVICE_FILE names."},
    {.name = "check",
     .type = CONF_TEXT,
     .offset = SETTING(check),
     .metavar = "FILE",
     .help = "policy: say whether this policy file (- is stdin) is right, "
             "without a server."},
    {.name = "dot",
     .type = CONF_FLAG,
     .offset = SETTING(dot),
     .otherwise = "false",
     .help = "fabric: print it as a graph for Graphviz."},
    {.name = "svg",
     .type = CONF_FLAG,
     .offset = SETTING(svg),
     .otherwise = "false",
     .help = "fabric: print it as a drawing (SVG) with a square for every "
             "host, for a browser."},
    {.name = "grace",
     .type = CONF_INT,
     .offset = SETTING(grace),
     .otherwise = "-1",
     .min = -1,
     .max = 86400,
     .metavar = "SECONDS",
     .help = "delete: how long the pods have to end; -1 for what each says "
             "itself."},
    {.name = "socket",
     .type = CONF_TEXT,
     .offset = SETTING(socket),
     .otherwise = SETTINGS_SOCKET,
     .metavar = "PATH",
     .help = "card, pods, logs, exec: the socket of this host's advertiser, "
             "actuator.sock in the folder of its --actuate."},
    {.name = "container",
     .letter = 'c',
     .type = CONF_TEXT,
     .offset = SETTING(container),
     .otherwise = "",
     .metavar = "NAME",
     .help =
         "card, logs, exec: of the pod's containers, this one. Default: the "
         "first."},
    {.name = "follow",
     .letter = 'f',
     .type = CONF_FLAG,
     .offset = SETTING(follow),
     .otherwise = "false",
     .help =
         "card, logs: go on with what is written from now on, until the pod "
         "ends."},
    {.name = "limit-bytes",
     .type = CONF_INT,
     .offset = SETTING(limit_bytes),
     .otherwise = "67108864",
     .min = 1,
     .max = INT64_C(1) << 40,
     .metavar = "N",
     .help = "card, logs: how much is printed at most."},
    {.name = "exec-timeout",
     .type = CONF_INT,
     .offset = SETTING(exec_timeout),
     .otherwise = "10",
     .min = 1,
     .max = 300,
     .metavar = "SECONDS",
     .help = "card, exec: how long the command may take."},
    {.name = "once",
     .type = CONF_FLAG,
     .offset = SETTING(once),
     .otherwise = "false",
     .help = "demo: end when the result is shown; exit 0 when every pod was "
             "placed as well as it can be."},
    {.name = "then",
     .type = CONF_TEXT,
     .offset = SETTING(then),
     .otherwise = "",
     .metavar = "COMMAND",
     .help = "demo: once the result is shown, run this by sh -c; what it "
             "prints follows, and when it fails so does the demo."},
    {.name = "hosts",
     .type = CONF_INT,
     .offset = SETTING(hosts),
     .otherwise = "64",
     .min = 1,
     .max = 10000,
     .metavar = "N",
     .help = "demo: how many hosts the fleet has."},
    {.name = "pairs",
     .type = CONF_INT,
     .offset = SETTING(pairs),
     .otherwise = "16",
     .min = 1,
     .max = 4096,
     .metavar = "N",
     .help = "demo: how many pairs of a host pod and an xPU pod the job has."},
    {.name = "scheduler-listen",
     .type = CONF_TEXT,
     .offset = SETTING(scheduler_listen),
     .metavar = "ADDRESS:PORT",
     .help = "demo: where the extender answers kube-scheduler; "
             "127.0.0.1:8701, or a free port when that is taken."},
    {.name = "publish-listen",
     .type = CONF_TEXT,
     .offset = SETTING(publish_listen),
     .metavar = "ADDRESS:PORT",
     .help = "demo: where advertisers publish; 127.0.0.1:8702, or a free "
             "port."},
    {.name = "read-listen",
     .type = CONF_TEXT,
     .offset = SETTING(read_listen),
     .metavar = "ADDRESS:PORT",
     .help = "demo: where people ask; 127.0.0.1:8700, or a free port."},
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
