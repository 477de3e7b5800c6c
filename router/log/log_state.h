/* log_state - which bytes of a remote's log file the kubelet's file has.
 *
 * What was written is what counts: the state only says which byte of the
 * remote's file the first byte of the kubelet's is, and the size of that file
 * tells the rest.  So it is written down when the kubelet's file becomes
 * another one, and not with every line; whenever the router is killed, the
 * kubelet's file decides.
 *
 * The first part is pure; load, save and remove block on the disk. */
#ifndef BIGA_ROUTER_LOG_LOG_STATE_H
#define BIGA_ROUTER_LOG_LOG_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    LOG_KEY_MAX = 200, /* [A-Za-z0-9._-], not first a dot */
    LOG_STATE_TEXT_MAX = 512,
};

/* A file of the kubelet's, whatever it is called now. */
struct log_place {
    uint64_t device, inode; /* inode 0: none */
    int64_t base; /* the offset in the remote's file of its first byte */
};

struct log_state {
    struct log_place now, before; /* before: which the kubelet has rotated */
    uint64_t kept; /* offset: this much was durable in the kubelet's files */
};

bool log_key_ok(const char *key);

void log_state_encode(const struct log_state *state, struct str *out);
/* -EINVAL when it is none. */
int log_state_decode(const char *text, size_t size, struct log_state *ret_state,
                     struct error *err);

/* A file that is in the folder now. */
struct log_seen {
    uint64_t device, inode;
    uint64_t size;
};
enum log_resume_how {
    LOG_RESUME_SAME,    /* goes on in the file of that name */
    LOG_RESUME_RENAMED, /* in the one that it was: the kubelet has renamed it,
                         * and another of the name is not there yet */
    LOG_RESUME_OTHER,   /* in the file of that name, which is another one */
};
struct log_resume {
    enum log_resume_how how;
    uint64_t next; /* the offset to go on from, in the remote's file */
    size_t file;   /* RENAMED: which of `seen` */
    bool unsure;   /* the file that it was is gone: bytes may come again, from
                  * what is known to be durable on */
};
/* After a restart: `seen` are the files of the folder, `named` is the one that
 * has the log's name, n when none has. */
void log_state_resume(const struct log_state *state,
                      const struct log_seen *seen, size_t n, size_t named,
                      struct log_resume *ret_resume);

/* --- on disk, a file KEY.log in the folder `dir` ------------------------- */

/* -ENOENT when there is none. */
int log_state_load(int dir, const char *key, struct log_state *ret_state,
                   struct error *err);
/* Durable when it returns 0. */
int log_state_save(int dir, const char *key, const struct log_state *state,
                   struct error *err);
int log_state_remove(int dir, const char *key, struct error *err);

#endif
