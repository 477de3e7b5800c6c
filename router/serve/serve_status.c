/* Statuses and stats of one sandbox or container, and the home's Status. */
#include <errno.h>
#include <string.h>

#include "router/serve/serve_guess.h"
#include "router/serve/serve_job.h"
#include "router/wire/pod_stats.h"

/* bytes of a status: a longer one would keep the server's other calls waiting */
enum { AT_ONCE_MAX = 64 << 10 };

/* --- Status --------------------------------------------------------------------
 */

static int tell(void *ctx, const char *message, size_t size,
                struct str *ret_message, struct error *err)
{
    const struct serve *s = ctx;
    return told_status((struct proto_bytes){message, size}, s->config.handler,
                       ret_message, err);
}

void serve_tell_status(void *ctx, struct grpcd_call *call)
{
    struct serve *s = ctx;
    const struct grpcd_edit edit = {.reply = tell, .ctx = s};
    grpcd_relay_edit(call, s->home, &edit);
}

/* --- of one ----------------------------------------------------------------------
 */

/* The reply as it came, when it is known. */
static bool known_status(const struct job *j, struct str *ret_reply)
{
    cleanup_with(remote_view) struct remote_view *v =
        remote_view(j->far->remote);
    struct proto_bytes had = remote_view_status(v, j->req.id);
    bool guess = remote_view_time(v) == 0 && j->kept;
    if (guess && (!had.size || j->kept->ended.size))
        serve_guess_status(j->kept, ret_reply);
    else if (had.size)
        str_add_n(ret_reply, had.data, had.size);
    return ret_reply->size > 0;
}

/* The same, or what the remote says now. */
static int raw_status(struct job *j, struct str *ret_reply, struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_TEXT_MAX);
    if (known_status(j, ret_reply))
        return 0;
    proto_add_text(&request, CRI_ContainerStatusRequest_container_id,
                   j->req.id);
    return job_call(j, &request, job_left_ms(j, j->s->config.status_ms),
                    ret_reply, err);
}

static int status_told(struct job *j, struct proto_bytes raw, struct str *reply,
                       struct error *err)
{
    struct knowing k;
    knowing_init(&k, j->far);
    const struct known_sandbox *s = NULL;
    const struct known_container *c = NULL;
    int r;
    if (j->m->id == METHOD_POD_SANDBOX_STATUS)
        s = k.known.sandbox(k.known.ctx, j->req.id);
    else
        c = k.known.container(k.known.ctx, j->req.id);
    if (s)
        r = from_remote_sandbox_status(raw, s, &k.known, reply, err);
    else if (c)
        r = from_remote_container_status(raw, c, reply, err);
    else
        r = job_refuse(j, err, GRPC_NOT_FOUND, NULL, "%s is not there any more",
                       j->req.id);
    knowing_fini(&k);
    return r;
}

static void answer_status(struct job *j, struct proto_bytes raw)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    reply.soft = true;
    j->code = GRPC_INTERNAL;
    int r = status_told(j, raw, &reply, &err);
    if (r == 0 && j->m->id == METHOD_CONTAINER_STATUS)
        r = exits_show(j->s->exits, j->far, j->req.id, &reply);
    if (r < 0)
        job_fail(j, &err);
    else
        job_answer(j, &reply);
}

void serve_status_by_id(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str raw = STR_INIT(SERVE_REPLY_MAX);
    raw.soft = true;
    int r = serve_need_far(j, &err);
    if (r == 0)
        r = raw_status(j, &raw, &err);
    if (r < 0)
        job_fail(j, &err);
    else
        answer_status(j, (struct proto_bytes){str_text(&raw), raw.size});
}

bool serve_status_at_once(struct job *j)
{
    cleanup_str struct str raw = STR_INIT(AT_ONCE_MAX);
    raw.soft = true;
    if (!j->far || !known_status(j, &raw) || raw.overflow)
        return false;
    answer_status(j, (struct proto_bytes){str_text(&raw), raw.size});
    return true;
}

/* --- stats -----------------------------------------------------------------------
 */

/* What a remote says of a container, or of all of a sandbox. */
static int raw_stats(struct job *j, struct str *ret_raw, struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_SIZE_MAX);
    struct proto_bytes message = job_message(j);
    struct remote_ask ask;
    struct grpc_end e = {.code = -1};
    if (j->m->id == METHOD_CONTAINER_STATS)
        str_add_n(&request, message.data, message.size);
    ask = job_ask(j, &request, job_left_ms(j, j->s->config.status_ms));
    if (j->m->id == METHOD_POD_SANDBOX_STATS)
        ask.method = method_get(METHOD_LIST_CONTAINER_STATS);
    int r = remote_call(j->far->remote, &ask, ret_raw, &e, err);
    return job_ended(j, r, &e, err);
}

static int stats(struct job *j, struct str *reply, struct error *err)
{
    cleanup_str struct str raw = STR_INIT(SERVE_REPLY_MAX);
    cleanup_str struct str pod = STR_INIT(SERVE_REPLY_MAX);
    struct knowing k;
    raw.soft = pod.soft = true;
    int r = serve_need_far(j, err);
    if (r == 0)
        r = raw_stats(j, &raw, err);
    if (r < 0)
        return r;
    struct proto_bytes had = {str_text(&raw), raw.size};
    knowing_init(&k, j->far);
    if (j->m->id == METHOD_POD_SANDBOX_STATS) {
        r = pod_stats_write(had, &k.known, j->req.id, &pod, err);
        had = (struct proto_bytes){str_text(&pod), pod.size};
    }
    if (r == 0)
        r = from_remote_stats(j->m, had, &k.known, reply, err);
    knowing_fini(&k);
    return r;
}

void serve_stats_by_id(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    reply.soft = true;
    if (stats(j, &reply, &err) < 0)
        job_fail(j, &err);
    else
        job_answer(j, &reply);
}
