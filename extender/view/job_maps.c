#include "extender/view/job_maps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/topo/cpulist.h"

enum { DPU_NAME_MAX = 253 + 1 + TOPO_ID_MAX };

static const char *const format_names[MAP_FORMATS] = {
    [MAP_HOSTFILE] = "hostfile",
    [MAP_POD_HOSTFILE] = "pod-hostfile",
    [MAP_DPU_HOSTFILE] = "dpu-hostfile",
    [MAP_RANKFILE] = "rankfile",
    [MAP_UCX] = "ucx",
    [MAP_NCCL] = "nccl",
    [MAP_UROM] = "urom",
};

const char *map_format_name(enum map_format format)
{
    return (unsigned)format < MAP_FORMATS ? format_names[format] : "";
}

int map_format_parse(const char *text, enum map_format *ret_format,
                     struct error *err)
{
    for (int i = 0; i < MAP_FORMATS; i++) {
        if (strcmp(text, format_names[i]) == 0) {
            *ret_format = (enum map_format)i;
            return 0;
        }
    }
    return error_set(
        err, EINVAL,
        "is \"%.32s\", must be \"hostfile\", \"pod-hostfile\", "
        "\"dpu-hostfile\", \"rankfile\", \"ucx\", \"nccl\" or \"urom\"",
        text);
}

/* --- cards -------------------------------------------------------------- */

static const struct device *card_of(const struct map_rank *r, size_t card)
{
    return r->topo ? topo_find(r->topo, r->place->cards[card]) : NULL;
}

/* These texts come from the nodes: none of them may add words or lines to a
 * file. */
static bool is_word(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("._-:", text[i]))
            return false;
    return size > 0;
}

static bool is_name(const char *text)
{
    return is_word(text, strlen(text)) && !strchr(text, ':');
}

static int fail_card(const struct map_rank *r, size_t card, const char *what,
                     struct error *err)
{
    return error_set(err, ENODATA, "rank %d: card %s of node %s has no %s",
                     r->rank, r->place->cards[card], r->place->node, what);
}

/* The host name of a card's own operating system: that of its endpoint, or
 * else the node's name and the card's. */
static void dpu_name(const struct map_rank *r, size_t card,
                     char ret_name[DPU_NAME_MAX + 1])
{
    const struct device *d = card_of(r, card);
    const char *text = d ? topo_identity(r->topo, d).endpoint : "";
    const char *scheme = strstr(text, "://");
    text = scheme ? scheme + 3 : text;
    size_t size = strcspn(text, ":/");
    if (*text == '[') { /* an address of IPv6 */
        text++;
        size = strcspn(text, "]");
    }
    if (is_word(text, size))
        (void)snprintf(ret_name, DPU_NAME_MAX + 1, "%.*s", (int)size, text);
    else
        (void)snprintf(ret_name, DPU_NAME_MAX + 1, "%s-%s", r->place->node,
                       r->place->cards[card]);
}

/* --- what is there several times ---------------------------------------- */

/* A line of a file: its text, where it was first seen, and how often. */
struct line {
    char *text;
    size_t order, n;
};

struct lines {
    struct line *list;
    size_t n, cap;
};

static void lines_add(struct lines *l, char *text)
{
    l->list = xgrow(l->list, l->n, &l->cap, sizeof *l->list);
    l->list[l->n] = (struct line){.text = text, .order = l->n, .n = 1};
    l->n++;
}

static int text_order(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int seen_order(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* Each text once, in the order in which they were first added. */
static void lines_merge(struct lines *l)
{
    size_t kept = 0;
    if (l->n == 0)
        return;
    qsort(l->list, l->n, sizeof *l->list, text_order);
    for (size_t i = 1; i < l->n; i++) {
        if (strcmp(l->list[i].text, l->list[kept].text) == 0) {
            l->list[kept].n++;
            free(l->list[i].text);
        } else {
            l->list[++kept] = l->list[i];
        }
    }
    l->n = kept + 1;
    qsort(l->list, l->n, sizeof *l->list, seen_order);
}

static void lines_fini(struct lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->list[i].text);
    free(l->list);
}

static void add_slots(struct lines *l, struct str *out)
{
    lines_merge(l);
    for (size_t i = 0; i < l->n; i++)
        str_addf(out, "%s slots=%zu max_slots=%zu\n", l->list[i].text,
                 l->list[i].n, l->list[i].n);
}

/* --- the files ---------------------------------------------------------- */

static void write_hostfile(const struct map_rank *ranks, size_t n,
                           struct str *out)
{
    struct lines lines = {0};
    for (size_t i = 0; i < n; i++)
        lines_add(&lines, xstrdup(ranks[i].place->node));
    add_slots(&lines, out);
    lines_fini(&lines);
}

/* Names of pods are names of DNS, or they would not be bound. */
static int write_pod_hostfile(const struct map_rank *ranks, size_t n,
                              struct str *out, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct demand *d = &ranks[i].place->demand;
        if (d->role != ROLE_HOST || !is_name(d->name))
            return error_set(err, ENODATA, "rank %d has no host pod yet",
                             ranks[i].rank);
        str_addf(out, "%s slots=1 max_slots=1\n", d->name);
    }
    return 0;
}

static void write_dpu_hostfile(const struct map_rank *ranks, size_t n,
                               struct str *out)
{
    struct lines lines = {0};
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < ranks[i].place->n_cards; c++) {
            char name[DPU_NAME_MAX + 1];
            dpu_name(&ranks[i], c, name);
            lines_add(&lines, xstrdup(name));
        }
    }
    add_slots(&lines, out);
    lines_fini(&lines);
}

/* The devices by which a rank communicates: its NICs, or else its cards.  Of
 * one without an RDMA device UCX takes the network device. */
static int add_net_devices(const struct map_rank *r, bool interfaces,
                           struct str *out, struct error *err)
{
    const struct allocation *a = r->place;
    size_t n = a->n_nics ? a->n_nics : a->n_cards;
    for (size_t i = 0; i < n; i++) {
        const char *id = a->n_nics ? a->nics[i] : a->cards[i];
        const struct device *d = r->topo ? topo_find(r->topo, id) : NULL;
        str_add(out, i ? "," : "");
        if (d && is_name(d->rdma))
            str_addf(out, "%s:1", d->rdma);
        else if (d && interfaces && is_name(d->interface))
            str_add(out, d->interface);
        else
            return error_set(err, ENODATA,
                             "rank %d: %s %s of node %s has no known RDMA%s "
                             "device",
                             r->rank, a->n_nics ? "NIC" : "card", id, a->node,
                             interfaces ? " or network" : "");
    }
    return 0;
}

/* One line for each rank; `setting` with its '='. */
static int write_net_devices(const char *setting, bool interfaces,
                             const struct map_rank *ranks, size_t n,
                             struct str *out, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        str_addf(out, "%d %s %s", ranks[i].rank, ranks[i].place->node, setting);
        rc = add_net_devices(&ranks[i], interfaces, out, err);
        str_add_c(out, '\n');
    }
    return rc;
}

static int add_services(const struct map_rank *r, struct lines *lines,
                        struct error *err)
{
    for (size_t c = 0; c < r->place->n_cards; c++) {
        const struct device *d = card_of(r, c);
        char name[DPU_NAME_MAX + 1], pci[PCI_ADDR_TEXT_MAX];
        if (!d || !is_name(d->rdma))
            return fail_card(r, c, "known RDMA device", err);
        if (!d->has_pci)
            return fail_card(r, c, "known PCI address", err);
        dpu_name(r, c, name);
        pci_addr_format(&d->pci, pci);
        lines_add(lines, xasprintf("%s dpu %s %s %s:1\n", r->place->node, name,
                                   pci, d->rdma));
    }
    return 0;
}

static int write_urom(const struct map_rank *ranks, size_t n, struct str *out,
                      struct error *err)
{
    struct lines lines = {0};
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_services(&ranks[i], &lines, err);
    lines_merge(&lines);
    for (size_t i = 0; i < lines.n && rc == 0; i++)
        str_add(out, lines.list[i].text);
    lines_fini(&lines);
    return rc;
}

/* --- binding ------------------------------------------------------------ */

/* A rank and its part of the CPUs of its NUMA node. */
struct share {
    const struct map_rank *rank;
    int numa;    /* os index, -1 unknown */
    int package; /* os index, -1 unknown */
    size_t part, parts;
};

/* The NUMA node that the pair was placed by, when one of its cards is on it;
 * else that of its first card. */
static void share_find(struct share *s)
{
    const struct allocation *a = s->rank->place;
    s->numa = s->package = -1;
    for (size_t c = 0; c < a->n_cards; c++) {
        const struct device *d = card_of(s->rank, c);
        if (!d)
            continue;
        if (s->numa < 0 || d->numa == a->numa)
            s->numa = d->numa;
        if (s->package < 0)
            s->package = d->package;
    }
    if (s->numa < 0)
        s->numa = a->numa;
}

static int share_order(const void *a, const void *b)
{
    const struct share *x = *(const struct share *const *)a;
    const struct share *y = *(const struct share *const *)b;
    int order = strcmp(x->rank->place->node, y->rank->place->node);
    if (order == 0)
        order = (x->numa > y->numa) - (x->numa < y->numa);
    if (order == 0)
        order = (x->rank->rank > y->rank->rank) -
                (x->rank->rank < y->rank->rank);
    return order;
}

static bool same_numa(const struct share *a, const struct share *b)
{
    return a->numa == b->numa &&
           strcmp(a->rank->place->node, b->rank->place->node) == 0;
}

/* Count who shares a NUMA node, in the order of ranks. */
static void shares_count(struct share *shares, size_t n)
{
    cleanup_free struct share **order = xcalloc(n + 1, sizeof(struct share *));
    for (size_t i = 0; i < n; i++)
        order[i] = &shares[i];
    qsort(order, n, sizeof(struct share *), share_order);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && same_numa(order[i], order[end]); end++)
            order[end]->part = end - i;
        for (size_t k = i; k < end; k++)
            order[k]->parts = end - i;
    }
}

static const struct device *numa_device(const struct share *s)
{
    size_t first, n;
    if (!s->rank->topo || s->numa < 0)
        return NULL;
    n = topo_count(s->rank->topo, DEVICE_NUMA, &first);
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(s->rank->topo, first + i);
        if (d->numa == s->numa)
            return d;
    }
    return NULL;
}

static int add_slot(const struct share *s, struct str *out, struct error *err)
{
    const struct device *numa = numa_device(s);
    const char *node = s->rank->place->node;
    int package = numa && numa->package >= 0 ? numa->package : s->package;
    struct cpulist list;
    str_addf(out, "rank %d=%s slot=", s->rank->rank, node);
    if (numa && *numa->cpu_list) {
        int rc = cpulist_parse(numa->cpu_list, &list, err);
        if (rc < 0)
            return rc;
        if (!cpulist_part(&list, s->part, s->parts, out))
            return error_set(err, ENODATA,
                             "rank %d: NUMA node %d of node %s has %d CPUs "
                             "for %zu ranks of the job",
                             s->rank->rank, s->numa, node, list.n_cpus,
                             s->parts);
    } else if (package >= 0) {
        str_addf(out, "%d:*", package);
    } else {
        return error_set(err, ENODATA,
                         "rank %d: neither the CPUs nor the package near its "
                         "card are known of node %s",
                         s->rank->rank, node);
    }
    str_add_c(out, '\n');
    return 0;
}

static int write_rankfile(const struct map_rank *ranks, size_t n,
                          struct str *out, struct error *err)
{
    cleanup_free struct share *shares = xcalloc(n + 1, sizeof *shares);
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        shares[i].rank = &ranks[i];
        share_find(&shares[i]);
    }
    shares_count(shares, n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_slot(&shares[i], out, err);
    return rc;
}

int map_write(enum map_format format, const struct map_rank *ranks, size_t n,
              struct str *out, struct error *err)
{
    switch (format) {
    case MAP_HOSTFILE:
        write_hostfile(ranks, n, out);
        return 0;
    case MAP_POD_HOSTFILE:
        return write_pod_hostfile(ranks, n, out, err);
    case MAP_DPU_HOSTFILE:
        write_dpu_hostfile(ranks, n, out);
        return 0;
    case MAP_RANKFILE:
        return write_rankfile(ranks, n, out, err);
    case MAP_UCX:
        return write_net_devices("UCX_NET_DEVICES=", true, ranks, n, out, err);
    case MAP_NCCL: /* the second '=': these names, not what begins so */
        return write_net_devices("NCCL_IB_HCA==", false, ranks, n, out, err);
    case MAP_UROM:
        return write_urom(ranks, n, out, err);
    case MAP_FORMATS:
        break;
    }
    return error_set(err, EINVAL, "format: is %d", (int)format);
}
