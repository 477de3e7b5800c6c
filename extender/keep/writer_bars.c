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
    struct card_bars *edited; /* in place of these, within a batch */
    bool is_edited;
};

static void node_bars_free(void *object)
{
    struct node_bars *n = object;
    card_bars_unref(n->bars);
    card_bars_unref(n->drains);
    card_bars_unref(n->edited);
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
    if (n->bars || n->drains || n->is_edited)
        return;
    (void)strmap_remove(&w->bars, n->node);
    node_bars_free(n);
}

static const struct card_bars *drains_of(const struct node_bars *n)
{
    return n->is_edited ? n->edited : n->drains;
}

static void bars_put(struct draft *draft, const struct node_bars *n)
{
    cleanup_with(card_bars) struct card_bars *all = card_bars_join(drains_of(n),
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

void note_bars(struct writer *w, struct writer_op *op, struct draft **draft)
{
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

/* The drains of a node within the batch, with those that came before in it. */
static int edit(struct batch *b, const struct writer_op *op)
{
    struct node_bars *n = bars_get(b->w, op->node);
    struct card_bars *edited;
    int r = card_bars_edit(drains_of(n), &op->bars->items[0], op->gone,
                           &edited);
    if (r < 0) {
        bars_tidy(b->w, n);
        return r;
    }
    card_bars_unref(n->edited);
    n->edited = edited;
    n->is_edited = true;
    if (draft_node(batch_draft(b), op->node))
        bars_put(batch_draft(b), n);
    return 0;
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

/* What was edited counts, or not. */
static void settle(struct writer *w, const char *node, bool counts)
{
    struct node_bars *n = strmap_get(&w->bars, node);
    if (!n || !n->is_edited)
        return;
    card_bars_unref(counts ? n->drains : n->edited);
    if (counts)
        n->drains = n->edited;
    n->edited = NULL;
    n->is_edited = false;
    bars_tidy(w, n);
}

void drains_settle(struct writer *w, const struct writer_op *ops)
{
    for (const struct writer_op *op = ops; op; op = op->next) {
        if (op->kind != WRITER_DRAIN || op->result < 0)
            continue;
        const struct card_bar *drain = &op->bars->items[0];
        settle(w, op->node, true);
        log_event(LOG_INFO, op->gone ? "undrained" : "drained", "node",
                  op->node, "card", drain->card[0] ? drain->card : "all", "by",
                  drain->by, "reason", drain->reason, NULL);
    }
    for (const struct writer_op *op = ops; op; op = op->next)
        if (op->kind == WRITER_DRAIN)
            settle(w, op->node, false); /* all of the batch has failed */
}

static int load(void *ctx, const char *node, const struct card_bar *drain)
{
    struct node_bars *n = bars_get(ctx, node);
    struct card_bars *before = n->drains;
    if (card_bars_edit(before, drain, false, &n->drains) == 0)
        card_bars_unref(before);
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
