/* What is kept of the kubelet's requests, to be told again. */
#include "router/wire/from_remote_private.h"
#include "router/wire/wire_keys.h"

/* The fields of what is kept.  The form is there so that it is never empty. */
enum { MADE_LABELS = 1, MADE_ANNOTATIONS, MADE_MOUNTS, MADE_FORM };

static int copy_kept(void *ctx, const struct proto_field *f, struct str *out,
                     struct error *err)
{
    const struct made_numbers *from = ctx;
    (void)err;
    if (f->number == from->labels)
        proto_add_bytes(out, MADE_LABELS, f->bytes);
    else if (f->number == from->annotations && !edit_is_key(f, WIRE_KEPT))
        proto_add_bytes(out, MADE_ANNOTATIONS, f->bytes);
    else if (f->number == from->mounts)
        proto_add_bytes(out, MADE_MOUNTS, f->bytes);
    return EDIT_DROP;
}

int from_remote_made(const struct method *m, struct proto_bytes request,
                     struct str *out, struct error *err)
{
    bool is_sandbox = m->id == METHOD_RUN_POD_SANDBOX;
    struct made_numbers from =
        is_sandbox ? (struct made_numbers){CRI_PodSandboxConfig_labels,
                                           CRI_PodSandboxConfig_annotations, 0}
                   : (struct made_numbers){CRI_ContainerConfig_labels,
                                           CRI_ContainerConfig_annotations,
                                           CRI_ContainerConfig_mounts};
    uint32_t config = is_sandbox ? CRI_RunPodSandboxRequest_config
                                 : CRI_CreateContainerRequest_config;
    int e = fields_check(is_sandbox ? CRI_RunPodSandboxRequest
                                    : CRI_CreateContainerRequest,
                         request, err);
    if (e < 0)
        return error_wrap(err, "%s", method_name(m));
    proto_add_varint(out, MADE_FORM, 1);
    e = edit_fields(edit_bytes(request, config), copy_kept, &from, out, err);
    return e < 0 ? e : edit_end(out, err);
}

void from_remote_add_made(struct proto_bytes made,
                          const struct made_numbers *numbers, struct str *out)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, made);
    while (proto_next(&r, &f, NULL) > 0) {
        uint32_t to = f.number == MADE_LABELS        ? numbers->labels
                      : f.number == MADE_ANNOTATIONS ? numbers->annotations
                      : f.number == MADE_MOUNTS      ? numbers->mounts
                                                     : 0;
        if (to && f.kind == PROTO_BYTES)
            proto_add_bytes(out, to, f.bytes);
    }
}

void from_remote_made_mounts(struct proto_bytes made,
                             void (*visit)(void *ctx, struct proto_bytes mount),
                             void *ctx)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, made);
    while (proto_next(&r, &f, NULL) > 0)
        if (f.number == MADE_MOUNTS && f.kind == PROTO_BYTES)
            visit(ctx, f.bytes);
}
