/* Operations on pods and configs that are applied in embedded mode. */
#include "extender/keep/applied_draft.h"
#include "extender/keep/writer_private.h"

void apply_fed(struct batch *b, struct writer_op *op)
{
    if (op->number <= feed_progress_pending(b->w->fed, op->node))
        return; /* stored already */
    op->result = batch_begin(b);
    if (op->result == 0)
        op->result = store_put_fed(b->w->store, op->node, op->number,
                                   &b->error);
    if (op->result == 0)
        feed_progress_raise(b->w->fed, op->node, op->number);
}

bool is_told(const struct batch *b, const struct allocation *a)
{
    return a->number <= feed_progress_pending(b->w->fed, a->node);
}

int refuse_told(struct writer_op *op, const struct allocation *a)
{
    return error_set(&op->error, EBUSY,
                     "pod %s/%s: node %s has just been told to run it",
                     a->demand.namespace, a->demand.name, a->node);
}

bool may_give_back(const struct batch *b, struct writer_op *op,
                   const struct allocation *a)
{
    bool may = !op->unfed || !is_told(b, a);
    if (!may)
        op->result = refuse_told(op, a);
    return may;
}

void apply_pods(struct batch *b, struct writer_op *op)
{
    struct applied *pods = b->w->config.pods;
    op->n_out = 0;
    if (!pods) {
        op->result = error_set(&op->error, ENOTSUP,
                               "the API server keeps pods: apply them there");
        return;
    }
    if (!b->pods)
        b->pods = applied_draft_begin(pods);
    op->result = applied_draft_check(b->pods, op->changes, op->n_changes,
                                     &op->n_out, &op->error);
    if (op->result < 0 || batch_begin(b) < 0)
        return;
    for (size_t i = 0; i < op->n_changes; i++) {
        int e = applied_draft_make(b->pods, b->w->store, &op->changes[i],
                                   &b->error);
        if (e < 0) {
            op->n_out = i;
            op->result = e;
            return;
        }
    }
}
