/* state - what the files of the actuator share: its pods (entries) and places,
 * under one lock.
 *
 * The lock is over everything that changes; it is never held across a call, a
 * write or a wait.  Functions that need it say so with REQUIRES(act_state), and
 * clang checks them; those that release it for a while, so that what was read
 * before may have changed, say that in a comment.  A place has a thread that
 * probes it and lists what is there (prober.c), and up to PLACE_WORKERS others
 * while there is something to do (worker.c), each with a connection of its own,
 * so that a slow call never looks like a card that does not answer. */
#ifndef BIGA_ADVERTISER_ACT_CORE_STATE_H
#define BIGA_ADVERTISER_ACT_CORE_STATE_H

#include <pthread.h>
#include <string.h>

#include "advertiser/act/card/card.h"
#include "advertiser/act/card/health.h"
#include "advertiser/act/card/pod_dir.h"
#include "advertiser/act/flash/flasher.h"
#include "advertiser/act/machine/machine.h"
#include "advertiser/act/pod/intents.h"
#include "advertiser/act/pod/orphans.h"
#include "advertiser/hostside/host_side.h"
#include "lib/base/thread_safety.h"
#include "model/pod/podspec.h"
#include "model/pod/rights.h"

enum {
    PLACES_KEPT = 64, /* also of those that are not there any more */
    PLACE_WORKERS = 3,
    PLACE_IDLE_MS = 5000,     /* then a worker ends */
    PLACE_LIST_MS = 1800,     /* between lists when nothing happens */
    PLACE_SWEEP_MS = 10000,   /* where nothing is wanted, or events come */
    PLACE_BUSY_LIST_MS = 200, /* while a pod comes or goes */
    PLACE_STACK = 256 << 10,
    /* deadlines of calls */
    CALL_MS = 30000, /* whatever makes or ends something */
    CALL_LIST_MS = 5000,
    CALL_PULL_MS = 600000,
    CALL_TELL_MS = 1000, /* a stop: it ends by itself then */
    DESTROY_MS = 3000,   /* the end waits that long for calls */
};

#define ACT_OWNER_SELF "biga"     /* of helpers */
#define ACT_HELPER "biga-helper-" /* and the place: their UID */

/* Stands for the lock of the actuator, of which a process has one. */
extern struct lock_role act_state;
#define LOCKED REQUIRES(act_state)      /* of functions of one file */
#define LOCKED_BY GUARDED_BY(act_state) /* of members */

/* A pod that is recorded.  Only who has set `busy` moves its machine and
 * changes its intent, and may read both without the lock. */
struct pod_entry {
    struct intent *intent;
    struct podspec *spec; /* NULL: it cannot be read any more */
    struct machine m;
    bool busy LOCKED_BY;       /* a thread carries out a step of it */
    bool dropped LOCKED_BY;    /* not in the table any more; freed at the end of
                                * `busy` */
    bool configured LOCKED_BY; /* its card is, for the sandbox to come */
    bool uses_card LOCKED_BY;  /* as card_setup_note_use() saw it last */
    bool has_devices LOCKED_BY;  /* it was given the sets that it asks for */
    bool uses_devices LOCKED_BY; /* as card_devices_note_use() saw it last */
    bool stirred LOCKED_BY;      /* an event was about it, and no list since */
    bool logs_saved LOCKED_BY;   /* what its containers wrote last is */
    bool stop_saved LOCKED_BY;   /* intent->stop and its grace are durable */
    bool met LOCKED_BY;       /* it was listed once since it is in the table */
    int64_t due_ms LOCKED_BY; /* of its next step */
    int64_t acted_ms LOCKED_BY; /* lists begun before that are out of date */
    int64_t await_ms LOCKED_BY; /* since when its end waits for the helper; 0 it
                                 * does not */
    uint64_t version LOCKED_BY;
};

/* The stream of events of a place. */
struct place_events {
    bool none;          /* its runtime has no events */
    bool live;          /* they come: lists are rare, and make sure */
    bool deaf;          /* not all of them come: lists as without them */
    int64_t stirred_ms; /* the last that calls for a list; 0 none */
    int64_t missed_ms;  /* a change was found of which no event told; 0 none */
    int64_t retry_ms;   /* no new stream before */
    unsigned failures;  /* of streams, in a row */
    unsigned wakes;     /* lists for events that are left, as of: */
    int64_t wakes_ms;
};

struct place {
    struct actuator *a;
    struct act_place desc;         /* its name never changes */
    struct grpc_counts counts;     /* of calls there, since the start */
    unsigned generation LOCKED_BY; /* of `desc`: connections to earlier ones are
                                    * closed */
    bool present LOCKED_BY, drained LOCKED_BY;
    bool swept LOCKED_BY;       /* all that is ours there was listed */
    bool unread LOCKED_BY;      /* it was lost, and not listed since */
    unsigned n_lives LOCKED_BY; /* times it came, or came back from lost */
    unsigned n_turns LOCKED_BY; /* times a thread finished configuring it */
    unsigned n_freed LOCKED_BY; /* times a pod stopped using it */
    struct health health LOCKED_BY;
    char reason[ACT_MESSAGE_MAX] LOCKED_BY;
    char runtime[CRI_TEXT_MAX] LOCKED_BY;
    struct orphans orphans LOCKED_BY;
    /* of unrecorded pods, in the last list: */
    size_t n_spared LOCKED_BY, n_spared_running LOCKED_BY;
    struct place_events events LOCKED_BY;
    int64_t list_ms LOCKED_BY;   /* the next list */
    int64_t lonely_ms LOCKED_BY; /* since when its helper has nothing to do */
    bool sweeping LOCKED_BY;     /* a thread removes leftover directories */
    int64_t sweep_ms LOCKED_BY;  /* when they are tried again; 0 at once */
    char sweep_uid[ACT_UID_MAX + 1] LOCKED_BY; /* the last that was tried; ""
                                                * from the first */
    char removing[ACT_UID_MAX + 1]; /* the one that is being tried; "" none;
                                     * changed with the lock, and read without
                                     * by who is sweeping */
    bool prober LOCKED_BY;          /* its thread runs */
    unsigned n_workers LOCKED_BY, n_idle LOCKED_BY;
    pthread_cond_t wake;  /* of the prober */
    pthread_cond_t work;  /* of the workers */
    pthread_mutex_t prep; /* who configures the card; to be locked before: */
    pthread_mutex_t vfs;  /* its virtual functions stay as they are, while they
                           * are counted or a pod is given them */
};

/* The directory of a pod that is gone, which could not be removed there. */
struct leftover_dir {
    char place[ACT_NAME_MAX + 1], uid[ACT_UID_MAX + 1];
};

struct actuator {
    /* as configured */
    char *dir, *cluster, *node, *boot_id, *card_dir, *helper_image;
    struct pod_dirs dirs; /* dir and card_dir */
    char *sysfs, *dev, *hooks_dir, *devlink;
    struct rights rights;
    struct host_side *host LOCKED_BY; /* NULL: not known yet */
    int64_t orphan_grace_ms, probe_ms, lost_ms, sweep_ms, destroy_ms;
    void (*changed)(void *ctx) LOCKED_BY;
    void *ctx;
    void *(*worker)(void *place); /* the thread of a worker: place_wake() */

    struct intents *intents;
    struct flasher *flasher; /* NULL: no folder, no cards to be flashed */
    pthread_mutex_t saving;  /* to be locked before `lock`: intents are saved in
                             * the order in which they were copied */
    pthread_mutex_t lock;    /* act_lock() */
    pthread_cond_t news;     /* `version` has grown, or a thread has ended */
    uint64_t version LOCKED_BY;
    int64_t trim_ms LOCKED_BY; /* when memory is given back next */
    bool fed LOCKED_BY;        /* all that is wanted was said: orphans may go */
    char **spared LOCKED_BY;   /* UIDs of unrecorded pods, in order */
    size_t n_spared LOCKED_BY;
    bool placed LOCKED_BY; /* it is known which places there are */
    bool stopping LOCKED_BY;
    unsigned n_threads LOCKED_BY;
    bool has_ended LOCKED_BY;
    pthread_t ended LOCKED_BY; /* the last thread that has; to be joined */
    struct pod_entry **entries LOCKED_BY;
    size_t n_entries LOCKED_BY, cap_entries LOCKED_BY;
    struct place *places[PLACES_KEPT] LOCKED_BY;
    size_t n_places LOCKED_BY;
    struct grpc_hub *events LOCKED_BY; /* NULL: there is no thread for them */
    char **drained LOCKED_BY;          /* names, also of places not there */
    size_t n_drained LOCKED_BY;
    struct leftover_dir *leftovers LOCKED_BY;
    size_t n_leftovers LOCKED_BY, cap_leftovers LOCKED_BY;
};

static inline bool pod_entry_is_on(const struct pod_entry *e,
                                   const struct place *p)
{
    return strcmp(e->intent->place, p->desc.name) == 0; /* never change */
}

static inline NO_THREAD_SAFETY void act_lock(struct actuator *a)
    ACQUIRES(act_state);
static inline NO_THREAD_SAFETY void act_lock(struct actuator *a)
{
    (void)pthread_mutex_lock(&a->lock);
}

static inline NO_THREAD_SAFETY void act_unlock(struct actuator *a)
    RELEASES(act_state);
static inline NO_THREAD_SAFETY void act_unlock(struct actuator *a)
{
    (void)pthread_mutex_unlock(&a->lock);
}

#endif
