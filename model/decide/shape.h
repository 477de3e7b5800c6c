/* shape - a topology without names: what a decision about cards needs, and
 * nothing else, so that all nodes with the same hardware share one.
 *
 * Cards, GPUs and compute NICs are bits 0…15 in the order of their topo.
 * Pure. */
#ifndef BIGA_MODEL_DECIDE_SHAPE_H
#define BIGA_MODEL_DECIDE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/topo/device_set.h"
#include "model/topo/topo.h"

enum { SHAPE_GROUPS_MAX = 48, SHAPE_ARCH_MAX = 16 };

/* A set of cards with the sum of their pairwise relations: all subsets of a
 * shape's cards of one size, tightest first. */
struct shape_subset {
    uint16_t cards;
    uint16_t spread;
};

struct shape {
    uint8_t n_cards, n_gpus, n_nics, n_numas;
    uint8_t card_card[TOPO_CARDS_MAX][TOPO_CARDS_MAX]; /* enum relation;
                                                        * symmetric */
    uint8_t card_gpu[TOPO_CARDS_MAX][TOPO_GPUS_MAX];
    uint8_t card_nic[TOPO_CARDS_MAX][TOPO_NICS_MAX];
    uint8_t gpu_nic[TOPO_GPUS_MAX][TOPO_NICS_MAX];
    uint8_t card_numa[TOPO_CARDS_MAX][TOPO_NUMAS_MAX]; /* NODE or worse */
    int16_t numa_id[TOPO_NUMAS_MAX];    /* os index of numa column i */
    uint32_t numa_cpus[TOPO_NUMAS_MAX]; /* logical CPUs, 0 unknown */
    char arch[TOPO_CARDS_MAX][SHAPE_ARCH_MAX];
    struct device_sets devices[TOPO_CARDS_MAX];
    uint64_t rights[TOPO_CARDS_MAX]; /* bits of card_rights.h */
    uint16_t told; /* bits of the cards whose rights are known */

    /* whole aligned groups of two or more cards: behind one PCIe switch
     * (mutually PIX), on one NUMA node, in one package, all */
    uint16_t groups[SHAPE_GROUPS_MAX];
    uint8_t n_groups;

    uint64_t hash; /* of all the above */

    /* derived: subsets[first[k] … first[k + 1]) have k cards */
    struct shape_subset *subsets;
    uint32_t first[TOPO_CARDS_MAX + 2];
};

/* The content of a topology's shape and its hash, without what is derived: to
 * be compared.  The derived table of 16 cards takes a millisecond. */
void shape_outline(const struct topo *topo, struct shape *ret_outline);
/* The shape of a topology; the caller destroys it. */
struct shape *shape_create(const struct topo *topo);
/* The same from content that was filled in by hand (`hash` and what is
 * derived are ignored, everything unused must be zero). */
struct shape *shape_create_from(const struct shape *content);
void shape_destroy(struct shape *shape); /* NULL allowed */
/* Same content (the hash alone is not enough). */
bool shape_equal(const struct shape *a, const struct shape *b);

#endif
