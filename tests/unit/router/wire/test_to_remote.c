/* Requests as a remote is to have them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/to_remote.h"
#include "tests/lib/router/criwire.h"

static const struct cri_pair labels[] = {{"biga.dev/node", "n1"},
                                         {"biga.dev/pod-uid", "u-1"}};
static const struct rights none;
static const struct to_remote_pod pod = {
    .handler = "crun",
    .cgroup_parent = "/biga",
    .log_directory = "/run/biga/pods/u-1/logs",
    .labels = {labels, 2},
    .kept = "{\"kept\":1}",
    .rights = &none,
    .node = "card 0000:17:00.0",
};

#define CONFIG CRI_RunPodSandboxRequest_config
#define POD_LINUX CONFIG, CRI_PodSandboxConfig_linux
#define POD_SECURITY POD_LINUX, CRI_LinuxPodSandboxConfig_security_context
#define POD_NETWORK                                                  \
    POD_SECURITY, CRI_LinuxSandboxSecurityContext_namespace_options, \
        CRI_NamespaceOption_network

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
    cr_assert_not_null(value, "%s", key);
    cr_expect_str_eq(value, expected);
}

static void make_sandbox(const struct to_remote_pod *to, struct str *out)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct error err = {0};
    criwire_run(&m, "xpu");
    cr_assert_eq(to_remote_sandbox(criwire_of(&m), to, out, &err), 0, "%s",
                 err.text);
    cr_expect_eq(fields_check(CRI_RunPodSandboxRequest, criwire_of(out), &err),
                 0, "%s", err.text);
}

Test(to_remote, a_sandbox)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    make_sandbox(&pod, &out);
    EXPECT_TEXT(&out, "crun", CRI_RunPodSandboxRequest_runtime_handler);
    EXPECT_TEXT(&out, pod.log_directory, CONFIG,
                CRI_PodSandboxConfig_log_directory);
    EXPECT_TEXT(&out, "/biga", POD_LINUX,
                CRI_LinuxPodSandboxConfig_cgroup_parent);
    cr_expect_eq(CRIWIRE_NUMBER(&out, 0, POD_NETWORK), 2);
    struct proto_bytes config = CRIWIRE_IN(&out, CONFIG);
    cr_expect_eq(criwire_count(config, CRI_PodSandboxConfig_hostname), 0);
    cr_expect_eq(criwire_count(config, CRI_PodSandboxConfig_dns_config), 1);
    cr_expect_eq(criwire_count(config, CRI_PodSandboxConfig_linux), 1);
    expect_pair(config, CRI_PodSandboxConfig_labels, "app", "a");
    expect_pair(config, CRI_PodSandboxConfig_labels, "biga.dev/node", "n1");
    cr_expect_eq(criwire_count(config, CRI_PodSandboxConfig_labels), 4);
    expect_pair(config, CRI_PodSandboxConfig_annotations, "biga.dev/kept",
                "{\"kept\":1}");
    cr_expect_eq(criwire_count(config, CRI_PodSandboxConfig_annotations), 2);
    struct proto_bytes part = CRIWIRE_IN(&out, POD_LINUX);
    expect_pair(part, CRI_LinuxPodSandboxConfig_sysctls,
                "kernel.shm_rmid_forced", "1");
    cr_expect_eq(criwire_count(part, CRI_LinuxPodSandboxConfig_resources), 0);
}

Test(to_remote, keeps_what_is_newer)
{
    static const char *const marks[] = {"run", "pod config", "pod linux",
                                        "pod security", "namespaces"};
    cleanup_str struct str out = STR_INIT(1 << 16);
    make_sandbox(&pod, &out);
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        cr_expect_eq(criwire_newer(criwire_of(&out), marks[i]), 1, "%s",
                     marks[i]);
}

Test(to_remote, a_sandbox_with_a_network_of_its_own)
{
    struct to_remote_pod to = pod;
    cleanup_str struct str out = STR_INIT(1 << 16);
    to.has_network = true;
    to.own_dns = true;
    to.cgroup_parent = NULL;
    make_sandbox(&to, &out);
    struct proto_bytes config = CRIWIRE_IN(&out, CONFIG);
    cr_expect_eq(CRIWIRE_NUMBER(&out, 0, POD_NETWORK), 0);
    EXPECT_TEXT(&out, "p", CONFIG, CRI_PodSandboxConfig_hostname);
    cr_expect_eq(criwire_count(config, CRI_PodSandboxConfig_dns_config), 0);
    cr_expect_null(
        CRIWIRE_IN(&out, POD_LINUX, CRI_LinuxPodSandboxConfig_cgroup_parent)
            .data);
}

/* Without it a runtime would make a network. */
Test(to_remote, a_sandbox_that_says_nothing_has_the_remotes_network)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1 << 16);
    struct error err = {0};
    cr_expect_eq(to_remote_sandbox(criwire_of(&m), &pod, &out, &err), -EPROTO);
    str_reset(&out);
    proto_close(&m, proto_open(&m, CONFIG));
    cr_assert_eq(to_remote_sandbox(criwire_of(&m), &pod, &out, &err), 0, "%s",
                 err.text);
    cr_expect_eq(CRIWIRE_NUMBER(&out, 0, POD_NETWORK), 2);
}

/* A sandbox's request with that sysctl alone. */
static int try_sysctl(const struct to_remote_pod *to, const char *name,
                      struct error *err)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1 << 16);
    size_t config = proto_open(&m, CONFIG);
    size_t part = proto_open(&m, CRI_PodSandboxConfig_linux);
    proto_add_pair(&m, CRI_LinuxPodSandboxConfig_sysctls, name, "1");
    proto_close(&m, part);
    proto_close(&m, config);
    return to_remote_sandbox(criwire_of(&m), to, &out, err);
}

Test(to_remote, sysctls_of_what_the_pod_has_to_itself)
{
    static const char *const own[] = {"kernel.sem", "kernel.shm_rmid_forced",
                                      "kernel.msgmax", "fs.mqueue.msg_max"};
    static const char *const others[] = {"vm.swappiness", "kernel.panic",
                                         "net/core/somaxconn", "", "net"};
    struct to_remote_pod to = pod;
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        cr_expect_eq(try_sysctl(&to, own[i], &err), 0, "%s", err.text);
    cr_expect_eq(try_sysctl(&to, "net.core.somaxconn", &err), -EINVAL);
    cr_expect(strstr(err.text, "somaxconn\" is of a network"), "%s", err.text);
    to.has_network = true;
    cr_expect_eq(try_sysctl(&to, "net.core.somaxconn", &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        cr_expect_eq(try_sysctl(&to, others[i], &err), -EINVAL, "%s",
                     others[i]);
    cr_expect(strstr(err.text, "is one of the whole machine"), "%s", err.text);
}

/* A sandbox's request with that port of the host's, and that network. */
static int try_port(uint32_t host_port, uint32_t network, struct error *err)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1 << 16);
    size_t config = proto_open(&m, CONFIG);
    size_t port = proto_open(&m, CRI_PodSandboxConfig_port_mappings);
    proto_add_varint(&m, CRI_PortMapping_container_port, 80);
    proto_add_varint(&m, CRI_PortMapping_host_port, host_port);
    proto_close(&m, port);
    size_t part = proto_open(&m, CRI_PodSandboxConfig_linux);
    size_t security = proto_open(&m,
                                 CRI_LinuxPodSandboxConfig_security_context);
    size_t options =
        proto_open(&m, CRI_LinuxSandboxSecurityContext_namespace_options);
    proto_add_varint(&m, CRI_NamespaceOption_network, network);
    proto_close(&m, options);
    proto_close(&m, security);
    proto_close(&m, part);
    proto_close(&m, config);
    return to_remote_sandbox(criwire_of(&m), &pod, &out, err);
}

Test(to_remote, has_no_ports_of_this_machine)
{
    struct error err = {0};
    cr_expect_eq(try_port(0, 0, &err), 0, "%s", err.text);
    cr_expect_eq(try_port(80, 2, &err), 0, "%s", err.text);
    cr_expect_eq(try_port(8080, 0, &err), -EINVAL);
    cr_expect(strstr(err.text, "hostPort 8080"), "%s", err.text);
}

/* --- rights --------------------------------------------------------------- */

/* A sandbox's request with one number in its security context. */
static int try_sandbox(uint32_t number, uint32_t within, uint64_t value,
                       const char *allow, struct error *err)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1 << 16);
    struct to_remote_pod to = pod;
    struct rights given;
    cr_assert_eq(rights_parse(allow, &given, err), 0);
    to.rights = &given;
    size_t config = proto_open(&m, CONFIG);
    size_t part = proto_open(&m, CRI_PodSandboxConfig_linux);
    size_t security = proto_open(&m,
                                 CRI_LinuxPodSandboxConfig_security_context);
    size_t inner = within ? proto_open(&m, number) : 0;
    proto_add_varint(&m, within ? within : number, value);
    if (within)
        proto_close(&m, inner);
    proto_close(&m, security);
    proto_close(&m, part);
    proto_close(&m, config);
    return to_remote_sandbox(criwire_of(&m), &to, &out, err);
}

Test(to_remote, a_sandbox_may_do_what_is_given)
{
    static const struct {
        uint32_t number, within;
        uint64_t value;
        const char *allow, *why;
    } asked[] = {
        {CRI_LinuxSandboxSecurityContext_privileged, 0, 1, "privileged",
         "--allow privileged"},
        {CRI_LinuxSandboxSecurityContext_namespace_options,
         CRI_NamespaceOption_pid, 2, "host-pid", "--allow host-pid"},
        {CRI_LinuxSandboxSecurityContext_namespace_options,
         CRI_NamespaceOption_ipc, 2, "host-ipc", "--allow host-ipc"},
    };
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        struct error err = {0};
        cr_expect_eq(try_sandbox(asked[i].number, asked[i].within,
                                 asked[i].value, "", &err),
                     -EPERM, "%zu", i);
        cr_expect(strstr(err.text, asked[i].why), "%s", err.text);
        cr_expect_eq(try_sandbox(asked[i].number, asked[i].within,
                                 asked[i].value, asked[i].allow, &err),
                     0, "%zu: %s", i, err.text);
    }
}

/* Its seccomp profile, as it is written now and as it was. */
static int try_profile(const struct to_remote_pod *to, const char *path,
                       bool old, struct error *err)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1 << 16);
    cleanup_free char *word = xasprintf("localhost/%s", path);
    size_t config = proto_open(&m, CONFIG);
    size_t part = proto_open(&m, CRI_PodSandboxConfig_linux);
    size_t security = proto_open(&m,
                                 CRI_LinuxPodSandboxConfig_security_context);
    if (old) {
        uint32_t number = CRI_LinuxSandboxSecurityContext_seccomp_profile_path;
        proto_add_text(&m, number, word);
    } else {
        size_t in = proto_open(&m, CRI_LinuxSandboxSecurityContext_seccomp);
        proto_add_varint(&m, CRI_SecurityProfile_profile_type, 2);
        proto_add_text(&m, CRI_SecurityProfile_localhost_ref, path);
        proto_close(&m, in);
    }
    proto_close(&m, security);
    proto_close(&m, part);
    proto_close(&m, config);
    return to_remote_sandbox(criwire_of(&m), to, &out, err);
}

Test(to_remote, seccomp_profiles_are_files_that_are_given)
{
    static const char *const allowed[] = {"/srv/profiles"};
    static const char *const others[] = {
        "/srv/profiles/../x", "/srv/other.json", "profiles/a.json", ""};
    const struct mount_rules rules = {"/var/lib/kubelet", allowed, 1};
    struct to_remote_pod to = pod;
    struct error err = {0};
    for (int old = 0; old < 2; old++) {
        to.paths = NULL;
        cr_expect_eq(try_profile(&to, "/srv/profiles/a.json", old, &err),
                     -EPERM);
        cr_expect(strstr(err.text, "--host-paths"), "%s", err.text);
        to.paths = &rules;
        cr_expect_eq(try_profile(&to, "/srv/profiles/a.json", old, &err), 0,
                     "%s", err.text);
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
            cr_expect_eq(try_profile(&to, others[i], old, &err), -EPERM, "%s",
                         others[i]);
    }
}

Test(to_remote, has_no_user_namespaces)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1 << 16);
    struct error err = {0};
    size_t config = proto_open(&m, CONFIG);
    size_t part = proto_open(&m, CRI_PodSandboxConfig_linux);
    size_t security = proto_open(&m,
                                 CRI_LinuxPodSandboxConfig_security_context);
    size_t options =
        proto_open(&m, CRI_LinuxSandboxSecurityContext_namespace_options);
    size_t user = proto_open(&m, CRI_NamespaceOption_userns_options);
    proto_close(&m, user);
    proto_close(&m, options);
    proto_close(&m, security);
    proto_close(&m, part);
    proto_close(&m, config);
    cr_expect_eq(to_remote_sandbox(criwire_of(&m), &pod, &out, &err), -EPERM);
    cr_expect(strstr(err.text, "hostUsers: is false"), "%s", err.text);
}

/* --- caps ----------------------------------------------------------------- */

Test(to_remote, refuses_what_does_not_fit)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct error err = {0};
    criwire_run(&m, "xpu");
    for (size_t max = 0; max < m.size; max += 37) {
        cleanup_str struct str out = STR_INIT(max);
        cr_expect_eq(to_remote_sandbox(criwire_of(&m), &pod, &out, &err),
                     -EMSGSIZE);
        cr_expect_leq(out.size, max);
    }
}

Test(to_remote, refuses_a_message_with_two_pods)
{
    cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct error err = {0};
    criwire_run(&m, "xpu");
    criwire_config(&m, CONFIG);
    cr_expect_eq(to_remote_sandbox(criwire_of(&m), &pod, &out, &err), -EPROTO);
    cr_expect(strstr(err.text, "config: comes twice"), "%s", err.text);
}

/* --- images --------------------------------------------------------------- */

static void add_image(struct str *m, const char *handler)
{
    size_t spec = proto_open(m, CRI_PullImageRequest_image);
    proto_add_text(m, CRI_ImageSpec_image, "busybox");
    proto_add_pair(m, CRI_ImageSpec_annotations, "biga.dev/allocation", "{}");
    proto_add_pair(m, CRI_ImageSpec_annotations, "a", "b");
    proto_add_text(m, CRI_ImageSpec_runtime_handler, handler);
    criwire_add_newer(m, "image");
    proto_close(m, spec);
}

Test(to_remote, an_image)
{
    static const enum method_id calls[] = {
        METHOD_IMAGE_STATUS, METHOD_PULL_IMAGE, METHOD_REMOVE_IMAGE};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1 << 16);
        struct error err = {0};
        bool is_pull = calls[i] == METHOD_PULL_IMAGE;
        add_image(&m, "xpu");
        if (is_pull)
            criwire_config(&m, CRI_PullImageRequest_sandbox_config);
        criwire_add_newer(&m, "call");
        cr_assert_eq(to_remote_image(method_get(calls[i]), criwire_of(&m), &pod,
                                     &out, &err),
                     0, "%s", err.text);
        EXPECT_TEXT(&out, "crun", 1, CRI_ImageSpec_runtime_handler);
        struct proto_bytes spec = CRIWIRE_IN(&out, 1);
        cr_expect_eq(criwire_count(spec, CRI_ImageSpec_annotations), 1);
        cr_expect_eq(criwire_newer(criwire_of(&out), "image"), 1);
        cr_expect_eq(criwire_newer(criwire_of(&out), "call"), 1);
        if (is_pull)
            EXPECT_TEXT(&out, pod.log_directory,
                        CRI_PullImageRequest_sandbox_config,
                        CRI_PodSandboxConfig_log_directory);
    }
}

Test(to_remote, an_image_without_a_handler_has_none)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1 << 16);
    struct error err = {0};
    add_image(&m, "");
    cr_assert_eq(to_remote_image(method_get(METHOD_IMAGE_STATUS),
                                 criwire_of(&m), &pod, &out, &err),
                 0, "%s", err.text);
    cr_expect_null(CRIWIRE_IN(&out, 1, CRI_ImageSpec_runtime_handler).data);
}
