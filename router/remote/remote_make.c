/* Calls that make something on a remote, never twice. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "router/keep/making.h"
#include "router/remote/remote_private.h"
#include "router/wire/from_remote.h"

struct making_here {
    struct remote *r;
    const struct remote_ask *ask;
    struct grpc_end *ret_end;
};

/* What a runtime says before it begins; with anything else it may have made it
 * all the same, or may not have been able to undo it. */
static bool is_unmade(const struct grpc_end *end)
{
    enum { UNAUTHENTICATED = 16 };
    switch (end->code) {
    case GRPC_INVALID_ARGUMENT:
    case GRPC_NOT_FOUND:
    case GRPC_PERMISSION_DENIED:
    case GRPC_FAILED_PRECONDITION:
    case GRPC_UNIMPLEMENTED:
    case UNAUTHENTICATED:
        return true;
    default:
        return end->unsent;
    }
}

static bool is_reserved(const struct grpc_end *end)
{
    return end->code == GRPC_ALREADY_EXISTS ||
           strstr(end->message, "is reserved for");
}

static int send(void *ctx, char ret_id[KEPT_ID_MAX + 1], bool *ret_unmade,
                struct error *err)
{
    const struct making_here *m = ctx;
    cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
    char id[FROM_REMOTE_ID_SIZE + 1] = "";
    reply.soft = true;
    int e = remote_call(m->r, m->ask, &reply, m->ret_end, err);
    if (e == 0) {
        e = from_remote_id((struct proto_bytes){str_text(&reply), reply.size},
                           id, err);
        (void)snprintf(ret_id, KEPT_ID_MAX + 1, "%s", id);
        return e;
    }
    if (e == -EREMOTEIO && is_reserved(m->ret_end)) {
        struct error said = *err;
        return error_set(err, EEXIST, "%s", said.text);
    }
    *ret_unmade = is_unmade(m->ret_end);
    return e == -EEXIST ? -EREMOTEIO : e;
}

static unsigned short_ms(const struct making_here *m)
{
    return m->ask->ms < REMOTE_ANSWER_MS ? m->ask->ms : REMOTE_ANSWER_MS;
}

static int look(void *ctx, const char *uid, struct seen *ret_seen,
                struct error *err)
{
    const struct making_here *m = ctx;
    return remote_look(m->r, uid, short_ms(m), ret_seen, err);
}

static int remove_it(void *ctx, const char *id, bool sandbox, struct error *err)
{
    const struct making_here *m = ctx;
    unsigned ms = m->ask->ms;
    int e = sandbox ? remote_call_id(m->r, METHOD_STOP_POD_SANDBOX, id, ms, err)
                    : 0;
    return e == 0 ? remote_call_id(m->r,
                                   sandbox ? METHOD_REMOVE_POD_SANDBOX
                                           : METHOD_REMOVE_CONTAINER,
                                   id, ms, err)
                  : e;
}

int remote_judge_id(struct remote *r, const char *id, struct error *err)
{
    const struct remote_config *c = &r->config;
    int e = c->home_has ? c->home_has(c->ctx, id, err) : 0;
    return e <= 0 ? e
                  : error_set(err, EEXIST,
                              "%s: says it has %.12s, which is this machine's",
                              c->place.name, id);
}

static int judge(void *ctx, const char *id, struct error *err)
{
    const struct making_here *m = ctx;
    return remote_judge_id(m->r, id, err);
}

int remote_make(struct remote *r, const struct kept *what,
                const struct remote_ask *ask, char ret_id[KEPT_ID_MAX + 1],
                struct grpc_end *ret_end, struct error *err)
{
    struct making_here here = {r, ask, ret_end};
    const struct making_calls calls = {.send = send,
                                       .look = look,
                                       .judge = judge,
                                       .remove = remove_it,
                                       .ctx = &here};
    *ret_end = (struct grpc_end){.code = -1};
    int e = making_run(r->config.keep, what, &calls, ret_id, err);
    if (e == 0)
        remote_touch(r, ret_id);
    return e;
}
