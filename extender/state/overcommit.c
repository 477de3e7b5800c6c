#include "extender/state/overcommit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/state/usage.h"
#include "lib/base/mem.h"

/* Others may join what asks for no certain room of a card only before it
 * comes; their order is that of the numbers, not that in which they are told.
 * Itself it takes nothing of the card. */
static bool came_later(const struct topo *topo, const struct allocation *a,
                       const struct allocation *other)
{
    return !other->demand.has_card_need && !other->demand.exclusive &&
           other->number > a->number &&
           !(allocation_gpus(topo, other) & allocation_gpus(topo, a)) &&
           !(allocation_nics(topo, other) & allocation_nics(topo, a));
}

/* The node as others leave it to the pod: without its own pair, and without
 * what is only held. */
static void state_beside(const struct node *node, const struct policy *policy,
                         const struct allocation *a,
                         struct node_state *ret_state)
{
    const struct allocation **list = xcalloc(node->n_allocations + 1,
                                             sizeof *list);
    struct usage usage;
    node_usage(node, policy, &usage);
    usage.allocations = list;
    usage.n = 0;
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *other = node->allocations[i];
        bool own = a->demand.role != ROLE_SERVICE &&
                   strcmp(other->pair_key, a->pair_key) == 0;
        if (!other->held && !own && allocation_compare_pod(other, a) != 0 &&
            !came_later(node->topo, a, other))
            list[usage.n++] = other;
    }
    usage_state(&usage, &a->demand, ret_state);
    free(list);
}

static const struct device *find_device(const struct topo *topo,
                                        enum device_kind kind, const char *id)
{
    size_t first = 0, n = topo_count(topo, kind, &first);
    for (size_t i = first; i < first + n; i++)
        if (strcmp(topo_device(topo, i)->id, id) == 0)
            return topo_device(topo, i);
    return NULL;
}

static const char *find_gone(const struct topo *topo,
                             const struct allocation *a)
{
    for (size_t i = 0; i < a->n_cards; i++)
        if (!find_device(topo, DEVICE_CARD, a->cards[i]))
            return a->cards[i];
    for (size_t i = 0; i < a->n_gpus; i++)
        if (!find_device(topo, DEVICE_GPU, a->gpus[i]))
            return a->gpus[i];
    for (size_t i = 0; i < a->n_nics; i++)
        if (!find_device(topo, DEVICE_NIC, a->nics[i]))
            return a->nics[i];
    return NULL;
}

/* Why one of its cards cannot be what others leave to it. */
static enum reason judge_card(const struct node_state *state,
                              const struct allocation *a, uint16_t card)
{
    struct demand asked = a->demand; /* of just this card, nothing else */
    struct choice ignored;
    asked.cards = asked.pair_cards = 1;
    asked.gpus = asked.pair_gpus = 0;
    asked.nics = asked.pair_nics = 0;
    asked.cpu_milli = 0;
    asked.align = RELATION_SYS;
    return decide(state, &asked, card, card, &ignored);
}

/* False when the card is as it should be. */
static bool explain_card(const struct device *card, const struct demand *has,
                         enum reason reason, struct str *text)
{
    if (reason == REASON_CARD_CORES ||
        (card->cores && has->card_cores > card->cores))
        str_addf(text, "%s has %" PRIu32 " cores, its pods have more", card->id,
                 card->cores);
    else if (reason == REASON_CARD_MEMORY ||
             (card->memory_mib && has->card_memory_mib > card->memory_mib))
        str_addf(text, "%s has %" PRIu64 " MiB, its pods have more", card->id,
                 card->memory_mib);
    else if (reason == REASON_CARDS_BUSY)
        str_addf(text, "%s is another pod's, too", card->id);
    else
        return false;
    return true;
}

/* The first of `bits` that two pods have. */
static bool explain_double(const struct topo *topo, enum device_kind kind,
                           unsigned bits, struct str *text)
{
    size_t considered[TOPO_KIND_MAX];
    if (!bits)
        return false;
    (void)topo_considered(topo, kind, considered);
    str_addf(text, "%s is another pod's, too",
             topo_device(topo, considered[__builtin_ctz(bits)])->id);
    return true;
}

static bool find_more(const struct node *node, const struct policy *policy,
                      const struct allocation *a, struct str *text)
{
    const struct topo *topo = node->topo;
    struct node_state state;
    size_t first_card;
    state_beside(node, policy, a, &state);
    (void)topo_count(topo, DEVICE_CARD, &first_card);
    if (explain_double(topo, DEVICE_GPU,
                       state.gpus_used & allocation_gpus(topo, a), text) ||
        explain_double(topo, DEVICE_NIC,
                       state.nics_used & allocation_nics(topo, a), text))
        return true;
    for (unsigned cards = allocation_cards(topo, a); cards;
         cards &= cards - 1) {
        size_t card = (size_t)__builtin_ctz(cards);
        enum reason reason = judge_card(&state, a, (uint16_t)(1u << card));
        if (explain_card(topo_device(topo, first_card + card), &a->demand,
                         reason, text))
            return true;
    }
    return false;
}

enum overfull overcommit_find(const struct node *node,
                              const struct policy *policy,
                              const struct allocation *a, struct str *text)
{
    cleanup_str struct str ignored = STR_INIT(STR_MAX_DEFAULT);
    node = node_whole(node);
    if (!text)
        text = &ignored;
    if (!node->topo)
        return OVERCOMMIT_NOT;
    if (find_more(node, policy, a, text))
        return OVERCOMMIT_MORE;
    const char *gone = find_gone(node->topo, a);
    if (!gone)
        return OVERCOMMIT_NOT;
    str_addf(text, "%s is not on node %s", gone, node->name);
    return OVERCOMMIT_GONE;
}
