/* Images of pods on remotes: there, for the remote's architecture. */
#include <errno.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/serve/serve_job.h"

/* --- whose image it is -------------------------------------------------------
 */

static int find_far(struct job *j, struct error *err)
{
    const struct grant_pod any = {"", "", "", j->s->config.node};
    const char *text = j->req.allocation;
    struct grant grant;
    j->far = serve_far(j->s, ACT_HOST);
    if (!j->far && *text &&
        grant_read(text, strlen(text), &any, &grant, NULL) == 0 && grant.remote)
        j->far = serve_far(j->s, grant.card);
    if (!j->far && !*text)
        j->far = serve_far(j->s, j->s->config.default_remote);
    return j->far ? 0
                  : job_refuse(j, err, GRPC_FAILED_PRECONDITION, "NoAllocation",
                               "no remote can be told for the "
                               "image %.200s",
                               j->req.image);
}

/* --- its architecture ----------------------------------------------------------
 */

/* Pods of another architecture would begin, and end with "exec format
 * error". */
static int judge_arch(struct job *j, const struct cri_image *found,
                      struct error *err)
{
    const struct act_place *p = remote_place(j->far->remote);
    if (!found->arch[0] || !p->arch[0] || strcmp(found->arch, p->arch) == 0)
        return 0;
    return job_refuse(j, err, GRPC_FAILED_PRECONDITION, "ImageArch",
                      "image %.200s is for %s, and %s is %s", j->req.image,
                      found->arch, p->name, p->arch);
}

/* One of several architectures that has none for the card: so containerd says
 * it. */
static int judge_pull(struct job *j, int r, struct error *err)
{
    const struct act_place *p = remote_place(j->far->remote);
    if (r == 0 || !strstr(err->text, "no match for platform"))
        return r;
    return job_refuse(j, err, GRPC_FAILED_PRECONDITION, "ImageArch",
                      "image %.200s has nothing for %s, which %s is",
                      j->req.image, p->arch[0] ? p->arch : "the architecture",
                      p->name);
}

static int check_arch(struct job *j, struct error *err)
{
    struct cri_image found = {0};
    struct line line;
    unsigned ms = job_left_ms(j, j->s->config.status_ms);
    int r = lines_take(j->far->lines, INT64_MAX, &line, err);
    if (r < 0)
        return r;
    r = cri_image_status(line.cri, j->req.image, ms, &found, err);
    struct grpc_end e = *cri_end(line.cri);
    lines_give(j->far->lines, &line, r < 0 && e.code < 0);
    r = job_ended(j, r, &e, err);
    return r == 0 && found.present ? judge_arch(j, &found, err) : r;
}

/* --- calls ---------------------------------------------------------------------
 */

static int ask(struct job *j, int64_t ms, struct str *reply, struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_SIZE_MAX);
    cleanup_str struct str got = STR_INIT(SERVE_REPLY_MAX);
    struct cri_pair labels[JOB_LABELS];
    cleanup_free char *logs =
        serve_log_dir(j->s, j->req.pod.uid ? j->req.pod.uid : "");
    request.soft = got.soft = true;
    const struct to_remote_pod pod =
        job_pod(j, j->req.pod.uid ? j->req.pod.uid : "", logs, labels);
    int r = to_remote_image(j->m, job_message(j), &pod, &request, err);
    if (r == 0)
        r = job_call(j, &request, job_left_ms(j, ms), &got, err);
    if (r == 0)
        r = from_remote_checked(
            j->m, (struct proto_bytes){str_text(&got), got.size}, reply, err);
    return r;
}

/* A pull that finds the disk full has images collected, and is tried anew. */
static int ask_for(struct job *j, int64_t ms, struct str *reply,
                   struct error *err)
{
    int r = ask(j, ms, reply, err);
    if (r == 0 || j->m->id != METHOD_PULL_IMAGE ||
        (j->code != GRPC_RESOURCE_EXHAUSTED &&
         !strstr(err->text, "no space left")) ||
        collector_make_room(j->s->collector, j->far,
                            clock_ms() + job_left_ms(j, ms)) == 0)
        return r;
    str_reset(reply);
    j->code = GRPC_OK;
    return ask(j, ms, reply, err);
}

static void image(struct job *j, int64_t ms)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    int r = request_read_more(j->m, job_message(j), &j->req, &err);
    reply.soft = true;
    if (r < 0)
        j->code = GRPC_INVALID_ARGUMENT;
    else
        r = find_far(j, &err);
    if (r == 0)
        r = judge_pull(j, ask_for(j, ms, &reply, &err), &err);
    if (r == 0)
        r = check_arch(j, &err);
    if (r < 0)
        job_fail(j, &err);
    else
        job_answer(j, &reply);
}

void serve_image_status(struct job *j)
{
    image(j, j->s->config.timeout_ms);
}

void serve_pull_image(struct job *j)
{
    image(j, j->s->config.pull_timeout_ms);
}
