/* simhost - a plain host with cards and GPUs, for tests. */
#ifndef BIGA_TESTS_LIB_SIM_SIMHOST_H
#define BIGA_TESTS_LIB_SIM_SIMHOST_H

#include "model/topo/topo.h"

/* A host of two packages with a NUMA node each; card i is behind PCIe switch
 * i / 2, with one GPU per card beside it on the same switch; the first half
 * is on NUMA node 0. Cards have 16 cores and 32768 MiB. */
struct topo *simhost_topo(const char *node, unsigned n_cards);
/* The same, whose advertiser runs pods or does not, on these cards (bits). */
struct topo *simhost_runs(const char *node, unsigned n_cards,
                          enum topo_runs runs, unsigned cards);
/* The same with cards of unknown size. */
struct topo *simhost_unsized(const char *node, unsigned n_cards);
/* Two packages with four PCIe switches each, as boards for GPUs are wired.
 * Behind every switch are `per_switch` GPUs (1 or 2) and as many compute NICs,
 * mlx5_0 and on; behind the first `n_cards` of each package a card, too; and
 * each package has a NIC without RDMA behind no switch. */
struct topo *simhost_board(const char *node, unsigned per_switch,
                           unsigned n_cards);
/* So many NICs of a model (NULL: unknown), at most 8160, and nothing else: a
 * pool of several slices. */
struct topo *simhost_nics(const char *node, unsigned n, const char *model);

#endif
