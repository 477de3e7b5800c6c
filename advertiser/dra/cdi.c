#include "advertiser/dra/cdi.h"

#include <ctype.h>
#include <string.h>

#include "advertiser/hostside/host_side.h"
#include "lib/base/jwrite.h"

static void write_node(const struct device_node *node, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "path", node->path);
    if (node->numbered) {
        jwrite_text(out, "type", "c");
        jwrite_uint(out, "major", node->major);
        jwrite_uint(out, "minor", node->minor);
    }
    jwrite_text(out, "permissions", "rw");
    jwrite_end_object(out);
}

static void write_env(const char *name, const char *value, struct str *out)
{
    cleanup_free char *text = *value ? xasprintf("%s=%s", name, value) : NULL;
    if (text)
        jwrite_text(out, NULL, text);
}

/* "0000_17_00" of "card-0000-17-00", as a variable's name has it. */
static void write_suffix(const char *device, struct str *out)
{
    const char *from = strncmp(device, "card-", 5) == 0 ? device + 5 : device;
    for (; *from; from++)
        str_add_c(out, isalnum((unsigned char)*from)
                           ? (char)toupper((unsigned char)*from)
                           : '_');
}

/* For which requests of which claim it is: CLAIM/REQUEST, with ',' between; the
 * claim by the name that its pod has for it. */
static void write_claim_env(const struct dra_record *r, const char *device,
                            struct str *out)
{
    cleanup_str struct str name = STR_INIT(256), value = STR_INIT(16 << 10);
    const char *claim = *r->pod_claim ? r->pod_claim : r->name;
    str_add(&name, "BIGA_CARD_CLAIM_");
    write_suffix(device, &name);
    for (size_t i = 0; i < r->n_devices; i++)
        if (strcmp(r->devices[i].device, device) == 0)
            str_addf(&value, "%s%s/%s", value.size ? "," : "", claim,
                     r->devices[i].request);
    write_env(str_text(&name), str_text(&value), out);
}

static void write_card(const struct dra_record *r, const struct device *card,
                       const struct device_nodes *n, struct str *out)
{
    char pci[PCI_ADDR_TEXT_MAX] = "";
    cleanup_free char *name = xasprintf("%s-%s", r->uid, card->id);
    if (card->has_pci)
        pci_addr_format(&card->pci, pci);
    jwrite_object(out, NULL);
    jwrite_text(out, "name", name);
    jwrite_object(out, "containerEdits");
    jwrite_array(out, "env");
    write_env("BIGA_CARD_PCI", pci, out);
    write_env("BIGA_RDMA_DEVICE",
              n->rdma.size ? str_text(&n->rdma) : card->rdma, out);
    write_env("BIGA_CARD_INTERFACES", str_text(&n->interfaces), out);
    write_env("BIGA_CARD_VFS", str_text(&n->vfs), out);
    write_claim_env(r, card->id, out);
    jwrite_end_array(out);
    if (n->n > 0) {
        jwrite_array(out, "deviceNodes");
        for (size_t i = 0; i < n->n; i++)
            write_node(&n->nodes[i], out);
        jwrite_end_array(out);
    }
    jwrite_end_object(out);
    jwrite_end_object(out);
}

/* NULL: a request of it has the whole card. */
static const struct dra_device *part_of(const struct dra_record *r,
                                        const char *device)
{
    const struct dra_device *part = NULL;
    for (size_t i = 0; i < r->n_devices; i++) {
        if (strcmp(r->devices[i].device, device) != 0)
            continue;
        if (!r->devices[i].part)
            return NULL;
        part = &r->devices[i];
    }
    return part;
}

static int write_device(const struct dra_record *r, const char *device,
                        const struct cdi_host *host, struct str *out,
                        struct error *err)
{
    const struct device *card = topo_find(host->topo, device);
    if (!card || card->kind != DEVICE_CARD)
        return error_set(err, ENODEV,
                         "%s: is no card of this node now; see what "
                         "biga-advertiser --print tree finds",
                         device);
    cleanup_free struct device_nodes *n = xcalloc(1, sizeof *n);
    const struct dra_device *own = part_of(r, device);
    const struct device_part part = {.kinds = NODES_ALL,
                                     .shared = own != NULL,
                                     .function = own ? own->function : ""};
    device_nodes_init(n);
    device_nodes_look(host->sysroot, card, &part, n);
    host_side_add_named(host->cards, host->topo, card, n);
    write_card(r, card, n, out);
    device_nodes_fini(n);
    return 0;
}

/* Requests may have shares of one card, which is told once. */
static bool is_first(const struct dra_record *r, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(r->devices[i].device, r->devices[at].device) == 0)
            return false;
    return true;
}

int cdi_write(const struct dra_record *r, const struct cdi_host *host,
              struct str *out, struct error *err)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "cdiVersion", "0.5.0");
    jwrite_text(out, "kind", DRA_CDI_KIND);
    jwrite_array(out, "devices");
    for (size_t i = 0; i < r->n_devices; i++) {
        int e = is_first(r, i)
                    ? write_device(r, r->devices[i].device, host, out, err)
                    : 0;
        if (e < 0)
            return e;
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
    str_add_c(out, '\n');
    return out->overflow ? error_set(err, E2BIG,
                                     "what it gets of its cards takes more "
                                     "than %d bytes",
                                     CDI_MAX)
                         : 0;
}
