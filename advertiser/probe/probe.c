#include "advertiser/probe/probe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/describe/card_description.h"
#include "advertiser/describe/card_models.h"
#include "advertiser/describe/hostfile.h"
#include "advertiser/describe/hosts.h"
#include "advertiser/probe/hwxml.h"
#include "advertiser/probe/scan.h"
#include "lib/base/str.h"
#include "lib/io/file.h"
#include "lib/io/log.h"
#include "model/topo/topo_builder.h"

/* --- functions to devices ----------------------------------------------- */

/* What is being made of a scan. */
struct build {
    const struct cardfile *cards;
    struct topo_builder *builder;
    size_t n_cards, n_gpus, n_devices;
    size_t n_left_out;
    char last_id[TOPO_ID_MAX + 1];
};

static enum pci_role role_of(const struct scan_function *f)
{
    return pci_role(f->class_id, f->vendor_id, f->device_id);
}

/* Two at one address are impossible, but files have it: those that would be
 * one device come together. */
static int function_order(const void *a, const void *b)
{
    const struct scan_function *fa = a, *fb = b;
    int order = pci_addr_compare(&fa->addr, &fb->addr);
    if (order == 0)
        order = (int)role_of(fa) - (int)role_of(fb);
    if (order == 0)
        order = (fa->class_id > fb->class_id) - (fa->class_id < fb->class_id);
    return order;
}

static bool same_pci_device(const struct scan_function *a,
                            const struct scan_function *b)
{
    return a->addr.domain == b->addr.domain && a->addr.bus == b->addr.bus &&
           a->addr.device == b->addr.device;
}

/* Functions of one PCI device, or behind one switch that is a card's own. */
static bool same_card(const struct scan_function *a,
                      const struct scan_function *b)
{
    if (same_pci_device(a, b))
        return true;
    return a->addr.domain == b->addr.domain && a->vendor_id == b->vendor_id &&
           card_models_have_switch(a->vendor_id) && a->n_foreign < a->n_path &&
           a->n_foreign == b->n_foreign && b->n_foreign < b->n_path &&
           pci_addr_compare(&a->path[a->n_foreign], &b->path[b->n_foreign]) ==
               0;
}

static void device_init(struct device *d, enum device_kind kind,
                        const struct scan_function *f, char id[TOPO_ID_MAX + 1])
{
    device_id_format(kind, &f->addr, id);
    *d = (struct device){
        .kind = kind,
        .id = id,
        .numa = f->numa,
        .package = f->package,
        .has_pci = true,
        .pci = f->addr,
        .root_domain = f->root_domain,
        .root_bus = f->root_bus,
        .n_path = f->n_path,
        .path = f->path,
        .vendor_id = f->vendor_id,
        .device_id = f->device_id,
        .vendor = f->vendor[0] ? f->vendor : pci_vendor_name(f->vendor_id),
        .model = f->model,
        .interface = f->interface,
        .rdma = f->rdma,
    };
}

static struct identity identity_of(const struct scan_function *f)
{
    return (struct identity){.serial = f->serial, .guid = f->guid};
}

static struct cardfile_key key_of(const struct scan_function *f)
{
    return (struct cardfile_key){.pci = f->addr,
                                 .vendor_id = f->vendor_id,
                                 .device_id = f->device_id,
                                 .serial = f->serial};
}

/* The one of n functions by which they are a card, or NULL. */
static const struct scan_function *card_function(const struct build *b,
                                                 const struct scan_function *f,
                                                 size_t n,
                                                 struct cardfile_card *ret_card)
{
    const struct scan_function *known = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct cardfile_key key = key_of(&f[i]);
        cardfile_find(b->cards, &key, ret_card);
        if (!known && card_model_find(f[i].vendor_id, f[i].device_id))
            known = &f[i];
        if (ret_card->listed)
            return ret_card->exclude ? NULL : known ? known : &f[i];
    }
    return known;
}

static const char *text_or(const char *text, const char *otherwise)
{
    return *text ? text : otherwise;
}

/* Of the first function that tells, as its interface is. */
static void setup_take(struct device *d, const struct scan_function *f)
{
    bool is_first = !*d->interface || d->interface == f->interface;
    if (is_first && *f->interface) {
        d->link = f->look.link;
        d->link_mbps = f->look.link_mbps;
        d->mode = f->look.mode;
    }
    if (d->vfs_max == 0) {
        d->vfs = f->look.vfs;
        d->vfs_max = f->look.vfs_max;
    }
}

static void card_add(struct build *b, const struct scan_function *by,
                     const struct scan_function *f, size_t n,
                     const struct cardfile_card *card)
{
    struct pci_addr functions[TOPO_FUNCTIONS_MAX];
    char id[TOPO_ID_MAX + 1];
    struct device d;
    struct identity own = identity_of(f);
    device_init(&d, DEVICE_CARD, f, id);
    const struct card_model *model = card_model_find(by->vendor_id,
                                                     by->device_id);
    d.vendor_id = by->vendor_id;
    d.device_id = by->device_id;
    d.vendor = model ? model->vendor : text_or(by->vendor, d.vendor);
    d.model = text_or(card->model, model ? model->model : by->model);
    d.arch = text_or(card->arch, model ? model->arch : "");
    own.endpoint = card->endpoint;
    own.fabric_port = card->fabric_port;
    d.cores = card->cores ? card->cores : by->cores;
    d.memory_mib = card->memory_mib ? card->memory_mib : by->memory_mib;
    for (size_t i = 0; i < n && d.n_functions < TOPO_FUNCTIONS_MAX; i++) {
        if (i > 0 && pci_addr_compare(&f[i].addr, &f[i - 1].addr) == 0) {
            b->n_left_out++; /* the same function, seen again */
            continue;
        }
        functions[d.n_functions++] = f[i].addr;
        setup_take(&d, &f[i]);
        own.serial = text_or(own.serial, f[i].serial);
        d.interface = text_or(d.interface, f[i].interface);
        d.rdma = text_or(d.rdma, f[i].rdma);
        own.guid = text_or(own.guid, f[i].guid);
    }
    d.functions = functions;
    if (b->n_cards == TOPO_CARDS_MAX) {
        b->n_left_out++;
        return;
    }
    b->n_cards++;
    b->n_devices++;
    topo_builder_add(b->builder, &d, &own);
}

/* The operator says that nobody computes with it. */
static bool is_set_aside(const struct cardfile *cards,
                         const struct scan_function *f)
{
    const struct cardfile_key key = key_of(f);
    struct cardfile_card said;
    cardfile_find(cards, &key, &said);
    return said.set_aside;
}

static void function_add(struct build *b, const struct scan_function *f)
{
    enum pci_role role = role_of(f);
    if (role == PCI_ROLE_OTHER)
        return;
    char id[TOPO_ID_MAX + 1];
    struct device d;
    device_init(&d, role == PCI_ROLE_GPU ? DEVICE_GPU : DEVICE_NIC, f, id);
    const bool again = strcmp(id, b->last_id) == 0; /* the same address */
    if ((role == PCI_ROLE_GPU && b->n_gpus == TOPO_GPUS_MAX) ||
        b->n_devices == TOPO_DEVICES_MAX || again) {
        b->n_left_out++;
        return;
    }
    memcpy(b->last_id, id, sizeof(id));
    if (role != PCI_ROLE_GPU)
        d.set_aside = f->look.is_virtual || is_set_aside(b->cards, f);
    const struct identity own = identity_of(f);
    b->n_gpus += role == PCI_ROLE_GPU;
    b->n_devices++;
    topo_builder_add(b->builder, &d, &own);
}

static void functions_add(struct build *b, struct scan *scan, bool cards)
{
    const struct scan_function *f = scan->functions;
    for (size_t i = 0, n; i < scan->n_functions; i += n) {
        for (n = 1; i + n < scan->n_functions; n++)
            if (!same_card(&f[i], &f[i + n]))
                break;
        struct cardfile_card card;
        const struct scan_function *by = card_function(b, &f[i], n, &card);
        if (by && cards)
            card_add(b, by, &f[i], n, &card);
        for (size_t j = 0; j < n && !by && !cards; j++)
            function_add(b, &f[i + j]);
    }
}

static void numas_add(struct build *b, const struct scan *scan)
{
    for (uint32_t i = 0; i < scan->n_numas; i++) {
        const struct scan_numa *n = &scan->numas[i];
        char id[TOPO_ID_MAX + 1];
        snprintf(id, sizeof(id), "numa-%d", (int)n->os_index);
        struct device d = {.kind = DEVICE_NUMA,
                           .id = id,
                           .numa = n->os_index,
                           .package = n->package,
                           .root_domain = TOPO_ROOT_NONE,
                           .cpus = n->cpus,
                           .cpu_list = n->cpu_list,
                           .numa_memory_mib = n->memory_mib};
        b->n_devices++;
        topo_builder_add(b->builder, &d, NULL);
        for (uint32_t j = 0; j < scan->n_numas; j++)
            if (scan->distance[i][j])
                topo_builder_distance(b->builder, n->os_index,
                                      scan->numas[j].os_index,
                                      scan->distance[i][j]);
    }
}

/* Cards come first, so that they are never the ones left out for NICs. */
static int scan_build(struct scan *scan, const char *node,
                      const struct cardfile *cards, struct topo **ret_topo,
                      struct error *err)
{
    cleanup_with(topo_builder) struct topo_builder *builder =
        topo_builder_create(node);
    struct build b = {
        .cards = cards, .builder = builder, .n_left_out = scan->n_left_out};
    qsort(scan->functions, scan->n_functions, sizeof(scan->functions[0]),
          function_order);
    numas_add(&b, scan);
    functions_add(&b, scan, true);
    functions_add(&b, scan, false);
    if (b.n_left_out) {
        cleanup_str struct str count = STR_INIT(32);
        str_add_u64(&count, b.n_left_out);
        log_event(LOG_WARN, "devices-left-out", "node", node, "count",
                  str_text(&count), NULL);
    }
    return topo_build(builder, ret_topo, err);
}

/* --- sources ------------------------------------------------------------ */

static int xml_scan(const char *path, struct scan **ret_scan, struct error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    int rc = file_read(path, PROBE_XML_MAX, &text, &size, err);
    if (rc < 0)
        return rc;
    if (strlen(text) != size)
        rc = error_set(err, EINVAL, "has a NUL at byte %zu", strlen(text));
    if (rc == 0)
        rc = hwxml_check(text, err);
    const struct scan_source source = {.xml = text, .xml_size = size + 1};
    if (rc == 0)
        rc = scan_run(&source, PROBE_DEADLINE_MS, ret_scan, err);
    return rc < 0 ? error_wrap(err, "%s", path) : 0;
}

static int fsroot_scan(const char *path, struct scan **ret_scan,
                       struct error *err)
{
    cleanup_free char *cpus = xasprintf("%s/sys/devices/system/cpu", path);
    struct stat st;
    if (stat(cpus, &st) < 0)
        return error_errno(err, errno, "%s: holds no /sys tree (%s)", path,
                           cpus);
    const struct scan_source source = {.fsroot = path};
    int rc = scan_run(&source, PROBE_DEADLINE_MS, ret_scan, err);
    return rc < 0 ? error_wrap(err, "%s", path) : 0;
}

static int hostfile_probe(const char *path, const char *node,
                          const struct cardfile *cards, struct topo **ret_topo,
                          struct error *err)
{
    const struct host_shape *shape = host_shape_find(path);
    cleanup_with(topo) struct topo *topo = NULL;
    cleanup_free char *text = NULL;
    size_t size = 0;
    int rc = 0;
    if (shape)
        size = strlen(shape->text);
    else
        rc = file_read(path, HOSTFILE_SIZE_MAX, &text, &size, err);
    if (rc < 0)
        return rc;
    rc = hostfile_read(shape ? shape->text : text, size, node, &topo, err);
    if (rc == 0 && cards)
        rc = card_description_build(topo, cards, ret_topo, err);
    else if (rc == 0)
        *ret_topo = steal(&topo);
    return rc < 0 ? error_wrap(err, "%s", path) : 0;
}

int probe_run(const struct probe_source *source, const char *node,
              const struct cardfile *cards, struct topo **ret_topo,
              struct error *err)
{
    cleanup_with(scan) struct scan *scan = NULL;
    int rc;
    if (!!source->xml + !!source->fsroot + !!source->hostfile > 1)
        return error_set(err, EINVAL,
                         "a topology comes from one of an XML, a /sys tree "
                         "and a host description, not from several");
    if (source->hostfile)
        return hostfile_probe(source->hostfile, node, cards, ret_topo, err);
    if (source->xml) {
        rc = xml_scan(source->xml, &scan, err);
    } else if (source->fsroot) {
        rc = fsroot_scan(source->fsroot, &scan, err);
    } else {
        const struct scan_source live = {0};
        rc = scan_run(&live, PROBE_DEADLINE_MS, &scan, err);
        if (rc < 0)
            error_wrap(err, "this host");
    }
    return rc < 0 ? rc : scan_build(scan, node, cards, ret_topo, err);
}
