/* Which GPUs and NUMA node go with cards that reach the relation. */
#include "model/decide/decide_search.h"

/* The `n` closest of `from`, the lowest bits among equals. */
static unsigned closest_of(unsigned from, unsigned n,
                           const uint8_t closest[COVER_SIDE_MAX])
{
    unsigned taken = 0;
    for (unsigned w = 0; w < RELATION_COUNT; w++)
        for (unsigned d = from; d && n; d &= d - 1)
            if (closest[__builtin_ctz(d)] == w) {
                taken |= d & -d;
                n--;
            }
    return taken;
}

static unsigned sum_of(unsigned set, const uint8_t closest[COVER_SIDE_MAX])
{
    unsigned sum = 0;
    for (unsigned d = set; d; d &= d - 1)
        sum += closest[__builtin_ctz(d)];
    return sum;
}

unsigned decide_lightest(const struct cover *cover, unsigned set, unsigned from,
                         unsigned n, const uint8_t closest[COVER_SIDE_MAX])
{
    unsigned best = closest_of(from, n, closest), best_sum = UINT32_MAX;
    if (cover_holds(cover, set, best))
        return best;
    struct sets sets;
    sets_begin(&sets, from, n);
    best = 0;
    for (unsigned d; (d = sets_next(&sets)) != 0;) {
        unsigned sum = sum_of(d, closest);
        if (sum < best_sum && cover_holds(cover, set, d)) {
            best_sum = sum;
            best = d;
        }
    }
    return best;
}

/* The closest relation of each GPU to any of the cards. */
static void weigh_gpus(const struct search *s, unsigned cards,
                       uint8_t closest[COVER_SIDE_MAX])
{
    for (unsigned g = 0; g < s->shape->n_gpus; g++) {
        closest[g] = RELATION_COUNT;
        for (unsigned c = cards; c; c &= c - 1) {
            uint8_t relation = s->shape->card_gpu[__builtin_ctz(c)][g];
            if (relation < closest[g])
                closest[g] = relation;
        }
    }
}

static unsigned pick_gpus(const struct search *s, unsigned cards)
{
    uint8_t closest[COVER_SIDE_MAX];
    weigh_gpus(s, cards, closest);
    return decide_lightest(&s->gpus, cards, cover_near(&s->gpus, cards),
                           s->demand->gpus, closest);
}

/* Of those whose NICs suffice within the relation. */
static unsigned pick_gpus_near_nics(const struct search *s, unsigned cards,
                                    enum relation nics)
{
    unsigned best = 0, best_sum = UINT32_MAX;
    uint8_t closest[COVER_SIDE_MAX];
    weigh_gpus(s, cards, closest);
    for (unsigned g = 0, at = 0;
         (g = decide_gpus_near_nics(s, cards, nics, &at)) != 0;) {
        unsigned sum = sum_of(g, closest);
        if (sum < best_sum) {
            best_sum = sum;
            best = g;
        }
    }
    return best;
}

/* Of the NUMA nodes with the CPUs: the one whose worst card is closest, then
 * whose cards are closest in sum, then the first.  When one of the cards' own
 * is required it is one of those. */
static int16_t pick_numa(const struct search *s, unsigned cards)
{
    const struct shape *shape = s->shape;
    unsigned best = UINT32_MAX;
    int16_t numa = -1;
    for (uint64_t left = s->numas; left; left &= left - 1) {
        unsigned n = (unsigned)__builtin_ctzll(left), worst = 0, sum = 0;
        bool own = !(cards & s->rooted);
        for (unsigned c = cards; c; c &= c - 1) {
            uint8_t relation = shape->card_numa[__builtin_ctz(c)][n];
            worst = relation > worst ? relation : worst;
            sum += relation;
            own |= relation <= RELATION_NODE;
        }
        unsigned weight = worst * TOPO_CARDS_MAX * RELATION_COUNT + sum;
        if (own && weight < best) {
            best = weight;
            numa = shape->numa_id[n];
        }
    }
    return numa;
}

void decide_pick(const struct search *s, unsigned cards,
                 struct choice *ret_choice)
{
    ret_choice->cards = (uint16_t)cards;
    ret_choice->numa = pick_numa(s, cards);
    if (!s->nics) {
        if (s->demand->gpus)
            ret_choice->gpus = (uint16_t)pick_gpus(s, cards);
        return;
    }
    enum relation nics = decide_nics_relation(s, cards, RELATION_SYS);
    if (s->demand->gpus)
        ret_choice->gpus = (uint16_t)pick_gpus_near_nics(s, cards, nics);
    ret_choice->nic_relation = (uint8_t)nics;
    ret_choice->nics = decide_pick_nics(s->nics, s->shape, s->demand,
                                        ret_choice);
}
