/* Files and logs on remotes: the helper there, and the rooms that use it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/serve/serve_private.h"

/* --- names ---
 */

char *serve_log_dir(const struct serve *s, const char *uid)
{
    return xasprintf("%s/pods/%s/logs", s->config.card_dir, uid);
}

void serve_log_key(const char *uid, const char *container, uint32_t attempt,
                   char ret_key[LOG_KEY_MAX + 1])
{
    (void)snprintf(ret_key, LOG_KEY_MAX + 1, "%s.%s.%" PRIu32, uid, container,
                   attempt);
}

/* --- the helper ------------------------------------------------------------------
 */

/* Its container, which may have to be made first. */
static int ready(struct far *far, struct cri *cri, char ret_id[CRI_ID_MAX + 1],
                 struct error *err)
{
    char why[ACT_MESSAGE_MAX];
    if (remote_health(far->remote, why) == ACT_LOST)
        return error_set(err, EAGAIN, "%s: %s", remote_name(far->remote), why);
    int r = helper_ready(far->helper, cri, ret_id, err);
    struct error said = *err;
    return r == -ENOENT ? error_set(err, EAGAIN, "HelperMissing: %s", said.text)
                        : r;
}

/* A command of biga-card; one whose container has gone is begun once more. */
static int exec(struct far *far, const char *const *argv, size_t n_argv,
                unsigned ms, struct cri_exec *ret_exec, struct error *err)
{
    struct line line;
    char id[CRI_ID_MAX + 1];
    int r = lines_take(far->lines, clock_ms() + ms, &line, err);
    if (r < 0)
        return r;
    for (int round = 0; round < 2; round++) {
        r = ready(far, line.cri, id, err);
        if (r < 0)
            break;
        r = cri_exec_sync(line.cri, id, argv, n_argv, (ms + 999) / 1000, ms,
                          ret_exec, err);
        int code = r < 0 ? cri_end(line.cri)->code : GRPC_OK;
        if (code != GRPC_NOT_FOUND && code != GRPC_UNKNOWN &&
            code != GRPC_FAILED_PRECONDITION)
            break;
        helper_lost(far->helper, id);
    }
    lines_give(far->lines, &line, r < 0 && cri_end(line.cri)->code < 0);
    return r;
}

static int volume_exec(void *ctx, const char *remote, unsigned lane,
                       const char *const *argv, size_t n_argv, unsigned ms,
                       struct cri_exec *ret_exec, struct error *err)
{
    struct serve *s = ctx;
    struct far *far = serve_far(s, remote);
    (void)lane; /* connections are taken from those that there are */
    return far ? exec(far, argv, n_argv, ms, ret_exec, err)
               : error_set(err, ENOENT, "NoSuchCard: %s", remote);
}

static bool read_disk(const char *text, struct image_disk *ret_disk)
{
    unsigned long long size, available;
    int end = 0;
    if (sscanf(text, "size=%20llu\navailable=%20llu%n", &size, &available,
               &end) != 2 ||
        available > size)
        return false;
    *ret_disk = (struct image_disk){size, available};
    return true;
}

int serve_files_disk(struct far *far, unsigned ms, struct image_disk *ret_disk)
{
    static const char *const argv[] = {"/biga-card", "disk"};
    struct cri_exec out = {0};
    struct error err = {0};
    int r = exec(far, argv, ARRAY_LEN(argv), ms, &out, &err);
    if (r == 0 &&
        (out.exit_code != 0 || !read_disk(str_text(&out.out), ret_disk)))
        r = error_set(&err, EPROTO, "biga-card disk: %d: %.200s", out.exit_code,
                      str_text(&out.err));
    cri_exec_fini(&out);
    if (r < 0)
        log_event(LOG_DEBUG, "disk-not-known", "remote",
                  remote_name(far->remote), "error", err.text, NULL);
    return r;
}

int serve_files_log_dir(struct far *far, const char *path, int64_t due_ms,
                        struct error *err)
{
    const char *const argv[] = {"/biga-card", "files", path, "-"};
    struct cri_exec out = {0};
    int64_t left = due_ms - clock_ms();
    if (left <= 0)
        return error_set(err, ETIMEDOUT, "%s: no time left for %s",
                         remote_name(far->remote), path);
    int r = exec(far, argv, ARRAY_LEN(argv),
                 left > HELPER_MAKE_MS ? HELPER_MAKE_MS : (unsigned)left, &out,
                 err);
    if (r == 0 && out.exit_code != 0)
        r = error_set(err, EIO, "FilesFailed: %s: %.300s",
                      remote_name(far->remote), str_text(&out.err));
    cri_exec_fini(&out);
    return r;
}

/* --- logs -------------------------------------------------------------------------
 */

/* The helper is made by who creates a container; who follows logs finds it, or
 * has it looked for. */
static int find(void *ctx, const char *remote, struct grpc_config *ret_config,
                unsigned *ret_generation, char ret_helper[CRI_ID_MAX + 1],
                struct error *err)
{
    struct serve *s = ctx;
    struct far *far = serve_far(s, remote);
    struct line line;
    if (!far)
        return error_set(err, EAGAIN, "NoSuchCard: %s", remote);
    *ret_config = card_grpc(remote_place(far->remote));
    *ret_generation = (unsigned)(far - s->fars); /* others have others */
    if (helper_known(far->helper, ret_helper))
        return 0;
    int r = lines_take(far->lines, clock_ms() + HELPER_LIST_MS, &line, err);
    if (r < 0)
        return r;
    r = ready(far, line.cri, ret_helper, err);
    lines_give(far->lines, &line, r < 0 && cri_end(line.cri)->code < 0);
    return r < 0 ? error_set(err, EAGAIN, "%s", err->text) : 0;
}

static int logs_exec(void *ctx, const char *remote, unsigned lane,
                     const char *const *argv, size_t n_argv, unsigned ms,
                     struct cri_exec *ret_exec, struct error *err)
{
    struct serve *s = ctx;
    char id[CRI_ID_MAX + 1];
    int r = log_caller_exec(s->log_caller, remote, lane, argv, n_argv, ms,
                            ret_exec, err);
    struct far *far = serve_far(s, remote);
    /* it may be that its container is there no more */
    if (r < 0 && r != -EAGAIN && r != -ETIMEDOUT && r != -ECANCELED && far &&
        helper_known(far->helper, id))
        helper_lost(far->helper, id);
    return r;
}

static void logs_rest(void *ctx, const char *remote, unsigned lane)
{
    struct serve *s = ctx;
    log_caller_rest(s->log_caller, remote, lane);
}

static int open_logs(struct serve *s, struct error *err)
{
    const struct serve_config *c = &s->config;
    const struct log_caller_source source = {.find = find, .ctx = s};
    if (!c->state)
        return 0;
    cleanup_free char *states = xasprintf("%s/logs", c->state);
    cleanup_free char *follow = xasprintf("%s/follow", c->card_dir);
    const struct log_copier_config config = {.pod_logs = c->pod_logs,
                                             .states = states,
                                             .remote_dir = follow,
                                             .exec = logs_exec,
                                             .rest = logs_rest,
                                             .ctx = s};
    /* the kubelet makes it, once there is a runtime */
    if (mkdir(c->pod_logs, 0750) < 0 && errno != EEXIST)
        return error_errno(err, errno, "%s", c->pod_logs);
    s->log_caller = log_caller_create(&source);
    return log_copier_create(&config, &s->logs, err);
}

int serve_files_open(struct serve *s, struct error *err)
{
    const struct volume_sync_config config = {
        .kubelet_root = s->config.kubelet_dir,
        .disk = s->config.card_dir,
        .exec = volume_exec,
        .ctx = s,
    };
    int r = volume_sync_create(&config, &s->volumes, err);
    return r < 0 ? r : open_logs(s, err);
}

void serve_files_stop(struct serve *s)
{
    if (s->logs)
        log_copier_stop(s->logs);
}

void serve_files_close(struct serve *s)
{
    log_copier_destroy(s->logs);
    log_caller_destroy(s->log_caller);
    volume_sync_destroy(s->volumes);
}

/* --- what was there before this process -----------------------------------------
 */

static void adopt_log(struct serve *s, const struct kept *k)
{
    char key[LOG_KEY_MAX + 1];
    struct error err = {0};
    cleanup_free char *logs = serve_log_dir(s, k->uid);
    cleanup_free char *there = xasprintf("%s/%s-%u.log", logs, k->container,
                                         k->attempt);
    serve_log_key(k->uid, k->container, k->attempt, key);
    const struct log_target target = {.key = key,
                                      .remote = k->remote,
                                      .remote_path = there,
                                      .path = k->log_path};
    if (log_copier_add(s->logs, &target, &err) < 0)
        log_event(LOG_WARN, "log-lost", "remote", k->remote, "pod", k->name,
                  "container", k->container, "error", err.text, NULL);
}

static void adopt_volumes(struct serve *s, const struct kept *k)
{
    const struct volume_pod pod = {k->remote, k->uid};
    struct serve_mounts m;
    struct error err = {0};
    serve_mounts_read(k, &s->rules, &m);
    if (volume_sync_adopt(s->volumes, &pod, m.list, m.n, &err) < 0)
        log_event(LOG_WARN, "volume-lost", "remote", k->remote, "pod", k->name,
                  "container", k->container, "error", err.text, NULL);
    serve_mounts_fini(&m);
}

/* Folders of pods that nobody knows go. */
static void sweep(struct serve *s, const struct keep_view *v, struct far *far)
{
    cleanup_free const char **uids = xcalloc(keep_view_count(v) + 1,
                                             sizeof *uids);
    const char *name = remote_name(far->remote);
    size_t n = 0;
    for (size_t i = 0; i < keep_view_count(v); i++)
        if (strcmp(keep_view_at(v, i)->remote, name) == 0)
            uids[n++] = keep_view_at(v, i)->uid;
    volume_sync_sweep(s->volumes, name, uids, n);
}

void serve_files_adopt(struct serve *s)
{
    cleanup_with(keep_view) struct keep_view *v = keep_view(s->keep);
    for (size_t i = 0; i < keep_view_count(v); i++) {
        const struct kept *k = keep_view_at(v, i);
        if (k->kind != KEPT_CONTAINER || k->state != KEPT_MADE ||
            !serve_far(s, k->remote))
            continue;
        if (s->logs && *k->log_path)
            adopt_log(s, k);
        adopt_volumes(s, k);
    }
    if (!s->began_empty)
        for (size_t i = 0; i < s->n_fars; i++)
            sweep(s, v, &s->fars[i]);
}
