/* advice - a pod or job that fits nowhere: the nodes that are nearest to
 * fitting, and the smallest changes that would make it fit.
 *
 * Every change was applied in a simulation and made the pod (or every pair of
 * its job) fit; what was not tried out is not said.  The search is bounded
 * by counts of tries, never by time, so that the same question gets the same
 * answer.  Pure. */
#ifndef BIGA_EXTENDER_JUDGE_ADVICE_H
#define BIGA_EXTENDER_JUDGE_ADVICE_H

#include <stddef.h>
#include <stdint.h>

#include "extender/judge/job.h"
#include "extender/judge/schedule.h"
#include "lib/base/str.h"

/* What may be changed, the smallest change first: what passes by itself,
 * then a part of a card, then what the pod's owner would do without, then
 * what others would lose.  One change of each kind is given at most. */
enum change_kind {
    CHANGE_LEASE,       /* wait for the lease of another job to end */
    CHANGE_FREE,        /* cores and memory on cards of one node */
    CHANGE_FREE_CPUS,   /* CPUs on a NUMA node of one node */
    CHANGE_WITHIN,      /* allow a wider fabric tier */
    CHANGE_ALIGN,       /* allow a farther relation */
    CHANGE_EXCLUSIVE,   /* share its cards */
    CHANGE_CARD_CORES,  /* ask for fewer cores of each card */
    CHANGE_CARD_MEMORY, /* ask for less memory of each card */
    CHANGE_CPUS,        /* ask for fewer CPUs */
    CHANGE_MEMORY,      /* ask for less memory of the host */
    CHANGE_NICS,        /* ask for fewer compute NICs */
    CHANGE_GPUS,        /* ask for fewer GPUs */
    CHANGE_CARDS,       /* ask for fewer cards */
    CHANGE_PAIRS,       /* a job of fewer pairs */
    CHANGE_QUOTA,       /* raise the quota of the namespace */
    CHANGE_RELEASE,     /* delete pods on one node */
    CHANGE_JOB_END,     /* end another job */
    CHANGE_KINDS
};
/* "lease", "free", "free-cpus", "within" … */
const char *change_kind_word(enum change_kind kind);

enum {
    ADVICE_NEAREST_MAX = 3,
    ADVICE_GONE_MAX = 64, /* allocations on one node that one change names */
};

struct change {
    enum change_kind kind;
    int32_t node;                   /* index, NODE_NONE when it is about none */
    uint16_t cards;                 /* FREE: bits of that node's cards */
    uint32_t cores[TOPO_CARDS_MAX]; /* FREE: more of each */
    uint32_t memory_mib[TOPO_CARDS_MAX];
    int16_t numa;   /* FREE_CPUS: os index */
    uint64_t value; /* what to ask for instead (tier, relation, count); or
                     * milli CPUs to free */
    struct namespace_use quota; /* QUOTA: more of each */
    /* RELEASE: pods on `node`; borrowed from the snapshot */
    const struct allocation *gone[ADVICE_GONE_MAX];
    size_t n_gone;
    char job[JOB_KEY_MAX]; /* LEASE, JOB_END: whose; "": of all others */
};

struct near_node {
    int32_t node;
    enum reason reason;
};

struct advice {
    size_t n_nearest, n_changes;
    struct near_node nearest[ADVICE_NEAREST_MAX]; /* nearest first */
    struct change changes[CHANGE_KINDS];          /* smallest first */
};

/* For a pod that `s` finds no node for. */
void advise_pod(const struct schedule *s, struct advice *ret_advice);

/* The nodes that lack least.  `reasons`: what schedule_reason() says of each; NULL:
 * that is still to be asked. */
void advise_nearest(const struct schedule *s, const uint8_t *reasons,
                    struct advice *advice);
/* For a planned pod whose job has no plan, with the candidates that it was
 * refused with (NULL: all nodes). */
void advise_job(const struct snapshot *snapshot, const struct demand *pod,
                const int32_t *candidates, size_t n, struct advice *ret_advice);

/* "free 2 cores on card 0000:17:00.0 of host17". */
void change_text(const struct schedule *s, const struct change *change,
                 struct str *out);

/* Members (no braces): "nearest": [{"node","reason","detail"}] and "changes":
 * [{"kind","text","verified",…}]; see schema/openapi.yaml. */
void advice_write(const struct schedule *s, const struct advice *advice,
                  struct str *out);

#endif
