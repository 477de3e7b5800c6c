#include "lib/io/metrics.h"

#include <stdatomic.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

/* Upper bounds of a duration's buckets, and how they are written. */
static const struct {
    uint64_t nanoseconds;
    const char *text;
} buckets[] = {
    {25000, "0.000025"}, {50000, "0.00005"}, {100000, "0.0001"},
    {250000, "0.00025"}, {500000, "0.0005"}, {1000000, "0.001"},
    {2500000, "0.0025"}, {5000000, "0.005"}, {10000000, "0.01"},
    {25000000, "0.025"}, {50000000, "0.05"}, {100000000, "0.1"},
    {250000000, "0.25"}, {500000000, "0.5"}, {1000000000, "1"},
};

struct series {
    size_t family;
    char labels[METRICS_LABELS_MAX][METRICS_VALUE_MAX + 1];
    _Atomic int64_t value;  /* counter, gauge; of a duration: its count */
    _Atomic uint64_t total; /* nanoseconds */
    _Atomic uint64_t within[ARRAY_LEN(buckets)]; /* not cumulative */
};

struct metrics {
    const struct metric_family *families;
    size_t n_families;
    _Atomic uint64_t dropped;
    atomic_size_t n_series;
    _Atomic(struct series *) slots[METRICS_SERIES_MAX * 2];
};

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
    size_t i = 0;
    while (i < ARRAY_LEN(buckets) && nanoseconds > buckets[i].nanoseconds)
        i++;
    if (i < ARRAY_LEN(buckets))
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
                       const struct series *s, const char *suffix,
                       const char *le)
{
    size_t n = count_labels(f);
    str_add(out, f->name);
    str_add(out, suffix);
    if (n || le)
        str_add_c(out, '{');
    for (size_t i = 0; i < n; i++) {
        str_addf(out, "%s%s=\"", i ? "," : "", f->labels[i]);
        write_escaped(out, s->labels[i]);
        str_add_c(out, '"');
    }
    if (le)
        str_addf(out, "%sle=\"%s\"", n ? "," : "", le);
    if (n || le)
        str_add_c(out, '}');
    str_add_c(out, ' ');
}

static void write_duration(struct str *out, const struct metric_family *f,
                           const struct series *s)
{
    uint64_t sum = 0, total = atomic_load(&s->total);
    /* read first, so that no bucket exceeds it for long */
    uint64_t count = (uint64_t)atomic_load(&s->value);
    for (size_t i = 0; i < ARRAY_LEN(buckets); i++) {
        sum += atomic_load(&s->within[i]);
        if (sum > count)
            count = sum;
        write_name(out, f, s, "_bucket", buckets[i].text);
        str_add_u64(out, sum);
        str_add_c(out, '\n');
    }
    write_name(out, f, s, "_bucket", "+Inf");
    str_addf(out, "%llu\n", (unsigned long long)count);
    write_name(out, f, s, "_sum", NULL);
    str_addf(out, "%llu.%09llu\n", (unsigned long long)(total / 1000000000),
             (unsigned long long)(total % 1000000000));
    write_name(out, f, s, "_count", NULL);
    str_addf(out, "%llu\n", (unsigned long long)count);
}

static void write_series(struct str *out, const struct metric_family *f,
                         const struct series *s)
{
    if (f->type == METRIC_DURATION) {
        write_duration(out, f, s);
        return;
    }
    write_name(out, f, s, "", NULL);
    str_add_i64(out, atomic_load(&s->value));
    str_add_c(out, '\n');
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

static void write_head(struct str *out, const char *name, const char *help,
                       enum metric_type type)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
             types[type]);
}

void metrics_write(const struct metrics *m, struct str *out)
{
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
        write_head(out, family->name, family->help, family->type);
        if (count_labels(family) == 0 && (at == n || all[at]->family != f))
            write_series(out, family, &(struct series){.family = f});
        for (; at < n && all[at]->family == f; at++)
            write_series(out, family, all[at]);
    }
    write_head(out, "biga_metrics_dropped_total",
               "Counts that found no room for their series.", METRIC_COUNTER);
    str_addf(out, "biga_metrics_dropped_total %llu\n",
             (unsigned long long)atomic_load(&m->dropped));
}
