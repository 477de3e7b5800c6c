/* pending - what a pod without a place waits for, beside what why.h judges:
 * until when a lease holds what is free, and whose turn it is once there is
 * room. */
#ifndef BIGA_EXTENDER_SERVE_PENDING_H
#define BIGA_EXTENDER_SERVE_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/judge/why.h"
#include "extender/serve/app.h"
#include "extender/view/known_jobs.h"
#include "lib/base/str.h"

/* Seconds, rounded up, until the lease ends that is in the pod's way, at the
 * latest but for its renewal; -1: none is. */
int64_t pending_lease_s(const struct app *app, const struct why *why);

/* The sentence of why_summary(), and what is said above. */
void pending_summary(const struct app *app, const struct why *why,
                     struct str *out);

/* What is judged of a pod without a place. */
struct pending_verdict {
    struct str text; /* one sentence; "" when nothing is known */
    bool judged;     /* then, why it fits no node: */
    size_t count[REASON_COUNT];
};
/* What a pod waits for that its source does not tell by itself. `ret->text` is
 * the caller's. */
void pending_judge(const struct app *app, const struct snapshot *snapshot,
                   const char *namespace, const char *name,
                   struct pending_verdict *ret);

/* Complete what is told of a job: what it waits for, where its pods do not say
 * that themselves.  `asked` counts for how many of one answer that was done,
 * PENDING_ASKS_MAX at most; `told` may be NULL. */
void pending_tell_job(const struct app *app, const struct snapshot *snapshot,
                      struct job_told *told, unsigned *asked);

#endif
