/* What the home is asked by the router itself. */
#include <errno.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/serve/serve_private.h"
#include "router/wire/edit.h"

/* 0, with whether that method's reply is about `id`. */
static int ask(struct serve *s, enum method_id method, const char *id,
               bool *ret_has, struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_TEXT_MAX);
    struct cri_bytes reply = {0};
    struct line line;
    int64_t ms = s->config.status_ms;
    int r = lines_take(s->home_lines, clock_ms() + ms, &line, err);
    if (r < 0)
        return r;
    proto_add_text(&request, CRI_ContainerStatusRequest_container_id, id);
    r = cri_call(line.cri, method_get(method)->path,
                 (struct cri_bytes){str_text(&request), request.size},
                 (unsigned)ms, &reply, err);
    int code = cri_end(line.cri)->code;
    *ret_has =
        r == 0 &&
        proto_equals(
            edit_bytes(
                edit_bytes((struct proto_bytes){reply.data, reply.size}, 1), 1),
            id);
    lines_give(s->home_lines, &line, r < 0 && code < 0);
    return r < 0 && code == GRPC_NOT_FOUND ? 0 : r;
}

/* Both kinds: a call is routed by its id alone. */
int serve_home_has(void *ctx, const char *id, struct error *err)
{
    static const enum method_id methods[] = {METHOD_POD_SANDBOX_STATUS,
                                             METHOD_CONTAINER_STATUS};
    struct far *far = ctx;
    bool has = false;
    for (size_t i = 0; i < ARRAY_LEN(methods) && !has; i++) {
        int r = ask(far->s, methods[i], id, &has, err);
        if (r < 0)
            return error_wrap(err, "whether %.12s is this machine's", id);
    }
    return has;
}
