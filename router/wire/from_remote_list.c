/* Lists and stats: items that are wrong are left out, so that one of them
 * does not cost the kubelet all others. */
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "router/wire/from_remote_private.h"

/* --- one item ------------------------------------------------------------- */

struct item {
    char id[FROM_REMOTE_ID_SIZE + 1];
    struct object o;
};

/* Whose it is: 1 when it is known. */
static int find_object(enum fields_message attributes,
                       struct proto_bytes message, bool is_container,
                       const struct known *known, struct item *item,
                       struct error *err)
{
    int e = from_remote_take_id(attributes, message, item->id, err);
    if (e < 0)
        return e;
    item->o = (struct object){0};
    if (is_container) {
        item->o.container = known->container(known->ctx, item->id);
        item->o.sandbox = item->o.container ? item->o.container->sandbox : NULL;
    } else {
        item->o.sandbox = known->sandbox(known->ctx, item->id);
    }
    return item->o.sandbox != NULL;
}

static int edit_layer(void *ctx, const struct proto_field *f, struct str *out,
                      struct error *err)
{
    (void)ctx;
    (void)out;
    (void)err;
    /* a path of the remote, which the kubelet would look up here */
    return f->number == CRI_FilesystemUsage_fs_id ? EDIT_DROP : EDIT_COPY;
}

static int edit_container_stats(void *ctx, const struct proto_field *f,
                                struct str *out, struct error *err)
{
    const struct item *item = ctx;
    if (f->number == CRI_ContainerStats_writable_layer)
        return edit_within(f, edit_layer, NULL, NULL, out, err);
    if (f->number != CRI_ContainerStats_attributes)
        return EDIT_COPY;
    size_t opened = proto_open(out, f->number);
    int e = from_remote_add_object(CRI_ContainerAttributes, f->bytes, &item->o,
                                   out, err);
    proto_close(out, opened);
    return e;
}

struct stats {
    const struct item *item;
    const struct known *known;
};

static int edit_stats_linux(void *ctx, const struct proto_field *f,
                            struct str *out, struct error *err)
{
    const struct stats *s = ctx;
    struct item item = {0};
    if (f->number != CRI_LinuxPodSandboxStats_containers)
        return EDIT_COPY;
    int e = find_object(CRI_ContainerAttributes,
                        edit_bytes(f->bytes, CRI_ContainerStats_attributes),
                        true, s->known, &item, err);
    if (e <= 0 || strcmp(item.o.sandbox->id, s->item->id) != 0)
        return e < 0 ? e : EDIT_DROP;
    return edit_within(f, edit_container_stats, NULL, &item, out, err);
}

static int edit_sandbox_stats(void *ctx, const struct proto_field *f,
                              struct str *out, struct error *err)
{
    const struct stats *s = ctx;
    if (f->number == CRI_PodSandboxStats_linux)
        return edit_within(f, edit_stats_linux, NULL, ctx, out, err);
    if (f->number != CRI_PodSandboxStats_attributes)
        return EDIT_COPY;
    size_t opened = proto_open(out, f->number);
    int e = from_remote_add_object(CRI_PodSandboxAttributes, f->bytes,
                                   &s->item->o, out, err);
    proto_close(out, opened);
    return e;
}

/* What is newer and has bytes is left out first. */
static int add_item(const struct list_form *form, struct proto_bytes message,
                    const struct known *known, struct item *item,
                    struct str *out, struct error *err)
{
    struct stats stats = {item, known};
    bool is_container = form->item == CRI_Container ||
                        form->item == CRI_ContainerStats;
    cleanup_str struct str clean = {.max = FROM_REMOTE_ITEM_MAX, .soft = true};
    if (message.size > FROM_REMOTE_ITEM_MAX)
        return error_set(err, EPROTO, "%s: has %zu bytes, the limit is %d",
                         fields_message_name(form->item), message.size,
                         FROM_REMOTE_ITEM_MAX);
    int e = fields_check(form->item, message, err);
    if (e < 0)
        return e;
    fields_copy_known(form->item, message, &clean);
    if ((e = edit_end(&clean, err)) < 0)
        return e;
    message = (struct proto_bytes){clean.data, clean.size};
    struct proto_bytes attributes =
        form->item_attributes ? edit_bytes(message, form->item_attributes)
                              : message;
    e = find_object(form->item_attributes ? form->attributes : form->item,
                    attributes, is_container, known, item, err);
    if (e <= 0)
        return e;
    if (form->item == CRI_ContainerStats)
        e = edit_fields(message, edit_container_stats, item, out, err);
    else if (form->item == CRI_PodSandboxStats)
        e = edit_fields(message, edit_sandbox_stats, &stats, out, err);
    else
        e = from_remote_add_object(form->item, message, &item->o, out, err);
    if (e == 0)
        e = edit_end(out, err);
    return e < 0 ? e : 1;
}

/* --- lists ---------------------------------------------------------------- */

struct list {
    const struct list_form *form;
    const struct known *known;
    from_remote_item_f *visit;
    void *ctx;
    struct strmap seen;
    struct str text; /* of the present item */
    struct error first;
};

static void left_out(struct list *l, const struct error *err)
{
    if (!l->first.code)
        l->first = *err;
}

/* One that is known is there once, however often it is told. */
static bool is_new(struct list *l, const struct item *item)
{
    const char *id = item->o.container ? item->o.container->id
                                       : item->o.sandbox->id;
    return strmap_put(&l->seen, id, (void *)(uintptr_t)id) == NULL;
}

static void take_item(struct list *l, struct proto_bytes message)
{
    struct error err = {0};
    struct item item = {0};
    str_reset(&l->text);
    int e = add_item(l->form, message, l->known, &item, &l->text, &err);
    if (e > 0 && !is_new(l, &item))
        e = error_set(&err, EPROTO, "%s: %.20s… is listed twice",
                      fields_message_name(l->form->item), item.id);
    if (e > 0) {
        const struct list_item told = {
            .id = item.o.container ? item.o.container->id : item.o.sandbox->id,
            .sandbox_id = item.o.sandbox->id,
            .message = {l->text.data, l->text.size},
        };
        l->visit(l->ctx, &told);
    } else if (e < 0) {
        left_out(l, &err);
    }
}

/* So that nothing was told when the reply turns out to be none. */
static int check_list(const struct method *m, struct proto_bytes reply,
                      struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    size_t n = 0;
    int e;
    proto_reader_init(&r, reply);
    while ((e = proto_next(&r, &f, err)) > 0) {
        if (f.number != LIST_ITEMS)
            continue;
        if (f.kind != PROTO_BYTES)
            return error_set(err, EPROTO, "the reply to %s has no messages",
                             method_name(m));
        n++;
    }
    if (e == 0 && n > FROM_REMOTE_ITEMS_MAX)
        e = error_set(err, EPROTO, "lists %zu items, the limit is %d", n,
                      FROM_REMOTE_ITEMS_MAX);
    return e < 0 ? error_wrap(err, "the reply to %s", method_name(m)) : 0;
}

int from_remote_list(const struct method *m, struct proto_bytes reply,
                     const struct known *known, from_remote_item_f *visit,
                     void *ctx, struct error *err)
{
    struct list l = {
        .form = list_form_get(m),
        .known = known,
        .visit = visit,
        .ctx = ctx,
        .text = {.max = 2 * FROM_REMOTE_ITEM_MAX, .soft = true},
    };
    struct proto_reader r;
    struct proto_field f;
    int e = l.form ? check_list(m, reply, err)
                   : error_set(err, EPROTO, "%s is no list", method_name(m));
    if (e < 0)
        return e;
    proto_reader_init(&r, reply);
    while (proto_next(&r, &f, NULL) > 0)
        if (f.number == LIST_ITEMS)
            take_item(&l, f.bytes);
    strmap_fini(&l.seen);
    str_fini(&l.text);
    if (l.first.code)
        (void)error_set(err, l.first.code, "%s", l.first.text);
    return l.first.code != 0;
}

/* --- stats of one --------------------------------------------------------- */

int from_remote_stats(const struct method *m, struct proto_bytes reply,
                      const struct known *known, struct str *out,
                      struct error *err)
{
    const struct list_form *form = list_form_get(method_get(
        m->id == METHOD_CONTAINER_STATS ? METHOD_LIST_CONTAINER_STATS
                                        : METHOD_LIST_POD_SANDBOX_STATS));
    struct proto_field f;
    struct item item = {0};
    int e = proto_find(reply, LIST_ITEMS, PROTO_BYTES, &f, err);
    if (e == 0)
        e = error_set(err, EPROTO, "has no stats");
    if (e < 0)
        return error_wrap(err, "the reply to %s", method_name(m));
    size_t opened = proto_open(out, LIST_ITEMS);
    e = add_item(form, f.bytes, known, &item, out, err);
    if (e == 0)
        e = error_set(err, EPROTO, "is about nothing that is known");
    proto_close(out, opened);
    return e < 0 ? error_wrap(err, "the reply to %s", method_name(m))
                 : edit_end(out, err);
}
