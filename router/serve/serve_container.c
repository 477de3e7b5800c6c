/* Containers on remotes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/keep/kept_hash.h"
#include "router/serve/serve_job.h"

/* --- CreateContainer ---------------------------------------------------------
 */

/* What becomes the remote's request besides the kubelet's. */
struct making {
    char **paths; /* of the mounts, there */
    size_t n_paths;
    char *logs, *log_name, *log_path;
    char key[LOG_KEY_MAX + 1];
};

static void making_fini(struct making *m)
{
    for (size_t i = 0; m->paths && i < m->n_paths; i++)
        free(m->paths[i]);
    free(m->paths);
    free(m->logs);
    free(m->log_name);
    free(m->log_path);
}
#define cleanup_making __attribute__((__cleanup__(making_fini)))

static int spec_refused(struct job *j, int r, struct error *err)
{
    struct error why = *err;
    if (r != -EPERM && r != -EINVAL && r != -EFBIG)
        return r;
    return job_refuse(
        j, err, r == -EPERM ? GRPC_PERMISSION_DENIED : GRPC_INVALID_ARGUMENT,
        "SpecRefused", "%s", why.text);
}

static int deliver(struct job *j, struct making *m, struct error *err)
{
    const struct volume_pod pod = {j->kept->remote, j->kept->uid};
    struct request_container *k = &j->req.container;
    int r = 0;
    for (size_t i = 0; i < k->n_mounts && r == 0; i++)
        r = mount_judge(&j->s->rules, pod.uid, &k->mounts[i], err);
    if (r == 0)
        r = volume_sync_prepare(j->s->volumes, &pod, k->mounts, k->n_mounts,
                                &m->paths, err);
    m->n_paths = r == 0 ? k->n_mounts : 0;
    if (r < 0)
        j->code = GRPC_UNAVAILABLE;
    return spec_refused(j, r, err);
}

/* The log has a name of its own on the remote, as each attempt has. */
static int open_log(struct job *j, struct making *m, struct error *err)
{
    const struct request_container *k = &j->req.container;
    int64_t due = clock_ms() + job_left_ms(j, j->s->config.timeout_ms);
    m->logs = serve_log_dir(j->s, j->kept->uid);
    if (!*k->log_path || !*j->kept->log_directory || !j->s->logs)
        return 0;
    m->log_name = xasprintf("%s-%" PRIu32 ".log", k->name, k->attempt);
    m->log_path = xasprintf("%s/%s", j->kept->log_directory, k->log_path);
    cleanup_free char *there = xasprintf("%s/%s", m->logs, m->log_name);
    serve_log_key(j->kept->uid, k->name, k->attempt, m->key);
    const struct log_target target = {.key = m->key,
                                      .remote = j->kept->remote,
                                      .remote_path = there,
                                      .path = m->log_path};
    j->code = GRPC_UNAVAILABLE;
    int r = serve_files_log_dir(j->far, m->logs, due, err);
    return r < 0 ? r : log_copier_add(j->s->logs, &target, err);
}

static struct kept kept_of(struct job *j, const struct making *m,
                           struct proto_bytes made, uint64_t hash)
{
    const struct request_container *k = &j->req.container;
    struct kept what = {
        .kind = KEPT_CONTAINER,
        .remote = j->kept->remote,
        .namespace = j->kept->namespace,
        .name = j->kept->name,
        .uid = j->kept->uid,
        .attempt = k->attempt,
        .hash = hash,
        .made_s = clock_wall_s(),
        .handler = "",
        .log_directory = "",
        .allocation = "",
        .container = k->name,
        .image = *k->user_image ? k->user_image : k->image,
        .log_path = m->log_path ? m->log_path : "",
        .mounts = made,
    };
    memcpy(what.sandbox_id, j->kept->id, sizeof what.sandbox_id);
    return what;
}

static int translate(struct job *j, const struct making *m,
                     const struct kept *what, struct str *request,
                     struct error *err)
{
    cleanup_str struct str seal = STR_INIT(KEPT_SEALED_MAX + 1);
    struct cri_pair labels[JOB_LABELS];
    struct to_remote_pod pod = job_pod(j, j->kept->uid, m->logs, labels);
    keep_seal(j->s->keep, what, &seal);
    const struct to_remote_container to = {
        .pod = &pod,
        .limits = job_limits(j, j->kept->allocation),
        .sandbox_id = j->kept->id,
        .log_path = m->log_name ? m->log_name : "",
        .kept = str_text(&seal),
        .mounts = (const char *const *)m->paths,
        .n_mounts = m->n_paths,
    };
    int r = to_remote_container(job_message(j), &to, request, err);
    struct error why = *err;
    return r == -EPERM ? job_refuse(j, err, GRPC_PERMISSION_DENIED,
                                    "NotAllowed", "%s", why.text)
                       : r;
}

static int send_made(struct job *j, const struct making *m, struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_SIZE_MAX);
    cleanup_str struct str made = STR_INIT(KEPT_MOUNTS_MAX);
    struct grpc_end e = {.code = -1};
    uint64_t hash;
    request.soft = made.soft = true;
    int r = kept_hash(j->m, job_message(j), &hash, err);
    if (r == 0)
        r = from_remote_made(j->m, job_message(j), &made, err);
    if (r < 0)
        return r;
    const struct proto_bytes told = {str_text(&made), made.size};
    const struct kept what = kept_of(j, m, told, hash);
    r = translate(j, m, &what, &request, err);
    if (r < 0)
        return r;
    const struct remote_ask ask =
        job_ask(j, &request, job_left_ms(j, j->s->config.timeout_ms));
    r = remote_make(j->far->remote, &what, &ask, j->made, &e, err);
    return job_ended(j, r, &e, err);
}

static int create(struct job *j, struct error *err)
{
    cleanup_making struct making m = {0};
    int r = request_read_more(j->m, job_message(j), &j->req, err);
    j->code = GRPC_INVALID_ARGUMENT;
    if (r == 0)
        r = serve_need_far(j, err);
    if (r == 0)
        r = deliver(j, &m, err);
    if (r == 0)
        r = open_log(j, &m, err);
    if (r < 0)
        return r;
    j->code = 0;
    r = send_made(j, &m, err);
    if (r < 0 && m.log_path && j->code == GRPC_INVALID_ARGUMENT)
        log_copier_remove(j->s->logs, m.key);
    return r;
}

void serve_create_container(struct job *j)
{
    struct error err = {0};
    if (create(j, &err) < 0)
        job_fail(j, &err);
    else
        job_answer_made(j);
}

/* --- its life -----------------------------------------------------------------
 */

int serve_need_far(struct job *j, struct error *err)
{
    return j->far ? 0
                  : job_refuse(j, err, GRPC_UNAVAILABLE, "NoSuchCard",
                               "%s is not in the card file, or has "
                               "no endpoint there",
                               j->kept->remote);
}

void serve_start_container(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    int r = serve_need_far(j, &err);
    if (r == 0) {
        r = job_pass(j, job_left_ms(j, j->s->config.timeout_ms), &reply, &err);
        job_settle(j, j->req.id);
        if (r == -EREMOTEIO) /* its own word */
            exits_failed(j->s->exits, j->far, j->req.id);
    }
    if (r < 0)
        job_fail(j, &err);
    else
        job_answer(j, &reply);
}

/* The second field of both requests is a number of seconds. */
int64_t serve_timeout_ms(struct job *j, uint32_t number, int64_t otherwise)
{
    struct proto_field f;
    if (proto_find(job_message(j), number, PROTO_VARINT, &f, NULL) != 1)
        return otherwise;
    int64_t s = (int64_t)f.value;
    return s <= 0          ? otherwise
           : s > INT32_MAX ? INT64_C(1000) * INT32_MAX
                           : s * 1000 + SERVE_MARGIN_MS;
}

/* The kubelet takes one that was ended and is told as running for a fault of
 * the runtime. */
void serve_await_end(struct job *j, const char *id)
{
    cleanup_with(remote_view) struct remote_view *v =
        remote_view(j->far->remote);
    int64_t due = clock_ms() + job_left_ms(j, SERVE_EXIT_MS);
    struct proto_bytes status = remote_view_status(v, id);
    if (status.size && exits_has_ended(status))
        exits_await(j->s->exits, j->far, id, status, due);
}

void serve_stop_container(struct job *j)
{
    int64_t grace = serve_timeout_ms(j, CRI_StopContainerRequest_timeout, 0);
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    int r = job_is_orphan(j)
                ? 0
                : job_pass(j, job_left_ms(j, grace + j->s->config.timeout_ms),
                           &reply, &err);
    if (r < 0) {
        job_fail(j, &err);
        return;
    }
    if (j->far) {
        job_settle(j, j->req.id);
        serve_await_end(j, j->req.id);
    }
    job_answer(j, &reply);
}

/* --- its end ------------------------------------------------------------------
 */

static void forget_container(struct serve *s, const struct kept *k)
{
    char key[LOG_KEY_MAX + 1];
    serve_log_key(k->uid, k->container, k->attempt, key);
    if (s->logs)
        log_copier_remove(s->logs, key);
    stream_relay_cut_container(s->streams, k->id, "the container was removed");
    exits_forget(s->exits, k->id);
}

void serve_forget_containers(struct serve *s, const char *sandbox_id)
{
    cleanup_with(keep_view) struct keep_view *v = keep_view(s->keep);
    for (size_t i = 0; i < keep_view_count(v); i++) {
        const struct kept *k = keep_view_at(v, i);
        if (k->kind == KEPT_CONTAINER && strcmp(k->sandbox_id, sandbox_id) == 0)
            forget_container(s, k);
    }
}

void serve_remove_container(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    int r = job_is_orphan(j)
                ? 0
                : job_pass(j, job_left_ms(j, j->s->config.timeout_ms), &reply,
                           &err);
    if (r < 0 && j->code == GRPC_NOT_FOUND)
        r = 0; /* that it is not there is what was wanted */
    if (r == 0) {
        forget_container(j->s, j->kept);
        r = keep_forget(j->s->keep, j->req.id, &err);
    }
    if (r < 0) {
        job_fail(j, &err);
        return;
    }
    if (j->far)
        job_settle(j, j->req.id);
    job_answer(j, &reply);
}

/* --- the rest ------------------------------------------------------------------
 */

static int update(struct job *j, struct str *reply, struct error *err)
{
    cleanup_str struct str request = STR_INIT(REQUEST_SIZE_MAX);
    cleanup_str struct str got = STR_INIT(SERVE_REPLY_MAX);
    struct kept *sandbox = keep_find(j->s->keep, j->kept->sandbox_id);
    const struct to_remote_limits limits =
        job_limits(j, sandbox ? sandbox->allocation : "");
    kept_unref(sandbox);
    request.soft = got.soft = true;
    int r = serve_need_far(j, err);
    if (r == 0)
        r = to_remote_resources(job_message(j), &limits, &request, err);
    if (r == 0)
        r = job_call(j, &request, job_left_ms(j, j->s->config.timeout_ms), &got,
                     err);
    if (r == 0)
        r = from_remote_checked(
            j->m, (struct proto_bytes){str_text(&got), got.size}, reply, err);
    return r;
}

void serve_update_container(struct job *j)
{
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(SERVE_REPLY_MAX);
    if (update(j, &reply, &err) < 0)
        job_fail(j, &err);
    else
        job_answer(j, &reply);
}

/* The kubelet's file is written here; no remote is asked. */
void serve_reopen_log(struct job *j)
{
    struct error err = {0};
    const struct str nothing = {0};
    char key[LOG_KEY_MAX + 1];
    serve_log_key(j->kept->uid, j->kept->container, j->kept->attempt, key);
    int r = j->s->logs ? log_copier_reopen(j->s->logs, key, &err) : 0;
    if (r < 0)
        job_fail(j, &err);
    else
        job_answer(j, &nothing);
}
