/* serve_job - one call for a remote, on a worker, but for a status that is
 * known: what it is about, how the remote is called and how it ends.
 * serve_sandbox.c, serve_container.c, serve_exec.c, serve_image.c and
 * serve_status.c have what each call does. */
#ifndef BIGA_ROUTER_SERVE_SERVE_JOB_H
#define BIGA_ROUTER_SERVE_SERVE_JOB_H

#include "router/serve/serve_private.h"
#include "router/wire/request.h"
#include "router/wire/to_remote.h"

struct job {
    struct serve *s;
    struct grpcd_call *call;
    const struct method *m;
    struct request req;
    struct far *far;   /* NULL: that remote is not there any more */
    struct kept *kept; /* what `req.id` names; NULL: it names nothing */
    int64_t began_ms;
    char made[KEPT_ID_MAX + 1]; /* for the audit */
    int code;                   /* of the failure, as gRPC has it */
    void (*run)(struct job *j);
};
typedef void job_f(struct job *j);
/* Takes the call, the request and the reference; it is freed by job_answer()
 * or job_fail(). */
struct job *job_create(const struct job *given);
/* On a worker; `run` ends with one of the two below. */
void job_begin(struct job *j, job_f *run);
void job_answer(struct job *j, const struct str *reply);
void job_fail(struct job *j, const struct error *err);
/* Fill in `err` and what the kubelet is told: a code, and a text that begins
 * with a word of docs/cards.md; NULL: none fits. */
int job_refuse(struct job *j, struct error *err, int code, const char *reason,
               const char *fmt, ...) __attribute__((format(printf, 5, 6)));

struct proto_bytes job_message(struct job *j);
/* When the kubelet stops waiting, and what is left of at most `most` ms. */
unsigned job_left_ms(struct job *j, int64_t most);
/* Calls the remote.  -errno: `j->code` is what the kubelet is to be told. */
int job_call(struct job *j, const struct str *request, unsigned ms,
             struct str *ret_reply, struct error *err);
struct remote_ask job_ask(struct job *j, const struct str *request,
                          unsigned ms);
/* The result of a call by itself: as job_call() says it. */
int job_ended(struct job *j, int r, const struct grpc_end *end,
              struct error *err);
/* The request as it came, and the reply as it is. */
int job_pass(struct job *j, unsigned ms, struct str *ret_reply,
             struct error *err);
bool job_is_orphan(struct job *j);
/* Lists are to have what was changed. */
void job_settle(struct job *j, const char *id);
/* The remote has made j->made: settle it, and answer with its id. */
void job_answer_made(struct job *j);
/* What the remote is told of this pod; `labels` has room for JOB_LABELS. */
enum { JOB_LABELS = 4 };
struct to_remote_pod job_pod(struct job *j, const char *uid, const char *logs,
                             struct cri_pair labels[JOB_LABELS]);
struct to_remote_limits job_limits(struct job *j, const char *allocation);

/* --- what calls do --------------------------------------------------------- */

job_f serve_run_sandbox, serve_stop_sandbox, serve_remove_sandbox;
job_f serve_create_container, serve_start_container, serve_stop_container;
job_f serve_remove_container, serve_update_container, serve_reopen_log;
job_f serve_exec_sync, serve_stream_url;
job_f serve_image_status, serve_pull_image;
job_f serve_status_by_id, serve_stats_by_id;
/* On the server's thread: the status is told when it is known, which needs no
 * call and no wait; false: it is not, and nothing was done. */
bool serve_status_at_once(struct job *j);

/* That remote is in this node still. */
int serve_need_far(struct job *j, struct error *err);
/* The field of the request that has seconds, in ms with a margin; `otherwise`
 * when it has none. */
int64_t serve_timeout_ms(struct job *j, uint32_t number, int64_t otherwise);
/* That container has ended: until the kubelet is told so. */
void serve_await_end(struct job *j, const char *id);
/* Nothing of the containers of a sandbox is left: logs, streams, exits. */
void serve_forget_containers(struct serve *s, const char *sandbox_id);
/* What the pod asks of its card (model/pod/prepare.h) is done. */
int serve_prepare_card(struct job *j, struct error *err);

#endif
