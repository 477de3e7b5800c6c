/* plan_ladder - what one node holds of a job's pairs: of one shape a ladder,
 * of several a pack. */
#ifndef BIGA_MODEL_PLAN_PLAN_LADDER_H
#define BIGA_MODEL_PLAN_PLAN_LADDER_H

#include "model/decide/decide_private.h"
#include "model/plan/plan.h"

enum { LADDER_STEPS = 200000 }; /* for the rungs of one state */

/* What a state holds of one shape: rung n (0 … room) is the best way to put n
 * pairs on it; rungs up to `aligned` have nobody unaligned. */
struct ladder {
    uint32_t room, aligned;
    uint32_t bound; /* there is no rung above; > room: nor is it known that
                     * there is none up to it */
    bool open;      /* there may be better rungs: ladder_improve() */
    uint32_t *unaligned, *damage; /* by rung */
    bool nested;                  /* rung n has the first n choices; else its
                                   * own, from n * (n - 1) / 2 on */
    struct choice *choices;
    struct ladder *low; /* has the rungs below low_end; NULL: none */
    uint32_t low_end;
};
static inline const struct choice *ladder_choice(const struct ladder *l,
                                                 uint32_t rung, uint32_t i)
{
    if (l->low && rung < l->low_end)
        return ladder_choice(l->low, rung, i);
    return &l->choices[(l->nested ? 0 : (size_t)rung * (rung - 1) / 2) + i];
}

/* What aligned means to a demand on a shape. */
struct align {
    const struct shape *shape;
    struct decide_ideal ideal;
    unsigned relation;             /* of an aligned pair, at worst */
    uint16_t near[TOPO_CARDS_MAX]; /* cards that can be in one aligned pair
                                    * with this one */
};
void align_init(struct align *a, const struct shape *shape,
                const struct demand *demand);
void ladder_init(struct ladder *l, const struct node_state *state,
                 const struct demand *shape, const struct align *a,
                 uint32_t max);
/* Try everything, for at most `*steps`, of which those it took are gone then;
 * what is better is kept. */
void ladder_improve(struct ladder *l, const struct node_state *state,
                    const struct demand *shape, uint64_t *steps);
void ladder_fini(struct ladder *l);
/* No node holds more pairs than this, wherever its devices are. */
uint32_t ladder_bound(const struct node_state *state,
                      const struct demand *shape, uint32_t max);

/* Cards of wholly idle groups of `state` that are left behind once `cards`
 * are taken. */
uint32_t plan_damage(const struct node_state *state, uint16_t cards);

/* Every best way to put a few pairs of several shapes on one state: the rung
 * of n_s pairs of each shape s is number sum(n_s * stride[s]). */
enum {
    PLAN_FEW = 8,        /* pairs of a job of which every plan is tried */
    PLAN_FEW_NODES = 64, /* … for one shape: on more nodes the search is cut
                          * before it finds anything */
    PACK_PAIRS = 16,     /* that a pack holds, at most */
};
struct pack_rung {
    bool fits;
    uint32_t unaligned, damage;
    uint32_t idle;                     /* idle cards that it takes */
    struct choice choices[PACK_PAIRS]; /* shape by shape, in pack's order */
};
struct pack {
    size_t n_shapes;
    uint8_t order[PLAN_SHAPES_MAX]; /* in which the shapes are placed */
    uint32_t most[PLAN_SHAPES_MAX], stride[PLAN_SHAPES_MAX];
    uint32_t n_rungs;
    struct pack_rung *rungs;
    bool cut; /* the steps did not suffice: rungs are not the best, or fit
               * although they say not */
};
/* At most `most[s]` pairs of each shape, PACK_PAIRS together.  `*steps` are
 * what the search may spend, and then what is left. */
void pack_init(struct pack *p, const struct node_state *state,
               const struct demand *shapes, size_t n_shapes,
               const uint32_t *most, uint64_t *steps);
void pack_fini(struct pack *p);

#endif
