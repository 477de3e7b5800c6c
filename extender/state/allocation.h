/* allocation - what one pod was given: node, cards, GPUs, NUMA node, and by
 * which slice generation that was decided.  Immutable; ref-counted. */
#ifndef BIGA_EXTENDER_STATE_ALLOCATION_H
#define BIGA_EXTENDER_STATE_ALLOCATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "model/decide/decide.h"
#include "model/pod/demand.h"
#include "model/slice/slice.h"

/* By device id, not by bit: ids survive a change of the node's hardware. */
struct allocation {
    atomic_uint refs;
    struct demand demand;
    char pair_key[DEMAND_PAIR_KEY_MAX];
    char *node;
    uint8_t n_cards, n_gpus, n_nics;
    char (*cards)[TOPO_ID_MAX + 1];
    char (*gpus)[TOPO_ID_MAX + 1];
    char (*nics)[TOPO_ID_MAX + 1];
    /* where they are, in the same order; "" or NULL: not told */
    char (*card_pci)[PCI_ADDR_TEXT_MAX];
    char (*gpu_pci)[PCI_ADDR_TEXT_MAX];
    char (*nic_pci)[PCI_ADDR_TEXT_MAX];
    enum relation relation;     /* achieved */
    enum relation nic_relation; /* of its NICs; PIX without any */
    int32_t numa;               /* os index, -1 unknown */
    struct slice_epoch epoch;   /* of the slices it was decided on */
    uint64_t number;            /* order of binding, from the store */
    /* Nobody is bound yet: the place is held for a pair of a planned job, as
     * long as the job's lease lasts.  Its demand is demand_pair() of the
     * pair, its pod name "JOB/RANK" (which no pod can have), its uid "". */
    bool held;
};

struct allocation *allocation_create(const struct demand *demand,
                                     const char *node);
struct allocation *allocation_ref(struct allocation *a);
void allocation_unref(struct allocation *a); /* NULL allowed */
DEFINE_CLEANUP(allocation, struct allocation *, allocation_unref)

/* The order of pod keys: by namespace, then name. */
int allocation_compare_pod(const struct allocation *a,
                           const struct allocation *b);
/* Sort in that order.  Of many it does not go to their names for each
 * comparison, which lie anywhere in memory. */
void allocation_sort_pods(const struct allocation **list, size_t n);

/* Its cards, GPUs or NICs as bits of topo_considered(). */
uint16_t allocation_cards(const struct topo *topo, const struct allocation *a);
uint16_t allocation_gpus(const struct topo *topo, const struct allocation *a);
uint16_t allocation_nics(const struct topo *topo, const struct allocation *a);

/* As JSON (schema/allocation.schema.json), and back (strict). */
void allocation_encode(const struct allocation *a, struct str *out);
/* Only the members "cards", "gpus" and, when it has any, "nics" of it; NULL:
 * it has none. */
void allocation_encode_devices(const struct allocation *a, struct str *out);
int allocation_decode(const char *json, size_t size,
                      struct allocation **ret_allocation, struct error *err);

/* --- the index: persistent, ref-counted --------------------------------- */
struct alloc_index;
struct alloc_index *alloc_index_create(void);
struct alloc_index *alloc_index_ref(struct alloc_index *x);
void alloc_index_unref(struct alloc_index *x); /* NULL allowed */
size_t alloc_index_size(const struct alloc_index *x);

/* Add `a` (a reference is taken; an equal pod key is replaced), or remove the
 * pod.  When others have references to it `*x` becomes the caller's own before:
 * the first change of a part copies that, later ones do not. */
void alloc_index_put(struct alloc_index **x, struct allocation *a);
void alloc_index_drop(struct alloc_index **x, const struct allocation *a);

/* Borrowed from the index; NULL when there is none. */
const struct allocation *alloc_index_find(const struct alloc_index *x,
                                          const char *namespace,
                                          const char *name);
const struct allocation *alloc_index_find_uid(const struct alloc_index *x,
                                              const char *uid);
/* The members of a pair: at most `max` into `ret`, ordered by binding
 * number.  Returns how many there are. */
size_t alloc_index_find_pair(const struct alloc_index *x, const char *pair_key,
                             const struct allocation **ret, size_t max);
/* The members of a job (same namespace and label), held places included,
 * services not: ordered by pair, then binding number, in the caller's array
 * (free it). */
const struct allocation **alloc_index_find_job(const struct alloc_index *x,
                                               const char *namespace,
                                               const char *job, size_t *ret_n);
/* The members, in no order, of jobs that have as many devices or more, those
 * of held places included, and perhaps of some others: in the caller's array
 * (free it).  Takes as long as there are jobs, not members. */
const struct allocation **alloc_index_large_jobs(const struct alloc_index *x,
                                                 uint32_t devices,
                                                 size_t *ret_n);
/* Some of the members of a job, in no order: those that are wanted, at most
 * `max` into `ret`.  Returns how many.  Cheap when many are, and when they have
 * to be bound, as places that are held are passed over together. */
struct alloc_wanted {
    const char *namespace, *job;
    bool bound;
    bool (*is_wanted)(void *ctx,
                      const struct allocation *a); /* NULL: all are */
    void *ctx;
};
size_t alloc_index_find_some(const struct alloc_index *x,
                             const struct alloc_wanted *wanted,
                             const struct allocation **ret, size_t max);
/* Is any member of a job bound?  Cheap. */
bool alloc_index_has_bound(const struct alloc_index *x, const char *namespace,
                           const char *job);
/* All, ordered by namespace and name, in the caller's array (free it). */
const struct allocation **alloc_index_list(const struct alloc_index *x,
                                           size_t *ret_n);
/* What is different between two versions: each pod with what it had, or NULL,
 * and what it has, or NULL.  Takes as long as there are differences, in no
 * order of interest. */
typedef void alloc_change_f(void *ctx, const struct allocation *before,
                            const struct allocation *after);
void alloc_index_diff(const struct alloc_index *before,
                      const struct alloc_index *after, alloc_change_f *visit,
                      void *ctx);
/* All on one node, whether or not the node is known now. */
const struct allocation **alloc_index_on_node(const struct alloc_index *x,
                                              const char *node, size_t *ret_n);

#endif
