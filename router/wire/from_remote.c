#include "router/wire/from_remote.h"

#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/from_remote_private.h"

static int check(const char *what, enum fields_message m,
                 struct proto_bytes reply, struct error *err)
{
    int e = reply.size <= FROM_REMOTE_STATUS_MAX
                ? fields_check(m, reply, err)
                : error_set(err, EPROTO, "has %zu bytes, the limit is %d",
                            reply.size, FROM_REMOTE_STATUS_MAX);
    return e < 0 ? error_wrap(err, "the reply to %s", what) : 0;
}

/* Must be about the object that was asked for. */
static int check_id(enum fields_message m, struct proto_bytes message,
                    const char *asked, struct error *err)
{
    char id[FROM_REMOTE_ID_SIZE + 1];
    int e = from_remote_take_id(m, message, id, err);
    if (e == 0 && strcmp(id, asked) != 0)
        e = error_set(err, EPROTO, "%s.id: is %.20s…, asked was for %.20s…",
                      fields_message_name(m), id, asked);
    return e;
}

/* --- statuses ------------------------------------------------------------- */

struct status {
    struct object o;
    const struct known *known;
};

static int edit_sandbox(void *ctx, const struct proto_field *f, struct str *out,
                        struct error *err)
{
    const struct status *s = ctx;
    if (f->number == CRI_PodSandboxStatusResponse_containers_statuses)
        return from_remote_add_container(f, s->known, s->o.sandbox, out, err);
    if (f->number == CRI_PodSandboxStatusResponse_timestamp)
        return EDIT_DROP; /* by the remote's clock */
    if (f->number != CRI_PodSandboxStatusResponse_status)
        return EDIT_COPY;
    int e = check_id(CRI_PodSandboxStatus, f->bytes, s->o.sandbox->id, err);
    if (e < 0)
        return e;
    size_t opened = proto_open(out, f->number);
    e = from_remote_add_object(CRI_PodSandboxStatus, f->bytes, &s->o, out, err);
    proto_close(out, opened);
    return e;
}

static int edit_container(void *ctx, const struct proto_field *f,
                          struct str *out, struct error *err)
{
    const struct status *s = ctx;
    if (f->number != CRI_ContainerStatusResponse_status)
        return EDIT_COPY;
    int e = check_id(CRI_ContainerStatus, f->bytes, s->o.container->id, err);
    if (e < 0)
        return e;
    size_t opened = proto_open(out, f->number);
    e = from_remote_add_object(CRI_ContainerStatus, f->bytes, &s->o, out, err);
    proto_close(out, opened);
    return e;
}

/* Both replies have the status at the same number. */
static int translate(enum method_id id, enum fields_message m,
                     struct proto_bytes reply, const struct status *s,
                     struct str *out, struct error *err)
{
    const char *what = method_name(method_get(id));
    struct proto_field status;
    int e = check(what, m, reply, err);
    if (e == 0 && proto_find(reply, CRI_ContainerStatusResponse_status,
                             PROTO_BYTES, &status, err) == 0)
        e = error_set(err, EPROTO, "the reply to %s has no status", what);
    if (e == 0)
        e = edit_fields(reply,
                        id == METHOD_CONTAINER_STATUS ? edit_container
                                                      : edit_sandbox,
                        (void *)(uintptr_t)s, out, err);
    return e < 0 ? e : edit_end(out, err);
}

int from_remote_sandbox_status(struct proto_bytes reply,
                               const struct known_sandbox *s,
                               const struct known *known, struct str *out,
                               struct error *err)
{
    const struct status status = {{s, NULL}, known};
    return translate(METHOD_POD_SANDBOX_STATUS, CRI_PodSandboxStatusResponse,
                     reply, &status, out, err);
}

int from_remote_container_status(struct proto_bytes reply,
                                 const struct known_container *c,
                                 struct str *out, struct error *err)
{
    const struct status status = {{c->sandbox, c}, NULL};
    return translate(METHOD_CONTAINER_STATUS, CRI_ContainerStatusResponse,
                     reply, &status, out, err);
}

/* --- small replies -------------------------------------------------------- */

/* The kubelet keeps names of images, on its disk too. */
static int check_texts(enum fields_message m, struct proto_bytes message,
                       struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int e = 0;
    proto_reader_init(&r, message);
    while (e == 0 && proto_next(&r, &f, NULL) > 0) {
        const struct fields_row *row = fields_find(m, f.number);
        if (!row)
            continue;
        if (row->kind == FIELDS_ONE || row->kind == FIELDS_MANY)
            e = check_texts(row->within, f.bytes, err);
        else if ((row->kind == FIELDS_TEXT || row->kind == FIELDS_TEXTS) &&
                 f.bytes.size > FROM_REMOTE_TEXT_MAX)
            e = error_set(err, EPROTO, "%s.%s: has %zu bytes, the limit is %d",
                          fields_message_name(m), row->name, f.bytes.size,
                          FROM_REMOTE_TEXT_MAX);
    }
    return e;
}

int from_remote_checked(const struct method *m, struct proto_bytes reply,
                        struct str *out, struct error *err)
{
    enum fields_message message =
        m->id == METHOD_IMAGE_STATUS ? CRI_ImageStatusResponse
        : m->id == METHOD_PULL_IMAGE ? CRI_PullImageResponse
        : m->id == METHOD_EXEC_SYNC  ? CRI_ExecSyncResponse
                                     : CRI_Nothing;
    int e = fields_check(message, reply, err);
    if (e == 0)
        e = check_texts(message, reply, err);
    if (e < 0)
        return error_wrap(err, "the reply to %s", method_name(m));
    str_add_n(out, reply.data, reply.size);
    return edit_end(out, err);
}

int from_remote_id(struct proto_bytes reply,
                   char ret_id[FROM_REMOTE_ID_SIZE + 1], struct error *err)
{
    struct proto_field f;
    int e = proto_find(reply, CRI_RunPodSandboxResponse_pod_sandbox_id,
                       PROTO_BYTES, &f, err);
    if (e < 0)
        return e;
    if (e == 0 || !from_remote_id_valid(f.bytes))
        return error_set(err, EPROTO,
                         "the reply's id is \"%.*s\", must be %d of 0-9 and "
                         "a-f",
                         e ? (int)(f.bytes.size < 80 ? f.bytes.size : 80) : 0,
                         e ? f.bytes.data : "", FROM_REMOTE_ID_SIZE);
    memcpy(ret_id, f.bytes.data, FROM_REMOTE_ID_SIZE);
    ret_id[FROM_REMOTE_ID_SIZE] = '\0';
    return 0;
}

int from_remote_url(struct proto_bytes reply,
                    char ret_url[FROM_REMOTE_URL_MAX + 1], struct error *err)
{
    struct proto_field f;
    int e = proto_find(reply, CRI_ExecResponse_url, PROTO_BYTES, &f, err);
    if (e < 0)
        return e;
    if (e == 0 || f.bytes.size > FROM_REMOTE_URL_MAX)
        return error_set(err, EPROTO,
                         "the reply's url has %zu bytes, must have 1 to %d",
                         e ? f.bytes.size : 0, FROM_REMOTE_URL_MAX);
    for (size_t i = 0; i < f.bytes.size; i++)
        if (f.bytes.data[i] <= ' ' || f.bytes.data[i] > '~')
            return error_set(err, EPROTO,
                             "the reply's url has byte 0x%02x at %zu",
                             (unsigned char)f.bytes.data[i], i);
    memcpy(ret_url, f.bytes.data, f.bytes.size);
    ret_url[f.bytes.size] = '\0';
    return 0;
}
