/* state - what the files of the actuator share: its pods (entries) and places,
 * under one lock.
 *
 * The lock is over everything that changes; it is never held across a call, a
 * write or a wait.  Functions that need it say so with REQUIRES(act_state), and
 * clang checks them; those that release it for a while, so that what was read
 * before may have changed, say that in a comment.  A place has a thread that
 * probes it and lists what is there (prober.h), and up to PLACE_WORKERS others
 * while there is something to do (worker.h), each with a connection of its own,
 * so that a slow call never looks like a card that does not answer. */
#ifndef BIGA_ADVERTISER_ACT_CORE_STATE_H
#define BIGA_ADVERTISER_ACT_CORE_STATE_H

#include <pthread.h>
#include <string.h>

#include "advertiser/act/card/card.h"
#include "advertiser/act/card/health.h"
#include "advertiser/act/card/pod_dir.h"
#include "advertiser/act/machine/machine.h"
#include "advertiser/act/pod/intents.h"
#include "advertiser/act/pod/orphans.h"
#include "advertiser/act/pod/rights.h"
#include "lib/base/thread_safety.h"
#include "model/pod/podspec.h"

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

struct pod_entry {
    struct intent *intent;
    struct podspec *spec; /* NULL: cannot be read any more */
    struct machine m;
    bool busy;        /* somebody is at a step of it, without the lock */
    bool dropped;     /* not in the table any more; freed when not busy */
    bool configured;  /* its card is, for the sandbox that is to come */
    bool uses;        /* the card, when card_setup_note_use() was there last */
    bool stirred;     /* an event was about it, and no list since */
    bool stop_saved;  /* intent->stop and its grace are written down */
    bool met;         /* it was listed once since it is in the table */
    int64_t due_ms;   /* when to look at it again */
    int64_t acted_ms; /* lists that were begun before are of no use */
    int64_t await_ms; /* since when its end waits for the helper; 0 not so */
    uint64_t version;
};

/* What the thread of events has to say about a place. */
struct place_events {
    bool none;          /* its runtime has no events */
    bool live;          /* they come: lists are to make sure */
    bool deaf;          /* not all of them come: lists as without them */
    int64_t stirred_ms; /* the last that calls for a list; 0 none */
    int64_t missed_ms;  /* something had changed without one; 0 not so */
    int64_t retry_ms;   /* no new stream before */
    unsigned failures;  /* of streams, in a row */
    unsigned wakes;     /* that are left, as of: */
    int64_t wakes_ms;
};

struct place {
    struct actuator *a;
    struct act_place desc;
    unsigned generation; /* of `desc`: connections of before are closed */
    bool present, drained;
    bool swept;       /* all of ours that is on it was listed */
    bool unread;      /* it was lost, and not listed since */
    unsigned n_lives; /* times it came, or came back after it was lost */
    unsigned n_turns; /* times somebody ended to prepare it */
    unsigned n_freed; /* times somebody ended to use it */
    struct health health;
    char reason[ACT_MESSAGE_MAX];
    char runtime[CRI_TEXT_MAX];
    struct orphans orphans;
    size_t n_spared, n_spared_running; /* listed last: of pods that are spared
                                        * and not written down */
    struct place_events events;
    int64_t list_ms;   /* the next list */
    int64_t lonely_ms; /* since when its helper has nothing to do */
    bool sweeping;     /* somebody is at its leftovers */
    int64_t sweep_ms;  /* when they are tried again; 0 at once */
    char sweep_uid[ACT_UID_MAX + 1]; /* the last that was; "" from the first */
    char removing[ACT_UID_MAX + 1];  /* the one that is being tried; "" none */
    bool prober;                     /* its thread runs */
    unsigned n_workers, n_idle;
    pthread_cond_t wake;  /* of the prober */
    pthread_cond_t work;  /* of the workers */
    pthread_mutex_t prep; /* one at a time configures the card; before: */
    pthread_mutex_t vfs;  /* its virtual functions, which are others' to use,
                           * do not change meanwhile */
};

/* The folder of a pod that is gone, which could not be removed there. */
struct leftover_dir {
    char place[ACT_NAME_MAX + 1], uid[ACT_UID_MAX + 1];
};

struct actuator {
    char *dir, *cluster, *node, *boot_id, *card_dir, *helper_image;
    struct pod_dirs dirs; /* of the two */
    char *sysfs, *hooks_dir;
    struct rights rights;
    int64_t orphan_grace_ms, probe_ms, lost_ms, sweep_ms;
    void (*changed)(void *ctx);
    void *ctx;

    struct intents *intents;
    pthread_mutex_t saving; /* before `lock`: rows are saved in the order in
                             * which they were taken */
    pthread_mutex_t lock;   /* act_lock(); over all that changes */
    void *(*worker)(void *place); /* the thread of a worker: place_wake() */
    pthread_cond_t news; /* `version` has grown, or a thread has ended */
    uint64_t version;
    int64_t trim_ms; /* when memory is given back next */
    bool fed;      /* orphans may go: whoever says what is wanted has said so */
    char **spared; /* UIDs, in order: wanted, and not written down yet */
    size_t n_spared;
    bool placed; /* it is known which places there are */
    bool stopping;
    unsigned n_threads;
    bool has_ended;
    pthread_t ended; /* the last one that has; it is to be joined */
    struct pod_entry **entries;
    size_t n_entries, cap_entries;
    struct place *places[PLACES_KEPT];
    size_t n_places;
    struct grpc_hub *events; /* NULL: there is no thread for them */
    char **drained;          /* names, also of places that are not there */
    size_t n_drained;
    struct leftover_dir *leftovers;
    size_t n_leftovers, cap_leftovers;
};

static inline bool pod_entry_is_on(const struct pod_entry *e,
                                   const struct place *p)
{
    return strcmp(e->intent->place, p->desc.name) == 0; /* never change */
}

/* Stands for the lock of the actuator, of which a process has one. */
extern struct lock_role act_state;
#define LOCKED REQUIRES(act_state) /* of functions of one file */

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
