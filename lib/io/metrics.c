#include "lib/io/metrics.h"

#include <stdatomic.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

enum { BUCKETS = 15 };

/* Upper bounds of the buckets of a duration or a wait, and how they are
 * written. */
struct bucket {
    uint64_t nanoseconds;
    const char *text;
};
static const struct bucket of_durations[BUCKETS] = {
    {25000, "0.000025"}, {50000, "0.00005"}, {100000, "0.0001"},
    {250000, "0.00025"}, {500000, "0.0005"}, {1000000, "0.001"},
    {2500000, "0.0025"}, {5000000, "0.005"}, {10000000, "0.01"},
    {25000000, "0.025"}, {50000000, "0.05"}, {100000000, "0.1"},
    {250000000, "0.25"}, {500000000, "0.5"}, {1000000000, "1"},
};
static const struct bucket of_waits[BUCKETS] = {
    {100000000, "0.1"},        {250000000, "0.25"},
    {500000000, "0.5"},        {1000000000, "1"},
    {2500000000, "2.5"},       {5000000000, "5"},
    {10000000000, "10"},       {30000000000, "30"},
    {60000000000, "60"},       {300000000000, "300"},
    {900000000000, "900"},     {3600000000000, "3600"},
    {14400000000000, "14400"}, {43200000000000, "43200"},
    {86400000000000, "86400"},
};

struct series {
    size_t family;
    char labels[METRICS_LABELS_MAX][METRICS_VALUE_MAX + 1];
    _Atomic int64_t value;  /* counter, gauge; of a duration: its count */
    _Atomic uint64_t total; /* nanoseconds */
    _Atomic uint64_t within[BUCKETS]; /* not cumulative */
};

struct metrics {
    const struct metric_family *families;
    size_t n_families;
    _Atomic uint64_t dropped;
    atomic_size_t n_series;
    _Atomic(struct series *) slots[METRICS_SERIES_MAX * 2];
};

static bool is_histogram(const struct metric_family *f)
{
    return f->type == METRIC_DURATION || f->type == METRIC_WAIT;
}

static const struct bucket *buckets_of(const struct metric_family *f)
{
    return f->type == METRIC_WAIT ? of_waits : of_durations;
}

static size_t count_labels(const struct metric_family *f)
{
    size_t n = 0;
    while (n < METRICS_LABELS_MAX && f->labels[n])
        n++;
    return n;
}

struct metrics *metrics_create(const struct metric_family *families, size_t n)
{
    struct metrics *m = xcalloc(1, sizeof *m);
    m->families = families;
    m->n_families = n;
    return m;
}

void metrics_destroy(struct metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < ARRAY_LEN(m->slots); i++)
        free(atomic_load(&m->slots[i]));
    free(m);
}

static bool series_is(const struct series *s, size_t family,
                      const char *const *labels, size_t n)
{
    if (s->family != family)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strncmp(s->labels[i], labels[i], METRICS_VALUE_MAX) != 0)
            return false;
    return true;
}

static size_t series_slot(const struct metrics *m, size_t family,
                          const char *const *labels, size_t n)
{
    uint64_t h = family;
    for (size_t i = 0; i < n; i++)
        h = h * 31 +
            hash_bytes(labels[i], strnlen(labels[i], METRICS_VALUE_MAX));
    return hash_mix(h, UINT64_C(0x9e3779b97f4a7c15)) % ARRAY_LEN(m->slots);
}

static struct series *series_create(size_t family, const char *const *labels,
                                    size_t n)
{
    struct series *s = xcalloc(1, sizeof *s);
    s->family = family;
    for (size_t i = 0; i < n; i++)
        (void)snprintf(s->labels[i], sizeof s->labels[i], "%s", labels[i]);
    return s;
}

/* The series, NULL when it is not there and may not or cannot be made. */
static struct series *series_find(const struct metrics *m, size_t family,
                                  const char *const *labels)
{
    size_t n = count_labels(&m->families[family]);
    size_t at = series_slot(m, family, labels, n);
    for (size_t i = 0; i < ARRAY_LEN(m->slots); i++) {
        struct series *s = atomic_load_explicit(
            &m->slots[(at + i) % ARRAY_LEN(m->slots)], memory_order_acquire);
        if (!s || series_is(s, family, labels, n))
            return s;
    }
    return NULL;
}

static struct series *series_add(struct metrics *m, size_t family,
                                 const char *const *labels)
{
    size_t n = count_labels(&m->families[family]);
    size_t at = series_slot(m, family, labels, n);
    if (atomic_fetch_add(&m->n_series, 1) >= METRICS_SERIES_MAX) {
        atomic_fetch_sub(&m->n_series, 1);
        atomic_fetch_add(&m->dropped, 1);
        return NULL;
    }
    struct series *fresh = series_create(family, labels, n);
    for (size_t i = 0; i < ARRAY_LEN(m->slots); i++) {
        struct series *there = NULL;
        if (atomic_compare_exchange_strong(
                &m->slots[(at + i) % ARRAY_LEN(m->slots)], &there, fresh))
            return fresh;
        if (series_is(there, family, labels, n)) {
            /* another thread was faster */
            atomic_fetch_sub(&m->n_series, 1);
            free(fresh);
            return there;
        }
    }
    free(fresh); /* not reached: the table has twice as many slots */
    return NULL;
}

static struct series *series_get(struct metrics *m, size_t family,
                                 const char *const *labels)
{
    if (!m || family >= m->n_families)
        return NULL;
    struct series *s = series_find(m, family, labels);
    return s ? s : series_add(m, family, labels);
}

void metrics_add(struct metrics *m, size_t family, const char *const *labels,
                 uint64_t n)
{
    struct series *s = series_get(m, family, labels);
    if (s)
        atomic_fetch_add_explicit(&s->value, (int64_t)n, memory_order_relaxed);
}

void metrics_set(struct metrics *m, size_t family, const char *const *labels,
                 int64_t value)
{
    struct series *s = series_get(m, family, labels);
    if (s)
        atomic_store_explicit(&s->value, value, memory_order_relaxed);
}

void metrics_observe(struct metrics *m, size_t family,
                     const char *const *labels, uint64_t nanoseconds)
{
    struct series *s = series_get(m, family, labels);
    if (!s)
        return;
    const struct bucket *buckets = buckets_of(&m->families[family]);
    size_t i = 0;
    while (i < BUCKETS && nanoseconds > buckets[i].nanoseconds)
        i++;
    if (i < BUCKETS)
        atomic_fetch_add_explicit(&s->within[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->total, nanoseconds, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->value, 1, memory_order_relaxed);
}

int64_t metrics_get(const struct metrics *m, size_t family,
                    const char *const *labels)
{
    if (!m || family >= m->n_families)
        return 0;
    const struct series *s = series_find(m, family, labels);
    return s ? atomic_load(&s->value) : 0;
}

/* --- writing -------------------------------------------------------------- */

static void write_escaped(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            str_add_c(out, '\\');
        if (*text == '\n')
            str_add(out, "\\n");
        else
            str_add_c(out, *text);
    }
}

static void write_name(struct str *out, const struct metric_family *f,
                       const char *const *labels, const char *suffix,
                       const char *le)
{
    size_t n = count_labels(f);
    str_add(out, f->name);
    str_add(out, suffix);
    if (n || le)
        str_add_c(out, '{');
    for (size_t i = 0; i < n; i++) {
        str_addf(out, "%s%s=\"", i ? "," : "", f->labels[i]);
        write_escaped(out, labels[i]);
        str_add_c(out, '"');
    }
    if (le)
        str_addf(out, "%sle=\"%s\"", n ? "," : "", le);
    if (n || le)
        str_add_c(out, '}');
    str_add_c(out, ' ');
}

static void write_histogram(struct str *out, const struct metric_family *f,
                            const char *const *labels, const struct series *s)
{
    const struct bucket *buckets = buckets_of(f);
    uint64_t sum = 0, total = atomic_load(&s->total);
    /* read first, so that no bucket exceeds it for long */
    uint64_t count = (uint64_t)atomic_load(&s->value);
    for (size_t i = 0; i < BUCKETS; i++) {
        sum += atomic_load(&s->within[i]);
        if (sum > count)
            count = sum;
        write_name(out, f, labels, "_bucket", buckets[i].text);
        str_add_u64(out, sum);
        str_add_c(out, '\n');
    }
    write_name(out, f, labels, "_bucket", "+Inf");
    str_addf(out, "%llu\n", (unsigned long long)count);
    write_name(out, f, labels, "_sum", NULL);
    str_addf(out, "%llu.%09llu\n", (unsigned long long)(total / 1000000000),
             (unsigned long long)(total % 1000000000));
    write_name(out, f, labels, "_count", NULL);
    str_addf(out, "%llu\n", (unsigned long long)count);
}

void metrics_write_sample(const struct metric_family *family,
                          const char *const *labels, int64_t value,
                          struct str *out)
{
    write_name(out, family, labels, "", NULL);
    str_add_i64(out, value);
    str_add_c(out, '\n');
}

static void write_series(struct str *out, const struct metric_family *f,
                         const struct series *s)
{
    const char *labels[METRICS_LABELS_MAX];
    for (size_t i = 0; i < METRICS_LABELS_MAX; i++)
        labels[i] = s->labels[i];
    if (is_histogram(f))
        write_histogram(out, f, labels, s);
    else
        metrics_write_sample(f, labels, atomic_load(&s->value), out);
}

static int series_compare(const void *a, const void *b)
{
    const struct series *x = *(struct series *const *)a;
    const struct series *y = *(struct series *const *)b;
    if (x->family != y->family)
        return x->family < y->family ? -1 : 1;
    for (size_t i = 0; i < METRICS_LABELS_MAX; i++) {
        int r = strcmp(x->labels[i], y->labels[i]);
        if (r)
            return r;
    }
    return 0;
}

void metrics_write_head(const struct metric_family *family, struct str *out)
{
    static const char *const types[] = {"counter", "gauge", "histogram",
                                        "histogram"};
    str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help,
             family->name, types[family->type]);
}

void metrics_write(const struct metrics *m, struct str *out)
{
    static const struct metric_family dropped = {
        .name = "biga_metrics_dropped_total",
        .help = "Counts that found no room for their series.",
        .type = METRIC_COUNTER};
    cleanup_free struct series **all = xcalloc(METRICS_SERIES_MAX, sizeof *all);
    size_t n = 0, at = 0;
    for (size_t i = 0; i < ARRAY_LEN(m->slots) && n < METRICS_SERIES_MAX; i++) {
        struct series *s = atomic_load(&m->slots[i]);
        if (s)
            all[n++] = s;
    }
    qsort(all, n, sizeof *all, series_compare);
    for (size_t f = 0; f < m->n_families; f++) {
        const struct metric_family *family = &m->families[f];
        metrics_write_head(family, out);
        if (count_labels(family) == 0 && (at == n || all[at]->family != f))
            write_series(out, family, &(struct series){.family = f});
        for (; at < n && all[at]->family == f; at++)
            write_series(out, family, all[at]);
    }
    metrics_write_head(&dropped, out);
    metrics_write_sample(&dropped, NULL, (int64_t)atomic_load(&m->dropped),
                         out);
}
