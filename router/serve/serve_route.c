/* Where each call goes: to the home as it came, or to a job of a remote. */
#include <string.h>

#include "router/serve/serve_guess.h"
#include "router/serve/serve_job.h"

static const struct {
    enum method_id id;
    job_f *run;
} jobs[] = {
    {METHOD_RUN_POD_SANDBOX, serve_run_sandbox},
    {METHOD_STOP_POD_SANDBOX, serve_stop_sandbox},
    {METHOD_REMOVE_POD_SANDBOX, serve_remove_sandbox},
    {METHOD_POD_SANDBOX_STATUS, serve_status_by_id},
    {METHOD_CREATE_CONTAINER, serve_create_container},
    {METHOD_START_CONTAINER, serve_start_container},
    {METHOD_STOP_CONTAINER, serve_stop_container},
    {METHOD_REMOVE_CONTAINER, serve_remove_container},
    {METHOD_CONTAINER_STATUS, serve_status_by_id},
    {METHOD_UPDATE_CONTAINER_RESOURCES, serve_update_container},
    {METHOD_REOPEN_CONTAINER_LOG, serve_reopen_log},
    {METHOD_EXEC_SYNC, serve_exec_sync},
    {METHOD_EXEC, serve_stream_url},
    {METHOD_ATTACH, serve_stream_url},
    {METHOD_PORT_FORWARD, serve_stream_url},
    {METHOD_CONTAINER_STATS, serve_stats_by_id},
    {METHOD_POD_SANDBOX_STATS, serve_stats_by_id},
    {METHOD_IMAGE_STATUS, serve_image_status},
    {METHOD_PULL_IMAGE, serve_pull_image},
};

static void refuse(struct job *j)
{
    struct error err = {0};
    (void)job_refuse(j, &err, GRPC_UNIMPLEMENTED, NULL,
                     "%s: not for pods on remotes: it reads or writes files "
                     "of the machine that the kubelet runs on",
                     method_name(j->m));
    job_fail(j, &err);
}

/* The router is told, and no remote has anything of it. */
static void admit(struct job *j)
{
    const struct str nothing = {0};
    job_answer(j, &nothing);
}

static job_f *job_of(const struct method *m)
{
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        if (jobs[i].id == m->id)
            return jobs[i].run;
    return m->way == METHOD_REFUSE ? refuse : admit;
}

static struct proto_bytes first(struct grpcd_call *call)
{
    struct proto_bytes b = {"", 0};
    const char *data = grpcd_call_first(call, &b.size);
    b.data = data ? data : "";
    return b;
}

/* --- whose it is ---------------------------------------------------------------
 */

/* One whose list has not come yet; NULL: all have. */
static struct far *find_silent(struct serve *s)
{
    struct far *far;
    for (size_t i = 0; (far = serve_next(s, &i));)
        if (serve_is_silent(far))
            return far;
    return NULL;
}

/* Nothing was written down when we began, so an id that is not known may be
 * that of something on a remote that has not listed it yet.  NOT_FOUND would be
 * read as its end: from the home that is no answer then. */
static void ask_home(struct job *j)
{
    struct proto_bytes message = job_message(j);
    struct cri_bytes reply, request = {message.data, message.size};
    struct error err = {0};
    struct line line;
    const struct far *silent = find_silent(j->s);
    if (lines_take(j->s->home_lines, INT64_MAX, &line, &err) < 0) {
        j->code = GRPC_UNAVAILABLE;
        job_fail(j, &err);
        return;
    }
    int r = cri_call(line.cri, j->m->path, request,
                     job_left_ms(j, j->s->config.timeout_ms), &reply, &err);
    struct grpc_end e = *cri_end(line.cri);
    struct str out = STR_INIT(SERVE_REPLY_MAX);
    if (r == 0)
        str_add_n(&out, reply.data, reply.size);
    lines_give(j->s->home_lines, &line, r < 0 && e.code < 0);
    r = job_ended(j, r, &e, &err);
    if (r < 0 && j->code == GRPC_NOT_FOUND && silent)
        (void)job_refuse(j, &err, GRPC_UNAVAILABLE, NULL,
                         "%s is not of this machine, and may be of %s, which "
                         "was not heard since biga-cri began without a record",
                         j->req.id, remote_name(silent->remote));
    if (r < 0)
        job_fail(j, &err);
    else
        job_answer(j, &out);
    str_fini(&out);
}

static bool is_routed_image(struct serve *s, const struct request *r)
{
    struct grant grant;
    const struct grant_pod any = {"", "", "", s->config.node};
    if (strcmp(r->handler, s->config.handler) == 0)
        return true;
    return *r->allocation &&
           grant_read(r->allocation, strlen(r->allocation), &any, &grant,
                      NULL) == 0 &&
           grant.remote && serve_far(s, grant.card);
}

/* Takes the request. */
static void to_job(struct serve *s, struct grpcd_call *call,
                   const struct method *m, struct request *req,
                   struct kept *kept, job_f *run)
{
    const struct job j = {
        .s = s,
        .call = call,
        .m = m,
        .req = *req,
        .far = kept ? serve_far(s, kept->remote) : NULL,
        .kept = kept,
    };
    *req = (struct request){0};
    struct job *made = job_create(&j);
    if (run != serve_status_by_id || !serve_status_at_once(made))
        job_begin(made, run);
}

static void take_by_id(struct serve *s, struct grpcd_call *call,
                       const struct method *m, struct request *req)
{
    struct kept *kept = keep_find(s->keep, req->id);
    if (kept)
        to_job(s, call, m, req, kept, job_of(m));
    else if (s->began_empty && find_silent(s))
        to_job(s, call, m, req, NULL, ask_home);
    else
        grpcd_relay_pass(call, s->home);
}

/* On the server's thread: looks, and does not wait. */
static void take(void *ctx, struct grpcd_call *call)
{
    struct serve *s = ctx;
    const struct method *m = method_find(grpcd_call_method(call));
    cleanup_request struct request req = {0};
    /* what cannot be read is not for a remote; the home says what is wrong */
    if (request_read(m, first(call), &req, NULL) < 0) {
        grpcd_relay_pass(call, s->home);
        return;
    }
    bool ours = m->key == METHOD_BY_HANDLER
                    ? strcmp(req.handler, s->config.handler) == 0
                : m->key == METHOD_BY_IMAGE ? is_routed_image(s, &req)
                                            : false;
    if (m->key == METHOD_BY_SANDBOX || m->key == METHOD_BY_CONTAINER)
        take_by_id(s, call, m, &req);
    else if (ours)
        to_job(s, call, m, &req, NULL, job_of(m));
    else
        grpcd_relay_pass(call, s->home);
}

/* --- how it begins --------------------------------------------------------------
 */

void serve_route(void *ctx, const struct grpcd_call *call,
                 struct grpcd_route *ret_route)
{
    struct serve *s = ctx;
    const struct method *m = method_find(grpcd_call_method(call));
    *ret_route =
        (struct grpcd_route){.how = GRPCD_RELAY, .ctx = s, .relay = s->home};
    if (!m || m->way == METHOD_HOME)
        return;
    ret_route->how = GRPCD_HERE;
    if (m->way == METHOD_TELL)
        ret_route->handle = serve_tell_status;
    else if (m->id == METHOD_GET_CONTAINER_EVENTS) {
        ret_route->how = GRPCD_LONG;
        ret_route->handle = serve_events;
    } else if (m->way == METHOD_MERGE && m->stream) {
        ret_route->how = GRPCD_LONG;
        ret_route->handle = serve_list_stream;
    } else {
        ret_route->handle = m->way == METHOD_MERGE ? serve_list : take;
        if (m->id == METHOD_LIST_CONTAINER_STATS ||
            m->id == METHOD_LIST_POD_SANDBOX_STATS)
            ret_route->how = GRPCD_LONG; /* asks remotes */
    }
}
