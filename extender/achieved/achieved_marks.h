/* achieved_marks - which pods are known to have got less than they were
 * promised, so that each mismatch is told once.  Looks only at nodes that have
 * changed.  One thread. */
#ifndef BIGA_EXTENDER_ACHIEVED_ACHIEVED_MARKS_H
#define BIGA_EXTENDER_ACHIEVED_ACHIEVED_MARKS_H

#include "extender/achieved/achieved.h"

struct achieved_told {
    /* A pod got less, or something else than last time; `again`: it was told
     * in these words. */
    void (*lost)(void *ctx, const struct allocation *a, const char *text,
                 bool again);
    /* It has now what it was promised. */
    void (*back)(void *ctx, const struct allocation *a);
    void *ctx;
};

struct achieved_marks;
struct achieved_marks *achieved_marks_create(const struct achieved_told *told);
void achieved_marks_destroy(struct achieved_marks *m); /* NULL allowed */

/* Look at what nodes have told and the snapshot says; `all`: also at nodes of
 * which both are as last time, whose lost pods are told again. */
void achieved_marks_look(struct achieved_marks *m, struct snapshot *s,
                         struct achieved_report *const *reports, size_t n,
                         bool all);

#endif
