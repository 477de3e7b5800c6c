#include "bench/replay/report.h"

#include <inttypes.h>
#include <math.h>

#include "lib/base/mem.h"
#include "lib/base/table.h"

const struct replay_result *report_biga(const struct replay_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->results[i].policy == POLICY_BIGA)
            return &r->results[i];
    return NULL;
}

bool report_has_gangs(const struct replay_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->results[i].gangs)
            return true;
    return false;
}

double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

double seconds(int64_t us)
{
    return (double)us / 1e6;
}

/* "12.3 s", "4.5 min", "6.7 h", "8.9 d" */
static void add_time(struct table *t, int64_t us)
{
    double s = seconds(us);
    if (s < 120)
        table_addf(t, "%.1f s", s);
    else if (s < 7200)
        table_addf(t, "%.1f min", s / 60);
    else if (s < 172800)
        table_addf(t, "%.1f h", s / 3600);
    else
        table_addf(t, "%.1f d", s / 86400);
}

static void add_percent(struct table *t, uint64_t part, uint64_t whole)
{
    if (whole)
        table_addf(t, "%.2f", 100 * share(part, whole));
    else
        table_add(t, NULL);
}

static void add_mean(struct table *t, uint64_t sum, uint64_t n)
{
    if (n)
        table_addf(t, "%.2f", (double)sum / (double)n);
    else
        table_add(t, NULL);
}

static void pairs_table(const struct replay_report *r, struct str *out)
{
    static const struct table_column columns[] = {
        {"PAIRS, %", false},  {"ALIGNED", true}, {"PIX", true},
        {"PXB", true},        {"PHB", true},     {"NODE", true},
        {"SOCKET", true},     {"SYS", true},     {"2+ CARDS", true},
        {"NUMA APART", true},
    };
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < r->n; i++) {
        const struct replay_result *x = &r->results[i];
        table_add(&t, replay_policy_name(x->policy));
        add_percent(&t, x->aligned, x->pairs);
        for (unsigned k = 0; k < RELATION_COUNT; k++)
            add_percent(&t, x->by_relation[k], x->pairs);
        add_percent(&t, x->wide_aligned, x->wide);
        add_percent(&t, x->narrow_apart, x->narrow);
    }
    table_write(&t, false, out);
}

static void jobs_table(const struct replay_report *r, struct str *out)
{
    static const struct table_column columns[] = {
        {"JOBS OF SEVERAL PAIRS", false},
        {"JOBS", true},
        {"LEAVES", true},
        {"CROSSINGS", true},
        {"ONE LEAF, %", true},
        {"COMM. TIME", true},
        {"SHARED LINKS, %", true},
    };
    const struct replay_result *biga = report_biga(r);
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < r->n; i++) {
        const struct replay_result *x = &r->results[i];
        table_add(&t, replay_policy_name(x->policy));
        table_addf(&t, "%" PRIu64, x->gangs);
        add_mean(&t, x->leaves, x->gangs);
        add_mean(&t, x->crossings, x->gangs);
        add_percent(&t, x->by_tier[COST_NODE] + x->by_tier[COST_LEAF],
                    x->gangs);
        double ratio = biga ? replay_comm_ratio(x, biga, r->config->trace->n)
                            : 0;
        if (ratio > 0)
            table_addf(&t, "%.3f", ratio);
        else
            table_add(&t, NULL);
        if (x->gangs)
            table_addf(&t, "%+.2f", 100 * x->held_up / (double)x->gangs);
        else
            table_add(&t, NULL);
    }
    table_write(&t, false, out);
}

static void add_change(struct table *t, double ratio)
{
    if (ratio > 0)
        table_addf(t, "%+.2f", 100 * (ratio - 1));
    else
        table_add(t, NULL);
}

/* What was promised beside what came of it. */
static void achieved_table(const struct replay_report *r, struct str *out)
{
    bool claims = r->config->gpus_by == GPUS_BY_CLAIMS;
    const struct table_column columns[] = {
        {claims ? "GPUS BY CLAIMS" : "GPUS BY PLUGIN", false},
        {"PROMISED ALIGNED, %", true},
        {"ACHIEVED", true},
        {"FARTHER", true},
        {"NEARER", true},
        {"BANDWIDTH, %", true},
        {"COMM. TIME, %", true},
    };
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < r->n; i++) {
        const struct replay_result *x = &r->results[i];
        table_add(&t, replay_policy_name(x->policy));
        add_percent(&t, x->aligned, x->pairs);
        add_percent(&t, x->achieved_aligned, x->pairs);
        add_percent(&t, x->farther, x->pairs);
        add_percent(&t, x->nearer, x->pairs);
        add_change(&t, replay_bandwidth_ratio(x));
        add_change(&t, replay_achieved_ratio(x, r->config->trace->n));
    }
    table_write(&t, false, out);
}

unsigned report_most_cards(const struct replay_report *r)
{
    unsigned most = 1;
    for (unsigned k = 1; r->n && k <= TOPO_CARDS_MAX; k++)
        if (r->results[0].by_cards[k].asked)
            most = k;
    return most;
}

static void flow_table(const struct replay_report *r, struct str *out)
{
    char refused[32];
    unsigned most = report_most_cards(r);
    const struct table_column columns[] = {
        {"FLOW", false},       {"STARTED", true},  {"REFUSED, %", true},
        {refused, true},       {"WAIT p50", true}, {"p99", true},
        {"MAKESPAN", true},    {"USED, %", true},  {"ROOM: PAIRS", true},
        {"8-PAIR JOBS", true}, {"HOSTS", true},
    };
    (void)snprintf(refused, sizeof refused, "OF %u CARD%s", most,
                   most > 1 ? "S" : "");
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < r->n; i++) {
        const struct replay_result *x = &r->results[i];
        const struct size_count *wide = &x->by_cards[most];
        double pairs, jobs, hosts;
        replay_mean_sample(x, &pairs, &jobs, &hosts);
        table_add(&t, replay_policy_name(x->policy));
        table_addf(&t, "%" PRIu64, x->started);
        add_percent(&t, x->rejected + x->impossible, x->jobs);
        add_percent(&t, wide->asked - wide->started, wide->asked);
        add_time(&t, x->wait_p50_us);
        add_time(&t, x->wait_p99_us);
        add_time(&t, x->makespan_us);
        table_addf(&t, "%.2f", 100 * x->utilisation);
        table_addf(&t, "%.1f", pairs);
        table_addf(&t, "%.1f", jobs);
        table_addf(&t, "%.1f", hosts);
    }
    table_write(&t, false, out);
}

void report_table(const struct replay_report *r, struct str *out)
{
    const struct replay_fleet *f = r->config->fleet;
    const struct trace *t = r->config->trace;
    str_add(out, "Trace ");
    text_clean(r->trace, out);
    str_addf(out, ": %zu jobs", t->n);
    if (t->n_no_card)
        str_addf(out, ", %" PRIu64 " more take no card", t->n_no_card);
    if (t->n_no_time)
        str_addf(out, ", %" PRIu64 " more never ran", t->n_no_time);
    if (t->n_late)
        str_addf(out, ", %" PRIu64 " more are behind the time limit",
                 t->n_late);
    str_addf(out, ".\nFleet: %zu hosts (", f->n);
    text_clean(r->shapes, out);
    str_addf(out,
             "), %" PRIu64 " cards, %" PRIu64 " GPUs, %zu leaf switch%s.\n",
             f->n_cards, f->n_gpus, f->n_leaves, f->n_leaves == 1 ? "" : "es");
    str_addf(out, "A pair of k cards %s.  %s\n\n",
             r->config->want_gpus ? "takes k GPUs too" : "takes cards only",
             r->config->loss ? "What does not fit at once is refused."
             : r->config->backfill
                 ? "Jobs wait in order of arrival; those behind one that does "
                   "not fit may pass it."
                 : "Jobs wait in order of arrival.");
    pairs_table(r, out);
    str_add_c(out, '\n');
    if (report_has_gangs(r)) {
        jobs_table(r, out);
        str_add_c(out, '\n');
    }
    if (r->config->want_gpus) {
        achieved_table(r, out);
        str_add_c(out, '\n');
    }
    flow_table(r, out);
    str_add(out,
            "\nALIGNED: as close as the host's hardware offers to such a pair. "
            " 2+ CARDS: the same of\npairs of two or more.  NUMA APART: pairs "
            "of 2 to 4 cards over several NUMA nodes.\nCOMM. TIME: modelled, "
            "Biga = 1.  SHARED LINKS: by how much it is longer\nas flows meet "
            "on uplinks.  ROOM: aligned pairs, 8-pair jobs on one leaf, whole\n"
            "hosts that could still start, on the average.\n");
    if (r->config->want_gpus)
        str_add(out, "ACHIEVED: with the GPUs that pairs are given.  FARTHER, "
                     "NEARER: than promised.\nBANDWIDTH, COMM. TIME: by how "
                     "much the model's changes from promised to achieved,\n"
                     "of all pairs and mean over jobs of several pairs.\n");
}

void report_timings(const struct replay_report *r, struct str *out)
{
    static const struct table_column columns[] = {
        {"TIME OF A DECISION", false},
        {"DECISIONS", true},
        {"p50, us", true},
        {"p99, us", true},
        {"REPLAY, s", true},
    };
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < r->n; i++) {
        const struct replay_result *x = &r->results[i];
        table_add(&t, replay_policy_name(x->policy));
        table_addf(&t, "%" PRIu64, x->n_decisions);
        table_addf(&t, "%.1f", x->decide_p50_us);
        table_addf(&t, "%.1f", x->decide_p99_us);
        table_addf(&t, "%.1f", x->wall_s);
    }
    table_write(&t, false, out);
}
