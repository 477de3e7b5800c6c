/* print - the matrix and the relations; print_tree.c has the tree. */
#include "advertiser/probe/print.h"

#include <string.h>

#include "lib/base/jwrite.h"

enum { COLUMN_MIN = 6 };

/* --- the matrix --------------------------------------------------------- */

static void pad_to(struct str *out, const char *text, size_t width)
{
    str_addf(out, "%-*s", (int)width, text);
}

/* Columns are numbered by kind, as "card0"; the legend has their ids. */
static void column_name(const struct topo *topo, size_t index,
                        char ret_name[16])
{
    const struct device *d = topo_device(topo, index);
    size_t first;
    topo_count(topo, d->kind, &first);
    snprintf(ret_name, 16, "%s%u", device_kind_name(d->kind),
             (unsigned)(index - first));
}

static void numa_text(int numa, char ret_text[12])
{
    if (numa < 0)
        snprintf(ret_text, 12, "-");
    else
        snprintf(ret_text, 12, "%d", numa);
}

static void matrix_row(const struct topo *topo, size_t row, size_t n,
                       struct str *out)
{
    const struct device *d = topo_device(topo, row);
    char name[16], numa[12], package[12];
    column_name(topo, row, name);
    pad_to(out, name, COLUMN_MIN + 3);
    for (size_t i = 0; i < n; i++) {
        column_name(topo, i, name);
        size_t width = strlen(name) < COLUMN_MIN ? COLUMN_MIN : strlen(name);
        pad_to(out, i == row ? "X" : relation_name(topo_relation(topo, row, i)),
               width + 1);
    }
    numa_text(d->numa, numa);
    numa_text(d->package, package);
    str_addf(out, " %-5s %s\n", numa, package);
}

static void legend_add(const struct topo *topo, size_t n, struct str *out)
{
    str_add(out,
            "\nLegend:\n"
            "  X      the device itself\n"
            "  PIX    at most one further PCIe bridge on either side of the "
            "one above both\n"
            "  PXB    several PCIe bridges, but not through the host bridge\n"
            "  PHB    through the host bridge (the CPU)\n"
            "  NODE   between host bridges of one NUMA node\n"
            "  SOCKET between NUMA nodes of one package\n"
            "  SYS    between packages\n");
    if (n)
        str_add(out, "\nDevices:\n");
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(topo, i);
        char name[16];
        column_name(topo, i, name);
        str_addf(out, "  %-8s %s", name, d->id);
        if (*d->model)
            str_addf(out, "  %s", d->model);
        if (*d->interface)
            str_addf(out, "  %s", d->interface);
        str_add_c(out, '\n');
    }
}

void print_matrix(const struct topo *topo, struct str *out)
{
    size_t n; /* the NUMA nodes are last, and are no rows */
    topo_count(topo, DEVICE_NUMA, &n);
    if (n == 0) {
        str_addf(out, "%s: no card, GPU or NIC.\n", topo_node(topo));
        return;
    }
    pad_to(out, "", COLUMN_MIN + 3);
    for (size_t i = 0; i < n; i++) {
        char name[16];
        column_name(topo, i, name);
        pad_to(out, name,
               (strlen(name) < COLUMN_MIN ? COLUMN_MIN : strlen(name)) + 1);
    }
    str_add(out, " NUMA  package\n");
    for (size_t i = 0; i < n; i++)
        matrix_row(topo, i, n, out);
    legend_add(topo, n, out);
}

/* --- the relations ------------------------------------------------------ */

static void device_write(const struct device *d, struct str *out)
{
    char pci[PCI_ADDR_TEXT_MAX];
    if (d->has_pci)
        pci_addr_format(&d->pci, pci);
    jwrite_object(out, NULL);
    jwrite_text(out, "id", d->id);
    jwrite_text(out, "kind", device_kind_name(d->kind));
    jwrite_text_or_null(out, "pci", d->has_pci ? pci : NULL);
    jwrite_int_or_null(out, "numa", d->numa);
    jwrite_end_object(out);
}

void print_relations(const struct topo *topo, struct str *out)
{
    const size_t n = topo_n_devices(topo);
    jwrite_object(out, NULL);
    jwrite_array(out, "devices");
    for (size_t i = 0; i < n; i++)
        device_write(topo_device(topo, i), out);
    jwrite_end_array(out);
    jwrite_object(out, "relations");
    for (size_t i = 0; i < n; i++) {
        jwrite_object(out, topo_device(topo, i)->id);
        for (size_t j = 0; j < n; j++)
            if (j != i)
                jwrite_text(out, topo_device(topo, j)->id,
                            relation_name(topo_relation(topo, i, j)));
        jwrite_end_object(out);
    }
    str_add(out, "}}\n");
}
