/* Replies of a remote as the kubelet is to have them: whatever the remote says
 * of a pod's identity, paths and network, the kubelet hears what is known. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/from_remote.h"
#include "tests/lib/router/criwire.h"

static const struct known_sandbox sandbox = {
    .id = CRIWIRE_ID,
    .namespace = "ns",
    .name = "p",
    .uid = "u-1",
    .attempt = 2,
    .handler = "xpu",
    .address = "10.0.0.7",
};
static const struct known_container container = {
    .sandbox = &sandbox,
    .id = CRIWIRE_OTHER,
    .name = "c",
    .attempt = 3,
    .user_image = "busybox",
    .log_path = "/var/log/pods/ns_p_u-1/c/3.log",
};

#define STATUS CRI_PodSandboxStatusResponse_status

static void expect_text(const struct str *m, const char *expected,
                        const uint32_t *path)
{
    struct proto_bytes found = criwire_in(m, path);
    cr_expect(found.data && proto_equals(found, expected), "%s: %.*s", expected,
              (int)found.size, found.data ? found.data : "");
}
#define EXPECT_TEXT(m, expected, ...) \
    expect_text((m), (expected), (const uint32_t[]){__VA_ARGS__, 0})

static void expect_pair(struct proto_bytes message, uint32_t number,
                        const char *key, const char *expected)
{
    cleanup_free char *value = criwire_pair(message, number, key);
    cr_assert_eq(value == NULL, expected == NULL, "%s", key);
    if (value && expected)
        cr_expect_str_eq(value, expected);
}

/* --- what remotes say, lies among it -------------------------------------- */

static void add_sandbox_status(struct str *m, const char *id)
{
    size_t status = proto_open(m, STATUS);
    proto_add_text(m, CRI_PodSandboxStatus_id, id);
    size_t metadata = proto_open(m, CRI_PodSandboxStatus_metadata);
    proto_add_text(m, CRI_PodSandboxMetadata_uid, "another-pods");
    proto_close(m, metadata);
    proto_add_varint(m, CRI_PodSandboxStatus_created_at, 5);
    size_t network = proto_open(m, CRI_PodSandboxStatus_network);
    proto_add_text(m, CRI_PodSandboxNetworkStatus_ip, "10.9.9.9");
    size_t more = proto_open(m, CRI_PodSandboxNetworkStatus_additional_ips);
    proto_add_text(m, CRI_PodIP_ip, "not an address");
    proto_close(m, more);
    proto_close(m, network);
    size_t linux_status = proto_open(m, CRI_PodSandboxStatus_linux);
    size_t namespaces = proto_open(m, CRI_LinuxPodSandboxStatus_namespaces);
    size_t options = proto_open(m, CRI_Namespace_options);
    proto_add_varint(m, CRI_NamespaceOption_network, 2);
    proto_add_varint(m, CRI_NamespaceOption_pid, 1);
    criwire_add_newer(m, "options");
    proto_close(m, options);
    proto_close(m, namespaces);
    proto_close(m, linux_status);
    proto_add_pair(m, CRI_PodSandboxStatus_labels, "io.kubernetes.pod.uid",
                   "another-pods");
    proto_add_pair(m, CRI_PodSandboxStatus_labels, "app", "a");
    proto_add_pair(m, CRI_PodSandboxStatus_annotations, "biga.dev/kept", "k");
    proto_add_text(m, CRI_PodSandboxStatus_runtime_handler, "crun");
    criwire_add_newer(m, "status");
    proto_close(m, status);
}

static void add_container_status(struct str *m, uint32_t number, const char *id)
{
    size_t status = proto_open(m, number);
    proto_add_text(m, CRI_ContainerStatus_id, id);
    proto_add_varint(m, CRI_ContainerStatus_state, 2);
    proto_add_varint(m, CRI_ContainerStatus_exit_code, 1);
    size_t image = proto_open(m, CRI_ContainerStatus_image);
    proto_add_text(m, CRI_ImageSpec_image, "sha256:1");
    proto_add_text(m, CRI_ImageSpec_runtime_handler, "crun");
    criwire_add_newer(m, "image");
    proto_close(m, image);
    proto_add_pair(m, CRI_ContainerStatus_labels, "io.kubernetes.pod.uid",
                   "another-pods");
    proto_add_pair(m, CRI_ContainerStatus_annotations,
                   "io.kubernetes.container.preStopHandler",
                   "{\"httpGet\":{\"host\":\"169.254.169.254\"}}");
    size_t mount = proto_open(m, CRI_ContainerStatus_mounts);
    proto_add_text(m, CRI_Mount_container_path, "/dev/termination-log");
    proto_add_text(m, CRI_Mount_host_path, "/etc/shadow");
    proto_close(m, mount);
    proto_add_text(m, CRI_ContainerStatus_log_path, "/etc/shadow");
    proto_close(m, proto_open(m, CRI_ContainerStatus_resources));
    criwire_add_newer(m, "container");
    proto_close(m, status);
}

/* --- sandboxes ------------------------------------------------------------ */

static void tell_sandbox(const struct known_sandbox *s, struct str *out)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct error err = {0};
    add_sandbox_status(&m, CRIWIRE_ID);
    proto_add_varint(&m, CRI_PodSandboxStatusResponse_timestamp, 9);
    criwire_add_newer(&m, "reply");
    cr_assert_eq(from_remote_sandbox_status(criwire_of(&m), s, NULL, out, &err),
                 0, "%s", err.text);
    cr_expect_eq(
        fields_check(CRI_PodSandboxStatusResponse, criwire_of(out), &err), 0,
        "%s", err.text);
}

Test(from_remote, a_sandbox)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    tell_sandbox(&sandbox, &out);
    EXPECT_TEXT(&out, CRIWIRE_ID, STATUS, CRI_PodSandboxStatus_id);
    EXPECT_TEXT(&out, "u-1", STATUS, CRI_PodSandboxStatus_metadata,
                CRI_PodSandboxMetadata_uid);
    EXPECT_TEXT(&out, "p", STATUS, CRI_PodSandboxStatus_metadata,
                CRI_PodSandboxMetadata_name);
    cr_expect_eq(CRIWIRE_NUMBER(&out, 0, STATUS, CRI_PodSandboxStatus_metadata,
                                CRI_PodSandboxMetadata_attempt),
                 2);
    EXPECT_TEXT(&out, "xpu", STATUS, CRI_PodSandboxStatus_runtime_handler);
    EXPECT_TEXT(&out, "10.0.0.7", STATUS, CRI_PodSandboxStatus_network,
                CRI_PodSandboxNetworkStatus_ip);
    struct proto_bytes status = CRIWIRE_IN(&out, STATUS);
    expect_pair(status, CRI_PodSandboxStatus_labels, "io.kubernetes.pod.uid",
                "u-1");
    expect_pair(status, CRI_PodSandboxStatus_labels, "app", "a");
    expect_pair(status, CRI_PodSandboxStatus_annotations, "biga.dev/kept",
                NULL);
    cr_expect_eq(
        criwire_count(criwire_of(&out), CRI_PodSandboxStatusResponse_timestamp),
        0);
    cr_expect_eq(criwire_newer(criwire_of(&out), "status"), 1);
    cr_expect_eq(criwire_newer(criwire_of(&out), "reply"), 1);
    cr_expect_eq(criwire_newer(criwire_of(&out), "options"), 1);
}

/* Another mode than it asked for, and the kubelet makes another sandbox. */
Test(from_remote, a_sandbox_has_the_network_that_was_asked_for)
{
    struct known_sandbox s = sandbox;
    for (int i = 0; i < 2; i++) {
        cleanup_str struct str out = STR_INIT(1 << 16);
        s.host_network = i;
        tell_sandbox(&s, &out);
        struct proto_bytes options = CRIWIRE_IN(
            &out, STATUS, CRI_PodSandboxStatus_linux,
            CRI_LinuxPodSandboxStatus_namespaces, CRI_Namespace_options);
        struct proto_field f;
        cr_assert_not_null(options.data);
        cr_expect_eq(proto_find(options, CRI_NamespaceOption_network,
                                PROTO_VARINT, &f, NULL),
                     i);
        cr_expect_eq(criwire_count(options, CRI_NamespaceOption_pid), 1);
    }
}

static bool keeps_address(const char *address)
{
    cleanup_str struct str in = STR_INIT(1 << 16);
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct known_sandbox s = sandbox;
    s.address = "";
    size_t status = proto_open(&in, CRI_PodSandboxStatusResponse_status);
    proto_add_text(&in, CRI_PodSandboxStatus_id, CRIWIRE_ID);
    size_t network = proto_open(&in, CRI_PodSandboxStatus_network);
    proto_add_text(&in, CRI_PodSandboxNetworkStatus_ip, address);
    proto_close(&in, network);
    proto_close(&in, status);
    cr_assert_eq(
        from_remote_sandbox_status(criwire_of(&in), &s, NULL, &out, NULL), 0);
    return CRIWIRE_IN(&out, CRI_PodSandboxStatusResponse_status,
                      CRI_PodSandboxStatus_network,
                      CRI_PodSandboxNetworkStatus_ip)
               .data != NULL;
}

Test(from_remote, an_address_is_never_one_of_this_machine_alone)
{
    static const char *const good[] = {"10.9.9.9", "192.0.2.1", "fd00::1"},
                             *const bad[] = {"",
                                             "127.0.0.1",
                                             "0.0.0.0",
                                             "0.1.2.3",
                                             "169.254.169.254",
                                             "224.0.0.1",
                                             "::1",
                                             "::",
                                             "fe80::1",
                                             "ff02::1",
                                             "::ffff:10.0.0.1",
                                             "0127.1.1.1",
                                             "x.9.9.9",
                                             "0:0::1",
                                             "10"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        cr_expect(keeps_address(good[i]), "%s", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        cr_expect_not(keeps_address(bad[i]), "%s", bad[i]);
}

Test(from_remote, an_address_of_the_remote_is_one)
{
    struct known_sandbox s = sandbox;
    cleanup_str struct str out = STR_INIT(1 << 16);
    s.address = "";
    tell_sandbox(&s, &out);
    EXPECT_TEXT(&out, "10.9.9.9", STATUS, CRI_PodSandboxStatus_network,
                CRI_PodSandboxNetworkStatus_ip);
    struct proto_bytes network = CRIWIRE_IN(&out, STATUS,
                                            CRI_PodSandboxStatus_network);
    cr_expect_eq(
        criwire_count(network, CRI_PodSandboxNetworkStatus_additional_ips), 0);
}

static const struct known_container *find(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, container.id) == 0 ? &container : NULL;
}

Test(from_remote, containers_of_a_sandbox_are_those_known)
{
    enum { LIST = CRI_PodSandboxStatusResponse_containers_statuses };
    static const char unknown[] =
        "00000000000000000000000000000000000000000000000000000000000000ff";
    cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    const struct known known = {.container = find};
    struct known_sandbox other = sandbox;
    struct error err = {0};
    add_sandbox_status(&m, CRIWIRE_ID);
    add_container_status(&m, LIST, unknown);
    add_container_status(&m, LIST, CRIWIRE_OTHER);
    cr_assert_eq(from_remote_sandbox_status(criwire_of(&m), &sandbox, &known,
                                            &out, &err),
                 0, "%s", err.text);
    cr_expect_eq(criwire_count(criwire_of(&out), LIST), 1);
    EXPECT_TEXT(&out, container.log_path, LIST, CRI_ContainerStatus_log_path);
    str_reset(&out);
    cr_assert_eq(
        from_remote_sandbox_status(criwire_of(&m), &sandbox, NULL, &out, &err),
        0);
    cr_expect_eq(criwire_count(criwire_of(&out), LIST), 0);
    other.id = CRIWIRE_OTHER; /* the container is not in that one */
    str_reset(&out);
    str_reset(&m);
    add_sandbox_status(&m, CRIWIRE_OTHER);
    add_container_status(&m, LIST, CRIWIRE_OTHER);
    cr_assert_eq(
        from_remote_sandbox_status(criwire_of(&m), &other, &known, &out, &err),
        0);
    cr_expect_eq(criwire_count(criwire_of(&out), LIST), 0);
}

/* --- containers ----------------------------------------------------------- */

#define CSTATUS CRI_ContainerStatusResponse_status

static void tell_container(const struct known_container *c, struct str *out)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct error err = {0};
    add_container_status(&m, CSTATUS, CRIWIRE_OTHER);
    proto_add_pair(&m, CRI_ContainerStatusResponse_info, "info", "{}");
    cr_assert_eq(from_remote_container_status(criwire_of(&m), c, out, &err), 0,
                 "%s", err.text);
    cr_expect_eq(
        fields_check(CRI_ContainerStatusResponse, criwire_of(out), &err), 0,
        "%s", err.text);
}

Test(from_remote, a_container)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    tell_container(&container, &out);
    EXPECT_TEXT(&out, container.log_path, CSTATUS,
                CRI_ContainerStatus_log_path);
    EXPECT_TEXT(&out, "c", CSTATUS, CRI_ContainerStatus_metadata,
                CRI_ContainerMetadata_name);
    EXPECT_TEXT(&out, "sha256:1", CSTATUS, CRI_ContainerStatus_image,
                CRI_ImageSpec_image);
    EXPECT_TEXT(&out, "busybox", CSTATUS, CRI_ContainerStatus_image,
                CRI_ImageSpec_user_specified_image);
    cr_expect_null(CRIWIRE_IN(&out, CSTATUS, CRI_ContainerStatus_image,
                              CRI_ImageSpec_runtime_handler)
                       .data);
    struct proto_bytes status = CRIWIRE_IN(&out, CSTATUS);
    cr_expect_eq(criwire_count(status, CRI_ContainerStatus_mounts), 0);
    cr_expect_eq(criwire_count(status, CRI_ContainerStatus_resources), 0);
    cr_expect_eq(criwire_count(status, CRI_ContainerStatus_log_path), 1);
    expect_pair(status, CRI_ContainerStatus_labels, "io.kubernetes.pod.uid",
                "u-1");
    expect_pair(status, CRI_ContainerStatus_labels,
                "io.kubernetes.container.name", "c");
    cr_expect_eq(
        CRIWIRE_NUMBER(&out, 0, CSTATUS, CRI_ContainerStatus_exit_code), 1);
    cr_expect_eq(criwire_newer(criwire_of(&out), "container"), 1);
    cr_expect_eq(criwire_newer(criwire_of(&out), "image"), 1);
    cr_expect_eq(criwire_count(criwire_of(&out), 2), 1);
}

/* What the kubelet asked for comes back, and nothing that the remote made of
 * it. */
Test(from_remote, a_container_as_it_was_made)
{
    cleanup_str struct str request = STR_INIT(1 << 16),
                           made = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct known_container c = container;
    struct error err = {0};
    criwire_create(&request);
    cr_assert_eq(from_remote_made(method_get(METHOD_CREATE_CONTAINER),
                                  criwire_of(&request), &made, &err),
                 0, "%s", err.text);
    c.made = criwire_of(&made);
    tell_container(&c, &out);
    struct proto_bytes status = CRIWIRE_IN(&out, CSTATUS);
    cr_expect_eq(criwire_count(status, CRI_ContainerStatus_mounts), 3);
    EXPECT_TEXT(&out, "/var/lib/kubelet/pods/u-1/containers/c/0a1b", CSTATUS,
                CRI_ContainerStatus_mounts, CRI_Mount_host_path);
    cr_expect_eq(criwire_count(status, CRI_ContainerStatus_annotations), 0);
    cr_expect_eq(criwire_count(status, CRI_ContainerStatus_labels), 1);
}

Test(from_remote, a_sandbox_as_it_was_made)
{
    cleanup_str struct str request = STR_INIT(1 << 16),
                           made = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct known_sandbox s = sandbox;
    struct error err = {0};
    criwire_run(&request, "xpu");
    cr_assert_eq(from_remote_made(method_get(METHOD_RUN_POD_SANDBOX),
                                  criwire_of(&request), &made, &err),
                 0, "%s", err.text);
    s.made = criwire_of(&made);
    tell_sandbox(&s, &out);
    struct proto_bytes status = CRIWIRE_IN(&out, STATUS);
    cr_expect_eq(criwire_count(status, CRI_PodSandboxStatus_labels), 3);
    expect_pair(status, CRI_PodSandboxStatus_annotations, "biga.dev/allocation",
                "{}");
    expect_pair(status, CRI_PodSandboxStatus_annotations, "biga.dev/kept",
                NULL);
}

Test(from_remote, long_words_are_cut)
{
    static char words[FROM_REMOTE_REASON_MAX + 100];
    cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct error err = {0};
    for (size_t i = 0; i + 3 < sizeof words; i += 3)
        memcpy(words + i, "\xe2\x82\xac", 4);
    size_t status = proto_open(&m, CSTATUS);
    proto_add_text(&m, CRI_ContainerStatus_id, CRIWIRE_OTHER);
    proto_add_text(&m, CRI_ContainerStatus_message, words);
    proto_close(&m, status);
    cr_assert_eq(
        from_remote_container_status(criwire_of(&m), &container, &out, &err), 0,
        "%s", err.text);
    struct proto_bytes text = CRIWIRE_IN(&out, CSTATUS,
                                         CRI_ContainerStatus_message);
    cr_expect_eq(text.size, FROM_REMOTE_REASON_MAX / 3 * 3);
    cr_expect(proto_is_text(text));
}

/* --- times ---------------------------------------------------------------- */

/* A card without a clock of its own begins in 1970 again after each start, and
 * the kubelet would take an older container for the newest. */
static void expect_times(const int64_t theirs[3], const int64_t ours[3],
                         int64_t created, int64_t now)
{
    static const uint32_t numbers[] = {CRI_ContainerStatus_created_at,
                                       CRI_ContainerStatus_started_at,
                                       CRI_ContainerStatus_finished_at};
    cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct known_container c = container;
    struct error err = {0};
    c.created_ns = created;
    c.now_ns = now;
    size_t status = proto_open(&m, CSTATUS);
    proto_add_text(&m, CRI_ContainerStatus_id, CRIWIRE_OTHER);
    for (size_t i = 0; i < 3; i++)
        if (theirs[i])
            proto_add_varint(&m, numbers[i], (uint64_t)theirs[i]);
    proto_close(&m, status);
    cr_assert_eq(from_remote_container_status(criwire_of(&m), &c, &out, &err),
                 0, "%s", err.text);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(CRIWIRE_NUMBER(&out, 0, CSTATUS, numbers[i]),
                     (uint64_t)ours[i], "%zu", i);
}

Test(from_remote, times_are_those_of_our_clock)
{
    const int64_t theirs[] = {100, 150, 400};
    expect_times(theirs, theirs, 0, 0);
    expect_times(theirs, (const int64_t[]){5000, 5050, 5300}, 5000, 0);
    expect_times(theirs, (const int64_t[]){5000, 5050, 5200}, 5000, 5200);
    expect_times((const int64_t[]){100, 150, 0},
                 (const int64_t[]){5000, 5050, 0}, 5000, 0);
    /* its clock was set in between, back and forth */
    expect_times((const int64_t[]){100, 50, INT64_MAX},
                 (const int64_t[]){5000, 5000, 6000}, 5000, 6000);
    expect_times((const int64_t[]){INT64_MIN, INT64_MAX, 1},
                 (const int64_t[]){5000, 5000, 5000}, 5000, 5000);
}

Test(from_remote, a_sandbox_was_made_when_we_made_it)
{
    struct known_sandbox s = sandbox;
    cleanup_str struct str out = STR_INIT(1 << 16);
    s.created_ns = 77;
    tell_sandbox(&s, &out);
    cr_expect_eq(
        CRIWIRE_NUMBER(&out, 0, STATUS, CRI_PodSandboxStatus_created_at), 77);
    struct proto_bytes status = CRIWIRE_IN(&out, STATUS);
    cr_expect_eq(criwire_count(status, CRI_PodSandboxStatus_created_at), 1);
}

/* --- what is refused ------------------------------------------------------ */

static int tell_bytes(const char *what, uint32_t number, struct error *err)
{
    cleanup_str struct str m = STR_INIT(1 << 20), out = STR_INIT(1 << 20);
    size_t status = proto_open(&m, CSTATUS);
    proto_add_text(&m, number, what);
    proto_close(&m, status);
    return from_remote_container_status(criwire_of(&m), &container, &out, err);
}

Test(from_remote, refuses_what_is_wrong)
{
    static char large[FROM_REMOTE_TEXT_MAX + 2];
    struct error err = {0};
    memset(large, 'a', sizeof large - 1);
    cr_expect_eq(tell_bytes(CRIWIRE_ID, CRI_ContainerStatus_id, &err), -EPROTO);
    cr_expect(strstr(err.text, "asked was for fedc"), "%s", err.text);
    cr_expect_eq(tell_bytes("../../etc", CRI_ContainerStatus_id, &err),
                 -EPROTO);
    cr_expect(strstr(err.text, "must be 64 of 0-9 and a-f"), "%s", err.text);
    cr_expect_eq(tell_bytes("\xff", CRI_ContainerStatus_reason, &err), -EPROTO);
    cr_expect(strstr(err.text, "reply to ContainerStatus: "), "%s", err.text);
    struct str m = STR_INIT(1 << 20), out = STR_INIT(1 << 20);
    size_t status = proto_open(&m, CSTATUS);
    proto_add_text(&m, CRI_ContainerStatus_id, CRIWIRE_OTHER);
    proto_add_text(&m, CRI_ContainerStatus_image_ref, large);
    proto_close(&m, status);
    cr_expect_eq(
        from_remote_container_status(criwire_of(&m), &container, &out, &err),
        -EPROTO);
    cr_expect(strstr(err.text, "image_ref: has 4097 bytes"), "%s", err.text);
    str_fini(&m);
    str_fini(&out);
}

Test(from_remote, a_reply_without_a_status_is_none)
{
    struct str out = STR_INIT(1024);
    struct error err = {0};
    cr_expect_eq(from_remote_sandbox_status((struct proto_bytes){"", 0},
                                            &sandbox, NULL, &out, &err),
                 -EPROTO);
    cr_expect(strstr(err.text, "PodSandboxStatus has no status"), "%s",
              err.text);
}
