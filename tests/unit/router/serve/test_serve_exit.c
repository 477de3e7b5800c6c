#include "router/serve/serve_exit.h"

#include <criterion/criterion.h>

#include "router/serve/serve_private.h"
#include "router/wire/edit.h"
#include "router/wire/fields.h"
#include "tests/lib/router/keeprig.h"

/* A status as containerd 1.6 tells it. */
static void add_status(struct str *out, const char *reason, const char *message)
{
    size_t at = proto_open(out, CRI_ContainerStatusResponse_status);
    proto_add_text(out, CRI_ContainerStatus_id, "0a");
    proto_add_varint(out, CRI_ContainerStatus_state, CRI_EXITED);
    proto_add_varint(out, CRI_ContainerStatus_finished_at, 7);
    proto_add_varint(out, CRI_ContainerStatus_exit_code, 128);
    proto_add_text(out, CRI_ContainerStatus_reason, reason);
    proto_add_text(out, CRI_ContainerStatus_message, message);
    proto_close(out, at);
}

static void make(struct keep *k, char ret_id[KEPT_ID_MAX + 1])
{
    struct keeprig rig = {.name = "card-0"};
    struct error err = {0};
    const struct kept pod = keeprig_sandbox("u-1", 0);
    struct making_calls calls = keeprig_calls(&rig, k, &pod);
    cr_assert_eq(making_run(k, &pod, &calls, ret_id, &err), 0, "%s", err.text);
    const struct kept c = keeprig_container("u-1", ret_id, "c", 0);
    calls = keeprig_calls(&rig, k, &c);
    cr_assert_eq(making_run(k, &c, &calls, ret_id, &err), 0, "%s", err.text);
    keeprig_fini(&rig);
}

/* Nothing says that it has ended. */
static void check_shown(struct exits *e, const char *id, const struct str *said)
{
    cleanup_str struct str reply = STR_INIT(1024);
    str_add_n(&reply, said->data, said->size);
    cr_assert_eq(exits_show(e, NULL, id, &reply), 0);
    struct proto_bytes status =
        edit_bytes((struct proto_bytes){str_text(&reply), reply.size},
                   CRI_ContainerStatusResponse_status);
    cr_assert_eq(edit_number(status, CRI_ContainerStatus_state), CRI_CREATED);
    cr_assert_eq(edit_number(status, CRI_ContainerStatus_exit_code), 0);
    cr_assert_eq(edit_number(status, CRI_ContainerStatus_finished_at), 0);
    cr_assert_eq(edit_bytes(status, CRI_ContainerStatus_reason).size, 0);
    cr_assert(proto_equals(edit_bytes(status, CRI_ContainerStatus_id), "0a"));
}

/* As long as nobody was told that it could not be started. */
Test(serve_exit, one_whose_start_was_broken_off_was_only_created)
{
    const struct keep_config in_memory = {.pod_logs = "/var/log/pods"};
    static struct serve s;
    struct error err = {0};
    char id[KEPT_ID_MAX + 1];
    cleanup_str struct str reply = STR_INIT(1024);
    cr_assert_eq(keep_open(&in_memory, &s.keep, &err), 0, "%s", err.text);
    struct exits *e = exits_create(&s);
    make(s.keep, id);
    add_status(&reply, "StartError",
               "failed to create containerd task: failed to start shim: start "
               "failed: : signal: killed: unknown");
    const struct proto_bytes status = {str_text(&reply), reply.size};
    cr_assert_eq(exits_state(e, NULL, id, status), CRI_CREATED);
    check_shown(e, id, &reply);
    cr_assert_eq(
        keep_ended(s.keep, id, (struct proto_bytes){"\x18\x02", 2}, &err), 0,
        "%s", err.text);
    cr_assert_eq(exits_state(e, NULL, id, status), CRI_EXITED);
    exits_destroy(e);
    keep_close(s.keep);
}
