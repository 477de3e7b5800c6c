/* pending - what a pod without a place waits for, beside what why.h judges:
 * until when a lease holds what is free, and whose turn it is once there is
 * room. */
#ifndef BIGA_EXTENDER_SERVE_PENDING_H
#define BIGA_EXTENDER_SERVE_PENDING_H

#include <stdint.h>

#include "extender/judge/why.h"
#include "extender/serve/app.h"
#include "lib/base/str.h"

/* Seconds, rounded up, until the lease ends that is in the pod's way, at the
 * latest but for its renewal; -1: none is. */
int64_t pending_lease_s(const struct app *app, const struct why *why);

/* The sentence of why_summary(), and what is said above. */
void pending_summary(const struct app *app, const struct why *why,
                     struct str *out);

#endif
