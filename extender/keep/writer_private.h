/* What the files of the writer share. */
#ifndef BIGA_EXTENDER_KEEP_WRITER_PRIVATE_H
#define BIGA_EXTENDER_KEEP_WRITER_PRIVATE_H

#include <pthread.h>

#include "extender/keep/ingest.h"
#include "extender/keep/slice_cache.h"
#include "extender/keep/store.h"
#include "extender/keep/writer.h"
#include "extender/pods/feed_progress.h"
#include "extender/state/draft.h"
#include "lib/base/strmap.h"

struct writer {
    struct writer_config config;
    pthread_t thread;
    bool started;

    /* the writer thread's alone */
    struct store *store;
    struct ingest *ingest;

    struct leases *leases;
    struct taking *taking; /* see writer_places.c; NULL: nobody is */

    struct slice_cache *heard;
    size_t swept_nodes, trimmed_nodes; /* trim_after_change() */
    struct feed_progress *fed;
    struct strmap lost;    /* names of nodes that the cluster says are lost */
    struct strmap claims;  /* struct claim_use, by key, as allocated now */
    struct strmap bars;    /* struct node_bars, by node */
    struct strmap trusted; /* of those that are in doubt no more */
    atomic_bool in_doubt;  /* see writer_in_doubt() */
    writer_overfull_f *overfull; /* see writer_on_overfull(); or NULL */
    void *overfull_ctx;

    _Atomic uint64_t version;   /* the newest given out */
    _Atomic uint64_t conflicts; /* see writer_conflicts() */

    pthread_mutex_t current_lock; /* held for as long as a reference takes */
    struct snapshot *current;
    struct writer_watcher {
        void (*changed)(void *ctx);
        void *ctx;
    } watchers[WRITER_WATCHERS_MAX]; /* unused ones are NULL */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* something to do */
    pthread_cond_t done;  /* an op of writer_run() is finished */
    struct writer_op *first, **last;
    bool sweep_wanted, stopping;
    struct error trouble; /* of the last commit; code 0: none */
};

/* One batch: its draft and its transaction are begun when first needed. */
struct batch {
    struct writer *w;
    struct draft *draft;
    struct snapshot *peek; /* of the draft as it is now, or NULL */
    bool in_transaction;
    bool has_bind;
    bool leaves_some; /* of leases that have ended: the next batch goes on */
    struct applied_draft *pods; /* NULL: nothing was applied */
    struct error error;         /* of the transaction; code 0: none yet */
    char **gone;                /* slices that newer ones replaced */
    size_t n_gone, gone_cap;
};

/* Takes over the reference; tells those who watch. */
void swap_snapshot(struct writer *w, struct snapshot *next);
/* Remember how the last transaction ended (NULL: it was committed), and log it
 * when that has changed. */
void note_commit(struct writer *w, const struct error *trouble);
/* All that is to be written of these operations, in one transaction. */
void write_ops(struct writer *w, struct writer_op *ops);

/* The draft, to be changed; releases the peek. */
struct draft *batch_draft(struct batch *b);
const struct snapshot *batch_peek(struct batch *b);
/* The state within the batch; valid until its next change. */
const struct snapshot *batch_view(struct batch *b);
/* The allocations of that state; cheaper than a view. */
const struct alloc_index *batch_allocations(const struct batch *b);
/* Called before anything is stored; 0 or -errno in b->error. */
int batch_begin(struct batch *b);

/* --- the queue: writer_queue.c --- */
/* All that are queued now. */
struct writer_op *queue_take(struct writer *w);
/* The next batch begins with these; `last`: where the list ends. */
void queue_again(struct writer *w, struct writer_op *first,
                 struct writer_op **last);
/* Wait for something to do: operations into `*ret_ops`, or a sweep that is
 * due.  False when there is nothing more to come. */
bool queue_wait(struct writer *w, int64_t due_ms, struct writer_op **ret_ops,
                bool *ret_sweep);
/* Tell the poster, after which the op may be gone. */
void queue_finish(struct writer *w, struct writer_op *op);

/* Give back the memory that many nodes left as they joined or went. */
void trim_after_change(struct writer *w);

/* Change draft, ingest and store as one operation asks; the outcome goes into
 * the op, an error of the store itself into the batch. */
void apply_put_slice(struct batch *b, struct writer_op *op);
void apply_delete_slice(struct batch *b, struct writer_op *op);
void apply_bind(struct batch *b, struct writer_op *op);
void apply_release(struct batch *b, struct writer_op *op);
void apply_release_job(struct batch *b, struct writer_op *op);
/* Release a pod's allocation (no held place), and all that is held for its job
 * once none of its pods is bound; 0 or -errno in b->error. */
int release_pod(struct batch *b, struct writer_op *op,
                const struct allocation *a);
/* Release the allocation alone; the caller keeps its reference. */
int drop_allocation(struct batch *b, struct writer_op *op,
                    const struct allocation *a);

/* --- what a cluster tells: writer_cluster.c --- */
void apply_adopt(struct batch *b, struct writer_op *op);
/* The pods that have more than their node offers; the list is the caller's, its
 * items are borrowed. */
size_t list_conflicts(struct batch *b, const char *name,
                      const struct allocation ***ret_list);
/* A node's cards have changed: report the pods in conflict that are not in
 * `known`. */
void tell_conflicts(struct batch *b, const char *name,
                    const struct allocation *const *known, size_t n_known);
void apply_free(struct batch *b, struct writer_op *op);
bool is_among_uids(const char *uid, const char *const *uids, size_t n);
void apply_keep(struct batch *b, struct writer_op *op);
void apply_lost(struct batch *b, struct writer_op *op);
void apply_rooms(struct batch *b, struct writer_op *op);
void apply_lead(struct batch *b, struct writer_op *op);
void apply_follow(struct batch *b, struct writer_op *op);
/* --- what is applied: writer_pods.c --- */
void apply_fed(struct batch *b, struct writer_op *op);
/* Was its node told of it?  A refusal for that (-EBUSY). */
bool is_told(const struct batch *b, const struct allocation *a);
int refuse_told(struct writer_op *op, const struct allocation *a);
/* False, and the operation refused, when it is limited to allocations that no
 * node was told of, and the node was told of this one. */
bool may_give_back(const struct batch *b, struct writer_op *op,
                   const struct allocation *a);
void apply_pods(struct batch *b, struct writer_op *op);
void read_heard(struct writer *w, struct writer_op *op);
bool is_lost(const struct writer *w, const char *node);

/* --- after damage: writer_doubt.c --- */
void apply_trust(struct batch *b, struct writer_op *op);
/* Is the node in doubt (store_in_doubt())? */
bool is_doubtful(const struct writer *w, const char *node);
int doubt_load(struct writer *w, struct error *err);
/* What is committed of it counts from now on; was there any? */
bool doubt_settle(struct writer *w, const struct writer_op *ops);

/* --- who comes and who leaves, and what claims have: writer_moves.c ---
 * A draft that is NULL is made when it is needed; the caller commits it. */
struct draft *draft_once(const struct writer *w, struct draft **draft);
void move_pod(const struct writer *w, struct writer_op *op,
              struct draft **draft);
/* Offers whose time is over end, and that of the pod `uid` ("", NULL: none). */
void end_offers(const struct writer *w, const char *uid, struct draft **draft);

/* What claims have (claim_use.h): kube-scheduler gives it, and the API server
 * keeps it. */
void note_claim(struct writer *w, struct writer_op *op, struct draft **draft);

/* --- cards that are barred: writer_bars.c --- */
void note_bars(struct writer *w, struct writer_op *op, struct draft **draft);
/* The node has just published, `before` until then: what is barred of it
 * holds. */
void bars_follow(const struct writer *w, struct draft *draft, const char *node,
                 const struct topo *before);
void bars_free(struct writer *w);
void apply_drain(struct batch *b, struct writer_op *op);
/* What is committed of it counts from now on. */
void drains_settle(struct writer *w, const struct writer_op *ops);
/* Those that are stored, once the nodes are in the draft. */
int drains_load(struct writer *w, struct draft *draft, struct error *err);

/* --- who is silent: writer_sweep.c --- */
/* The status that a node should have. */
enum node_status status_now(const struct writer *w, const struct node *n);
/* Look at all nodes and leases now; make that due now. */
void sweep(struct writer *w);
void sweep_soon(struct writer *w);

/* --- whole jobs: writer_job.c ---
 * All return 0 or -errno, an error of the store in b->error. */

/* Held places that were added and removed; zeroed: none. */
struct hold_change {
    struct allocation **added, **removed;
    size_t n_added, n_removed;
};
/* Hold, in the draft, the places of the plan that the pod's bind needs; -EBUSY
 * with the reason in op->error when there is none. */
int bind_plan(struct batch *b, struct writer_op *op,
              struct hold_change *ret_change);
/* Hold these places in the draft, instead of those held for the same pairs.
 * Takes `list`. */
void hold_places(struct batch *b, struct allocation **list, size_t n,
                 struct hold_change *ret_change);
/* Has the namespace more than `before`, and more than its quota? */
bool exceeds_quota(struct batch *b, const char *namespace,
                   const struct namespace_use *before);
int refuse_quota(struct writer_op *op); /* -EBUSY */
void hold_change_undo(struct batch *b, struct hold_change *change);
int hold_change_store(struct batch *b, const struct hold_change *change);
void hold_change_fini(struct hold_change *change);
/* A pod has been bound, in place of `former` (or NULL): drop the place that was
 * held for it, and renew the lease of its job. */
int bind_settle(struct batch *b, const struct allocation *fresh,
                const struct demand *former);
/* Hold these places (which are taken over) of the pod's job with a new lease;
 * -EBUSY, with nothing changed, when the quota of its namespace does not allow
 * it. */
int hold_anew(struct batch *b, const struct demand *pod,
              struct allocation **list, size_t n);
int drop_hold(struct batch *b, const struct allocation *hold);
/* Give back a piece of the places that are held for a job: under one lease
 * (job_lease_key()), or under any (NULL).  `*ret_n`: how many there were, at
 * most one more than a piece; that is for the caller. */
int lease_give_piece(struct batch *b, const char *namespace, const char *job,
                     const char *lease, size_t *ret_n);
/* Drop all places held for a pod's job: when none of its pods is bound any
 * more; always.  Of many a piece now, the others in the next batches. */
int lease_end_unbound(struct batch *b, const struct demand *pod);
int lease_give_back(struct batch *b, const struct demand *pod);
/* End the leases whose time is over. */
int leases_expire(struct batch *b);
/* After a start: give all held places a new lease. */
void leases_load(struct writer *w);

/* --- the places of a plan: writer_places.c --- */

struct places {
    struct snapshot *snapshot; /* that the plan was made in */
    struct plan *plan;
    uint32_t next; /* ranks below have theirs */
};
void places_fini(struct places *p);
/* Are all of them free in that snapshot, with the cards that the plan has? */
bool places_are_free(const struct snapshot *now, const struct demand *pod,
                     const struct places *p);
/* The next ones, about `max`, as held places, in an array that the caller owns;
 * -EBUSY: after these comes one that is not free. */
int places_hold(const struct snapshot *now, const struct demand *pod,
                struct places *p, size_t max, struct allocation ***ret_list,
                size_t *ret_n);

/* A bind takes them over several batches: op->again until it has all of them,
 * or has given all back (-EBUSY).  Takes `places`. */
int taking_begin(struct batch *b, struct writer_op *op, struct places *places);
int taking_go_on(struct batch *b, struct writer_op *op);
/* Is it this one?  Has this one to wait for it: is it of the same job, or the
 * first of another large one? */
bool taking_is_of(const struct writer *w, const struct writer_op *op);
bool taking_waits(const struct batch *b, const struct writer_op *op);
/* Is that job getting its places? */
bool taking_is_of_job(const struct writer *w, const struct job_name *job);
/* Is an operation on the same pod before it in `ops`, and goes into the next
 * batch, as this one has to? */
bool taking_delays(const struct writer *w, const struct writer_op *ops,
                   const struct writer_op *op);
/* From now on it gives back what it has. */
void taking_give_back(struct writer *w, const char *why);
/* It is over, if there is one. */
void taking_end(struct writer *w);

void read_slice(struct writer *w, struct writer_op *op);
void read_slices(struct writer *w, struct writer_op *op);

/* The first snapshot, from what is stored. */
int writer_load(struct writer *w, struct error *err);

#endif
