/* container_event - what GetContainerEvents tells of remotes: made here of
 * what is known of them.  Pure. */
#ifndef BIGA_ROUTER_WIRE_CONTAINER_EVENT_H
#define BIGA_ROUTER_WIRE_CONTAINER_EVENT_H

#include <stdint.h>

#include "advertiser/cri/cri_watch.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"

/* Of what from_remote made of statuses: `sandbox` and `containers` are replies
 * of PodSandboxStatus and ContainerStatus; empty ones are left out. */
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
