/* fleet - the hosts and the fabric that a trace is replayed on, as a
 * snapshot of the extender's own. */
#ifndef BIGA_BENCH_REPLAY_FLEET_H
#define BIGA_BENCH_REPLAY_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/snapshot.h"
#include "lib/base/error.h"

enum {
    REPLAY_HOSTS_MAX = 100000,
    REPLAY_KINDS_MAX = 16,
    REPLAY_FABRIC_MAX = 65536, /* hosts below a leaf, leaves below a spine */
};

/* A host of one make, idle. */
struct host_kind {
    const char *name;
    struct topo *topo;
    struct shape *shape;
    struct node_state idle;
    uint16_t cards, gpus; /* all of them */
    uint8_t n_numas;
    uint16_t numa_cards[TOPO_NUMAS_MAX], numa_gpus[TOPO_NUMAS_MAX];
    struct host_room room; /* of its CPUs and memory */
};

struct fleet_config {
    size_t hosts;
    unsigned cards;     /* at most so many of each host; 0: all */
    const char *shapes; /* names of compiled-in hosts, or files; in turn */
    const char *fabric; /* a file, "leaf=32,spine=8", or "none" */
};

struct replay_fleet {
    struct snapshot *idle;
    size_t n;
    struct host_kind kinds[REPLAY_KINDS_MAX];
    size_t n_kinds;
    uint64_t n_cards, n_gpus;
    size_t n_leaves;     /* domains of tier 0 that have a host */
    uint32_t card_cores; /* of the card that has the most, at least 1 */
};

/* Node i (of the snapshot) is of this kind. */
static inline const struct host_kind *fleet_kind(const struct replay_fleet *f,
                                                 size_t node)
{
    return &f->kinds[node % f->n_kinds];
}

int replay_fleet_init(struct replay_fleet *f, const struct fleet_config *config,
                      struct error *err);
void replay_fleet_fini(struct replay_fleet *f);
/* Hosts have the CPUs and memory of their NUMA nodes from now on, as a Node
 * tells what is allocatable; before that, nobody knows. */
void replay_fleet_charge_hosts(struct replay_fleet *f);

/* What a choice of devices is worth by definition (schema/decision.md,
 * lines 1 and 2), whoever made it: fills in relation and numa. */
void kind_rate(const struct host_kind *kind, uint16_t cards, uint16_t gpus,
               struct choice *ret_choice);
/* The NUMA nodes, as bits, that the devices are on. */
unsigned kind_numas(const struct host_kind *kind, uint16_t cards,
                    uint16_t gpus);

#endif
