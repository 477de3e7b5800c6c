/* wake_pace - what the thread that wakes pods (waker.h) does next: judge those that
 * wait, one after the other, because something has changed, or wake one that
 * has room.  Pure: no clock, no pods.
 *
 * Neither waits for the other.  Judging takes a fifth of one CPU at most: after
 * a round, rest for four times as long as judging itself took, without the
 * calls in between and the waiting for their turn.  Calls are spaced. */
#ifndef BIGA_EXTENDER_LEADER_WAKE_PACE_H
#define BIGA_EXTENDER_LEADER_WAKE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WAKE_PACE_GRACE_MS = 200, /* what Kubernetes has told as well is tried again
                          * within that, unwoken */
    WAKE_PACE_REST = 4,
    WAKE_PACE_PER_SECOND = 20, /* calls */
    WAKE_PACE_LOOK_MS =
        5, /* between two looks at whom to call: time to judge */
};

struct wake_pace {
    bool news;        /* heard since the last round began */
    bool judging;     /* a round is under way */
    int64_t spent_ns; /* on judging, since the last round ended */
    int64_t judge_ms; /* when the next round may begin */
    int64_t call_ms;  /* when the next call may be made */
    int64_t ripe_ms;  /* when there is somebody to wake; INT64_MAX: nobody */
};

void wake_pace_init(struct wake_pace *p);

enum wake_pace_step {
    WAKE_PACE_WAIT,  /* until `*ret_due_ms`, or until something is heard */
    WAKE_PACE_BEGIN, /* a round: wake_pace_begin() */
    WAKE_PACE_JUDGE, /* the next pod of the round, or wake_pace_end() after the last */
    WAKE_PACE_WAKE, /* who is first, or wake_pace_none() when nobody is to be now */
};
enum wake_pace_step wake_pace_next(const struct wake_pace *p, int64_t now_ms,
                                   int64_t *ret_due_ms);

/* Something has changed; the first change begins the grace. */
void wake_pace_hear(struct wake_pace *p, int64_t now_ms);
void wake_pace_begin(struct wake_pace *p);
/* One pod was judged, in that time; it may be woken then, or INT64_MAX. */
void wake_pace_judged(struct wake_pace *p, int64_t took_ns, int64_t ripe_ms);
void wake_pace_end(struct wake_pace *p, int64_t now_ms);
/* Somebody is looked at once more, and then, maybe, a call begins. */
void wake_pace_look(struct wake_pace *p, int64_t now_ms);
void wake_pace_call(struct wake_pace *p, int64_t now_ms);
/* Nobody is to be woken before then; INT64_MAX: nobody at all. */
void wake_pace_none(struct wake_pace *p, int64_t ripe_ms);
/* Nothing at all is to be done before then: somebody else leads. */
void wake_pace_idle(struct wake_pace *p, int64_t until_ms);

#endif
