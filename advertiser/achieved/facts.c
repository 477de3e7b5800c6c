#include "advertiser/achieved/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/jwrite.h"
#include "model/topo/cpulist.h"

void facts_fini(struct facts *f)
{
    free(f->pods);
    *f = (struct facts){0};
}

struct pod_facts *facts_add(struct facts *f, const char *namespace,
                            const char *name, const char *uid)
{
    struct pod_facts *p;
    if (!*namespace || strlen(namespace) >= sizeof p->namespace || !*name ||
        strlen(name) >= sizeof p->name || strlen(uid) >= sizeof p->uid)
        return NULL;
    f->pods = xgrow(f->pods, f->n, &f->cap, sizeof *f->pods);
    p = &f->pods[f->n++];
    memset(p, 0, sizeof *p);
    (void)snprintf(p->namespace, sizeof p->namespace, "%s", namespace);
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    (void)snprintf(p->uid, sizeof p->uid, "%s", uid);
    return p;
}

void fact_pcis_add(struct fact_pcis *p, const struct pci_addr *addr)
{
    size_t at = 0;
    while (at < p->n && pci_addr_compare(&p->items[at], addr) < 0)
        at++;
    if (at < p->n && pci_addr_compare(&p->items[at], addr) == 0)
        return;
    if (p->n == FACTS_PCI_MAX) {
        p->known = false;
        return;
    }
    memmove(&p->items[at + 1], &p->items[at], (p->n - at) * sizeof *p->items);
    p->items[at] = *addr;
    p->n++;
}

/* --- from look to look ----------------------------------------------------- */

static int pod_order(const void *a, const void *b)
{
    const struct pod_facts *x = a, *y = b;
    int order = strcmp(x->namespace, y->namespace);
    return order ? order : strcmp(x->name, y->name);
}

/* The pods are in order. */
static bool is_alone(const struct facts *f, size_t i)
{
    return (i == 0 || pod_order(&f->pods[i - 1], &f->pods[i]) != 0) &&
           (i + 1 == f->n || pod_order(&f->pods[i], &f->pods[i + 1]) != 0);
}

void facts_sort(struct facts *f)
{
    size_t n = 0;
    if (f->n)
        qsort(f->pods, f->n, sizeof *f->pods, pod_order);
    cleanup_free bool *stays = xcalloc(f->n + 1, sizeof *stays);
    for (size_t i = 0; i < f->n; i++)
        stays[i] = is_alone(f, i);
    for (size_t i = 0; i < f->n; i++)
        if (stays[i] && n++ != i)
            f->pods[n - 1] = f->pods[i];
    f->n = n;
}

static bool pcis_equal(const struct fact_pcis *a, const struct fact_pcis *b)
{
    if (a->known != b->known || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (pci_addr_compare(&a->items[i], &b->items[i]) != 0)
            return false;
    return true;
}

static bool indexes_equal(const struct fact_indexes *a,
                          const struct fact_indexes *b)
{
    return a->known == b->known && index_set_equal(&a->set, &b->set);
}

bool pod_facts_equal(const struct pod_facts *a, const struct pod_facts *b)
{
    return pod_order(a, b) == 0 && strcmp(a->uid, b->uid) == 0 &&
           pcis_equal(&a->cards, &b->cards) && pcis_equal(&a->gpus, &b->gpus) &&
           pcis_equal(&a->nics, &b->nics) &&
           indexes_equal(&a->cpus, &b->cpus) &&
           indexes_equal(&a->memory, &b->memory);
}

/* Of the same name; `*at` goes on. */
static const struct pod_facts *find_next(const struct facts *f, size_t *at,
                                         const struct pod_facts *p)
{
    while (*at < f->n && pod_order(&f->pods[*at], p) < 0)
        (*at)++;
    return *at < f->n && pod_order(&f->pods[*at], p) == 0 ? &f->pods[*at]
                                                          : NULL;
}

void facts_keep(struct facts *now, const struct facts *told,
                bool (*lives)(void *ctx, const struct pod_facts *pod),
                void *ctx)
{
    size_t at = 0, n = now->n;
    for (size_t i = 0; i < told->n; i++) {
        const struct pod_facts *p = &told->pods[i];
        const struct facts listed = {.pods = now->pods, .n = n};
        if (find_next(&listed, &at, p) || !lives(ctx, p))
            continue;
        now->pods = xgrow(now->pods, now->n, &now->cap, sizeof *now->pods);
        now->pods[now->n++] = *p;
    }
    facts_sort(now);
}

struct facts facts_settled(const struct facts *now, const struct facts *before,
                           const struct facts *told)
{
    struct facts out = {0};
    size_t at_before = 0, at_told = 0;
    for (size_t i = 0; i < now->n; i++) {
        const struct pod_facts *p = &now->pods[i];
        const struct pod_facts *b = find_next(before, &at_before, p);
        const struct pod_facts *t = find_next(told, &at_told, p);
        bool settled = b && pod_facts_equal(b, p);
        if (!settled && (!t || strcmp(t->uid, p->uid) != 0))
            continue;
        out.pods = xgrow(out.pods, out.n, &out.cap, sizeof *out.pods);
        out.pods[out.n++] = settled ? *p : *t;
    }
    return out;
}

/* --- CPUs and nodes ------------------------------------------------------- */

enum { NODE_NOT_KNOWN = -1 };

/* The NUMA node of each CPU. */
struct cpu_nodes {
    int16_t of[INDEX_SET_MAX];
};

static void map_cpus(const struct topo *topo, struct cpu_nodes *ret_map)
{
    size_t first, n = topo_count(topo, DEVICE_NUMA, &first);
    for (size_t i = 0; i < INDEX_SET_MAX; i++)
        ret_map->of[i] = NODE_NOT_KNOWN;
    for (size_t i = first; i < first + n; i++) {
        const struct device *d = topo_device(topo, i);
        struct cpulist list;
        if (d->numa < 0 || d->numa >= INDEX_SET_MAX ||
            cpulist_parse(d->cpu_list, &list, NULL) < 0)
            continue;
        for (size_t c = 0; c < list.n_cpus; c++)
            if (list.cpus[c] < INDEX_SET_MAX)
                ret_map->of[list.cpus[c]] = (int16_t)d->numa;
    }
}

static bool nodes_of(const struct cpu_nodes *map, const struct index_set *cpus,
                     struct index_set *ret_nodes)
{
    struct index_set nodes = {0};
    for (size_t i = index_set_next(cpus, 0); i < INDEX_SET_MAX;
         i = index_set_next(cpus, i + 1)) {
        if (map->of[i] == NODE_NOT_KNOWN)
            return false;
        (void)index_set_add(&nodes, (uint64_t)map->of[i]); /* it fits */
    }
    *ret_nodes = nodes;
    return true;
}

/* --- the report ----------------------------------------------------------- */

static void write_pcis(const struct fact_pcis *p, const char *key,
                       struct str *out)
{
    char text[PCI_ADDR_TEXT_MAX];
    if (!p->known)
        return;
    jwrite_array(out, key);
    for (size_t i = 0; i < p->n; i++) {
        pci_addr_format(&p->items[i], text);
        jwrite_text(out, NULL, text);
    }
    jwrite_end_array(out);
}

static void write_indexes(const struct index_set *s, const char *key,
                          struct str *out)
{
    jwrite_array(out, key);
    for (size_t i = index_set_next(s, 0); i < INDEX_SET_MAX;
         i = index_set_next(s, i + 1))
        jwrite_uint(out, NULL, i);
    jwrite_end_array(out);
}

static void write_cpus(const struct pod_facts *p, const struct cpu_nodes *map,
                       struct str *out)
{
    cleanup_str struct str text = STR_INIT(FACTS_CPUS_MAX);
    struct index_set nodes;
    if (!p->cpus.known)
        return;
    index_set_format(&p->cpus.set, &text);
    if (text.overflow)
        return;
    jwrite_text(out, "cpus", str_text(&text));
    if (nodes_of(map, &p->cpus.set, &nodes))
        write_indexes(&nodes, "numa", out);
}

static void write_pod(const struct pod_facts *p, const struct cpu_nodes *map,
                      struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", p->namespace);
    jwrite_text(out, "name", p->name);
    jwrite_known_text(out, "uid", p->uid);
    write_pcis(&p->cards, "cards", out);
    write_pcis(&p->gpus, "gpus", out);
    write_pcis(&p->nics, "nics", out);
    write_cpus(p, map, out);
    if (p->memory.known && index_set_count(&p->memory.set) <= TOPO_NUMAS_MAX)
        write_indexes(&p->memory.set, "memoryNuma", out);
    jwrite_end_object(out);
}

size_t facts_write(const struct facts *f, const struct topo *topo,
                   struct str *out)
{
    enum { END = sizeof "]}" };
    size_t n = 0, left_out = 0;
    struct cpu_nodes map;
    map_cpus(topo, &map);
    jwrite_object(out, NULL);
    jwrite_text(out, "node", topo_node(topo));
    jwrite_array(out, "pods");
    for (size_t i = 0; i < f->n; i++) {
        cleanup_str struct str pod = STR_INIT(FACTS_REPORT_MAX);
        write_pod(&f->pods[i], &map, &pod);
        if (left_out || n == FACTS_PODS_MAX || pod.overflow ||
            out->size + pod.size + END > FACTS_REPORT_MAX) {
            left_out++;
            continue;
        }
        str_add(out, n++ ? "," : "");
        str_add_n(out, str_text(&pod), pod.size);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
    return left_out;
}
