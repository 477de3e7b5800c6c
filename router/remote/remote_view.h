/* remote_view - what one remote had when it was listed last: its replies as
 * they came, and the last status of each that was in a list.  Immutable and
 * shared; a reader holds a reference and no lock.
 * While a remote is away its last view stays, for as long as the kubelet has
 * not removed what is in it.  Bounded: a reply by GRPC_REPLY_MAX, all statuses
 * together by REMOTE_VIEW_STATUS_MAX (others are to be asked for). */
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
/* When its lists were begun, by clock_ms(); 0: there are none, or those that
 * the router of before had. */
int64_t remote_view_time(const struct remote_view *v);
/* The reply of ListPodSandbox or ListContainers (for their Stream… alike), as
 * it came; empty when there is none.  Borrowed from the view, as all. */
struct proto_bytes remote_view_list(const struct remote_view *v,
                                    const struct method *m);
/* The reply of PodSandboxStatus or ContainerStatus of that id; empty: it was
 * not asked for yet, or is not there any more. */
struct proto_bytes remote_view_status(const struct remote_view *v,
                                      const char *id);
struct remote_stats;
void remote_stats_unref(struct remote_stats *s); /* NULL allowed */
DEFINE_CLEANUP(remote_stats, struct remote_stats *, remote_stats_unref)
int64_t remote_stats_time(const struct remote_stats *s);
/* The reply of ListContainerStats or ListPodSandboxStats; empty: none. */
struct proto_bytes remote_stats_list(const struct remote_stats *s,
                                     const struct method *m);

#endif
