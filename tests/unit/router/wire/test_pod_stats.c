#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "router/wire/pod_stats.h"
#include "tests/lib/router/criwire.h"

#define A1 "a100000000000000000000000000000000000000000000000000000000000000"
#define A2 "a200000000000000000000000000000000000000000000000000000000000000"
#define B1 "b100000000000000000000000000000000000000000000000000000000000000"

static const struct known_sandbox pods[] = {{.id = CRIWIRE_ID},
                                            {.id = CRIWIRE_OTHER}};
static const struct known_container containers[] = {
    {.id = A1, .sandbox = &pods[0], .name = "one"},
    {.id = A2, .sandbox = &pods[0], .name = "two"},
    {.id = B1, .sandbox = &pods[1], .name = "one"},
};

static const struct known_sandbox *find_sandbox(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, pods[0].id) == 0   ? &pods[0]
           : strcmp(id, pods[1].id) == 0 ? &pods[1]
                                         : NULL;
}
static const struct known_container *find_container(void *ctx, const char *id)
{
    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(containers); i++)
        if (strcmp(containers[i].id, id) == 0)
            return &containers[i];
    return NULL;
}
static const struct known known = {find_sandbox, find_container, NULL};

static void add_value(struct str *m, uint32_t number, uint64_t value)
{
    size_t at = proto_open(m, number);
    proto_add_varint(m, CRI_UInt64Value_value, value);
    proto_close(m, at);
}

/* One that has used so much by then; of memory as many bytes. */
static void add(struct str *m, const char *id, uint64_t time, uint64_t used)
{
    size_t item = proto_open(m, LIST_ITEMS);
    size_t at = proto_open(m, CRI_ContainerStats_attributes);
    proto_add_text(m, CRI_ContainerAttributes_id, id);
    proto_close(m, at);
    at = proto_open(m, CRI_ContainerStats_cpu);
    proto_add_varint(m, CRI_CpuUsage_timestamp, time);
    add_value(m, CRI_CpuUsage_usage_core_nano_seconds, used);
    proto_close(m, at);
    at = proto_open(m, CRI_ContainerStats_memory);
    proto_add_varint(m, CRI_MemoryUsage_timestamp, time);
    add_value(m, CRI_MemoryUsage_working_set_bytes, used);
    proto_close(m, at);
    proto_close(m, item);
}

static uint64_t number_in(struct proto_bytes stats, uint32_t part,
                          uint32_t number)
{
    struct str m = STR_INIT(1 << 16);
    str_add_n(&m, stats.data, stats.size);
    uint64_t found = CRIWIRE_NUMBER(&m, 0, CRI_PodSandboxStats_linux, part,
                                    number, CRI_UInt64Value_value);
    str_fini(&m);
    return found;
}

struct told {
    size_t n;
    uint64_t cpu[2], memory[2], time[2];
    size_t n_containers[2];
};

static void hear(void *ctx, const struct list_item *item)
{
    struct told *t = ctx;
    size_t i = strcmp(item->id, pods[1].id) == 0;
    struct str m = STR_INIT(1 << 16);
    str_add_n(&m, item->message.data, item->message.size);
    t->n++;
    t->cpu[i] = number_in(item->message, CRI_LinuxPodSandboxStats_cpu,
                          CRI_CpuUsage_usage_core_nano_seconds);
    t->memory[i] = number_in(item->message, CRI_LinuxPodSandboxStats_memory,
                             CRI_MemoryUsage_working_set_bytes);
    t->time[i] = CRIWIRE_NUMBER(&m, 0, CRI_PodSandboxStats_linux,
                                CRI_LinuxPodSandboxStats_cpu,
                                CRI_CpuUsage_timestamp);
    t->n_containers[i] =
        criwire_count(CRIWIRE_IN(&m, CRI_PodSandboxStats_linux),
                      CRI_LinuxPodSandboxStats_containers);
    str_fini(&m);
}

Test(pod_stats, are_the_sums_of_their_containers)
{
    cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct error err = {0};
    struct told t = {0};
    add(&m, A2, 7, 30);
    add(&m, B1, 9, 500);
    add(&m, A1, 8, 4);
    add(&m, A2, 99, 1000); /* told twice */
    add(&m, "nonsense", 9, 1000);
    add(&m, CRIWIRE_ID, 9, 1000); /* no container */
    cr_assert_eq(pod_stats_write(criwire_of(&m), &known, NULL, &out, &err), 0,
                 "%s", err.text);
    cr_assert_eq(from_remote_list(method_get(METHOD_LIST_POD_SANDBOX_STATS),
                                  criwire_of(&out), &known, hear, &t, &err),
                 0, "%s", err.text);
    cr_expect_eq(t.n, 2);
    cr_expect(t.cpu[0] == 34 || t.cpu[0] == 1004, "%lu", t.cpu[0]);
    cr_expect_eq(t.memory[0], t.cpu[0]);
    cr_expect(t.time[0] == 8 || t.time[0] == 99);
    cr_expect_eq(t.n_containers[0], 2);
    cr_expect_eq(t.cpu[1], 500);
    cr_expect_eq(t.memory[1], 500);
    cr_expect_eq(t.n_containers[1], 1);
}

Test(pod_stats, of_one_that_is_asked_for)
{
    cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct error err = {0};
    add(&m, A1, 8, 4);
    for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
        cleanup_str struct str told = STR_INIT(1 << 16);
        str_reset(&out);
        cr_assert_eq(
            pod_stats_write(criwire_of(&m), &known, pods[i].id, &out, &err), 0,
            "%s", err.text);
        cr_assert_eq(criwire_count(criwire_of(&out), LIST_ITEMS), 1,
                     "also one without containers");
        cr_assert_eq(from_remote_stats(method_get(METHOD_POD_SANDBOX_STATS),
                                       criwire_of(&out), &known, &told, &err),
                     0, "%s", err.text);
        cr_expect_eq(
            criwire_count(CRIWIRE_IN(&told, 1, CRI_PodSandboxStats_linux),
                          CRI_LinuxPodSandboxStats_containers),
            1 - i);
    }
}

Test(pod_stats, of_what_is_no_list)
{
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct error err = {0};
    cr_expect_eq(pod_stats_write((struct proto_bytes){"\x0a\x05", 2}, &known,
                                 NULL, &out, &err),
                 -EPROTO);
    cr_expect(strstr(err.text, "ListContainerStats"), "%s", err.text);
}
