#include "tests/lib/router/criwire.h"

#include <string.h>

#include "lib/base/mem.h"

#define POD_DIR "/var/lib/kubelet/pods/u-1/"

void criwire_add_newer(struct str *out, const char *mark)
{
    proto_add_text(out, CRIWIRE_NEWER, mark);
    proto_add_varint(out, CRIWIRE_NEWER + 1, 77);
}

size_t criwire_newer(struct proto_bytes message, const char *mark)
{
    cleanup_str struct str field = STR_INIT(1024);
    size_t n = 0;
    proto_add_text(&field, CRIWIRE_NEWER, mark);
    for (const char *p = message.data, *end = p + message.size;
         p && (p = memmem(p, (size_t)(end - p), field.data, field.size)); p++)
        n++;
    return n;
}

static void add_namespaces(struct str *out, uint32_t number)
{
    size_t options = proto_open(out, number);
    proto_add_varint(out, CRI_NamespaceOption_pid, 1);
    proto_add_varint(out, CRI_NamespaceOption_ipc, 0);
    criwire_add_newer(out, "namespaces");
    proto_close(out, options);
}

static void add_pod_linux(struct str *out)
{
    size_t part = proto_open(out, CRI_PodSandboxConfig_linux);
    proto_add_text(out, CRI_LinuxPodSandboxConfig_cgroup_parent,
                   "/kubepods/besteffort/podu-1");
    size_t security = proto_open(out,
                                 CRI_LinuxPodSandboxConfig_security_context);
    add_namespaces(out, CRI_LinuxSandboxSecurityContext_namespace_options);
    criwire_add_newer(out, "pod security");
    proto_close(out, security);
    proto_add_pair(out, CRI_LinuxPodSandboxConfig_sysctls,
                   "kernel.shm_rmid_forced", "1");
    proto_close(out, proto_open(out, CRI_LinuxPodSandboxConfig_resources));
    criwire_add_newer(out, "pod linux");
    proto_close(out, part);
}

void criwire_config(struct str *out, uint32_t number)
{
    size_t config = proto_open(out, number);
    size_t metadata = proto_open(out, CRI_PodSandboxConfig_metadata);
    proto_add_text(out, CRI_PodSandboxMetadata_name, "p");
    proto_add_text(out, CRI_PodSandboxMetadata_uid, "u-1");
    proto_add_text(out, CRI_PodSandboxMetadata_namespace, "ns");
    proto_add_varint(out, CRI_PodSandboxMetadata_attempt, 2);
    proto_close(out, metadata);
    proto_add_text(out, CRI_PodSandboxConfig_hostname, "p");
    proto_add_text(out, CRI_PodSandboxConfig_log_directory,
                   "/var/log/pods/ns_p_u-1");
    size_t dns = proto_open(out, CRI_PodSandboxConfig_dns_config);
    proto_add_text(out, CRI_DNSConfig_servers, "10.96.0.10");
    proto_close(out, dns);
    proto_add_pair(out, CRI_PodSandboxConfig_labels, "app", "a");
    proto_add_pair(out, CRI_PodSandboxConfig_labels, "io.kubernetes.pod.uid",
                   "u-1");
    proto_add_pair(out, CRI_PodSandboxConfig_labels, "biga.dev/node", "forged");
    proto_add_pair(out, CRI_PodSandboxConfig_annotations, "biga.dev/allocation",
                   "{}");
    proto_add_pair(out, CRI_PodSandboxConfig_annotations, "biga.dev/kept",
                   "forged");
    add_pod_linux(out);
    criwire_add_newer(out, "pod config");
    proto_close(out, config);
}

void criwire_run(struct str *out, const char *handler)
{
    criwire_config(out, CRI_RunPodSandboxRequest_config);
    proto_add_text(out, CRI_RunPodSandboxRequest_runtime_handler, handler);
    criwire_add_newer(out, "run");
}

static void add_mount(struct str *out, const char *container_path,
                      const char *host_path, void (*add)(struct str *out))
{
    size_t mount = proto_open(out, CRI_ContainerConfig_mounts);
    proto_add_text(out, CRI_Mount_container_path, container_path);
    proto_add_text(out, CRI_Mount_host_path, host_path);
    proto_add_varint(out, CRI_Mount_selinux_relabel, 1);
    criwire_add_newer(out, "mount");
    if (add)
        add(out);
    proto_close(out, mount);
}

static void add_container_linux(struct str *out, void (*add)(struct str *out))
{
    size_t part = proto_open(out, CRI_ContainerConfig_linux);
    size_t resources = proto_open(out, CRI_LinuxContainerConfig_resources);
    proto_add_varint(out, CRI_LinuxContainerResources_cpu_period, 100000);
    proto_add_varint(out, CRI_LinuxContainerResources_cpu_shares, 2);
    proto_add_varint(out, CRI_LinuxContainerResources_oom_score_adj, 1000);
    proto_add_text(out, CRI_LinuxContainerResources_cpuset_cpus, "40-43");
    proto_close(out,
                proto_open(out, CRI_LinuxContainerResources_hugepage_limits));
    proto_add_pair(out, CRI_LinuxContainerResources_unified, "memory.min", "0");
    criwire_add_newer(out, "resources");
    proto_close(out, resources);
    size_t security = proto_open(out,
                                 CRI_LinuxContainerConfig_security_context);
    add_namespaces(out, CRI_LinuxContainerSecurityContext_namespace_options);
    criwire_add_newer(out, "security");
    if (add)
        add(out);
    proto_close(out, security);
    proto_close(out, part);
}

void criwire_create_with(struct str *out, const struct criwire_extra *extra)
{
    proto_add_text(out, CRI_CreateContainerRequest_pod_sandbox_id, CRIWIRE_ID);
    size_t config = proto_open(out, CRI_CreateContainerRequest_config);
    size_t metadata = proto_open(out, CRI_ContainerConfig_metadata);
    proto_add_text(out, CRI_ContainerMetadata_name, "c");
    proto_add_varint(out, CRI_ContainerMetadata_attempt, 3);
    proto_close(out, metadata);
    size_t image = proto_open(out, CRI_ContainerConfig_image);
    proto_add_text(out, CRI_ImageSpec_image, "sha256:1");
    proto_add_text(out, CRI_ImageSpec_user_specified_image, "busybox");
    criwire_add_newer(out, "image");
    proto_close(out, image);
    proto_add_text(out, CRI_ContainerConfig_command, "sh");
    add_mount(out, "/etc/hosts", POD_DIR "etc-hosts", extra->mount);
    add_mount(out, "/config", POD_DIR "volumes/kubernetes.io~configmap/c",
              NULL);
    add_mount(out, "/dev/termination-log", POD_DIR "containers/c/0a1b", NULL);
    proto_add_pair(out, CRI_ContainerConfig_labels,
                   "io.kubernetes.container.name", "c");
    proto_add_text(out, CRI_ContainerConfig_log_path, "c/3.log");
    add_container_linux(out, extra->security);
    if (extra->config)
        extra->config(out);
    criwire_add_newer(out, "container config");
    proto_close(out, config);
    criwire_config(out, CRI_CreateContainerRequest_sandbox_config);
    criwire_add_newer(out, "create");
}

void criwire_create(struct str *out)
{
    criwire_create_with(out, &(struct criwire_extra){0});
}

/* --- to look at ----------------------------------------------------------- */

struct proto_bytes criwire_in(const struct str *m, const uint32_t *path)
{
    struct proto_bytes at = criwire_of(m);
    struct proto_field f;
    for (; *path; path++) {
        if (proto_find(at, *path, PROTO_BYTES, &f, NULL) <= 0)
            return (struct proto_bytes){0};
        at = f.bytes;
    }
    return at;
}

uint64_t criwire_number(const struct str *m, uint64_t otherwise,
                        const uint32_t *path)
{
    struct proto_bytes at = criwire_of(m);
    struct proto_field f;
    for (; path[1]; path++) {
        if (proto_find(at, *path, PROTO_BYTES, &f, NULL) <= 0)
            return otherwise;
        at = f.bytes;
    }
    return proto_find(at, *path, PROTO_VARINT, &f, NULL) > 0 ? f.value
                                                             : otherwise;
}

size_t criwire_count(struct proto_bytes message, uint32_t number)
{
    struct proto_reader r;
    struct proto_field f;
    size_t n = 0;
    proto_reader_init(&r, message);
    while (proto_next(&r, &f, NULL) > 0)
        n += f.number == number;
    return n;
}

char *criwire_pair(struct proto_bytes message, uint32_t number, const char *key)
{
    struct proto_bytes value;
    return proto_find_pair(message, number, key, &value, NULL) > 0
               ? xstrndup(value.data, value.size)
               : NULL;
}
