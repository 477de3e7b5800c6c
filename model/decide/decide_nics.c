/* Which compute NICs go with cards and GPUs.  What a NIC serves is a GPU, or
 * a card where the pair has no GPU. */
#include <string.h>

#include "model/decide/bits.h"
#include "model/decide/decide_search.h"

uint16_t decide_nics_free(const struct node_state *state)
{
    return (uint16_t)(((1u << state->shape->n_nics) - 1) &
                      ~(unsigned)state->nics_used);
}

/* How far a NIC is from one of those that it may serve. */
static uint8_t distance(const struct shape *shape, bool serve_gpus,
                        unsigned served, unsigned nic)
{
    return serve_gpus ? shape->gpu_nic[served][nic]
                      : shape->card_nic[served][nic];
}

void decide_nics_init(struct nic_search *nics, const struct shape *shape,
                      unsigned nics_free, bool serve_gpus)
{
    unsigned n = serve_gpus ? shape->n_gpus : shape->n_cards;
    for (unsigned r = 0; r < RELATION_COUNT; r++) {
        struct cover *cover = &nics->at[r];
        cover->known = nics->known[r];
        for (unsigned s = 0; s < n; s++) {
            unsigned near = 0;
            for (unsigned f = nics_free; f; f &= f - 1) {
                unsigned nic = (unsigned)__builtin_ctz(f);
                if (distance(shape, serve_gpus, s, nic) <= r)
                    near |= 1u << nic;
            }
            cover->near[s] = (uint16_t)near;
        }
        nics->listed[r] = false;
        (void)cover_serve(cover, (1u << n) - 1, shape->n_nics);
        cover_prepare(cover, n, shape->n_nics);
    }
}

bool decide_nics_suffice(const struct search *s, enum relation relation,
                         unsigned served)
{
    struct cover *cover = &s->nics->at[relation];
    return count_bits(cover_near(cover, served)) >= s->demand->nics &&
           cover_size(cover, served) <= s->demand->nics;
}

static void list_gpus(const struct search *s, enum relation relation)
{
    struct nic_search *nics = s->nics;
    struct sets sets;
    unsigned n = 0;
    sets_begin(&sets, s->gpus_free, s->demand->gpus);
    for (unsigned g; (g = sets_next(&sets)) != 0;)
        if (decide_nics_suffice(s, relation, g))
            nics->gpus[relation][n++] = (uint16_t)g;
    nics->n_gpus[relation] = n;
    nics->listed[relation] = true;
}

unsigned decide_gpus_near_nics(const struct search *s, unsigned cards,
                               enum relation relation, unsigned *at)
{
    struct nic_search *nics = s->nics;
    if (!nics->listed[relation])
        list_gpus(s, relation);
    unsigned from = cover_near(&s->gpus, cards);
    while (*at < nics->n_gpus[relation]) {
        unsigned gpus = nics->gpus[relation][(*at)++];
        if ((gpus & ~from) == 0 && cover_holds(&s->gpus, cards, gpus))
            return gpus;
    }
    return 0;
}

enum relation decide_nics_relation(const struct search *s, unsigned cards,
                                   enum relation most)
{
    for (enum relation r = RELATION_PIX; r <= most; r++) {
        unsigned at = 0;
        if (r == RELATION_SYS) /* one NIC serves all */
            return r;
        if (s->demand->gpus ? decide_gpus_near_nics(s, cards, r, &at) != 0
                            : decide_nics_suffice(s, r, cards))
            return r;
    }
    return RELATION_COUNT;
}

uint16_t decide_pick_nics(const struct nic_search *nics,
                          const struct shape *shape,
                          const struct demand *demand,
                          const struct choice *choice)
{
    const struct cover *cover = &nics->at[choice->nic_relation];
    unsigned served = demand->gpus ? choice->gpus : choice->cards;
    uint8_t closest[COVER_SIDE_MAX];
    memset(closest, RELATION_COUNT, sizeof closest);
    for (unsigned s = served; s; s &= s - 1)
        for (unsigned nic = 0; nic < shape->n_nics; nic++) {
            uint8_t r = distance(shape, demand->gpus != 0,
                                 (unsigned)__builtin_ctz(s), nic);
            if (r < closest[nic])
                closest[nic] = r;
        }
    return (uint16_t)decide_lightest(cover, served, cover_near(cover, served),
                                     demand->nics, closest);
}

bool decide_add_nics(const struct node_state *state,
                     const struct demand *demand, struct choice *choice)
{
    struct nic_search nics;
    struct search s = {.demand = demand, .nics = &nics};
    unsigned free = decide_nics_free(state);
    unsigned served = demand->gpus ? choice->gpus : choice->cards;
    enum relation r = RELATION_PIX;
    if (count_bits(free) < demand->nics)
        return false;
    decide_nics_init(&nics, state->shape, free, demand->gpus != 0);
    while (r < RELATION_SYS && !decide_nics_suffice(&s, r, served))
        r++;
    choice->nic_relation = (uint8_t)r;
    choice->nics = decide_pick_nics(&nics, state->shape, demand, choice);
    return true;
}
