/* container_event - what GetContainerEvents tells: read from a remote, and
 * made of what is known of one that has no such events.  Pure. */
#ifndef BIGA_ROUTER_WIRE_CONTAINER_EVENT_H
#define BIGA_ROUTER_WIRE_CONTAINER_EVENT_H

#include <stdint.h>

#include "advertiser/cri/cri_watch.h"
#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"
#include "router/wire/from_remote.h"

/* A remote's, as the kubelet is to have it; at most CRI_EVENT_MAX bytes.  1:
 * it is about nothing that is known, or of a kind that we do not know, and not
 * to be told. */
int container_event_translate(struct proto_bytes event,
                              const struct known *known, struct str *out,
                              struct error *err);

/* Our own, of what from_remote made of statuses: `sandbox` and `containers`
 * are replies of PodSandboxStatus and ContainerStatus; empty ones are left
 * out. */
struct container_event {
    const char *container_id; /* or the sandbox's, as containerd does */
    enum cri_event_kind kind;
    int64_t created_ns; /* since 1970 */
    struct proto_bytes sandbox;
    const struct proto_bytes *containers;
    size_t n_containers;
};
void container_event_write(const struct container_event *e, struct str *out);

#endif
