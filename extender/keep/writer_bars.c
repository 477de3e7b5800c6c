/* Cards that are barred (card_bars.h): who manages them says so again after a
 * start, so nothing is stored. */
#include <stdlib.h>
#include <string.h>

#include "extender/keep/writer_private.h"
#include "lib/io/log.h"

struct node_bars {
    char *node;
    struct card_bars *bars;
};

static void node_bars_free(void *object)
{
    struct node_bars *n = object;
    card_bars_unref(n->bars);
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

void bars_follow(const struct writer *w, struct draft *draft, const char *node,
                 const struct topo *before)
{
    const struct node_bars *known = strmap_get(&w->bars, node);
    const struct node *is = draft_node(draft, node);
    if (!known || !is)
        return;
    if (is->published != before)
        tell_unmatched(known->bars, is);
    draft_set_bars(draft, node, known->bars);
}

void note_bars(struct writer *w, struct writer_op *op, struct draft **draft)
{
    if (op->kind != WRITER_BARS)
        return;
    struct node_bars *n = strmap_remove(&w->bars, op->node);
    if (n)
        node_bars_free(n);
    if (op->bars) {
        n = xcalloc(1, sizeof *n);
        n->node = xstrdup(op->node);
        n->bars = card_bars_ref(op->bars);
        (void)strmap_put(&w->bars, n->node, n);
    }
    const struct node *is = draft_node(draft_once(w, draft), op->node);
    if (!is)
        return;
    tell_unmatched(op->bars, is);
    draft_set_bars(*draft, op->node, op->bars);
}
