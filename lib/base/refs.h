/* refs - how many hold a shared object, in its member `refs`, which begins at
 * 1.  Whoever drops the last one frees it. */
#ifndef BIGA_LIB_BASE_REFS_H
#define BIGA_LIB_BASE_REFS_H

#include <stdatomic.h>
#include <stdbool.h>

/* The function that one more holder calls:
 * DEFINE_REF(topo_ref, struct topo) */
#define DEFINE_REF(name, type)                                             \
    type *name(type *shared)                                               \
    {                                                                      \
        atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed); \
        return shared;                                                     \
    }

/* True for the last one.  What the others did before is seen by then. */
static inline bool refs_drop(atomic_uint *refs)
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

#endif
