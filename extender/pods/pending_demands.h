/* pending_demands - the demands of pods that were asked about, so that bind (whose
 * request has no pod, only its name) knows what was promised to whom, and so
 * that people can ask why a pod is pending.
 *
 * No decision reads it: filter and prioritize only write it.  Bounded: the
 * oldest entry makes room.  Any thread: who puts one waits for no reader longer
 * than it takes to copy an entry. */
#ifndef BIGA_EXTENDER_PODS_PENDING_DEMANDS_H
#define BIGA_EXTENDER_PODS_PENDING_DEMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/candidates.h"
#include "model/pod/demand.h"

enum {
    PENDING_DEMANDS_MAX = 8192,
    PENDING_DEMANDS_FRESH_MS = 600000, /* kube-scheduler asks again about a pod
                                        * that waits after half of it */
};

struct pending_demands;
struct pending_demands *pending_demands_create(void);
void pending_demands_destroy(struct pending_demands *s); /* NULL allowed */

/* Remember (or bring up to date) the demand of a pod with a UID. */
void pending_demands_put(struct pending_demands *s,
                         const struct demand *demand);
/* The same of a pod that filter has planned, with the nodes that the request
 * named (n indexes into `snapshot`): what bind may plan with.  They are kept
 * until the next such request. */
void pending_demands_put_planned(struct pending_demands *s,
                                 const struct demand *demand,
                                 const struct snapshot *snapshot,
                                 const int32_t *indexes, size_t n);
/* The nodes of the pod's last pending_demands_put_planned(), for the caller to release;
 * NULL: all, or there was none. */
struct candidates *pending_demands_candidates(struct pending_demands *s,
                                              const char *uid);
/* Remember that a pod (its names and UID are set) was refused because it
 * breaks the pod contract, and how. */
void pending_demands_refuse(struct pending_demands *s,
                            const struct demand *demand, const char *text);
/* Remember a pod that nobody has asked about yet (`refusal` NULL: it keeps to
 * the contract), unless it is known or there is no room without forgetting
 * another. */
void pending_demands_offer(struct pending_demands *s,
                           const struct demand *demand, const char *refusal);
/* False, too, when the pod was refused. */
bool pending_demands_find_uid(struct pending_demands *s, const char *uid,
                              struct demand *ret_demand);
/* The newest pod of that name.  `*ret_refusal` is how it breaks the contract
 * (the caller's to free), or NULL: then the demand is whole. */
bool pending_demands_find_name(struct pending_demands *s, const char *namespace,
                               const char *name, struct demand *ret_demand,
                               char **ret_refusal);
/* The newest pod of a job that keeps to the contract and for which `is_done`
 * is false; else the newest for which it is true.  False when there is none. */
typedef bool pending_demands_done_f(const void *ctx,
                                    const struct demand *demand);
bool pending_demands_find_job(struct pending_demands *s, const char *namespace,
                              const char *job, pending_demands_done_f *is_done,
                              const void *ctx, struct demand *ret_demand);
/* Those that were asked about not longer ago than PENDING_DEMANDS_FRESH_MS; who
 * is not has gone without our being told.  `refusal` is NULL or how it breaks
 * the contract; `since_s`: of the first question, in seconds since 1970.  Who
 * puts one meanwhile does not wait for `visit`. */
typedef void pending_demands_f(void *arg, const struct demand *demand,
                               const char *refusal, int64_t since_s);
void pending_demands_each(struct pending_demands *s, pending_demands_f *visit,
                          void *arg);
/* How long ago it was seen first; -1: it is not known. */
int64_t pending_demands_waited_ms(struct pending_demands *s, const char *uid);
/* Changes when that may tell of others, but for those that are no longer
 * fresh. */
uint64_t pending_demands_version(struct pending_demands *s);
void pending_demands_forget(struct pending_demands *s, const char *namespace,
                            const char *name);

#endif
