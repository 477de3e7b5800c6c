/* decide_search - one demand on one state: what the files that search for
 * its cards, GPUs and NICs share. */
#ifndef BIGA_MODEL_DECIDE_DECIDE_SEARCH_H
#define BIGA_MODEL_DECIDE_DECIDE_SEARCH_H

#include "model/decide/decide_cover.h"
#include "model/decide/decide_private.h"

enum { DECIDE_GPU_SETS_MAX = 12870 }; /* 8 of 16 */

/* Which free NICs are near what they serve: the GPUs, or the cards of a
 * demand without.  For each relation. */
struct nic_search {
    struct cover at[RELATION_COUNT];
    /* the sets of free GPUs, as many as asked, whose NICs suffice */
    uint16_t gpus[RELATION_COUNT][DECIDE_GPU_SETS_MAX];
    unsigned n_gpus[RELATION_COUNT];
    bool listed[RELATION_COUNT]; /* gpus and n_gpus are known */
    uint8_t known[RELATION_COUNT][1 << COVER_SIDE_MAX]; /* as far as used */
};

/* `gpus` and `around` change with the relation that is tried. */
struct search {
    const struct shape *shape;
    const struct node_state *state;
    const struct demand *demand;
    struct card_need need;
    uint16_t available; /* cards */
    uint16_t must;
    uint16_t gpus_free;
    bool every_gpu;                    /* align holds for every choice */
    uint16_t any_near[TOPO_CARDS_MAX]; /* then: all GPUs within it of a card,
                                        * whoever has them */
    uint64_t numas;                    /* columns with the CPUs asked free */
    uint16_t rooted;  /* cards that are on a NUMA node, and those */
    uint16_t at_cpus; /* whose NUMA node has the CPUs free; both 0 when that
                       * is not required */
    uint16_t idle;    /* cards */
    uint16_t groups[SHAPE_GROUPS_MAX]; /* wholly idle */
    unsigned n_groups;

    enum relation relation;
    struct cover gpus; /* free GPUs within the relation of each card; those
                        * available are covered */
    uint16_t around[TOPO_NUMAS_MAX]; /* cards that share a NUMA node within
                                      * the relation; no set within another */
    unsigned n_around;
    uint16_t reach; /* available cards that can be part of a choice */

    struct nic_search *nics; /* NULL when none are asked */
};

/* The GPUs and NUMA node for cards that reach the relation; and NICs. */
void decide_pick(const struct search *s, unsigned cards,
                 struct choice *ret_choice);
/* Of `from`, the `n` that cover `set` with the smallest sum of distances to
 * it, then of the lowest bits; 0 for none.  `closest` has the distance of
 * each. */
unsigned decide_lightest(const struct cover *cover, unsigned set, unsigned from,
                         unsigned n, const uint8_t closest[COVER_SIDE_MAX]);

/* Make ready for NICs that serve GPUs, or cards.  The free NICs are enough. */
void decide_nics_init(struct nic_search *nics, const struct shape *shape,
                      unsigned nics_free, bool serve_gpus);
/* Are there as many NICs as asked, each within the relation of one of those
 * that they serve, so that each of these has one? */
bool decide_nics_suffice(const struct search *s, enum relation relation,
                         unsigned served);
/* The next set of GPUs whose NICs suffice and that is near `cards`, each of
 * which has one of them near; 0 behind the last.  `*at` is 0 at first. */
unsigned decide_gpus_near_nics(const struct search *s, unsigned cards,
                               enum relation relation, unsigned *at);
/* The closest relation in which NICs suffice for `cards` and the GPUs that
 * these may have; RELATION_COUNT when that is farther than `most`. */
enum relation decide_nics_relation(const struct search *s, unsigned cards,
                                   enum relation most);
/* The NICs, after the choice has cards, GPUs and the relation of NICs. */
uint16_t decide_pick_nics(const struct nic_search *nics,
                          const struct shape *shape,
                          const struct demand *demand,
                          const struct choice *choice);

#endif
