#include "extender/state/card_sight.h"

#include <string.h>

static const struct device *find_card(const struct topo *topo, const char *id)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first);
    for (size_t i = 0; i < n; i++)
        if (strcmp(topo_device(topo, first + i)->id, id) == 0)
            return topo_device(topo, first + i);
    return NULL;
}

static enum card_sight look_at(const struct topo *topo, const char *id)
{
    const struct device *card = find_card(topo, id);
    if (!card)
        return CARD_SIGHT_GONE;
    return strcmp(card->health, "lost") == 0 ? CARD_SIGHT_LOST
                                             : CARD_SIGHT_THERE;
}

enum card_sight card_sight_of(const struct snapshot *s, const char *uid,
                              char ret_card[TOPO_ID_MAX + 1])
{
    enum card_sight sight = CARD_SIGHT_NONE;
    const struct allocation *a = alloc_index_find_uid(s->allocations, uid);
    int32_t at = a ? snapshot_find(s, a->node, strlen(a->node)) : NODE_NONE;
    ret_card[0] = '\0';
    if (at == NODE_NONE)
        return sight;
    const struct node *node = snapshot_node(s, (size_t)at);
    if (node->status != NODE_READY || !node->topo)
        return sight;
    for (size_t i = 0; i < a->n_cards; i++) {
        sight = look_at(node->topo, a->cards[i]);
        if (sight == CARD_SIGHT_THERE)
            continue;
        memcpy(ret_card, a->cards[i], sizeof a->cards[i]);
        break;
    }
    return sight;
}
