#include "model/topo/cpulist.h"

#include <stdlib.h>
#include <string.h>

/* --- reading ------------------------------------------------------------ */

static bool number_read(const char **p, uint32_t *ret_number)
{
    uint32_t n = 0;
    size_t digits = strspn(*p, "0123456789");
    if (digits == 0 || digits > 5 || (**p == '0' && digits > 1))
        return false;
    for (size_t i = 0; i < digits; i++)
        n = n * 10 + (uint32_t)((*p)[i] - '0');
    *p += digits;
    *ret_number = n;
    return n <= CPULIST_INDEX_MAX;
}

/* N, N-M or N-M:S.  False when it is none, or there are too many CPUs. */
static bool range_read(const char **p, struct cpulist *list)
{
    uint32_t first, last, step = 1;
    if (!number_read(p, &first))
        return false;
    last = first;
    if (**p == '-') {
        ++*p;
        if (!number_read(p, &last) || last <= first)
            return false;
        if (**p == ':') {
            ++*p;
            if (!number_read(p, &step) || step < 2 ||
                (last - first) % step != 0)
                return false;
        }
    }
    for (uint32_t cpu = first; cpu <= last; cpu += step) {
        if (list->n_cpus == CPULIST_CPUS_MAX)
            return false;
        list->cpus[list->n_cpus++] = (uint16_t)cpu;
    }
    return true;
}

static bool row_read(const char **p, struct cpulist *list)
{
    uint16_t begin = list->n_cpus;
    if (list->n_rows == CPULIST_ROWS_MAX || !range_read(p, list))
        return false;
    while (**p == ',') {
        ++*p;
        if (!range_read(p, list))
            return false;
    }
    uint16_t size = (uint16_t)(list->n_cpus - begin);
    if (list->n_rows && size > list->sizes[list->n_rows - 1])
        return false;
    list->sizes[list->n_rows++] = size;
    return true;
}

static int cpu_order(const void *a, const void *b)
{
    const uint16_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* A CPU that is there twice, or -1. */
static int find_twice(const struct cpulist *list)
{
    uint16_t sorted[CPULIST_CPUS_MAX];
    memcpy(sorted, list->cpus, list->n_cpus * sizeof *sorted);
    qsort(sorted, list->n_cpus, sizeof *sorted, cpu_order);
    for (size_t i = 1; i < list->n_cpus; i++)
        if (sorted[i] == sorted[i - 1])
            return sorted[i];
    return -1;
}

int cpulist_parse(const char *text, struct cpulist *ret_list, struct error *err)
{
    struct cpulist list = {0};
    const char *p = text;
    bool good = true;
    while (*p && good) {
        good = row_read(&p, &list);
        if (good && *p == ';' && p[1])
            p++;
        else if (*p)
            good = false;
    }
    if (!good)
        return error_set(err, EINVAL,
                         "is \"%.64s\", must be CPUs like \"0-15\", or, row "
                         "by row, the first and the second threads of the "
                         "cores like \"0-15;32-47\" or \"0-30:2;1-31:2\"",
                         text);
    int twice = find_twice(&list);
    if (twice >= 0)
        return error_set(err, EINVAL, "is \"%.64s\", which has CPU %d twice",
                         text, twice);
    *ret_list = list;
    return 0;
}

/* --- writing ------------------------------------------------------------ */

/* How many CPUs from `i` on are one range, and its step. */
static size_t range_size(const uint16_t *cpus, size_t n, uint16_t *ret_step)
{
    size_t k = 1;
    *ret_step = 1;
    if (n < 2 || cpus[1] <= cpus[0])
        return 1;
    *ret_step = (uint16_t)(cpus[1] - cpus[0]);
    while (k < n && cpus[k] > cpus[k - 1] && cpus[k] - cpus[k - 1] == *ret_step)
        k++;
    if (*ret_step > 1 && k < 3)
        k = 1; /* two apart are no range */
    return k;
}

static void add_row(struct str *out, const uint16_t *cpus, size_t n, bool steps)
{
    for (size_t i = 0, size; i < n; i += size) {
        uint16_t step;
        size = range_size(cpus + i, n - i, &step);
        if (step > 1 && !steps)
            size = 1;
        str_addf(out, "%s%u", i ? "," : "", cpus[i]);
        if (size > 1)
            str_addf(out, "-%u", cpus[i + size - 1]);
        if (size > 1 && step > 1)
            str_addf(out, ":%u", step);
    }
}

bool cpulist_format(const struct cpulist *list,
                    char ret_text[CPULIST_TEXT_MAX + 1])
{
    cleanup_str struct str text = STR_INIT(CPULIST_TEXT_MAX);
    const uint16_t *row = list->cpus;
    for (size_t i = 0; i < list->n_rows; i++) {
        str_add(&text, i ? ";" : "");
        add_row(&text, row, list->sizes[i], true);
        row += list->sizes[i];
    }
    if (text.overflow)
        return false;
    (void)snprintf(ret_text, CPULIST_TEXT_MAX + 1, "%s", str_text(&text));
    return true;
}

bool cpulist_part(const struct cpulist *list, size_t i, size_t n,
                  struct str *out)
{
    uint16_t cpus[CPULIST_CPUS_MAX];
    size_t n_cores = list->n_rows ? list->sizes[0] : 0, k = 0;
    const uint16_t *row = list->cpus;
    if (list->n_cpus < n)
        return false;
    if (n_cores >= n) {
        size_t first = i * n_cores / n, end = (i + 1) * n_cores / n;
        for (size_t r = 0; r < list->n_rows; r++) {
            for (size_t c = first; c < end && c < list->sizes[r]; c++)
                cpus[k++] = row[c];
            row += list->sizes[r];
        }
    } else {
        size_t end = (i + 1) * list->n_cpus / n;
        for (size_t c = i * list->n_cpus / n; c < end; c++)
            cpus[k++] = row[c];
    }
    qsort(cpus, k, sizeof *cpus, cpu_order);
    add_row(out, cpus, k, false);
    return true;
}
