/* claim_use - what an allocated ResourceClaim has of a node: kube-scheduler
 * gave it, Biga does not plan with it.  Immutable once it is shared;
 * ref-counted.
 *
 * A device that an allocation of one of the claim's pods names is counted by
 * that allocation; the rest of the claim is foreign, and counted by it. */
#ifndef BIGA_EXTENDER_STATE_CLAIM_USE_H
#define BIGA_EXTENDER_STATE_CLAIM_USE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/allocation.h"
#include "lib/base/mem.h"
#include "model/topo/topo.h"

enum {
    CLAIM_USE_DEVICES_MAX = 32, /* Kubernetes' limit; further ones are left
                                 * out */
    CLAIM_USE_PODS_MAX = 257,   /* its limit of status.reservedFor, and the
                                 * owner */
    CLAIM_USE_KEY_MAX = DEMAND_NAMESPACE_MAX + DEMAND_NAME_MAX + 2
};

struct claim_card {
    char id[TOPO_ID_MAX + 1]; /* of the node's topology */
    bool whole;               /* then cores and MiB mean nothing */
    uint32_t cores, memory_mib;
};

/* A device of another driver.  It is told by its address; by its root complex
 * alone it may be any GPU there, or any NIC where there is no GPU, and all are
 * taken for it. */
struct claim_pci {
    bool by_root;
    struct pci_addr pci;
    uint32_t root_domain; /* as struct device has them */
    uint8_t root_bus;
};

struct claim_use {
    atomic_uint refs;
    char *key; /* "NAMESPACE/NAME" */
    char *node;
    uint8_t n_cards, n_gpus;
    uint16_t n_pods;
    struct claim_card cards[CLAIM_USE_DEVICES_MAX];
    struct claim_pci gpus[CLAIM_USE_DEVICES_MAX]; /* or of a NIC */
    char (*pods)[DEMAND_UID_MAX + 1]; /* uids: it is owned, or reserved, by */
};

/* Without devices and pods. */
struct claim_use *claim_use_create(const char *namespace, const char *name,
                                   const char *node);
struct claim_use *claim_use_ref(struct claim_use *c);
void claim_use_unref(struct claim_use *c); /* NULL allowed */
DEFINE_CLEANUP(claim_use, struct claim_use *, claim_use_unref)

/* Before it is shared. What is beyond the limits is left out. */
void claim_use_add_card(struct claim_use *c, const struct claim_card *card);
void claim_use_add_pci(struct claim_use *c, const struct claim_pci *pci);
void claim_use_add_pod(struct claim_use *c, const char *uid); /* once */

bool claim_use_is_of(const struct claim_use *c, const char *uid);
bool claim_use_is_same(const struct claim_use *a, const struct claim_use *b);

/* --- all of one node: ordered by key, immutable, ref-counted ------------- */
struct claim_list {
    atomic_uint refs;
    size_t n;
    struct claim_use *items[];
};
struct claim_list *claim_list_ref(struct claim_list *l);
void claim_list_unref(struct claim_list *l); /* NULL allowed */
/* A new list with the claim (a reference is taken; one of an equal key is
 * replaced), or without the one of that key, NULL when it is empty.  `l` may
 * be NULL, and is unchanged. */
struct claim_list *claim_list_with(const struct claim_list *l,
                                   struct claim_use *c);
struct claim_list *claim_list_without(const struct claim_list *l,
                                      const char *key);

/* --- those on nodes that are not known: ref-counted ---------------------- */
struct claim_table;
struct claim_table *claim_table_ref(struct claim_table *t);
void claim_table_unref(struct claim_table *t); /* NULL allowed */
/* Borrowed; NULL: none. */
struct claim_list *claim_table_get(const struct claim_table *t,
                                   const char *node);
/* Set a node's list (a reference is taken; NULL: none); the table is made,
 * copied or dropped as needed. */
void claim_table_set(struct claim_table **table, const char *node,
                     struct claim_list *list);

/* --- what of it is foreign ----------------------------------------------- */

/* The devices of a claim, by bit of a topology's order, that no allocation of
 * its pods names. */
struct claim_rest {
    const struct claim_use *claim; /* borrowed from the list */
    uint16_t cards, whole;         /* whole: those of its cards */
    uint16_t gpus, nics;
};
/* Those of a list that have any on this node, in the caller's array (NULL:
 * none). */
struct claim_rest *claim_rests(const struct claim_list *l,
                               const struct topo *topo,
                               const struct allocation *const *allocations,
                               size_t n, size_t *ret_n);

#endif
