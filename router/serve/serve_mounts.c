/* The mounts of a container as they were written down, judged again. */
#include <string.h>

#include "router/serve/serve_private.h"
#include "router/wire/edit.h"

static char *text_of(struct serve_mounts *m, struct proto_bytes b)
{
    return arena_strndup(&m->arena, b.size ? b.data : "", b.size);
}

struct reading {
    struct serve_mounts *m;
    const char *uid;
    const struct mount_rules *rules;
};

static void add(void *ctx, struct proto_bytes message)
{
    struct reading *r = ctx;
    struct serve_mounts *m = r->m;
    struct mount one = {
        .container_path =
            text_of(m, edit_bytes(message, CRI_Mount_container_path)),
        .host_path = text_of(m, edit_bytes(message, CRI_Mount_host_path)),
        .read_only = edit_number(message, CRI_Mount_readonly) != 0,
    };
    /* one that was allowed once may be allowed no more */
    if (m->n < SERVE_MOUNTS_MAX &&
        mount_judge(r->rules, r->uid, &one, NULL) == 0)
        m->list[m->n++] = one;
}

void serve_mounts_read(const struct kept *k, const struct mount_rules *rules,
                       struct serve_mounts *ret_mounts)
{
    struct reading r = {ret_mounts, k->uid, rules};
    *ret_mounts = (struct serve_mounts){0};
    ret_mounts->list = arena_alloc(&ret_mounts->arena,
                                   SERVE_MOUNTS_MAX * sizeof(struct mount));
    from_remote_made_mounts(k->mounts, add, &r);
}

void serve_mounts_fini(struct serve_mounts *m)
{
    arena_fini(&m->arena);
}
