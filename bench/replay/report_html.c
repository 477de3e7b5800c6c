#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/replay/plot.h"
#include "bench/replay/report.h"
#include "lib/base/text.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>Biga replay</title>\n<style>\n"
    ":root{color-scheme:light "
    "dark;--paper:#fdfdfb;--ink:#1d2329;--soft:#5d6873;"
    "--line:#dadfe3;--panel:#f4f6f6;--own:#0b6e8a;--other:#9aa8b2;"
    "--r0:#0b6e8a;--r1:#4b9bb0;--r2:#9cc8d1;--r3:#f0cd86;--r4:#e0954a;"
    "--r5:#b8432f;--p0:#8d6a4f;--p1:#b07d12;--p2:#b8432f;--p3:#7a56a3;"
    "--p4:#c2569a;--p5:#4f7d3a;--p6:#5d6873;--p7:#2f8f83;--p8:#9c3d63;"
    "--p9:#3a4fa3;--p10:#0b6e8a}\n"
    "@media (prefers-color-scheme:dark){:root{--paper:#14181b;--ink:#e6eaec;"
    "--soft:#9aa6af;--line:#2f373d;--panel:#1c2226;--own:#4fb6d3;"
    "--other:#5b6871;--r0:#3fa3c0;--r1:#2f7b91;--r2:#285766;--r3:#8a6d30;"
    "--r4:#c27c36;--r5:#d9614a;--p0:#b8947a;--p1:#dba93a;--p2:#e0735e;"
    "--p3:#a98ad0;--p4:#e08cc0;--p5:#86b56f;--p6:#9aa6af;--p7:#6fc7ba;"
    "--p8:#d98aa8;--p9:#8fa3f0;--p10:#4fb6d3}}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 "
    "system-ui,sans-serif}\n"
    "main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}\n"
    "h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.1rem;margin:2.2rem 0 "
    ".2rem}p{margin:.3rem 0;color:var(--soft);max-width:46rem}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;"
    "font-variant-numeric:tabular-nums;margin:.6rem 0;width:100%}\n"
    "th,td{padding:.3rem .45rem;text-align:right;border-bottom:1px solid "
    "var(--line)}td{white-space:nowrap}th{color:var(--soft);font-weight:600;"
    "vertical-align:bottom}"
    "th:first-child,td:first-child{text-align:left}"
    "tr.own{background:var(--panel);font-weight:600}\n"
    "svg{display:block;width:100%;height:auto;margin:.6rem 0}"
    "svg text{fill:var(--ink);font:12px system-ui,sans-serif;"
    "font-variant-numeric:tabular-nums}svg .soft{fill:var(--soft)}"
    "svg .own{font-weight:600}svg .grid{stroke:var(--line);stroke-width:1}\n"
    ".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(24rem,1fr))"
    ";"
    "gap:0 2rem}ul.key{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem "
    "1.1rem;padding:0;margin:.4rem 0;font-size:.85rem}ul.key i{display:"
    "inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:"
    ".35rem;vertical-align:-1px}\n"
    "@media (max-width:30rem){.two{grid-template-columns:1fr}}\n"
    "</style>\n</head>\n<body>\n<main>\n";

/* --- the table on top --------------------------------------------------- */

static void cell(struct str *out, bool known, double value, int digits)
{
    if (known)
        str_addf(out, "<td>%.*f</td>", digits, value);
    else
        str_add(out, "<td>–</td>");
}

static void summary_row(const struct replay_report *r,
                        const struct replay_result *x, struct str *out)
{
    const struct replay_result *biga = report_biga(r);
    double pairs, jobs, hosts, gangs = (double)x->gangs;
    double ratio = biga ? replay_comm_ratio(x, biga, r->config->trace->n) : 0;
    double cost = replay_achieved_ratio(x, r->config->trace->n);
    replay_mean_sample(x, &pairs, &jobs, &hosts);
    str_addf(out, "<tr%s><td>%s</td>", x == biga ? " class=\"own\"" : "",
             replay_policy_name(x->policy));
    cell(out, x->pairs, 100 * share(x->aligned, x->pairs), 2);
    cell(out, x->gangs, (double)x->leaves / gangs, 2);
    cell(out, x->gangs, (double)x->crossings / gangs, 2);
    cell(out, ratio > 0, ratio, 3);
    cell(out, cost > 0, 100 * (cost - 1), 2);
    cell(out, x->jobs, 100 * share(x->rejected + x->impossible, x->jobs), 2);
    cell(out, x->started, seconds(x->wait_p50_us) / 60, 1);
    cell(out, x->started, seconds(x->wait_p99_us) / 60, 1);
    cell(out, true, seconds(x->makespan_us) / 3600, 1);
    cell(out, true, 100 * x->utilisation, 2);
    cell(out, true, jobs, 1);
    if (r->timings) {
        cell(out, true, x->decide_p50_us, 1);
        cell(out, true, x->decide_p99_us, 1);
    }
    str_add(out, "</tr>\n");
}

static void summary(const struct replay_report *r, struct str *out)
{
    str_add(
        out,
        "<div class=\"wide\"><table>\n<tr><th>policy</th><th>aligned pairs, "
        "%</th><th>leaves per job</th><th>crossings</th><th>comm. time"
        "</th><th>as achieved, + %</th><th>refused, %</th><th>wait p50, "
        "min</th><th>p99, min</th>"
        "<th>makespan, h</th><th>used, %</th><th>8-pair jobs that still "
        "fit</th>");
    if (r->timings)
        str_add(out, "<th>decision p50, µs</th><th>p99, µs</th>");
    str_add(out, "</tr>\n");
    for (size_t i = 0; i < r->n; i++)
        summary_row(r, &r->results[i], out);
    str_add(out, "</table></div>\n");
}

static void intro(const struct replay_report *r, struct str *out)
{
    const struct replay_config *c = r->config;
    str_add(out, "<h1>Replay of ");
    text_escape(r->trace, out);
    str_addf(out, "</h1>\n<p>%zu jobs on %zu hosts (", c->trace->n,
             c->fleet->n);
    text_escape(r->shapes, out);
    str_addf(out,
             ") with %" PRIu64 " cards and %" PRIu64 " GPUs below %zu leaf "
             "switches. A pair of k cards %s. %s Seed %" PRIu64 ".</p>\n",
             c->fleet->n_cards, c->fleet->n_gpus, c->fleet->n_leaves,
             c->want_gpus ? "takes k GPUs too" : "takes cards only",
             c->loss ? "What does not fit at once is refused."
                     : "What does not fit waits, in the order of arrival.",
             c->seed);
    if (c->trace->n_no_card + c->trace->n_no_time + c->trace->n_late)
        str_addf(out,
                 "<p>Left out: %" PRIu64 " jobs that take no card, %" PRIu64
                 " that never ran, %" PRIu64 " behind the time limit.</p>\n",
                 c->trace->n_no_card, c->trace->n_no_time, c->trace->n_late);
}

/* --- plots -------------------------------------------------------------- */

static void relations_plot(const struct replay_report *r, struct str *out)
{
    str_add(out, "<h2>How close pairs are</h2>\n<p>Share of pairs by the "
                 "relation between their GPUs, or NUMA node, and their cards, "
                 "closest first; at the right, how many are as close as their "
                 "host can do.</p>\n<ul class=\"key\">");
    for (unsigned k = 0; k < RELATION_COUNT; k++)
        str_addf(out, "<li><i style=\"background:var(--r%u)\"></i>%s</li>", k,
                 relation_name(k));
    str_add(out, "</ul>\n");
    plot_relations(r, out);
}

enum figure {
    LEAVES,
    CROSSINGS,
    COMM,
    REFUSED,
    REFUSED_WIDE,
    WAIT,
    MAKESPAN,
    ROOM
};

static double figure_of(const struct replay_report *r,
                        const struct replay_result *x, enum figure figure)
{
    const struct size_count *wide;
    double pairs, jobs, hosts, gangs = x->gangs ? (double)x->gangs : 1;
    switch (figure) {
    case LEAVES:
        return (double)x->leaves / gangs;
    case CROSSINGS:
        return (double)x->crossings / gangs;
    case COMM:
        return replay_comm_ratio(x, report_biga(r), r->config->trace->n);
    case REFUSED:
        return 100 * share(x->rejected + x->impossible, x->jobs);
    case REFUSED_WIDE:
        wide = &x->by_cards[report_most_cards(r)];
        return 100 * share(wide->asked - wide->started, wide->asked);
    case WAIT:
        return seconds(x->wait_p99_us) / 60;
    case MAKESPAN:
        return seconds(x->makespan_us) / 3600;
    case ROOM:
        replay_mean_sample(x, &pairs, &jobs, &hosts);
        return hosts;
    }
    return 0;
}

static void bars(const struct replay_report *r, enum figure figure,
                 const char *title, const char *text, struct str *out)
{
    struct plot_bar list[POLICY_COUNT];
    for (size_t i = 0; i < r->n; i++)
        list[i] = (struct plot_bar){replay_policy_name(r->results[i].policy),
                                    figure_of(r, &r->results[i], figure),
                                    r->results[i].policy == POLICY_BIGA};
    str_addf(out, "<section><h2>%s</h2>\n<p>%s</p>\n", title, text);
    plot_bars(list, r->n, title, out);
    str_add(out, "</section>\n");
}

static void all_bars(const struct replay_report *r, struct str *out)
{
    str_add(out, "<div class=\"two\">\n");
    if (report_has_gangs(r)) {
        bars(r, LEAVES, "Leaf switches per job",
             "Of jobs of several pairs; fewer are better.", out);
        bars(r, CROSSINGS, "Crossings per job",
             "Neighbours in the order of ranks that are below different "
             "leaves.",
             out);
        if (report_biga(r))
            bars(r, COMM, "Communication time",
                 "Modelled (alpha-beta) over placed relations and tiers, mean "
                 "over jobs, Biga = 1.",
                 out);
    }
    if (r->config->loss)
        bars(r, REFUSED, "Jobs refused, %", "They did not fit on arrival.",
             out);
    else
        bars(r, WAIT, "Wait, p99, minutes",
             "From arrival to start, of the jobs that started.", out);
    if (r->config->loss)
        bars(r, REFUSED_WIDE, "Refused of the widest pairs, %",
             "Of the jobs whose pairs ask for the most cards.", out);
    else
        bars(r, MAKESPAN, "Makespan, hours",
             "From the first arrival to the end of the last job.", out);
    bars(r, ROOM, "Whole hosts that still fit",
         "How many pairs that take all of a host could still start aligned, "
         "mean over time; more are better.",
         out);
    str_add(out, "</div>\n");
}

static void room_plot(const struct replay_report *r, struct str *out)
{
    str_add(out, "<h2>Room left over time</h2>\n<p>How many more jobs of eight "
                 "aligned pairs of one card could start, each below one leaf "
                 "switch, while jobs arrive.</p>\n<ul class=\"key\">");
    for (size_t i = 0; i < r->n; i++)
        str_addf(out, "<li><i style=\"background:var(--p%d)\"></i>%s</li>",
                 (int)r->results[i].policy,
                 replay_policy_name(r->results[i].policy));
    str_add(out, "</ul>\n");
    plot_room(r, out);
}

void report_html(const struct replay_report *r, struct str *out)
{
    str_add(out, head);
    intro(r, out);
    summary(r, out);
    relations_plot(r, out);
    all_bars(r, out);
    room_plot(r, out);
    str_add(out,
            "<h2>How to read this</h2>\n<p>All policies see the same arrivals "
            "on the same hosts. All but leaf-best-fit+aligned and Biga place "
            "pod by pod; of equal nodes all but first-fit and Biga take one at "
            "random, as kube-scheduler does. ");
    if (r->config->want_gpus)
        str_addf(out,
                 "All is told as promised but what is called achieved: there "
                 "%s. ",
                 r->config->gpus_by == GPUS_BY_CLAIMS
                     ? "claims pin the GPUs that were promised"
                     : "a device plugin gives each pair the free GPUs of the "
                       "lowest index");
    str_add(out, "Communication profile: ");
    text_escape(r->profile, out);
    str_add(out, ". The constants of the model and their sources are in "
                 "bench/replay/costs.json; what each figure means is in "
                 "bench/README.md.</p>\n</main>\n</body>\n</html>\n");
}
