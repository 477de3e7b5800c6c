/* What a container may use on a remote: the least of what its allocation and
 * what the kubelet says. */
#include "router/wire/to_remote_private.h"

enum {
    PERIOD_US = 100000,
    PERIOD_MAX = 1000000, /* what Linux takes */
    QUOTA_MIN = 1000,
    SHARES_OF_CPU = 1024,
    SHARES_MIN = 2, /* what cgroups have as their least, and their most */
    SHARES_MAX = 262144,
};

/* Numbers of this machine's CPUs, NUMA nodes and pages mean nothing there, and
 * a remote need not have cgroup v2; the rest is written anew. */
static int edit_resources(void *ctx, const struct proto_field *f,
                          struct str *out, struct error *err)
{
    (void)ctx;
    (void)out;
    (void)err;
    switch (f->number) {
    case CRI_LinuxContainerResources_cpu_period:
    case CRI_LinuxContainerResources_cpu_quota:
    case CRI_LinuxContainerResources_cpu_shares:
    case CRI_LinuxContainerResources_memory_limit_in_bytes:
    case CRI_LinuxContainerResources_cpuset_cpus:
    case CRI_LinuxContainerResources_cpuset_mems:
    case CRI_LinuxContainerResources_hugepage_limits:
    case CRI_LinuxContainerResources_unified:
    case CRI_LinuxContainerResources_memory_swap_limit_in_bytes:
        return EDIT_DROP;
    default:
        return EDIT_COPY;
    }
}

/* The period and quota that are less, as parts of a CPU. */
static void add_quota(uint32_t milli, uint64_t period, uint64_t quota,
                      struct str *out)
{
    bool own = period > 0 && period <= PERIOD_MAX && (int64_t)quota > 0;
    if (milli && (!own || quota > milli * period / 1000)) {
        period = PERIOD_US;
        quota = (uint64_t)milli * PERIOD_US / 1000;
        quota = quota < QUOTA_MIN ? QUOTA_MIN : quota;
    }
    if (period)
        proto_add_varint(out, CRI_LinuxContainerResources_cpu_period, period);
    if (quota)
        proto_add_varint(out, CRI_LinuxContainerResources_cpu_quota, quota);
}

/* The kubelet's weight is one among this machine's containers. */
static void add_shares(uint32_t milli, uint64_t own, struct str *out)
{
    uint64_t shares = milli ? (uint64_t)milli * SHARES_OF_CPU / 1000 : own;
    if (milli && shares < SHARES_MIN)
        shares = SHARES_MIN;
    if (milli && shares > SHARES_MAX)
        shares = SHARES_MAX;
    if (shares)
        proto_add_varint(out, CRI_LinuxContainerResources_cpu_shares, shares);
}

static void add_memory(uint64_t limit, uint64_t own, struct str *out)
{
    bool is_limited = (int64_t)own > 0;
    uint64_t least = limit && (!is_limited || limit < own) ? limit : own;
    if (least)
        proto_add_varint(out, CRI_LinuxContainerResources_memory_limit_in_bytes,
                         least);
}

int to_remote_add_resources(uint32_t number, struct proto_bytes resources,
                            const struct to_remote_limits *limits,
                            struct str *out, struct error *err)
{
    size_t opened = proto_open(out, number);
    int e = edit_fields(resources, edit_resources, NULL, out, err);
    add_quota(limits->cpu_milli,
              edit_number(resources, CRI_LinuxContainerResources_cpu_period),
              edit_number(resources, CRI_LinuxContainerResources_cpu_quota),
              out);
    add_shares(limits->cpu_milli,
               edit_number(resources, CRI_LinuxContainerResources_cpu_shares),
               out);
    add_memory(limits->memory,
               edit_number(resources,
                           CRI_LinuxContainerResources_memory_limit_in_bytes),
               out);
    proto_add_text(out, CRI_LinuxContainerResources_cpuset_cpus,
                   limits->cpuset_cpus);
    proto_close(out, opened);
    return e;
}

static int edit_update(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    return f->number == CRI_UpdateContainerResourcesRequest_linux
               ? to_remote_add_resources(f->number, f->bytes, ctx, out, err)
               : EDIT_COPY;
}

int to_remote_resources(struct proto_bytes request,
                        const struct to_remote_limits *limits, struct str *out,
                        struct error *err)
{
    int e = fields_check(CRI_UpdateContainerResourcesRequest, request, err);
    if (e == 0)
        e = edit_fields(request, edit_update, (void *)(uintptr_t)limits, out,
                        err);
    return e < 0 ? error_wrap(err, "UpdateContainerResources")
                 : edit_end(out, err);
}
