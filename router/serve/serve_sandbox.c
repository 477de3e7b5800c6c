/* Sandboxes on remotes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/failpoint.h"
#include "router/keep/kept_hash.h"
#include "router/serve/serve_job.h"

/* --- which remote ----------------------------------------------------------
 */

static int no_remote(struct job *j, struct error *err)
{
    const struct request_pod *p = &j->req.pod;
    return job_refuse(j, err, GRPC_FAILED_PRECONDITION, "NoAllocation",
                      "pod %s/%s has RuntimeClass handler %s and "
                      "no annotation biga.dev/allocation: it was not placed by "
                      "Biga; see its labels, and whether its scheduler asks "
                      "the extender",
                      p->namespace, p->name, j->s->config.handler);
}

static int find_card(struct job *j, struct error *err)
{
    const struct request_pod *p = &j->req.pod;
    const struct grant_pod pod = {p->namespace, p->name, p->uid,
                                  j->s->config.node};
    struct grant grant;
    if (grant_read(p->allocation, strlen(p->allocation), &pod, &grant, err) <
        0) {
        struct error why = *err;
        return job_refuse(j, err, GRPC_FAILED_PRECONDITION, "AllocationRefused",
                          "%s", why.text);
    }
    if (!grant.remote)
        return job_refuse(j, err, GRPC_FAILED_PRECONDITION, "AllocationRefused",
                          "pod %s/%s has RuntimeClass "
                          "handler %s, and its allocation is that of a host "
                          "pod: give it the label biga.dev/role=xpu",
                          p->namespace, p->name, j->s->config.handler);
    j->far = serve_far(j->s, grant.card);
    return j->far ? 0
                  : job_refuse(j, err, GRPC_UNAVAILABLE, "NoSuchCard",
                               "%s, which pod %s/%s was given, is "
                               "not in the card file, or has no endpoint there",
                               *grant.card ? grant.card : "no card",
                               p->namespace, p->name);
}

/* Where there is one other machine, all go there. */
static int choose(struct job *j, struct error *err)
{
    struct far *host = serve_far(j->s, ACT_HOST);
    if (host)
        j->far = host;
    else if (*j->req.pod.allocation)
        return find_card(j, err);
    else if (*j->s->config.default_remote)
        j->far = serve_far(j->s, j->s->config.default_remote);
    return j->far ? 0 : no_remote(j, err);
}

/* --- RunPodSandbox ------------------------------------------------------------
 */

static int judge_volumes(struct job *j, struct error *err)
{
    struct error why = {0};
    int r = volume_sync_check(j->s->volumes, j->req.pod.uid, &why);
    return r < 0 ? job_refuse(j, err, GRPC_INVALID_ARGUMENT, "SpecRefused",
                              "%s", why.text)
                 : 0;
}

static struct kept kept_of(struct job *j, struct proto_bytes made,
                           uint64_t hash)
{
    const struct request_pod *p = &j->req.pod;
    return (struct kept){
        .kind = KEPT_SANDBOX,
        .remote = remote_name(j->far->remote),
        .namespace = p->namespace,
        .name = p->name,
        .uid = p->uid,
        .attempt = p->attempt,
        .hash = hash,
        .made_s = clock_wall_s(),
        .handler = j->s->config.handler,
        .log_directory = p->log_directory,
        .allocation = p->allocation,
        .host_network = p->host_network,
        .container = "",
        .image = "",
        .log_path = "",
        .mounts = made, /* its labels and annotations */
    };
}

static int refused(struct job *j, int r, struct error *err)
{
    struct error why = *err;
    if (r == -EPERM)
        return job_refuse(j, err, GRPC_PERMISSION_DENIED, "NotAllowed", "%s",
                          why.text);
    if (r == -EINVAL)
        return job_refuse(j, err, GRPC_INVALID_ARGUMENT, "SpecRefused", "%s",
                          why.text);
    return r;
}

static int make(struct job *j, struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_SIZE_MAX);
    cleanup_str struct str seal = STR_INIT(KEPT_SEALED_MAX + 1);
    cleanup_str struct str made = STR_INIT(KEPT_MOUNTS_MAX);
    cleanup_free char *logs = serve_log_dir(j->s, j->req.pod.uid);
    struct cri_pair labels[JOB_LABELS];
    struct grpc_end e = {.code = -1};
    uint64_t hash;
    request.soft = made.soft = true;
    int r = kept_hash(j->m, job_message(j), &hash, err);
    if (r == 0)
        r = from_remote_made(j->m, job_message(j), &made, err);
    if (r < 0)
        return r;
    const struct kept what =
        kept_of(j, (struct proto_bytes){str_text(&made), made.size}, hash);
    keep_seal(j->s->keep, &what, &seal);
    struct to_remote_pod pod = job_pod(j, j->req.pod.uid, logs, labels);
    pod.kept = str_text(&seal);
    r = to_remote_sandbox(job_message(j), &pod, &request, err);
    if (r < 0)
        return refused(j, r, err);
    const struct remote_ask ask =
        job_ask(j, &request, job_left_ms(j, j->s->config.timeout_ms));
    r = remote_make(j->far->remote, &what, &ask, j->made, &e, err);
    return job_ended(j, r, &e, err);
}

static int run_sandbox(struct job *j, struct error *err)
{
    int r = request_read_more(j->m, job_message(j), &j->req, err);
    if (r < 0) {
        j->code = GRPC_INVALID_ARGUMENT;
        return r;
    }
    r = choose(j, err);
    if (r == 0)
        r = judge_volumes(j, err);
    if (r == 0)
        r = serve_prepare_card(j, err);
    if (r == 0)
        r = make(j, err);
    return r;
}

void serve_run_sandbox(struct job *j)
{
    struct error err = {0};
    if (run_sandbox(j, &err) < 0)
        job_fail(j, &err);
    else
        job_answer_made(j);
}

/* --- its end ------------------------------------------------------------------
 */

/* Its remote is in this node no more: there is nothing to be ended, as far as
 * anybody here can say. */
bool job_is_orphan(struct job *j)
{
    return !j->far;
}

static void pass_failpoint(const char *when, const struct method *m)
{
#ifdef FAILPOINTS
    char name[64];
    (void)snprintf(name, sizeof name, "call-%s-%s", when, method_name(m));
    (void)failpoint(name);
#else
    (void)when;
    (void)m;
#endif
}

int job_pass(struct job *j, unsigned ms, struct str *ret_reply,
             struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_SIZE_MAX);
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    struct proto_bytes message = job_message(j);
    request.soft = reply.soft = true;
    str_add_n(&request, message.data, message.size);
    pass_failpoint("before", j->m);
    int r = job_call(j, &request, ms, &reply, err);
    if (r < 0)
        return r;
    pass_failpoint("after", j->m);
    r = from_remote_checked(j->m,
                            (struct proto_bytes){str_text(&reply), reply.size},
                            ret_reply, err);
    if (r < 0)
        j->code = GRPC_INTERNAL;
    return r;
}

/* With a sandbox its containers end. */
static void await_containers(struct job *j)
{
    cleanup_with(keep_view) struct keep_view *v = keep_view(j->s->keep);
    for (size_t i = 0; i < keep_view_count(v); i++) {
        const struct kept *k = keep_view_at(v, i);
        if (k->kind == KEPT_CONTAINER && k->state == KEPT_MADE &&
            strcmp(k->sandbox_id, j->req.id) == 0)
            serve_await_end(j, k->id);
    }
}

void serve_stop_sandbox(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    int r = job_is_orphan(j)
                ? 0
                : job_pass(j, job_left_ms(j, j->s->config.timeout_ms), &reply,
                           &err);
    if (r < 0 && j->code != GRPC_NOT_FOUND) {
        job_fail(j, &err);
        return;
    }
    stream_relay_cut_container(j->s->streams, j->req.id, "the pod was ended");
    if (j->far) {
        job_settle(j, j->req.id);
        await_containers(j);
    }
    job_answer(j, &reply);
}

/* Is another sandbox of that pod on the remote? */
static bool has_more(struct job *j)
{
    cleanup_with(keep_view) struct keep_view *v = keep_view(j->s->keep);
    for (size_t i = 0; i < keep_view_count(v); i++) {
        const struct kept *k = keep_view_at(v, i);
        if (k->kind == KEPT_SANDBOX && strcmp(k->uid, j->kept->uid) == 0)
            return true;
    }
    return false;
}

/* Nothing of it is there any more. */
static int forget(struct job *j, struct error *err)
{
    const struct volume_pod pod = {j->kept->remote, j->kept->uid};
    serve_forget_containers(j->s, j->req.id);
    int r = keep_forget(j->s->keep, j->req.id, err);
    if (r == 0 && j->far && !has_more(j))
        volume_sync_forget(j->s->volumes, &pod);
    return r;
}

void serve_remove_sandbox(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    int r = job_is_orphan(j)
                ? 0
                : job_pass(j, job_left_ms(j, j->s->config.timeout_ms), &reply,
                           &err);
    if (r < 0 && j->code == GRPC_NOT_FOUND)
        r = 0; /* that it is not there is what was wanted */
    if (r == 0)
        r = forget(j, &err);
    if (r < 0) {
        job_fail(j, &err);
        return;
    }
    if (j->far)
        job_settle(j, j->req.id);
    job_answer(j, &reply);
}
