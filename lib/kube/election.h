/* election - which of several holds a Lease (lease.h), and what one candidate
 * does next.  Pure: the clock is the caller's. */
#ifndef BIGA_LIB_KUBE_ELECTION_H
#define BIGA_LIB_KUBE_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/kube/lease.h"

/* Never do two hold at once, as long as each one's clock goes on while its
 * process does not, and none is wrong in rate by more than a fifth.  A holder
 * stops `deadline_ms` after it began its last renewal; nobody takes a lease
 * that he has not seen unchanged for `duration_ms`.  Who made one that was not
 * there holds it only after as long, because whoever deleted the one before
 * may have deleted a holder's; a PUT therefore names the uid, without which
 * the API server makes a deleted Lease anew.  Only one that its holder gave
 * back (no holder, duration 1 s, as Kubernetes' own components do it) is free
 * at once. */

/* What the replicas of the extender go by.  A holder that dies is followed
 * within
 *
 *     RENEW / 2    until others look, and see its last renewal
 *   + CALL         that look
 *   + DURATION     unchanged
 *   + CALL         the write that takes it
 *   = 11.5 s       when each call takes as long as it may; 8.6 s when none is
 *                  slow
 *
 * and the new one has then the rest of TAKEOVER to list what is bound and to
 * be found ready (a probe each second).  Never two: a holder acts for DEADLINE
 * after it began its last renewal, at the rate of its own clock, which is less
 * than DURATION by the clock of another as long as none is wrong by more than
 * a fifth (5 s / 0.8 <= 8 s / 1.2).  A lease that is written with a longer duration, as
 * by an older replica, is waited for as long as it says. */
enum {
    ELECTION_DURATION_MS = 8000,
    ELECTION_RENEW_MS = 1000,
    ELECTION_DEADLINE_MS = 5000,
    ELECTION_CALL_MS = 1500, /* one that hangs leaves time for another */
    ELECTION_TAKEOVER_MS = 15000,
};

struct election_config {
    const char *identity; /* different for every process */
    int64_t duration_ms;  /* unchanged for that long, a lease is free */
    int64_t renew_ms;     /* between renewals */
    int64_t deadline_ms;  /* not renewed for that long, the holder stops */
};

struct election {
    const struct election_config *config;
    struct kube_lease seen; /* as last read or written */
    bool exists;            /* it is there at all */
    int64_t seen_ms;        /* when it last changed, by our monotonic clock */
    bool made; /* if it is ours, then newly made, or of a process before us
                * with the same identity */
    bool leading;
    bool resigned, gives; /* gives: it is to be given back */
    int64_t renewed_ms;   /* when the last renewal that succeeded was *begun* */
    int64_t from_ms;      /* leading holds from then on */
};

enum election_move {
    ELECTION_WAIT,    /* somebody else has it, or ours is fresh */
    ELECTION_CREATE,  /* write a new one */
    ELECTION_TAKE,    /* write: it is free */
    ELECTION_RENEW,   /* write: it is ours */
    ELECTION_RELEASE, /* write: free from now on; after election_resign() */
};

void election_init(struct election *e, const struct election_config *config);
/* What was read (NULL: there is none) at `now_ms`, the time after reading. */
void election_observe(struct election *e, const struct kube_lease *lease,
                      int64_t now_ms);
/* Is the Lease to be read before anything is written?  Not when it is ours and
 * only to be renewed, or was unchanged for long: that write fails if it is so no
 * more, and one call less is in the way of a new holder. */
bool election_looks(const struct election *e, int64_t now_ms);
/* What to do now. */
enum election_move election_next(const struct election *e, int64_t now_ms);
/* How long to wait before the next look (a leader: renewal), when what
 * election_next() said has been done or has failed; at least 1. */
int64_t election_wait_ms(const struct election *e, int64_t now_ms);
/* The lease to write for a move; `time` is the wall clock as MicroTime.  Its
 * namespace and name are those that were seen; fill them in for CREATE. */
void election_lease(const struct election *e, enum election_move move,
                    const char *time, struct kube_lease *ret_lease);
/* The write begun at `begun_ms` was accepted; `written` is what the server
 * answered. */
void election_written(struct election *e, const struct kube_lease *written,
                      int64_t begun_ms);
/* May we still act as the leader at `now_ms`, for a call that takes up to
 * `call_ms`?  False for good once the deadline has passed, until it is written
 * again. */
bool election_holds(const struct election *e, int64_t now_ms, int64_t call_ms);
/* Act as the leader no more.  From then on election_next() says RELEASE when
 * the lease is ours to give back, which is to be written once no call of ours
 * is on its way any more; else WAIT. */
void election_resign(struct election *e, int64_t now_ms);

#endif
