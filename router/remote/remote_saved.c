#include "router/remote/remote_saved.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/io/file.h"
#include "router/remote/remote_private.h"

/* A message of Protocol Buffers behind its hash. */
enum { SANDBOXES = 1, CONTAINERS = 2, ITEM = 3 };
enum { ID = 1, SANDBOX_ID = 2, IS_SANDBOX = 3, STATE = 4, STATUS = 5 };
enum { SUM_SIZE = 8 };

/* --- writing -------------------------------------------------------------- */

static void add_blob(struct str *out, uint32_t number,
                     const struct remote_blob *b)
{
    if (b)
        proto_add_bytes(out, number, (struct proto_bytes){b->data, b->size});
}

static void add_item(struct str *out, const struct remote_item *item)
{
    size_t at = proto_open(out, ITEM);
    proto_add_text(out, ID, item->id);
    proto_add_text(out, SANDBOX_ID, item->sandbox_id);
    proto_add_varint(out, IS_SANDBOX, item->sandbox);
    proto_add_varint(out, STATE, item->state);
    add_blob(out, STATUS, item->status);
    proto_close(out, at);
}

void remote_saved_write(const struct remote_view *v, struct str *out)
{
    size_t begin = out->size;
    str_add_n(out, "\0\0\0\0\0\0\0", SUM_SIZE);
    add_blob(out, SANDBOXES, v->lists[0]);
    add_blob(out, CONTAINERS, v->lists[1]);
    for (size_t i = 0; i < v->n; i++)
        add_item(out, &v->items[i]);
    if (out->overflow)
        return;
    uint64_t sum = hash_bytes(out->data + begin + SUM_SIZE,
                              out->size - begin - SUM_SIZE);
    memcpy(out->data + begin, &sum, SUM_SIZE);
}

/* --- reading -------------------------------------------------------------- */

static bool take_id(struct proto_bytes from, char ret_id[KEPT_ID_MAX + 1])
{
    if (from.size > KEPT_ID_MAX)
        return false;
    memcpy(ret_id, from.data, from.size);
    ret_id[from.size] = '\0';
    return kept_id_valid(ret_id);
}

static bool take_field(struct remote_item *item, const struct proto_field *f)
{
    bool bytes = f->kind == PROTO_BYTES;
    switch (f->number) {
    case ID:
        return bytes && take_id(f->bytes, item->id);
    case SANDBOX_ID:
        return bytes && take_id(f->bytes, item->sandbox_id);
    case IS_SANDBOX:
        item->sandbox = f->value;
        return !bytes;
    case STATE:
        item->state = (uint32_t)f->value;
        return !bytes;
    case STATUS:
        remote_blob_unref(item->status);
        item->status = bytes ? remote_blob(f->bytes) : NULL;
        return bytes;
    default:
        return true; /* of a newer program */
    }
}

/* Items have the order of their ids. */
static bool take_item(struct remote_view *v, struct proto_bytes message,
                      size_t *cap)
{
    struct proto_reader r;
    struct proto_field f;
    int more;
    if (v->n == SEEN_MAX)
        return false;
    v->items = xgrow(v->items, v->n, cap, sizeof *v->items);
    struct remote_item *item = &v->items[v->n++];
    *item = (struct remote_item){.id = ""};
    proto_reader_init(&r, message);
    while ((more = proto_next(&r, &f, NULL)) > 0)
        if (!take_field(item, &f))
            return false;
    return more == 0 && *item->id &&
           (v->n == 1 || strcmp(item[-1].id, item->id) < 0);
}

static bool take_all(struct remote_view *v, struct proto_bytes message)
{
    struct proto_reader r;
    struct proto_field f;
    size_t cap = 0;
    int more;
    proto_reader_init(&r, message);
    while ((more = proto_next(&r, &f, NULL)) > 0) {
        bool list = f.number == SANDBOXES || f.number == CONTAINERS;
        if (f.kind != PROTO_BYTES)
            return false;
        if (f.number == ITEM && !take_item(v, f.bytes, &cap))
            return false;
        if (!list)
            continue;
        remote_blob_unref(v->lists[f.number - SANDBOXES]);
        v->lists[f.number - SANDBOXES] = remote_blob(f.bytes);
    }
    return more == 0;
}

struct remote_view *remote_saved_read(const char *data, size_t size)
{
    cleanup_with(remote_view) struct remote_view *v = remote_view_create();
    uint64_t sum;
    if (size < SUM_SIZE || size > REMOTE_SAVED_MAX)
        return NULL;
    memcpy(&sum, data, SUM_SIZE);
    const struct proto_bytes message = {data + SUM_SIZE, size - SUM_SIZE};
    if (hash_bytes(message.data, message.size) != sum || !take_all(v, message))
        return NULL;
    return steal(&v);
}

/* --- the file ------------------------------------------------------------- */

int remote_saved_store(const struct remote_view *v, const char *path,
                       struct error *err)
{
    cleanup_str struct str bytes = STR_INIT(REMOTE_SAVED_MAX);
    bytes.soft = true;
    remote_saved_write(v, &bytes);
    if (bytes.overflow)
        return error_set(err, bytes.starved ? ENOMEM : E2BIG,
                         "%s: would have more than %d bytes", path,
                         REMOTE_SAVED_MAX);
    return file_replace(path, 0600, bytes.data, bytes.size, false, err);
}

struct remote_view *remote_saved_load(const char *path)
{
    cleanup_free char *data = NULL;
    size_t size = 0;
    if (file_read(path, REMOTE_SAVED_MAX, &data, &size, NULL) < 0)
        return NULL;
    return remote_saved_read(data, size);
}
