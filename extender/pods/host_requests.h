/* host_requests - what pods request of hosts, as sums per host: one record of 32
 * bytes per pod and no object.  At most two thirds of the slots are in use,
 * so 100,000 pods take 8 MiB, and 12 MiB for the moment in which the table
 * grows.
 *
 * Not thread-safe. */
#ifndef BIGA_EXTENDER_PODS_HOST_REQUESTS_H
#define BIGA_EXTENDER_PODS_HOST_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "model/plan/plan.h"

struct host_requests;
struct host_requests *host_requests_create(void);
void host_requests_destroy(struct host_requests *s); /* NULL allowed */

/* What a host has for pods; INT64_MAX: not said. */
struct host_requests_host {
    int64_t cpu_milli, memory_kib, pods;
};
void host_requests_put_host(struct host_requests *s, const char *node,
                            const struct host_requests_host *host);
void host_requests_remove_host(struct host_requests *s, const char *node);
/* A list of hosts begins; it is complete: who was not put since is gone. */
void host_requests_list_hosts(struct host_requests *s);
void host_requests_listed_hosts(struct host_requests *s);

/* Pods are told by two that do not know of each other; a pod is of who put it
 * last, and only he can remove it. */
enum host_requests_source { HOST_REQUESTS_OTHERS, HOST_REQUESTS_ROLES };
struct host_requests_pod {
    const char *uid, *node;
    int64_t cpu_milli, memory_kib; /* at least 0 */
};
void host_requests_put(struct host_requests *s,
                       enum host_requests_source source,
                       const struct host_requests_pod *pod);
void host_requests_remove(struct host_requests *s,
                          enum host_requests_source source, const char *uid);
void host_requests_list(struct host_requests *s,
                        enum host_requests_source source);
void host_requests_listed(struct host_requests *s,
                          enum host_requests_source source);
size_t host_requests_n_pods(const struct host_requests *s);
/* Bytes that it takes now. */
size_t host_requests_size(const struct host_requests *s);

/* Hosts whose room is not what it was when they were settled last, and the
 * room: all INT64_MAX for one that is gone.  The name is borrowed until the
 * next change. */
size_t host_requests_n_changed(const struct host_requests *s);
void host_requests_changed(const struct host_requests *s, size_t i,
                           const char **ret_node, struct host_room *ret_room);
void host_requests_settle(struct host_requests *s);

#endif
