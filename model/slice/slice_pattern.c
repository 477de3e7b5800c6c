#include "model/slice/slice_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/jscan.h"
#include "model/slice/slice_pattern_private.h"
#include "model/slice/slice_private.h"
#include "model/topo/topo_hardware.h"

void slice_pattern_destroy(struct slice_pattern *p)
{
    if (!p)
        return;
    hardware_unref(p->hardware);
    free(p->holes);
    free(p->json);
    free(p);
}

/* --- finding the holes ---------------------------------------------------- */

struct finder {
    struct jscan s;
    struct slice_pattern *p;
    const struct topo *topo;
    size_t cap;
    bool unfit;
};

static void add_hole(struct finder *f, const struct jtext *t, size_t slot)
{
    struct slice_pattern *p = f->p;
    p->holes = xgrow(p->holes, p->n_holes, &f->cap, sizeof *p->holes);
    p->holes[p->n_holes++] = (struct hole){(size_t)(t->data - f->s.begin),
                                           t->size, slot};
}

/* A value that may be another one elsewhere. */
static void take(struct finder *f, size_t slot)
{
    struct jtext t;
    if (slot == SLOT_GENERATION) {
        f->unfit |= !jscan_raw(&f->s, &t) || t.size > SLICE_GENERATION_DIGITS ||
                    slice_digits_size(t.data, t.size) != t.size;
    } else if (jscan_peek(&f->s) == JKIND_STRING) {
        f->unfit |= !jscan_string(&f->s, &t) ||
                    slice_plain_size(t.data, t.size) != t.size;
    } else {
        (void)jscan_skip(&f->s); /* null: as if it were not there */
        return;
    }
    if (!f->unfit)
        add_hole(f, &t, slot);
}

/* Into the next object; another value is left behind. */
static bool enter(struct finder *f)
{
    if (jscan_peek(&f->s) == JKIND_OBJECT)
        return jscan_object(&f->s);
    (void)jscan_skip(&f->s);
    return false;
}

/* SLOT_OWN and the number of a text of a device; another slot; or -1. */
static int slot_of(const struct jtext *key)
{
    static const struct {
        enum attribute_id id;
        int slot;
    } slots[] = {
        {ATTRIBUTE_SERIAL, SLOT_OWN + OWN_SERIAL},
        {ATTRIBUTE_GUID, SLOT_OWN + OWN_GUID},
        {ATTRIBUTE_FABRIC_PORT, SLOT_OWN + OWN_FABRIC_PORT},
        {ATTRIBUTE_ENDPOINT, SLOT_OWN + OWN_ENDPOINT},
        {ATTRIBUTE_NODE, SLOT_NODE_TEXT},
    };
    for (size_t i = 0; i < ARRAY_LEN(slots); i++)
        if (jtext_is(key, slice_attributes[slots[i].id].name))
            return slots[i].slot;
    return -1;
}

/* The text of an attribute. */
static void find_in_value(struct finder *f, size_t slot)
{
    struct jtext type;
    if (!enter(f))
        return;
    while (jscan_member(&f->s, &type))
        if (jtext_is(&type, "string"))
            take(f, slot);
        else
            (void)jscan_skip(&f->s);
}

static void find_in_attributes(struct finder *f)
{
    struct jtext key;
    if (!enter(f))
        return;
    while (jscan_member(&f->s, &key)) {
        int slot = slot_of(&key);
        if (slot < 0)
            (void)jscan_skip(&f->s);
        else
            find_in_value(f, (size_t)slot);
    }
}

/* Which device of the topology has this id; -1: it is written with escapes. */
static ptrdiff_t device_index(const struct finder *f, const struct jtext *id)
{
    char text[TOPO_ID_MAX + 1];
    if (id->escaped || id->size > TOPO_ID_MAX)
        return -1;
    memcpy(text, id->data, id->size);
    text[id->size] = '\0';
    const struct device *d = topo_find(f->topo, text);
    return d ? d - topo_device(f->topo, 0) : -1;
}

static void find_in_device(struct finder *f)
{
    struct jtext key, id = {0};
    size_t first = f->p->n_holes;
    if (!enter(f))
        return;
    while (jscan_member(&f->s, &key)) {
        if (jtext_is(&key, "attributes"))
            find_in_attributes(f);
        else if (!jtext_is(&key, "name") || !jscan_string(&f->s, &id))
            (void)jscan_skip(&f->s);
    }
    ptrdiff_t index = device_index(f, &id);
    f->unfit |= index < 0;
    for (size_t i = first; !f->unfit && i < f->p->n_holes; i++)
        if (f->p->holes[i].slot >= SLOT_OWN)
            f->p->holes[i].slot += (size_t)index * OWN_COUNT;
}

static void find_in_pool(struct finder *f)
{
    struct jtext key;
    if (!enter(f))
        return;
    while (jscan_member(&f->s, &key))
        if (jtext_is(&key, "name"))
            take(f, SLOT_POOL);
        else if (jtext_is(&key, "generation"))
            take(f, SLOT_GENERATION);
        else
            (void)jscan_skip(&f->s);
}

static void find_in_spec(struct finder *f)
{
    struct jtext key;
    if (!enter(f))
        return;
    while (jscan_member(&f->s, &key)) {
        if (jtext_is(&key, "nodeName"))
            take(f, SLOT_NODE);
        else if (jtext_is(&key, "pool"))
            find_in_pool(f);
        else if (!jtext_is(&key, "devices") || jscan_peek(&f->s) != JKIND_ARRAY)
            (void)jscan_skip(&f->s);
        else if (jscan_array(&f->s))
            while (jscan_element(&f->s))
                find_in_device(f);
    }
}

static void find_in_annotations(struct finder *f)
{
    struct jtext key;
    if (!enter(f))
        return;
    while (jscan_member(&f->s, &key))
        if (jtext_is(&key, SLICE_ANNOTATION_BOOT_ID))
            take(f, SLOT_BOOT_ID);
        else if (jtext_is(&key, SLICE_ANNOTATION_HASH))
            take(f, SLOT_HASH);
        else
            (void)jscan_skip(&f->s);
}

static void find_in_metadata(struct finder *f)
{
    struct jtext key;
    if (!enter(f))
        return;
    while (jscan_member(&f->s, &key))
        if (jtext_is(&key, "name"))
            take(f, SLOT_NAME);
        else if (jtext_is(&key, "annotations"))
            find_in_annotations(f);
        else
            (void)jscan_skip(&f->s);
}

static bool find_holes(struct slice_pattern *p, const struct topo *topo)
{
    struct finder f = {.p = p, .topo = topo};
    struct jtext key;
    jscan_init(&f.s, p->json, p->size);
    if (!enter(&f))
        return false;
    while (jscan_member(&f.s, &key))
        if (jtext_is(&key, "metadata"))
            find_in_metadata(&f);
        else if (jtext_is(&key, "spec"))
            find_in_spec(&f);
        else
            (void)jscan_skip(&f.s);
    return jscan_end(&f.s) && !f.unfit;
}

struct slice_pattern *slice_pattern_create(const char *json, size_t size,
                                           const struct slice *slice,
                                           const struct topo *topo)
{
    if (slice->pool_count != 1)
        return NULL;
    cleanup_with(slice_pattern) struct slice_pattern *p = xcalloc(1, sizeof *p);
    p->json = xmemdup(json, size);
    p->size = size;
    p->hardware = hardware_ref(topo_hardware(topo));
    p->n_slots = SLOT_OWN + topo_n_devices(topo) * OWN_COUNT;
    p->given = slice->given;
    return find_holes(p, topo) ? steal(&p) : NULL;
}
