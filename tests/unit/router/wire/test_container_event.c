/* Events as the kubelet hears them. */
#include <criterion/criterion.h>

#include "router/wire/container_event.h"
#include "tests/lib/router/criwire.h"

#define SANDBOX CRI_ContainerEventResponse_pod_sandbox_status
#define CONTAINERS CRI_ContainerEventResponse_containers_statuses

Test(container_event, has_what_is_known)
{
    cleanup_str struct str status = STR_INIT(1024), out = STR_INIT(1 << 16);
    size_t part = proto_open(&status, CRI_ContainerStatusResponse_status);
    proto_add_text(&status, CRI_ContainerStatus_id, CRIWIRE_OTHER);
    proto_close(&status, part);
    const struct proto_bytes containers[] = {criwire_of(&status), {"", 0}};
    const struct container_event e = {
        .container_id = CRIWIRE_OTHER,
        .kind = CRI_EVENT_DELETED,
        .created_ns = 1234567890123456789,
        .sandbox = criwire_of(&status),
        .containers = containers,
        .n_containers = 2,
    };
    struct error err = {0};
    container_event_write(&e, &out);
    cr_expect_eq(
        fields_check(CRI_ContainerEventResponse, criwire_of(&out), &err), 0,
        "%s", err.text);
    cr_expect(proto_equals(CRIWIRE_IN(&out, 1), CRIWIRE_OTHER));
    cr_expect_eq(CRIWIRE_NUMBER(&out, 0, 2), 3);
    cr_expect_eq(CRIWIRE_NUMBER(&out, 0, 3), 1234567890123456789u);
    cr_expect(proto_equals(CRIWIRE_IN(&out, SANDBOX, 1), CRIWIRE_OTHER));
    cr_expect_eq(criwire_count(criwire_of(&out), CONTAINERS), 1);
}
