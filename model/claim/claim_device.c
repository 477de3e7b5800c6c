#include "model/claim/claim_device.h"

#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_capacity.h"
#include "model/claim/claim_read.h"

#define STANDARD_DOMAIN "resource.kubernetes.io"

struct reading {
    struct claim_reading base;
    struct claim_slice *slice;
    struct jtext name, driver, pool, node;
    bool all_nodes, by_device, has_selector;
    struct claim_device devices[CLAIM_DEVICES_MAX];
};

/* One device; maps are put in order behind the whole object, because the
 * driver may stand behind the devices. */
struct device_reading {
    struct reading *all;
    char path[64];
    struct jtext name, node;
    bool allow_multiple;
    struct claim_attribute attributes[CLAIM_ATTRIBUTES_MAX];
    struct claim_capacity capacities[CLAIM_CAPACITIES_MAX];
    struct claim_taint taints[CLAIM_TAINTS_MAX];
    size_t n_attributes, n_capacities, n_taints;
};

static void read_true(struct jscan *s, void *to)
{
    (void)jscan_bool(s, to); /* a fault sticks */
}

/* --- attributes --------------------------------------------------------- */

static void read_value(struct jscan *s, struct device_reading *d,
                       struct claim_attribute *a)
{
    struct jtext key, text = {0};
    bool truth = false;
    a->type = CLAIM_OTHER;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jscan_null(s)) {
            continue;
        } else if (jtext_is(&key, "string") || jtext_is(&key, "version")) {
            a->type = jtext_is(&key, "string") ? CLAIM_TEXT : CLAIM_VERSION;
            (void)jscan_string(s, &text); /* a fault ends the loop */
        } else if (jtext_is(&key, "int")) {
            a->type = CLAIM_INT;
            (void)jscan_int64(s, &a->number);
        } else if (jtext_is(&key, "bool")) {
            a->type = CLAIM_BOOL;
            if (jscan_bool(s, &truth))
                a->number = truth;
        } else {
            (void)jscan_skip(s);
        }
    }
    cleanup_free char *path = xasprintf("%s.attributes[\"%s\"]", d->path,
                                        a->name);
    a->text = claim_keep(&d->all->base, s, &text, CLAIM_TEXT_MAX, path);
}

static void read_attributes(struct jscan *s, void *to)
{
    struct device_reading *d = to;
    struct claim_reading *r = &d->all->base;
    struct jtext key;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (d->n_attributes == CLAIM_ATTRIBUTES_MAX) {
            claim_refuse(r, s, EINVAL, "%s.attributes: are more than %d",
                         d->path, CLAIM_ATTRIBUTES_MAX);
            return;
        }
        struct claim_attribute *a = &d->attributes[d->n_attributes];
        *a = (struct claim_attribute){.text = ""};
        /* the whole name until the driver is known */
        a->name = claim_need(r, s, &key, CLAIM_NAME_MAX, "an attribute's name");
        if (!a->name)
            return;
        read_value(s, d, a);
        d->n_attributes++;
    }
}

/* --- capacities and taints ----------------------------------------------- */

static void read_capacities(struct jscan *s, void *to)
{
    struct device_reading *d = to;
    char path[80];
    (void)snprintf(path, sizeof path, "%s.capacity", d->path);
    d->n_capacities = claim_read_capacities(&d->all->base, s, CAPACITY_DEVICE,
                                            path, d->capacities);
}

struct taint_reading {
    struct jtext key, value, effect;
};

static void read_taint(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("key", JROW_NULLABLE, jrow_text, struct taint_reading, key),
        JROW("value", JROW_NULLABLE, jrow_text, struct taint_reading, value),
        JROW("effect", JROW_NULLABLE, jrow_text, struct taint_reading, effect),
        JROW_END,
    };
    struct device_reading *d = to;
    struct claim_reading *r = &d->all->base;
    struct taint_reading t = {0};
    if (!jrow_read(s, JROW_STRICT, rows, &t))
        return;
    if (d->n_taints == CLAIM_TAINTS_MAX) {
        claim_refuse(r, s, EINVAL, "%s.taints: are more than %d", d->path,
                     CLAIM_TAINTS_MAX);
        return;
    }
    struct claim_taint *taint = &d->taints[d->n_taints++];
    taint->key = claim_keep(r, s, &t.key, 2 * CLAIM_NAME_MAX, "a taint's key");
    taint->value = claim_keep(r, s, &t.value, CLAIM_TEXT_MAX,
                              "a taint's value");
    taint->effect = claim_keep(r, s, &t.effect, CLAIM_TEXT_MAX,
                               "a taint's effect");
}

/* --- devices ------------------------------------------------------------ */

static const struct jrow device_rows[] = {
    JROW("name", JROW_NULLABLE, jrow_text, struct device_reading, name),
    JROW("nodeName", JROW_NULLABLE, jrow_text, struct device_reading, node),
    JROW_CALL_TO("allowMultipleAllocations", JROW_NULLABLE, JKIND_NONE,
                 read_true, struct device_reading, allow_multiple),
    JROW_CALL("attributes", JROW_NULLABLE, JKIND_OBJECT, read_attributes),
    JROW_CALL("capacity", JROW_NULLABLE, JKIND_OBJECT, read_capacities),
    JROW_EACH("taints", JROW_NULLABLE, read_taint),
    JROW_END,
};

static void read_device(struct jscan *s, void *to)
{
    struct reading *all = to;
    struct claim_reading *r = &all->base;
    struct claim_slice *slice = all->slice;
    if (slice->n_devices == CLAIM_DEVICES_MAX) {
        claim_refuse(r, s, EINVAL, "spec.devices: are more than %d",
                     CLAIM_DEVICES_MAX);
        return;
    }
    cleanup_free struct device_reading *d = xcalloc(1, sizeof *d);
    d->all = all;
    (void)snprintf(d->path, sizeof d->path, "spec.devices[%zu]",
                   slice->n_devices);
    if (!jrow_read(s, JROW_STRICT, device_rows, d))
        return;
    cleanup_free char *path = xasprintf("%s.name", d->path);
    struct claim_device device = {
        .name = claim_need(r, s, &d->name, CLAIM_NAME_MAX, path),
        .node = claim_keep(r, s, &d->node, CLAIM_NAME_MAX, "a device's node"),
        .allow_multiple = d->allow_multiple,
        .n_attributes = d->n_attributes,
        .n_capacities = d->n_capacities,
        .n_taints = d->n_taints,
        .pcie_root = "",
    };
    device.attributes = claim_keep_array(r, d->attributes, d->n_attributes,
                                         sizeof *d->attributes);
    device.capacities = claim_keep_array(r, d->capacities, d->n_capacities,
                                         sizeof *d->capacities);
    device.taints = claim_keep_array(r, d->taints, d->n_taints,
                                     sizeof *d->taints);
    all->devices[slice->n_devices++] = device;
}

/* --- what follows from the driver ----------------------------------------- */

/* "domain/name" or "name" into both. */
static void split(struct arena *arena, const char *whole, const char *driver,
                  const char **ret_domain, const char **ret_name)
{
    const char *slash = strchr(whole, '/');
    *ret_domain = slash ? arena_strndup(arena, whole, (size_t)(slash - whole))
                        : driver;
    *ret_name = slash ? slash + 1 : whole;
}

static int compare_names(const char *domain_a, const char *name_a,
                         const char *domain_b, const char *name_b)
{
    int order = strcmp(domain_a, domain_b);
    return order ? order : strcmp(name_a, name_b);
}

static int compare_attributes(const void *va, const void *vb)
{
    const struct claim_attribute *a = va, *b = vb;
    return compare_names(a->domain, a->name, b->domain, b->name);
}

static int compare_capacities(const void *va, const void *vb)
{
    const struct claim_capacity *a = va, *b = vb;
    return compare_names(a->domain, a->name, b->domain, b->name);
}

static void device_finish(struct claim_slice *slice, struct claim_device *d)
{
    /* both arrays are the slice's own */
    struct claim_attribute *attributes =
        (struct claim_attribute *)(uintptr_t)d->attributes;
    struct claim_capacity *capacities =
        (struct claim_capacity *)(uintptr_t)d->capacities;
    struct error ignored; /* what is no address is none */
    for (size_t i = 0; i < d->n_attributes; i++)
        split(&slice->arena, attributes[i].name, slice->driver,
              &attributes[i].domain, &attributes[i].name);
    for (size_t i = 0; i < d->n_capacities; i++)
        split(&slice->arena, capacities[i].key, slice->driver,
              &capacities[i].domain, &capacities[i].name);
    qsort(attributes, d->n_attributes, sizeof *attributes, compare_attributes);
    qsort(capacities, d->n_capacities, sizeof *capacities, compare_capacities);
    const struct claim_attribute *a = claim_device_attribute(d, STANDARD_DOMAIN,
                                                             "pciBusID");
    d->has_pci = a && a->type == CLAIM_TEXT &&
                 pci_addr_parse(a->text, &d->pci, &ignored) == 0;
    a = claim_device_attribute(d, STANDARD_DOMAIN, "pcieRoot");
    d->pcie_root = a && a->type == CLAIM_TEXT ? a->text : "";
}

/* --- the object --------------------------------------------------------- */

static void read_selector(struct jscan *s, void *to)
{
    ((struct reading *)to)->has_selector = true;
    (void)jscan_skip(s); /* a fault sticks */
}

static void read_generation(struct jscan *s, void *to)
{
    (void)jscan_int64(s, &((struct reading *)to)->slice->generation);
}

static void read_slice_count(struct jscan *s, void *to)
{
    (void)jscan_int64(s, &((struct reading *)to)->slice->slice_count);
}

static const struct jrow pool_rows[] = {
    JROW("name", JROW_NULLABLE, jrow_text, struct reading, pool),
    JROW_CALL("generation", JROW_NULLABLE, JKIND_NUMBER, read_generation),
    JROW_CALL("resourceSliceCount", JROW_NULLABLE, JKIND_NUMBER,
              read_slice_count),
    JROW_END,
};
static const struct jrow metadata_rows[] = {
    JROW("name", JROW_NULLABLE, jrow_text, struct reading, name),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW("driver", JROW_NULLABLE, jrow_text, struct reading, driver),
    JROW("nodeName", JROW_NULLABLE, jrow_text, struct reading, node),
    JROW_OBJECT("pool", JROW_NULLABLE, pool_rows),
    JROW_CALL_TO("allNodes", JROW_NULLABLE, JKIND_NONE, read_true,
                 struct reading, all_nodes),
    JROW_CALL_TO("perDeviceNodeSelection", JROW_NULLABLE, JKIND_NONE, read_true,
                 struct reading, by_device),
    JROW_CALL("nodeSelector", JROW_NULLABLE, JKIND_OBJECT, read_selector),
    JROW_EACH("devices", JROW_NULLABLE, read_device),
    JROW_END,
};
static const struct jrow object_rows[] = {
    JROW_OBJECT("metadata", JROW_NULLABLE, metadata_rows),
    JROW_OBJECT("spec", JROW_NULLABLE, spec_rows),
    JROW_END,
};

static int finish(struct reading *all)
{
    struct claim_slice *slice = all->slice;
    struct claim_reading *r = &all->base;
    struct jscan none; /* it only carries the refusal */
    jscan_init(&none, "", 0);
    slice->name = claim_need(r, &none, &all->name, CLAIM_NAME_MAX,
                             "metadata.name");
    slice->driver = claim_need(r, &none, &all->driver, CLAIM_NAME_MAX,
                               "spec.driver");
    slice->pool = claim_need(r, &none, &all->pool, CLAIM_NAME_MAX,
                             "spec.pool.name");
    slice->node = claim_keep(r, &none, &all->node, CLAIM_NAME_MAX,
                             "spec.nodeName");
    if (r->code)
        return r->code;
    slice->reach = all->by_device      ? CLAIM_BY_DEVICE
                   : all->all_nodes    ? CLAIM_OF_ALL
                   : all->has_selector ? CLAIM_BY_SELECTOR
                                       : CLAIM_OF_NODE;
    if (slice->reach == CLAIM_OF_NODE && !*slice->node)
        return error_set(r->err, EINVAL,
                         "spec.nodeName: must not be empty, unless nodes are "
                         "selected otherwise");
    if (slice->reach != CLAIM_OF_NODE)
        slice->node = "";
    for (size_t i = 0; i < slice->n_devices; i++)
        device_finish(slice, &all->devices[i]);
    slice->devices = claim_keep_array(r, all->devices, slice->n_devices,
                                      sizeof *all->devices);
    return 0;
}

int claim_slice_read(const char *json, size_t size,
                     struct claim_slice **ret_slice, struct error *err)
{
    cleanup_with(claim_slice) struct claim_slice *slice =
        xcalloc(1, sizeof *slice);
    cleanup_free struct reading *r = xcalloc(1, sizeof *r);
    r->base = (struct claim_reading){.arena = &slice->arena, .err = err};
    r->slice = slice;
    int rc = claim_read_object(json, size, CLAIM_SLICE_MAX, object_rows,
                               &r->base);
    if (rc == 0)
        rc = finish(r);
    if (rc == 0)
        *ret_slice = steal(&slice);
    return rc;
}

void claim_slice_destroy(struct claim_slice *slice)
{
    if (!slice)
        return;
    arena_fini(&slice->arena);
    free(slice);
}

/* --- look-ups ----------------------------------------------------------- */

const struct claim_attribute *
claim_device_attribute(const struct claim_device *device, const char *domain,
                       const char *name)
{
    size_t low = 0, high = device->n_attributes;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct claim_attribute *a = &device->attributes[middle];
        int order = compare_names(a->domain, a->name, domain, name);
        if (order == 0)
            return a;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct claim_capacity *
claim_device_capacity(const struct claim_device *device, const char *domain,
                      const char *name)
{
    for (size_t i = 0; i < device->n_capacities; i++) {
        const struct claim_capacity *c = &device->capacities[i];
        if (strcmp(c->domain, domain) == 0 && strcmp(c->name, name) == 0)
            return c;
    }
    return NULL;
}
