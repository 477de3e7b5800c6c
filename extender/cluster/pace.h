/* pace - what the thread that wakes pods (waker.h) does next: judge those that
 * wait, one after the other, because something has changed, or wake one that
 * has room.  Pure: no clock, no pods.
 *
 * Neither waits for the other.  Judging takes a fifth of one CPU at most: after
 * a round, rest for four times as long as judging itself took, without the
 * calls in between and the waiting for their turn.  Calls are spaced. */
#ifndef BIGA_EXTENDER_CLUSTER_PACE_H
#define BIGA_EXTENDER_CLUSTER_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PACE_GRACE_MS = 200, /* what Kubernetes has told as well is tried again
                          * within that, unwoken */
    PACE_REST = 4,
    PACE_PER_SECOND = 20, /* calls */
    PACE_LOOK_MS = 5,     /* between two looks at whom to call: time to judge */
};

struct pace {
    bool news;        /* heard since the last round began */
    bool judging;     /* a round is under way */
    int64_t spent_ns; /* on judging, since the last round ended */
    int64_t judge_ms; /* when the next round may begin */
    int64_t call_ms;  /* when the next call may be made */
    int64_t ripe_ms;  /* when there is somebody to wake; INT64_MAX: nobody */
};

void pace_init(struct pace *p);

enum pace_step {
    PACE_WAIT,  /* until `*ret_due_ms`, or until something is heard */
    PACE_BEGIN, /* a round: pace_begin() */
    PACE_JUDGE, /* the next pod of the round, or pace_end() after the last */
    PACE_WAKE,  /* who is first, or pace_none() when nobody is to be now */
};
enum pace_step pace_next(const struct pace *p, int64_t now_ms,
                         int64_t *ret_due_ms);

/* Something has changed; the first change begins the grace. */
void pace_hear(struct pace *p, int64_t now_ms);
void pace_begin(struct pace *p);
/* One pod was judged, in that time; it may be woken then, or INT64_MAX. */
void pace_judged(struct pace *p, int64_t took_ns, int64_t ripe_ms);
void pace_end(struct pace *p, int64_t now_ms);
/* Somebody is looked at once more, and then, maybe, a call begins. */
void pace_look(struct pace *p, int64_t now_ms);
void pace_call(struct pace *p, int64_t now_ms);
/* Nobody is to be woken before then; INT64_MAX: nobody at all. */
void pace_none(struct pace *p, int64_t ripe_ms);
/* Nothing at all is to be done before then: somebody else leads. */
void pace_idle(struct pace *p, int64_t until_ms);

#endif
