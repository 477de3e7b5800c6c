#include "extender/achieved/achieved_report.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/refs.h"
#include "model/topo/cpulist.h"

enum { PCI_TEXT_MAX = 64, NUMA_INDEX_MAX = 65535 };

DEFINE_REF(achieved_report_ref, struct achieved_report)

void achieved_report_unref(struct achieved_report *r)
{
    if (!r || !refs_drop(&r->refs))
        return;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct achieved_facts *f = &r->pods[i];
        free(f->cards.at);
        free(f->gpus.at);
        free(f->nics.at);
        free(f->cpus);
        free(f->numa.at);
        free(f->memory_numa.at);
    }
    free(r->pods);
    free(r);
}

/* --- names -------------------------------------------------------------- */

static void read_name(struct reader *r, const char *name, bool required,
                      char *to, size_t cap)
{
    const char *text = required ? reader_string(r, name, cap - 1)
                                : reader_opt_string(r, name, cap - 1);
    if (text && !*text)
        (void)reader_fail(r, name, "must not be empty");
    else if (text)
        memcpy(to, text, strlen(text) + 1);
}

/* --- lists -------------------------------------------------------------- */

static int compare_addrs(const void *a, const void *b)
{
    return pci_addr_compare(a, b);
}

static int compare_indexes(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* The elements of a list, which are of `size` bytes and sorted by this. */
static void check_once(struct reader *r, const char *name, void *at, size_t n,
                       size_t size, int (*compare)(const void *, const void *))
{
    if (n)
        qsort(at, n, size, compare);
    for (size_t i = 1; i < n; i++)
        if (compare((char *)at + (i - 1) * size, (char *)at + i * size) == 0)
            (void)reader_fail(r, name, "names one twice");
}

static void read_devices(struct reader *r, const char *name,
                         struct achieved_devices *to)
{
    const cJSON *list = reader_opt_array(r, name, ACHIEVED_DEVICES_MAX), *item;
    if (!list)
        return;
    to->told = true;
    to->at = xcalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *to->at);
    cJSON_ArrayForEach(item, list)
    {
        const char *text = cJSON_GetStringValue(item);
        struct error err;
        if (!text || strlen(text) > PCI_TEXT_MAX ||
            pci_addr_parse(text, &to->at[to->n], &err) < 0)
            (void)reader_fail(r, name,
                              "has \"%.64s\", must be addresses such as "
                              "\"0000:17:00.0\"",
                              text ? text : "(no text)");
        to->n++;
    }
    check_once(r, name, to->at, to->n, sizeof *to->at, compare_addrs);
}

static void read_numas(struct reader *r, const char *name,
                       struct achieved_numas *to)
{
    const cJSON *list = reader_opt_array(r, name, ACHIEVED_NUMAS_MAX), *item;
    if (!list)
        return;
    to->told = true;
    to->at = xcalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *to->at);
    cJSON_ArrayForEach(item, list)
    {
        double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (value < 0 || value > NUMA_INDEX_MAX || value != (uint16_t)value)
            (void)reader_fail(r, name, "must be whole numbers from 0 to %d",
                              NUMA_INDEX_MAX);
        else
            to->at[to->n++] = (uint16_t)value;
    }
    check_once(r, name, to->at, to->n, sizeof *to->at, compare_indexes);
}

static void read_cpus(struct reader *r, struct achieved_facts *f)
{
    const char *text = reader_opt_string(r, "cpus", ACHIEVED_CPUS_TEXT_MAX);
    cleanup_free struct cpulist *list = NULL;
    struct error err;
    if (!text)
        return;
    list = xcalloc(1, sizeof *list);
    if (strpbrk(text, ":;"))
        (void)reader_fail(r, "cpus", "is \"%.64s\", must be as in \"0-7,32\"",
                          text);
    else if (cpulist_parse(text, list, &err) < 0)
        (void)reader_fail(r, "cpus", "%.160s", err.text);
    f->cpus = xstrdup(text);
    f->n_cpus = list->n_cpus;
}

/* --- pods --------------------------------------------------------------- */

static int read_pod(const cJSON *json, size_t index, struct achieved_facts *f,
                    struct error *err)
{
    struct reader r;
    char path[32];
    (void)snprintf(path, sizeof path, "pods[%zu]", index);
    reader_init(&r, json, path, err);
    read_name(&r, "namespace", true, f->namespace, sizeof f->namespace);
    read_name(&r, "name", true, f->name, sizeof f->name);
    read_name(&r, "uid", false, f->uid, sizeof f->uid);
    read_devices(&r, "cards", &f->cards);
    read_devices(&r, "gpus", &f->gpus);
    read_devices(&r, "nics", &f->nics);
    read_cpus(&r, f);
    read_numas(&r, "numa", &f->numa);
    read_numas(&r, "memoryNuma", &f->memory_numa);
    return reader_finish_lenient(&r);
}

static int compare_pods(const void *pa, const void *pb)
{
    const struct achieved_facts *a = pa, *b = pb;
    int order = strcmp(a->namespace, b->namespace);
    return order ? order : strcmp(a->name, b->name);
}

static int read_pods(const cJSON *list, struct achieved_report *report,
                     struct error *err)
{
    const cJSON *item;
    report->pods = xcalloc((size_t)cJSON_GetArraySize(list) + 1,
                           sizeof *report->pods);
    cJSON_ArrayForEach(item, list)
    {
        size_t at = report->n_pods++;
        int e = read_pod(item, at, &report->pods[at], err);
        if (e < 0)
            return e;
    }
    if (report->n_pods)
        qsort(report->pods, report->n_pods, sizeof *report->pods, compare_pods);
    for (size_t i = 1; i < report->n_pods; i++)
        if (compare_pods(&report->pods[i - 1], &report->pods[i]) == 0)
            return error_set(err, EINVAL, "pods: %s/%s is there twice",
                             report->pods[i].namespace, report->pods[i].name);
    return 0;
}

int achieved_report_parse(const char *json, size_t size,
                          struct achieved_report **ret_report,
                          struct error *err)
{
    cleanup_with(achieved_report) struct achieved_report *report = NULL;
    cleanup_with(json) cJSON *object = NULL;
    struct reader r;
    if (size > ACHIEVED_BODY_MAX)
        return error_set(err, EINVAL, "has %zu bytes, at most %d are allowed",
                         size, ACHIEVED_BODY_MAX);
    int e = json_parse(json, size, &object, err);
    if (e < 0)
        return e;
    report = xcalloc(1, sizeof *report);
    atomic_init(&report->refs, 1);
    reader_init(&r, object, "", err);
    read_name(&r, "node", true, report->node, sizeof report->node);
    const cJSON *pods = reader_array(&r, "pods", ACHIEVED_PODS_MAX);
    e = reader_finish_lenient(&r);
    if (e == 0)
        e = read_pods(pods, report, err);
    if (e == 0)
        *ret_report = steal(&report);
    return e;
}

const struct achieved_facts *
achieved_report_find(const struct achieved_report *r, const struct demand *pod)
{
    struct achieved_facts key = {0};
    if (!r || r->n_pods == 0)
        return NULL;
    memcpy(key.namespace, pod->namespace, sizeof key.namespace);
    memcpy(key.name, pod->name, sizeof key.name);
    const struct achieved_facts *f = bsearch(&key, r->pods, r->n_pods,
                                             sizeof *r->pods, compare_pods);
    return f && f->uid[0] && strcmp(f->uid, pod->uid) != 0 ? NULL : f;
}
