/* Cards that are barred (card_bars.h).  Of DPU operators' nothing is stored:
 * they say so again after a start.  Drains are. */
#include <stdlib.h>
#include <string.h>

#include "extender/keep/writer_private.h"
#include "lib/io/log.h"

struct node_bars {
    char *node;
    struct card_bars *bars;   /* what others say; NULL: nothing */
    struct card_bars *drains; /* NULL: none */
};

static void node_bars_free(void *object)
{
    struct node_bars *n = object;
    card_bars_unref(n->bars);
    card_bars_unref(n->drains);
    free(n->node);
    free(n);
}

void bars_free(struct writer *w)
{
    strmap_fini_with(&w->bars, node_bars_free);
}

/* Which of them are of no card of the node. */
static void tell_unmatched(const struct card_bars *bars,
                           const struct node *node)
{
    for (size_t i = 0; bars && node->published && i < bars->n; i++) {
        size_t card;
        enum card_bar_match match = card_bar_find(&bars->items[i],
                                                  node->published, &card);
        if (match != CARD_BAR_FOUND)
            log_event(LOG_WARN, "dpu-not-matched", "node", node->name, "why",
                      card_bar_match_text(match), "says", bars->items[i].why,
                      "meanwhile", "it bars no card", NULL);
    }
}

/* --- of one node ---------------------------------------------------------- */

static struct node_bars *bars_get(struct writer *w, const char *node)
{
    struct node_bars *n = strmap_get(&w->bars, node);
    if (n)
        return n;
    n = xcalloc(1, sizeof *n);
    n->node = xstrdup(node);
    (void)strmap_put(&w->bars, n->node, n);
    return n;
}

static void bars_tidy(struct writer *w, struct node_bars *n)
{
    if (n->bars || n->drains)
        return;
    (void)strmap_remove(&w->bars, n->node);
    node_bars_free(n);
}

static void bars_put(struct draft *draft, const struct node_bars *n)
{
    cleanup_with(card_bars) struct card_bars *all = card_bars_join(n->drains,
                                                                   n->bars);
    draft_set_bars(draft, n->node, all);
}

void bars_follow(const struct writer *w, struct draft *draft, const char *node,
                 const struct topo *before)
{
    const struct node_bars *known = strmap_get(&w->bars, node);
    const struct node *is = draft_node(draft, node);
    if (!known || !is)
        return;
    if (is->published != before)
        tell_unmatched(known->bars, is);
    bars_put(draft, known);
}

/* A slice that came behind the drain in its batch has put back what was known
 * before it, or brought the node. */
static void follow_drain(const struct writer *w, const struct writer_op *op,
                         struct draft **draft)
{
    const struct node_bars *n = strmap_get(&w->bars, op->node);
    cleanup_with(card_bars) struct card_bars *all =
        n ? card_bars_join(n->drains, n->bars) : NULL;
    int32_t at = snapshot_find(w->current, op->node, strlen(op->node));
    if (op->result < 0 || at == NODE_NONE ||
        card_bars_are_same(snapshot_node(w->current, (size_t)at)->bars, all))
        return;
    draft_set_bars(draft_once(w, draft), op->node, all);
}

void note_bars(struct writer *w, struct writer_op *op, struct draft **draft)
{
    if (op->kind == WRITER_DRAIN)
        follow_drain(w, op, draft);
    if (op->kind != WRITER_BARS)
        return;
    struct node_bars *n = bars_get(w, op->node);
    card_bars_unref(n->bars);
    n->bars = op->bars ? card_bars_ref(op->bars) : NULL;
    const struct node *is = draft_node(draft_once(w, draft), op->node);
    if (is) {
        tell_unmatched(op->bars, is);
        bars_put(*draft, n);
    }
    bars_tidy(w, n);
}

/* --- drains --------------------------------------------------------------- */

/* The drains of a node within the batch: those of its draft, or, while nothing
 * is published for it, those that are known. */
static int edit(struct batch *b, const struct writer_op *op)
{
    const struct node *is = draft_node(batch_draft(b), op->node);
    const struct node_bars *known = strmap_get(&b->w->bars, op->node);
    cleanup_with(card_bars) struct card_bars *edited = NULL;
    const struct card_bars *now = is ? is->bars : known ? known->drains : NULL;
    int r = card_bars_edit(now, &op->bars->items[0], op->gone, &edited);
    if (r == 0 && is)
        draft_set_bars(batch_draft(b), op->node, edited);
    return r;
}

void apply_drain(struct batch *b, struct writer_op *op)
{
    const struct card_bar *drain = &op->bars->items[0];
    op->result = edit(b, op);
    if (op->result < 0) {
        (void)error_set(&op->error, ENOENT, "%s%s%s is not drained", op->node,
                        drain->card[0] ? "/" : "", drain->card);
        return;
    }
    op->result = batch_begin(b);
    if (op->result == 0 && op->gone)
        op->result = store_delete_drain(b->w->store, op->node, drain->card,
                                        &b->error);
    else if (op->result == 0)
        op->result = store_put_drain(b->w->store, op->node, drain, &b->error);
}

static void settle(struct writer *w, const char *node,
                   const struct card_bar *drain, bool gone)
{
    struct node_bars *n = bars_get(w, node);
    struct card_bars *before = n->drains;
    if (card_bars_edit(before, drain, gone, &n->drains) == 0)
        card_bars_unref(before);
    bars_tidy(w, n);
}

void drains_settle(struct writer *w, const struct writer_op *ops)
{
    for (const struct writer_op *op = ops; op; op = op->next) {
        if (op->kind != WRITER_DRAIN || op->result < 0)
            continue;
        const struct card_bar *drain = &op->bars->items[0];
        settle(w, op->node, drain, op->gone);
        log_event(LOG_INFO, op->gone ? "undrained" : "drained", "node",
                  op->node, "card", drain->card[0] ? drain->card : "all", "by",
                  drain->by, "reason", drain->reason, NULL);
    }
}

static int load(void *ctx, const char *node, const struct card_bar *drain)
{
    settle(ctx, node, drain, false);
    return 0;
}

int drains_load(struct writer *w, struct draft *draft, struct error *err)
{
    int e = store_each_drain(w->store, load, w, err);
    size_t pos = 0;
    for (const struct node_bars *n; (n = strmap_next(&w->bars, &pos));)
        if (draft_node(draft, n->node))
            bars_put(draft, n);
    return e;
}
