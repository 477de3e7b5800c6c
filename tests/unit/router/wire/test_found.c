/* What of ours a remote's lists have. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "advertiser/cri/cri_container.h"
#include "lib/base/mem.h"
#include "router/wire/found.h"
#include "tests/lib/router/criwire.h"

static const struct cri_pair label = {"biga.dev/node", "n1"};
static const struct cri_pairs ours = {&label, 1};

struct seen {
    size_t n;
    char id[FROM_REMOTE_ID_SIZE + 1], sandbox_id[FROM_REMOTE_ID_SIZE + 1];
    char name[64], kept[64];
    uint32_t attempt, state;
    int64_t created_ns;
    size_t n_labels;
};

static void see(void *ctx, const struct found *f)
{
    struct seen *s = ctx;
    s->n++;
    memcpy(s->id, f->id, sizeof s->id);
    memcpy(s->sandbox_id, f->sandbox_id, sizeof s->sandbox_id);
    (void)snprintf(s->name, sizeof s->name, "%s", f->name);
    (void)snprintf(s->kept, sizeof s->kept, "%s", f->kept);
    s->attempt = f->attempt;
    s->state = f->state;
    s->created_ns = f->created_ns;
    s->n_labels = f->labels.n;
}

static void add_sandbox(struct str *m, const char *id, const char *node)
{
    size_t item = proto_open(m, LIST_ITEMS);
    proto_add_text(m, CRI_PodSandbox_id, id);
    size_t metadata = proto_open(m, CRI_PodSandbox_metadata);
    proto_add_text(m, CRI_PodSandboxMetadata_name, "p");
    proto_add_varint(m, CRI_PodSandboxMetadata_attempt, 2);
    proto_close(m, metadata);
    proto_add_varint(m, CRI_PodSandbox_state, 1);
    proto_add_varint(m, CRI_PodSandbox_created_at, 77);
    proto_add_pair(m, CRI_PodSandbox_labels, "biga.dev/node", node);
    proto_add_pair(m, CRI_PodSandbox_labels, "a", "b");
    proto_add_pair(m, CRI_PodSandbox_annotations, "biga.dev/kept", "{}");
    criwire_add_newer(m, "item");
    proto_close(m, item);
}

static void add_container(struct str *m, const char *sandbox_id)
{
    size_t item = proto_open(m, LIST_ITEMS);
    proto_add_text(m, CRI_Container_id, CRIWIRE_OTHER);
    proto_add_text(m, CRI_Container_pod_sandbox_id, sandbox_id);
    size_t metadata = proto_open(m, CRI_Container_metadata);
    proto_add_text(m, CRI_ContainerMetadata_name, "c");
    proto_close(m, metadata);
    proto_add_varint(m, CRI_Container_state, 2);
    proto_add_pair(m, CRI_Container_labels, "biga.dev/node", "n1");
    proto_close(m, item);
}

static int look(enum method_id id, const struct str *m, struct seen *ret,
                struct error *err)
{
    *ret = (struct seen){0};
    return found_read(method_get(id), criwire_of(m), ours, see, ret, err);
}

Test(found, a_sandbox)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct seen s;
    struct error err = {0};
    add_sandbox(&m, CRIWIRE_ID, "n1");
    add_sandbox(&m, CRIWIRE_OTHER, "another-node");
    cr_assert_eq(look(METHOD_LIST_POD_SANDBOX, &m, &s, &err), 0, "%s",
                 err.text);
    cr_expect_eq(s.n, 1);
    cr_expect_str_eq(s.id, CRIWIRE_ID);
    cr_expect_str_eq(s.sandbox_id, "");
    cr_expect_str_eq(s.name, "p");
    cr_expect_str_eq(s.kept, "{}");
    cr_expect_eq(s.attempt, 2);
    cr_expect_eq(s.state, 1);
    cr_expect_eq(s.created_ns, 77);
    cr_expect_eq(s.n_labels, 2);
}

Test(found, a_container)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct seen s;
    struct error err = {0};
    add_container(&m, CRIWIRE_ID);
    cr_assert_eq(look(METHOD_LIST_CONTAINERS, &m, &s, &err), 0, "%s", err.text);
    cr_expect_eq(s.n, 1);
    cr_expect_str_eq(s.id, CRIWIRE_OTHER);
    cr_expect_str_eq(s.sandbox_id, CRIWIRE_ID);
    cr_expect_str_eq(s.name, "c");
    cr_expect_str_eq(s.kept, "");
    cr_expect_eq(s.state, CRI_EXITED);
}

Test(found, what_is_wrong_is_left_out)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    struct seen s;
    struct error err = {0};
    add_container(&m, "../etc");
    add_container(&m, CRIWIRE_ID);
    proto_add_text(&m, LIST_ITEMS, "\x0a\x01\xff");
    cr_expect_eq(look(METHOD_LIST_CONTAINERS, &m, &s, &err), 1);
    cr_expect(strstr(err.text, "sandbox of a container is \"../etc\""), "%s",
              err.text);
    cr_expect_eq(s.n, 1);
}

Test(found, has_caps)
{
    cleanup_free char *large = xcalloc(FOUND_KEPT_MAX + 2, 1);
    cleanup_str struct str m = STR_INIT(1 << 20);
    struct seen s;
    struct error err = {0};
    memset(large, 'a', FOUND_KEPT_MAX + 1);
    size_t item = proto_open(&m, LIST_ITEMS);
    proto_add_text(&m, CRI_PodSandbox_id, CRIWIRE_ID);
    proto_add_pair(&m, CRI_PodSandbox_labels, "biga.dev/node", "n1");
    proto_add_pair(&m, CRI_PodSandbox_annotations, "biga.dev/kept", large);
    for (size_t i = 0; i < FOUND_LABELS_MAX; i++)
        proto_add_pair(&m, CRI_PodSandbox_labels, "k", "v");
    proto_close(&m, item);
    cr_assert_eq(look(METHOD_LIST_POD_SANDBOX, &m, &s, &err), 0, "%s",
                 err.text);
    cr_expect_eq(s.n, 1);
    cr_expect_str_eq(s.kept, "");
    cr_expect_eq(s.n_labels, FOUND_LABELS_MAX);
    for (size_t i = 0; i < FROM_REMOTE_ITEMS_MAX; i++)
        proto_add_bytes(&m, LIST_ITEMS, (struct proto_bytes){"", 0});
    cr_expect_eq(look(METHOD_LIST_POD_SANDBOX, &m, &s, &err), -EPROTO);
    cr_expect_eq(s.n, 0);
}
