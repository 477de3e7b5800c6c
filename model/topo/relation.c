/* relation - how close two devices of a node are. */
#include "model/topo/topo.h"

#include <string.h>
#include <strings.h>

static const char *const names[RELATION_COUNT] = {
    [RELATION_PIX] = "PIX",       [RELATION_PXB] = "PXB",
    [RELATION_PHB] = "PHB",       [RELATION_NODE] = "NODE",
    [RELATION_SOCKET] = "SOCKET", [RELATION_SYS] = "SYS",
};

const char *relation_name(enum relation relation)
{
    return relation < RELATION_COUNT ? names[relation] : "?";
}

int relation_parse(const char *text, enum relation *ret_relation,
                   struct error *err)
{
    for (unsigned i = 0; i < RELATION_COUNT; i++) {
        if (strcasecmp(text, names[i]) == 0) {
            *ret_relation = (enum relation)i;
            return 0;
        }
    }
    return error_set(err, EINVAL,
                     "is \"%.32s\", must be pix, pxb, phb, node, socket or "
                     "sys",
                     text);
}

static unsigned max_of(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

/* True when a PCI bridge or the host bridge stands above both. */
static bool relation_of_buses(const struct device *a, const struct device *b,
                              enum relation *ret_relation)
{
    if (!a->has_pci || !b->has_pci || a->root_domain != b->root_domain ||
        a->root_bus != b->root_bus)
        return false;
    unsigned same = 0;
    while (same < a->n_path && same < b->n_path &&
           pci_addr_compare(&a->path[same], &b->path[same]) == 0)
        same++;
    if (same == 0) {
        if (a->root_domain == TOPO_ROOT_NONE)
            return false;
        *ret_relation = RELATION_PHB;
        return true;
    }
    unsigned further = max_of(a->n_path - same, b->n_path - same);
    *ret_relation = further <= 1 ? RELATION_PIX : RELATION_PXB;
    return true;
}

enum relation topo_relation(const struct topo *topo, size_t index_a,
                            size_t index_b)
{
    const struct device *a = topo_device(topo, index_a);
    const struct device *b = topo_device(topo, index_b);
    enum relation relation;
    if (a->kind != DEVICE_NUMA && b->kind != DEVICE_NUMA) {
        if (index_a == index_b)
            return RELATION_PIX;
        if (relation_of_buses(a, b, &relation))
            return relation;
    }
    if (a->numa >= 0 && a->numa == b->numa)
        return RELATION_NODE;
    if (a->package >= 0 && a->package == b->package)
        return RELATION_SOCKET;
    return RELATION_SYS;
}
