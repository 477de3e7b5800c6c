/* remote_view - what one remote had when it was listed last: its replies as
 * they came, and the last status of each that was in a list.  Immutable and
 * shared, without a lock.  While the remote is away its last view stays.
 * Bounded: a reply by GRPC_REPLY_MAX, all statuses together by
 * REMOTE_VIEW_STATUS_MAX (others are to be asked for). */
#ifndef BIGA_ROUTER_REMOTE_REMOTE_VIEW_H
#define BIGA_ROUTER_REMOTE_REMOTE_VIEW_H

#include <stdint.h>

#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "router/wire/method.h"

enum { REMOTE_VIEW_STATUS_MAX = 32 << 20 }; /* bytes, of one remote */
struct remote_view;
struct remote_view *remote_view_ref(struct remote_view *v);
void remote_view_unref(struct remote_view *v); /* NULL allowed */
DEFINE_CLEANUP(remote_view, struct remote_view *, remote_view_unref)
/* When its lists were begun; 0: never, or they are of the router of before. */
int64_t remote_view_time(const struct remote_view *v);
int64_t remote_view_wall_ns(const struct remote_view *v); /* since 1970 */
/* The reply of ListPodSandbox or ListContainers (for their Stream… alike), as
 * it came; empty when there is none.  Borrowed from the view, as all. */
struct proto_bytes remote_view_list(const struct remote_view *v,
                                    const struct method *m);
/* The reply of PodSandboxStatus or ContainerStatus of that id; empty: none. */
struct proto_bytes remote_view_status(const struct remote_view *v,
                                      const char *id);
/* Whether it has that one, and its state as it was listed. */
bool remote_view_state(const struct remote_view *v, const char *id,
                       uint32_t *ret_state);
struct remote_stats;
void remote_stats_unref(struct remote_stats *s); /* NULL allowed */
DEFINE_CLEANUP(remote_stats, struct remote_stats *, remote_stats_unref)
int64_t remote_stats_time(const struct remote_stats *s);
/* The reply of ListContainerStats; empty: none. */
struct proto_bytes remote_stats_containers(const struct remote_stats *s);

#endif
