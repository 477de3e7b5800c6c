/* log_sink - the kubelet's log file of one container, and what was written to
 * it: appended to, followed when the kubelet renames it, opened anew when it
 * asks, never twice the same byte.
 *
 * A path comes from whoever made the pod: it must lie below the kubelet's
 * folder of pod logs, no part below that may be a symbolic link or "..", and
 * what is there must be an ordinary file with one name.  Its folder is the
 * kubelet's to make.
 *
 * Use from one thread at a time; all of it blocks on the disk. */
#ifndef BIGA_ROUTER_LOG_LOG_SINK_H
#define BIGA_ROUTER_LOG_LOG_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    LOG_PATH_MAX = 1024,     /* of the kubelet's file */
    LOG_FOLDER_FILES = 4096, /* looked at after a restart */
    LOG_LINE_MAX = 1 << 20,  /* what is longer becomes lines */
};

struct log_sink_config {
    int root;              /* the kubelet's folder of pod logs, opened */
    const char *root_path; /* "/var/log/pods" */
    int states;            /* the folder of the states */
    const char *key;       /* of the state, log_key_ok() */
    const char *path;      /* of the file: below root_path */
};

struct log_sink;
/* Makes the file where it is not there, or goes on where the last one has
 * stopped.  Texts are copied, descriptors borrowed.  -EINVAL, -ELOOP: a path
 * that must not be. */
int log_sink_open(const struct log_sink_config *config,
                  struct log_sink **ret_sink, struct error *err);
void log_sink_close(struct log_sink *s); /* NULL allowed; the state stays */
DEFINE_CLEANUP(log_sink, struct log_sink *, log_sink_close)

/* The offset in the remote's file of the byte that is to come next. */
uint64_t log_sink_next(const struct log_sink *s);
/* Write bytes that are at log_sink_next(), all of them or none. */
int log_sink_write(struct log_sink *s, const char *data, size_t size,
                   struct error *err);
/* What is before `offset`, and was not written, is lost: go on from there. */
int log_sink_skip(struct log_sink *s, uint64_t offset, struct error *err);
/* The kubelet has renamed the file: go on in one of the old name.  On an error
 * all is as it was.  Without a rename a success that changes nothing. */
int log_sink_reopen(struct log_sink *s, struct error *err);
/* Make durable what was written; `*ret_offset` is up to where, at the end of a
 * whole line: what is before it may go from the remote's disk. */
int log_sink_sync(struct log_sink *s, uint64_t *ret_offset, struct error *err);
/* The container is removed: its state goes, the kubelet's file stays. */
int log_sink_forget(struct log_sink *s, struct error *err);

#endif
