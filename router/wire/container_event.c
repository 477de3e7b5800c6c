#include "router/wire/container_event.h"

#include <errno.h>
#include <string.h>

#include "router/wire/from_remote_private.h"

/* --- of a remote ---------------------------------------------------------- */

struct event {
    const struct known *known;
    const struct known_sandbox *sandbox; /* that it is about */
};

/* A container, or as containerd has it a sandbox by its own id. */
static int find_sandbox(struct proto_bytes event, struct event *e,
                        struct error *err)
{
    char id[FROM_REMOTE_ID_SIZE + 1];
    struct proto_bytes text =
        edit_bytes(event, CRI_ContainerEventResponse_container_id);
    if (!from_remote_id_valid(text))
        return error_set(err, EPROTO,
                         "the event's container_id is \"%.*s\", must be %d of "
                         "0-9 and a-f",
                         (int)(text.size < 80 ? text.size : 80), text.data,
                         FROM_REMOTE_ID_SIZE);
    memcpy(id, text.data, FROM_REMOTE_ID_SIZE);
    id[FROM_REMOTE_ID_SIZE] = '\0';
    const struct known_container *c = e->known->container(e->known->ctx, id);
    e->sandbox = c ? c->sandbox : e->known->sandbox(e->known->ctx, id);
    return 0;
}

static int edit_event(void *ctx, const struct proto_field *f, struct str *out,
                      struct error *err)
{
    const struct event *event = ctx;
    char id[FROM_REMOTE_ID_SIZE + 1];
    if (f->number == CRI_ContainerEventResponse_created_at)
        return event->known->now_ns ? EDIT_DROP : EDIT_COPY;
    if (f->number == CRI_ContainerEventResponse_containers_statuses)
        return from_remote_add_container(f, event->known, event->sandbox, out,
                                         err);
    if (f->number != CRI_ContainerEventResponse_pod_sandbox_status)
        return EDIT_COPY;
    int e = from_remote_take_id(CRI_PodSandboxStatus, f->bytes, id, err);
    if (e == 0 && strcmp(id, event->sandbox->id) != 0)
        e = error_set(err, EPROTO,
                      "the event's sandbox is %.20s…, of another container",
                      id);
    if (e < 0)
        return e;
    const struct object o = {event->sandbox, NULL};
    size_t opened = proto_open(out, f->number);
    e = from_remote_add_object(CRI_PodSandboxStatus, f->bytes, &o, out, err);
    proto_close(out, opened);
    return e;
}

int container_event_translate(struct proto_bytes event,
                              const struct known *known, struct str *out,
                              struct error *err)
{
    cleanup_str struct str clean = {.max = CRI_EVENT_MAX, .soft = true};
    struct event about = {.known = known};
    int e = event.size <= CRI_EVENT_MAX
                ? fields_check(CRI_ContainerEventResponse, event, err)
                : error_set(err, EPROTO,
                            "the event has %zu bytes, the limit "
                            "is %d",
                            event.size, CRI_EVENT_MAX);
    if (e < 0)
        return e;
    if (edit_number(event, CRI_ContainerEventResponse_container_event_type) >
        CRI_EVENT_DELETED)
        return 1;
    e = find_sandbox(event, &about, err);
    if (e < 0 || !about.sandbox)
        return e < 0 ? e : 1;
    fields_copy_known(CRI_ContainerEventResponse, event, &clean);
    e = edit_end(&clean, err);
    if (e == 0)
        e = edit_fields((struct proto_bytes){clean.data, clean.size},
                        edit_event, &about, out, err);
    if (known->now_ns)
        proto_add_varint(out, CRI_ContainerEventResponse_created_at,
                         (uint64_t)known->now_ns);
    return e < 0 ? e : edit_end(out, err);
}

/* --- our own -------------------------------------------------------------- */

/* Of a reply its status, which both have at the same number. */
static void add_status(struct str *out, uint32_t number,
                       struct proto_bytes reply)
{
    struct proto_field status;
    if (proto_find(reply, CRI_ContainerStatusResponse_status, PROTO_BYTES,
                   &status, NULL) > 0)
        proto_add_bytes(out, number, status.bytes);
}

void container_event_write(const struct container_event *e, struct str *out)
{
    proto_add_text(out, CRI_ContainerEventResponse_container_id,
                   e->container_id);
    if (e->kind)
        proto_add_varint(out, CRI_ContainerEventResponse_container_event_type,
                         e->kind);
    proto_add_varint(out, CRI_ContainerEventResponse_created_at,
                     (uint64_t)e->created_ns);
    add_status(out, CRI_ContainerEventResponse_pod_sandbox_status, e->sandbox);
    for (size_t i = 0; i < e->n_containers; i++)
        add_status(out, CRI_ContainerEventResponse_containers_statuses,
                   e->containers[i]);
}
