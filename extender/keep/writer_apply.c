/* What each operation changes. */
#include <string.h>

#include "extender/judge/schedule.h"
#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"

enum { EXPLAIN_MAX = ERROR_TEXT_MAX - 128 };

/* --- slices ------------------------------------------------------------ */

static int check_name(const struct writer_op *op, const struct slice *slice,
                      struct error *err)
{
    if (strcmp(op->name, slice_get_name(slice)) == 0)
        return 0;
    return error_set(err, EINVAL,
                     "metadata.name: is \"%s\", must be \"%s\" as in the path",
                     slice_get_name(slice), op->name);
}

/* Store what ingest has accepted. */
static int store_accepted(struct batch *b, struct writer_op *op,
                          const char *node, const struct ingest_result *r)
{
    struct store *store = b->w->store;
    struct error *err = &b->error;
    int e = batch_begin(b);
    for (size_t i = 0; i < r->n_dropped && e == 0; i++)
        e = store_delete_slice(store, r->dropped[i], err);
    if (e == 0 && r->retired_boot)
        e = store_retire_boot(store, node, r->retired_boot, err);
    if (e == 0)
        e = store_put_slice(store, op->name, node, op->body, op->body_size,
                            &op->resource_version, err);
    if (e == 0)
        e = store_set_silent(store, node, false, err);
    return e;
}

/* The batch has to forget these slices once it is committed. */
static void take_dropped(struct batch *b, struct ingest_result *r)
{
    for (size_t i = 0; i < r->n_dropped; i++) {
        b->gone = xgrow(b->gone, b->n_gone, &b->gone_cap, sizeof(*b->gone));
        b->gone[b->n_gone++] = steal(&r->dropped[i]);
    }
}

/* Is the same body stored already?  From an advertiser that is also a
 * heartbeat; from the API server's watch it is not: it says nothing of who is
 * alive. */
static bool is_repeated(struct batch *b, struct writer_op *op)
{
    struct writer *w = b->w;
    if (b->in_transaction)
        return false;
    const struct slice_cache_body body = {op->name, op->owner, op->body,
                                          op->body_size};
    if (store_get_kind(w->store) == STORE_KUBERNETES)
        return slice_cache_repeat(w->heard, &body, -1, &op->resource_version);
    return writer_heartbeat(w, &body, &op->resource_version);
}

/* May the client change slices of this node? */
static int check_owner(struct writer_op *op, const char *node)
{
    if (!op->owner || !node || strcmp(op->owner, node) == 0)
        return 0;
    return error_set(&op->error, EACCES,
                     "slice \"%s\" is of node \"%s\", and the client's "
                     "certificate speaks for node \"%s\"",
                     op->name, node, op->owner);
}

void apply_put_slice(struct batch *b, struct writer_op *op)
{
    struct slice *slice = op->slice;
    struct ingest_result result = {0};
    struct ingest *ingest = b->w->ingest;
    if (op->result < 0 || is_repeated(b, op))
        return; /* it is no slice, or another operation stored the same while
                 * this one was queued */

    op->result = check_name(op, slice, &op->error);
    if (op->result == 0)
        op->result = check_owner(op, slice_get_node(slice));
    if (op->result < 0)
        return;
    op->created = ingest_owner(ingest, op->name) == NULL;
    cleanup_free const struct allocation **known = NULL;
    size_t n_known = list_conflicts(b, slice_get_node(slice), &known);
    const struct node *old = draft_node(batch_draft(b), slice_get_node(slice));
    const struct topo *before = old ? old->published : NULL;
    op->result = ingest_put(ingest, slice, clock_ms(), batch_draft(b), &result,
                            &op->error);
    if (op->result < 0)
        return;
    bars_follow(b->w, batch_draft(b), slice_get_node(slice), before);
    tell_conflicts(b, slice_get_node(slice), known, n_known);
    op->result = store_accepted(b, op, slice_get_node(slice), &result);
    if (is_lost(b->w, slice_get_node(slice)))
        draft_set_status(batch_draft(b), slice_get_node(slice), NODE_LOST);
    else if (is_doubtful(b->w, slice_get_node(slice)))
        draft_set_status(batch_draft(b), slice_get_node(slice), NODE_DOUBTFUL);
    take_dropped(b, &result);
    ingest_result_fini(&result);
}

void apply_delete_slice(struct batch *b, struct writer_op *op)
{
    op->result = check_owner(op, ingest_owner(b->w->ingest, op->name));
    if (op->result == 0)
        op->result = ingest_delete(b->w->ingest, op->name, batch_draft(b),
                                   &op->error);
    if (op->result < 0)
        return;
    op->result = batch_begin(b);
    if (op->result == 0)
        op->result = store_delete_slice(b->w->store, op->name, &b->error);
    op->resource_version = store_resource_version(b->w->store);
}

/* --- bind -------------------------------------------------------------- */

/* Decide on the draft: the allocation, or why not. */
static int bind_decide(struct batch *b, struct writer_op *op,
                       struct allocation **ret_allocation)
{
    struct schedule schedule;
    struct choice choice;
    const struct snapshot *snapshot = batch_peek(b);
    int32_t index = snapshot_find(snapshot, op->node, strlen(op->node));
    schedule_init(&schedule, snapshot, op->demand);
    enum reason reason = schedule_choose(&schedule, index, &choice);
    if (reason != REASON_NONE) {
        cleanup_str struct str why = STR_INIT(EXPLAIN_MAX);
        schedule_explain(&schedule, index, reason, &why);
        return error_set(
            &op->error, EBUSY, "pod %s/%s does not fit node %s: %s",
            op->demand->namespace, op->demand->name, op->node, str_text(&why));
    }
    *ret_allocation = schedule_allocation(&schedule, index, &choice);
    return 0;
}

static void bind_answer(struct writer_op *op, const struct allocation *a)
{
    op->resource_version = a->number;
    allocation_encode(a, &op->out);
}

/* The pod is bound already.  Binding it to the same node again succeeds. */
static void bind_repeat(struct writer_op *op, const struct allocation *old)
{
    if (strcmp(old->node, op->node) == 0) {
        bind_answer(op, old);
        return;
    }
    op->result = error_set(&op->error, EEXIST,
                           "pod %s/%s is bound to node %s already",
                           op->demand->namespace, op->demand->name, old->node);
}

/* The allocation, and the places that are held with it. */
static void bind_store(struct batch *b, struct writer_op *op,
                       struct allocation *a, const struct hold_change *change)
{
    const struct demand *pod = op->demand;
    op->result = batch_begin(b);
    if (op->result < 0)
        return;
    a->number = store_take_version(b->w->store);
    (void)failpoint("bind-before-write");
    op->result = hold_change_store(b, change);
    (void)failpoint("bind-holds-written");
    if (op->result == 0)
        op->result = store_put_allocation(b->w->store, a, &b->error);
    (void)failpoint("bind-after-write");
    if (op->result < 0)
        return;
    struct draft *draft = batch_draft(b);
    const struct allocation *old = draft_find_allocation(draft, pod->namespace,
                                                         pod->name);
    struct demand former;
    if (old)
        former = old->demand;
    draft_allocate(draft, allocation_ref(a));
    op->result = bind_settle(b, a, old ? &former : NULL);
    if (op->result < 0)
        return;
    op->created = true;
    b->has_bind = true;
    bind_answer(op, a);
}

static void withhold(struct batch *b, const struct writer_op *op)
{
    for (size_t i = 0; i < op->n_withheld; i++)
        draft_put_claim(batch_draft(b), op->withheld[i]);
}

static void withhold_no_more(struct batch *b, const struct writer_op *op)
{
    for (size_t i = 0; i < op->n_withheld; i++)
        draft_drop_claim(batch_draft(b), op->withheld[i]);
}

void apply_bind(struct batch *b, struct writer_op *op)
{
    const struct demand *pod = op->demand;
    cleanup_with(allocation) struct allocation *fresh = NULL;
    struct hold_change change = {0};
    (void)failpoint("bind-begin");
    if (pod->role == ROLE_NONE) {
        op->result = error_set(&op->error, EINVAL,
                               "pod %s/%s: has no role, so nothing is bound",
                               pod->namespace, pod->name);
        return;
    }
    if (taking_waits(b, op)) {
        op->again = true;
        return;
    }
    const struct snapshot *now = b->draft ? batch_peek(b) : b->w->current;
    const struct allocation *old = alloc_index_find(now->allocations,
                                                    pod->namespace, pod->name);
    if (old && strcmp(old->demand.uid, pod->uid) == 0) {
        bind_repeat(op, old);
        return;
    }
    /* an old allocation of another uid: that pod has ended, as there is a new
     * one of its name; schedule counts its cards as free */
    withhold(b, op);
    op->result = bind_plan(b, op, &change);
    if (op->result == 0 && !op->again)
        op->result = bind_decide(b, op, &fresh);
    withhold_no_more(b, op);
    if (fresh) {
        (void)failpoint("bind-decided");
        bind_store(b, op, fresh, &change);
    } else if (change.n_added) {
        hold_change_undo(b, &change);
    }
    hold_change_fini(&change);
}
