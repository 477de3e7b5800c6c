/* Requests on their way to a remote: what comes out is a message that its
 * reader takes, with the fields that are newer than Biga where they were, and
 * without what is not for the remote. */
#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/fields.h"
#include "router/wire/request.h"
#include "router/wire/to_remote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cri_pair label = {"biga.dev/node", "n1"};
static const struct rights none;
static const struct to_remote_pod pod = {
    .handler = "crun",
    .log_directory = "/run/biga/logs",
    .labels = {&label, 1},
    .kept = "kept",
    .rights = &none,
};

/* The fields of a message that are not in its table, one behind the other. */
static void take_newer(enum fields_message m, struct proto_bytes message,
                       struct str *out)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, message);
    while (proto_next(&r, &f, NULL) > 0)
        if (!fields_find(m, f.number))
            proto_add_field(out, &f);
}

static struct proto_bytes within(struct proto_bytes message, uint32_t number)
{
    struct proto_field f;
    return number && proto_find(message, number, PROTO_BYTES, &f, NULL) > 0
               ? f.bytes
               : (struct proto_bytes){"", 0};
}

static void check_newer(enum fields_message m, struct proto_bytes in,
                        struct proto_bytes out)
{
    cleanup_str struct str before = STR_INIT(1 << 24),
                           after = STR_INIT(1 << 24);
    take_newer(m, in, &before);
    take_newer(m, out, &after);
    assert(before.size == after.size);
    assert(before.size == 0 ||
           memcmp(before.data, after.data, after.size) == 0);
}

/* Pods have no network of their own here. */
static void check_sysctls(struct proto_bytes part)
{
    struct proto_reader r;
    struct proto_field f;
    struct proto_bytes name, value;
    proto_reader_init(&r, part);
    while (proto_next(&r, &f, NULL) > 0)
        if (f.number == CRI_LinuxPodSandboxConfig_sysctls) {
            assert(proto_read_pair(f.bytes, &name, &value, NULL) == 0);
            assert(name.size > 7 && (memcmp(name.data, "kernel.", 7) == 0 ||
                                     memcmp(name.data, "fs.mque", 7) == 0));
        }
}

/* Of the sandbox's configuration, in the field `number`. */
static void check_config(struct proto_bytes in, struct proto_bytes out,
                         uint32_t number)
{
    struct proto_bytes a = within(in, number), b = within(out, number), value;
    struct proto_field f;
    if (proto_find(in, number, PROTO_BYTES, &f, NULL) <= 0)
        return;
    check_newer(CRI_PodSandboxConfig, a, b);
    assert(proto_find_pair(b, CRI_PodSandboxConfig_labels, label.key, &value,
                           NULL) > 0);
    assert(proto_equals(value, label.value));
    assert(proto_equals(within(b, CRI_PodSandboxConfig_log_directory),
                        pod.log_directory));
    struct proto_bytes part = within(b, CRI_PodSandboxConfig_linux);
    assert(within(part, CRI_LinuxPodSandboxConfig_cgroup_parent).size == 0);
    check_sysctls(part);
    struct proto_bytes security =
        within(part, CRI_LinuxPodSandboxConfig_security_context);
    assert(proto_find(security, CRI_LinuxSandboxSecurityContext_privileged,
                      PROTO_VARINT, &f, NULL) == 0 ||
           f.value == 0);
}

static void check_container(struct proto_bytes in, struct proto_bytes out)
{
    struct proto_bytes a = within(in, CRI_CreateContainerRequest_config),
                       b = within(out, CRI_CreateContainerRequest_config);
    struct proto_reader r;
    struct proto_field f;
    check_newer(CRI_ContainerConfig, a, b);
    proto_reader_init(&r, b);
    while (proto_next(&r, &f, NULL) > 0) {
        assert(f.number != CRI_ContainerConfig_devices &&
               f.number != CRI_ContainerConfig_CDI_devices);
        if (f.number == CRI_ContainerConfig_mounts)
            assert(proto_equals(within(f.bytes, CRI_Mount_host_path),
                                "/run/biga/there"));
    }
}

static int make_container(struct proto_bytes in, struct str *out,
                          struct error *err)
{
    const char *mounts[MOUNT_MAX];
    const struct method *m = method_get(METHOD_CREATE_CONTAINER);
    cleanup_request struct request r = {0};
    int e = request_read(m, in, &r, err);
    if (e == 0)
        e = request_read_more(m, in, &r, err);
    if (e < 0)
        return e;
    for (size_t i = 0; i < MOUNT_MAX; i++)
        mounts[i] = i % 2 ? NULL : "/run/biga/there";
    const struct to_remote_container to = {
        .pod = &pod,
        .limits = {.cpu_milli = 2000, .memory = 1 << 30},
        .log_path = "c.log",
        .mounts = mounts,
        .n_mounts = r.container.n_mounts,
    };
    return to_remote_container(in, &to, out, err);
}

static int make(unsigned what, struct proto_bytes in, struct str *out,
                struct error *err)
{
    static const struct to_remote_limits limits = {.cpu_milli = 1500};
    switch (what) {
    case 0:
        return to_remote_sandbox(in, &pod, out, err);
    case 1:
        return make_container(in, out, err);
    case 2:
        return to_remote_resources(in, &limits, out, err);
    case 3:
        return to_remote_image(method_get(METHOD_IMAGE_STATUS), in, &pod, out,
                               err);
    default:
        return to_remote_image(method_get(METHOD_PULL_IMAGE), in, &pod, out,
                               err);
    }
}

/* The first byte chooses the call, and how little room there is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum fields_message kinds[] = {
        CRI_RunPodSandboxRequest, CRI_CreateContainerRequest,
        CRI_UpdateContainerResourcesRequest, CRI_ImageStatusRequest,
        CRI_PullImageRequest};
    struct error err = {0};
    if (size < 1)
        return 0;
    unsigned what = data[0] % ARRAY_LEN(kinds);
    cleanup_str struct str out = {.max = data[0] & 0x80 ? 200 : 1 << 24,
                                  .soft = true};
    struct proto_bytes in = {(const char *)data + 1, size - 1};
    int e = make(what, in, &out, &err);
    assert(out.size <= out.max);
    assert(e == 0 || (err.code == -e && err.text[0]));
    if (e < 0)
        return 0;
    struct proto_bytes made = {out.data, out.size};
    assert(fields_check(kinds[what], made, &err) == 0);
    check_newer(kinds[what], in, made);
    if (what == 0)
        check_config(in, made, CRI_RunPodSandboxRequest_config);
    if (what == 1) {
        check_config(in, made, CRI_CreateContainerRequest_sandbox_config);
        check_container(in, made);
    }
    if (what == 4)
        check_config(in, made, CRI_PullImageRequest_sandbox_config);
    return 0;
}
