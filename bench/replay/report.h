/* report - the outcome of a replay as a table, as JSON and as a page with
 * plots.  The same results give the same bytes; measured times are only in
 * them when asked for. */
#ifndef BIGA_BENCH_REPLAY_REPORT_H
#define BIGA_BENCH_REPLAY_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/replay/engine.h"
#include "lib/base/str.h"

struct replay_report {
    const struct replay_config *config;
    const struct replay_result *results; /* in the order of the policies */
    size_t n;
    const char *trace;   /* what was replayed: a file's name or the recipe */
    const char *shapes;  /* of the hosts */
    const char *fabric;  /* what was asked for */
    const char *profile; /* of the collectives: a file's name, or "own" */
    bool timings;
};

/* The results of Biga, or NULL when it was not asked for. */
const struct replay_result *report_biga(const struct replay_report *r);
/* Were there jobs of several pairs? */
bool report_has_gangs(const struct replay_report *r);
/* The most cards that pairs of the trace ask for. */
unsigned report_most_cards(const struct replay_report *r);
double share(uint64_t part, uint64_t whole);
double seconds(int64_t us);

void report_table(const struct replay_report *r, struct str *out);
void report_timings(const struct replay_report *r, struct str *out);
void report_json(const struct replay_report *r, struct str *out);
void report_html(const struct replay_report *r, struct str *out);

#endif
