#include <inttypes.h>

#include "bench/replay/report.h"

static void add_u64(struct str *out, const char *name, uint64_t value)
{
    str_addf(out, ",\n      \"%s\": %" PRIu64, name, value);
}

static void add_double(struct str *out, const char *name, double value)
{
    str_addf(out, ",\n      \"%s\": %.6g", name, value);
}

static void add_sizes(const struct replay_result *x, struct str *out)
{
    bool first = true;
    str_add(out, ",\n      \"byCards\": {");
    for (unsigned k = 1; k <= TOPO_CARDS_MAX; k++) {
        const struct size_count *c = &x->by_cards[k];
        if (!c->asked)
            continue;
        str_addf(out,
                 "%s\"%u\": {\"asked\": %" PRIu64 ", \"started\": %" PRIu64 "}",
                 first ? "" : ", ", k, c->asked, c->started);
        first = false;
    }
    str_add_c(out, '}');
}

static void add_samples(const struct replay_result *x, struct str *out)
{
    str_add(out, ",\n      \"samples\": [");
    for (size_t i = 0; i < x->n_samples; i++) {
        const struct replay_sample *s = &x->samples[i];
        str_addf(out,
                 "%s\n        {\"atSeconds\": %.6g, \"used\": %.6g, \"pairs\": "
                 "%u, \"eightPairJobs\": %u, \"hosts\": %u}",
                 i ? "," : "", seconds(s->at_us), s->used, s->pairs, s->jobs,
                 s->hosts);
    }
    str_add(out, "\n      ]");
}

static void add_relations(struct str *out, const char *name,
                          const uint64_t pairs[RELATION_COUNT])
{
    str_addf(out, ",\n      \"%s\": {", name);
    for (unsigned k = 0; k < RELATION_COUNT; k++)
        str_addf(out, "%s\"%s\": %" PRIu64, k ? ", " : "", relation_name(k),
                 pairs[k]);
    str_add_c(out, '}');
}

static void add_achieved(const struct replay_report *r,
                         const struct replay_result *x, struct str *out)
{
    add_relations(out, "achievedPairsByRelation", x->achieved_by_relation);
    add_u64(out, "achievedAligned", x->achieved_aligned);
    add_u64(out, "pairsFartherThanPromised", x->farther);
    add_u64(out, "pairsNearerThanPromised", x->nearer);
    add_double(out, "bandwidthAchievedOverPromised", replay_bandwidth_ratio(x));
    add_double(out, "communicationTimeAchievedOverPromised",
               replay_achieved_ratio(x, r->config->trace->n));
}

static void add_pairs(const struct replay_result *x, struct str *out)
{
    add_u64(out, "pairs", x->pairs);
    add_relations(out, "pairsByRelation", x->by_relation);
    add_u64(out, "aligned", x->aligned);
    add_double(out, "alignedShare", share(x->aligned, x->pairs));
    add_u64(out, "pairsOfTwoOrMoreCards", x->wide);
    add_u64(out, "alignedOfTwoOrMoreCards", x->wide_aligned);
    add_u64(out, "pairsOfTwoToFourCards", x->narrow);
    add_u64(out, "numaApartOfTwoToFourCards", x->narrow_apart);
}

static void add_result(const struct replay_report *r,
                       const struct replay_result *x, struct str *out)
{
    const struct replay_result *biga = report_biga(r);
    double pairs, jobs, hosts;
    replay_mean_sample(x, &pairs, &jobs, &hosts);
    str_addf(out, "    {\n      \"policy\": \"%s\"",
             replay_policy_name(x->policy));
    add_u64(out, "jobs", x->jobs);
    add_u64(out, "started", x->started);
    add_u64(out, "rejected", x->rejected);
    add_u64(out, "impossible", x->impossible);
    add_sizes(x, out);
    add_pairs(x, out);
    add_u64(out, "jobsOfSeveralPairs", x->gangs);
    add_double(out, "leavesPerJob", share(x->leaves, x->gangs));
    add_double(out, "crossingsPerJob", share(x->crossings, x->gangs));
    str_addf(out,
             ",\n      \"jobsByTier\": {\"node\": %" PRIu64
             ", \"leaf\": %" PRIu64 ", \"spine\": %" PRIu64
             ", \"core\": %" PRIu64 "}",
             x->by_tier[COST_NODE], x->by_tier[COST_LEAF],
             x->by_tier[COST_SPINE], x->by_tier[COST_CORE]);
    add_double(out, "communicationTimeOverBiga",
               biga ? replay_comm_ratio(x, biga, r->config->trace->n) : 0);
    add_double(out, "heldUpBySharedLinks",
               x->gangs ? x->held_up / (double)x->gangs : 0);
    if (r->config->want_gpus)
        add_achieved(r, x, out);
    add_double(out, "waitMeanSeconds", x->wait_mean_us / 1e6);
    add_double(out, "waitP50Seconds", seconds(x->wait_p50_us));
    add_double(out, "waitP99Seconds", seconds(x->wait_p99_us));
    add_double(out, "makespanSeconds", seconds(x->makespan_us));
    add_double(out, "utilisation", x->utilisation);
    add_double(out, "roomPairs", pairs);
    add_double(out, "roomEightPairJobs", jobs);
    add_double(out, "roomHosts", hosts);
    if (r->timings) {
        add_u64(out, "decisions", x->n_decisions);
        add_double(out, "decisionP50Microseconds", x->decide_p50_us);
        add_double(out, "decisionP99Microseconds", x->decide_p99_us);
        add_double(out, "replaySeconds", x->wall_s);
    }
    add_samples(x, out);
    str_add(out, "\n    }");
}

void report_json(const struct replay_report *r, struct str *out)
{
    const struct replay_config *c = r->config;
    const struct trace *t = c->trace;
    str_add(out, "{\n  \"trace\": {\"name\": ");
    str_add_json(out, r->trace);
    str_addf(out,
             ", \"jobs\": %zu, \"withoutCard\": %" PRIu64
             ", \"neverRan\": %" PRIu64 ", \"behindTimeLimit\": %" PRIu64
             "},\n",
             t->n, t->n_no_card, t->n_no_time, t->n_late);
    str_addf(out, "  \"seed\": %" PRIu64 ",\n  \"fleet\": {\"hosts\": %zu, ",
             c->seed, c->fleet->n);
    str_add(out, "\"shapes\": ");
    str_add_json(out, r->shapes);
    str_add(out, ", \"fabric\": ");
    str_add_json(out, r->fabric);
    str_addf(out,
             ", \"cards\": %" PRIu64 ", \"gpus\": %" PRIu64
             ", \"leaves\": %zu},\n",
             c->fleet->n_cards, c->fleet->n_gpus, c->fleet->n_leaves);
    if (c->want_gpus)
        str_addf(out, "  \"gpusBy\": \"%s\",\n",
                 c->gpus_by == GPUS_BY_CLAIMS ? "claims" : "plugin");
    str_addf(out,
             "  \"pairsTakeGpus\": %s,\n  \"loss\": %s,\n  \"backfill\": %s,\n"
             "  \"profile\": ",
             c->want_gpus ? "true" : "false", c->loss ? "true" : "false",
             c->backfill ? "true" : "false");
    str_add_json(out, r->profile);
    str_add(out, ",\n  \"results\": [\n");
    for (size_t i = 0; i < r->n; i++) {
        add_result(r, &r->results[i], out);
        str_add(out, i + 1 < r->n ? ",\n" : "\n");
    }
    str_add(out, "  ]\n}\n");
}
