/* keep - what is where: the sandboxes and containers of all remotes, durable
 * before the kubelet hears of them.
 *
 * Any thread may call anything.  What changes something blocks for the disk
 * (a write and an fsync), never for a remote; keep_view() does not block.  A
 * process that cannot fsync ends (sqldb.h). */
#ifndef BIGA_ROUTER_KEEP_KEEP_H
#define BIGA_ROUTER_KEEP_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "router/keep/kept.h"
#include "router/keep/kept_text.h"
#include "router/keep/seen.h"

enum {
    KEEP_MAX = 8192,        /* records of all remotes */
    KEEP_REMOTE_MAX = 4096, /* of one */
    KEEP_LATE_MS = 600000,  /* an announced call whose end nobody knows is
                             * forgotten when lists do not have it by then */
};

struct keep_config {
    const char *dir;      /* of the state, NULL: in memory */
    const char *pod_logs; /* the kubelet's folder: log_path is below it */
};
struct keep;
/* -EBUSY: another process has it.  A damaged file is moved aside, and what can
 * be saved of it is in the new one (lib/db). */
int keep_open(const struct keep_config *config, struct keep **ret_keep,
              struct error *err);
void keep_close(struct keep *k); /* NULL allowed */
DEFINE_CLEANUP(keep, struct keep *, keep_close)

/* For the annotation that goes with the call that `what` announces. */
void keep_seal(const struct keep *k, const struct kept *what, struct str *out);
/* What such an annotation says, and is by our seal; NULL: it is none. */
struct kept *keep_unseal(const struct keep *k, const char *text);

/* --- what is there -------------------------------------------------------- */

/* All records as of some moment, which do not change. */
struct keep_view;
struct keep_view *keep_view(struct keep *k);
void keep_view_unref(struct keep_view *v); /* NULL allowed */
DEFINE_CLEANUP(keep_view, struct keep_view *, keep_view_unref)
/* Made under that id, a sandbox or container; NULL: it is on no remote that is
 * known.  Borrowed from the view. */
const struct kept *keep_view_find(const struct keep_view *v, const char *id);
/* Those that are made, by id; announced ones after them, by key. */
size_t keep_view_count(const struct keep_view *v);
const struct kept *keep_view_at(const struct keep_view *v, size_t i);

/* The one of that id alone; the caller has a reference.  NULL: none. */
struct kept *keep_find(struct keep *k, const char *id);

/* --- a making call (making.h does these in order) ------------------------- */

enum keep_answer {
    KEEP_SEND,  /* it is announced, durably: send it */
    KEEP_LOOK,  /* the same was announced before and its end is not known: look
                 * first what the remote has */
    KEEP_THERE, /* it was made: `*ret_kept`, which may be of another request */
};
/* From KEEP_SEND and KEEP_LOOK on the call is the caller's, until one of the
 * three below.  -EBUSY: another caller has it; -ENOSPC: KEEP_MAX or
 * KEEP_REMOTE_MAX; others: it could not be written, and is not announced. */
int keep_announce(struct keep *k, const struct kept *what,
                  enum keep_answer *ret_answer, struct kept **ret_kept,
                  struct error *err);
/* It is there, under that id, and as `what` says.  -EEXIST: that id is another's; -EINVAL: it is no
 * id.  Not written: the call stays announced, and the kubelet must not hear of
 * the id. */
int keep_made(struct keep *k, const struct kept *what, const char *id,
              struct error *err);
/* The remote says that it did not make it, or never heard of it. */
int keep_refused(struct keep *k, const struct kept *what, struct error *err);
/* Nobody knows; it stays announced, for the next caller and for lists. */
void keep_unclear(struct keep *k, const struct kept *what);

/* --- the end -------------------------------------------------------------- */

/* The kubelet is about to be told that this container has ended, and how
 * (told_end()): the next router tells the same.  The first counts; of one that
 * is not there it is a success. */
int keep_ended(struct keep *k, const char *id, struct proto_bytes how,
               struct error *err);
/* The remote has removed it; with a sandbox all its containers.  One that is
 * not there is a success. */
int keep_forget(struct keep *k, const char *id, struct error *err);

/* --- what remotes list ----------------------------------------------------- */

/* Before a list is asked for: what happens after that counts more than what
 * the list says. */
uint64_t keep_mark(struct keep *k);

struct keep_found {
    size_t n_adopted; /* announced, and there */
    size_t n_rebuilt; /* were not written down */
    size_t n_gone;    /* are not there any more */
    size_t n_strays;  /* are of nobody: seen.h marks them */
    size_t n_asked;   /* the same, of those that need `ours` */
};
enum { KEEP_ASKED_MAX = 256 }; /* of one call; the others are for the next */
/* A whole listing, which was begun at that mark: the map is made to agree with
 * it.  Those in it that nobody knows are marked in `seen`; those that may be
 * written down are as soon as they are `ours`, with another call.  -errno when
 * something could not be written: the rest is done all the same, and the next
 * listing does it again. */
int keep_seen(struct keep *k, const char *remote, uint64_t mark,
              struct seen *seen, struct keep_found *ret_found,
              struct error *err);

/* Numbers, for metrics. */
size_t keep_count(struct keep *k, const char *remote, enum kept_state state);

#endif
