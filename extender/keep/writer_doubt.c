/* Nodes in doubt, whose allocations may have been lost: see
 * store_in_doubt(). */
#include <stdlib.h>

#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

bool is_doubtful(const struct writer *w, const char *node)
{
    return store_in_doubt(w->store) && !strmap_get(&w->trusted, node);
}

static int trust(void *ctx, const char *node, uint64_t number)
{
    struct writer *w = ctx;
    (void)number;
    if (strmap_get(&w->trusted, node))
        return 0;
    char *name = xstrdup(node);
    (void)strmap_put(&w->trusted, name, name);
    return 0;
}

bool writer_in_doubt(const struct writer *w)
{
    return atomic_load(&w->in_doubt);
}

int doubt_load(struct writer *w, struct error *err)
{
    atomic_store(&w->in_doubt, store_in_doubt(w->store));
    return store_each_trusted(w->store, trust, w, err);
}

void apply_trust(struct batch *b, struct writer_op *op)
{
    struct store *store = b->w->store;
    if (!store_in_doubt(store)) {
        op->result =
            error_set(&op->error, ENOENT,
                      "no node is doubtful: nothing was found damaged, "
                      "or all is known again");
        return;
    }
    if (op->node && !draft_node(batch_draft(b), op->node)) {
        op->result = error_set(&op->error, ENOENT,
                               "node %s: nothing was published for it",
                               op->node);
        return;
    }
    op->result = batch_begin(b);
    if (op->result == 0)
        op->result = store_trust(store, op->node, &b->error);
    op->resource_version = store_resource_version(store);
}

bool doubt_settle(struct writer *w, const struct writer_op *ops)
{
    bool changed = false;
    for (const struct writer_op *op = ops; op; op = op->next) {
        if (op->kind != WRITER_TRUST || op->result < 0)
            continue;
        if (op->node)
            (void)trust(w, op->node, 0); /* always 0 */
        log_event(LOG_INFO, "doubt-over", "node", op->node ? op->node : "all",
                  "by", op->owner ? "the node" : "an operator", NULL);
        changed = true;
    }
    if (changed)
        atomic_store(&w->in_doubt, store_in_doubt(w->store));
    return changed;
}
