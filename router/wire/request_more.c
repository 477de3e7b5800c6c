/* What a request for a remote brings besides its key: the pod, the container.
 * Its messages have been checked, so of a member there is one, of its kind. */
#include <errno.h>
#include <string.h>

#include "model/pod/pod_keys.h"
#include "router/wire/edit.h"
#include "router/wire/request.h"

enum { NETWORK_NODE = 2 }; /* of NamespaceMode */

/* Where a text goes, and what it is called. */
struct text_rule {
    uint32_t number;
    const char *what;
    size_t max;
    const char **to;
};

static int take(struct request *r, const struct text_rule *rule,
                struct proto_bytes b, struct error *err)
{
    if (b.size > rule->max)
        return error_set(err, EINVAL, "%s: has %zu bytes, the limit is %zu",
                         rule->what, b.size, rule->max);
    *rule->to = arena_strndup(&r->arena, b.size ? b.data : "", b.size);
    return 0;
}

static int take_all(struct request *r, struct proto_bytes message,
                    const struct text_rule *rules, size_t n, struct error *err)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < n; i++)
        e = take(r, &rules[i], edit_bytes(message, rules[i].number), err);
    return e;
}

/* --- the pod -------------------------------------------------------------- */

static bool asks_host_network(struct proto_bytes config)
{
    struct proto_bytes linux_config = edit_bytes(config,
                                                 CRI_PodSandboxConfig_linux);
    struct proto_bytes security =
        edit_bytes(linux_config, CRI_LinuxPodSandboxConfig_security_context);
    struct proto_bytes options =
        edit_bytes(security, CRI_LinuxSandboxSecurityContext_namespace_options);
    return (uint32_t)edit_number(options, CRI_NamespaceOption_network) ==
           NETWORK_NODE;
}

static int read_pod(struct request *r, struct proto_bytes config,
                    struct error *err)
{
    struct request_pod *p = &r->pod;
    struct proto_bytes metadata = edit_bytes(config,
                                             CRI_PodSandboxConfig_metadata);
    const struct text_rule names[] = {
        {CRI_PodSandboxMetadata_name, "metadata.name", REQUEST_TEXT_MAX,
         &p->name},
        {CRI_PodSandboxMetadata_uid, "metadata.uid", REQUEST_TEXT_MAX, &p->uid},
        {CRI_PodSandboxMetadata_namespace, "metadata.namespace",
         REQUEST_TEXT_MAX, &p->namespace},
    };
    const struct text_rule others[] = {
        {CRI_PodSandboxConfig_hostname, "hostname", REQUEST_TEXT_MAX,
         &p->hostname},
        {CRI_PodSandboxConfig_log_directory, "log_directory", REQUEST_TEXT_MAX,
         &p->log_directory},
    };
    const struct text_rule allocation = {0, "annotation " WORD_ALLOCATION,
                                         REQUEST_ALLOCATION_MAX,
                                         &p->allocation};
    struct proto_bytes value = {"", 0};
    int e = take_all(r, metadata, names, ARRAY_LEN(names), err);
    if (e == 0)
        e = take_all(r, config, others, ARRAY_LEN(others), err);
    (void)proto_find_pair(config, CRI_PodSandboxConfig_annotations,
                          WORD_ALLOCATION, &value, NULL);
    if (e == 0)
        e = take(r, &allocation, value, err);
    p->attempt = (uint32_t)edit_number(metadata,
                                       CRI_PodSandboxMetadata_attempt);
    p->host_network = asks_host_network(config);
    p->present = true;
    return e;
}

/* --- the container -------------------------------------------------------- */

static int read_mount(struct request *r, struct proto_bytes from,
                      struct mount *m, struct error *err)
{
    struct proto_field image;
    const struct text_rule paths[] = {
        {CRI_Mount_container_path, "container_path", MOUNT_PATH_MAX,
         &m->container_path},
        {CRI_Mount_host_path, "host_path", MOUNT_PATH_MAX, &m->host_path},
    };
    m->read_only = (uint32_t)edit_number(from, CRI_Mount_readonly) != 0;
    m->propagation = (uint32_t)edit_number(from, CRI_Mount_propagation);
    m->image = proto_find(from, CRI_Mount_image, PROTO_BYTES, &image, NULL) > 0;
    return take_all(r, from, paths, ARRAY_LEN(paths), err);
}

static size_t count_mounts(struct proto_bytes config)
{
    struct proto_reader reader;
    struct proto_field f;
    size_t n = 0;
    proto_reader_init(&reader, config);
    while (proto_next(&reader, &f, NULL) > 0)
        n += f.number == CRI_ContainerConfig_mounts;
    return n;
}

static int read_mounts(struct request *r, struct proto_bytes config,
                       struct error *err)
{
    struct proto_reader reader;
    struct proto_field f;
    size_t n = count_mounts(config), i = 0;
    if (n > MOUNT_MAX)
        return error_set(err, EINVAL, "mounts: are %zu, the limit is %d", n,
                         MOUNT_MAX);
    struct mount *list = arena_alloc(&r->arena, (n + 1) * sizeof *list);
    proto_reader_init(&reader, config);
    while (proto_next(&reader, &f, NULL) > 0) {
        if (f.number != CRI_ContainerConfig_mounts)
            continue;
        int e = read_mount(r, f.bytes, &list[i], err);
        if (e < 0)
            return error_wrap(err, "mounts[%zu]", i);
        i++;
    }
    r->container.mounts = list;
    r->container.n_mounts = n;
    return 0;
}

static int read_container(struct request *r, struct proto_bytes config,
                          struct error *err)
{
    struct request_container *c = &r->container;
    struct proto_bytes metadata = edit_bytes(config,
                                             CRI_ContainerConfig_metadata),
                       image = edit_bytes(config, CRI_ContainerConfig_image);
    const struct text_rule name = {CRI_ContainerMetadata_name, "metadata.name",
                                   REQUEST_TEXT_MAX, &c->name};
    const struct text_rule images[] = {
        {CRI_ImageSpec_image, "image", REQUEST_TEXT_MAX, &c->image},
        {CRI_ImageSpec_user_specified_image, "user_specified_image",
         REQUEST_TEXT_MAX, &c->user_image},
    };
    const struct text_rule log_path = {CRI_ContainerConfig_log_path, "log_path",
                                       REQUEST_TEXT_MAX, &c->log_path};
    int e = take_all(r, metadata, &name, 1, err);
    if (e == 0)
        e = take_all(r, image, images, ARRAY_LEN(images), err);
    if (e == 0)
        e = take_all(r, config, &log_path, 1, err);
    if (e == 0)
        e = read_mounts(r, config, err);
    c->attempt = (uint32_t)edit_number(metadata, CRI_ContainerMetadata_attempt);
    c->present = true;
    return e;
}

int request_read_more(const struct method *m, struct proto_bytes message,
                      struct request *r, struct error *err)
{
    static const struct {
        enum method_id id;
        enum fields_message message;
        uint32_t pod, container;
    } all[] = {
        {METHOD_RUN_POD_SANDBOX, CRI_RunPodSandboxRequest,
         CRI_RunPodSandboxRequest_config, 0},
        {METHOD_CREATE_CONTAINER, CRI_CreateContainerRequest,
         CRI_CreateContainerRequest_sandbox_config,
         CRI_CreateContainerRequest_config},
        {METHOD_PULL_IMAGE, CRI_PullImageRequest,
         CRI_PullImageRequest_sandbox_config, 0},
    };
    struct proto_field f;
    int e = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i].id != m->id)
            continue;
        e = fields_check(all[i].message, message, err);
        if (e == 0 &&
            (e = proto_find(message, all[i].pod, PROTO_BYTES, &f, err)) > 0)
            e = read_pod(r, f.bytes, err);
        if (e >= 0 && all[i].container &&
            (e = proto_find(message, all[i].container, PROTO_BYTES, &f, err)) >
                0)
            e = read_container(r, f.bytes, err);
    }
    return e < 0 ? error_wrap(err, "%s", method_name(m)) : 0;
}
