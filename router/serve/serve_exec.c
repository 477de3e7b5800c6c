/* Commands and streams in containers of remotes. */
#include <errno.h>
#include <string.h>

#include "lib/stream/stream_plan.h"
#include "router/serve/serve_job.h"

/* A command's child may hold its output for ever, and the runtime waits for
 * that; nobody waits for longer than the command was given. */
void serve_exec_sync(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    int64_t ms = serve_timeout_ms(j, CRI_ExecSyncRequest_timeout,
                                  SERVE_EXEC_MS);
    int r = serve_need_far(j, &err);
    reply.soft = true;
    if (r == 0)
        r = job_pass(j, job_left_ms(j, ms), &reply, &err);
    if (r < 0)
        job_fail(j, &err);
    else
        job_answer(j, &reply);
}

/* Where the remote's streaming server is to be called, as its endpoint. */
static struct stream_plan_ask open_of(const struct job *j, const char *url)
{
    const struct act_place *p = remote_place(j->far->remote);
    return (struct stream_plan_ask){
        .remote = remote_name(j->far->remote),
        .container = j->req.id,
        .url = url,
        .host = j->far->host,
        .ca = p->ca[0] ? p->ca : NULL,
        .cert = p->cert[0] ? p->cert : NULL,
        .key = p->key[0] ? p->key : NULL,
        .plaintext = p->plaintext || strncmp(p->endpoint, "unix:", 5) == 0,
    };
}

static int open_stream(struct job *j, struct str *reply, struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_SIZE_MAX);
    cleanup_str struct str got = STR_INIT(SERVE_REPLY_MAX);
    struct proto_bytes message = job_message(j);
    char url[FROM_REMOTE_URL_MAX + 1], own[STREAM_OWN_URL_MAX];
    request.soft = got.soft = true;
    str_add_n(&request, message.data, message.size);
    int r = serve_need_far(j, err);
    if (r == 0)
        r = job_call(j, &request, job_left_ms(j, j->s->config.timeout_ms), &got,
                     err);
    if (r < 0)
        return r;
    j->code = GRPC_INTERNAL;
    r = from_remote_url((struct proto_bytes){str_text(&got), got.size}, url,
                        err);
    const struct stream_plan_ask what = open_of(j, url);
    if (r == 0)
        r = stream_relay_open(j->s->streams, &what, own, err);
    if (r == 0)
        told_url(reply, own);
    return r;
}

void serve_stream_url(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    if (open_stream(j, &reply, &err) < 0)
        job_fail(j, &err);
    else
        job_answer(j, &reply);
}
