/* history_event - one thing that happened to a pod, job, node or card. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_EVENT_H
#define BIGA_EXTENDER_HISTORY_HISTORY_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "model/pod/demand.h"

/* Both are stored as numbers: new ones are added at the end. */
enum history_kind {
    HISTORY_POD,
    HISTORY_JOB,
    HISTORY_NODE,
    HISTORY_CARD,
    HISTORY_KINDS
};
const char *history_kind_name(enum history_kind kind); /* "pod" … */

enum history_reason {
    HISTORY_PLANNED,   /* job: places are held for all that it lacks */
    HISTORY_HELD,      /* job: places are held again */
    HISTORY_BOUND,     /* pod: it has a place; job: all of its pairs have */
    HISTORY_REFUSED,   /* pod: nothing fits, or it may not run */
    HISTORY_STARTED,   /* pod: it is ready */
    HISTORY_LOST,      /* card: withdrawn; pod: its card is lost */
    HISTORY_RECOVERED, /* card, pod */
    HISTORY_DRAINED,   /* card: an operator wants nothing new there */
    HISTORY_UNDRAINED,
    HISTORY_ENDED, /* pod: over; job: none of its pods has a place any more */
    HISTORY_FAILED,
    HISTORY_RELEASED, /* pod: its place was given back; job: held places were */
    HISTORY_NODE_READY,
    HISTORY_NODE_STALE,
    HISTORY_NODE_INCOMPLETE,
    HISTORY_NODE_LOST,
    HISTORY_NODE_DOUBTFUL,
    HISTORY_NODE_GONE, /* nothing is published for it any more */
    HISTORY_CARD_ADDED,
    HISTORY_CARD_GONE,
    HISTORY_EVICTED,  /* pod */
    HISTORY_DEGRADED, /* pod: it has less than it was promised */
    HISTORY_STOPPED,  /* pod: it was ready, and is not any more */
    HISTORY_REASONS
};
const char *history_reason_name(enum history_reason reason); /* "Planned" … */

/* HISTORY_KINDS or HISTORY_REASONS when it is none. */
enum history_kind history_kind_parse(const char *name);
enum history_reason history_reason_parse(const char *name);

enum {
    HISTORY_MESSAGE_MAX = 1024, /* bytes; the rest is dropped */
    /* of what an event is about: "NS/NAME", "NODE", "NODE/CARD" */
    HISTORY_OBJECT_MAX = DEMAND_NAMESPACE_MAX + DEMAND_NAME_MAX + 2,
};

/* Texts are borrowed; NULL is "". */
struct history_event {
    uint64_t seq;    /* of the stored one, which grows */
    int64_t time_ms; /* since 1970; 0: when it is posted */
    enum history_kind kind;
    enum history_reason reason;
    const char *object; /* of `kind`, as above */
    const char *node;   /* where it happened */
    const char *job;    /* "NS/NAME" that it belongs to */
    int32_t pair;       /* of the job; -1: none */
    const char *message;
    /* Of a pod, as it was found at a start: told only when it follows on what
     * was told of the pod last, and no loss when there is no room. */
    bool again;
    uint32_t count;  /* how often; 0 counts as 1 */
    int64_t last_ms; /* when it was counted last; 0: as time_ms */
};

/* Does an event of this object name `object` as its kind would write it? */
bool history_object_is_valid(enum history_kind kind, const char *object);

/* As an object of JSON: {"seq","time","kind","namespace","name","node","card",
 * "job","pair","reason","message","count","last"}; what it does not have is
 * absent. */
void history_event_write(const struct history_event *e, struct str *out);

#endif
