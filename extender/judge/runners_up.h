/* runners_up - where a pair that has its place would go else, and what made the
 * difference: as of now, with what the pair has itself counted as free.  Pure. */
#ifndef BIGA_EXTENDER_JUDGE_RUNNERS_UP_H
#define BIGA_EXTENDER_JUDGE_RUNNERS_UP_H

#include <stddef.h>
#include <stdint.h>

#include "extender/state/snapshot.h"
#include "lib/base/str.h"

enum { RUNNERS_UP_MAX = 3, RUNNER_TEXT_MAX = 160 };

struct runner_up {
    const char *node; /* of the snapshot */
    uint8_t relation;
    char differs[RUNNER_TEXT_MAX]; /* "relation NODE, here PIX" */
};

struct runners_up {
    size_t fitting; /* nodes other than its own that it fits */
    size_t n;
    struct runner_up list[RUNNERS_UP_MAX]; /* the best first */
    /* what is better here than there: a word of schema/decision.md or, of a job
     * that is planned, schema/plan.md; "only": it fits nowhere else; "since":
     * another place is better by now; "" when nothing can be said: its node
     * would not do any more, or has gone */
    const char *decided_by;
};

/* `a` is bound.  Of a job that is planned as a whole the other pairs stay where
 * they are, and those nodes are compared that are best for this pair by
 * itself. */
void runners_up_find(struct snapshot *s, const struct allocation *a,
                     struct runners_up *ret);
/* The members "runnersUp" and "decidedBy". */
void runners_up_write(const struct runners_up *r, struct str *out);
/* Lines: "as of now, … the next best is node …"; none when nothing can be
 * said. */
void runners_up_tell(const struct runners_up *r, struct str *out);

#endif
