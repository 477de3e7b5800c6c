/* writer - the one thread that changes anything.
 *
 * Other threads post operations; the writer takes all that are waiting,
 * applies them to one draft in one transaction, commits once (so many binds
 * share one fsync), swaps the snapshot, then tells each operation its
 * outcome.  When the commit fails the draft is dropped: nothing happened. */
#ifndef BIGA_EXTENDER_KEEP_WRITER_H
#define BIGA_EXTENDER_KEEP_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/keep/slice_cache.h"
#include "extender/keep/store.h"
#include "extender/pods/applied.h"
#include "extender/state/candidates.h"
#include "extender/state/plans.h"
#include "extender/state/snapshot.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

struct writer;

enum { WRITER_LEASE_MS = 30000 };

struct writer_config {
    enum store_kind store;
    const char *state_dir; /* NULL: in memory */
    int64_t fresh_ms;      /* a node unheard of for longer is stale: 15000 */
    int64_t lease_ms;    /* how long a job's places are held after a bind of it;
                       * 0: 30000 */
    struct plans *plans; /* plans that were made already, or NULL; outlives
                            * the writer */
    struct policy *policy; /* to begin with (a reference is taken), or NULL */
    struct fabric *fabric; /* the same */
    struct applied *pods;  /* embedded: what was applied; outlives the writer,
                            * which fills it.  NULL: WRITER_PODS is -ENOTSUP */
    int64_t sweep_ms;      /* how often to look: 1000; 0: only
                            * writer_sweep() (tests) */
};

/* Opens the store, rebuilds the first snapshot from it (nodes of stored
 * slices count as heard from just now; those that were stale stay so until
 * they are heard), starts the thread. */
int writer_start(const struct writer_config *config, struct writer **ret_writer,
                 struct error *err);
/* Finishes what is queued, closes the store. NULL allowed. */
void writer_stop(struct writer *w);

/* The current snapshot; the caller owns the reference. Never blocks. */
struct snapshot *writer_snapshot(struct writer *w);

enum writer_kind {
    WRITER_PUT_SLICE,    /* name, body */
    WRITER_DELETE_SLICE, /* name */
    WRITER_GET_SLICE,    /* name; the JSON lands in `out` */
    WRITER_LIST_SLICES,  /* after (or NULL), limit; node filter or NULL */
    WRITER_BIND,         /* demand, node */
    WRITER_RELEASE,      /* namespace, pod */
    WRITER_TRUST,        /* node: it is known again what was given there, by
                          * its own word (`owner` set) or an operator's; NULL:
                          * of all.  -ENOENT: nothing is in doubt, or no such
                          * node */
    WRITER_SET_POLICY,   /* policy */
    WRITER_SET_FABRIC,   /* fabric */
    WRITER_CALL,         /* tests: call(ctx) between two batches */
    WRITER_FED,          /* node, number: it is about to be told of allocations
                          * up to that number */
    WRITER_PODS,         /* changes, n_changes: see pods.h; -ENOENT, -EEXIST,
                          * -EFBIG too many; `n_out`: the change that failed */

    /* what a cluster tells (cluster.h); never refused for lack of room */
    WRITER_ADOPT,  /* allocation: the pod has it, whatever we thought; `result`
                     * 0, `created` when that was news */
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
    WRITER_LEAD,   /* hold anew the places of all jobs that have members bound
                     * and are incomplete; `n_out`: jobs */
    WRITER_FOLLOW, /* give back all that is held */
};

/* What a host has left for pods of ours: allocatable less what all other bound
 * pods request (host pods with an allocation are charged by that); negative
 * values count as none, INT64_MAX as without end; all three: nothing is known
 * of the host any more. */
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
                        * fed, trust, move */
    const char *owner; /* put, delete, trust: the node that asks, and may only
                        * touch its own; NULL: anybody */
    uint64_t number;   /* keep, free, fed */
    bool gone;         /* heard, lost, move */
    /* the poster's; the writer takes references of its own */
    struct policy *policy;         /* set; NULL: none */
    struct fabric *fabric;         /* set; NULL: none */
    struct allocation *allocation; /* adopt */

    union {      /* what one kind takes, or a few that are alike */
        struct { /* put, delete, get, list */
            const char *name;
            const char *body; /* put: its JSON */
            size_t body_size;
            const char *after; /* list */
            size_t limit;
        };
        struct { /* bind, move */
            const struct demand *demand;
            const struct candidates *candidates; /* bind: what its job may be
                                                  * planned with; NULL: all
                                                  * nodes */
        };
        struct { /* release, free */
            const char *namespace, *pod;
            const char *uid; /* free */
            bool unfed;      /* only when its node was never told of it
                              * (-EBUSY) */
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
    struct str out;                /* get: the object's JSON; list: an array of
                            * them; bind: the allocation's JSON. Caps
                            * and frees are the poster's. */
    size_t n_out;                  /* list, keep, lead: how many */
    bool more;                     /* list: there is another page */
    char last[SLICE_NAME_MAX + 1]; /* list: the last name given */

    void (*done)(struct writer_op *op);
    void *ctx;
    struct writer_op *next; /* the writer's */
    bool finished;          /* the writer's */
};

/* Have `changed` called after each new snapshot, on the writer's thread; it must
 * not wait for an operation.  At most WRITER_WATCHERS_MAX. */
enum { WRITER_WATCHERS_MAX = 4 };
void writer_watch(struct writer *w, void (*changed)(void *ctx), void *ctx);
/* It is called no more, and not being called any more either, once this has
 * returned: not on the writer's thread, and before writer_stop(). */
void writer_unwatch(struct writer *w, void *ctx);

/* When what is held for that job (job_key(); "" any) is held no more, on the
 * monotonic clock, if its lease is not renewed; false: nothing is.  Any
 * thread. */
bool writer_lease_end(struct writer *w, const char *job, int64_t *ret_until_ms);
/* The newest version given out: allocations bound from now on have higher
 * numbers.  Any thread. */
uint64_t writer_version(struct writer *w);
/* The number of the newest allocation of which the node may have been told
 * (WRITER_FED); what is newer it has never begun.  Any thread. */
uint64_t writer_fed(struct writer *w, const char *node);
/* Are there nodes of which it is not known what was given there, or may some
 * come (store_in_doubt())?  Any thread. */
bool writer_in_doubt(const struct writer *w);
/* How often a pod was found to have more than its node has (overfull.h): when
 * it was adopted, and when the node told of less. */
uint64_t writer_conflicts(struct writer *w);
/* From now on each of these is told, too (NULL: no longer), on the writer's
 * thread, which must not be kept waiting.  Waits as writer_run() does. */
typedef void writer_overfull_f(void *ctx, const struct allocation *a,
                               const char *text);
void writer_on_overfull(struct writer *w, writer_overfull_f *told, void *ctx);

/* Did the last commit succeed?  Otherwise `ret_trouble` says why not, and one
 * is tried with each sweep until it does.  Any thread. */
bool writer_can_write(struct writer *w, struct error *ret_trouble);

void writer_post(struct writer *w, struct writer_op *op);
/* Post and wait: for tests and start-up, never on a listener's thread. */
int writer_run(struct writer *w, struct writer_op *op);

/* A publish that repeats, byte for byte, what is stored needs no writer:
 * true when `body` is the present content of slice `name` of the node `owner`
 * (NULL: any); the node then counts as heard from, and
 * `*ret_resource_version` is set.  Any thread. */
bool writer_heartbeat(struct writer *w, const struct slice_cache_body *body,
                      uint64_t *ret_resource_version);

/* Look for nodes that went stale (or came back) now; waits until done. */
void writer_sweep(struct writer *w);

#endif
