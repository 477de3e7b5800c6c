/* CreateContainer as a remote is to have it. */
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/to_remote_private.h"
#include "router/wire/wire_keys.h"

struct container {
    const struct to_remote_container *to;
    char *path; /* what errors call it */
    size_t n_mounts;
};

/* --- mounts --------------------------------------------------------------- */

struct mount_edit {
    const char *path;
};

static int edit_mount(void *ctx, const struct proto_field *f, struct str *out,
                      struct error *err)
{
    (void)ctx;
    (void)out;
    (void)err;
    return f->number == CRI_Mount_host_path ? EDIT_DROP : EDIT_COPY;
}

static void finish_mount(void *ctx, struct str *out)
{
    const struct mount_edit *m = ctx;
    proto_add_text(out, CRI_Mount_host_path, m->path);
}

static int add_mount(struct container *c, const struct proto_field *f,
                     struct str *out, struct error *err)
{
    size_t i = c->n_mounts++;
    if (i >= c->to->n_mounts)
        return error_set(err, EINVAL, "%s: has more than %zu mounts", c->path,
                         c->to->n_mounts);
    struct mount_edit m = {.path = c->to->mounts[i]};
    return m.path ? edit_within(f, edit_mount, finish_mount, &m, out, err)
                  : EDIT_DROP;
}

static void add_extra(const struct to_remote_container *to, struct str *out)
{
    for (size_t i = 0; i < to->n_extra; i++) {
        const struct cri_mount *m = &to->extra[i];
        size_t opened = proto_open(out, CRI_ContainerConfig_mounts);
        proto_add_text(out, CRI_Mount_container_path, m->container_path);
        proto_add_text(out, CRI_Mount_host_path, m->host_path);
        if (m->read_only)
            proto_add_varint(out, CRI_Mount_readonly, 1);
        proto_close(out, opened);
    }
}

/* --- the configuration ---------------------------------------------------- */

static int refuse_device(const struct container *c, struct proto_bytes name,
                         struct error *err)
{
    return error_set(err, EPERM,
                     "%s: has device \"%.*s\" of this machine, which %s does "
                     "not have",
                     c->path, (int)(name.size < 100 ? name.size : 100),
                     name.data,
                     c->to->pod->node ? c->to->pod->node : "a remote");
}

static int edit_cdi(const struct container *c, const struct proto_field *f,
                    struct error *err)
{
    static const size_t size = sizeof WIRE_CARD_CDI - 1;
    struct proto_bytes name = edit_bytes(f->bytes, CRI_CDIDevice_name);
    if (name.size > size && memcmp(name.data, WIRE_CARD_CDI, size) == 0)
        return EDIT_DROP;
    return refuse_device(c, name, err);
}

static int edit_annotation(const struct container *c,
                           const struct proto_field *f, struct error *err)
{
    static const size_t size = sizeof WIRE_CDI_PREFIX - 1;
    struct proto_bytes key, value;
    int e = proto_read_pair(f->bytes, &key, &value, err);
    if (e < 0)
        return e;
    if (key.size >= size && memcmp(key.data, WIRE_CDI_PREFIX, size) == 0)
        return refuse_device(c, value, err);
    return proto_equals(key, WIRE_KEPT) ? EDIT_DROP : EDIT_COPY;
}

static int edit_config(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    struct container *c = ctx;
    switch (f->number) {
    case CRI_ContainerConfig_image:
        return to_remote_add_image(f, c->to->pod->handler, out, err);
    case CRI_ContainerConfig_mounts:
        return add_mount(c, f, out, err);
    case CRI_ContainerConfig_devices:
        return refuse_device(c, edit_bytes(f->bytes, CRI_Device_host_path),
                             err);
    case CRI_ContainerConfig_CDI_devices:
        return edit_cdi(c, f, err);
    case CRI_ContainerConfig_labels:
        return edit_is_key_of(f, c->to->pod->labels) ||
                       edit_is_key_of(f, c->to->labels)
                   ? EDIT_DROP
                   : EDIT_COPY;
    case CRI_ContainerConfig_annotations:
        return edit_annotation(c, f, err);
    case CRI_ContainerConfig_log_path:
    case CRI_ContainerConfig_linux:
        return EDIT_DROP;
    default:
        return EDIT_COPY;
    }
}

static int edit_linux(void *ctx, const struct proto_field *f, struct str *out,
                      struct error *err)
{
    (void)ctx;
    (void)out;
    (void)err;
    return f->number == CRI_LinuxContainerConfig_resources ||
                   f->number == CRI_LinuxContainerConfig_security_context
               ? EDIT_DROP
               : EDIT_COPY;
}

static int add_linux(const struct container *c, struct proto_bytes config,
                     struct str *out, struct error *err)
{
    const struct to_remote_security security = {
        .pod = c->to->pod,
        .path = c->path,
        .namespaces = CRI_LinuxContainerSecurityContext_namespace_options,
        .privileged = CRI_LinuxContainerSecurityContext_privileged,
        .seccomp = CRI_LinuxContainerSecurityContext_seccomp,
        .seccomp_path = CRI_LinuxContainerSecurityContext_seccomp_profile_path,
        .capabilities = CRI_LinuxContainerSecurityContext_capabilities,
        .number = CRI_LinuxContainerConfig_security_context,
    };
    struct proto_bytes from = edit_bytes(config, CRI_ContainerConfig_linux);
    size_t opened = proto_open(out, CRI_ContainerConfig_linux);
    int e = edit_fields(from, edit_linux, NULL, out, err);
    if (e == 0)
        e = to_remote_add_resources(
            CRI_LinuxContainerConfig_resources,
            edit_bytes(from, CRI_LinuxContainerConfig_resources),
            &c->to->limits, out, err);
    if (e == 0)
        e = to_remote_add_security(
            &security,
            edit_bytes(from, CRI_LinuxContainerConfig_security_context), out,
            err);
    proto_close(out, opened);
    return e;
}

static int add_config(struct container *c, const struct proto_field *f,
                      struct str *out, struct error *err)
{
    const struct to_remote_container *to = c->to;
    size_t opened = proto_open(out, f->number);
    int e = edit_fields(f->bytes, edit_config, c, out, err);
    if (e == 0 && c->n_mounts != to->n_mounts)
        e = error_set(err, EINVAL, "%s: has %zu mounts, not %zu", c->path,
                      c->n_mounts, to->n_mounts);
    add_extra(to, out);
    edit_add_pairs(out, CRI_ContainerConfig_labels, to->pod->labels);
    edit_add_pairs(out, CRI_ContainerConfig_labels, to->labels);
    if (to->kept && *to->kept)
        proto_add_pair(out, CRI_ContainerConfig_annotations, WIRE_KEPT,
                       to->kept);
    proto_add_text(out, CRI_ContainerConfig_log_path, to->log_path);
    if (e == 0)
        e = add_linux(c, f->bytes, out, err);
    proto_close(out, opened);
    return e;
}

static int edit_create(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    struct container *c = ctx;
    const char *id = c->to->sandbox_id;
    switch (f->number) {
    case CRI_CreateContainerRequest_pod_sandbox_id:
        return id && *id ? EDIT_DROP : EDIT_COPY;
    case CRI_CreateContainerRequest_config:
        return add_config(c, f, out, err);
    case CRI_CreateContainerRequest_sandbox_config:
        return to_remote_config(f, c->to->pod, out, err);
    default:
        return EDIT_COPY;
    }
}

static char *name_of(struct proto_bytes request)
{
    struct proto_bytes config = edit_bytes(request,
                                           CRI_CreateContainerRequest_config);
    struct proto_bytes name =
        edit_bytes(edit_bytes(config, CRI_ContainerConfig_metadata),
                   CRI_ContainerMetadata_name);
    return xasprintf("container \"%.*s\"",
                     (int)(name.size < 100 ? name.size : 100), name.data);
}

int to_remote_container(struct proto_bytes request,
                        const struct to_remote_container *to, struct str *out,
                        struct error *err)
{
    struct proto_field config;
    int e = fields_check(CRI_CreateContainerRequest, request, err);
    if (e == 0 && proto_find(request, CRI_CreateContainerRequest_config,
                             PROTO_BYTES, &config, err) == 0)
        e = error_set(err, EPROTO, "has no config");
    if (e < 0)
        return error_wrap(err, "CreateContainer");
    cleanup_free char *path = name_of(request);
    struct container c = {.to = to, .path = path};
    e = edit_fields(request, edit_create, &c, out, err);
    proto_add_text(out, CRI_CreateContainerRequest_pod_sandbox_id,
                   to->sandbox_id);
    return e < 0 ? e : edit_end(out, err);
}
