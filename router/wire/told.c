#include "router/wire/told.h"

#include <errno.h>
#include <string.h>

#include "router/wire/edit.h"
#include "router/wire/fields.h"

/* --- Status --------------------------------------------------------------- */

struct handlers {
    const char *ours;
    bool has_default; /* the home lists "" */
};

static int edit_status(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    struct handlers *h = ctx;
    (void)out;
    if (f->number != CRI_StatusResponse_runtime_handlers)
        return EDIT_COPY;
    if (f->kind != PROTO_BYTES)
        return error_set(err, EPROTO, "runtime_handlers: is of another type");
    struct proto_bytes name = edit_bytes(f->bytes, CRI_RuntimeHandler_name);
    h->has_default |= name.size == 0;
    return proto_equals(name, h->ours) ? EDIT_DROP : EDIT_COPY;
}

static void add_handler(struct str *out, const char *name)
{
    size_t opened = proto_open(out, CRI_StatusResponse_runtime_handlers);
    proto_add_text(out, CRI_RuntimeHandler_name, name);
    proto_close(out, opened);
}

int told_status(struct proto_bytes home, const char *handler, struct str *out,
                struct error *err)
{
    struct handlers h = {.ours = handler};
    int e = edit_fields(home, edit_status, &h, out, err);
    if (e < 0)
        return error_wrap(err, "the home's reply to Status");
    if (!h.has_default && *handler)
        add_handler(out, "");
    add_handler(out, handler);
    return edit_end(out, err);
}

/* --- one value ------------------------------------------------------------ */

void told_id(struct str *out, const char *id)
{
    proto_add_text(out, CRI_RunPodSandboxResponse_pod_sandbox_id, id);
}

void told_url(struct str *out, const char *url)
{
    proto_add_text(out, CRI_ExecResponse_url, url);
}

static int edit_end_of(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    (void)ctx;
    (void)out;
    (void)err;
    switch (f->number) {
    case CRI_ContainerStatus_state:
    case CRI_ContainerStatus_created_at:
    case CRI_ContainerStatus_started_at:
    case CRI_ContainerStatus_finished_at:
    case CRI_ContainerStatus_exit_code:
    case CRI_ContainerStatus_image:
    case CRI_ContainerStatus_image_ref:
    case CRI_ContainerStatus_image_id:
    case CRI_ContainerStatus_reason:
    case CRI_ContainerStatus_message:
        return EDIT_COPY;
    default:
        return EDIT_DROP;
    }
}

int told_end(struct proto_bytes reply, struct str *out, struct error *err)
{
    return edit_fields(edit_bytes(reply, CRI_ContainerStatusResponse_status),
                       edit_end_of, NULL, out, err);
}

/* --- lists ---------------------------------------------------------------- */

/* What each may have at most, so that all together have no more than `room`:
 * those that have less than an equal share leave the rest to others. */
static size_t fair_share(size_t room, const size_t *sizes, size_t n)
{
    size_t share = SIZE_MAX, before = 0;
    while (share != before) {
        size_t rest = room, n_larger = 0;
        before = share;
        for (size_t i = 0; i < n; i++) {
            bool larger = before == SIZE_MAX || sizes[i] > before;
            n_larger += larger;
            rest -= larger ? 0 : sizes[i];
        }
        if (n_larger == 0)
            break;
        share = rest / n_larger;
    }
    return share;
}

/* Items of the home stay as they are: those of two replies one behind the
 * other are the items of one. */
int told_list_begin(struct told_list *l, struct proto_bytes home,
                    const size_t *sizes, size_t n_remotes, struct error *err)
{
    if (home.size > TOLD_MAX)
        return error_set(err, EMSGSIZE,
                         "the home's reply to %s has %zu bytes, the limit is "
                         "%d",
                         method_name(l->method), home.size, TOLD_MAX);
    l->share = fair_share(TOLD_MAX - home.size, sizes, n_remotes);
    l->left = 0;
    l->n_left_out = 0;
    str_add_n(l->out, home.data, home.size);
    return edit_end(l->out, err);
}

void told_list_remote(struct told_list *l)
{
    l->left = l->share;
}

void told_list_add(struct told_list *l, const struct list_item *item)
{
    size_t size = told_list_size(item->message.size);
    if (l->filter && !request_filter_passes(l->filter, l->method, item))
        return;
    if (size > l->left) {
        l->n_left_out++;
        return;
    }
    proto_add_bytes(l->out, LIST_ITEMS, item->message);
    l->left -= size;
}
