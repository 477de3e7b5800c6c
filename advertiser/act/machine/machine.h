/* machine - one pod on one place: from what is wanted, how far it is
 * (intents.h) and what was found there, the next step.  Pure: no I/O, no
 * clock but the given one, no thread.
 *
 *     for (;;) {
 *         machine_next(&m, now, &step);
 *         if (step.save)
 *             intents_save(…, m.intent);     // durable, then
 *         … do step.kind …
 *         machine_done(&m, &step, &result, now);
 *     }
 *
 * A step is announced in the intent (attempt + 1, no id) before it is done;
 * after a crash, a lost reply or a refusal the place is listed, and what is
 * found under the pod's UID is adopted: the newest sandbox if it lives, else
 * all are removed and the next attempt begins. */
#ifndef BIGA_ADVERTISER_ACT_MACHINE_MACHINE_H
#define BIGA_ADVERTISER_ACT_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/pod/intents.h"
#include "model/pod/podspec.h"

enum {
    MACHINE_CRASH_MIN_MS = 10000, /* before a container that ended comes back */
    MACHINE_CRASH_MAX_MS = 300000,
    MACHINE_CALM_MS = 600000,    /* after that long the back-off begins anew */
    MACHINE_RETRY_MIN_MS = 1000, /* after a step that failed */
    MACHINE_RETRY_MAX_MS = 60000,
    MACHINE_TRIES = 6,    /* of a pod that never ran, then it has failed; and
                           * of removing its files, then they are left */
    MACHINE_RESERVED = 4, /* times a name may be reserved for nothing found */
    MACHINE_FOUND_MAX = 256, /* objects of one pod; more are looked at later */
};

/* May a pod go from one state to the other? */
bool machine_may(enum act_state from, enum act_state to);

/* --- what is there ------------------------------------------------------ */

struct machine_sandbox {
    char id[CRI_ID_MAX + 1];
    uint32_t attempt;
    bool ready;
    int64_t retry_ms; /* the machine's: it could not be removed; again then */
};
struct machine_container {
    char id[CRI_ID_MAX + 1], sandbox_id[CRI_ID_MAX + 1];
    char name[INTENT_NAME_MAX + 1];
    uint32_t attempt;
    enum cri_container_state state;
    /* the machine's, kept from list to list: */
    bool made;   /* the call that made it was answered */
    bool told;   /* to end */
    bool looked; /* how it ended is noted, or it never ran: */
    bool never_ran;
    int64_t retry_ms; /* it could not be removed; again then */
};
/* All with our labels and the pod's UID. */
struct machine_found {
    struct machine_sandbox *sandboxes;
    struct machine_container *containers;
    size_t n_sandboxes, n_containers;
};
void machine_found_fini(struct machine_found *f);
/* Any sandbox or container: what may run does. */
bool machine_found_lives(const struct machine_found *f);
void machine_found_sandbox(struct machine_found *f,
                           const struct machine_sandbox *s);
void machine_found_container(struct machine_found *f,
                             const struct machine_container *c);

/* --- a pod -------------------------------------------------------------- */

/* One of its containers; init containers come first. */
struct machine_unit {
    const char *name, *image; /* of the podspec */
    enum podspec_pull pull;
    bool init;
    bool non_root; /* the image's user is to be looked at */
    struct intent_container *noted;
    /* forgotten at a restart: */
    enum machine_image { IMAGE_UNKNOWN, IMAGE_MISSING, IMAGE_PRESENT } has;
    bool pulled;        /* for this sandbox */
    bool looked;        /* at what is there: its user and
                         * architecture are known */
    int64_t uid;        /* of the image, -1 none */
    char username[64];  /* of the image, when it has no number; "" none */
    unsigned crashes;   /* in a row */
    unsigned reserved;  /* times its name was, for nothing found */
    unsigned refusals;  /* of its image, in a row */
    int64_t image_ms;   /* that is not looked at before */
    int64_t running_ms; /* since when it was seen to run; -1 */
    int64_t retry_ms;   /* not before */
};

/* What others make it wait for. */
enum machine_hold {
    MACHINE_GO,
    MACHINE_HOLD_BEGIN, /* actuator_begin() has not been called */
    MACHINE_HOLD_START, /* the xPU pods of its pair are not ready */
    MACHINE_HOLD_STOP,  /* the host pod of its pair is not gone */
};

struct machine {
    struct intent *intent;
    const struct podspec *spec; /* NULL: it is only to end */
    struct machine_unit *units;
    size_t n_units;
    struct machine_found found;
    const char *boot; /* of the place, "" not known: sandboxes of another boot
                       * are void */
    enum machine_hold hold;
    bool listed;   /* `found` is of after the last step */
    bool prepared; /* for the next sandbox */
    bool cleaned;
    bool left;         /* what was to be cleaned could not be: the reason and
                         * message stay, also when the pod is gone */
    unsigned refusals; /* of what was to be cleaned */
    unsigned failures; /* in a row */
    unsigned tries;    /* refusals before it ever ran */
    unsigned reserved; /* times its sandbox's name was, for nothing found */
    int64_t retry_ms;  /* no step before */
    int64_t stop_ms;   /* when its end began; -1 not yet */
    bool unsaved;      /* the next step is to save */
    bool learned;      /* ids that are not saved: before anything is removed */
    bool changed;      /* since the caller reset it: state, reason, … */
};

/* Both must outlive it; `boot` too. */
void machine_init(struct machine *m, struct intent *intent,
                  const struct podspec *spec, const char *boot);
void machine_fini(struct machine *m);
/* A list of after `m`'s last step: takes what is in `found`. */
void machine_see(struct machine *m, struct machine_found *found,
                 int64_t now_ms);

enum machine_kind {
    MACHINE_WAIT,    /* until step.due_ms, or something changes */
    MACHINE_LIST,    /* machine_see(), not machine_done() */
    MACHINE_PREPARE, /* the card, files, directories */
    MACHINE_LOOK_IMAGE,
    MACHINE_PULL,
    MACHINE_RUN_SANDBOX,
    MACHINE_CREATE,
    MACHINE_START,
    MACHINE_LOOK, /* how a container ended */
    MACHINE_STOP, /* a container; grace 0 kills it */
    MACHINE_REMOVE,
    MACHINE_STOP_SANDBOX,
    MACHINE_REMOVE_SANDBOX,
    MACHINE_CLEAN, /* files and logs, when nothing else is left */
};
const char *machine_kind_name(enum machine_kind kind); /* "run-sandbox" … */

struct machine_step {
    enum machine_kind kind;
    bool save;        /* the intent is to be durable first */
    size_t unit;      /* LOOK_IMAGE, PULL, CREATE, START; SIZE_MAX none */
    uint32_t attempt; /* RUN_SANDBOX, CREATE */
    uint32_t grace_s; /* STOP */
    char id[CRI_ID_MAX + 1];         /* what is looked at, stopped, removed */
    char sandbox_id[CRI_ID_MAX + 1]; /* CREATE: where */
    uint32_t sandbox_attempt;        /* CREATE */
    int64_t due_ms;                  /* WAIT; INT64_MAX never */
};
void machine_next(struct machine *m, int64_t now_ms,
                  struct machine_step *ret_step);

/* How a step ended. */
struct machine_result {
    int e;                          /* 0 or -errno as in cri.h */
    int code;                       /* of gRPC; -1 none */
    bool permanent;                 /* PREPARE, CLEAN: it will not do better */
    bool waits;                     /* PREPARE: for others, however long */
    const char *reason;             /* PREPARE: its word; NULL the step's own */
    const char *text;               /* of the error, "" none */
    const char *id;                 /* RUN_SANDBOX, CREATE: what was made */
    bool present;                   /* LOOK_IMAGE: */
    int64_t uid;                    /* of the image, as in cri.h */
    const char *username;           /* NULL: none */
    enum cri_container_state state; /* LOOK: */
    int32_t exit_code;
    const char *exit_reason;
};
void machine_done(struct machine *m, const struct machine_step *step,
                  const struct machine_result *result, int64_t now_ms);

/* The state, reason and message that others see; `changed` when it differs.
 * A move that machine_may() forbids does not happen. */
void machine_move(struct machine *m, enum act_state state);
void machine_say(struct machine *m, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void machine_quiet(struct machine *m); /* no reason any more */

/* All its containers run (those that have ended well, and are not to come
 * back, count). */
bool machine_is_ready(const struct machine *m);
/* Nothing more will happen to it unless it is stopped or forgotten. */
bool machine_is_over(const struct machine *m);

#endif
