/* decide - which cards (and GPUs, NICs, and NUMA node) of one node a demand
 * gets, and how good that is.
 *
 * A pure function of (state of the node, demand).  A NUMA node is a place for
 * a host pod when it has the CPUs free that the pod requests.  The order
 * of preference, each level only breaking ties of the one before
 * (schema/decision.md):
 *   1. the worst relation between the host pod's GPUs, or else its NUMA
 *      node, and its cards,
 *   2. the sum of the relations between its cards,
 *   3. how many cards of whole free aligned groups are left useless
 *      behind (groups that were wholly idle and no longer are),
 *   4. how many idle cards the node has left: fewer is tighter,
 *   5. the worst relation between the NICs, if it asks for any, and its GPUs,
 *      or else its cards,
 *   6. how many cores are left free on the chosen cards: fewer is tighter,
 *   7. the lowest card bits, then the lowest GPU bits, then the lowest NIC
 *      bits. */
#ifndef BIGA_MODEL_DECIDE_DECIDE_H
#define BIGA_MODEL_DECIDE_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "model/decide/shape.h"
#include "model/pod/demand.h"

/* What a node has left.  Plain bytes: equal states compare equal with
 * memcmp, so whoever makes one starts from zeroes. */
struct node_state {
    const struct shape *shape;
    uint32_t free_cores[TOPO_CARDS_MAX];
    uint32_t free_memory_mib[TOPO_CARDS_MAX];
    uint32_t cores[TOPO_CARDS_MAX];      /* of the idle cards: tells "busy" */
    uint32_t memory_mib[TOPO_CARDS_MAX]; /* from "too small" */
    uint16_t usable;                     /* healthy */
    uint16_t drained;                    /* the others: by an operator */
    uint16_t closed;   /* held whole: exclusive, or promised to a pair whose
                        * need is not yet known */
    uint16_t occupied; /* some pair (not merely a service) is on it: not
                        * idle */
    uint16_t shared;   /* anyone at all is on it: no longer available to an
                        * exclusive demand */
    uint16_t reserved; /* a service has a share of it, whoever is there: never
                        * available to an exclusive demand. Part of shared;
                        * cores and memory_mib are without the shares */
    uint16_t gpus_used;
    uint16_t nics_used;
    uint16_t inert;   /* run no applied pods: nobody knows their runtime */
    uint16_t passive; /* 1: the whole node runs no applied pods */
    uint16_t claimed; /* given by ResourceClaims, the others by allocations */
    uint16_t unsized; /* cores or memory unknown: nobody can tell what is left
                       * of it, so it is closed once anyone is on it */
    uint32_t free_cpu_milli[TOPO_NUMAS_MAX]; /* by numa column of the shape:
                                              * host pods' requests taken
                                              * off; UINT32_MAX: not known */
};

/* Why a demand does not fit a node. */
enum reason {
    REASON_NONE, /* it fits */
    /* no preemption can help: */
    REASON_UNKNOWN_NODE,   /* nothing was ever published for it */
    REASON_STALE,          /* its advertiser went silent */
    REASON_INCOMPLETE,     /* its pool lacks slices */
    REASON_LOST,           /* the cluster says it is not ready or deleted */
    REASON_DOUBTFUL,       /* what was given there may have been forgotten */
    REASON_NO_CARD,        /* it has no card at all */
    REASON_TOO_FEW_CARDS,  /* fewer cards than asked, even if all were free */
    REASON_UNHEALTHY,      /* its cards are withdrawn */
    REASON_DRAINED,        /* by the operator, of enough of them */
    REASON_ARCH,           /* no card of the architecture */
    REASON_NO_DEVICES,     /* none has the sets of devices */
    REASON_NO_RIGHTS,      /* none lets pods have the rights */
    REASON_BY_CLAIMS,      /* claims give its cards, and the pod has none */
    REASON_BY_ALLOCATIONS, /* the other way round */
    REASON_RUNS_NO_PODS,   /* applied, and its advertiser runs no pods */
    REASON_NO_RUNTIME,     /* the same of its cards */
    REASON_CARD_TOO_SMALL, /* no card has the cores or memory, even idle */
    REASON_CARDS_RESERVED, /* exclusive, and services have shares of them */
    REASON_TOO_FEW_GPUS,
    REASON_TOO_FEW_NICS,
    REASON_ALIGNMENT_NEVER, /* no set of cards is aligned as asked */
    REASON_PAIR_ELSEWHERE,  /* its pair is already on another node */
    REASON_PAIR_CARDS,      /* its pair's cards cannot take it */
    REASON_QUOTA,           /* its namespace has used up its quota */
    REASON_NOT_ALLOWED,     /* its namespace may not have the devices */
    REASON_JOB_ELSEWHERE,   /* the plan of its job has it on another node */
    /* preemption might: */
    REASON_CARDS_BUSY, /* cards are held or shared by others */
    REASON_CARD_CORES, /* too few free cores on the cards */
    REASON_CARD_MEMORY,
    REASON_GPUS_BUSY,
    REASON_NICS_BUSY,
    REASON_NUMA_CPUS,   /* no NUMA node near the cards has the CPUs free */
    REASON_ALIGNMENT,   /* the free cards are not aligned as asked */
    REASON_HOST_ROOM,   /* its host has no CPU, memory or pods left for it */
    REASON_LEASED,      /* what is free is leased to another job's plan */
    REASON_FABRIC_TIER, /* no domain of the tier asked holds the whole job */
    REASON_JOB_ROOM,    /* this pair would fit, all pairs of its job do not */
    REASON_COUNT
};
/* A stable word for metrics and JSON: "card-cores". */
const char *reason_word(enum reason reason);
/* False when no preemption can help (FailedAndUnresolvableNodes). */
bool reason_resolvable(enum reason reason);

struct choice {
    uint32_t cost;        /* lower is better; comparable between nodes; see
                      * cost_pack in decide.c.  Never 0 or UINT32_MAX */
    uint16_t cards;       /* bits */
    uint16_t gpus;        /* bits */
    uint16_t nics;        /* bits */
    uint8_t relation;     /* enum relation of level 1 */
    uint8_t nic_relation; /* of level 5; 0 without NICs */
    int16_t numa;         /* os index for the host pod, -1 unknown */
};

#define COST_NO_FIT UINT32_MAX

/* The best choice, or why there is none.  `*ret_choice` is written only for
 * REASON_NONE.
 * `must`: cards that have to be part of the choice (an earlier member of the
 * pair has them), 0 for none.  `within`: cards the choice is limited to,
 * UINT16_MAX for all.  The caller has already taken the pair's own holds
 * off the state. */
enum reason decide(const struct node_state *state, const struct demand *demand,
                   uint16_t must, uint16_t within, struct choice *ret_choice);

/* As decide() with must 0 and within UINT16_MAX, only the cost;
 * COST_NO_FIT when none. */
uint32_t decide_cost(const struct node_state *state,
                     const struct demand *demand);

/* The state of an idle node: capacities from the topology, nothing used.  A
 * card of unknown size has what every card has: one core and one MiB, so it
 * can be had by those who state no need, and then whole.  `shape` must
 * outlive the state. */
void node_state_init(struct node_state *state, const struct topo *topo,
                     const struct shape *shape);

/* Take a host pod's CPUs off the NUMA node with that os index; one that the
 * shape does not have, or whose CPUs are not known, is left alone. */
void node_state_take_cpus(struct node_state *state, int numa, uint32_t milli);
/* Take what a pair (a host pod's demand, see demand_pair) gets off a state:
 * the state that usage_state() gives once the pair is allocated. */
void node_state_take(struct node_state *state, const struct demand *pair,
                     const struct choice *choice);
/* Does its node let applied pods have the rights asked for on that card, or
 * not say what it lets them have? */
bool decide_card_lets(const struct shape *shape, unsigned card,
                      const struct demand *demand);
/* Is the choice as good as the pair prefers: not worse than prefer_align, or
 * (when that is RELATION_PIX) in relation and in spread as close as the best
 * that the shape offers when idle? */
bool decide_is_aligned(const struct shape *shape, const struct demand *pair,
                       const struct choice *choice);

/* A sentence for a person, with the numbers: "no 2 cards free with 4 cores
 * each (2 cards have 3)". */
void reason_explain(enum reason reason, const struct node_state *state,
                    const struct demand *demand, struct str *out);

/* Do two demands always get the same answer from the same state? (Only the
 * deciding fields count.)  demand_class_hash is equal for such demands. */
bool demand_same_class(const struct demand *a, const struct demand *b);
uint64_t demand_class_hash(const struct demand *demand);

#endif
