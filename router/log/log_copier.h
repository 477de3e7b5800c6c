/* log_copier - copies the logs of containers on remotes into the kubelet's own
 * files, as they are written.
 *
 * A remote has LOG_LANES threads, each of which may have one call of
 * `biga-card follow` (card/follow.h) under way; a call has the bytes of all
 * containers there.  Threads begin with the remote's first container and wait
 * when it has none.  Nobody waits for a remote but finish(), for as long as
 * something comes.
 *
 * All functions but create and destroy may be called from any thread at any
 * time.  add(), reopen() and remove() block on the kubelet's disk alone; for
 * one container they wait for one another. */
#ifndef BIGA_ROUTER_LOG_LOG_COPIER_H
#define BIGA_ROUTER_LOG_LOG_COPIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/cri/cri_container.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    LOG_LANES = 3, /* calls at once on one remote */
    LOG_REMOTES_MAX = 64,
    LOG_CONTAINERS_MAX = 1000, /* of one remote: more is -ENOSPC */
    LOG_REMOTE_NAME_MAX = 253,
};

/* Runs a command in the helper's container on that remote, as cri_exec_sync():
 * blocks up to `ms`.  `lane` is below LOG_LANES; calls of one lane of a remote
 * never meet, so each may have its own connection.  -EAGAIN: there is no
 * helper (yet). */
typedef int log_exec_f(void *ctx, const char *remote, unsigned lane,
                       const char *const *argv, size_t n_argv, unsigned ms,
                       struct cri_exec *ret_exec, struct error *err);

struct log_copier_config {
    const char *pod_logs;   /* the kubelet's folder: "/var/log/pods" */
    const char *states;     /* a folder of ours, made when it is missing; of one
                           * copier at a time */
    const char *remote_dir; /* on remotes, the helper's and root's alone:
                             * "/var/lib/biga/follow" */
    log_exec_f *exec;
    /* That lane of the remote has had no call for `rest_ms`: what it keeps for
     * the next may go.  NULL: nothing. */
    void (*rest)(void *ctx, const char *remote, unsigned lane);
    void *ctx;
    /* 0: the defaults */
    unsigned rest_ms;     /* 20000 */
    unsigned wait_ms;     /* how long a call waits for bytes: 5000 */
    unsigned wait_max_ms; /* twice as long each time when none came, at most
                           * so long: 30000, and biga-card takes 60000 */
    unsigned linger_ms;   /* and for more of them, while they come: 60 */
    size_t round_max;     /* bytes of a call: 8 MiB, and no more */
    size_t free_step;     /* how much of a log is kept on the remote at least
                         * before it is freed there: 16 MiB */
    uint64_t rate_max;    /* bytes per second of a container; 0: no limit */
};

struct log_copier;
/* Texts are copied.  -EBUSY: another one has the folder of states. */
int log_copier_create(const struct log_copier_config *config,
                      struct log_copier **ret_copier, struct error *err);
/* Nothing more is written when it returns, and who waits is told -ECANCELED;
 * calls go on until they end.  What was not copied is copied by the next. */
void log_copier_stop(struct log_copier *c);
/* Stops, and waits for the calls that are under way. NULL allowed. */
void log_copier_destroy(struct log_copier *c);
DEFINE_CLEANUP(log_copier, struct log_copier *, log_copier_destroy)

struct log_target {
    const char *key;    /* of the container for all time, log_key_ok(): told
                         * before it has an id, and again after a restart */
    const char *remote; /* its name; nothing of it is looked up */
    const char *remote_path; /* of the file there: absolute, in a folder that
                              * the helper sees under the same path */
    const char *path;        /* the kubelet's file */
};
/* Before CreateContainer is sent, and for every container that is known after
 * a start of the router: goes on where the kubelet's file ends.  The kubelet's
 * file is there when it returns.  The same again is a success; -EEXIST: the
 * key is of another. */
int log_copier_add(struct log_copier *c, const struct log_target *target,
                   struct error *err);
/* ReopenContainerLog.  -ENOENT: no such container. */
int log_copier_reopen(struct log_copier *c, const char *key, struct error *err);
/* The container has exited, and somebody wants to tell: waits until all that
 * it wrote is in the kubelet's file.  -ETIMEDOUT after `ms` without a byte of
 * it, -ENETUNREACH when the remote is cut off: the rest comes when it can.  Once in is a success at
 * once, also for a container that is not there. */
int log_copier_finish(struct log_copier *c, const char *key, unsigned ms,
                      struct error *err);
/* It is removed on the remote: what is not copied by then is lost. */
void log_copier_remove(struct log_copier *c, const char *key);
/* Whether that remote answers, as others have found out; it does until it is
 * said not to.  While it is cut off it is not called. */
void log_copier_cut(struct log_copier *c, const char *remote, bool cut);

struct log_copier_counts {
    uint64_t bytes, rounds; /* written to files; calls that brought something
                             * or were in vain */
    uint64_t faults;        /* calls that failed */
    uint64_t lost;          /* bytes that were gone on the remote */
    size_t n_containers;
};
void log_copier_count(struct log_copier *c,
                      struct log_copier_counts *ret_counts);

#endif
