/* why - a pod against all nodes: how many it fits, why not the others, and
 * where it would go, as JSON. Pure. */
#ifndef BIGA_EXTENDER_WHY_H
#define BIGA_EXTENDER_WHY_H

#include <stddef.h>
#include <stdint.h>

#include "extender/advice.h"
#include "extender/schedule.h"
#include "model/base/str.h"

enum { WHY_BEST_MAX = 3 };

struct why {
    size_t n_nodes, n_fitting;
    size_t n_best;
    int32_t best[WHY_BEST_MAX];    /* node indexes, best first */
    size_t count[REASON_COUNT];    /* nodes per reason */
    int32_t example[REASON_COUNT]; /* the first node of each reason */
    struct advice advice;          /* when nothing fits, see why_advise() */
};

/* Judge all nodes of the snapshot. */
void why_judge(const struct schedule *s, struct why *ret_why);
/* Look for the way out when no node fits. */
void why_advise(const struct schedule *s, struct why *why);

/* Members (no braces): "nodes", "fitting", "best": where it would go, and
 * "reasons": [{"reason","nodes","preemptable","message","example",
 * "detail"}], most frequent first, and what advice_write() gives. */
void why_write(const struct schedule *s, const struct why *why,
               struct str *out);

/* One sentence for a person. */
void why_summary(const struct schedule *s, const struct why *why,
                 struct str *out);

/* {"namespace","name","uid","role","job","pair"} */
void why_write_pod(const struct demand *d, struct str *out);

#endif
