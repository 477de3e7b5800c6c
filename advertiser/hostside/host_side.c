#include "advertiser/hostside/host_side.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/refs.h"

struct host_side {
    atomic_uint refs;
    struct topo *topo;
    struct cardfile *cards;
    char *sysroot; /* NULL: it is described */
    unsigned kinds;
};

int host_side_kinds(const char *text, unsigned *ret_kinds, struct error *err)
{
    static const struct {
        const char *word;
        unsigned kind;
    } words[] = {{"rdma", NODES_RDMA},
                 {"vfio", NODES_VFIO},
                 {"gpu", NODES_GPU},
                 {"named", NODES_NAMED}};
    unsigned kinds = 0;
    if (strcmp(text, "none") == 0) {
        *ret_kinds = 0;
        return 0;
    }
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < ARRAY_LEN(words) && (strlen(words[i].word) != n ||
                                        memcmp(words[i].word, at, n) != 0))
            i++;
        if (i == ARRAY_LEN(words))
            return error_set(err, EINVAL,
                             "has \"%.*s\", must be rdma, gpu, vfio and named, "
                             "or none alone",
                             (int)(n < 48 ? n : 48), at);
        kinds |= words[i].kind;
        at += n + (at[n] == ',');
    }
    *ret_kinds = kinds;
    return 0;
}

struct host_side *host_side_create(const struct topo *topo,
                                   struct cardfile *cards, const char *sysroot,
                                   unsigned kinds)
{
    struct host_side *h = xcalloc(1, sizeof *h);
    atomic_init(&h->refs, 1);
    h->topo = topo_ref((struct topo *)(uintptr_t)topo);
    h->cards = cards;
    h->sysroot = sysroot ? xstrdup(sysroot) : NULL;
    h->kinds = kinds;
    return h;
}

DEFINE_REF(host_side_ref, struct host_side)

void host_side_unref(struct host_side *h)
{
    if (!h || !refs_drop(&h->refs))
        return;
    topo_unref(h->topo);
    cardfile_destroy(h->cards);
    free(h->sysroot);
    free(h);
}

/* The next device of that kind with one of these addresses, from `*at` on;
 * NULL: there is no other. */
static const struct device *next(const struct host_side *h,
                                 enum device_kind kind, const char *addresses,
                                 size_t *at)
{
    size_t first, n = topo_count(h->topo, kind, &first);
    while (*addresses && *at < n) {
        const struct device *d = topo_device(h->topo, first + (*at)++);
        char pci[PCI_ADDR_TEXT_MAX];
        pci_addr_format(&d->pci, pci);
        if (d->has_pci && device_names_have(addresses, pci))
            return d;
    }
    return NULL;
}

void host_side_choose(const struct host_side *h,
                      const struct host_side_given *given, const char *taken,
                      char ret_functions[HOST_SIDE_FUNCTIONS_MAX])
{
    const struct device *card;
    cleanup_str struct str list = STR_INIT(HOST_SIDE_FUNCTIONS_MAX - 1);
    char function[PCI_ADDR_TEXT_MAX];
    size_t at = 0;
    while (!given->exclusive &&
           (card = next(h, DEVICE_CARD, given->cards, &at)) != NULL)
        if (device_nodes_free_vf(h->sysroot, card, given->functions, taken,
                                 function))
            str_addf(&list, "%s%s", list.size ? "," : "", function);
    (void)snprintf(ret_functions, HOST_SIDE_FUNCTIONS_MAX, "%s",
                   str_text(&list));
}

void host_side_add_named(const struct cardfile *cards, const struct topo *topo,
                         const struct device *card, struct device_nodes *n)
{
    struct cardfile_card said;
    const struct cardfile_key key = {
        .pci = card->pci,
        .vendor_id = card->vendor_id,
        .device_id = card->device_id,
        .serial = topo_identity(topo, card).serial};
    cardfile_find(cards, &key, &said);
    for (size_t i = 0; i < said.n_device_nodes; i++)
        device_nodes_add(n, said.device_nodes[i]);
}

/* The one of its functions that the pod has for itself. */
static void own_function(const struct host_side *h, const struct device *card,
                         const char *functions,
                         char ret_function[PCI_ADDR_TEXT_MAX])
{
    ret_function[0] = '\0';
    if (!*functions ||
        !device_nodes_free_vf(h->sysroot, card, functions, "", ret_function) ||
        !device_names_have(functions, ret_function))
        ret_function[0] = '\0';
}

bool host_side_look(const struct host_side *h,
                    const struct host_side_given *given, struct device_nodes *n)
{
    const struct device *d;
    const struct device_part whole = {.kinds = h->kinds, .function = ""};
    if (!h->sysroot)
        return false;
    for (size_t at = 0; (d = next(h, DEVICE_CARD, given->cards, &at));) {
        char function[PCI_ADDR_TEXT_MAX];
        own_function(h, d, given->functions, function);
        const struct device_part part = {.kinds = h->kinds,
                                         .shared = !given->exclusive,
                                         .function = function};
        device_nodes_look(h->sysroot, d, &part, n);
        if (h->kinds & NODES_NAMED)
            host_side_add_named(h->cards, h->topo, d, n);
    }
    for (size_t at = 0; (d = next(h, DEVICE_NIC, given->nics, &at));)
        device_nodes_look(h->sysroot, d, &whole, n);
    for (size_t at = 0; (d = next(h, DEVICE_GPU, given->gpus, &at));)
        device_nodes_look(h->sysroot, d, &whole, n);
    device_nodes_check(h->sysroot, n);
    return true;
}
