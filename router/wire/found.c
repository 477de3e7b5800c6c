#include "router/wire/found.h"

#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/edit.h"
#include "router/wire/fields.h"
#include "router/wire/wire_keys.h"

/* Where the two messages have it. */
static const struct form {
    enum fields_message message;
    uint32_t id, sandbox, meta, state, created, labels, annotations;
    uint32_t name, attempt;
} sandboxes =
    {
        .message = CRI_PodSandbox,
        .id = CRI_PodSandbox_id,
        .meta = CRI_PodSandbox_metadata,
        .state = CRI_PodSandbox_state,
        .created = CRI_PodSandbox_created_at,
        .labels = CRI_PodSandbox_labels,
        .annotations = CRI_PodSandbox_annotations,
        .name = CRI_PodSandboxMetadata_name,
        .attempt = CRI_PodSandboxMetadata_attempt,
},
  containers = {
      .message = CRI_Container,
      .id = CRI_Container_id,
      .sandbox = CRI_Container_pod_sandbox_id,
      .meta = CRI_Container_metadata,
      .state = CRI_Container_state,
      .created = CRI_Container_created_at,
      .labels = CRI_Container_labels,
      .annotations = CRI_Container_annotations,
      .name = CRI_ContainerMetadata_name,
      .attempt = CRI_ContainerMetadata_attempt,
};

static int take_id(const char *what, struct proto_bytes id,
                   char ret_id[FROM_REMOTE_ID_SIZE + 1], struct error *err)
{
    if (!from_remote_id_valid(id))
        return error_set(
            err, EPROTO, "%s is \"%.*s\", must be %d of 0-9 and a-f", what,
            (int)(id.size < 80 ? id.size : 80), id.data, FROM_REMOTE_ID_SIZE);
    memcpy(ret_id, id.data, FROM_REMOTE_ID_SIZE);
    ret_id[FROM_REMOTE_ID_SIZE] = '\0';
    return 0;
}

static const char *keep(struct arena *arena, struct proto_bytes text)
{
    return arena_strndup(arena, text.size ? text.data : "", text.size);
}

static bool has_labels(struct proto_bytes item, uint32_t number,
                       struct cri_pairs labels)
{
    struct proto_bytes value;
    for (size_t i = 0; i < labels.n; i++)
        if (proto_find_pair(item, number, labels.list[i].key, &value, NULL) <=
                0 ||
            !proto_equals(value, labels.list[i].value))
            return false;
    return true;
}

static void take_labels(struct proto_bytes item, uint32_t number,
                        struct arena *arena, struct cri_pairs *ret_labels)
{
    struct cri_pair *list = arena_alloc(arena, FOUND_LABELS_MAX * sizeof *list);
    struct proto_reader r;
    struct proto_field f;
    struct proto_bytes key, value;
    size_t n = 0;
    proto_reader_init(&r, item);
    while (n < FOUND_LABELS_MAX && proto_next(&r, &f, NULL) > 0)
        if (f.number == number &&
            proto_read_pair(f.bytes, &key, &value, NULL) == 0)
            list[n++] = (struct cri_pair){keep(arena, key), keep(arena, value)};
    *ret_labels = (struct cri_pairs){list, n};
}

static int take(const struct form *form, struct proto_bytes item,
                struct arena *arena, struct found *ret_found, struct error *err)
{
    struct proto_bytes metadata = edit_bytes(item, form->meta), kept = {"", 0};
    struct found f = {
        .attempt = (uint32_t)edit_number(metadata, form->attempt),
        .state = (uint32_t)edit_number(item, form->state),
        .created_ns = (int64_t)edit_number(item, form->created),
    };
    int e = take_id("the id of an item", edit_bytes(item, form->id), f.id, err);
    if (e == 0 && form->sandbox)
        e = take_id("the sandbox of a container",
                    edit_bytes(item, form->sandbox), f.sandbox_id, err);
    if (e < 0)
        return e;
    (void)proto_find_pair(item, form->annotations, WIRE_KEPT, &kept, NULL);
    if (kept.size > FOUND_KEPT_MAX)
        kept.size = 0;
    f.name = keep(arena, edit_bytes(metadata, form->name));
    f.kept = keep(arena, kept);
    take_labels(item, form->labels, arena, &f.labels);
    *ret_found = f;
    return 0;
}

struct walk {
    const struct form *form;
    struct cri_pairs labels;
    found_f *visit;
    void *ctx;
    struct error first; /* what was wrong with the first that was */
};

static void take_item(struct walk *w, struct proto_bytes item)
{
    struct error err = {0};
    struct arena arena = {0};
    struct found found;
    int e = item.size <= FROM_REMOTE_ITEM_MAX
                ? fields_check(w->form->message, item, &err)
                : error_set(&err, EPROTO,
                            "an item has %zu bytes, the limit is %d", item.size,
                            FROM_REMOTE_ITEM_MAX);
    if (e == 0 && has_labels(item, w->form->labels, w->labels)) {
        e = take(w->form, item, &arena, &found, &err);
        if (e == 0)
            w->visit(w->ctx, &found);
    }
    if (e < 0 && !w->first.code)
        w->first = err;
    arena_fini(&arena);
}

static int count(struct proto_bytes reply, struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    size_t n = 0;
    int e;
    proto_reader_init(&r, reply);
    while ((e = proto_next(&r, &f, err)) > 0)
        n += f.number == LIST_ITEMS;
    if (e == 0 && n > FROM_REMOTE_ITEMS_MAX)
        e = error_set(err, EPROTO, "lists %zu items, the limit is %d", n,
                      FROM_REMOTE_ITEMS_MAX);
    return e;
}

int found_read(const struct method *m, struct proto_bytes reply,
               struct cri_pairs labels, found_f *visit, void *ctx,
               struct error *err)
{
    struct walk w = {
        .form = m->id == METHOD_LIST_POD_SANDBOX ? &sandboxes : &containers,
        .labels = labels,
        .visit = visit,
        .ctx = ctx,
    };
    struct proto_reader r;
    struct proto_field f;
    int e = count(reply, err);
    if (e < 0)
        return error_wrap(err, "the reply to %s", method_name(m));
    proto_reader_init(&r, reply);
    while (proto_next(&r, &f, NULL) > 0)
        if (f.number == LIST_ITEMS && f.kind == PROTO_BYTES)
            take_item(&w, f.bytes);
    if (w.first.code)
        (void)error_set(err, w.first.code, "%s", w.first.text);
    return w.first.code != 0;
}
