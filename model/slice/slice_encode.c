#include "model/slice/slice.h"

#include <inttypes.h>

#include "lib/base/hash.h"
#include "lib/base/jwrite.h"
#include "model/slice/slice_private.h"

struct writer {
    struct str *out;
    unsigned n; /* members written: the next one needs a comma */
};

static void member_begin(struct writer *w, const char *name, unsigned part)
{
    str_add(w->out, w->n++ ? ",\"" : "\"");
    str_add(w->out, name);
    if (part > 1)
        str_add_u64(w->out, part);
    str_add(w->out, "\":{");
}

static void add_text_part(struct writer *w, enum attribute_id id, unsigned part,
                          const char *text)
{
    if (!*text)
        return;
    member_begin(w, slice_attributes[id].name, part);
    str_add(w->out, "\"string\":");
    str_add_json(w->out, text);
    str_add_c(w->out, '}');
}

static void add_text(struct writer *w, enum attribute_id id, const char *text)
{
    add_text_part(w, id, 1, text);
}

/* -1 is unknown and left out. */
static void add_index(struct writer *w, enum attribute_id id, int value)
{
    if (value < 0)
        return;
    member_begin(w, slice_attributes[id].name, 1);
    str_add(w->out, "\"int\":");
    str_add_i64(w->out, value);
    str_add_c(w->out, '}');
}

static void add_bool(struct writer *w, enum attribute_id id, bool value)
{
    member_begin(w, slice_attributes[id].name, 1);
    str_add(w->out, value ? "\"bool\":true}" : "\"bool\":false}");
}

/* --- lists: items separated by a space, over as many attributes as they
 * take ------------------------------------------------------------------ */

struct list {
    struct writer *w;
    enum attribute_id id;
    unsigned part;
    size_t size;
    char text[SLICE_TEXT_MAX + 1];
};

static void list_flush(struct list *l)
{
    if (l->size > 0)
        add_text_part(l->w, l->id, ++l->part, l->text);
    l->size = 0;
}

static void list_add(struct list *l, const char *item)
{
    size_t size = strlen(item);
    if (l->size > 0 && l->size + 1 + size > SLICE_TEXT_MAX)
        list_flush(l);
    if (l->size > 0)
        l->text[l->size++] = ' ';
    memcpy(l->text + l->size, item, size + 1);
    l->size += size;
}

/* Without the domain when it is the device's own, as nearly always. */
static void list_add_addr(struct list *l, const struct pci_addr *addr,
                          const struct device *d)
{
    char text[PCI_ADDR_TEXT_MAX];
    if (addr->domain == d->pci.domain)
        (void)snprintf(text, sizeof text, "%02x:%02x.%x", addr->bus,
                       addr->device & 0x1fu, addr->function & 7u);
    else
        pci_addr_format(addr, text);
    list_add(l, text);
}

/* --- a device ------------------------------------------------------------ */

static void add_pci(struct writer *w, const struct device *d)
{
    char text[PCI_ADDR_TEXT_MAX];
    if (!d->has_pci)
        return;
    if (d->root_domain != TOPO_ROOT_NONE) {
        (void)snprintf(text, sizeof text, "pci%04" PRIx32 ":%02x",
                       d->root_domain, d->root_bus);
        add_text(w, ATTRIBUTE_ROOT, text);
    }
    pci_addr_format(&d->pci, text);
    add_text(w, d->pci.domain <= 0xffff ? ATTRIBUTE_BUS_ID : ATTRIBUTE_ADDRESS,
             text);
    const struct pci_addr *top = slice_switch(d);
    if (!top)
        return;
    pci_addr_format(top, text);
    add_text(w, ATTRIBUTE_SWITCH, text);
    struct list path = {.w = w, .id = ATTRIBUTE_PATH};
    for (unsigned i = 0; i < d->n_path; i++)
        list_add_addr(&path, &d->path[i], d);
    list_flush(&path);
}

static void add_card(struct writer *w, const struct topo *topo,
                     const struct device *d)
{
    char node[SLICE_NODE_TEXT_MAX + 1];
    struct list functions = {.w = w, .id = ATTRIBUTE_FUNCTIONS};
    for (unsigned i = 0; i < d->n_functions; i++)
        list_add_addr(&functions, &d->functions[i], d);
    list_flush(&functions);
    add_bool(w, ATTRIBUTE_HEALTHY, !d->unhealthy);
    if (d->by_claims)
        add_bool(w, ATTRIBUTE_CLAIMS, true);
    slice_node_text(topo_node(topo), node);
    add_text(w, ATTRIBUTE_NODE, node);
}

/* As the kernel's nodeN/distance: to every numa device of the node in order
 * of their index; 0 unknown. */
static void add_distances(struct writer *w, const struct topo *topo,
                          const struct device *d)
{
    size_t first, n = topo_count(topo, DEVICE_NUMA, &first);
    bool known = false;
    for (size_t i = 0; i < n && !known; i++)
        known = topo_distance(topo, d->numa,
                              topo_device(topo, first + i)->numa) != 0;
    struct list list = {.w = w, .id = ATTRIBUTE_DISTANCES};
    for (size_t i = 0; known && i < n; i++) {
        char text[16];
        (void)snprintf(
            text, sizeof text, "%u",
            topo_distance(topo, d->numa, topo_device(topo, first + i)->numa));
        list_add(&list, text);
    }
    list_flush(&list);
}

/* The least needed, which are left out where bridges of another PCI domain
 * fill a device's attributes; the first have room the longest. */
static bool gives_way(enum attribute_id id)
{
    return id == ATTRIBUTE_DEVICES || id == ATTRIBUTE_RIGHTS ||
           id == ATTRIBUTE_VENDOR || id == ATTRIBUTE_MODEL ||
           id == ATTRIBUTE_GUID ||
           (id >= ATTRIBUTE_HEALTH && id <= ATTRIBUTE_VFS_MAX);
}

static void add_spare(struct writer *w, enum attribute_id id,
                      const struct slice_device *whole)
{
    const struct device *d = &whole->d;
    const int speed = d->link_mbps ? (int)d->link_mbps : -1;
    const char *text;
    if (slice_attributes[id].offset) {
        memcpy(&text, (const char *)whole + slice_attributes[id].offset,
               sizeof text);
        add_text(w, id, text);
    } else if (id == ATTRIBUTE_LINK_SPEED) {
        add_index(w, id, speed);
    } else if (d->vfs_max > 0) {
        add_index(w, id, id == ATTRIBUTE_VFS ? d->vfs : d->vfs_max);
    }
}

static unsigned n_capacities(const struct device *d)
{
    if (d->kind == DEVICE_NUMA)
        return 2;
    if (d->kind != DEVICE_CARD)
        return 0;
    return (unsigned)(d->cores != 0) + (d->memory_mib != 0);
}

static void add_attributes(struct str *out, const struct topo *topo,
                           const struct device *d)
{
    struct writer w = {.out = out};
    add_text(&w, ATTRIBUTE_KIND, device_kind_name(d->kind));
    add_index(&w, ATTRIBUTE_NUMA, d->numa);
    add_index(&w, ATTRIBUTE_PACKAGE, d->package);
    if (d->kind == DEVICE_NUMA) {
        add_distances(&w, topo, d);
        add_text(&w, ATTRIBUTE_CPU_LIST, d->cpu_list);
        return;
    }
    const struct slice_device whole = {*d, topo_identity(topo, d)};
    add_pci(&w, d);
    if (d->vendor_id != 0 || d->device_id != 0) {
        char text[16];
        (void)snprintf(text, sizeof text, "%04x:%04x", d->vendor_id,
                       d->device_id);
        add_text(&w, ATTRIBUTE_PCI_ID, text);
    }
    for (enum attribute_id id = 0; id < ATTRIBUTE_COUNT; id++) {
        const struct attribute *a = &slice_attributes[id];
        if (a->offset == 0 || !(a->kinds & 1u << d->kind) || gives_way(id))
            continue;
        const char *text;
        memcpy(&text, (const char *)&whole + a->offset, sizeof text);
        add_text(&w, id, text);
    }
    if (d->kind == DEVICE_CARD)
        add_card(&w, topo, d);
    if (d->kind == DEVICE_NIC && d->set_aside)
        add_bool(&w, ATTRIBUTE_COMPUTE, false);
    for (enum attribute_id id = 0; id < ATTRIBUTE_COUNT; id++)
        if (gives_way(id) && w.n + n_capacities(d) < SLICE_ATTRIBUTES_MAX)
            add_spare(&w, id, &whole);
}

/* `n` steps of `unit`, of which claims may have some where the card is
 * shared. */
struct steps {
    bool shared;
    uint64_t n;
    const char *unit;
};

static void add_quantity(struct writer *w, enum capacity_id id, uint64_t value,
                         const char *unit, const struct steps *steps)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%" PRIu64 "%s", value, unit);
    member_begin(w, slice_capacities[id].name, 1);
    str_add(w->out, "\"value\":\"");
    str_add(w->out, text);
    str_add_c(w->out, '"');
    if (steps->shared)
        slice_write_policy(text, steps->n, steps->unit, w->out);
    str_add_c(w->out, '}');
}

/* In the largest unit that keeps it whole, as Kubernetes would print it. */
static void add_mib(struct writer *w, enum capacity_id id, uint64_t mib,
                    bool shared)
{
    static const char *const units[] = {"Mi", "Gi", "Ti", "Pi", "Ei"};
    const struct steps steps = {shared, mib, "Mi"};
    unsigned unit = 0;
    while (mib != 0 && mib % 1024 == 0 && unit + 1 < ARRAY_LEN(units)) {
        mib /= 1024;
        unit++;
    }
    add_quantity(w, id, mib, mib == 0 ? "" : units[unit], &steps);
}

static void add_capacity(struct str *out, const struct device *d, bool shared)
{
    const struct steps cores = {shared, d->cores, ""};
    struct writer w = {.out = out};
    if (d->kind == DEVICE_NUMA) {
        add_quantity(&w, CAPACITY_CPUS, d->cpus, "", &(struct steps){0});
        add_mib(&w, CAPACITY_MEMORY, d->numa_memory_mib, false);
        return;
    }
    if (d->kind != DEVICE_CARD)
        return;
    if (d->cores != 0)
        add_quantity(&w, CAPACITY_CORES, d->cores, "", &cores);
    if (d->memory_mib != 0)
        add_mib(&w, CAPACITY_MEMORY, d->memory_mib, shared);
}

/* `given`: with how DRA may give them. */
static void add_devices(struct str *out, const struct topo *topo, size_t index,
                        bool given)
{
    size_t first = index * SLICE_DEVICES_MAX;
    size_t end = topo_n_devices(topo);
    if (end > first + SLICE_DEVICES_MAX)
        end = first + SLICE_DEVICES_MAX;
    str_add_c(out, '['); /* without a comma: it may follow other text */
    for (size_t i = first; i < end; i++) {
        const struct device *d = topo_device(topo, i);
        jwrite_object(out, NULL);
        jwrite_text(out, "name", d->id);
        jwrite_object(out, "attributes");
        add_attributes(out, topo, d);
        jwrite_end_object(out);
        if (n_capacities(d) > 0) {
            jwrite_object(out, "capacity");
            add_capacity(out, d, given && slice_is_shared(d));
            jwrite_end_object(out);
        }
        if (given)
            slice_write_given(d, out);
        jwrite_end_object(out);
    }
    str_add_c(out, ']');
}

/* --- the slice ----------------------------------------------------------- */

/* Nothing when the value is unknown. */
static void add_runs(struct str *out, const struct topo *topo)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first);
    if (topo_runs(topo) == TOPO_RUNS_NONE)
        str_add(out, SLICE_RUNS_NONE);
    if (topo_runs(topo) != TOPO_RUNS_PODS)
        return;
    str_add(out, SLICE_RUNS_HOST);
    for (size_t i = 0; i < n; i++) {
        const struct device *card = topo_device(topo, first + i);
        if (card->runs_pods)
            str_addf(out, " %s", card->id);
    }
}

void slice_content_hash(const struct topo *topo, char ret_hash[17])
{
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    str_add_json(&text, topo_node(topo));
    add_runs(&text, topo);
    for (size_t i = 0; i < slice_count(topo); i++)
        add_devices(&text, topo, i, false);
    (void)snprintf(ret_hash, 17, "%016" PRIx64,
                   hash_bytes(text.data, text.size));
}

static void add_owner(struct str *out, const char *node, const char *uid)
{
    jwrite_array(out, "ownerReferences");
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", "v1");
    jwrite_text(out, "kind", "Node");
    jwrite_text(out, "name", node);
    jwrite_text(out, "uid", uid);
    str_add(out, "}]");
}

void slice_encode(const struct topo *topo, const struct slice_epoch *epoch,
                  size_t index, struct str *out)
{
    slice_encode_object(topo, epoch, index, &(struct slice_meta){0}, out);
}

void slice_encode_object(const struct topo *topo,
                         const struct slice_epoch *epoch, size_t index,
                         const struct slice_meta *meta, struct str *out)
{
    char name[SLICE_NAME_MAX + 1], hash[17];
    slice_name(topo_node(topo), index, name);
    slice_content_hash(topo, hash);
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", SLICE_API_VERSION);
    jwrite_text(out, "kind", "ResourceSlice");
    jwrite_object(out, "metadata");
    jwrite_text(out, "name", name);
    if (meta->resource_version)
        jwrite_known_text(out, "resourceVersion", meta->resource_version);
    if (meta->owner_uid)
        add_owner(out, topo_node(topo), meta->owner_uid);
    jwrite_object(out, "annotations");
    jwrite_text(out, SLICE_ANNOTATION_BOOT_ID, epoch->boot_id);
    jwrite_text(out, SLICE_ANNOTATION_HASH, hash);
    if (topo_runs(topo) != TOPO_RUNS_UNTOLD) { /* ids need no escapes */
        str_add(out, ",\"" SLICE_ANNOTATION_RUNS "\":\"");
        add_runs(out, topo);
        str_add_c(out, '"');
    }
    str_add(out, "}}");
    jwrite_object(out, "spec");
    jwrite_text(out, "driver", SLICE_DRIVER);
    jwrite_text(out, "nodeName", topo_node(topo));
    jwrite_object(out, "pool");
    jwrite_text(out, "name", topo_node(topo));
    jwrite_int(out, "generation", epoch->generation);
    jwrite_uint(out, "resourceSliceCount", slice_count(topo));
    jwrite_end_object(out);
    jwrite_key(out, "devices");
    add_devices(out, topo, index, true);
    str_add(out, "}}");
}
