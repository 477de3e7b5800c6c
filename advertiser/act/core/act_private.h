/* What the parts of the actuator share.
 *
 *   actuator.c  what is asked of it           entries.c the table of pods
 *   place.c     a place: probe and lists      views.c   what others see
 *   work.c      doing steps, orphans          config.c  pods as the CRI has them
 *   files of a pod: deliver.c                 calls.c   on the caller's thread
 *   helper.c    the program on each card      leave.c   places that are gone
 *   events.c    what runtimes tell by themselves
 *   kept.c      logs of pods that are gone
 *   leftovers.c their folders that could not be removed
 *
 * One lock is over everything that changes; it is never held across a call,
 * a write or a wait.  A place has a thread that probes and lists, and up to
 * PLACE_WORKERS others that come when there is something to do, each with a
 * connection of its own, so that a slow call never looks like a dead card. */
#ifndef BIGA_ADVERTISER_ACT_CORE_ACT_PRIVATE_H
#define BIGA_ADVERTISER_ACT_CORE_ACT_PRIVATE_H

#include <pthread.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/card/health.h"
#include "advertiser/act/card/labels.h"
#include "advertiser/act/card/pod_dir.h"
#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/events.h"
#include "advertiser/act/machine/inventory.h"
#include "advertiser/act/machine/machine.h"
#include "advertiser/act/pod/intents.h"
#include "advertiser/act/pod/orphans.h"
#include "advertiser/act/pod/rights.h"
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

struct entry {
    struct intent *intent;
    struct podspec *spec; /* NULL: cannot be read any more */
    struct machine m;
    bool busy;        /* somebody is at a step of it, without the lock */
    bool dropped;     /* not in the table any more; freed when not busy */
    bool configured;  /* its card is, for the sandbox that is to come */
    bool uses;        /* the card, when deliver_look() was there last */
    bool stirred;     /* an event was about it, and no list since */
    bool stop_saved;  /* intent->stop and its grace are written down */
    bool met;         /* it was listed once since it is in the table */
    int64_t due_ms;   /* when to look at it again */
    int64_t acted_ms; /* lists that were begun before are of no use */
    int64_t await_ms; /* since when its end waits for the helper; 0 not so */
    uint64_t version;
};

struct place {
    struct actuator *a;
    struct act_place what;
    unsigned generation; /* of `what`: connections of before are closed */
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
    pthread_mutex_t lock;
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
    struct entry **entries;
    size_t n_entries, cap_entries;
    struct place *places[PLACES_KEPT];
    size_t n_places;
    struct grpc_hub *events; /* NULL: there is no thread for them */
    char **drained;          /* names, also of places that are not there */
    size_t n_drained;
    struct leftover *leftovers;
    size_t n_leftovers, cap_leftovers;
};

/* --- entries.c: with the lock held ------------------------------------------ */

/* Takes the intent. */
struct entry *entry_add(struct actuator *a, struct intent *intent);
void entry_drop(struct actuator *a, struct entry *p);
void entry_release(struct entry *p); /* at the end of `busy` */
struct entry *entry_by_uid(struct actuator *a, const char *uid);
/* The one that is not gone, else any. */
struct entry *entry_by_name(struct actuator *a, const char *namespace,
                            const char *name);
bool entry_is_ours(const struct entry *p); /* a helper */
/* A host's pod that somebody else runs. */
bool entry_is_virtual(struct actuator *a, const struct entry *p);
bool entry_is_ready(struct actuator *a, const struct entry *p);
bool entry_is_over(const struct entry *p);
enum machine_hold entry_hold(struct actuator *a, const struct entry *p);
/* The host pod of its pair was up, and has ended. */
bool entry_pair_is_over(struct actuator *a, const struct entry *e);
/* Others see the change; pods of its pair are looked at. */
void entry_publish(struct actuator *a, struct entry *p);
void entry_stop(struct actuator *a, struct entry *p, int64_t grace_s);
/* Without the lock, of one that is busy: durable when it returns 0.  One that
 * was forgotten meanwhile is not written again. */
int entry_save(struct actuator *a, struct entry *p, struct error *err);
/* Without the lock: of whoever has that UID, if anybody.  When it cannot, the
 * next step tries it again. */
int entry_save_uid(struct actuator *a, const char *uid, struct error *err);
/* A copy of an entry's intent (of all but what it points to); `saving` is
 * held, `lock` is not. */
int entry_write(struct actuator *a, const struct intent *copy,
                struct error *err);

/* --- place.c: with the lock held ----------------------------------------- */

struct place *place_find(struct actuator *a, const char *name);
/* Makes one that is not there yet; its threads run.  NULL: too many. */
struct place *place_set(struct actuator *a, const struct act_place *what);
void place_gone(struct place *p);
void place_free(struct place *p);
bool place_works(const struct place *p); /* steps may be begun there */
enum act_health place_health(const struct place *p);
/* There may be something to do. */
void place_wake(struct place *p);
void act_notify(struct actuator *a);
/* A thread with `f`; false when there can be none. */
bool act_thread(struct actuator *a, void *(*f)(void *), void *arg);
/* The last of it: with the lock held, which is released. */
void act_thread_ends(struct actuator *a);

/* --- leave.c --------------------------------------------------------------- */

/* Pods that are to end on places that have left are gone.  Lock held, released
 * within; false when that could not be written down. */
bool leave_places(struct actuator *a);
/* Lock held: copies, in order. */
void leave_spare(struct actuator *a, const char *const *uids, size_t n);
/* Lock held: what is of that pod there is nobody's. */
bool leave_is_orphan(const struct place *p, const char *uid);

/* --- work.c ---------------------------------------------------------------- */

/* The thread of a worker; `arg` is the place. */
void *work_thread(void *arg);
/* When the next step of a pod there, or an orphan, is due. Lock held. */
int64_t work_due(struct place *p);
/* Pods of the host that somebody else runs. Lock held, released within. */
void work_virtual(struct place *p);

/* --- config.c -------------------------------------------------------------- */

struct config_sandbox {
    struct arena arena;
    struct cri_sandbox_config cri;
};
/* Without the lock: what is read of a pod does not change. */
void config_sandbox(const struct actuator *a, const struct entry *p,
                    uint32_t attempt, struct config_sandbox *ret_config);
void config_sandbox_fini(struct config_sandbox *c);
void config_container(const struct actuator *a, const struct entry *p,
                      size_t unit, uint32_t attempt,
                      struct config_sandbox *within,
                      struct cri_container_config *ret_config);
bool config_wants_peer(const struct cri_container_config *config);
/* On a card its pair's other side is where we are, unless somebody knows
 * better: `address` is ours, "" not known. */
void config_set_peer(struct cri_container_config *config, const char *address,
                     struct config_sandbox *within);
/* Files and logs of a pod, there: on the host in our own folder, which alone
 * we are sure to be allowed to write to. */
char *config_pod_dir(const struct actuator *a, const struct entry *p);
/* Objects are found by these; `list` has room for two. */
struct cri_pairs config_ours(const struct actuator *a, struct cri_pair list[2]);

/* --- deliver.c, helper.c: without the lock --------------------------------- */

/* Directories and files of a pod, before its sandbox; and their end: a reason
 * in `r` says that who was asked said no, without one nobody answered. */
void deliver_files(struct place *at, const struct connection *c,
                   struct entry *e, struct machine_result *r,
                   struct error *err);
void deliver_end(struct place *at, const struct connection *c, struct entry *e,
                 struct machine_result *r, struct error *err);
/* Has it volumes?  On a card they are the helper's to make. */
bool deliver_needed(const struct entry *e);
/* Lock held, after each step of a pod: when it uses the card no more, who waits
 * for that tries again. */
void deliver_look(struct place *at, struct entry *e);
/* Lock held: somebody else uses the card no more. */
void deliver_freed(struct place *at);
/* The card is configured: virtual functions, the operator's hook. */
void deliver_card(struct place *at, const struct act_place *what,
                  struct entry *p, struct machine_result *r, struct error *err);

/* Does a pod have to wait for the card's helper?  Lock held; may be released
 * for a while to make it. */
bool helper_awaited(struct place *at, struct entry *p);
/* Lock held; may be released for a while: it ends when it is of no use. */
void helper_tend(struct place *p);
/* Lock held: the helper has failed, or the end of `e` has waited for it long
 * enough. */
bool helper_is_given_up(struct actuator *a, const struct entry *e);
/* Lock held: its running container, "" none. */
void helper_id(struct actuator *a, const char *place,
               char ret_id[CRI_ID_MAX + 1]);

/* --- views.c: with the lock held ------------------------------------------- */

void view_fill_pod(struct actuator *a, const struct entry *p,
                   struct act_pod_view *ret_view);
void view_fill_place(struct place *p, struct act_place_view *ret_view);

#endif
