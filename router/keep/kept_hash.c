#include "router/keep/kept_hash.h"

#include <string.h>

#include "lib/base/hash.h"
#include "router/wire/fields.h"

enum { DEPTH_MAX = 16 }; /* CRI's messages go eight deep */

/* Large and odd, so that a small number does not stay one. */
#define SEED_A UINT64_C(0x9e3779b97f4a7c15)
#define SEED_B UINT64_C(0xd6e8feb86659fd93)

static uint64_t hash_of(struct proto_bytes b)
{
    return hash_bytes(b.size ? b.data : "", b.size);
}

/* "…/containers/NAME/RANDOM", the file of a termination message. */
static struct proto_bytes without_random(struct proto_bytes path)
{
    static const char folder[] = "/containers/";
    const char *end = path.size ? memrchr(path.data, '/', path.size) : NULL;
    if (end &&
        memmem(path.data, (size_t)(end - path.data), folder, sizeof folder - 1))
        path.size = (size_t)(end - path.data);
    return path;
}

static int hash_message(enum fields_message m, struct proto_bytes message,
                        unsigned depth, uint64_t *ret_hash, struct error *err);

/* One field: what is not known is its bytes. */
static int hash_field(enum fields_message m, const struct proto_field *f,
                      unsigned depth, uint64_t *ret_hash, struct error *err)
{
    const struct fields_row *row = fields_find(m, f->number);
    uint64_t h = hash_of(f->raw);
    bool within = row && f->kind == PROTO_BYTES &&
                  (row->kind == FIELDS_ONE || row->kind == FIELDS_MANY);
    if (within) {
        int e = hash_message(row->within, f->bytes, depth + 1, &h, err);
        if (e < 0)
            return e;
    } else if (m == CRI_Mount && f->number == CRI_Mount_host_path) {
        h = hash_of(without_random(f->bytes));
    }
    *ret_hash = hash_mix(h ^ SEED_A, f->number ^ SEED_B);
    return 0;
}

/* Entries of maps come in any order, everything else in its own. */
static int hash_message(enum fields_message m, struct proto_bytes message,
                        unsigned depth, uint64_t *ret_hash, struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    uint64_t maps = 0, rest = (uint64_t)m + 1, h;
    int more;
    if (depth > DEPTH_MAX)
        return error_set(err, EPROTO, "more than %d messages within another",
                         DEPTH_MAX);
    proto_reader_init(&r, message);
    while ((more = proto_next(&r, &f, err)) > 0) {
        const struct fields_row *row = fields_find(m, f.number);
        int e = hash_field(m, &f, depth, &h, err);
        if (e < 0)
            return e;
        if (row && row->kind == FIELDS_PAIRS)
            maps += h;
        else
            rest = hash_mix(rest ^ h, SEED_B) + h;
    }
    *ret_hash = hash_mix(maps ^ SEED_A, rest ^ SEED_B);
    return more;
}

int kept_hash(const struct method *m, struct proto_bytes request,
              uint64_t *ret_hash, struct error *err)
{
    struct proto_field config, id = {0};
    uint64_t hash = 0;
    bool sandbox = m->id == METHOD_RUN_POD_SANDBOX;
    uint32_t at = sandbox ? CRI_RunPodSandboxRequest_config
                          : CRI_CreateContainerRequest_config;
    int e = proto_find(request, at, PROTO_BYTES, &config, err);
    if (e == 0)
        e = error_set(err, EPROTO, "%s: has no config", method_name(m));
    if (e > 0)
        e = hash_message(sandbox ? CRI_PodSandboxConfig : CRI_ContainerConfig,
                         config.bytes, 0, &hash, err);
    /* the handler, or the sandbox; the pod's configuration that comes with a
     * container may have changed since, and that is no other container */
    if (e == 0)
        e = proto_find(request,
                       sandbox ? CRI_RunPodSandboxRequest_runtime_handler
                               : CRI_CreateContainerRequest_pod_sandbox_id,
                       PROTO_BYTES, &id, err);
    if (e < 0)
        return e;
    *ret_hash = hash_mix(hash ^ SEED_A, hash_of(id.bytes) ^ SEED_B);
    return 0;
}
