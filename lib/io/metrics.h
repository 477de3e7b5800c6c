/* metrics - counters, gauges and histograms in the Prometheus text format.
 *
 * The families are a constant table; series (a family with label values)
 * appear when first touched, in a table of fixed size.  Touching a series is
 * a hash look-up and an atomic add: any thread, no lock, no allocation once
 * the series is there.  Label values must come from small closed sets: when
 * the table is full further series are counted together in
 * biga_metrics_dropped_total. */
#ifndef BIGA_LIB_IO_METRICS_H
#define BIGA_LIB_IO_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

enum {
    METRICS_LABELS_MAX = 3,
    METRICS_VALUE_MAX = 63, /* bytes of one label value; longer is cut */
    METRICS_SERIES_MAX = 1024,
};

enum metric_type {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_DURATION, /* a histogram: of work, microseconds to a second */
    METRIC_WAIT,     /* the same: of what people wait for, up to a day */
};

struct metric_family {
    const char *name; /* "biga_binds_total"; histograms end in _seconds */
    const char *help; /* one sentence */
    enum metric_type type;
    const char *labels[METRICS_LABELS_MAX]; /* unused ones NULL */
};
/* One of a table: its type without METRIC_, its name and help, its labels. */
#define METRIC_FAMILY(type, name, help, ...) \
    {                                        \
        name, help, METRIC_##type,           \
        {                                    \
            __VA_ARGS__                      \
        }                                    \
    }

struct metrics;
/* `families` outlives the result. */
struct metrics *metrics_create(const struct metric_family *families, size_t n);
void metrics_destroy(struct metrics *m); /* NULL allowed */

/* `family` is an index into the table; `labels` has as many values as the
 * family has labels (NULL when it has none).  A NULL `m` does nothing. */
void metrics_add(struct metrics *m, size_t family, const char *const *labels,
                 uint64_t n);
void metrics_set(struct metrics *m, size_t family, const char *const *labels,
                 int64_t value);
void metrics_observe(struct metrics *m, size_t family,
                     const char *const *labels, uint64_t nanoseconds);

/* One label, or none: the common cases. */
static inline void metrics_count(struct metrics *m, size_t family,
                                 const char *label)
{
    metrics_add(m, family, label ? &label : NULL, 1);
}

/* The present value of a counter or gauge (of a duration: its count), 0
 * when it was never touched. */
int64_t metrics_get(const struct metrics *m, size_t family,
                    const char *const *labels);

/* A family that is in no table, for what is counted anew whenever it is asked
 * for and may have any number of series: its head, then each sample with as
 * many label values as it has labels.  Not of METRIC_DURATION. */
void metrics_write_head(const struct metric_family *family, struct str *out);
void metrics_write_sample(const struct metric_family *family,
                          const char *const *labels, int64_t value,
                          struct str *out);

/* All series in the text exposition format, families in the order of the
 * table, series in the order of their label values. */
void metrics_write(const struct metrics *m, struct str *out);
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

#endif
