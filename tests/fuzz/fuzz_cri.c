/* Replies of a container runtime: what is taken obeys the caps, and memory
 * stays within what the size of a reply allows. */
#include <assert.h>
#include <string.h>

#include "advertiser/cri/cri_private.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    size_t n = strlen(text);
    assert(n < CRI_TEXT_MAX);
    for (size_t i = 0; i < n; i++)
        assert((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

static void check_labels(const struct cri_pair *labels, size_t n)
{
    assert(n <= CRI_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        check_text(labels[i].key);
        check_text(labels[i].value);
    }
}

static void check_sandbox(const struct cri_sandbox *s)
{
    assert(cri_id_valid(s->id));
    check_text(s->name);
    check_text(s->namespace);
    check_text(s->uid);
    check_labels(s->labels, s->n_labels);
}

static void check_container(const struct cri_container *c)
{
    assert(cri_id_valid(c->id));
    assert(c->state >= CRI_CREATED && c->state <= CRI_UNKNOWN);
    check_text(c->name);
    check_text(c->image);
    check_labels(c->labels, c->n_labels);
}

static int try_sandboxes(const void *data, size_t size, struct error *err)
{
    static const struct cri_pair label = {"k", "v"};
    struct cri_sandboxes list;
    for (size_t n = 0; n < 2; n++) {
        struct cri_pairs labels = {.list = &label, .n = n};
        if (cri_decode_sandboxes(data, size, labels, &list, err) < 0)
            continue;
        assert(list.n <= CRI_OBJECTS_MAX);
        for (size_t i = 0; i < list.n; i++)
            check_sandbox(&list.list[i]);
        cri_sandboxes_fini(&list);
    }
    return 0;
}

static int try_container(const void *data, size_t size, struct error *err)
{
    struct cri_container c;
    int r = cri_decode_container(data, size, "a", &c, err);
    if (r == 0) {
        check_container(&c);
        check_text(c.reason);
        check_text(c.message);
        check_text(c.log_path);
        cri_container_fini(&c);
    }
    return r;
}

static int try_containers(const void *data, size_t size, struct error *err)
{
    struct cri_containers list;
    int r = cri_decode_containers(data, size, (struct cri_pairs){0}, &list,
                                  err);
    if (r < 0)
        return r;
    assert(list.n <= CRI_OBJECTS_MAX);
    for (size_t i = 0; i < list.n; i++) {
        check_container(&list.list[i]);
        assert(cri_id_valid(list.list[i].sandbox_id));
    }
    cri_containers_fini(&list);
    return 0;
}

static int try_usages(const void *data, size_t size, struct error *err)
{
    struct cri_usages list;
    int r = cri_decode_usages(data, size, &list, err);
    if (r < 0)
        return r;
    assert(list.n <= CRI_OBJECTS_MAX);
    for (size_t i = 0; i < list.n; i++) {
        assert(cri_id_valid(list.list[i].id));
        check_labels(list.list[i].labels, list.list[i].n_labels);
    }
    cri_usages_fini(&list);
    return 0;
}

static int try_exec(const void *data, size_t size, struct error *err)
{
    struct cri_exec e = {0};
    int r = cri_decode_exec(data, size, &e, err);
    if (r == 0) {
        assert(e.out.size <= CRI_EXEC_OUTPUT_MAX);
        assert(e.err.size <= CRI_EXEC_OUTPUT_MAX);
        str_fini(&e.out);
        str_fini(&e.err);
    }
    return r;
}

static int try_event(const void *data, size_t size, struct error *err)
{
    struct cri_event e;
    int r = cri_decode_event(data, size, &e, err);
    if (r == 0) {
        assert(cri_id_valid(e.container_id));
        assert(!*e.sandbox_id || cri_id_valid(e.sandbox_id));
        assert(strnlen(e.uid, sizeof e.uid) < sizeof e.uid);
        check_text(e.uid);
    }
    return r;
}

static int try_small(const void *data, size_t size, struct error *err)
{
    struct cri_version version;
    struct cri_status status;
    struct cri_image image;
    char id[CRI_ID_MAX + 1], url[CRI_TEXT_MAX];
    if (cri_decode_url(data, size, url, err) == 0)
        assert(*url && strnlen(url, sizeof url) < sizeof url);
    if (cri_decode_version(data, size, &version, err) == 0) {
        check_text(version.runtime);
        check_text(version.version);
        check_text(version.api);
    }
    if (cri_decode_status(data, size, &status, err) == 0)
        check_text(status.reason);
    if (cri_decode_id(data, size, id, err) == 0)
        assert(cri_id_valid(id));
    if (cri_decode_image(data, size, &image, err) == 0 && image.present) {
        check_text(image.id);
        check_text(image.username);
    }
    return 0;
}

/* The first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const all[])(const void *, size_t, struct error *) = {
        try_small,      try_small, try_sandboxes, try_container,
        try_containers, try_exec,  try_usages,    try_event,
    };
    struct error err = {0};
    if (size < 1)
        return 0;
    int r = all[data[0] % ARRAY_LEN(all)](data + 1, size - 1, &err);
    assert(r >= 0 || r == -EPROTO || r == -EMSGSIZE);
    assert(r >= 0 || (err.code == -r && err.text[0]));
    return 0;
}
