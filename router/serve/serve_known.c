/* What the replies of a remote are read with: what was written down of it. */
#include <string.h>

#include "lib/io/clock.h"
#include "router/serve/serve_private.h"

/* A card may take it for 1970: times are told by our own clock.  Of two that
 * were made within one second the later attempt has to be the newer one. */
static int64_t made_ns(const struct kept *k)
{
    return k->made_s * INT64_C(1000000000) + k->attempt % 1000000000;
}

/* NULL: there is no such thing on this remote. */
static const struct kept *find(const struct knowing *k, const char *id,
                               enum kept_kind kind)
{
    const struct kept *found = keep_view_find(k->view, id);
    return found && found->kind == kind &&
                   strcmp(found->remote, remote_name(k->far->remote)) == 0
               ? found
               : NULL;
}

static const struct known_sandbox *find_sandbox(void *ctx, const char *id)
{
    struct knowing *k = ctx;
    const struct kept *found = find(k, id, KEPT_SANDBOX);
    if (!found)
        return NULL;
    struct known_sandbox *s = arena_alloc(&k->arena, sizeof *s);
    *s = (struct known_sandbox){
        .id = found->id,
        .namespace = found->namespace,
        .name = found->name,
        .uid = found->uid,
        .attempt = found->attempt,
        .handler = found->handler,
        .host_network = found->host_network,
        .address = k->far->s->config.has_network && !found->host_network
                       ? ""
                       : k->far->address,
        .made = found->mounts,
        .created_ns = made_ns(found),
    };
    return s;
}

static const struct known_container *find_container(void *ctx, const char *id)
{
    struct knowing *k = ctx;
    const struct kept *found = find(k, id, KEPT_CONTAINER);
    const struct known_sandbox *s = found ? find_sandbox(k, found->sandbox_id)
                                          : NULL;
    if (!s)
        return NULL;
    struct known_container *c = arena_alloc(&k->arena, sizeof *c);
    *c = (struct known_container){
        .sandbox = s,
        .id = found->id,
        .name = found->container,
        .attempt = found->attempt,
        .user_image = found->image,
        .log_path = found->log_path,
        .made = found->mounts,
        .created_ns = made_ns(found),
        .now_ns = k->now_ns,
    };
    return c;
}

void knowing_init(struct knowing *k, struct far *far)
{
    *k = (struct knowing){
        .far = far,
        .view = keep_view(far->s->keep),
        .known = {find_sandbox, find_container, k},
        .now_ns = (clock_wall_s() + 1) * INT64_C(1000000000),
    };
}

void knowing_fini(struct knowing *k)
{
    keep_view_unref(k->view);
    arena_fini(&k->arena);
}
