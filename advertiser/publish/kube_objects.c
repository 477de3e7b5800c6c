#include "advertiser/publish/kube_objects.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/jscan.h"

/* A text into `size` bytes; one that does not fit is a fault. */
static void read_text(struct jscan *s, char *ret_text, size_t size)
{
    struct jtext text;
    size_t at = jscan_offset(s);
    if (!jscan_string(s, &text))
        return;
    if (text.size >= size) {
        jscan_fail(s, "text too long", at);
        return;
    }
    (void)jtext_decode(&text, ret_text);
}

static void read_annotations(struct jscan *s, struct kube_objects *o)
{
    struct jtext key;
    if (jscan_null(s) || !jscan_object(s))
        return;
    while (jscan_member(s, &key)) {
        struct jtext value;
        if (!jtext_is(&key, KUBE_OBJECTS_TOPOLOGY))
            (void)jscan_skip(s);
        else if (jscan_string(s, &value) && value.size <= KUBE_OBJECTS_TEXT_MAX)
            (void)jtext_decode(&value, o->topology);
    }
}

static void read_owner(struct jscan *s, struct kube_objects *o)
{
    struct jtext key, kind = {0};
    char uid[KUBE_OBJECTS_TEXT_MAX + 1] = "";
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "kind"))
            (void)jscan_string(s, &kind);
        else if (jtext_is(&key, "uid"))
            read_text(s, uid, sizeof uid);
        else
            (void)jscan_skip(s);
    }
    o->n_owners++;
    if (!*o->owner && kind.data && jtext_is(&kind, "Node"))
        memcpy(o->owner, uid, sizeof uid);
}

static void read_owners(struct jscan *s, struct kube_objects *o)
{
    if (jscan_null(s) || !jscan_array(s))
        return;
    while (jscan_element(s))
        read_owner(s, o);
}

struct editor {
    char name[KUBE_OBJECTS_EDITOR_MAX + 1];
    char time[32]; /* RFC 3339 in UTC: the greater one is later */
};

/* One that is too long is left out: it is only said in the log. */
static void read_short(struct jscan *s, char *ret_text, size_t size)
{
    struct jtext text;
    *ret_text = '\0';
    if (jscan_string(s, &text) && text.size < size)
        (void)jtext_decode(&text, ret_text);
}

static void read_editor(struct jscan *s, struct editor *ret_editor)
{
    struct jtext key;
    struct editor e = {0};
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "manager"))
            read_short(s, e.name, sizeof e.name);
        else if (jtext_is(&key, "time"))
            read_short(s, e.time, sizeof e.time);
        else
            (void)jscan_skip(s);
    }
    if (strcmp(e.name, KUBE_OBJECTS_MANAGER) != 0 &&
        strcmp(e.time, ret_editor->time) >= 0)
        *ret_editor = e;
}

static void read_editors(struct jscan *s, struct kube_objects *o)
{
    struct editor last = {0};
    if (jscan_null(s) || !jscan_array(s))
        return;
    while (jscan_element(s))
        read_editor(s, &last);
    memcpy(o->editor, last.name, sizeof o->editor);
}

static void read_metadata(struct jscan *s, struct kube_objects *o)
{
    struct jtext key;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "name"))
            read_text(s, o->name, sizeof o->name);
        else if (jtext_is(&key, "uid"))
            read_text(s, o->uid, sizeof o->uid);
        else if (jtext_is(&key, "resourceVersion"))
            read_text(s, o->version, sizeof o->version);
        else if (jtext_is(&key, "annotations"))
            read_annotations(s, o);
        else if (jtext_is(&key, "ownerReferences"))
            read_owners(s, o);
        else if (jtext_is(&key, "managedFields"))
            read_editors(s, o);
        else
            (void)jscan_skip(s);
    }
}

/* Of anything but a slice there is nothing in it for us. */
static void read_spec(struct jscan *s, struct kube_objects *o)
{
    struct jtext key;
    if (jscan_peek(s) != JKIND_OBJECT || !jscan_object(s)) {
        (void)jscan_skip(s);
        return;
    }
    while (jscan_member(s, &key)) {
        if (!jtext_is(&key, "pool") || jscan_peek(s) != JKIND_OBJECT) {
            (void)jscan_skip(s);
            continue;
        }
        for (bool in = jscan_object(s); in && jscan_member(s, &key);) {
            if (jtext_is(&key, "generation"))
                (void)jscan_int64(s, &o->generation);
            else
                (void)jscan_skip(s);
        }
    }
}

int kube_objects_read(const char *json, size_t size,
                      struct kube_objects *ret_object, struct error *err)
{
    struct kube_objects o = {0};
    struct jscan s;
    struct jtext key;
    jscan_init_kube(&s, json, size);
    for (bool in = jscan_object(&s); in && jscan_member(&s, &key);) {
        if (jtext_is(&key, "metadata"))
            read_metadata(&s, &o);
        else if (jtext_is(&key, "spec"))
            read_spec(&s, &o);
        else
            (void)jscan_skip(&s);
    }
    if (!jscan_end(&s))
        return jscan_error(&s, err);
    if (!*o.name || !*o.uid || !*o.version)
        return error_set(err, EINVAL,
                         "metadata: must have name, uid and resourceVersion");
    *ret_object = o;
    return 0;
}

/* --- lists -------------------------------------------------------------- */

static int take_item(struct kube_objects_slices *all, const struct jtext *raw,
                     struct error *err)
{
    if (all->n == KUBE_OBJECTS_SLICES_MAX) {
        all->more = true;
        return 0;
    }
    struct kube_objects_slice *item = &all->items[all->n];
    int r = kube_objects_read(raw->data, raw->size, &item->object, err);
    if (r < 0)
        return error_wrap(err, "items[%zu]", all->n);
    all->n++;
    struct error ignored; /* it is replaced */
    struct slice *slice;
    if (slice_decode(raw->data, raw->size, &slice, &ignored) == 0)
        item->slice = slice;
    return 0;
}

int kube_objects_read_slices(const char *json, size_t size,
                             struct kube_objects_slices **ret_slices,
                             struct error *err)
{
    cleanup_with(kube_objects_slices) struct kube_objects_slices *all =
        xcalloc(1, sizeof *all);
    struct jscan s;
    struct jtext key, raw;
    jscan_init_kube(&s, json, size);
    for (bool in = jscan_object(&s); in && jscan_member(&s, &key);) {
        if (!jtext_is(&key, "items")) {
            (void)jscan_skip(&s);
            continue;
        }
        bool some = !jscan_null(&s) && jscan_array(&s);
        while (some && jscan_element(&s)) {
            if (!jscan_raw(&s, &raw))
                break;
            int r = take_item(all, &raw, err);
            if (r < 0)
                return r;
        }
    }
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
