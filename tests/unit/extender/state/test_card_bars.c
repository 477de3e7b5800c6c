#include "extender/state/card_bars.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* A list of drains of node and card "c", each with or without evict. */
static const struct card_bar *eviction(bool node, bool node_evicts, bool card,
                                       bool card_evicts)
{
    static struct card_bar found;
    cleanup_with(card_bars) struct card_bars *b = card_bars_create(2);
    b->n = 0;
    if (card) {
        struct card_bar *own = &b->items[b->n++];
        *own = (struct card_bar){.drains = true, .evict = card_evicts};
        (void)snprintf(own->card, sizeof own->card, "c");
    }
    if (node)
        b->items[b->n++] = (struct card_bar){.drains = true,
                                             .evict = node_evicts};
    const struct card_bar *drain = card_bars_eviction(b, "c");
    if (drain)
        found = *drain;
    return drain ? &found : NULL;
}

Test(card_bars, pods_end_when_card_or_node_says_so)
{
    cr_expect_null(eviction(false, false, false, false));
    cr_expect_null(eviction(true, false, true, false));
    cr_expect_str_eq(eviction(true, false, true, true)->card, "c");
    cr_expect_str_eq(eviction(true, true, false, false)->card, "");
    cr_expect_str_eq(eviction(true, true, true, false)->card, "",
                     "its card was drained before, without");
}

Test(card_bars, those_of_another_card_stay)
{
    cleanup_with(card_bars) struct card_bars *b = card_bars_create(1);
    b->items[0] = (struct card_bar){.drains = true, .evict = true};
    (void)snprintf(b->items[0].card, sizeof b->items[0].card, "d");
    cr_expect_null(card_bars_eviction(b, "c"));
}
