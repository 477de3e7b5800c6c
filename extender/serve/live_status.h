/* live_status - what is added to a card or an allocation that is shown: how it fares
 * at the moment, as its node says.  Embedded; in a cluster nothing is. */
#ifndef BIGA_EXTENDER_SERVE_LIVE_STATUS_H
#define BIGA_EXTENDER_SERVE_LIVE_STATUS_H

#include <stdint.h>

#include "extender/pods/applied.h"
#include "extender/state/allocation.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"

struct app;

/* Changes when what is added may have changed, for ETags. */
uint64_t live_status_version(const struct app *app);

/* `out` ends with an object, which gets further members: "state", "ready",
 * "reason" and "message" of the pod, when it was applied. */
void live_status_allocation(const struct app *app, const struct pod_set *set,
                            const struct allocation *a, struct str *out);
/* The same with "healthReason" and "runtime", and "health" when the topology
 * does not say it. */
void live_status_card(const struct app *app, const struct node *node,
                      size_t card, struct str *out);

/* What is the matter with an applied pod, and what to do, as a sentence; its
 * place, or NULL.  Nothing is added when all is well. */
void live_status_trouble(const struct app *app, const struct applied_pod *p,
                         const struct allocation *place, struct str *out);

/* The pods of that job that were applied: the one that says most of why it
 * does not run; NULL: there is none. */
const struct applied_pod *live_status_spokesman(const struct pod_set *set,
                                                const struct snapshot *s,
                                                const char *namespace,
                                                const char *job);

#endif
