/* Containers as a remote is to have them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/to_remote.h"
#include "tests/lib/router/criwire.h"

static const struct cri_pair pod_labels[] = {{"biga.dev/node", "n1"}};
static const struct cri_pair labels[] = {{"io.kubernetes.container.name", "c"}};
static const struct rights none;
static const struct to_remote_pod pod = {
    .handler = "crun",
    .log_directory = "/run/biga/pods/u-1/logs",
    .labels = {pod_labels, 1},
    .rights = &none,
    .node = "card 0000:17:00.0",
};
static const char *const mounts[] = {"/run/biga/hosts", NULL, "/run/biga/end"};
static const struct cri_mount extra = {.container_path = "/var/log/biga",
                                       .host_path = "/run/biga/logs",
                                       .read_only = true};
static const struct to_remote_container to_it = {
    .pod = &pod,
    .limits = {.cpu_milli = 4000, .memory = 1 << 30},
    .log_path = "c-3.log",
    .labels = {labels, 1},
    .kept = "k",
    .mounts = mounts,
    .n_mounts = 3,
    .extra = &extra,
    .n_extra = 1,
};

#define CONFIG CRI_CreateContainerRequest_config
#define RESOURCES \
    CONFIG, CRI_ContainerConfig_linux, CRI_LinuxContainerConfig_resources
#define NUMBER(m, field) \
    CRIWIRE_NUMBER((m), 0, RESOURCES, CRI_LinuxContainerResources_##field)

static int make(const struct criwire_extra *more,
                const struct to_remote_container *to, struct str *out,
                struct error *err)
{
    static const struct criwire_extra nothing;
    cleanup_str struct str m = STR_INIT(1 << 16);
    criwire_create_with(&m, more ? more : &nothing);
    int e = to_remote_container(criwire_of(&m), to, out, err);
    if (e == 0)
        cr_expect_eq(
            fields_check(CRI_CreateContainerRequest, criwire_of(out), err), 0,
            "%s", err->text);
    return e;
}

/* The n-th mount's field, counted from 0. */
static struct proto_bytes mount_at(const struct str *m, size_t n,
                                   uint32_t number)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, CRIWIRE_IN(m, CONFIG));
    while (proto_next(&r, &f, NULL) > 0) {
        struct proto_field found;
        if (f.number != CRI_ContainerConfig_mounts || n-- > 0)
            continue;
        return proto_find(f.bytes, number, PROTO_BYTES, &found, NULL) > 0
                   ? found.bytes
                   : (struct proto_bytes){"", 0};
    }
    return (struct proto_bytes){"", 0};
}

Test(to_remote_container, has_what_it_is_to_have)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct error err = {0};
    cr_assert_eq(make(NULL, &to_it, &out, &err), 0, "%s", err.text);
    struct proto_bytes config = CRIWIRE_IN(&out, CONFIG);
    cr_expect_eq(criwire_count(config, CRI_ContainerConfig_mounts), 3);
    cr_expect(proto_equals(mount_at(&out, 0, CRI_Mount_host_path),
                           "/run/biga/hosts"));
    cr_expect(
        proto_equals(mount_at(&out, 1, CRI_Mount_host_path), "/run/biga/end"));
    cr_expect(proto_equals(mount_at(&out, 1, CRI_Mount_container_path),
                           "/dev/termination-log"));
    cr_expect(
        proto_equals(mount_at(&out, 2, CRI_Mount_host_path), "/run/biga/logs"));
    cr_expect(proto_equals(
        CRIWIRE_IN(&out, CONFIG, CRI_ContainerConfig_log_path), "c-3.log"));
    cr_expect_eq(criwire_count(config, CRI_ContainerConfig_log_path), 1);
    cr_expect_eq(criwire_count(config, CRI_ContainerConfig_labels), 2);
    cleanup_free char *node = criwire_pair(config, CRI_ContainerConfig_labels,
                                           "biga.dev/node");
    cr_expect_str_eq(node, "n1");
    cleanup_free char *kept =
        criwire_pair(config, CRI_ContainerConfig_annotations, "biga.dev/kept");
    cr_expect_str_eq(kept, "k");
    cr_expect(proto_equals(CRIWIRE_IN(&out, 1), CRIWIRE_ID));
}

/* A runtime compares it with what the sandbox was made with. */
Test(to_remote_container, brings_its_pod_as_it_was_made)
{
    cleanup_str struct str out = STR_INIT(1 << 16), run = STR_INIT(1 << 16),
                           made = STR_INIT(1 << 16);
    struct error err = {0};
    cr_assert_eq(make(NULL, &to_it, &out, &err), 0, "%s", err.text);
    criwire_run(&run, "xpu");
    cr_assert_eq(to_remote_sandbox(criwire_of(&run), &pod, &made, &err), 0);
    struct proto_bytes one = CRIWIRE_IN(
                           &out, CRI_CreateContainerRequest_sandbox_config),
                       other = CRIWIRE_IN(&made,
                                          CRI_RunPodSandboxRequest_config);
    cr_assert_eq(one.size, other.size);
    cr_expect_arr_eq(one.data, other.data, one.size);
}

Test(to_remote_container, keeps_what_is_newer)
{
    static const struct {
        const char *mark;
        size_t n;
    } marks[] = {{"create", 1},    {"container config", 1}, {"mount", 2},
                 {"image", 1},     {"resources", 1},        {"security", 1},
                 {"pod config", 1}};
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct error err = {0};
    cr_assert_eq(make(NULL, &to_it, &out, &err), 0, "%s", err.text);
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        cr_expect_eq(criwire_newer(criwire_of(&out), marks[i].mark), marks[i].n,
                     "%s", marks[i].mark);
}

Test(to_remote_container, may_use_what_was_allocated)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct error err = {0};
    cr_assert_eq(make(NULL, &to_it, &out, &err), 0, "%s", err.text);
    cr_expect_eq(NUMBER(&out, cpu_period), 100000);
    cr_expect_eq(NUMBER(&out, cpu_quota), 400000);
    cr_expect_eq(NUMBER(&out, cpu_shares), 4096);
    cr_expect_eq(NUMBER(&out, memory_limit_in_bytes), 1 << 30);
    cr_expect_eq(NUMBER(&out, oom_score_adj), 1000);
    struct proto_bytes resources = CRIWIRE_IN(&out, RESOURCES);
    cr_expect_eq(
        criwire_count(resources, CRI_LinuxContainerResources_cpuset_cpus), 0);
    cr_expect_eq(
        criwire_count(resources, CRI_LinuxContainerResources_hugepage_limits),
        0);
    cr_expect_eq(criwire_count(resources, CRI_LinuxContainerResources_unified),
                 0);
}

Test(to_remote_container, may_have_cores_of_its_own)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct to_remote_container to = to_it;
    struct error err = {0};
    to.limits = (struct to_remote_limits){.cpuset_cpus = "2-5"};
    cr_assert_eq(make(NULL, &to, &out, &err), 0, "%s", err.text);
    cr_expect(proto_equals(
        CRIWIRE_IN(&out, RESOURCES, CRI_LinuxContainerResources_cpuset_cpus),
        "2-5"));
    cr_expect_eq(NUMBER(&out, cpu_quota), 0);
    cr_expect_eq(NUMBER(&out, cpu_shares), 2);
}

/* --- resources alone ------------------------------------------------------ */

static void expect_limits(uint64_t period, uint64_t quota, uint64_t memory,
                          const struct to_remote_limits *limits,
                          const uint64_t expected[3])
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1024);
    struct error err = {0};
    enum { LINUX = CRI_UpdateContainerResourcesRequest_linux };
    proto_add_text(&m, 1, CRIWIRE_ID);
    size_t part = proto_open(&m, LINUX);
    proto_add_varint(&m, CRI_LinuxContainerResources_cpu_period, period);
    proto_add_varint(&m, CRI_LinuxContainerResources_cpu_quota, quota);
    proto_add_varint(&m, CRI_LinuxContainerResources_memory_limit_in_bytes,
                     memory);
    proto_close(&m, part);
    criwire_add_newer(&m, "update");
    cr_assert_eq(to_remote_resources(criwire_of(&m), limits, &out, &err), 0);
    cr_expect_eq(
        CRIWIRE_NUMBER(&out, 0, LINUX, CRI_LinuxContainerResources_cpu_period),
        expected[0]);
    cr_expect_eq(
        CRIWIRE_NUMBER(&out, 0, LINUX, CRI_LinuxContainerResources_cpu_quota),
        expected[1]);
    cr_expect_eq(
        CRIWIRE_NUMBER(&out, 0, LINUX,
                       CRI_LinuxContainerResources_memory_limit_in_bytes),
        expected[2]);
    cr_expect(proto_equals(CRIWIRE_IN(&out, 1), CRIWIRE_ID));
    cr_expect_eq(criwire_newer(criwire_of(&out), "update"), 1);
}

Test(to_remote_container, may_use_the_least)
{
    const struct to_remote_limits two = {.cpu_milli = 2000, .memory = 1000},
                                  open = {0}, tiny = {.cpu_milli = 1};
    expect_limits(100000, 100000, 500, &two,
                  (const uint64_t[]){100000, 100000, 500});
    expect_limits(50000, 150000, 5000, &two,
                  (const uint64_t[]){100000, 200000, 1000});
    expect_limits(100000, UINT64_MAX, UINT64_MAX, &two,
                  (const uint64_t[]){100000, 200000, 1000});
    expect_limits(0, 0, 0, &two, (const uint64_t[]){100000, 200000, 1000});
    expect_limits(50000, 150000, 5000, &open,
                  (const uint64_t[]){50000, 150000, 5000});
    expect_limits(100000, UINT64_MAX, 0, &open,
                  (const uint64_t[]){100000, UINT64_MAX, 0});
    expect_limits(UINT64_MAX, INT64_MAX, INT64_MAX, &two,
                  (const uint64_t[]){100000, 200000, 1000});
    expect_limits(0, 0, 0, &tiny, (const uint64_t[]){100000, 1000, 0});
}

/* --- what is refused ------------------------------------------------------ */

static void add_device(struct str *out)
{
    size_t device = proto_open(out, CRI_ContainerConfig_devices);
    proto_add_text(out, CRI_Device_host_path, "/dev/nvidia0");
    proto_close(out, device);
}
static void add_cdi(struct str *out)
{
    size_t device = proto_open(out, CRI_ContainerConfig_CDI_devices);
    proto_add_text(out, CRI_CDIDevice_name, "vendor.com/gpu=0");
    proto_close(out, device);
}
static void add_cdi_annotation(struct str *out)
{
    proto_add_pair(out, CRI_ContainerConfig_annotations, "cdi.k8s.io/x",
                   "vendor.com/gpu=1");
}
static void add_capability(struct str *out)
{
    size_t list = proto_open(out,
                             CRI_LinuxContainerSecurityContext_capabilities);
    proto_add_text(out, CRI_Capability_add_capabilities, "KILL");
    proto_add_text(out, CRI_Capability_add_ambient_capabilities, "NET_ADMIN");
    proto_close(out, list);
}
static void add_privileged(struct str *out)
{
    proto_add_varint(out, CRI_LinuxContainerSecurityContext_privileged, 1);
}
static void add_profile(struct str *out)
{
    proto_add_text(out, CRI_LinuxContainerSecurityContext_seccomp_profile_path,
                   "localhost/x.json");
}
static void add_second_image(struct str *out)
{
    proto_close(out, proto_open(out, CRI_ContainerConfig_image));
}

Test(to_remote_container, is_refused_by_name)
{
    static const struct {
        struct criwire_extra extra;
        int code;
        const char *why;
    } bad[] = {
        {{.config = add_device},
         EPERM,
         "container \"c\": has device \"/dev/nv"},
        {{.config = add_cdi}, EPERM, "device \"vendor.com/gpu=0\""},
        {{.config = add_cdi_annotation}, EPERM, "\"vendor.com/gpu=1\""},
        {{.security = add_capability}, EPERM, "add[1]: is \"NET_ADMIN\""},
        {{.security = add_privileged}, EPERM, "--allow privileged"},
        {{.security = add_profile}, EPERM, "is Localhost"},
        {{.config = add_second_image}, EPROTO, "image: comes twice"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str out = STR_INIT(1 << 16);
        struct error err = {0};
        cr_expect_eq(make(&bad[i].extra, &to_it, &out, &err), -bad[i].code,
                     "%zu", i);
        cr_expect(strstr(err.text, bad[i].why), "%zu: %s", i, err.text);
    }
}

static void add_claimed_card(struct str *out)
{
    size_t device = proto_open(out, CRI_ContainerConfig_CDI_devices);
    proto_add_text(out, CRI_CDIDevice_name,
                   "xpu.biga.dev/card=u-1-card-0000-17-00");
    proto_close(out, device);
}

static void add_claimed_card_and_gpu(struct str *out)
{
    add_claimed_card(out);
    add_cdi(out);
}

/* Of a pod that runs on the very card which it has claimed. */
Test(to_remote_container, has_no_host_side_of_its_card)
{
    const struct criwire_extra one = {.config = add_claimed_card},
                               two = {.config = add_claimed_card_and_gpu};
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct error err = {0};
    cr_assert_eq(make(&one, &to_it, &out, &err), 0, "%s", err.text);
    cr_expect_null(memmem(out.data, out.size, "xpu.biga.dev/card", 17));
    cr_expect_eq(make(&two, &to_it, &out, &err), -EPERM);
    cr_expect(strstr(err.text, "vendor.com/gpu=0"), "%s", err.text);
}

Test(to_remote_container, needs_a_place_for_each_mount)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct to_remote_container to = to_it;
    struct error err = {0};
    to.n_mounts = 2;
    cr_expect_eq(make(NULL, &to, &out, &err), -EINVAL);
    static const char *const four[4] = {NULL};
    to.mounts = four;
    to.n_mounts = 4;
    cr_expect_eq(make(NULL, &to, &out, &err), -EINVAL);
    cr_expect(strstr(err.text, "has 3 mounts, not 4"), "%s", err.text);
}

Test(to_remote_container, may_be_in_another_sandbox_there)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct to_remote_container to = to_it;
    struct error err = {0};
    to.sandbox_id = CRIWIRE_OTHER;
    cr_assert_eq(make(NULL, &to, &out, &err), 0, "%s", err.text);
    cr_expect(proto_equals(CRIWIRE_IN(&out, 1), CRIWIRE_OTHER));
    cr_expect_eq(criwire_count(criwire_of(&out), 1), 1);
}
