#include "router/wire/container_event.h"

#include "router/wire/fields.h"

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
