/* Lists and stats of a remote: what is wrong is left out, and only that. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/from_remote.h"
#include "tests/lib/router/criwire.h"

#define UNKNOWN \
    "00000000000000000000000000000000000000000000000000000000000000ff"

static const struct known_sandbox sandbox = {
    .id = CRIWIRE_ID,
    .namespace = "ns",
    .name = "p",
    .uid = "u-1",
    .handler = "xpu",
};
static const struct known_container container = {
    .sandbox = &sandbox,
    .id = CRIWIRE_OTHER,
    .name = "c",
};

static const struct known_sandbox *find_sandbox(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, sandbox.id) == 0 ? &sandbox : NULL;
}
static const struct known_container *find_container(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, container.id) == 0 ? &container : NULL;
}
static const struct known known = {find_sandbox, find_container, NULL};

struct told {
    size_t n;
    struct str last;
    char id[65], sandbox_id[65];
};

static void hear(void *ctx, const struct list_item *item)
{
    struct told *t = ctx;
    t->n++;
    str_reset(&t->last);
    t->last.max = 1 << 20;
    str_add_n(&t->last, item->message.data, item->message.size);
    (void)snprintf(t->id, sizeof t->id, "%s", item->id);
    (void)snprintf(t->sandbox_id, sizeof t->sandbox_id, "%s", item->sandbox_id);
}

static int list(enum method_id id, const struct str *m, struct told *ret,
                struct error *err)
{
    *ret = (struct told){0};
    return from_remote_list(method_get(id), criwire_of(m), &known, hear, ret,
                            err);
}

static void add_container(struct str *m, const char *id)
{
    size_t item = proto_open(m, LIST_ITEMS);
    proto_add_text(m, CRI_Container_id, id);
    proto_add_text(m, CRI_Container_pod_sandbox_id, UNKNOWN);
    proto_add_varint(m, CRI_Container_state, 1);
    proto_add_pair(m, CRI_Container_labels, "io.kubernetes.pod.uid", "forged");
    criwire_add_newer(m, "item");
    proto_close(m, item);
}

Test(from_remote_list, containers)
{
    static const enum method_id calls[] = {METHOD_LIST_CONTAINERS,
                                           METHOD_STREAM_CONTAINERS};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        cleanup_str struct str m = STR_INIT(1 << 16);
        struct error err = {0};
        struct told t;
        add_container(&m, UNKNOWN);
        add_container(&m, CRIWIRE_OTHER);
        criwire_add_newer(&m, "list");
        cr_assert_eq(list(calls[i], &m, &t, &err), 0, "%s", err.text);
        cr_assert_eq(t.n, 1);
        cr_expect_str_eq(t.id, CRIWIRE_OTHER);
        cr_expect_str_eq(t.sandbox_id, CRIWIRE_ID);
        cr_expect(proto_equals(
            CRIWIRE_IN(&t.last, CRI_Container_pod_sandbox_id), CRIWIRE_ID));
        cleanup_free char *uid = criwire_pair(
            criwire_of(&t.last), CRI_Container_labels, "io.kubernetes.pod.uid");
        cr_expect_str_eq(uid, "u-1");
        /* bytes that are newer could make a reader refuse all */
        cr_expect_eq(criwire_count(criwire_of(&t.last), CRIWIRE_NEWER), 0);
        cr_expect_eq(criwire_count(criwire_of(&t.last), CRIWIRE_NEWER + 1), 1);
        str_fini(&t.last);
    }
}

Test(from_remote_list, sandboxes)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct error err = {0};
    struct told t;
    size_t item = proto_open(&m, LIST_ITEMS);
    proto_add_text(&m, CRI_PodSandbox_id, CRIWIRE_ID);
    proto_add_text(&m, CRI_PodSandbox_runtime_handler, "crun");
    proto_close(&m, item);
    cr_assert_eq(list(METHOD_LIST_POD_SANDBOX, &m, &t, &err), 0, "%s",
                 err.text);
    cr_assert_eq(t.n, 1);
    cr_expect_str_eq(t.sandbox_id, CRIWIRE_ID);
    cr_expect(proto_equals(CRIWIRE_IN(&t.last, CRI_PodSandbox_runtime_handler),
                           "xpu"));
    cr_expect(proto_equals(CRIWIRE_IN(&t.last, CRI_PodSandbox_metadata,
                                      CRI_PodSandboxMetadata_uid),
                           "u-1"));
    str_fini(&t.last);
}

/* Without this, one such item makes a node NotReady. */
Test(from_remote_list, what_is_wrong_costs_no_other)
{
    cleanup_str struct str m = STR_INIT(2 << 20);
    cleanup_free char *large = xcalloc(FROM_REMOTE_ITEM_MAX + 1, 1);
    struct error err = {0};
    struct told t;
    proto_add_text(&m, LIST_ITEMS, "\x0a\x01\xff");
    proto_add_text(&m, LIST_ITEMS, "\x0a");
    add_container(&m, "../..");
    memset(large, 'a', FROM_REMOTE_ITEM_MAX);
    proto_add_text(&m, LIST_ITEMS, large);
    add_container(&m, CRIWIRE_OTHER);
    cr_expect_eq(list(METHOD_LIST_CONTAINERS, &m, &t, &err), 1);
    cr_expect(strstr(err.text, "Container.id: is no text"), "%s", err.text);
    cr_expect_eq(t.n, 1);
    str_fini(&t.last);
}

Test(from_remote_list, what_comes_twice_is_told_once)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct error err = {0};
    struct told t;
    add_container(&m, CRIWIRE_OTHER);
    add_container(&m, CRIWIRE_OTHER);
    cr_expect_eq(list(METHOD_LIST_CONTAINERS, &m, &t, &err), 1);
    cr_expect(strstr(err.text, "is listed twice"), "%s", err.text);
    cr_expect_eq(t.n, 1);
    str_fini(&t.last);
}

Test(from_remote_list, a_reply_that_is_none)
{
    cleanup_str struct str m = STR_INIT(1 << 20);
    struct error err = {0};
    struct told t;
    add_container(&m, CRIWIRE_OTHER);
    str_add_c(&m, '\x0a');
    cr_expect_eq(list(METHOD_LIST_CONTAINERS, &m, &t, &err), -EPROTO);
    cr_expect_eq(t.n, 0, "nothing of it is told");
    str_reset(&m);
    proto_add_varint(&m, LIST_ITEMS, 1);
    cr_expect_eq(list(METHOD_LIST_CONTAINERS, &m, &t, &err), -EPROTO);
    str_reset(&m);
    for (size_t i = 0; i <= FROM_REMOTE_ITEMS_MAX; i++)
        proto_add_bytes(&m, LIST_ITEMS, (struct proto_bytes){"", 0});
    cr_expect_eq(list(METHOD_LIST_CONTAINERS, &m, &t, &err), -EPROTO);
    cr_expect_eq(list(METHOD_VERSION, &m, &t, &err), -EPROTO);
}

/* --- stats ---------------------------------------------------------------- */

static void add_stats(struct str *m, uint32_t number, const char *id)
{
    size_t stats = proto_open(m, number);
    size_t attributes = proto_open(m, CRI_ContainerStats_attributes);
    proto_add_text(m, CRI_ContainerAttributes_id, id);
    proto_close(m, attributes);
    size_t cpu = proto_open(m, CRI_ContainerStats_cpu);
    proto_add_varint(m, CRI_CpuUsage_timestamp, 5);
    proto_close(m, cpu);
    size_t layer = proto_open(m, CRI_ContainerStats_writable_layer);
    proto_add_varint(m, CRI_FilesystemUsage_timestamp, 5);
    size_t fs = proto_open(m, CRI_FilesystemUsage_fs_id);
    proto_add_text(m, CRI_FilesystemIdentifier_mountpoint, "/etc");
    proto_close(m, fs);
    proto_close(m, layer);
    proto_close(m, stats);
}

static void expect_stats(const struct str *m, const uint32_t *path)
{
    struct str stats = STR_INIT(1 << 16);
    struct proto_bytes found = criwire_in(m, path);
    str_add_n(&stats, found.data, found.size);
    cr_expect(proto_equals(CRIWIRE_IN(&stats, CRI_ContainerStats_attributes,
                                      CRI_ContainerAttributes_metadata,
                                      CRI_ContainerMetadata_name),
                           "c"));
    cr_expect_eq(CRIWIRE_NUMBER(&stats, 0, CRI_ContainerStats_cpu,
                                CRI_CpuUsage_timestamp),
                 5);
    cr_expect_eq(CRIWIRE_NUMBER(&stats, 0, CRI_ContainerStats_writable_layer,
                                CRI_FilesystemUsage_timestamp),
                 5);
    cr_expect_null(CRIWIRE_IN(&stats, CRI_ContainerStats_writable_layer,
                              CRI_FilesystemUsage_fs_id)
                       .data,
                   "a path that the kubelet would look up here");
    str_fini(&stats);
}

Test(from_remote_list, stats_of_a_container)
{
    cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct error err = {0};
    const struct method *call = method_get(METHOD_CONTAINER_STATS);
    add_stats(&m, 1, CRIWIRE_OTHER);
    cr_assert_eq(from_remote_stats(call, criwire_of(&m), &known, &out, &err), 0,
                 "%s", err.text);
    expect_stats(&out, (const uint32_t[]){1, 0});
    str_reset(&m);
    add_stats(&m, 1, UNKNOWN);
    cr_expect_eq(from_remote_stats(call, criwire_of(&m), &known, &out, &err),
                 -EPROTO);
    str_reset(&m);
    cr_expect_eq(from_remote_stats(call, criwire_of(&m), &known, &out, &err),
                 -EPROTO);
}

Test(from_remote_list, stats_of_a_sandbox)
{
    cleanup_str struct str m = STR_INIT(1 << 16), out = STR_INIT(1 << 16);
    struct error err = {0};
    size_t stats = proto_open(&m, 1);
    size_t attributes = proto_open(&m, CRI_PodSandboxStats_attributes);
    proto_add_text(&m, CRI_PodSandboxAttributes_id, CRIWIRE_ID);
    proto_close(&m, attributes);
    size_t part = proto_open(&m, CRI_PodSandboxStats_linux);
    add_stats(&m, CRI_LinuxPodSandboxStats_containers, UNKNOWN);
    add_stats(&m, CRI_LinuxPodSandboxStats_containers, CRIWIRE_OTHER);
    proto_close(&m, part);
    proto_close(&m, stats);
    cr_assert_eq(from_remote_stats(method_get(METHOD_POD_SANDBOX_STATS),
                                   criwire_of(&m), &known, &out, &err),
                 0, "%s", err.text);
    struct proto_bytes linux_stats = CRIWIRE_IN(&out, 1,
                                                CRI_PodSandboxStats_linux);
    cr_expect_eq(
        criwire_count(linux_stats, CRI_LinuxPodSandboxStats_containers), 1);
    expect_stats(&out,
                 (const uint32_t[]){1, CRI_PodSandboxStats_linux,
                                    CRI_LinuxPodSandboxStats_containers, 0});
}
