/* plot - the plots of the report, as SVG that takes its colours from the
 * page. */
#ifndef BIGA_BENCH_REPLAY_PLOT_H
#define BIGA_BENCH_REPLAY_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/replay/report.h"
#include "lib/base/str.h"

struct plot_bar {
    const char *label;
    double value;
    bool own; /* stands out */
};

/* Horizontal bars from 0, with their values; `title` is for screen
 * readers. */
void plot_bars(const struct plot_bar *bars, size_t n, const char *title,
               struct str *out);
/* One bar per policy, cut by relation. */
void plot_relations(const struct replay_report *r, struct str *out);
/* Lines over time: 8-pair jobs that still fit. */
void plot_room(const struct replay_report *r, struct str *out);

#endif
