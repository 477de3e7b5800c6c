/* job_missing - which pods of a job are not there yet, so that it cannot be
 * begun as a whole.  Pure. */
#ifndef BIGA_EXTENDER_JUDGE_JOB_MISSING_H
#define BIGA_EXTENDER_JUDGE_JOB_MISSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "model/pod/demand.h"

struct job_member {
    enum pod_role role;
    int32_t pair;
    uint8_t cards, pair_cards;
    bool buddy;   /* an xPU pod will be made for it (a host pod) */
    bool counted; /* else it only tells which roles the job has */
};

/* Of each pair there has to be a host pod, when any pair has one, and xPU pods
 * for all its cards, when any pair has one.  `members` are by pair.  Appends
 * "waits until all pods of its 16 pairs are there; missing: the host pod of pair
 * 3, …" and returns true when something is missing; `word` is what pods are,
 * "there" or "applied". */
bool job_missing(const struct job_member *members, size_t n, int32_t size,
                 const char *word, struct str *out);

#endif
