/* job_view - a whole job as a snapshot has it: which pairs have their place,
 * how good the places are together, and what shows that.  Pure. */
#ifndef BIGA_EXTENDER_VIEW_JOB_VIEW_H
#define BIGA_EXTENDER_VIEW_JOB_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/achieved/achieved_book.h"
#include "extender/jobs/job_told.h"
#include "extender/state/snapshot.h"
#include "extender/view/job_maps.h"
#include "lib/base/table.h"

enum { JOB_RANGES_MAX = 32 }; /* ranges of ranks that a text names */

struct job_pair {
    int32_t rank;
    bool bound; /* a member is; else its place is held for it */
    bool aligned;
    const struct allocation *place; /* the host pod's, else what is held for
                                     * it, else an xPU pod's */
    const struct allocation *const *all; /* members and held place */
    size_t n_all, n_members;
    const struct node *node; /* NULL: not in the snapshot */
    int32_t leaf;            /* FABRIC_NONE: not known */
};

/* What is known of a job; one of both at least. */
struct job_parts {
    /* of one job, by pair and then binding number, as alloc_index_find_job()
     * and alloc_order have them */
    const struct allocation *const *members;
    size_t n;
    const struct job_told *told; /* NULL: its pods are not known */
};

struct job_view {
    const struct snapshot *snapshot; /* borrowed, as all below */
    struct achieved_book *achieved;  /* NULL: it is not shown */
    const struct job_told *told;     /* NULL: its pods are not known */
    enum job_state state;
    const char *namespace, *job;
    uint32_t size; /* pairs, as the members say it; at least up to the
                    * highest rank that is known */
    uint32_t bound, held;
    int relation;           /* the worst of them; -1: none is known */
    struct job_pair *pairs; /* those that have a place, by rank */
    size_t n_pairs;
    size_t n_nodes;
    uint32_t unaligned, leaves, crossings; /* of the pairs that have one */
    unsigned tier; /* of the domain that holds them; FABRIC_APART: none, or
                    * not known */
};

/* What the parts point to must outlive the view. */
void job_view_init(struct job_view *v, const struct snapshot *snapshot,
                   struct achieved_book *achieved,
                   const struct job_parts *parts);
void job_view_fini(struct job_view *v);

/* Ranks as "0-3,7": those without any place, or those whose place is only
 * held.  At most JOB_RANGES_MAX ranges, then "…". */
void job_view_add_missing(const struct job_view *v, struct str *out);
void job_view_add_held(const struct job_view *v, struct str *out);
/* The same of ascending ranks, range by range; `out` and zeroes at first. */
struct job_ranges {
    struct str *out;
    size_t n;
};
void job_ranges_add(struct job_ranges *r, int64_t first, int64_t last);
/* It has ended. */
bool job_view_is_over(const struct job_view *v);
/* One line: what it waits for or ended with; "" nothing. */
const char *job_view_reason(const struct job_view *v);
/* Every pair is bound. */
bool job_view_is_whole(const struct job_view *v);

/* {"namespace","name","size","pairs":{"bound","held","missing"},"nodes",
 * "score":{"unaligned","tier","leaves","crossings"},"state","reason",
 * "placed","running","ready","relation","leaves", and as far as they are known
 * "submitted","started","ended"} */
void job_view_write(const struct job_view *v, struct str *out);
/* The same and "missing", "held" (ranks as text), "pairList". */
void job_view_write_whole(const struct job_view *v, struct str *out);

extern const char *const job_view_heads[];
extern const char *const job_pair_heads[];
void job_view_row(const struct job_view *v, struct table *t);
void job_pair_rows(const struct job_view *v, struct table *t);

/* A file of one form; see job_maps.h.  The job must be whole. */
int job_view_map(const struct job_view *v, enum map_format format,
                 struct str *out, struct error *err);

#endif
