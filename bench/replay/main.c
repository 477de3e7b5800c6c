/* biga-replay - job traces in virtual time, under Biga and other policies. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/replay/costs_text.h"
#include "bench/replay/report.h"
#include "lib/io/clock.h"
#include "lib/io/conf.h"
#include "lib/io/file.h"

enum { QUIET_NS = 2000000000, EVERY_NS = 500000000 };

struct settings {
    const char *generate, *format, *shape, *fabric, *policies, *pairs, *gpus_by,
        *backfill;
    const char *need, *profile, *costs, *json, *html, *compress;
    bool loss, timings;
    int64_t seed, hosts, cards, time_limit_ms;
};

#define AT(member) offsetof(struct settings, member)
static const struct conf_setting table[] = {
    {.name = "generate",
     .letter = 'g',
     .offset = AT(generate),
     .metavar = "RECIPE",
     .help = "Make the trace instead of reading one: mpi (whole jobs of "
             "several pairs; the default without a FILE) or poisson (single "
             "pairs), each with settings, as in "
             "poisson:load=0.95,jobs=100000,sizes=1:40,2:25,4:25,8:10. load is "
             "the share of all cards that is asked for, mean the seconds that "
             "a job runs on the average, sizes are pairs (mpi) or cards of a "
             "pair (poisson) with their weights."},
    {.name = "seed",
     .letter = 's',
     .type = CONF_INT,
     .offset = AT(seed),
     .otherwise = "1",
     .min = 0,
     .max = INT64_MAX,
     .metavar = "N",
     .help = "The same seed gives the same results, byte for byte."},
    {.name = "format",
     .type = CONF_CHOICE,
     .offset = AT(format),
     .otherwise = "auto",
     .choices = "auto|jsonl|swf",
     .metavar = "FORMAT",
     .help = "What FILE is: one JSON object per line, or the Standard Workload "
             "Format; auto tells from its beginning."},
    {.name = "hosts",
     .letter = 'n',
     .type = CONF_INT,
     .offset = AT(hosts),
     .otherwise = "1000",
     .min = 0,
     .max = REPLAY_HOSTS_MAX,
     .metavar = "N",
     .help = "How many hosts the fleet has; 0: as many as have a card for each "
             "processor of the trace's own machine (MaxProcs in SWF)."},
    {.name = "cards",
     .letter = 'c',
     .type = CONF_INT,
     .offset = AT(cards),
     .otherwise = "8",
     .min = 0,
     .max = TOPO_CARDS_MAX,
     .metavar = "N",
     .help = "Use at most so many cards of each host, leaving out those of the "
             "rarest model first; 0: all."},
    {.name = "shape",
     .type = CONF_LIST,
     .offset = AT(shape),
     .otherwise = "dell-xe9680-bf3",
     .metavar = "NAME,...",
     .help = "What the hosts are, in turn: names of compiled-in host "
             "descriptions, or files of that form (schema/hostfile.md)."},
    {.name = "fabric",
     .letter = 'f',
     .offset = AT(fabric),
     .otherwise = "leaf=32,spine=8",
     .metavar = "FABRIC",
     .help = "A tree with so many hosts below each leaf and leaves below each "
             "spine, a file that describes the fabric of host0001 and so on "
             "(schema/fabric.md), or none."},
    {.name = "policies",
     .letter = 'p',
     .type = CONF_LIST,
     .offset = AT(policies),
     .otherwise = "all",
     .metavar = "NAME,...",
     .help = "Which to compare: random, first-fit, least-allocated, "
             "most-allocated, most-allocated+aligned, numa-only, pcie-greedy, "
             "first-fit+aligned, numa-only+aligned, leaf-best-fit+aligned, "
             "biga."},
    {.name = "pairs",
     .type = CONF_CHOICE,
     .offset = AT(pairs),
     .otherwise = "gpu",
     .choices = "gpu|card",
     .metavar = "WHAT",
     .help = "What a pair of k cards takes: also k GPUs, or cards alone."},
    {.name = "need",
     .offset = AT(need),
     .metavar = "NAME=N,...",
     .help = "What a pair asks where the trace does not say it: cpu "
             "(thousandths) and memory (MiB) of its host, card-cores and "
             "card-memory (MiB) of each of its cards, which it then shares."},
    {.name = "gpus-by",
     .type = CONF_CHOICE,
     .offset = AT(gpus_by),
     .otherwise = "plugin",
     .choices = "plugin|claims",
     .metavar = "WHO",
     .help = "Who gives a pair its GPUs on its node: a device plugin, which "
             "gives the free ones of the lowest index, whichever were "
             "promised; or claims, which pin those that were. It changes what "
             "is achieved, not where pairs go."},
    {.name = "loss",
     .type = CONF_FLAG,
     .offset = AT(loss),
     .help =
         "Turn away what does not fit at once, instead of letting it wait."},
    {.name = "backfill",
     .type = CONF_CHOICE,
     .offset = AT(backfill),
     .otherwise = "none",
     .choices = "none|simple",
     .metavar = "HOW",
     .help = "simple: while the first job in the queue does not fit, the 64 "
             "behind it are tried in turn; nothing is reserved for the first."},
    {.name = "time-limit",
     .type = CONF_DURATION,
     .offset = AT(time_limit_ms),
     .otherwise = "0s",
     .min = 0,
     .max = INT64_MAX / 1000,
     .metavar = "TIME",
     .help = "Leave out jobs that arrive later than this after the first, in "
             "the trace's own time; 0s: none."},
    {.name = "compress",
     .offset = AT(compress),
     .otherwise = "1",
     .metavar = "FACTOR",
     .help = "Let the jobs come so many times as fast, to put more load on the "
             "fleet than the trace had."},
    {.name = "profile",
     .offset = AT(profile),
     .metavar = "FILE",
     .help = "The collectives of a job: AICB's CSV, one rank of SimGrid's "
             "time-independent trace, or UCC's alltoallv matrices. Default: "
             "the project's own."},
    {.name = "costs",
     .offset = AT(costs),
     .metavar = "FILE",
     .help = "Constants of the communication model, instead of those that are "
             "compiled in (bench/replay/costs.json)."},
    {.name = "json",
     .letter = 'j',
     .offset = AT(json),
     .metavar = "FILE",
     .help = "Write the results there as JSON; - is the standard output, "
             "instead of the table."},
    {.name = "html",
     .letter = 'o',
     .offset = AT(html),
     .metavar = "FILE",
     .help = "Write a report there that a browser shows, with plots; it needs "
             "no network."},
    {.name = "timings",
     .type = CONF_FLAG,
     .offset = AT(timings),
     .help = "Put measured decision times into the JSON and the report, which "
             "are then no longer the same for the same seed."},
};

static const char text[] =
    "Replays a trace of jobs in virtual time on a fleet of simulated hosts, "
    "once under each policy, and compares how the pairs are placed: how close "
    "their cards and GPUs are, how many leaf switches a job is spread over, "
    "what room is left, how long jobs wait, and what their collectives would "
    "cost, as promised and with the GPUs that they are given. Biga goes "
    "through the code that serves kube-scheduler.\n\n"
    "FILE is a trace in JSON lines or in the Standard Workload Format. Without "
    "one, the project's own trace is made from the seed.\n\n"
    "The table goes to the standard output; measured decision times and the "
    "progress of a long run go to the standard error.\n\n"
    " biga-replay\n"
    " biga-replay --html report.html trace.swf\n"
    " biga-replay --loss --generate poisson:load=0.95,jobs=100000";

static const struct conf_program program = {
    .name = "biga-replay",
    .summary = "replay job traces under Biga and other policies",
    .usage = "[OPTION]… [FILE]",
    .text = text,
    .settings = table,
    .n_settings = ARRAY_LEN(table),
};

/* --- progress ----------------------------------------------------------- */

struct progress {
    const char *policy;
    int64_t begin_ns, last_ns;
    bool shown;
};

static void show_progress(void *ctx, double done)
{
    struct progress *p = ctx;
    int64_t now = clock_ns();
    if (now - p->begin_ns < QUIET_NS || now - p->last_ns < EVERY_NS)
        return;
    fprintf(stderr, "%sbiga-replay: %s, %.0f %%%s",
            isatty(STDERR_FILENO) ? "\r\033[K" : "", p->policy, done * 100,
            isatty(STDERR_FILENO) ? "" : "\n");
    fflush(stderr);
    p->last_ns = now + (isatty(STDERR_FILENO) ? 0 : 8 * (int64_t)EVERY_NS);
    p->shown = true;
}

static void end_progress(const struct progress *p)
{
    if (p->shown && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* --- what is asked for -------------------------------------------------- */

struct replay {
    struct settings set;
    const char *file; /* NULL: generated */
    struct replay_fleet fleet;
    struct trace trace;
    struct costs_model costs;
    struct profile profile;
    unsigned policies;
    struct replay_result results[POLICY_COUNT];
    size_t n_results;
};

/* Changes to the trace that are asked for. */
static int change_trace(struct replay *p, struct error *err)
{
    char *end;
    double factor = strtod(p->set.compress, &end);
    if (*end || !(factor >= 1e-6) || factor > 1e6)
        return error_set(err, EINVAL,
                         "--compress: is \"%.32s\", must be a number, 0.000001 "
                         "to 1000000",
                         p->set.compress);
    if (p->set.need) {
        int rc = trace_need(p->set.need, &p->trace, err);
        if (rc < 0)
            return rc;
    }
    if (p->set.time_limit_ms)
        trace_limit(&p->trace, p->set.time_limit_ms * 1000);
    trace_compress(&p->trace, factor);
    return 0;
}

static int make_trace(struct replay *p, struct error *err)
{
    int rc = trace_generate(p->set.generate ? p->set.generate : "mpi",
                            (uint64_t)p->set.seed, p->fleet.n_cards, &p->trace,
                            err);
    return rc < 0 ? rc : change_trace(p, err);
}

static int read_trace(struct replay *p, struct error *err)
{
    cleanup_free char *file = NULL;
    size_t size = 0;
    const char *format = p->set.format;
    enum trace_format form = strcmp(format, "swf") == 0     ? TRACE_SWF
                             : strcmp(format, "jsonl") == 0 ? TRACE_JSONL
                                                            : TRACE_AUTO;
    int rc = file_read(p->file, TRACE_TEXT_MAX, &file, &size, err);
    if (rc == 0)
        rc = trace_read(p->file, file, size, form, &p->trace, err);
    return rc < 0 ? rc : change_trace(p, err);
}

static int read_costs(struct replay *p, struct error *err)
{
    cleanup_free char *file = NULL;
    size_t size = strlen(replay_costs_text);
    int rc = 0;
    if (p->set.costs)
        rc = file_read(p->set.costs, COSTS_TEXT_MAX, &file, &size, err);
    if (rc == 0)
        rc = costs_read(p->set.costs ? p->set.costs : "costs.json",
                        file ? file : replay_costs_text, size, &p->costs, err);
    if (rc < 0)
        return rc;
    profile_default(&p->profile);
    if (!p->set.profile)
        return 0;
    cleanup_free char *profile = NULL;
    rc = file_read(p->set.profile, PROFILE_TEXT_MAX, &profile, &size, err);
    return rc < 0
               ? rc
               : profile_read(p->set.profile, profile, size, &p->profile, err);
}

/* As many hosts as have a card for each processor that the trace's machine
 * had. */
static int count_hosts(struct replay *p, struct fleet_config *config,
                       struct error *err)
{
    if (!p->trace.max_procs)
        return error_set(err, EINVAL,
                         "--hosts: 0 takes a FILE in SWF whose header says "
                         "MaxProcs; how many hosts are there?");
    config->hosts = 1; /* of each shape */
    for (const char *c = config->shapes; *c; c++)
        config->hosts += *c == ',';
    size_t shapes = config->hosts;
    int rc = replay_fleet_init(&p->fleet, config, err);
    if (rc < 0)
        return rc;
    uint64_t hosts = (p->trace.max_procs * shapes + p->fleet.n_cards - 1) /
                     p->fleet.n_cards;
    replay_fleet_fini(&p->fleet);
    if (hosts > REPLAY_HOSTS_MAX)
        return error_set(err, E2BIG,
                         "--hosts: %" PRIu32 " processors (MaxProcs) would be "
                         "%" PRIu64 " hosts, at most %d are allowed",
                         p->trace.max_procs, hosts, REPLAY_HOSTS_MAX);
    config->hosts = hosts;
    return 0;
}

static int prepare(struct replay *p, struct error *err)
{
    struct fleet_config fleet = {.hosts = (size_t)p->set.hosts,
                                 .cards = (unsigned)p->set.cards,
                                 .shapes = p->set.shape,
                                 .fabric = p->set.fabric};
    int rc = 0;
    if (p->file && p->set.generate)
        return error_set(err, EINVAL,
                         "--generate: there is a trace already, %s", p->file);
    if ((rc = replay_policies_parse(p->set.policies, &p->policies, err)) < 0 ||
        (rc = read_costs(p, err)) < 0 ||
        (p->file && (rc = read_trace(p, err)) < 0) ||
        (fleet.hosts == 0 && (rc = count_hosts(p, &fleet, err)) < 0) ||
        (rc = replay_fleet_init(&p->fleet, &fleet, err)) < 0)
        return rc;
    if (!p->file && (rc = make_trace(p, err)) < 0)
        return rc;
    if (trace_asks_hosts(&p->trace))
        replay_fleet_charge_hosts(&p->fleet);
    return 0;
}

static void run(struct replay *p, struct replay_config *config)
{
    for (unsigned i = 0; i < POLICY_COUNT; i++) {
        struct progress progress = {.policy = replay_policy_name(i),
                                    .begin_ns = clock_ns()};
        if (!(p->policies >> i & 1))
            continue;
        config->progress = show_progress;
        config->ctx = &progress;
        replay_run(config, (enum replay_policy)i, &p->results[p->n_results++]);
        end_progress(&progress);
    }
}

static int write_content(const char *path, const struct str *content,
                         struct error *err)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return error_errno(err, errno, "%s", path);
    bool good = fwrite(str_text(content), 1, content->size, f) == content->size;
    if (fclose(f) != 0 || !good)
        return error_errno(err, errno ? errno : EIO, "%s", path);
    return 0;
}

static int write_out(const struct replay *p, const struct replay_report *report,
                     struct error *err)
{
    cleanup_str struct str table_text = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str timings = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str json = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str html = STR_INIT(STR_MAX_DEFAULT);
    bool to_stdout = p->set.json && strcmp(p->set.json, "-") == 0;
    report_table(report, &table_text);
    report_timings(report, &timings);
    report_json(report, &json);
    report_html(report, &html);
    const struct str *out = to_stdout ? &json : &table_text;
    if (fwrite(str_text(out), 1, out->size, stdout) != out->size ||
        fflush(stdout) != 0)
        return error_errno(err, errno ? errno : EIO, "standard output");
    fputs(str_text(&timings), stderr);
    int rc = 0;
    if (p->set.json && !to_stdout)
        rc = write_content(p->set.json, &json, err);
    if (rc == 0 && p->set.html)
        rc = write_content(p->set.html, &html, err);
    return rc;
}

static int replay(struct replay *p, struct error *err)
{
    int rc = prepare(p, err);
    if (rc < 0)
        return rc;
    struct replay_config config = {
        .fleet = &p->fleet,
        .trace = &p->trace,
        .costs = &p->costs,
        .profile = &p->profile,
        .want_gpus = strcmp(p->set.pairs, "gpu") == 0,
        .gpus_by = strcmp(p->set.gpus_by, "claims") == 0 ? GPUS_BY_CLAIMS
                                                         : GPUS_BY_PLUGIN,
        .loss = p->set.loss,
        .backfill = strcmp(p->set.backfill, "simple") == 0,
        .seed = (uint64_t)p->set.seed};
    if (config.want_gpus && p->fleet.n_gpus == 0)
        return error_set(err, EINVAL,
                         "--shape: %s has no GPU; use --pairs card",
                         p->set.shape);
    run(p, &config);
    const char *generated = p->set.generate ? p->set.generate : "mpi";
    const struct replay_report report = {
        .config = &config,
        .results = p->results,
        .n = p->n_results,
        .trace = p->file ? p->file : generated,
        .shapes = p->set.shape,
        .fabric = p->set.fabric,
        .profile = p->set.profile ? p->set.profile : "own",
        .timings = p->set.timings};
    return write_out(p, &report, err);
}

int main(int argc, char **argv)
{
    struct replay *p = xcalloc(1, sizeof *p);
    struct error err = {0};
    int first = argc;
    int rc = conf_read(&program, argc, argv, &p->set, &first, &err);
    bool usage = rc < 0;
    if (rc == 0 && argc - first > 1)
        rc = error_set(&err, EINVAL, "\"%s\": only one FILE is allowed",
                       argv[first + 1]);
    else if (rc == 0 && first < argc)
        p->file = argv[first];
    if (rc == 0)
        rc = replay(p, &err);
    if (rc < 0)
        fprintf(stderr, "biga-replay: %s\n", err.text);
    for (size_t i = 0; i < p->n_results; i++)
        replay_result_fini(&p->results[i]);
    trace_fini(&p->trace);
    replay_fleet_fini(&p->fleet);
    conf_fini(&program, &p->set);
    free(p);
    return rc < 0 ? 1 + usage : 0;
}
