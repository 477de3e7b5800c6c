/* Replies of a hostile remote: what the kubelet would hear is a message that it
 * takes, with the identity and the paths that are known here, and within the
 * caps; statuses keep the fields that are newer than Biga. */
#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/fields.h"
#include "router/wire/found.h"
#include "router/wire/from_remote.h"
#include "router/wire/pod_stats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LOG "/var/log/pods/ns_p_u-1/c/0.log"

static const struct known_sandbox sandbox = {
    .id = ID,
    .namespace = "ns",
    .name = "p",
    .uid = "u-1",
    .handler = "xpu",
    .address = "10.0.0.7",
};
static const struct known_container container = {
    .sandbox = &sandbox,
    .id = ID,
    .name = "c",
    .log_path = LOG,
    .created_ns = 1000,
    .now_ns = 2000,
};
static const struct known_sandbox *find_sandbox(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, ID) == 0 ? &sandbox : NULL;
}
static const struct known_container *find_container(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, ID) == 0 ? &container : NULL;
}
static const struct known known = {find_sandbox, find_container, NULL};

static struct proto_bytes within(struct proto_bytes message, uint32_t number)
{
    struct proto_field f;
    return proto_find(message, number, PROTO_BYTES, &f, NULL) > 0
               ? f.bytes
               : (struct proto_bytes){"", 0};
}

static void check_pair(struct proto_bytes m, uint32_t number, const char *key,
                       const char *expected)
{
    struct proto_bytes value;
    assert(proto_find_pair(m, number, key, &value, NULL) > 0);
    assert(proto_equals(value, expected));
}

static void check_sandbox(struct proto_bytes s)
{
    assert(proto_equals(within(s, CRI_PodSandboxStatus_id), ID));
    assert(
        proto_equals(within(s, CRI_PodSandboxStatus_runtime_handler), "xpu"));
    assert(proto_equals(within(within(s, CRI_PodSandboxStatus_network),
                               CRI_PodSandboxNetworkStatus_ip),
                        "10.0.0.7"));
    check_pair(s, CRI_PodSandboxStatus_labels, "io.kubernetes.pod.uid", "u-1");
    struct proto_bytes options =
        within(within(within(s, CRI_PodSandboxStatus_linux),
                      CRI_LinuxPodSandboxStatus_namespaces),
               CRI_Namespace_options);
    struct proto_field f;
    assert(proto_find(options, CRI_NamespaceOption_network, PROTO_VARINT, &f,
                      NULL) == 0);
}

static void check_container(struct proto_bytes c)
{
    struct proto_field f;
    assert(proto_equals(within(c, CRI_ContainerStatus_id), ID));
    assert(proto_equals(within(c, CRI_ContainerStatus_log_path), LOG));
    assert(proto_find(c, CRI_ContainerStatus_mounts, PROTO_BYTES, &f, NULL) ==
           0);
    for (uint32_t i = CRI_ContainerStatus_created_at;
         i <= CRI_ContainerStatus_finished_at; i++)
        assert(proto_find(c, i, PROTO_VARINT, &f, NULL) == 0 ||
               (f.value >= 1000 && f.value <= 2000));
    check_pair(c, CRI_ContainerStatus_labels, "io.kubernetes.pod.uid", "u-1");
    check_pair(c, CRI_ContainerStatus_labels, "io.kubernetes.container.name",
               "c");
}

/* How many fields are not in the table. */
static size_t count_newer(enum fields_message m, struct proto_bytes message)
{
    struct proto_reader r;
    struct proto_field f;
    size_t n = 0;
    proto_reader_init(&r, message);
    while (proto_next(&r, &f, NULL) > 0)
        n += fields_find(m, f.number) == NULL;
    return n;
}

static void check_containers(struct proto_bytes reply)
{
    struct proto_field f;
    if (proto_find(reply, CRI_PodSandboxStatusResponse_containers_statuses,
                   PROTO_BYTES, &f, NULL) > 0)
        check_container(f.bytes);
}

static void check_status(enum fields_message reply, enum fields_message status,
                         struct proto_bytes in, const struct str *out)
{
    struct proto_bytes made = {out->data, out->size};
    assert(fields_check(reply, made, NULL) == 0);
    assert(count_newer(reply, in) == count_newer(reply, made));
    assert(count_newer(status, within(in, 1)) ==
           count_newer(status, within(made, 1)));
    if (status == CRI_PodSandboxStatus) {
        check_sandbox(within(made, 1));
        check_containers(made);
    } else {
        check_container(within(made, 1));
    }
}

static int try_statuses(unsigned what, struct proto_bytes in, struct str *out,
                        struct error *err)
{
    int e = what ? from_remote_container_status(in, &container, out, err)
                 : from_remote_sandbox_status(in, &sandbox, &known, out, err);
    if (e == 0 && what)
        check_status(CRI_ContainerStatusResponse, CRI_ContainerStatus, in, out);
    else if (e == 0)
        check_status(CRI_PodSandboxStatusResponse, CRI_PodSandboxStatus, in,
                     out);
    return e;
}

static void hear(void *ctx, const struct list_item *item)
{
    const struct list_form *form = list_form_get(ctx);
    assert(strcmp(item->id, ID) == 0 && strcmp(item->sandbox_id, ID) == 0);
    assert(item->message.size <= 2 * FROM_REMOTE_ITEM_MAX);
    assert(fields_check(form->item, item->message, NULL) == 0);
    struct proto_bytes labelled =
        form->item_attributes ? within(item->message, form->item_attributes)
                              : item->message;
    check_pair(labelled, form->item_labels, "io.kubernetes.pod.uid", "u-1");
}

static int try_list(enum method_id id, struct proto_bytes in, struct error *err)
{
    const struct method *m = method_get(id);
    return from_remote_list(m, in, &known, hear, (void *)(uintptr_t)m, err);
}

static void see(void *ctx, const struct found *f)
{
    (void)ctx;
    assert(strlen(f->id) == FROM_REMOTE_ID_SIZE);
    assert(strlen(f->kept) <= FOUND_KEPT_MAX);
    assert(f->labels.n <= FOUND_LABELS_MAX);
    for (size_t i = 0; i < f->labels.n; i++)
        assert(f->labels.list[i].key && f->labels.list[i].value);
}

static int try_small(struct proto_bytes in, struct str *out, struct error *err)
{
    char id[FROM_REMOTE_ID_SIZE + 1], url[FROM_REMOTE_URL_MAX + 1];
    if (from_remote_id(in, id, err) == 0)
        assert(strlen(id) == FROM_REMOTE_ID_SIZE);
    if (from_remote_url(in, url, err) == 0)
        assert(strlen(url) <= FROM_REMOTE_URL_MAX);
    int e = from_remote_checked(method_get(METHOD_EXEC_SYNC), in, out, err);
    if (e == 0)
        assert(out->size == in.size);
    return e;
}

static void pass(void *ctx, const struct list_item *item)
{
    (void)ctx;
    (void)item;
}

/* What we make of a remote's numbers is what we read. */
static void try_pod_stats(struct proto_bytes in)
{
    const struct method *m = method_get(METHOD_LIST_POD_SANDBOX_STATS);
    cleanup_str struct str made = {.max = 1 << 24, .soft = true};
    if (in.size < FROM_REMOTE_ITEM_MAX / 2 &&
        pod_stats_write(in, &known, NULL, &made, NULL) == 0)
        assert(from_remote_list(
                   m, (struct proto_bytes){str_text(&made), made.size}, &known,
                   pass, NULL, NULL) == 0);
}

static int try_stats(enum method_id id, struct proto_bytes in, struct str *out,
                     struct error *err)
{
    try_pod_stats(in);
    int e = from_remote_stats(method_get(id), in, &known, out, err);
    if (e == 0)
        assert(fields_check(
                   id == METHOD_CONTAINER_STATS ? CRI_ContainerStatsResponse
                                                : CRI_PodSandboxStatsResponse,
                   (struct proto_bytes){out->data, out->size}, NULL) == 0);
    return e;
}

static int try_all(unsigned what, struct proto_bytes in, struct str *out,
                   struct error *err)
{
    static const enum method_id lists[] = {
        METHOD_LIST_POD_SANDBOX, METHOD_LIST_CONTAINERS,
        METHOD_LIST_CONTAINER_STATS, METHOD_LIST_POD_SANDBOX_STATS};
    const struct cri_pairs any = {0};
    if (what < 2)
        return try_statuses(what, in, out, err);
    if (what < 6)
        return try_list(lists[what - 2], in, err);
    if (what == 6)
        return try_small(in, out, err);
    if (what < 9)
        return found_read(method_get(lists[what - 7]), in, any, see, NULL, err);
    return try_stats(what == 9 ? METHOD_CONTAINER_STATS
                               : METHOD_POD_SANDBOX_STATS,
                     in, out, err);
}

/* The first byte chooses the reply, and how little room there is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    if (size < 1)
        return 0;
    cleanup_str struct str out = {.max = data[0] & 0x80 ? 200 : 1 << 24,
                                  .soft = true};
    struct proto_bytes in = {(const char *)data + 1, size - 1};
    int e = try_all((data[0] & 0x7f) % 11, in, &out, &err);
    assert(out.size <= out.max);
    assert(e >= 0 || (err.code == -e && err.text[0]));
    return 0;
}
