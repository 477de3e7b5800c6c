#include "advertiser/act/card/pod_logs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "advertiser/act/card/helper.h"
#include "advertiser/act/card/hostdir.h"
#include "lib/base/mem.h"

enum {
    LOG_MISSING = 3,  /* how biga-card says that there is none */
    HELPER_USAGE = 2, /* and that it does not understand its arguments */
    HELPER_OLD_MAX = 1 << 20, /* bytes of a log that older ones give at most */
};

static char *path_of(const struct pod_access *pod, const struct pod_log *log)
{
    cleanup_free char *file = pod_dir_log_name(log->container, log->attempt);
    cleanup_free char *dir = pod_dir_path(pod->dirs, pod->place->name,
                                          pod->uid);
    return xasprintf("%s/logs/%s", dir, file);
}

static int ask_helper(const struct pod_access *pod, const char *path,
                      const struct pod_log *log, struct cri_exec *ret_exec,
                      struct error *err)
{
    char from[24], most[24];
    const char *const argv[] = {"/biga-card", log->lines ? "lines" : "log",
                                path,         log->tail ? "end" : from,
                                most,         "ended"};
    size_t n = ARRAY_LEN(argv) - !log->ended;
    (void)snprintf(from, sizeof from, "%" PRIu64, log->offset);
    (void)snprintf(most, sizeof most, "%zu", log->max);
    int e = helper_exec(pod->cri, pod->helper, argv, n, ret_exec, err);
    if (e < 0 || ret_exec->exit_code != HELPER_USAGE || log->lines ||
        (log->max <= HELPER_OLD_MAX && !log->ended))
        return e;
    cri_exec_fini(ret_exec); /* an older one */
    if (log->max > HELPER_OLD_MAX)
        (void)snprintf(most, sizeof most, "%d", HELPER_OLD_MAX);
    return helper_exec(pod->cri, pod->helper, argv, ARRAY_LEN(argv) - 1,
                       ret_exec, err);
}

static int read_on_card(const struct pod_access *pod, const char *path,
                        const struct pod_log *log, struct str *ret_text,
                        uint64_t *ret_next, struct error *err)
{
    struct cri_exec exec = {.max = log->max > CRI_EXEC_OUTPUT_MAX ? log->max
                                                                  : 0};
    if (!pod->helper[0])
        return error_set(err, EAGAIN,
                         "Biga's helper does not run on %s: see whether its "
                         "image is there (ctr -n k8s.io images ls)",
                         pod->place->name);
    int e = ask_helper(pod, path, log, &exec, err);
    if (e < 0)
        return e;
    *ret_next = log->offset;
    if (exec.exit_code == 0) {
        e = helper_next(&exec, ret_next, err);
        str_move(ret_text, &exec.out);
    } else if (log->lines && exec.exit_code == HELPER_USAGE) {
        e = error_set(err, ENOTSUP,
                      "Biga's helper on %s is of an earlier version, which "
                      "cannot do that: update its image",
                      pod->place->name);
    } else if (exec.exit_code != LOG_MISSING) {
        e = error_set(err, EIO, "%.300s", str_text(&exec.err));
    }
    cri_exec_fini(&exec);
    return e;
}

int pod_logs_read(const struct pod_access *pod, const struct pod_log *log,
                  struct str *ret_text, uint64_t *ret_next, struct error *err)
{
    cleanup_free char *path = path_of(pod, log);
    if (log->ended && card_is_host(pod->place))
        hostdir_log_await(path);
    const struct lines_ask ask = {log->offset, log->max, log->tail, log->ended};
    if (log->lines && card_is_host(pod->place))
        return hostdir_log_lines(path, &ask, ret_text, ret_next, err);
    return card_is_host(pod->place)
               ? hostdir_log(path, log->offset, log->max, ret_text, ret_next,
                             err)
               : read_on_card(pod, path, log, ret_text, ret_next, err);
}

static int tail_on_card(const struct pod_access *pod, const char *path,
                        size_t max, struct str *ret_text, uint64_t *ret_next,
                        struct error *err)
{
    char most[16];
    const char *const argv[] = {"/biga-card", "tail", path, most};
    struct cri_exec exec = {0};
    (void)snprintf(most, sizeof most, "%zu", max);
    if (!pod->helper[0])
        return error_set(err, ESRCH, "Biga's helper does not run there");
    int e = helper_exec(pod->cri, pod->helper, argv, ARRAY_LEN(argv), &exec,
                        err);
    if (e < 0)
        return e;
    if (exec.exit_code == 0)
        e = helper_next(&exec, ret_next, err);
    else
        e = error_set(err, exec.exit_code == LOG_MISSING ? ENOENT : EIO,
                      "biga-card tail ended with exit code %d: %.300s",
                      (int)exec.exit_code, str_text(&exec.err));
    if (e == 0)
        str_move(ret_text, &exec.out);
    cri_exec_fini(&exec);
    return e;
}

int pod_logs_tail(const struct pod_access *pod, const struct pod_log *log,
                  struct str *ret_text, uint64_t *ret_next, struct error *err)
{
    cleanup_free char *path = path_of(pod, log);
    if (card_is_host(pod->place))
        hostdir_log_await(path);
    return card_is_host(pod->place)
               ? hostdir_log_tail(path, log->max, ret_text, ret_next, err)
               : tail_on_card(pod, path, log->max, ret_text, ret_next, err);
}
