#include "advertiser/publish/kube_objects.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/jrow.h"

#define TEXT(key, field) \
    JROW(key, JROW_STRICT, jrow_fit, struct kube_objects, field)

struct editor {
    char name[KUBE_OBJECTS_EDITOR_MAX + 1];
    char time[32]; /* RFC 3339 in UTC: the greater one is later */
};

struct reading {
    struct kube_objects object; /* stands first: its rows serve for both */
    struct editor last;
};

struct owner {
    struct jtext kind;
    char uid[KUBE_OBJECTS_TEXT_MAX + 1];
};

static void read_owner(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("kind", JROW_STRICT, jrow_text, struct owner, kind),
        JROW("uid", JROW_STRICT, jrow_fit, struct owner, uid),
        JROW_END,
    };
    struct kube_objects *o = to;
    struct owner owner = {0};
    (void)jrow_read(s, JROW_STRICT, rows, &owner); /* a fault sticks */
    o->n_owners++;
    if (!*o->owner && owner.kind.data && jtext_is(&owner.kind, "Node"))
        memcpy(o->owner, owner.uid, sizeof owner.uid);
}

/* A text that is too long is left out: it is only said in the log. */
static void read_editor(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("manager", JROW_STRICT, jrow_copy, struct editor, name),
        JROW("time", JROW_STRICT, jrow_copy, struct editor, time),
        JROW_END,
    };
    struct editor e = {0}, *last = &((struct reading *)to)->last;
    if (jrow_read(s, JROW_STRICT, rows, &e) &&
        strcmp(e.name, KUBE_OBJECTS_MANAGER) != 0 &&
        strcmp(e.time, last->time) >= 0)
        *last = e;
}

static const struct jrow annotation_rows[] = {
    JROW(KUBE_OBJECTS_TOPOLOGY, JROW_STRICT, jrow_copy, struct kube_objects,
         topology),
    JROW_END,
};
static const struct jrow metadata_rows[] = {
    TEXT("name", name),
    TEXT("uid", uid),
    TEXT("resourceVersion", version),
    JROW_OBJECT("annotations", JROW_NULLABLE, annotation_rows),
    JROW_EACH("ownerReferences", JROW_NULLABLE, read_owner),
    JROW_EACH("managedFields", JROW_NULLABLE, read_editor),
    JROW_END,
};
/* Only the spec of a slice has a pool; that of others is skipped. */
static const struct jrow pool_rows[] = {
    JROW("generation", JROW_STRICT, jrow_int64, struct kube_objects,
         generation),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW_OBJECT("pool", JROW_LAX, pool_rows),
    JROW_END,
};
static const struct jrow object_rows[] = {
    JROW_OBJECT("metadata", JROW_STRICT, metadata_rows),
    JROW_OBJECT("spec", JROW_LAX, spec_rows),
    JROW_END,
};

int kube_objects_read(const char *json, size_t size,
                      struct kube_objects *ret_object, struct error *err)
{
    struct reading r = {0};
    struct kube_objects *o = &r.object;
    struct jscan s;
    jscan_init_kube(&s, json, size);
    if (jrow_parse(&s, JROW_STRICT, object_rows, &r, err) < 0)
        return -EINVAL;
    if (!*o->name || !*o->uid || !*o->version)
        return error_set(err, EINVAL,
                         "metadata: must have name, uid and resourceVersion");
    memcpy(o->editor, r.last.name, sizeof o->editor);
    *ret_object = *o;
    return 0;
}

/* --- lists -------------------------------------------------------------- */

struct list_reading {
    struct kube_objects_slices *all;
    struct error *err;
    int rc;
};

static void read_item(struct jscan *s, void *to)
{
    struct list_reading *r = to;
    struct kube_objects_slices *all = r->all;
    struct error ignored; /* it is replaced */
    struct slice *slice;
    struct jtext raw;
    if (!jscan_raw(s, &raw))
        return;
    if (all->n == KUBE_OBJECTS_SLICES_MAX) {
        all->more = true;
        return;
    }
    struct kube_objects_slice *item = &all->items[all->n];
    if (kube_objects_read(raw.data, raw.size, &item->object, r->err) < 0) {
        r->rc = error_wrap(r->err, "items[%zu]", all->n);
        jscan_fail(s, "refused", jscan_offset(s));
        return;
    }
    all->n++;
    if (slice_decode(raw.data, raw.size, &slice, &ignored) == 0)
        item->slice = slice;
}

int kube_objects_read_slices(const char *json, size_t size,
                             struct kube_objects_slices **ret_slices,
                             struct error *err)
{
    static const struct jrow rows[] = {
        JROW_EACH("items", JROW_NULLABLE, read_item),
        JROW_END,
    };
    cleanup_with(kube_objects_slices) struct kube_objects_slices *all =
        xcalloc(1, sizeof *all);
    struct list_reading r = {all, err, 0};
    struct jscan s;
    jscan_init_kube(&s, json, size);
    (void)jrow_read(&s, JROW_STRICT, rows, &r); /* a fault sticks */
    if (r.rc < 0)
        return r.rc;
    if (!jscan_end(&s))
        return jscan_error(&s, err);
    *ret_slices = steal(&all);
    return 0;
}

void kube_objects_slices_destroy(struct kube_objects_slices *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        slice_unref(s->items[i].slice);
    free(s);
}
