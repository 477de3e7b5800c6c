/* host_side - what pods of this host get of the cards, NICs and GPUs that they
 * were given: the files below /dev of these devices, as many kinds of them as
 * the operator allows, and of a card that they share a virtual function of
 * their own.  Immutable and ref-counted, made anew after each look at the
 * host. */
#ifndef BIGA_ADVERTISER_HOSTSIDE_HOST_SIDE_H
#define BIGA_ADVERTISER_HOSTSIDE_HOST_SIDE_H

#include <stdbool.h>

#include "advertiser/describe/cardfile.h"
#include "advertiser/hostside/device_nodes.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "model/topo/topo.h"

enum {
    HOST_SIDE_FUNCTIONS_MAX = TOPO_CARDS_MAX * PCI_ADDR_TEXT_MAX,
};

#define HOST_SIDE_KINDS "rdma,gpu" /* unless the operator says otherwise */
/* The kinds of NODES_ALL by their words, "rdma", "vfio", "gpu" and "named", with
 * ',' between; "none": none of them.  -EINVAL names the word. */
int host_side_kinds(const char *text, unsigned *ret_kinds, struct error *err);

struct host_side;
/* `cards` may be NULL and becomes its own; `sysroot` as in device_nodes.h. */
struct host_side *host_side_create(const struct topo *topo,
                                   struct cardfile *cards, const char *sysroot,
                                   unsigned kinds);
struct host_side *host_side_ref(struct host_side *h);
void host_side_unref(struct host_side *h); /* NULL allowed */
DEFINE_CLEANUP(host_side, struct host_side *, host_side_unref)

/* What a pod was given: PCI addresses, with ',' between. */
struct host_side_given {
    const char *cards, *nics, *gpus;
    bool exclusive;        /* nobody else has its cards */
    const char *functions; /* host_side_choose()'s */
};

/* Choose a virtual function of each card that is shared, of those that are not
 * `taken`; given->functions are kept where they can be.  A card that has none,
 * or none that is free, adds nothing. */
void host_side_choose(const struct host_side *h,
                      const struct host_side_given *given, const char *taken,
                      char ret_functions[HOST_SIDE_FUNCTIONS_MAX]);
/* Append the files that are there.  Names are those of the cards' devices.  False:
 * the host is described, so that nothing is known of them. */
bool host_side_look(const struct host_side *h,
                    const struct host_side_given *given,
                    struct device_nodes *n);

/* What the card file names beside what /sys tells. */
void host_side_add_named(const struct cardfile *cards, const struct topo *topo,
                         const struct device *card, struct device_nodes *n);

#endif
