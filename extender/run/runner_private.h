/* What the files of the runner share. */
#ifndef BIGA_EXTENDER_RUN_RUNNER_PRIVATE_H
#define BIGA_EXTENDER_RUN_RUNNER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "extender/app/app_metrics.h"
#include "extender/run/pod_store.h"
#include "extender/run/runner.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"
#include "lib/base/strmap.h"

struct runner {
    const struct pod_store *store;
    pthread_t thread;
    bool started;
    /* the thread's alone */
    struct strmap stuck; /* struct stuck by key */
    struct strmap waits; /* struct wait by uid */
    uint64_t round;      /* counts: a look that tries all units, or several
                          * which, one after the other, do */
    bool resumes;        /* the last look has not tried all units: */
    int64_t priority;    /* the next goes on with this one */
    uint64_t number;
    atomic_ulong tries; /* the sum of look.tries, for tests */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* something to do */
    pthread_cond_t idle;  /* a look is over */
    bool dirty, looking, stopping;
};

/* A pod, where it is, and what its node says of it. */
struct member {
    struct applied_pod *pod;
    const struct allocation *place; /* NULL: none */
    struct node_reports_pod told;
    bool changing; /* a change of it is about to be posted */
};

/* Pods of one job, or a pod alone. */
struct group {
    struct member *members; /* by pair, host pods first, then as applied */
    size_t n;
    int32_t size; /* pairs that are planned together */
};

/* What is to be placed, one after the other. */
struct unit {
    struct group group; /* members that have a place already are passed over */
    int64_t priority;
    uint64_t number;
};

/* What need not be found out again about a pod that waits. */
struct wait {
    char uid[APPLIED_UID_SIZE];
    uint64_t round;   /* the last one that has seen it wait */
    uint64_t configs; /* its spec was checked with these; 0 not yet */
    bool is_right;
    uint32_t cores, memory_mib; /* of each card, that it had no place with */
    uint64_t no_place; /* the snapshot's news when it had none, and one; 0 not
                        * tried */
    uint8_t runs;      /* what it asked of nodes then */
};

/* One look at everything. */
struct look {
    struct runner *r;
    struct pod_set *set;
    struct snapshot *snapshot;
    struct member *members;
    size_t n_members;
    struct unit *units;
    size_t n_units, units_cap;
    struct pod_change *changes; /* of the group at hand */
    size_t n_changes, changes_cap;
    struct pod_report *reports; /* that are to be told */
    size_t n_reports, reports_cap;
    uint64_t configs; /* changes with what ConfigMaps and Secrets there are */
    unsigned tries;   /* pods that were held against all nodes */
    bool acted;       /* something is different now: look again */
    bool failed;      /* the store did not take it: try again later */
    int64_t due_ms;   /* look again then; INT64_MAX: no need */
};

/* One look; when to look again: 0 is at once, and so it is when it has done
 * something.  The runner's thread alone. */
int64_t runner_look(struct runner *r, bool *ret_acted);
/* The runner is to end: begin nothing more. */
bool runner_is_stopping(struct runner *r);

bool member_is_over(const struct member *m);
/* It has a place, and its node was never told of it. */
bool member_never_began(const struct look *l, const struct member *m);
/* Its job is named by it, and is no service. */
bool member_has_job(const struct member *m);

#define NOT_UNDERSTOOD "NotUnderstood" /* see applied_pod.fault */
/* What is to be done about one. */
void fault_text(const struct applied_pod *pod,
                char ret_text[APPLIED_MESSAGE_MAX + 1]);

/* --- runner_end.c: how lives end --- */

/* A job of which a pod, for a reason, cannot run is over, as a whole; to be
 * posted. */
void look_tear_down(struct look *l, const struct group *g,
                    const struct member *cause, const char *why);
/* Post the changes: all of them or none, in parts when there are too many. */
void look_post(struct look *l);
/* Write down what of the group is over, and follow what was. */
void look_end(struct look *l, const struct group *g);

/* --- runner_roll.c --- */

/* Of each service that was applied anew, the next pod is ended for what comes
 * in its place. */
void look_roll(struct look *l);

/* --- runner_place.c --- */

/* What of the group is pending joins the units to be placed, or is told what
 * it waits for. */
void look_pending(struct look *l, const struct group *g);
/* Place the units: of very many, the next look goes on with the rest, once it
 * has tried the first of them again. */
void look_place(struct look *l);

/* --- shared --- */

/* Say what was told, see look_tell(). */
void look_flush(struct look *l);
/* Tell how a pod fares that no node speaks of; with look_flush(), at last. */
void look_tell(struct look *l, const struct member *m, enum pod_state state,
               const char *reason, const char *message);

#endif
