#include "router/wire/to_remote.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "router/wire/to_remote_private.h"
#include "router/wire/wire_keys.h"

enum { MODE_NODE = 2 }; /* of NamespaceMode */

static bool is_ours(const struct proto_field *entry)
{
    struct proto_bytes key, value;
    return proto_read_pair(entry->bytes, &key, &value, NULL) == 0 &&
           key.size >= strlen(WIRE_PREFIX) &&
           memcmp(key.data, WIRE_PREFIX, strlen(WIRE_PREFIX)) == 0;
}

/* --- pods ----------------------------------------------------------------- */

struct config {
    const struct to_remote_pod *pod;
    bool host_network; /* the remote's */
    bool asked;        /* for that of a host */
};

static int edit_linux(void *ctx, const struct proto_field *f, struct str *out,
                      struct error *err)
{
    const struct config *c = ctx;
    int e;
    (void)out;
    switch (f->number) {
    case CRI_LinuxPodSandboxConfig_cgroup_parent:
    case CRI_LinuxPodSandboxConfig_security_context:
    case CRI_LinuxPodSandboxConfig_overhead:
    case CRI_LinuxPodSandboxConfig_resources:
        return EDIT_DROP;
    case CRI_LinuxPodSandboxConfig_sysctls:
        e = to_remote_check_sysctl(f, c->pod, c->host_network, err);
        return e < 0 ? e : EDIT_COPY;
    default:
        return EDIT_COPY;
    }
}

static struct proto_bytes pod_security(struct proto_bytes config)
{
    return edit_bytes(edit_bytes(config, CRI_PodSandboxConfig_linux),
                      CRI_LinuxPodSandboxConfig_security_context);
}

/* It has the network, so it is written also where there was none. */
static int add_linux(struct config *c, struct proto_bytes config,
                     struct str *out, struct error *err)
{
    const struct to_remote_pod *pod = c->pod;
    const struct to_remote_security security = {
        .pod = pod,
        .path = "spec",
        .namespaces = CRI_LinuxSandboxSecurityContext_namespace_options,
        .privileged = CRI_LinuxSandboxSecurityContext_privileged,
        .seccomp = CRI_LinuxSandboxSecurityContext_seccomp,
        .seccomp_path = CRI_LinuxSandboxSecurityContext_seccomp_profile_path,
        .number = CRI_LinuxPodSandboxConfig_security_context,
    };
    size_t opened = proto_open(out, CRI_PodSandboxConfig_linux);
    int e = edit_fields(edit_bytes(config, CRI_PodSandboxConfig_linux),
                        edit_linux, c, out, err);
    proto_add_text(out, CRI_LinuxPodSandboxConfig_cgroup_parent,
                   pod->cgroup_parent);
    if (e == 0)
        e = to_remote_add_security(&security, pod_security(config), out, err);
    proto_close(out, opened);
    return e;
}

/* The ports of one that asked for a host's network are the host's anyway. */
static int check_port(const struct config *c, struct proto_bytes port,
                      struct error *err)
{
    uint64_t number = edit_number(port, CRI_PortMapping_host_port);
    if (number == 0 || c->asked)
        return EDIT_COPY;
    return error_set(err, EINVAL,
                     "spec: has hostPort %" PRIu64
                     ", and no port of this machine leads to %s",
                     number, c->pod->node ? c->pod->node : "a remote");
}

static int edit_config(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    const struct config *c = ctx;
    (void)out;
    switch (f->number) {
    case CRI_PodSandboxConfig_port_mappings:
        return check_port(c, f->bytes, err);
    case CRI_PodSandboxConfig_hostname:
        return c->host_network ? EDIT_DROP : EDIT_COPY;
    case CRI_PodSandboxConfig_log_directory:
    case CRI_PodSandboxConfig_linux:
        return EDIT_DROP;
    case CRI_PodSandboxConfig_dns_config:
        return c->pod->own_dns ? EDIT_DROP : EDIT_COPY;
    case CRI_PodSandboxConfig_labels:
        return edit_is_key_of(f, c->pod->labels) ? EDIT_DROP : EDIT_COPY;
    case CRI_PodSandboxConfig_annotations:
        return edit_is_key(f, WIRE_KEPT) ? EDIT_DROP : EDIT_COPY;
    default:
        return EDIT_COPY;
    }
}

int to_remote_config(const struct proto_field *config,
                     const struct to_remote_pod *pod, struct str *out,
                     struct error *err)
{
    struct proto_bytes namespaces =
        edit_bytes(pod_security(config->bytes),
                   CRI_LinuxSandboxSecurityContext_namespace_options);
    struct config c = {
        .pod = pod,
        .asked = edit_number(namespaces, CRI_NamespaceOption_network) ==
                 MODE_NODE,
    };
    c.host_network = c.asked || !pod->has_network;
    size_t opened = proto_open(out, config->number);
    int e = edit_fields(config->bytes, edit_config, &c, out, err);
    proto_add_text(out, CRI_PodSandboxConfig_log_directory, pod->log_directory);
    edit_add_pairs(out, CRI_PodSandboxConfig_labels, pod->labels);
    if (pod->kept && *pod->kept)
        proto_add_pair(out, CRI_PodSandboxConfig_annotations, WIRE_KEPT,
                       pod->kept);
    if (e == 0)
        e = add_linux(&c, config->bytes, out, err);
    proto_close(out, opened);
    return e;
}

static int edit_run(void *ctx, const struct proto_field *f, struct str *out,
                    struct error *err)
{
    switch (f->number) {
    case CRI_RunPodSandboxRequest_config:
        return to_remote_config(f, ctx, out, err);
    case CRI_RunPodSandboxRequest_runtime_handler:
        return EDIT_DROP;
    default:
        return EDIT_COPY;
    }
}

int to_remote_sandbox(struct proto_bytes request,
                      const struct to_remote_pod *pod, struct str *out,
                      struct error *err)
{
    struct proto_field config;
    int e = fields_check(CRI_RunPodSandboxRequest, request, err);
    if (e == 0 && proto_find(request, CRI_RunPodSandboxRequest_config,
                             PROTO_BYTES, &config, err) == 0)
        e = error_set(err, EPROTO, "has no config");
    if (e == 0)
        e = edit_fields(request, edit_run, (void *)(uintptr_t)pod, out, err);
    proto_add_text(out, CRI_RunPodSandboxRequest_runtime_handler, pod->handler);
    return e < 0 ? error_wrap(err, "RunPodSandbox") : edit_end(out, err);
}

/* --- images --------------------------------------------------------------- */

struct image {
    const char *handler;
    bool has_handler;
};

static int edit_image(void *ctx, const struct proto_field *f, struct str *out,
                      struct error *err)
{
    struct image *image = ctx;
    (void)out;
    (void)err;
    switch (f->number) {
    case CRI_ImageSpec_annotations:
        return is_ours(f) ? EDIT_DROP : EDIT_COPY;
    case CRI_ImageSpec_runtime_handler:
        image->has_handler = true;
        return EDIT_DROP;
    default:
        return EDIT_COPY;
    }
}

static void finish_image(void *ctx, struct str *out)
{
    const struct image *image = ctx;
    if (image->has_handler)
        proto_add_text(out, CRI_ImageSpec_runtime_handler, image->handler);
}

int to_remote_add_image(const struct proto_field *image, const char *handler,
                        struct str *out, struct error *err)
{
    struct image i = {.handler = handler};
    return edit_within(image, edit_image, finish_image, &i, out, err);
}

struct image_call {
    const struct to_remote_pod *pod;
    bool is_pull;
};

static int edit_image_call(void *ctx, const struct proto_field *f,
                           struct str *out, struct error *err)
{
    const struct image_call *call = ctx;
    if (f->number == CRI_PullImageRequest_image)
        return to_remote_add_image(f, call->pod->handler, out, err);
    if (call->is_pull && f->number == CRI_PullImageRequest_sandbox_config)
        return to_remote_config(f, call->pod, out, err);
    return EDIT_COPY;
}

int to_remote_image(const struct method *m, struct proto_bytes request,
                    const struct to_remote_pod *pod, struct str *out,
                    struct error *err)
{
    struct image_call call = {pod, m->id == METHOD_PULL_IMAGE};
    enum fields_message message = call.is_pull ? CRI_PullImageRequest
                                  : m->id == METHOD_IMAGE_STATUS
                                      ? CRI_ImageStatusRequest
                                      : CRI_RemoveImageRequest;
    int e = fields_check(message, request, err);
    if (e == 0)
        e = edit_fields(request, edit_image_call, &call, out, err);
    return e < 0 ? error_wrap(err, "%s", method_name(m)) : edit_end(out, err);
}
