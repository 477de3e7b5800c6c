/* One call for a remote, from its request to its answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/card/labels.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "router/serve/serve_guess.h"
#include "router/serve/serve_job.h"

/* --- from start to end -----------------------------------------------------
 */

static void run(void *ctx, struct grpcd_call *call)
{
    struct job *j = ctx;
    (void)call; /* the job has it */
    j->run(j);
}

struct job *job_create(const struct job *given)
{
    struct job *j = xmemdup(given, sizeof *given);
    j->began_ms = clock_ms();
    return j;
}

void job_begin(struct job *j, job_f *what)
{
    j->run = what;
    grpcd_call_work(j->call, GRPCD_LONG, run, j);
}

static void end(struct job *j)
{
    request_fini(&j->req);
    kept_unref(j->kept);
    free(j);
}

/* Whose it was, as far as that is known. */
static void audit(struct job *j, int code, const char *text)
{
    const struct request_pod *pod = &j->req.pod;
    char took[24];
    if (!j->m->changes)
        return;
    bool known = !pod->present && j->kept;
    const char *namespace = known ? j->kept->namespace : pod->namespace;
    const char *name = known ? j->kept->name : pod->name;
    const char *id = j->made[0] ? j->made : j->req.id;
    (void)snprintf(took, sizeof took, "%" PRId64, clock_ms() - j->began_ms);
    log_event(code == GRPC_OK ? LOG_INFO : LOG_WARN, "routed", "call",
              method_name(j->m), "remote",
              j->far    ? remote_name(j->far->remote)
              : j->kept ? j->kept->remote
                        : "",
              "namespace", namespace ? namespace : "", "pod", name ? name : "",
              "container",
              j->req.container.present ? j->req.container.name
              : j->kept && j->kept->kind == KEPT_CONTAINER ? j->kept->container
                                                           : "",
              "id", id ? id : "", "code", grpc_code_name(code), "ms", took,
              code == GRPC_OK ? NULL : "error", text, NULL);
}

void job_answer(struct job *j, const struct str *reply)
{
    if (reply->overflow) {
        struct error err;
        j->code = GRPC_RESOURCE_EXHAUSTED;
        (void)error_set(&err, EMSGSIZE, "%s: the answer is over %d bytes",
                        method_name(j->m), SERVE_REPLY_MAX);
        job_fail(j, &err);
        return;
    }
    audit(j, GRPC_OK, "");
    if (j->m->changes)
        (void)failpoint("call-before-answer");
    grpcd_call_answer(j->call, str_text(reply), reply->size);
    end(j);
}

void job_fail(struct job *j, const struct error *err)
{
    int code = j->code ? j->code : GRPC_UNKNOWN;
    audit(j, code, err->text);
    grpcd_call_finish(j->call, code, err->text);
    end(j);
}

int job_refuse(struct job *j, struct error *err, int code, const char *reason,
               const char *fmt, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    j->code = code;
    return error_set(err, EREMOTEIO, "%s%s%s", reason ? reason : "",
                     reason ? ": " : "", text);
}

/* --- the remote --------------------------------------------------------------
 */

struct proto_bytes job_message(struct job *j)
{
    struct proto_bytes b = {"", 0};
    const char *data = grpcd_call_first(j->call, &b.size);
    b.data = data ? data : "";
    b.size = data ? b.size : 0;
    return b;
}

unsigned job_left_ms(struct job *j, int64_t most)
{
    return grpcd_call_left_ms(j->call, most < 0            ? 0
                                       : most > UINT32_MAX ? UINT32_MAX
                                                           : (unsigned)most);
}

/* What a call came to, for the kubelet: the remote's own code and words where
 * it has said any. */
int job_ended(struct job *j, int r, const struct grpc_end *e, struct error *err)
{
    if (r >= 0)
        return r;
    if (e->code > GRPC_OK && e->code <= GRPC_UNAUTHENTICATED) {
        j->code = e->code;
        return e->message[0] ? error_set(err, -r, "%s", e->message) : r;
    }
    j->code = r == -ETIMEDOUT   ? GRPC_DEADLINE_EXCEEDED
              : r == -ECANCELED ? GRPC_CANCELLED
              : r == -EPERM     ? GRPC_PERMISSION_DENIED
              : r == -EMSGSIZE  ? GRPC_RESOURCE_EXHAUSTED
                                : GRPC_UNAVAILABLE;
    return r;
}

/* The kubelet has gone: whoever calls for it may end. */
static bool is_unwanted(void *ctx)
{
    return grpcd_call_cancelled(ctx) != 0;
}

struct remote_ask job_ask(struct job *j, const struct str *request, unsigned ms)
{
    return (struct remote_ask){
        .method = j->m,
        .request = {str_text(request), request->size},
        .ms = ms,
        .unwanted = is_unwanted,
        .ctx = j->call,
    };
}

int job_call(struct job *j, const struct str *request, unsigned ms,
             struct str *ret_reply, struct error *err)
{
    const struct remote_ask ask = job_ask(j, request, ms);
    struct grpc_end e = {.code = -1};
    int r = remote_call(j->far->remote, &ask, ret_reply, &e, err);
    return job_ended(j, r, &e, err);
}

void job_settle(struct job *j, const char *id)
{
    int64_t due = clock_ms() + job_left_ms(j, j->s->config.fresh_ms);
    if (j->made[0])
        serve_made(j->far, j->made);
    remote_touch(j->far->remote, id);
    /* without it the next list has what was changed */
    (void)remote_fresh(j->far->remote, due, NULL);
}

void job_answer_made(struct job *j)
{
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    told_id(&reply, j->made);
    job_settle(j, j->made);
    job_answer(j, &reply);
}

/* --- what it is told ---------------------------------------------------------
 */

struct to_remote_pod job_pod(struct job *j, const char *uid, const char *logs,
                             struct cri_pair labels[JOB_LABELS])
{
    const struct serve_config *c = &j->s->config;
    labels[0] = (struct cri_pair){ACT_LABEL_CLUSTER, c->cluster};
    labels[1] = (struct cri_pair){ACT_LABEL_NODE, c->node};
    labels[2] = (struct cri_pair){ACT_LABEL_UID, uid};
    return (struct to_remote_pod){
        .handler = c->remote_handler,
        .has_network = c->has_network,
        .cgroup_parent = "",
        .log_directory = logs,
        .own_dns = c->own_dns,
        .labels = {labels, 3},
        .kept = "",
        .rights = &c->rights,
        .paths = &j->s->rules,
        .node = remote_name(j->far->remote),
    };
}

struct to_remote_limits job_limits(struct job *j, const char *allocation)
{
    struct to_remote_limits limits = {0};
    struct grant grant;
    const struct grant_pod any = {"", "", "", j->s->config.node};
    if (!*allocation ||
        grant_read(allocation, strlen(allocation), &any, &grant, NULL) < 0)
        return limits;
    limits.memory = (uint64_t)grant.memory_mib << 20;
    if (j->s->config.cores != SERVE_CORES_NONE)
        limits.cpu_milli = grant.cores * 1000;
    return limits;
}
