/* biga jobs, biga job */
#include <string.h>

#include "cli/base/age.h"
#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- the list ----------------------------------------------------------- */

static void add_count(struct table *t, double n, enum table_style style)
{
    cleanup_free char *text = xasprintf("%.0f", n);
    table_add_style(t, n > 0 ? style : STYLE_PLAIN, text);
}

static enum table_style state_style(const char *state)
{
    if (strcmp(state, "Failed") == 0)
        return STYLE_BAD;
    if (strcmp(state, "Pending") == 0 || strcmp(state, "Planned") == 0)
        return STYLE_FAIR;
    return strcmp(state, "Running") == 0 ? STYLE_GOOD : STYLE_DIM;
}

static void add_job(struct table *t, const cJSON *job)
{
    const cJSON *pairs = cJSON_GetObjectItemCaseSensitive(job, "pairs");
    const cJSON *score = cJSON_GetObjectItemCaseSensitive(job, "score");
    const char *state = json_text(job, "state");
    const char *relation = json_text(job, "relation");
    table_addf(t, "%s/%s", json_text(job, "namespace"), json_text(job, "name"));
    table_add_style(t, state_style(state), state);
    add_count(t, json_number(job, "size"), STYLE_PLAIN);
    add_count(t, json_number(job, "placed"), STYLE_PLAIN);
    add_count(t, json_number(job, "running"), STYLE_PLAIN);
    add_count(t, json_number(pairs, "held"), STYLE_FAIR);
    add_count(t, json_number(pairs, "missing"), STYLE_BAD);
    add_count(t, json_number(job, "nodes"), STYLE_PLAIN);
    add_count(t, json_number(score, "leaves"), STYLE_PLAIN);
    add_count(t, json_number(score, "crossings"), STYLE_PLAIN);
    add_count(t, json_number(score, "unaligned"), STYLE_BAD);
    table_add_style(t, relation_style(relation), relation);
    table_add(t, json_text(score, "tier"));
    age_add(t, json_text(job, "submitted"));
    table_add(t, json_text(job, "reason"));
}

static const struct listing_column job_columns[] = {
    {"JOB", 0, "NAMESPACE/JOB", NULL},
    {"STATE", 0, "Pending, Planned, Running, Succeeded or Failed", NULL},
    {"PAIRS", LISTING_RIGHT, "pairs that it is to have", ".size"},
    {"PLACED", LISTING_RIGHT, "pairs that have a place", ".placed"},
    {"RUNNING", LISTING_RIGHT, "pairs of which all pods run", ".running"},
    {"HELD", LISTING_RIGHT | LISTING_WIDE,
     "places that are kept for pairs that come", NULL},
    {"MISSING", LISTING_RIGHT | LISTING_WIDE, "pairs without a place", NULL},
    {"NODES", LISTING_RIGHT, "nodes that it is on", NULL},
    {"LEAVES", LISTING_RIGHT, "leaf switches that these hang on", NULL},
    {"CROSSINGS", LISTING_RIGHT | LISTING_WIDE,
     "pairs next to one another by rank that are on different leaves", NULL},
    {"UNALIGNED", LISTING_RIGHT, "pairs that are not as close as they ask for",
     NULL},
    {"RELATION", 0, "how close the cards of its worst pair are", NULL},
    {"WITHIN", 0, "the lowest tier of switches that all of it is below", NULL},
    {"AGE", LISTING_AGES, "since its first pod was submitted", ".submitted"},
    {"REASON", 0, "what it waits for, or why it failed", NULL},
};
const struct listing jobs_listing = {
    .columns = job_columns,
    .n_columns = ARRAY_LEN(job_columns),
    .add = add_job,
    .none = "No job is known.\n",
};

int verb_jobs(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    (void)argc;
    (void)argv;
    str_add(&path, "/v1/jobs?limit=100000");
    cli_add_query(&path, "namespace", cli_namespace(c));
    return listing_get(c, str_text(&path), &jobs_listing);
}

/* --- one job ------------------------------------------------------------ */

static void add_pair(struct table *t, const cJSON *pair)
{
    const char *state = json_text(pair, "state");
    const char *relation = cli_relation(pair);
    table_addf(t, "%.0f", json_number(pair, "rank"));
    table_add_style(t, strcmp(state, "bound") ? STYLE_FAIR : STYLE_GOOD, state);
    table_add(t, json_text(pair, "node"));
    table_add(t, json_text(pair, "leaf"));
    cli_add_devices(t, json_list(pair, "cards"));
    cli_add_devices(t, json_list(pair, "gpus"));
    cli_add_known(t, json_number(pair, "numa"));
    table_add_style(t, relation_style(relation), relation);
    achieved_add(t, pair);
    table_addf(t, "%d", cJSON_GetArraySize(json_list(pair, "members")));
    cli_add_devices(t, json_list(pair, "nics"));
}

/* Which of them have less than they were promised. */
static void say_lost(struct cli *c, const cJSON *list)
{
    const cJSON *pair;
    cJSON_ArrayForEach(pair, list)
    {
        cleanup_free char *name = xasprintf("pair %.0f",
                                            json_number(pair, "rank"));
        achieved_line(c, name, pair);
    }
}

static const struct listing_column pair_columns[] = {
    {"RANK", LISTING_RIGHT, "the pair's index in the job", NULL},
    {"STATE", 0, "bound, or held: its place is kept", NULL},
    {"NODE", 0, "where it is", NULL},
    {"LEAF", 0, "the leaf switch that its node hangs on", NULL},
    {"CARD", 0, "PCI addresses of its cards", NULL},
    {"GPU", 0, "PCI addresses of its GPUs", NULL},
    {"NUMA", LISTING_RIGHT, "the NUMA node of the host that all are next to",
     NULL},
    {"RELATION", 0, "how close its card and GPU are", NULL},
    {"ACHIEVED", 0, "what it really got of that, as its node tells", NULL},
    {"PODS", LISTING_RIGHT, "its pods that have their places", NULL},
    {"NIC", LISTING_WIDE, "PCI addresses of its compute NICs", NULL},
};
const struct listing pairs_listing = {
    .columns = pair_columns,
    .n_columns = ARRAY_LEN(pair_columns),
    .add = add_pair,
    .none = "",
    .below = say_lost,
};

static void show_pairs(struct cli *c, const cJSON *list)
{
    (void)listing_table(c, list, &pairs_listing);
}

static void say_text(struct cli *c, const char *head, const char *text)
{
    if (!*text)
        return;
    str_add(&c->out, head);
    text_clean(text, &c->out);
}

static void say_since(struct cli *c, const char *head, const char *moment)
{
    char age[AGE_SIZE];
    int64_t then_s = *moment ? clock_parse_utc(moment) : -1;
    if (then_s < 0)
        return;
    age_format(clock_wall_s() - then_s, age);
    str_addf(&c->out, "%s %s ago", head, age);
}

static void say_state(struct cli *c, const cJSON *job)
{
    str_addf(&c->out, "\nstate  %s", json_text(job, "state"));
    say_since(c, "; submitted", json_text(job, "submitted"));
    say_since(c, "; started", json_text(job, "started"));
    say_since(c, "; ended", json_text(job, "ended"));
    say_text(c, "\nreason ", json_text(job, "reason"));
}

static void say_job(struct cli *c, const cJSON *job)
{
    const cJSON *pairs = cJSON_GetObjectItemCaseSensitive(job, "pairs");
    const cJSON *score = cJSON_GetObjectItemCaseSensitive(job, "score");
    const char *tier = json_text(score, "tier");
    double nodes = json_number(job, "nodes"),
           leaves = json_number(score, "leaves"),
           crossings = json_number(score, "crossings");
    str_add(&c->out, "job    ");
    text_clean(json_text(job, "namespace"), &c->out);
    str_add_c(&c->out, '/');
    text_clean(json_text(job, "name"), &c->out);
    say_state(c, job);
    str_addf(&c->out, "\npairs  %.0f of %.0f bound, %.0f running",
             json_number(pairs, "bound"), json_number(job, "size"),
             json_number(job, "running"));
    say_text(c, "; held for: ", json_text(job, "held"));
    say_text(c, "; missing: ", json_text(job, "missing"));
    if (nodes == 0) {
        str_add_c(&c->out, '\n');
        return;
    }
    str_addf(&c->out,
             "\nplace  %.0f node%s on %.0f lea%s, %.0f crossing%s, %.0f "
             "unaligned, ",
             nodes, nodes == 1 ? "" : "s", leaves, leaves == 1 ? "f" : "ves",
             crossings, crossings == 1 ? "" : "s",
             json_number(score, "unaligned"));
    say_text(c, "within one ", tier);
    str_add(&c->out, *tier ? "\n\n" : "in no known domain\n\n");
}

/* --- the picture -------------------------------------------------------- */

/* Where one rank is. */
struct spot {
    const char *leaf, *node; /* borrowed from the answer */
    int rank;
};

static int spot_order(const void *pa, const void *pb)
{
    const struct spot *a = pa, *b = pb;
    int order = text_order(a->leaf, b->leaf);
    if (order == 0)
        order = text_order(a->node, b->node);
    return order ? order : a->rank - b->rank;
}

/* The ranks of one node as ranges. */
static void draw_ranks(const struct spot *spots, size_t n, struct str *out)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n; end++)
            if (spots[end].rank != spots[end - 1].rank + 1)
                break;
        str_addf(out, "%s%d", i ? "," : "", spots[i].rank);
        if (end - i > 1)
            str_addf(out, "-%d", spots[end - 1].rank);
    }
}

/* The nodes of one leaf. */
static void draw_leaf(const struct spot *spots, size_t n, struct str *out)
{
    text_clean(*spots->leaf ? spots->leaf : "(no known leaf)", out);
    str_addf(out, "  %zu %s\n", n, n == 1 ? "pair" : "pairs");
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n; end++)
            if (strcmp(spots[end].node, spots[i].node) != 0)
                break;
        str_add(out, end == n ? "  └─ " : "  ├─ ");
        text_clean(spots[i].node, out);
        str_add(out, "  ");
        draw_ranks(spots + i, end - i, out);
        str_add_c(out, '\n');
    }
}

void leaves_draw(const cJSON *pairs, struct str *out)
{
    size_t n = 0;
    cleanup_free struct spot *spots =
        xcalloc((size_t)cJSON_GetArraySize(pairs) + 1, sizeof *spots);
    const cJSON *x;
    cJSON_ArrayForEach(x, pairs)
    {
        spots[n++] = (struct spot){.leaf = json_text(x, "leaf"),
                                   .node = json_text(x, "node"),
                                   .rank = (int)json_number(x, "rank")};
    }
    if (n)
        qsort(spots, n, sizeof *spots, spot_order);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n; end++)
            if (strcmp(spots[end].leaf, spots[i].leaf) != 0)
                break;
        draw_leaf(spots + i, end - i, out);
    }
}

/* --- maps --------------------------------------------------------------- */

#define MAP_OPTIONS                                                           \
    "--hostfile, --pod-hostfile, --dpu-hostfile, --rankfile, --ucx, --nccl, " \
    "--urom"

/* The one file that is asked for; NULL: none.  False for several. */
static bool asked_map(const struct cli *c, const char **ret_format)
{
    const struct {
        bool asked;
        const char *format;
    } maps[] = {
        {c->set.hostfile, "hostfile"},
        {c->set.pod_hostfile, "pod-hostfile"},
        {c->set.dpu_hostfile, "dpu-hostfile"},
        {c->set.rankfile, "rankfile"},
        {c->set.ucx, "ucx"},
        {c->set.nccl, "nccl"},
        {c->set.urom, "urom"},
    };
    const char *format = NULL;
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        if (maps[i].asked && format)
            return false;
        if (maps[i].asked)
            format = maps[i].format;
    }
    *ret_format = format;
    return true;
}

/* `name` is qualified. */
int verb_job(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    const char *format;
    (void)argc;
    if (!asked_map(c, &format))
        return cli_usage("job: one file at a time: one of " MAP_OPTIONS);
    if (format && c->set.json)
        return cli_usage("job: a file is no JSON: --json, or one "
                         "of " MAP_OPTIONS);
    if (c->set.svg && (format || c->set.json))
        return cli_usage("job: a drawing is no JSON and no map: --svg alone");
    str_add(&path, "/v1/jobs/");
    cli_add_name(&path, argv[0]);
    if (c->set.svg) {
        str_add(&path, "/drawing");
        return cli_get_text(c, str_text(&path));
    }
    if (format) {
        str_addf(&path, "/maps?format=%s", format);
        return cli_get_text(c, str_text(&path));
    }
    int rc = cli_get(c, str_text(&path), &json);
    if (rc || !json)
        return rc;
    say_job(c, json);
    if (cJSON_GetArraySize(json_list(json, "pairList")) == 0)
        return 0;
    show_pairs(c, json_list(json, "pairList"));
    str_add_c(&c->out, '\n');
    leaves_draw(json_list(json, "pairList"), &c->out);
    return 0;
}
