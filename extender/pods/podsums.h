/* podsums - what pods request of hosts, as sums per host: one record of 32
 * bytes per pod and no object.  At most two thirds of the slots are in use,
 * so 100,000 pods take 8 MiB, and 12 MiB for the moment in which the table
 * grows.
 *
 * Not thread-safe. */
#ifndef BIGA_EXTENDER_PODS_PODSUMS_H
#define BIGA_EXTENDER_PODS_PODSUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "model/plan/plan.h"

struct podsums;
struct podsums *podsums_create(void);
void podsums_destroy(struct podsums *s); /* NULL allowed */

/* What a host has for pods; INT64_MAX: not said. */
struct podsums_host {
    int64_t cpu_milli, memory_kib, pods;
};
void podsums_put_host(struct podsums *s, const char *node,
                      const struct podsums_host *host);
void podsums_remove_host(struct podsums *s, const char *node);
/* A list of hosts begins; it is complete: who was not put since is gone. */
void podsums_list_hosts(struct podsums *s);
void podsums_listed_hosts(struct podsums *s);

/* Pods are told by two that do not know of each other; a pod is of who put it
 * last, and only he can remove it. */
enum podsums_source { PODSUMS_OTHERS, PODSUMS_ROLES };
struct podsums_pod {
    const char *uid, *node;
    int64_t cpu_milli, memory_kib; /* at least 0 */
};
void podsums_put(struct podsums *s, enum podsums_source source,
                 const struct podsums_pod *pod);
void podsums_remove(struct podsums *s, enum podsums_source source,
                    const char *uid);
void podsums_list(struct podsums *s, enum podsums_source source);
void podsums_listed(struct podsums *s, enum podsums_source source);
size_t podsums_n_pods(const struct podsums *s);
/* Bytes that it takes now. */
size_t podsums_size(const struct podsums *s);

/* Hosts whose room is not what it was when they were settled last, and the
 * room: all INT64_MAX for one that is gone.  The name is borrowed until the
 * next change. */
size_t podsums_n_changed(const struct podsums *s);
void podsums_changed(const struct podsums *s, size_t i, const char **ret_node,
                     struct host_room *ret_room);
void podsums_settle(struct podsums *s);

#endif
