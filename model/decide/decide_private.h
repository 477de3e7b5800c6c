/* decide_private - what the files of the decision share, and plans. */
#ifndef BIGA_MODEL_DECIDE_DECIDE_PRIVATE_H
#define BIGA_MODEL_DECIDE_DECIDE_PRIVATE_H

#include "model/decide/decide.h"

enum {
    /* the widths of a cost's levels; together 32 bits */
    COST_RELATION_BITS = 3, /* highest */
    COST_SPREAD_BITS = 10,  /* at most 120 pairs * SYS: never cut */
    COST_DAMAGE_BITS = 6,
    COST_IDLE_BITS = 4,
    COST_CORES_BITS = 9, /* stored plus one, so that no cost is 0 */
    COST_NICS_BITS = 3,  /* of those of the cores, when NICs are asked */
};

/* What each card must have free: what was stated, or one core and one MiB
 * when nothing was. */
struct card_need {
    uint32_t cores, memory_mib;
};
struct card_need decide_need(const struct demand *demand);

/* The worst relation that `demand` accepts: no NUMA node is closer than
 * NODE, so without GPUs anything tighter asks for NODE. */
enum relation decide_align(const struct demand *demand);

/* The CPUs that its NUMA node is to have free, in thousandths: 0 but for a
 * host pod. */
uint32_t decide_cpus(const struct demand *demand);
/* The columns of the NUMA nodes that have them. */
uint64_t decide_numas_with(const struct node_state *state, uint32_t cpu_milli);
/* What every NUMA node has free when the node is idle. */
void decide_idle_cpus(const struct shape *shape,
                      uint32_t ret_milli[TOPO_NUMAS_MAX]);

/* Bits of the cards with the architecture asked, in whatever state. */
uint16_t decide_cards_of_arch(const struct shape *shape,
                              const struct demand *demand);
/* Bits of the cards that have the sets of devices asked. */
uint16_t decide_cards_with_devices(const struct shape *shape,
                                   const struct demand *demand);
/* Bits of the cards that decide_card_lets() says. */
uint16_t decide_cards_letting(const struct shape *shape,
                              const struct demand *demand);
/* Why there are too few of either. */
void decide_explain_devices(const struct node_state *state,
                            const struct demand *demand, struct str *out);
void decide_explain_rights(const struct node_state *state,
                           const struct demand *demand, struct str *out);
/* "2 of 8 cards WHAT; 3 are needed". */
void decide_add_shortage(struct str *out, unsigned n, unsigned of,
                         const char *what, unsigned needed);
/* Bits of the cards that are given as the demand asks: by claims or not. */
uint16_t decide_cards_by(const struct node_state *state,
                         const struct demand *demand);
/* Bits of the cards where the node can run the pods of the pair; all where
 * that is for others to do. */
uint16_t decide_cards_running(const struct node_state *state,
                              const struct demand *demand);
/* Bits of the cards whose free_cores and free_memory_mib hold the need. */
uint16_t decide_cards_with(const uint32_t cores[TOPO_CARDS_MAX],
                           const uint32_t memory_mib[TOPO_CARDS_MAX],
                           struct card_need need);
/* Bits of the cards that are neither closed nor, to an exclusive demand,
 * shared; whatever they have free. */
uint16_t decide_cards_open(const struct node_state *state,
                           const struct demand *demand);

/* Bits of the cards that each have what the demand asks of one, free. */
uint16_t decide_cards_for(const struct node_state *state,
                          const struct demand *demand);

/* Bits of the compute NICs that nobody has. */
uint16_t decide_nics_free(const struct node_state *state);
/* The NICs for a choice that has cards and GPUs, however these were chosen:
 * false when too few are free. */
bool decide_add_nics(const struct node_state *state,
                     const struct demand *demand, struct choice *choice);

/* decide() without the reason. */
bool decide_search(const struct node_state *state, const struct demand *demand,
                   uint16_t must, uint16_t within, struct choice *ret_choice);

/* The best that a shape offers to a demand when idle, however large its
 * need: false when it has too few cards or GPUs. */
struct decide_ideal {
    uint8_t relation;
    uint16_t spread;
};
bool decide_ideal(const struct shape *shape, const struct demand *demand,
                  struct decide_ideal *ret_ideal);
/* decide_is_aligned() with the ideal at hand. */
bool decide_meets(const struct shape *shape, const struct demand *demand,
                  const struct decide_ideal *ideal,
                  const struct choice *choice);

/* Why decide_search() finds nothing. */
enum reason decide_reason(const struct node_state *state,
                          const struct demand *demand, uint16_t must,
                          uint16_t within);

#endif
