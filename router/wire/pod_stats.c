#include "router/wire/pod_stats.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/from_remote_private.h"

struct use {
    const struct known_container *container;
    struct proto_bytes stats; /* ContainerStats */
};

/* A part of ContainerStats that a pod has alike: its time is the latest one,
 * its values are added up. */
struct part {
    uint32_t of_container, of_pod, time;
    const uint32_t *values;
    size_t n_values;
};

/* --- sums ------------------------------------------------------------------ */

static void add_value(const struct use *uses, size_t n, uint32_t part,
                      uint32_t number, struct str *out)
{
    uint64_t sum = 0;
    bool has = false;
    for (size_t i = 0; i < n; i++) {
        struct proto_field f;
        if (proto_find(edit_bytes(uses[i].stats, part), number, PROTO_BYTES, &f,
                       NULL) <= 0)
            continue;
        has = true;
        sum += edit_number(f.bytes, CRI_UInt64Value_value);
    }
    if (!has)
        return;
    size_t opened = proto_open(out, number);
    proto_add_varint(out, CRI_UInt64Value_value, sum);
    proto_close(out, opened);
}

static void add_part(const struct use *uses, size_t n, const struct part *p,
                     struct str *out)
{
    uint64_t latest = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t time = edit_number(edit_bytes(uses[i].stats, p->of_container),
                                    p->time);
        latest = time > latest ? time : latest;
    }
    if (latest == 0)
        return;
    size_t opened = proto_open(out, p->of_pod);
    proto_add_varint(out, p->time, latest);
    for (size_t i = 0; i < p->n_values; i++)
        add_value(uses, n, p->of_container, p->values[i], out);
    proto_close(out, opened);
}

static void add_parts(const struct use *uses, size_t n, struct str *out)
{
    static const uint32_t cpu[] = {CRI_CpuUsage_usage_core_nano_seconds,
                                   CRI_CpuUsage_usage_nano_cores};
    static const uint32_t memory[] = {
        CRI_MemoryUsage_working_set_bytes, CRI_MemoryUsage_usage_bytes,
        CRI_MemoryUsage_rss_bytes, CRI_MemoryUsage_page_faults,
        CRI_MemoryUsage_major_page_faults};
    static const struct part parts[] = {
        {CRI_ContainerStats_cpu, CRI_LinuxPodSandboxStats_cpu,
         CRI_CpuUsage_timestamp, cpu, ARRAY_LEN(cpu)},
        {CRI_ContainerStats_memory, CRI_LinuxPodSandboxStats_memory,
         CRI_MemoryUsage_timestamp, memory, ARRAY_LEN(memory)},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        add_part(uses, n, &parts[i], out);
}

static void add_pod(const char *id, const struct use *uses, size_t n,
                    struct str *out)
{
    size_t pod = proto_open(out, LIST_ITEMS);
    size_t part = proto_open(out, CRI_PodSandboxStats_attributes);
    proto_add_text(out, CRI_PodSandboxAttributes_id, id);
    proto_close(out, part);
    part = proto_open(out, CRI_PodSandboxStats_linux);
    add_parts(uses, n, out);
    for (size_t i = 0; i < n; i++)
        proto_add_bytes(out, CRI_LinuxPodSandboxStats_containers,
                        uses[i].stats);
    proto_close(out, part);
    proto_close(out, pod);
}

/* --- which containers are whose --------------------------------------------- */

/* NULL: it is wrong, or of nothing that is known. */
static const struct known_container *whose(struct proto_bytes stats,
                                           const struct known *known)
{
    char id[FROM_REMOTE_ID_SIZE + 1];
    if (fields_check(CRI_ContainerStats, stats, NULL) < 0 ||
        from_remote_take_id(CRI_ContainerAttributes,
                            edit_bytes(stats, CRI_ContainerStats_attributes),
                            id, NULL) < 0)
        return NULL;
    return known->container(known->ctx, id);
}

static int by_sandbox(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    return strcmp(x->container->sandbox->id, y->container->sandbox->id);
}

static int by_container(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    int order = by_sandbox(a, b);
    return order ? order : strcmp(x->container->id, y->container->id);
}

/* By sandbox; each container is there once, however often it is told. */
static size_t sort(struct use *uses, size_t n)
{
    size_t kept = 0;
    if (n > 0)
        qsort(uses, n, sizeof *uses, by_container);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_container(&uses[kept - 1], &uses[i]) != 0)
            uses[kept++] = uses[i];
    return kept;
}

int pod_stats_write(struct proto_bytes containers, const struct known *known,
                    const char *only, struct str *out, struct error *err)
{
    cleanup_free struct use *uses = NULL;
    size_t n = 0, cap = 0, end;
    struct proto_reader r;
    struct proto_field f;
    int e;
    proto_reader_init(&r, containers);
    while ((e = proto_next(&r, &f, err)) > 0 && n < FROM_REMOTE_ITEMS_MAX) {
        const struct known_container *c = f.number == LIST_ITEMS &&
                                                  f.kind == PROTO_BYTES
                                              ? whose(f.bytes, known)
                                              : NULL;
        if (!c || (only && strcmp(c->sandbox->id, only) != 0))
            continue;
        uses = xgrow(uses, n, &cap, sizeof *uses);
        uses[n++] = (struct use){c, f.bytes};
    }
    if (e < 0)
        return error_wrap(err, "the reply to ListContainerStats");
    n = sort(uses, n);
    if (n == 0 && only)
        add_pod(only, NULL, 0, out);
    for (size_t i = 0; i < n; i = end) {
        for (end = i; end < n && by_sandbox(&uses[i], &uses[end]) == 0;)
            end++;
        add_pod(uses[i].container->sandbox->id, &uses[i], end - i, out);
    }
    return edit_end(out, err);
}
