/* wake_pace - what the thread that wakes pods (waker.h) does next: judge one
 * waiting pod after the other, because something has changed, or wake one that
 * has room now.  Pure: no clock, no pods.
 *
 * Neither waits for the other.  Judging takes at most a fifth of one CPU: after
 * a round it rests for four times as long as judging took (calls made meanwhile
 * do not count).  Calls are spaced. */
#ifndef BIGA_EXTENDER_LEADER_WAKE_PACE_H
#define BIGA_EXTENDER_LEADER_WAKE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WAKE_PACE_GRACE_MS = 200, /* kube-scheduler tries pods again itself
                               * within that if Kubernetes told it */
    WAKE_PACE_REST = 4,
    WAKE_PACE_PER_SECOND = 20, /* calls */
    WAKE_PACE_LOOK_MS = 5,     /* between two looks for a pod to wake */
};

struct wake_pace {
    bool news;        /* something has changed since the last round began */
    bool judging;     /* a round is under way */
    int64_t spent_ns; /* on judging, since the last round ended */
    int64_t judge_ms; /* when the next round may begin */
    int64_t call_ms;  /* when the next call may be made */
    int64_t ripe_ms;  /* when a pod is to be woken; INT64_MAX: none */
};

void wake_pace_init(struct wake_pace *p);

enum wake_pace_step {
    WAKE_PACE_WAIT,  /* until `*ret_due_ms`, or until something is heard */
    WAKE_PACE_BEGIN, /* a round: wake_pace_begin() */
    WAKE_PACE_JUDGE, /* the round's next pod, or wake_pace_end() */
    WAKE_PACE_WAKE,  /* the first pod, or wake_pace_none() if there is none */
};
enum wake_pace_step wake_pace_next(const struct wake_pace *p, int64_t now_ms,
                                   int64_t *ret_due_ms);

/* Something has changed; the first change begins the grace. */
void wake_pace_hear(struct wake_pace *p, int64_t now_ms);
void wake_pace_begin(struct wake_pace *p);
/* A pod was judged, in that time; when it may be woken, or INT64_MAX: not. */
void wake_pace_judged(struct wake_pace *p, int64_t took_ns, int64_t ripe_ms);
void wake_pace_end(struct wake_pace *p, int64_t now_ms);
/* A pod is judged once more before it is woken. */
void wake_pace_look(struct wake_pace *p, int64_t now_ms);
void wake_pace_call(struct wake_pace *p, int64_t now_ms);
/* No pod is to be woken before then; INT64_MAX: none at all. */
void wake_pace_none(struct wake_pace *p, int64_t ripe_ms);
/* Nothing is to be done before then: another replica leads. */
void wake_pace_idle(struct wake_pace *p, int64_t until_ms);

#endif
