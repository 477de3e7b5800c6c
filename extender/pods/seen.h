/* seen - the demands of pods that were asked about, so that bind (whose
 * request has no pod, only its name) knows what was promised to whom, and so
 * that people can ask why a pod is pending.
 *
 * No decision reads it: filter and prioritize only write it.  Bounded: the
 * oldest entry makes room.  Any thread. */
#ifndef BIGA_EXTENDER_PODS_SEEN_H
#define BIGA_EXTENDER_PODS_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/candidates.h"
#include "model/pod/demand.h"

enum { SEEN_MAX = 8192 };

struct seen;
struct seen *seen_create(void);
void seen_destroy(struct seen *s); /* NULL allowed */

/* Remember (or bring up to date) the demand of a pod with a UID. */
void seen_put(struct seen *s, const struct demand *demand);
/* The same of a pod that filter has planned, with the nodes that the request
 * named (n indexes into `snapshot`): what bind may plan with.  They are kept
 * until the next such request. */
void seen_put_planned(struct seen *s, const struct demand *demand,
                      const struct snapshot *snapshot, const int32_t *indexes,
                      size_t n);
/* The nodes of the pod's last seen_put_planned(), for the caller to release;
 * NULL: all, or there was none. */
struct candidates *seen_candidates(struct seen *s, const char *uid);
/* Remember that a pod (its names and UID are set) was refused because it
 * breaks the pod contract, and how. */
void seen_refuse(struct seen *s, const struct demand *demand, const char *text);
/* Remember a pod that nobody has asked about yet (`refusal` NULL: it keeps to
 * the contract), unless it is known or there is no room without forgetting
 * another. */
void seen_offer(struct seen *s, const struct demand *demand,
                const char *refusal);
/* False, too, when the pod was refused. */
bool seen_find_uid(struct seen *s, const char *uid, struct demand *ret_demand);
/* The newest pod of that name.  `*ret_refusal` is how it breaks the contract
 * (the caller's to free), or NULL: then the demand is whole. */
bool seen_find_name(struct seen *s, const char *namespace, const char *name,
                    struct demand *ret_demand, char **ret_refusal);
/* The newest pod of a job that keeps to the contract and for which `is_done`
 * is false; else the newest for which it is true.  False when there is none. */
typedef bool seen_done_f(const void *ctx, const struct demand *demand);
bool seen_find_job(struct seen *s, const char *namespace, const char *job,
                   seen_done_f *is_done, const void *ctx,
                   struct demand *ret_demand);
void seen_forget(struct seen *s, const char *namespace, const char *name);

#endif
