/* writer - the one thread that changes anything.
 *
 * Other threads post operations; the writer takes all that are waiting,
 * applies them to one draft in one transaction, commits once (so many binds
 * share one fsync), swaps the snapshot, then tells each operation its
 * outcome.  When the commit fails the draft is dropped: nothing happened.  The
 * first bind of a large job goes through several batches. */
#ifndef BIGA_EXTENDER_KEEP_WRITER_H
#define BIGA_EXTENDER_KEEP_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/keep/slice_cache.h"
#include "extender/keep/store.h"
#include "extender/keep/writer_op.h"
#include "extender/state/plans.h"

struct writer;

enum { WRITER_LEASE_MS = 30000, WRITER_PIECE = 512 };

struct writer_config {
    enum store_kind store;
    const char *state_dir; /* NULL: in memory */
    int64_t fresh_ms;      /* a node unheard of for longer is stale: 15000 */
    int64_t lease_ms; /* how long a job's places are held after a bind of it;
                       * 0: 30000 */
    size_t piece;     /* of a job's places that one transaction holds, about, so
                   * that other binds come between; 0: 512 */
    struct plans *plans;   /* plans that were made already, or NULL; outlives
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

/* Call `changed` after each new snapshot, on the writer's thread; it must not
 * wait for an operation.  At most WRITER_WATCHERS_MAX. */
enum { WRITER_WATCHERS_MAX = 8 };
void writer_watch(struct writer *w, void (*changed)(void *ctx), void *ctx);
/* After this has returned it is not called, and no call is under way.  Not on
 * the writer's thread; before writer_stop(). */
void writer_unwatch(struct writer *w, void *ctx);

/* When the places held for that job (job_key(); "": any) expire, on the
 * monotonic clock, if their lease is not renewed; false: none is held.  Any
 * thread. */
bool writer_lease_end(struct writer *w, const char *job, int64_t *ret_until_ms);
/* The newest version given out; later binds have higher numbers.  Any
 * thread. */
uint64_t writer_version(struct writer *w);
/* The number of the newest allocation that the node may have been told of
 * (WRITER_FED); it cannot have begun newer ones.  Any thread. */
uint64_t writer_fed(struct writer *w, const char *node);
/* Are nodes in doubt, or would new ones be (store_in_doubt())?  Any thread. */
bool writer_in_doubt(const struct writer *w);
/* How often a pod had more than its node offers (overcommit.h): when it was
 * adopted, or when the node published less. */
uint64_t writer_conflicts(struct writer *w);
/* Call `told` for each of these (NULL: no longer), on the writer's thread,
 * which it must not block.  Waits as writer_run() does. */
typedef void writer_overfull_f(void *ctx, const struct allocation *a,
                               const char *text);
void writer_on_overfull(struct writer *w, writer_overfull_f *told, void *ctx);

/* Did the last commit succeed?  Otherwise `ret_trouble` says why not, and each
 * sweep tries again.  Any thread. */
bool writer_can_write(struct writer *w, struct error *ret_trouble);

void writer_post(struct writer *w, struct writer_op *op);
/* Post and wait: for tests and start-up, never on a listener's thread. */
int writer_run(struct writer *w, struct writer_op *op);
/* The same for `n` at once, which share one transaction. */
void writer_run_all(struct writer *w, struct writer_op *ops, size_t n);

/* A publish that repeats the stored slice byte for byte needs no operation:
 * true when `body` is the present content of slice `name` of the node `owner`
 * (NULL: any); the node then counts as heard from, and `*ret_resource_version`
 * is set.  Any thread. */
bool writer_heartbeat(struct writer *w, const struct slice_cache_body *body,
                      uint64_t *ret_resource_version);

/* Look now for nodes that went stale or came back; waits until that is done. */
void writer_sweep(struct writer *w);

#endif
