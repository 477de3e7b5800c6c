#include "advertiser/cri/cri_private.h"

/* What a container that is not privileged does not see of the kernel, and
 * what it only reads: containerd masks nothing unless it is told to.  The
 * lists are those that Kubernetes gives. */
static const char *const masked_paths[] = {
    "/proc/asound",     "/proc/acpi",        "/proc/interrupts",
    "/proc/kcore",      "/proc/keys",        "/proc/latency_stats",
    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
    "/proc/scsi",       "/sys/firmware",     "/sys/devices/virtual/powercap",
};
static const char *const readonly_paths[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};

/* A message of the kind in the arena, with its defaults. */
#define NEW(arena, kind, init)                             \
    ({                                                     \
        kind *made_ = arena_alloc((arena), sizeof *made_); \
        *made_ = (kind)init;                               \
        made_;                                             \
    })

char *cri_encode_text(const char *text)
{
    return (char *)(uintptr_t)(text ? text : "");
}

char **cri_encode_texts(const char *const *texts)
{
    return (char **)(uintptr_t)texts;
}

Cri__Pair **cri_encode_pairs(struct arena *a, const struct cri_pairs *pairs)
{
    if (pairs->n == 0)
        return NULL;
    Cri__Pair **list = arena_alloc(a, pairs->n * sizeof(Cri__Pair *));
    for (size_t i = 0; i < pairs->n; i++) {
        list[i] = NEW(a, Cri__Pair, CRI__PAIR__INIT);
        list[i]->key = cri_encode_text(pairs->list[i].key);
        list[i]->value = cri_encode_text(pairs->list[i].value);
    }
    return list;
}

/* Negative: not said. */
static Cri__Int64Value *encode_number(struct arena *a, int64_t value)
{
    if (value < 0)
        return NULL;
    Cri__Int64Value *number = NEW(a, Cri__Int64Value, CRI__INT64_VALUE__INIT);
    number->value = value;
    return number;
}

static Cri__NamespaceOption *
encode_namespaces(struct arena *a, const struct cri_sandbox_config *s)
{
    Cri__NamespaceOption *o = NEW(a, Cri__NamespaceOption,
                                  CRI__NAMESPACE_OPTION__INIT);
    o->network = s->host_network ? CRI__NAMESPACE_MODE__NODE
                                 : CRI__NAMESPACE_MODE__POD;
    o->pid = s->host_pid ? CRI__NAMESPACE_MODE__NODE
                         : CRI__NAMESPACE_MODE__CONTAINER;
    o->ipc = s->host_ipc ? CRI__NAMESPACE_MODE__NODE : CRI__NAMESPACE_MODE__POD;
    return o;
}

Cri__PodSandboxConfig *
cri_encode_sandbox(struct arena *a, const struct cri_sandbox_config *config)
{
    Cri__PodSandboxConfig *s = NEW(a, Cri__PodSandboxConfig,
                                   CRI__POD_SANDBOX_CONFIG__INIT);
    s->metadata = NEW(a, Cri__PodSandboxMetadata,
                      CRI__POD_SANDBOX_METADATA__INIT);
    s->metadata->name = cri_encode_text(config->name);
    s->metadata->uid = cri_encode_text(config->uid);
    s->metadata->namespace_ = cri_encode_text(config->namespace);
    s->metadata->attempt = config->attempt;
    s->hostname = cri_encode_text(config->hostname);
    s->log_directory = cri_encode_text(config->log_directory);
    s->n_labels = config->labels.n;
    s->labels = cri_encode_pairs(a, &config->labels);
    s->n_annotations = config->annotations.n;
    s->annotations = cri_encode_pairs(a, &config->annotations);
    Cri__LinuxPodSandboxConfig *l = NEW(a, Cri__LinuxPodSandboxConfig,
                                        CRI__LINUX_POD_SANDBOX_CONFIG__INIT);
    l->cgroup_parent = cri_encode_text(config->cgroup_parent);
    l->security_context = NEW(a, Cri__LinuxSandboxSecurityContext,
                              CRI__LINUX_SANDBOX_SECURITY_CONTEXT__INIT);
    l->security_context->namespace_options = encode_namespaces(a, config);
    l->security_context->run_as_user = encode_number(a, config->run_as_user);
    l->security_context->privileged = config->privileged;
    s->linux_config = l;
    return s;
}

static Cri__HugepageLimit **
encode_hugepages(struct arena *a, const struct cri_container_config *config)
{
    if (config->n_hugepages == 0)
        return NULL;
    Cri__HugepageLimit **list =
        arena_alloc(a, config->n_hugepages * sizeof(Cri__HugepageLimit *));
    for (size_t i = 0; i < config->n_hugepages; i++) {
        list[i] = NEW(a, Cri__HugepageLimit, CRI__HUGEPAGE_LIMIT__INIT);
        list[i]->page_size = cri_encode_text(config->hugepages[i].page_size);
        list[i]->limit = config->hugepages[i].limit;
    }
    return list;
}

static Cri__LinuxContainerResources *
encode_resources(struct arena *a, const struct cri_container_config *config)
{
    Cri__LinuxContainerResources *r = NEW(a, Cri__LinuxContainerResources,
                                          CRI__LINUX_CONTAINER_RESOURCES__INIT);
    r->cpu_period = config->cpu_period;
    r->cpu_quota = config->cpu_quota;
    r->cpu_shares = config->cpu_shares;
    r->memory_limit_in_bytes = config->memory_limit;
    r->oom_score_adj = config->oom_score_adj;
    r->cpuset_cpus = cri_encode_text(config->cpuset_cpus);
    r->cpuset_mems = cri_encode_text(config->cpuset_mems);
    r->n_hugepage_limits = config->n_hugepages;
    r->hugepage_limits = encode_hugepages(a, config);
    return r;
}

static Cri__LinuxContainerSecurityContext *
encode_security(struct arena *a, const struct cri_container_config *config,
                const struct cri_sandbox_config *sandbox)
{
    Cri__LinuxContainerSecurityContext *s =
        NEW(a, Cri__LinuxContainerSecurityContext,
            CRI__LINUX_CONTAINER_SECURITY_CONTEXT__INIT);
    s->capabilities = NEW(a, Cri__Capability, CRI__CAPABILITY__INIT);
    s->capabilities->n_add_capabilities = config->n_cap_add;
    s->capabilities->add_capabilities = cri_encode_texts(config->cap_add);
    s->capabilities->n_drop_capabilities = config->n_cap_drop;
    s->capabilities->drop_capabilities = cri_encode_texts(config->cap_drop);
    s->privileged = config->privileged;
    s->namespace_options = encode_namespaces(a, sandbox);
    s->run_as_user = encode_number(a, config->run_as_user);
    s->run_as_group = encode_number(a, config->run_as_group);
    s->readonly_rootfs = config->read_only_root;
    s->no_new_privs = config->no_new_privileges;
    if (config->privileged)
        return s;
    s->n_masked_paths = ARRAY_LEN(masked_paths);
    s->masked_paths = cri_encode_texts(masked_paths);
    s->n_readonly_paths = ARRAY_LEN(readonly_paths);
    s->readonly_paths = cri_encode_texts(readonly_paths);
    return s;
}

Cri__ImageSpec *cri_encode_image(struct arena *a, const char *image)
{
    Cri__ImageSpec *spec = NEW(a, Cri__ImageSpec, CRI__IMAGE_SPEC__INIT);
    spec->image = cri_encode_text(image);
    return spec;
}

static Cri__Mount **encode_mounts(struct arena *a,
                                  const struct cri_container_config *config)
{
    if (config->n_mounts == 0)
        return NULL;
    Cri__Mount **list = arena_alloc(a, config->n_mounts * sizeof(Cri__Mount *));
    for (size_t i = 0; i < config->n_mounts; i++) {
        const struct cri_mount *from = &config->mounts[i];
        list[i] = NEW(a, Cri__Mount, CRI__MOUNT__INIT);
        list[i]->container_path = cri_encode_text(from->container_path);
        list[i]->host_path = cri_encode_text(from->host_path);
        list[i]->readonly = from->read_only;
        list[i]->propagation = from->shared ? 2 : 0; /* BIDIRECTIONAL */
    }
    return list;
}

static Cri__Device **encode_devices(struct arena *a,
                                    const struct cri_container_config *config)
{
    if (config->n_devices == 0)
        return NULL;
    Cri__Device **list = arena_alloc(a,
                                     config->n_devices * sizeof(Cri__Device *));
    for (size_t i = 0; i < config->n_devices; i++) {
        list[i] = NEW(a, Cri__Device, CRI__DEVICE__INIT);
        list[i]->container_path = cri_encode_text(config->devices[i]);
        list[i]->host_path = cri_encode_text(config->devices[i]);
        list[i]->permissions = cri_encode_text("rw");
    }
    return list;
}

Cri__ContainerConfig *
cri_encode_container(struct arena *a, const struct cri_container_config *config,
                     const struct cri_sandbox_config *sandbox)
{
    Cri__ContainerConfig *c = NEW(a, Cri__ContainerConfig,
                                  CRI__CONTAINER_CONFIG__INIT);
    c->metadata = NEW(a, Cri__ContainerMetadata, CRI__CONTAINER_METADATA__INIT);
    c->metadata->name = cri_encode_text(config->name);
    c->metadata->attempt = config->attempt;
    c->image = cri_encode_image(a, config->image);
    c->n_command = config->n_command;
    c->command = cri_encode_texts(config->command);
    c->n_args = config->n_args;
    c->args = cri_encode_texts(config->args);
    c->working_dir = cri_encode_text(config->working_dir);
    c->n_envs = config->env.n;
    c->envs = cri_encode_pairs(a, &config->env);
    c->n_mounts = config->n_mounts;
    c->mounts = encode_mounts(a, config);
    c->n_devices = config->n_devices;
    c->devices = encode_devices(a, config);
    c->n_labels = config->labels.n;
    c->labels = cri_encode_pairs(a, &config->labels);
    c->n_annotations = config->annotations.n;
    c->annotations = cri_encode_pairs(a, &config->annotations);
    c->log_path = cri_encode_text(config->log_path);
    c->linux_config = NEW(a, Cri__LinuxContainerConfig,
                          CRI__LINUX_CONTAINER_CONFIG__INIT);
    c->linux_config->resources = encode_resources(a, config);
    c->linux_config->security_context = encode_security(a, config, sandbox);
    return c;
}
