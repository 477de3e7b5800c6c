/* writer_op - an operation for the writer (writer.h), a change or a query, and
 * its outcome. */
#ifndef BIGA_EXTENDER_KEEP_WRITER_OP_H
#define BIGA_EXTENDER_KEEP_WRITER_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/pods/applied.h"
#include "extender/pods/job_pod.h"
#include "extender/state/candidates.h"
#include "extender/state/snapshot.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

enum writer_kind {
    WRITER_PUT_SLICE,    /* name, body */
    WRITER_DELETE_SLICE, /* name */
    WRITER_GET_SLICE,    /* name; the JSON lands in `out` */
    WRITER_LIST_SLICES,  /* after (or NULL), limit; node filter or NULL */
    WRITER_BIND,         /* demand, node */
    WRITER_RELEASE,      /* namespace, pod */
    WRITER_RELEASE_JOB, /* job, number, unfed_uids (sorted): its bound pods with
                          * a number up to that, then, when it has no others,
                          * what is held for it.  Large jobs take several
                          * batches.  `n_out`: how many allocations; -ENOENT:
                          * none; -EBUSY: the node of one of unfed_uids was told
                          * of it, or a pod was bound meanwhile; the others'
                          * are free */
    WRITER_TRUST,       /* node: it is no longer in doubt, as the node
                          * itself (`owner` set) or an operator says; NULL:
                          * none is.  -ENOENT: none is in doubt, or no such
                          * node */
    WRITER_SET_POLICY,  /* policy */
    WRITER_SET_FABRIC,  /* fabric */
    WRITER_CALL,        /* tests: call(ctx) between two batches */
    WRITER_FED,         /* node, number: it is about to be told of allocations
                          * up to that number */
    WRITER_PODS,        /* changes, n_changes: see applied.h; -ENOENT, -EEXIST,
                          * -EFBIG too many; `n_out`: the change that failed */

    /* what the API server says (cluster.h); never refused for lack of room */
    WRITER_ADOPT,  /* allocation: as the pod's annotation has it; it replaces
                    * ours. `created`: it was not known */
    WRITER_FREE,   /* namespace, pod, uid; node, number (or NULL, 0): as
                     * WRITER_RELEASE when the allocation is of that uid, on
                     * that node and with that number, else nothing (-ENOENT);
                     * with a node a bind has failed, and what a host pod had
                     * is held for its job again */
    WRITER_KEEP,   /* uids, n_uids (sorted), number: release every allocation
                     * of a pod (not held places) with a number up to `number`
                     * whose uid is not among them, unless `keep` says so;
                     * `n_out`: how many */
    WRITER_HEARD,  /* node: its heartbeat came, or (`gone`) the last one was
                     * long ago (-ENOENT: nothing was published for it) */
    WRITER_LOST,   /* node: it is deleted or not ready (`gone`), or is back */
    WRITER_ROOMS,  /* rooms, n_rooms: what the hosts have for pods */
    WRITER_MOVE,   /* demand, node: the scheduler makes room for the pod there
                    * (NULL: nowhere); `gone`: it is about to leave its node */
    WRITER_OFFER,  /* demand, node: kube-scheduler may make room for the pod
                    * there (MOVING_PODS_UNSETTLED: on one of several nodes);
                    * -EEXIST: its pair is bound elsewhere by now */
    WRITER_CLAIM,  /* claim: as it is allocated now; `gone`: it is not (its key
                    * alone counts).  Not stored */
    WRITER_BARS,   /* node, bars: its cards that get no new pods (NULL: none);
                    * they hold for a node that comes later, too.  Not
                    * stored */
    WRITER_DRAIN,  /* node, bars: one drain of it (card_bars.h), in place of one
                    * of the same card; `gone`: it is over (-ENOENT: there is
                    * none).  Of a node that comes later, too */
    WRITER_LEAD,   /* hold anew the places of all jobs that have members bound
                     * and are incomplete; `n_out`: jobs */
    WRITER_FOLLOW, /* give back all that is held */
};

/* What a host has left for pods of ours: allocatable less what all other bound
 * pods request (host pods with an allocation are charged by that); negative
 * values count as none, INT64_MAX as unlimited; all three: the host is not
 * known any more. */
struct writer_room {
    const char *node;
    struct host_room room;
};

/* One operation: its kind with what that takes, then what became of it.  The
 * poster owns it and everything it points to until `done` has been called (on
 * the writer thread). */
struct writer_op {
    enum writer_kind kind;

    /* what several kinds take */
    const char *node;  /* bind: the target; list: a filter; heard, lost, free,
                        * fed, trust, move, offer, bars, drain */
    const char *owner; /* put, delete, trust: the node that asks, and may only
                        * touch its own; NULL: anybody */
    uint64_t number;   /* keep, free, fed, release of a job */
    bool gone;         /* heard, lost, move, claim, drain */
    /* the poster's; the writer takes references of its own */
    struct policy *policy;         /* set; NULL: none */
    struct fabric *fabric;         /* set; NULL: none */
    struct allocation *allocation; /* adopt */
    struct claim_use *claim;       /* claim */
    struct card_bars *bars;        /* bars, drain */

    union {      /* what one kind takes, or a few that are alike */
        struct { /* put, delete, get, list */
            const char *name;
            const char *body; /* put: its JSON */
            size_t body_size;
            const char *after; /* list */
            size_t limit;
        };
        struct { /* bind, move, offer */
            const struct demand *demand;
            const struct candidates *candidates; /* bind: what its job may be
                                                  * planned with; NULL: all
                                                  * nodes */
            /* bind: devices that its job may not have, as if claims had them */
            struct claim_use *const *withheld;
            size_t n_withheld;
        };
        struct { /* release, free */
            const char *namespace, *pod;
            const char *uid; /* free */
            bool unfed;      /* only when its node was never told of it
                              * (-EBUSY) */
        };
        struct { /* release a job */
            const struct job_name *job;
            const char *const *unfed_uids; /* free only when their nodes were
                                            * never told of them */
            size_t n_unfed;
        };
        struct { /* keep */
            const char *const *uids;
            size_t n_uids;
            bool (*keep)(void *ctx, const char *uid);
        };
        struct { /* pods */
            struct pod_change *changes;
            size_t n_changes;
        };
        struct { /* rooms */
            const struct writer_room *rooms;
            size_t n_rooms;
        };
        void (*call)(void *ctx);
    };

    /* the outcome */
    int result; /* 0 or -errno: -EINVAL bad input, -ESTALE an
                            * older epoch, -ENOENT, -EBUSY no longer fits,
                            * -EEXIST bound elsewhere, -EACCES not the owner,
                            * -ENOSPC, -EIO */
    struct error error;
    bool created; /* put: did not exist before; bind: not a repeat */
    bool healed;  /* adopt: the pod had another one here */
    uint64_t resource_version;
    struct str out; /* get: the object's JSON; list: an array of
                            * them; bind: the allocation's JSON. Caps
                            * and frees are the poster's. */
    size_t n_out;   /* list, keep, lead, release of a job: how many */
    bool more;      /* list: there is another page */
    char last[SLICE_NAME_MAX + 1]; /* list: the last name given */

    void (*done)(struct writer_op *op);
    void *ctx;
    /* the writer's */
    struct slice *slice; /* put: decoded on the poster's thread */
    struct writer_op *next;
    bool finished;
    bool again; /* it goes into the next batch, too */
};

#endif
