/* How allocations end: that of a pod, and those of all pods of a job. */
#include <errno.h>

#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"

/* --- of a pod ------------------------------------------------------------ */

int drop_allocation(struct batch *b, struct writer_op *op,
                    const struct allocation *a)
{
    int e = batch_begin(b);
    if (e == 0)
        e = store_delete_allocation(b->w->store, a->demand.namespace,
                                    a->demand.name, &b->error);
    if (e < 0)
        return e;
    op->resource_version = store_take_version(b->w->store);
    (void)draft_release(batch_draft(b), a->demand.namespace, a->demand.name);
    return 0;
}

int release_pod(struct batch *b, struct writer_op *op,
                const struct allocation *a)
{
    cleanup_with(allocation) struct allocation *kept =
        allocation_ref((struct allocation *)a);
    int e = drop_allocation(b, op, kept);
    return e < 0 ? e : lease_end_unbound(b, &kept->demand);
}

/* All places that are held for the job, not single ones. */
static int release_held(struct batch *b, struct writer_op *op,
                        const struct demand *held)
{
    struct demand pod = *held;
    int e = batch_begin(b);
    if (e == 0)
        e = lease_give_back(b, &pod);
    if (e == 0)
        op->resource_version = store_take_version(b->w->store);
    return e;
}

void apply_release(struct batch *b, struct writer_op *op)
{
    const struct allocation *old =
        draft_find_allocation(batch_draft(b), op->namespace, op->pod);
    if (!old)
        op->result = error_set(&op->error, ENOENT,
                               "pod %s/%s: has no allocation", op->namespace,
                               op->pod);
    else if (old->held)
        op->result = release_held(b, op, &old->demand);
    else if (may_give_back(b, op, old))
        op->result = release_pod(b, op, old);
}

/* --- of a job ------------------------------------------------------------ */

struct job_release {
    const struct batch *b;
    struct writer_op *op;
};

/* Why not goes into the operation, of one of those that are bound and stay. */
static bool is_to_release(void *ctx, const struct allocation *a)
{
    const struct job_release *x = ctx;
    struct writer_op *op = x->op;
    const struct demand *pod = &a->demand;
    bool late = a->number > op->number;
    bool told = !late && is_among_uids(pod->uid, op->unfed_uids, op->n_unfed) &&
                is_told(x->b, a);
    if (told)
        (void)refuse_told(op, a);
    else if (late)
        (void)error_set(&op->error, EBUSY,
                        "pod %s/%s has been bound meanwhile: try again",
                        pod->namespace, pod->name);
    return !late && !told;
}

/* A piece of those that are bound. */
static int release_members(struct batch *b, struct writer_op *op)
{
    int e = 0;
    size_t piece = b->w->config.piece;
    struct job_release x = {b, op};
    const struct alloc_wanted wanted = {.namespace = op->job->namespace,
                                        .job = op->job->name,
                                        .bound = true,
                                        .is_wanted = is_to_release,
                                        .ctx = &x};
    cleanup_free const struct allocation **list = xcalloc(piece, sizeof *list);
    size_t n = alloc_index_find_some(batch_allocations(b), &wanted, list,
                                     piece);
    for (size_t i = 0; i < n && e == 0; i++) {
        cleanup_with(allocation) struct allocation *a =
            allocation_ref((struct allocation *)list[i]);
        e = drop_allocation(b, op, a);
    }
    op->n_out += n;
    op->again = n == piece;
    return e;
}

/* Of a job of which nobody is bound any more, a piece of what is held. */
static int release_places(struct batch *b, struct writer_op *op)
{
    const struct job_name *job = op->job;
    size_t piece = b->w->config.piece, n;
    int e = lease_give_piece(b, job->namespace, job->name, NULL, &n);
    if (e < 0)
        return e;
    op->n_out += n < piece ? n : piece;
    op->again = n > piece;
    return 0;
}

void apply_release_job(struct batch *b, struct writer_op *op)
{
    if (taking_is_of_job(b->w, op->job)) {
        op->again = true;
        return;
    }
    op->error = (struct error){0}; /* of an earlier batch */
    int e = release_members(b, op);
    if (e == 0 && !op->again && !op->error.code)
        e = release_places(b, op);
    if (e < 0)
        op->error = (struct error){0}; /* it is the batch's */
    else if (!op->again && !op->error.code && op->n_out == 0)
        (void)error_set(&op->error, ENOENT,
                        "job %s/%s: nothing is allocated to it",
                        op->job->namespace, op->job->name);
    op->result = e < 0 ? e : op->again ? 0 : -op->error.code;
}
