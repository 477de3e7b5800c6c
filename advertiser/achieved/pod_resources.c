#include "advertiser/achieved/pod_resources.h"

#include <stdlib.h>

void given_pods_destroy(struct given_pods *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++) {
        free(p->pods[i].devices);
        free(p->pods[i].claims);
    }
    free(p->pods);
    arena_fini(&p->arena);
    free(p);
}

/* What is being read, and where it goes. */
struct sink {
    struct given_pods *all;
    struct given_pod *pod;
};

typedef int field_f(struct sink *s, const struct proto_field *f, void *into,
                    struct error *err);

static int each_field(struct sink *s, struct proto_bytes message, field_f *take,
                      void *into, struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int e;
    proto_reader_init(&r, message);
    while ((e = proto_next(&r, &f, err)) > 0) {
        e = take(s, &f, into, err);
        if (e < 0)
            return e;
    }
    return e;
}

static int take_text(struct sink *s, struct proto_bytes from, const char *what,
                     const char **ret_text, struct error *err)
{
    if (!proto_is_text(from))
        return error_set(err, EPROTO, "%s: is no text", what);
    if (from.size > POD_RESOURCES_TEXT_MAX)
        return error_set(err, E2BIG, "%s: has %zu bytes, at most %d allowed",
                         what, from.size, POD_RESOURCES_TEXT_MAX);
    *ret_text = arena_strndup(&s->all->arena, from.size ? from.data : "",
                              from.size);
    return 0;
}

/* --- CPUs and NUMA nodes -------------------------------------------------- */

static void add_index(struct sink *s, struct index_set *set, uint64_t index)
{
    if (!index_set_add(set, index))
        s->pod->strange = true;
}

/* Packed or not, as any reader of Protocol Buffers takes them. */
static int take_indexes(struct sink *s, const struct proto_field *f,
                        struct index_set *set, struct error *err)
{
    if (f->kind == PROTO_VARINT)
        add_index(s, set, f->value);
    if (f->kind != PROTO_BYTES)
        return 0;
    uint64_t value = 0;
    unsigned shift = 0;
    for (size_t i = 0; i < f->bytes.size; i++) {
        unsigned char byte = (unsigned char)f->bytes.data[i];
        if (shift > 63)
            return error_set(err, EPROTO, "cpu_ids: a number is too long");
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80)
            continue;
        add_index(s, set, value);
        value = 0;
        shift = 0;
    }
    return shift ? error_set(err, EPROTO, "cpu_ids: ends within a number") : 0;
}

static int take_node(struct sink *s, const struct proto_field *f, void *into,
                     struct error *err)
{
    struct proto_field id = {0};
    (void)into;
    if (f->number != 1 || f->kind != PROTO_BYTES)
        return 0;
    /* a node 0 is not on the wire */
    int e = proto_find(f->bytes, 1, PROTO_VARINT, &id, err);
    if (e >= 0)
        add_index(s, &s->pod->memory, id.value);
    return e < 0 ? e : 0;
}

/* A block of memory; pages of any size are somewhere, too. */
static int take_memory(struct sink *s, const struct proto_field *f, void *into,
                       struct error *err)
{
    if (f->number != 3 || f->kind != PROTO_BYTES)
        return 0;
    return each_field(s, f->bytes, take_node, into, err);
}

/* --- devices -------------------------------------------------------------- */

static int too_many(const char *what, struct error *err)
{
    return error_set(err, E2BIG, "%s: are more than %d of one pod", what,
                     POD_RESOURCES_DEVICES_MAX);
}

static int take_id(struct sink *s, const struct proto_field *f, void *into,
                   struct error *err)
{
    struct given_pod *p = s->pod;
    if (f->number != 2 || f->kind != PROTO_BYTES)
        return 0;
    if (p->n_devices == POD_RESOURCES_DEVICES_MAX)
        return too_many("device_ids", err);
    p->devices = xgrow(p->devices, p->n_devices, &p->cap_devices,
                       sizeof *p->devices);
    struct given_device d = {.resource = into};
    int e = take_text(s, f->bytes, "device_ids", &d.id, err);
    if (e == 0)
        p->devices[p->n_devices++] = d;
    return e;
}

static int take_devices(struct sink *s, struct proto_bytes message,
                        struct error *err)
{
    struct proto_field name = {0};
    const char *resource = NULL;
    int e = proto_find(message, 1, PROTO_BYTES, &name, err);
    if (e >= 0)
        e = take_text(s, name.bytes, "resource_name", &resource, err);
    if (e < 0)
        return e;
    return each_field(s, message, take_id, (void *)(uintptr_t)resource, err);
}

static int take_claim_text(struct sink *s, const struct proto_field *f,
                           void *into, struct error *err)
{
    struct given_claim *c = into;
    if (f->kind != PROTO_BYTES)
        return 0;
    if (f->number == 2)
        return take_text(s, f->bytes, "driver_name", &c->driver, err);
    if (f->number == 3)
        return take_text(s, f->bytes, "pool_name", &c->pool, err);
    if (f->number == 4)
        return take_text(s, f->bytes, "device_name", &c->device, err);
    return 0;
}

static int take_claim(struct sink *s, const struct proto_field *f, void *into,
                      struct error *err)
{
    struct given_pod *p = s->pod;
    struct given_claim c = {.driver = "", .pool = "", .device = ""};
    (void)into;
    if (f->number != 4 || f->kind != PROTO_BYTES)
        return 0;
    if (p->n_claims == POD_RESOURCES_DEVICES_MAX)
        return too_many("claim_resources", err);
    int e = each_field(s, f->bytes, take_claim_text, &c, err);
    if (e < 0)
        return e;
    p->claims = xgrow(p->claims, p->n_claims, &p->cap_claims,
                      sizeof *p->claims);
    p->claims[p->n_claims++] = c;
    return 0;
}

/* --- pods ----------------------------------------------------------------- */

static int take_container(struct sink *s, const struct proto_field *f,
                          void *into, struct error *err)
{
    if (f->number == 3)
        return take_indexes(s, f, &s->pod->cpus, err);
    if (f->kind != PROTO_BYTES)
        return 0;
    if (f->number == 2)
        return take_devices(s, f->bytes, err);
    if (f->number == 4)
        return each_field(s, f->bytes, take_memory, into, err);
    if (f->number == 5)
        return each_field(s, f->bytes, take_claim, into, err);
    return 0;
}

static int take_pod_field(struct sink *s, const struct proto_field *f,
                          void *into, struct error *err)
{
    if (f->number == 4)
        return take_indexes(s, f, &s->pod->cpus, err);
    if (f->kind != PROTO_BYTES)
        return 0;
    if (f->number == 1)
        return take_text(s, f->bytes, "name", &s->pod->name, err);
    if (f->number == 2)
        return take_text(s, f->bytes, "namespace", &s->pod->namespace, err);
    if (f->number == 3)
        return each_field(s, f->bytes, take_container, into, err);
    if (f->number == 5)
        return each_field(s, f->bytes, take_memory, into, err);
    return 0;
}

static int take_pod(struct sink *s, const struct proto_field *f, void *into,
                    struct error *err)
{
    struct given_pods *all = s->all;
    if (f->number != 1 || f->kind != PROTO_BYTES)
        return 0;
    if (all->n == POD_RESOURCES_PODS_MAX)
        return error_set(err, E2BIG, "pod_resources: are more than %d",
                         POD_RESOURCES_PODS_MAX);
    all->pods = xgrow(all->pods, all->n, &all->cap, sizeof *all->pods);
    s->pod = &all->pods[all->n++];
    *s->pod = (struct given_pod){.namespace = "", .name = ""};
    int e = each_field(s, f->bytes, take_pod_field, into, err);
    return e < 0 ? error_wrap(err, "pod_resources[%zu]", all->n - 1) : 0;
}

int pod_resources_read(struct proto_bytes message, struct given_pods **ret_pods,
                       struct error *err)
{
    cleanup_with(given_pods) struct given_pods *all = xcalloc(1, sizeof *all);
    struct sink s = {.all = all};
    int e = each_field(&s, message, take_pod, NULL, err);
    if (e < 0)
        return error_wrap(err, "PodResources");
    *ret_pods = steal(&all);
    return 0;
}
