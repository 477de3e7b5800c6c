/* alloc_order - the allocations of an index in the order of their pods, and the
 * jobs in the order of their names, for lists that are read page by page.
 * Immutable; ref-counted.  The next one is made of the last, by what is
 * different. */
#ifndef BIGA_EXTENDER_STATE_ALLOC_ORDER_H
#define BIGA_EXTENDER_STATE_ALLOC_ORDER_H

#include "extender/state/allocation.h"

/* A job that has places: its members as alloc_index_find_job() has them. */
struct alloc_job {
    size_t first, n;  /* of `members` */
    uint32_t n_pairs; /* that have one, bound or held */
    uint32_t size;    /* pairs, as its members say; at least up to the highest
                       * that has a place */
};

struct alloc_order {
    atomic_uint refs;
    struct alloc_index *of;
    const struct allocation **pods; /* all, by namespace and name */
    size_t n_pods;
    const struct allocation **members; /* of jobs, by namespace, job, pair and
                                        * binding number */
    size_t n_members;
    struct alloc_job *jobs;
    size_t n_jobs;
};

/* Of `x`, of which a reference is kept; `last`: of an index that is not very
 * different, or NULL. */
struct alloc_order *alloc_order_create(struct alloc_index *x,
                                       const struct alloc_order *last);
struct alloc_order *alloc_order_ref(struct alloc_order *o);
void alloc_order_unref(struct alloc_order *o); /* NULL allowed */
DEFINE_CLEANUP(alloc_order, struct alloc_order *, alloc_order_unref)

/* A member of the job, for its names. */
static inline const struct demand *alloc_job_demand(const struct alloc_order *o,
                                                    const struct alloc_job *j)
{
    return &o->members[j->first]->demand;
}

/* The first job that is not below these names; `past`: that is above them.
 * Job "": the first of the namespace. */
size_t alloc_order_job_from(const struct alloc_order *o, const char *namespace,
                            const char *job, bool past);

#endif
