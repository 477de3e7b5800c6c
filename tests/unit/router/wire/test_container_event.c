/* Events: of a remote what is known, and our own. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/container_event.h"
#include "tests/lib/router/criwire.h"

#define SANDBOX CRI_ContainerEventResponse_pod_sandbox_status
#define CONTAINERS CRI_ContainerEventResponse_containers_statuses

static const struct known_sandbox sandbox = {
    .id = CRIWIRE_ID,
    .namespace = "ns",
    .name = "p",
    .uid = "u-1",
    .handler = "xpu",
    .address = "10.0.0.7",
};
static const struct known_container container = {
    .sandbox = &sandbox,
    .id = CRIWIRE_OTHER,
    .name = "c",
    .log_path = "/var/log/pods/x/c/0.log",
};

static const struct known_sandbox *find_sandbox(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, sandbox.id) == 0 ? &sandbox : NULL;
}
static const struct known_container *find_container(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, container.id) == 0 ? &container : NULL;
}
static const struct known known = {find_sandbox, find_container, NULL, 77};

static void add_event(struct str *m, const char *id, const char *sandbox_id,
                      uint64_t kind)
{
    proto_add_text(m, CRI_ContainerEventResponse_container_id, id);
    proto_add_varint(m, CRI_ContainerEventResponse_container_event_type, kind);
    proto_add_varint(m, CRI_ContainerEventResponse_created_at, 9);
    size_t status = proto_open(m, SANDBOX);
    proto_add_text(m, CRI_PodSandboxStatus_id, sandbox_id);
    proto_add_text(m, CRI_PodSandboxStatus_runtime_handler, "crun");
    proto_close(m, status);
    status = proto_open(m, CONTAINERS);
    proto_add_text(m, CRI_ContainerStatus_id, CRIWIRE_OTHER);
    proto_add_text(m, CRI_ContainerStatus_log_path, "/etc/shadow");
    proto_close(m, status);
}

Test(container_event, of_a_remote)
{
    static const char *const ids[] = {CRIWIRE_OTHER, CRIWIRE_ID};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
        struct error err = {0};
        add_event(&m, ids[i], CRIWIRE_ID, 2);
        criwire_add_newer(&m, "event");
        cr_assert_eq(
            container_event_translate(criwire_of(&m), &known, &out, &err), 0,
            "%s", err.text);
        cr_expect(proto_equals(CRIWIRE_IN(&out, 1), ids[i]));
        cr_expect_eq(CRIWIRE_NUMBER(&out, 0, 2), 2);
        cr_expect_eq(CRIWIRE_NUMBER(&out, 0, 3), 77, "by our clock");
        cr_expect(proto_equals(
            CRIWIRE_IN(&out, SANDBOX, CRI_PodSandboxStatus_runtime_handler),
            "xpu"));
        cr_expect(proto_equals(
            CRIWIRE_IN(&out, CONTAINERS, CRI_ContainerStatus_log_path),
            container.log_path));
        /* a number that is newer, and no bytes */
        cr_expect_eq(criwire_count(criwire_of(&out), CRIWIRE_NEWER), 0);
        cr_expect_eq(criwire_count(criwire_of(&out), CRIWIRE_NEWER + 1), 1);
    }
}

Test(container_event, of_nothing_that_is_known)
{
    static const struct {
        const char *id, *sandbox_id;
        uint64_t kind;
        int expected;
    } all[] = {
        {"00000000000000000000000000000000000000000000000000000000000000ff",
         CRIWIRE_ID, 0, 1},
        {CRIWIRE_OTHER, CRIWIRE_ID, 4, 1},
        {CRIWIRE_OTHER, CRIWIRE_OTHER, 0, -EPROTO},
        {"", CRIWIRE_ID, 0, -EPROTO},
        {"../x", CRIWIRE_ID, 0, -EPROTO},
        {CRIWIRE_OTHER, "", 0, -EPROTO},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
        struct error err = {0};
        add_event(&m, all[i].id, all[i].sandbox_id, all[i].kind);
        cr_expect_eq(
            container_event_translate(criwire_of(&m), &known, &out, &err),
            all[i].expected, "%zu: %s", i, err.text);
    }
}

Test(container_event, of_our_own)
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
