#include "advertiser/describe/card_description.h"

#include "lib/base/mem.h"
#include "model/topo/topo_builder.h"

static void find(const struct cardfile *cards, const struct device *d,
                 const char *serial, struct cardfile_card *ret_card)
{
    const struct cardfile_key key = {.pci = d->pci,
                                     .vendor_id = d->vendor_id,
                                     .device_id = d->device_id,
                                     .serial = serial};
    cardfile_find(cards, &key, ret_card);
}

static void take(const char **text, const char *other)
{
    if (*other)
        *text = other;
}

static void card_add(struct topo_builder *b, struct device d,
                     struct identity own, const struct cardfile_card *card)
{
    take(&d.model, card->model);
    take(&d.arch, card->arch);
    take(&own.endpoint, card->endpoint);
    take(&own.fabric_port, card->fabric_port);
    d.cores = card->cores ? card->cores : d.cores;
    d.memory_mib = card->memory_mib ? card->memory_mib : d.memory_mib;
    topo_builder_add(b, &d, &own);
}

/* What is no card has no cores; the first function has the interface. */
static void nics_add(struct topo_builder *b, const struct device *card,
                     const struct identity *own, bool set_aside)
{
    for (unsigned i = 0; i < card->n_functions; i++) {
        char id[TOPO_ID_MAX + 1];
        device_id_format(DEVICE_NIC, &card->functions[i], id);
        const struct device d = {
            .kind = DEVICE_NIC,
            .id = id,
            .numa = card->numa,
            .package = card->package,
            .has_pci = true,
            .pci = card->functions[i],
            .root_domain = card->root_domain,
            .root_bus = card->root_bus,
            .n_path = card->n_path,
            .path = card->path,
            .vendor_id = card->vendor_id,
            .device_id = card->device_id,
            .vendor = card->vendor,
            .model = card->model,
            .interface = i == 0 ? card->interface : "",
            .rdma = i == 0 ? card->rdma : "",
            .set_aside = set_aside,
        };
        const struct identity nic = {.serial = own->serial,
                                     .guid = i == 0 ? own->guid : ""};
        topo_builder_add(b, &d, &nic);
    }
}

static bool same_pci_device(const struct device *a, const struct device *b)
{
    return a->pci.domain == b->pci.domain && a->pci.bus == b->pci.bus &&
           a->pci.device == b->pci.device;
}

/* What a GPU or NIC belongs to: the functions of its PCI device, in their
 * order. */
struct group {
    const struct topo *topo;
    const struct device *members[TOPO_FUNCTIONS_MAX];
    size_t n;
};

static void group_find(const struct topo *topo, const struct device *d,
                       struct group *g)
{
    g->topo = topo;
    g->n = 0;
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        const struct device *other = topo_device(topo, i);
        if ((other->kind != DEVICE_GPU && other->kind != DEVICE_NIC) ||
            !same_pci_device(d, other) || g->n == TOPO_FUNCTIONS_MAX)
            continue;
        size_t at = g->n++;
        for (; at > 0 &&
               pci_addr_compare(&g->members[at - 1]->pci, &other->pci) > 0;
             at--)
            g->members[at] = g->members[at - 1];
        g->members[at] = other;
    }
}

/* The one by which they are a card, or NULL. */
static const struct device *listed(const struct group *g,
                                   const struct cardfile *cards,
                                   struct cardfile_card *ret_card)
{
    for (size_t i = 0; i < g->n; i++) {
        find(cards, g->members[i], topo_identity(g->topo, g->members[i]).serial,
             ret_card);
        if (ret_card->listed)
            return ret_card->exclude ? NULL : g->members[i];
    }
    return NULL;
}

static void group_add(struct topo_builder *b, const struct group *g,
                      const struct device *by, const struct cardfile_card *card)
{
    struct pci_addr functions[TOPO_FUNCTIONS_MAX];
    char id[TOPO_ID_MAX + 1];
    struct device d = *g->members[0];
    struct identity own = topo_identity(g->topo, g->members[0]);
    device_id_format(DEVICE_CARD, &d.pci, id);
    d.kind = DEVICE_CARD;
    d.id = id;
    d.vendor_id = by->vendor_id;
    d.device_id = by->device_id;
    d.vendor = by->vendor;
    d.model = by->model;
    for (size_t i = 0; i < g->n; i++) {
        const struct device *m = g->members[i];
        const struct identity also = topo_identity(g->topo, m);
        functions[i] = m->pci;
        take(&own.serial, *own.serial ? "" : also.serial);
        take(&d.interface, *d.interface ? "" : m->interface);
        take(&d.rdma, *d.rdma ? "" : m->rdma);
        take(&own.guid, *own.guid ? "" : also.guid);
    }
    d.functions = functions;
    d.n_functions = (uint8_t)g->n;
    card_add(b, d, own, card);
}

/* A GPU or NIC. */
static void other_add(struct topo_builder *b, const struct device *d,
                      const struct identity *own, const struct cardfile *cards)
{
    struct cardfile_card said;
    struct device other = *d;
    find(cards, d, own->serial, &said);
    other.set_aside |= d->kind == DEVICE_NIC && said.set_aside;
    topo_builder_add(b, &other, own);
}

static void device_add(struct topo_builder *b, const struct topo *topo,
                       const struct cardfile *cards, const struct device *d)
{
    const struct identity own = topo_identity(topo, d);
    struct cardfile_card card;
    struct group g;
    if (d->kind == DEVICE_NUMA) {
        topo_builder_add(b, d, &own);
    } else if (d->kind == DEVICE_CARD) {
        find(cards, d, own.serial, &card);
        if (card.exclude)
            nics_add(b, d, &own, card.set_aside);
        else
            card_add(b, *d, own, &card);
    } else {
        group_find(topo, d, &g);
        const struct device *by = listed(&g, cards, &card);
        if (!by)
            other_add(b, d, &own, cards);
        else if (d == g.members[0])
            group_add(b, &g, by, &card);
    }
}

int card_description_build(const struct topo *topo,
                           const struct cardfile *cards, struct topo **ret_topo,
                           struct error *err)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(topo_node(topo));
    for (size_t i = 0; i < topo_n_devices(topo); i++)
        device_add(b, topo, cards, topo_device(topo, i));
    size_t first, n = topo_count(topo, DEVICE_NUMA, &first);
    for (size_t i = 0; i < n * n; i++) {
        int from = topo_device(topo, first + i / n)->numa;
        int to = topo_device(topo, first + i % n)->numa;
        topo_builder_distance(b, from, to, topo_distance(topo, from, to));
    }
    return topo_build(b, ret_topo, err);
}
