/* achieved - what a pod got beside what it was promised: a function of the
 * snapshot and of what its node told.  Pure. */
#ifndef BIGA_EXTENDER_ACHIEVED_ACHIEVED_H
#define BIGA_EXTENDER_ACHIEVED_ACHIEVED_H

#include "extender/achieved/achieved_report.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"

enum achieved_state {
    ACHIEVED_UNKNOWN, /* a fact is missing: never guessed */
    ACHIEVED_KEPT,
    ACHIEVED_LOST, /* another device than promised, or farther away */
    ACHIEVED_STATES
};
const char *achieved_state_name(enum achieved_state state); /* "kept" … */

struct achieved {
    enum achieved_state state;
    /* Of the GPUs, or else the CPUs, of its pair's host pod to the cards that
     * the pair has, for a host pod those of their allocations where no node
     * tells; RELATION_COUNT: not known. */
    enum relation relation;
    const struct achieved_facts *facts; /* borrowed; NULL: none are told */
};

/* `a`: of a pod, not a held place.  `report`: of its node, or NULL.  `why`
 * gets a sentence, unless all is as promised: what it got instead and what
 * that costs, or which fact is missing. */
void achieved_judge(const struct snapshot *s, const struct allocation *a,
                    const struct achieved_report *report,
                    struct achieved *ret_achieved, struct str *why);

/* "PIX" …, or "unknown". */
const char *achieved_word(const struct achieved *x);
/* Is there a relation to be achieved?  Not of a service. */
bool achieved_counts(const struct allocation *a);
/* The member "achieved"; nothing for a held place. */
void achieved_write(const struct snapshot *s, const struct allocation *a,
                    const struct achieved_report *report, struct str *out);

#endif
