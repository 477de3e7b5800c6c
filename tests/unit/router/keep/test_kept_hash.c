/* Which requests are one call, made again. */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/keep/kept_hash.h"
#include "router/wire/fields.h"

struct shape {
    const char *label, *arg, *mount, *sandbox, *pod_label;
    bool other_order;
};
static const struct shape usual = {
    "v",  "a", "/var/lib/kubelet/pods/u/containers/c/1234abcd",
    "aa", "p", false};

static void pairs(struct str *out, uint32_t number, const struct shape *s)
{
    proto_add_pair(out, number, s->other_order ? "b" : "a",
                   s->other_order ? "w" : s->label);
    proto_add_pair(out, number, s->other_order ? "a" : "b",
                   s->other_order ? s->label : "w");
}

static uint64_t hash_of(const struct shape *s)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct error err = {0};
    uint64_t hash = 0;
    proto_add_text(&m, CRI_CreateContainerRequest_pod_sandbox_id, s->sandbox);
    size_t config = proto_open(&m, CRI_CreateContainerRequest_config);
    proto_add_text(&m, CRI_ContainerConfig_args, s->arg);
    proto_add_text(&m, CRI_ContainerConfig_args, "second");
    size_t mount = proto_open(&m, CRI_ContainerConfig_mounts);
    proto_add_text(&m, CRI_Mount_container_path, "/dev/termination-log");
    proto_add_text(&m, CRI_Mount_host_path, s->mount);
    proto_close(&m, mount);
    pairs(&m, CRI_ContainerConfig_labels, s);
    proto_add_varint(&m, 900, 7); /* newer than Biga */
    proto_close(&m, config);
    size_t pod = proto_open(&m, CRI_CreateContainerRequest_sandbox_config);
    proto_add_pair(&m, CRI_PodSandboxConfig_labels, "k", s->pod_label);
    proto_close(&m, pod);
    cr_assert_eq(kept_hash(method_get(METHOD_CREATE_CONTAINER),
                           (struct proto_bytes){m.data, m.size}, &hash, &err),
                 0, "%s", err.text);
    return hash;
}

Test(kept_hash, is_the_same_for_the_same_call)
{
    uint64_t hash = hash_of(&usual);
    struct shape s = usual;
    s.other_order = true;
    cr_assert_eq(hash_of(&s), hash, "maps have no order");
    s = usual;
    s.mount = "/var/lib/kubelet/pods/u/containers/c/99999999";
    cr_assert_eq(hash_of(&s), hash, "it is new in each call");
    s = usual;
    s.pod_label = "q";
    cr_assert_eq(hash_of(&s), hash, "the pod may have been relabelled");
}

Test(kept_hash, is_another_for_another)
{
    uint64_t hash = hash_of(&usual);
    struct shape s = usual;
    s.label = "w";
    cr_assert_neq(hash_of(&s), hash);
    s = usual;
    s.arg = "second";
    cr_assert_neq(hash_of(&s), hash);
    s = usual;
    s.mount = "/var/lib/kubelet/pods/u/containers/d/1234abcd";
    cr_assert_neq(hash_of(&s), hash);
    s = usual;
    s.mount = "/var/lib/kubelet/pods/u/volumes/c/1234abcd";
    cr_assert_neq(hash_of(&s), hash);
    s = usual;
    s.sandbox = "ab";
    cr_assert_neq(hash_of(&s), hash);
}

Test(kept_hash, arguments_have_an_order)
{
    static const char *const args[2][2] = {{"x", "y"}, {"y", "x"}};
    uint64_t hashes[2];
    for (size_t i = 0; i < 2; i++) {
        cleanup_str struct str m = STR_INIT(1024);
        size_t config = proto_open(&m, CRI_CreateContainerRequest_config);
        proto_add_text(&m, CRI_ContainerConfig_args, args[i][0]);
        proto_add_text(&m, CRI_ContainerConfig_args, args[i][1]);
        proto_close(&m, config);
        cr_assert_eq(kept_hash(method_get(METHOD_CREATE_CONTAINER),
                               (struct proto_bytes){m.data, m.size}, &hashes[i],
                               NULL),
                     0);
    }
    cr_assert_neq(hashes[0], hashes[1]);
}

Test(kept_hash, refuses_what_is_no_request)
{
    static const char *const bad[] = {"", "\x0a\x05", "\xff"};
    uint64_t hash;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct proto_bytes m = {bad[i], strlen(bad[i])};
        struct error err = {0};
        cr_assert_eq(
            kept_hash(method_get(METHOD_RUN_POD_SANDBOX), m, &hash, &err),
            -EPROTO);
        cr_assert(*err.text);
    }
}
