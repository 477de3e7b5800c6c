/* print_tree - a node as a tree for people: packages, NUMA nodes, host
 * bridges, PCI bridges, devices. */
#include "advertiser/probe/print.h"

#include <string.h>

/* PCI devices in the order of the tree: by where they hang, then by PCI
 * address; so that what is printed together is adjacent. */
struct tree {
    const struct topo *topo;
    struct str *out;
    size_t *order; /* indexes of the PCI devices */
    size_t n;
    const struct device *before; /* the PCI device printed last, or NULL */
};

static int int_order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int path_order(const struct device *a, const struct device *b)
{
    int order = 0;
    for (unsigned i = 0; order == 0; i++) {
        if (i == a->n_path || i == b->n_path)
            return int_order(a->n_path, b->n_path);
        order = pci_addr_compare(&a->path[i], &b->path[i]);
    }
    return order;
}

static int place_order(const struct device *a, const struct device *b)
{
    int order = int_order(a->package, b->package);
    if (order == 0)
        order = int_order(a->numa, b->numa);
    if (order == 0)
        order = int_order(a->root_domain, b->root_domain);
    if (order == 0)
        order = int_order(a->root_bus, b->root_bus);
    if (order == 0)
        order = path_order(a, b);
    return order ? order : pci_addr_compare(&a->pci, &b->pci);
}

static int index_order(const void *a, const void *b, void *ctx)
{
    const struct topo *topo = ctx;
    return place_order(topo_device(topo, *(const size_t *)a),
                       topo_device(topo, *(const size_t *)b));
}

static void indent_add(struct str *out, unsigned level)
{
    str_addf(out, "%*s", (int)(2 * level), "");
}

static void memory_add(struct str *out, uint64_t mib)
{
    if (mib >= 1024)
        str_addf(out, "%.1f GiB", (double)mib / 1024);
    else
        str_addf(out, "%llu MiB", (unsigned long long)mib);
}

static void field_add(struct str *out, const char *name, const char *value)
{
    if (*value)
        str_addf(out, ", %s%s%s", name, *name ? " " : "", value);
}

static void card_fields(const struct device *d, const struct identity *own,
                        struct str *out)
{
    if (d->n_functions > 1)
        str_addf(out, ", %u functions", d->n_functions);
    field_add(out, "", d->arch);
    if (d->cores)
        str_addf(out, ", %u cores", d->cores);
    if (d->memory_mib) {
        str_add(out, ", ");
        memory_add(out, d->memory_mib);
    }
    field_add(out, "fabric port", own->fabric_port);
    field_add(out, "runtime", own->endpoint);
    if (*d->link)
        str_addf(out, ", link %s", d->link);
    if (d->link_mbps)
        str_addf(out, " %u Mb/s", d->link_mbps);
    field_add(out, "mode", d->mode);
    if (d->vfs_max)
        str_addf(out, ", %u of %u virtual functions", d->vfs, d->vfs_max);
    if (d->by_claims)
        str_add(out, ", by claims");
    if (d->unhealthy)
        str_add(out, ", unhealthy");
}

static void device_print(const struct topo *topo, const struct device *d,
                         unsigned level, struct str *out)
{
    const struct identity own = topo_identity(topo, d);
    char pci[PCI_ADDR_TEXT_MAX];
    pci_addr_format(&d->pci, pci);
    indent_add(out, level);
    str_addf(out, "%s %s  ", device_kind_name(d->kind), pci);
    if (*d->vendor && strncmp(d->model, d->vendor, strlen(d->vendor)) != 0)
        str_addf(out, "%s ", d->vendor);
    if (*d->model)
        str_addf(out, "%s ", d->model);
    str_addf(out, "[%04x:%04x]", d->vendor_id, d->device_id);
    field_add(out, "", d->interface);
    field_add(out, "", d->rdma);
    if (d->kind == DEVICE_CARD)
        card_fields(d, &own, out);
    if (d->set_aside)
        str_add(out, ", set aside");
    field_add(out, "guid", own.guid);
    field_add(out, "serial", own.serial);
    str_add_c(out, '\n');
}

/* Print a PCI device with the bridges above it that the one before has not
 * printed. */
static void pci_print(struct tree *t, const struct device *d, unsigned level)
{
    const struct device *b = t->before;
    const bool same_root = b && b->package == d->package &&
                           b->numa == d->numa &&
                           b->root_domain == d->root_domain &&
                           b->root_bus == d->root_bus;
    if (!same_root) {
        indent_add(t->out, level);
        if (d->root_domain == TOPO_ROOT_NONE)
            str_add(t->out, "unknown host bridge\n");
        else
            str_addf(t->out, "host bridge %04x:%02x\n",
                     (unsigned)d->root_domain, d->root_bus);
    }
    unsigned same = 0;
    while (same_root && same < b->n_path && same < d->n_path &&
           pci_addr_compare(&b->path[same], &d->path[same]) == 0)
        same++;
    for (; same < d->n_path; same++) {
        char text[PCI_ADDR_TEXT_MAX];
        pci_addr_format(&d->path[same], text);
        indent_add(t->out, level + 1 + same);
        str_addf(t->out, "bridge %s\n", text);
    }
    device_print(t->topo, d, level + 1 + d->n_path, t->out);
    t->before = d;
}

static void place_print(struct tree *t, int package, int numa, unsigned level)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct device *d = topo_device(t->topo, t->order[i]);
        if (d->package == package && d->numa == numa)
            pci_print(t, d, level);
    }
}

static void numa_print(struct tree *t, const struct device *numa,
                       unsigned level)
{
    indent_add(t->out, level);
    str_addf(t->out, "NUMA node %d: %u CPUs, ", numa->numa, numa->cpus);
    memory_add(t->out, numa->numa_memory_mib);
    str_add_c(t->out, '\n');
    /* a device may be of this NUMA node and yet of no package */
    for (size_t i = 0; i < t->n; i++) {
        const struct device *d = topo_device(t->topo, t->order[i]);
        if (d->numa == numa->numa)
            pci_print(t, d, level + 1);
    }
}

/* What is in a package (-1: in none): its NUMA nodes, then the devices whose
 * NUMA node is unknown. */
static void package_print(struct tree *t, int package)
{
    size_t first, n = topo_count(t->topo, DEVICE_NUMA, &first);
    unsigned level = 1;
    if (package >= 0) {
        str_addf(t->out, "  package %d\n", package);
        level = 2;
    }
    for (size_t i = first; i < first + n; i++)
        if (topo_device(t->topo, i)->package == package)
            numa_print(t, topo_device(t->topo, i), level);
    bool any = false;
    for (size_t i = 0; i < t->n && !any; i++) {
        const struct device *d = topo_device(t->topo, t->order[i]);
        any = d->package == package && d->numa < 0;
    }
    if (!any)
        return;
    indent_add(t->out, level);
    str_add(t->out, "NUMA node unknown\n");
    place_print(t, package, -1, level + 1);
}

/* The least package that is greater, or -1. */
static int package_next(const struct topo *topo, int package)
{
    int next = -1;
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        int p = topo_device(topo, i)->package;
        if (p > package && (next < 0 || p < next))
            next = p;
    }
    return next;
}

static void summary_add(const struct topo *topo, struct str *out)
{
    static const char *const plurals[] = {"cards", "GPUs", "NICs",
                                          "NUMA nodes"};
    static const char *const singulars[] = {"card", "GPU", "NIC", "NUMA node"};
    str_addf(out, "%s: ", topo_node(topo));
    for (unsigned kind = 0; kind <= DEVICE_NUMA; kind++) {
        size_t n = topo_count(topo, (enum device_kind)kind, NULL);
        if (kind)
            str_add(out, ", ");
        if (n == 0)
            str_addf(out, "no %s", singulars[kind]);
        else
            str_addf(out, "%zu %s", n, (n == 1 ? singulars : plurals)[kind]);
    }
    str_add_c(out, '\n');
}

void print_tree(const struct topo *topo, struct str *out)
{
    size_t n_pci;
    topo_count(topo, DEVICE_NUMA, &n_pci);
    cleanup_free size_t *order = xcalloc(n_pci + 1, sizeof(*order));
    struct tree t = {.topo = topo, .out = out, .order = order};
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        const struct device *d = topo_device(topo, i);
        if (d->has_pci && d->kind != DEVICE_NUMA)
            order[t.n++] = i;
    }
    qsort_r(order, t.n, sizeof(*order), index_order, (void *)topo);
    summary_add(topo, out);
    for (int package = package_next(topo, -1); package >= 0;
         package = package_next(topo, package))
        package_print(&t, package);
    package_print(&t, -1);
    if (topo_count(topo, DEVICE_CARD, NULL) == 0)
        str_add(out,
                "\nNo card: no PCI function of this host is known to be a "
                "DPU, IPU or SmartNIC.\nIf one is, name it in the card file "
                "(--card-file FILE):\n"
                "  {\"cards\": [{\"match\": {\"pci\": \"0000:17:00.0\"}, "
                "\"arch\": \"arm64\"}]}\n");
}
