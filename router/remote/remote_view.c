#include "router/remote/remote_view.h"

#include <string.h>

#include "lib/base/refs.h"
#include "router/remote/remote_private.h"

/* --- blobs ---------------------------------------------------------------- */

struct remote_blob *remote_blob(struct proto_bytes bytes)
{
    struct remote_blob *b = xmalloc(sizeof *b + bytes.size + 1);
    atomic_init(&b->refs, 1);
    b->size = bytes.size;
    if (bytes.size)
        memcpy(b->data, bytes.data, bytes.size);
    b->data[bytes.size] = '\0';
    return b;
}

DEFINE_REF(remote_blob_ref, struct remote_blob)

void remote_blob_unref(struct remote_blob *b)
{
    if (b && refs_drop(&b->refs))
        free(b);
}

static struct proto_bytes bytes_of(const struct remote_blob *b)
{
    return b ? (struct proto_bytes){b->data, b->size}
             : (struct proto_bytes){"", 0};
}

/* Which of two lists: of sandboxes, of containers; 2: neither. */
static size_t which_list(const struct method *m)
{
    switch (m->id) {
    case METHOD_LIST_POD_SANDBOX:
    case METHOD_STREAM_POD_SANDBOXES:
        return 0;
    case METHOD_LIST_CONTAINERS:
    case METHOD_STREAM_CONTAINERS:
        return 1;
    default:
        return 2;
    }
}

/* --- views ---------------------------------------------------------------- */

struct remote_view *remote_view_create(void)
{
    struct remote_view *v = xcalloc(1, sizeof *v);
    atomic_init(&v->refs, 1);
    return v;
}

DEFINE_REF(remote_view_ref, struct remote_view)

void remote_view_unref(struct remote_view *v)
{
    if (!v || !refs_drop(&v->refs))
        return;
    for (size_t i = 0; i < v->n; i++)
        remote_blob_unref(v->items[i].status);
    remote_blob_unref(v->lists[0]);
    remote_blob_unref(v->lists[1]);
    free(v->items);
    free(v);
}

int64_t remote_view_time(const struct remote_view *v)
{
    return v->time_ms;
}

int64_t remote_view_wall_ns(const struct remote_view *v)
{
    return v->wall_ns;
}

struct proto_bytes remote_view_list(const struct remote_view *v,
                                    const struct method *m)
{
    size_t which = which_list(m);
    return bytes_of(which < 2 ? v->lists[which] : NULL);
}

const struct remote_item *remote_view_item(const struct remote_view *v,
                                           const char *id)
{
    size_t low = 0, high = v->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(v->items[middle].id, id);
        if (order == 0)
            return &v->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

struct proto_bytes remote_view_status(const struct remote_view *v,
                                      const char *id)
{
    const struct remote_item *item = remote_view_item(v, id);
    return bytes_of(item ? item->status : NULL);
}

bool remote_view_state(const struct remote_view *v, const char *id,
                       uint32_t *ret_state)
{
    const struct remote_item *item = remote_view_item(v, id);
    if (item)
        *ret_state = item->state;
    return item;
}

/* --- stats ---------------------------------------------------------------- */

void remote_stats_unref(struct remote_stats *s)
{
    if (!s || !refs_drop(&s->refs))
        return;
    remote_blob_unref(s->containers);
    free(s);
}

int64_t remote_stats_time(const struct remote_stats *s)
{
    return s->time_ms;
}

struct proto_bytes remote_stats_containers(const struct remote_stats *s)
{
    return bytes_of(s->containers);
}
