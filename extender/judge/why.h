/* why - a pod against all nodes: how many it fits, why not the others, where
 * it would go, and what would make it fit, as JSON. Pure. */
#ifndef BIGA_EXTENDER_JUDGE_WHY_H
#define BIGA_EXTENDER_JUDGE_WHY_H

#include <stddef.h>
#include <stdint.h>

#include "extender/judge/advice.h"
#include "extender/judge/schedule.h"
#include "lib/base/str.h"

enum { WHY_BEST_MAX = 3 };

/* The nodes that a filter named. */
struct why_names {
    const int32_t *indexes; /* NULL: all nodes */
    size_t n;
};

/* Borrows snapshot and demand. */
struct why {
    const struct snapshot *snapshot; /* the whole one */
    const struct scope *scope;       /* what is seen by who asks */
    const struct demand *pod;
    struct schedule schedule; /* how nodes are judged */
    struct demand pair;       /* of a job that is to be planned */
    bool to_plan;             /* the pod's job has to be planned */
    struct plan *plan;        /* of it; NULL: */
    struct plan_refusal refusal;
    const int32_t *candidates; /* NULL: all nodes */
    size_t n_names; /* nodes that the last filter named; all when it is not
                     * known */
    size_t n_nodes, n_fitting;
    size_t n_best;
    int32_t best[WHY_BEST_MAX];    /* node indexes, best first */
    size_t count[REASON_COUNT];    /* nodes per reason */
    int32_t example[REASON_COUNT]; /* the first node of each reason */
    uint8_t *reasons;              /* of each node; NULL: not all were judged */
    struct advice advice;          /* see why_advise() */
};

/* Judge a pod by itself on all nodes of the snapshot; a pod whose job is to
 * be planned, with the names of its last filter (NULL: all nodes; the indexes
 * are borrowed).  `memory` may be NULL. */
void why_init(struct why *why, const struct snapshot *snapshot,
              const struct demand *pod, struct plans *memory,
              const struct why_names *names);
void why_fini(struct why *why);
static inline void cleanup_why_p(struct why *why)
{
    why_fini(why);
}
#define cleanup_why __attribute__((__cleanup__(cleanup_why_p)))
/* Look for the way out when nothing fits; what others whom one does not see
 * would lose is not told. */
void why_advise(struct why *why);

/* Members (no braces): "nodes", "fitting", "sample", "best": where it would
 * go, and "reasons": [{"reason","nodes","preemptable","message","example",
 * "detail"}], most frequent first, what advice_write() gives, and for a job
 * that is to be planned "plan" or "lack". */
void why_write(const struct why *why, struct str *out);

/* One sentence for a person. */
void why_summary(const struct why *why, struct str *out);

/* {"namespace","name","uid","role","job","pair"} */
void why_write_pod(const struct demand *d, struct str *out);

#endif
