/* history - what happened to pods, jobs, nodes and cards, and what was at any
 * moment: kept in a SQLite file of its own, for some days and some size.
 *
 * Nobody waits for it: what happened goes into a bounded queue (snapshots as
 * references), a thread of its own compares and writes, and commits at most
 * every HISTORY_COMMIT_MS.  A crash loses what came after the last commit; the
 * next start sees what is different and says so.  Whoever asks does so on
 * another thread and another connection. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_H
#define BIGA_EXTENDER_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/history/history_event.h"
#include "extender/history/history_read.h"
#include "extender/keep/writer.h"
#include "extender/pods/applied.h"
#include "lib/base/error.h"

enum {
    HISTORY_COMMIT_MS = 500,
    HISTORY_QUEUE_MAX = 8192,    /* events that wait to be written */
    HISTORY_SNAPSHOTS_MAX = 256, /* and snapshots; then some are passed over,
                                  * and what was in them alone with them */
    HISTORY_QUESTIONS_MAX = 256, /* that wait to be answered */
    HISTORY_AGAIN_MS = 10000,    /* after it could not be written */
};

struct history_config {
    const char *dir;   /* made when it is missing */
    int64_t days, mib; /* what is older, or more, goes */
    struct writer *writer;
    struct applied *applied; /* NULL: the API server has the pods */
    /* Does the writer's snapshot have all that there is?  Until then nothing
     * is compared: at a start in a cluster everything would seem to have gone.
     * On the history's thread, which may wait for the writer.  NULL: yes. */
    bool (*is_ready)(void *ctx);
    void *ctx;
};

struct history;
/* The directory is locked and the file opened; -EBUSY: another process has
 * it. */
int history_start(const struct history_config *config,
                  struct history **ret_history, struct error *err);
/* Its threads end; what waits is written, and questions that wait are answered
 * with -ECANCELED.  Before the writer is stopped. NULL allowed. */
void history_stop(struct history *h);
/* After the writer and what was applied are gone, too. NULL allowed. */
void history_destroy(struct history *h);

/* It happened, now unless it says when.  Any thread, never waits; what finds
 * the queue full is counted, and lost.  NULL allowed for `h`. */
void history_post(struct history *h, const struct history_event *e);
/* The same, of a pod that has a place. */
void history_post_placed(struct history *h, const struct allocation *a,
                         enum history_reason reason, const char *text);

/* --- questions ------------------------------------------------------------ */

/* Asked on the reader's thread; `r` is NULL, and `error` says why, when it
 * cannot be. */
struct scope;
struct history_question {
    void (*answer)(struct history_question *q, struct history_reader *r);
    /* Who asks has this one alone, and a cap of its own: it always finds room,
     * and takes none of others. */
    bool apart;
    const struct scope *scope; /* of who asks; NULL: it sees all */
    struct error error;
    struct history_question *next;
};
/* Any thread, never waits. -EAGAIN: too many wait.  The question is the
 * caller's again when it is answered. */
int history_ask(struct history *h, struct history_question *q);

/* Have `news` called after each commit with events, and every 15 s, on the
 * history's thread, which it must not block. */
struct history_follower {
    void (*news)(struct history_follower *f);
    struct history_follower *next;
};
void history_follow(struct history *h, struct history_follower *f);
/* After this has returned it is not called.  Not from `news`. */
void history_unfollow(struct history *h, struct history_follower *f);

/* --- how it fares --------------------------------------------------------- */

struct history_state {
    int64_t bytes;     /* of the file, that are in use, and of damaged ones */
    int64_t oldest_ms; /* event; 0: there is none */
    uint64_t newest;   /* the number of the newest event */
    uint64_t commits;  /* since the start: it says something else then */
    uint64_t lost;     /* events and snapshots that found no room in a queue, or
                        * could not be written */
    bool full;         /* something went before its days were over */
    bool writes;       /* the last commit did not fail */
};
struct history_state history_state(struct history *h);

/* Tests: all that was posted is written, if it can be. */
void history_settle(struct history *h);

#endif
