/* How allocations end. */
#include <errno.h>

#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"

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
