/* to_remote - requests of the kubelet as a remote's runtime is to have them:
 * rewritten in place, fields that are newer than Biga copied as they are.
 * Pure.
 *
 * All append to `out`, a soft text with a cap, what is to be sent; 0, or
 *   -EPROTO   the request is malformed, or has a member twice
 *   -EPERM    the pod asks for what remotes do not give: named, with the
 *             setting that would allow it, if there is one
 *   -EMSGSIZE it became larger than `out` may be; -ENOMEM
 * and `out` is not to be used then.  Texts of the structures are borrowed for
 * the call; NULL counts as "". */
#ifndef BIGA_ROUTER_WIRE_TO_REMOTE_H
#define BIGA_ROUTER_WIRE_TO_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/cri/cri_container.h"
#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"
#include "model/pod/rights.h"
#include "router/wire/method.h"
#include "router/wire/mount.h"

/* What a remote is told besides what the kubelet says of a pod.  The same for
 * RunPodSandbox and each later call that brings the pod's configuration:
 * runtimes compare. */
struct to_remote_pod {
    const char *handler;       /* of the remote's own runtime */
    bool has_network;          /* it makes networks (CNI): pods that did not
                                * ask for the host's have their own there */
    const char *cgroup_parent; /* there; the kubelet's is dropped */
    const char *log_directory; /* there */
    bool own_dns; /* it has its own servers: the pod's are dropped */
    /* Ours; the pod's own of the same keys are dropped.  So is, always, its
     * annotation biga.dev/kept. */
    struct cri_pairs labels;
    const char *kept; /* annotation biga.dev/kept */
    const struct rights *rights;
    const struct mount_rules *paths; /* which of its files pods may name */
    const char *node; /* what refusals call the place: "card 0000:17:00.0" */
};

/* RunPodSandbox.  Dropped: overhead, the pod's resources, its hostname where it
 * has the remote's network.  -EPERM: it asks for rights that are not given;
 * -EINVAL: for sysctls of what it shares there, or for a port of the home. */
int to_remote_sandbox(struct proto_bytes request,
                      const struct to_remote_pod *pod, struct str *out,
                      struct error *err);

/* What a container may use: the least of this and of what the kubelet says;
 * 0: not limited.  Numbers of the home's CPUs and NUMA nodes, huge pages,
 * swap and cgroup v2's own settings are dropped. */
struct to_remote_limits {
    uint32_t cpu_milli;
    uint64_t memory;         /* bytes */
    const char *cpuset_cpus; /* of the remote: "0-3" */
};

struct to_remote_container {
    const struct to_remote_pod *pod;
    struct to_remote_limits limits;
    const char *sandbox_id;  /* there; "" the same */
    const char *log_path;    /* below the pod's log_directory there */
    struct cri_pairs labels; /* besides the pod's */
    const char *kept;
    /* Where each mount of the request is there, in its order (request.h); NULL
     * leaves it out.  Another number of them is -EINVAL. */
    const char *const *mounts;
    size_t n_mounts;
    const struct cri_mount *extra; /* more of them, of the remote's own */
    size_t n_extra;
};
/* CreateContainer.  Refused: devices, CDI but for that of claimed cards, which is
 * left out, user namespaces, rights that are not given, seccomp profiles but for
 * those of the remote in `paths`. */
int to_remote_container(struct proto_bytes request,
                        const struct to_remote_container *to, struct str *out,
                        struct error *err);

/* UpdateContainerResources. */
int to_remote_resources(struct proto_bytes request,
                        const struct to_remote_limits *limits, struct str *out,
                        struct error *err);

/* ImageStatus, PullImage (`pod` is of its sandbox, too), RemoveImage: a handler
 * becomes the remote's own, annotations biga.dev/… stay here. */
int to_remote_image(const struct method *m, struct proto_bytes request,
                    const struct to_remote_pod *pod, struct str *out,
                    struct error *err);

#endif
