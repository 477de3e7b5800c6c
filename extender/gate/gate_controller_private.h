/* What the files of the gate controller share. */
#ifndef BIGA_EXTENDER_GATE_GATE_CONTROLLER_PRIVATE_H
#define BIGA_EXTENDER_GATE_GATE_CONTROLLER_PRIVATE_H

#include <pthread.h>

#include "extender/gate/gate_claims.h"
#include "extender/gate/gate_controller.h"
#include "extender/gate/gate_place.h"
#include "extender/gate/gate_pods.h"
#include "lib/base/strmap.h"
#include "lib/kube/client.h"

/* What is remembered of a unit that waits. */
struct gate_note {
    char key[JOB_LEASE_KEY_MAX];
    uint64_t round; /* the last one that has seen it */
    /* in which it had no place; 0: not tried */
    uint64_t snapshot, fit, claims;
    char *text;          /* what it waits for, as it was told; or NULL */
    struct strmap avoid; /* struct gate_avoided by node */
    struct strmap
        evicted;      /* char *uid of pods that were, and are still there */
    int64_t evict_ms; /* not to look for others before */
    char *evict_text; /* what was said then; or NULL */
    int64_t anew_ms;  /* not to be planned anew before */
    unsigned anew;    /* how often it was, in a row */
};

struct gate_avoided {
    char node[DEMAND_NAME_MAX + 1];
    int64_t until_ms;
};

/* Claims of a pod in whose place it names these. */
struct gate_unnamed {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char uid[DEMAND_UID_MAX + 1];
    struct gate_pinned *pinned;
    size_t n;
    int64_t due_ms;
};

struct gate_controller {
    struct gate_config config;
    struct gate_place_config place;
    pthread_t thread;
    /* the thread's alone */
    struct kube_client *client;
    struct http_answer answer;
    struct strmap notes; /* struct gate_note by key of the unit */
    uint64_t round;
    int64_t spent_ns; /* of this round, on units that found no place */
    /* by due_ms: claims that their pods do not name any more */
    struct gate_unnamed *unnamed;
    size_t n_unnamed, unnamed_cap;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct gate_pods *pods;
    struct strmap opening; /* struct gate_opening by uid */
    struct strmap told;    /* struct gate_told by key of the unit */
    bool listed, dirty, stopping;
    int64_t due_ms;
};

/* A PATCH of a pod is on its way, or the watch has not shown it yet. */
struct gate_opening {
    char uid[DEMAND_UID_MAX + 1];
};

/* What people are told of a unit, and when its gates may be tried again. */
struct gate_told {
    char key[JOB_LEASE_KEY_MAX];
    char *text;        /* what it waits for; or NULL */
    bool judged;       /* no node will do */
    unsigned failures; /* to open them, in a row */
    int64_t not_before_ms;
};

/* --- gate_controller_notes.c --- */

/* The note of a unit, which this round has seen; made when there is none. */
struct gate_note *gate_note_of(struct gate_controller *g, const char *key);
/* The note that has the nodes which the unit avoids. */
struct gate_note *gate_avoiding_of(struct gate_controller *g,
                                   const struct gate_unit *unit,
                                   struct gate_note *note);
/* Forget the nodes that are avoided no longer. */
void gate_note_trim(struct gate_note *n, int64_t now_ms);
/* Forget units that have nothing to wait for any more: what comes under their
 * name later is another, but for the nodes that it avoids. */
void gate_notes_forget(struct gate_controller *g);
/* What the unit waits for: its closed pods are told once.  `judged`: no node
 * will do. */
void gate_tell(struct gate_controller *g, const struct gate_unit *unit,
               struct gate_note *note, const char *text, bool judged);
/* The same for who asks, without an Event. */
void gate_tell_quietly(struct gate_controller *g, const char *key,
                       const char *text, bool judged);
/* With the lock; made when there is none. */
struct gate_told *gate_told_of(struct gate_controller *g, const char *key);
void gate_notes_fini(struct gate_controller *g);

/* --- gate_controller_open.c --- */

/* Pin the claims of these pods of a unit, then open their gates, but for those
 * that follow a claim of their pair (gate_unit_claimer()); takes what `placing`
 * has.  -errno: a claim cannot be pinned, and all places are given back. */
int gate_open_all(struct gate_controller *g, const struct gate_unit *unit,
                  struct gate_placing *placing, struct error *err);

/* --- gate_controller_again.c --- */

/* kube-scheduler refuses pods of the unit: see to it that it is planned anew.
 * False: there is nothing to be done but wait. */
bool gate_plan_anew(struct gate_controller *g, const struct gate_unit *unit,
                    struct gate_note *note, struct str *text);

/* --- gate_controller_claims.c --- */

/* Make claims that are pinned to the devices of its place, the caller's array;
 * nobody names them yet. */
int gate_make_claims(struct gate_controller *g,
                     const struct gate_placed *placed,
                     struct gate_pinned **ret_pinned, size_t *ret_n,
                     struct error *err);
/* Have the pod's status name them; takes the array when it does. */
int gate_name_claims(struct gate_controller *g,
                     const struct gate_placed *placed,
                     struct gate_pinned **pinned, size_t n, struct error *err);
/* Both for a pod whose gate is closed, and delete the claims in whose place
 * these are: a resourceclaim controller that has missed that the pod names
 * others would name them again, and kube-scheduler then allocate what has no
 * pins. */
int gate_pin_claims(struct gate_controller *g, const struct gate_placed *placed,
                    struct error *err);
/* Delete the claims in whose place these are to be, of a pod whose gate is open:
 * kube-scheduler cannot bind it any more by what it was given before.  -EBUSY: one
 * is allocated, or about to be: the pod stays where it was. */
int gate_withdraw_claims(struct gate_controller *g, const struct demand *pod,
                         struct gate_pinned *pinned, size_t n,
                         struct error *err);
/* Delete claims that pods do not name any more and that were not heard of when
 * they named others.  Returns when to look again. */
int64_t gate_delete_unnamed(struct gate_controller *g);
void gate_unnamed_fini(struct gate_controller *g);
/* Can it be planned anew in place?  None of its pinned claims is allocated. */
bool gate_is_movable(struct gate_controller *g, const struct gate_pod *pod);

/* --- gate_controller_evict.c --- */

/* Evict pods of lower priority so that the unit has room, if that helps; adds to
 * `text` what was done.  Returns when to look again. */
int64_t gate_make_room(struct gate_controller *g, struct gate_note *note,
                       const struct gate_no_place *no_place, struct str *text);

/* --- shared --- */

/* This replica leads, for as long as a call may take. */
bool gate_may_write(const struct gate_controller *g);
/* With the lock: look soon, but for a rest that is taken. */
void gate_changed(struct gate_controller *g);

/* What a DELETE says: only the object of this uid, and of this
 * resourceVersion ("": any). */
void gate_write_delete(const char *uid, const char *version, struct str *out);
/* A call of this controller's about a pod; `tail` is "/eviction" or "". */
int gate_call(struct gate_controller *g, const char *method,
              const struct demand *pod, const char *tail, enum kube_body type,
              const struct str *body, struct error *err);

#endif
