/* What a pod or container may do on a remote: no more than what is given. */
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/to_remote_private.h"

enum {
    CAPABILITIES_MAX = 64,
    CAPABILITY_MAX = 64, /* bytes of a name */
};
/* NamespaceMode and SecurityProfile.ProfileType */
enum { MODE_POD = 0, MODE_NODE = 2, PROFILE_LOCALHOST = 2 };

/* Of all names that are added, inheritable by others or not. */
static int take_capabilities(struct proto_bytes capability,
                             struct rights_asked *asked, struct arena *arena,
                             struct error *err)
{
    const char **list = arena_alloc(arena, CAPABILITIES_MAX * sizeof *list);
    struct proto_reader r;
    struct proto_field f;
    int e;
    asked->cap_add = list;
    proto_reader_init(&r, capability);
    while ((e = proto_next(&r, &f, err)) > 0) {
        if (f.number != CRI_Capability_add_capabilities &&
            f.number != CRI_Capability_add_ambient_capabilities)
            continue;
        if (asked->n_cap_add == CAPABILITIES_MAX ||
            f.bytes.size > CAPABILITY_MAX)
            return error_set(err, EPERM,
                             "capabilities.add: has more than %d names, or "
                             "one of over %d bytes",
                             CAPABILITIES_MAX, CAPABILITY_MAX);
        list[asked->n_cap_add++] = arena_strndup(arena, f.bytes.data,
                                                 f.bytes.size);
    }
    return e;
}

static int check_rights(const struct to_remote_security *s,
                        struct proto_bytes context, struct error *err)
{
    static const struct rights none;
    struct proto_bytes namespaces = edit_bytes(context, s->namespaces);
    struct arena arena = {0};
    struct rights_asked asked = {
        .host_pid = edit_number(namespaces, CRI_NamespaceOption_pid) ==
                    MODE_NODE,
        .host_ipc = edit_number(namespaces, CRI_NamespaceOption_ipc) ==
                    MODE_NODE,
        .privileged = edit_number(context, s->privileged) != 0,
    };
    int e = s->capabilities
                ? take_capabilities(edit_bytes(context, s->capabilities),
                                    &asked, &arena, err)
                : 0;
    if (e == 0)
        e = rights_check_asked(s->pod->rights ? s->pod->rights : &none, &asked,
                               s->path, err);
    arena_fini(&arena);
    return e;
}

/* Profiles are files of the remote, as a hostPath is. */
static int check_profile(const struct to_remote_security *s,
                         struct proto_bytes path, struct error *err)
{
    static const struct mount_rules none;
    cleanup_free char *text = xstrndup(path.data, path.size);
    const char *node = s->pod->node ? s->pod->node : "a remote";
    if (mount_path_allowed(s->pod->paths ? s->pod->paths : &none, text))
        return 0;
    return error_set(err, EPERM,
                     "%s.securityContext.seccompProfile: is Localhost, "
                     "\"%.100s\", which for pods on %s is a file there; its "
                     "operator would have to give it with --host-paths",
                     s->path, text, node);
}

static int check_seccomp(const struct to_remote_security *s,
                         struct proto_bytes context, struct error *err)
{
    static const char localhost[] = "localhost/";
    const size_t size = sizeof localhost - 1;
    struct proto_bytes profile = edit_bytes(context, s->seccomp),
                       path = edit_bytes(context, s->seccomp_path);
    int e = 0;
    if (edit_number(profile, CRI_SecurityProfile_profile_type) ==
        PROFILE_LOCALHOST)
        e = check_profile(
            s, edit_bytes(profile, CRI_SecurityProfile_localhost_ref), err);
    if (e == 0 && path.size >= size && memcmp(path.data, localhost, size) == 0)
        e = check_profile(
            s, (struct proto_bytes){path.data + size, path.size - size}, err);
    return e;
}

static int check_user_namespace(const struct to_remote_security *s,
                                struct proto_bytes context, struct error *err)
{
    struct proto_bytes namespaces = edit_bytes(context, s->namespaces);
    struct proto_field user;
    int e = proto_find(namespaces, CRI_NamespaceOption_userns_options,
                       PROTO_BYTES, &user, err);
    if (e <= 0 || edit_number(user.bytes, CRI_UserNamespace_mode) != MODE_POD)
        return e < 0 ? e : 0;
    return error_set(err, EPERM,
                     "%s.hostUsers: is false, which %s does not have", s->path,
                     s->pod->node ? s->pod->node : "a remote");
}

static int edit_namespaces(void *ctx, const struct proto_field *f,
                           struct str *out, struct error *err)
{
    (void)ctx;
    (void)out;
    (void)err;
    return f->number == CRI_NamespaceOption_network ? EDIT_DROP : EDIT_COPY;
}

static int edit_context(void *ctx, const struct proto_field *f, struct str *out,
                        struct error *err)
{
    const struct to_remote_security *s = ctx;
    (void)out;
    (void)err;
    return f->number == s->namespaces ? EDIT_DROP : EDIT_COPY;
}

int to_remote_add_security(const struct to_remote_security *s,
                           struct proto_bytes context, struct str *out,
                           struct error *err)
{
    struct proto_bytes namespaces = edit_bytes(context, s->namespaces);
    bool host = !s->pod->has_network ||
                edit_number(namespaces, CRI_NamespaceOption_network) ==
                    MODE_NODE;
    int e = check_rights(s, context, err);
    if (e == 0)
        e = check_seccomp(s, context, err);
    if (e == 0)
        e = check_user_namespace(s, context, err);
    if (e < 0)
        return e;
    size_t opened = proto_open(out, s->number);
    e = edit_fields(context, edit_context, (void *)(uintptr_t)s, out, err);
    size_t within = proto_open(out, s->namespaces);
    if (e == 0)
        e = edit_fields(namespaces, edit_namespaces, NULL, out, err);
    if (host)
        proto_add_varint(out, CRI_NamespaceOption_network, MODE_NODE);
    proto_close(out, within);
    proto_close(out, opened);
    return e;
}
