/* mount - what a container's mount is of, as the kubelet's path on the home
 * tells; and which of them a remote cannot be given.  Pure: nobody looks
 * whether the path is there.
 *
 *     ROOT/pods/UID/volumes/kubernetes.io~KIND/NAME
 *     ROOT/pods/UID/volume-subpaths/NAME/CONTAINER/NUMBER
 *     ROOT/pods/UID/etc-hosts
 *     ROOT/pods/UID/containers/CONTAINER/ID      (the termination log)
 */
#ifndef BIGA_ROUTER_WIRE_MOUNT_H
#define BIGA_ROUTER_WIRE_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    MOUNT_MAX = 512,       /* of one container: more is -EINVAL */
    MOUNT_PATH_MAX = 4095, /* bytes of a path */
};

enum mount_kind {
    MOUNT_CONFIG_MAP,
    MOUNT_SECRET,
    MOUNT_PROJECTED,
    MOUNT_DOWNWARD_API,
    MOUNT_EMPTY_DIR,
    /* A part of one of the above: what of, only the volume's folder tells.  It
     * may as well be a part of a hostPath, which has no such folder, and has
     * to be refused then by who looks. */
    MOUNT_SUBPATH,
    MOUNT_HOSTS,           /* /etc/hosts */
    MOUNT_TERMINATION_LOG, /* a file that the container writes */
    MOUNT_HOST_PATH,       /* the remote's own path, which is allowed */
};
const char *mount_kind_name(enum mount_kind kind); /* "configMap" … */

enum mount_propagation { MOUNT_PRIVATE, MOUNT_FROM_HOST, MOUNT_BOTH_WAYS };

struct mount {
    const char *container_path, *host_path; /* of the home; never NULL */
    bool read_only;
    uint32_t propagation; /* enum mount_propagation, or a newer one */
    bool image;           /* a volume that is an image */
    /* filled in by mount_judge(): */
    enum mount_kind kind;
    char volume[254];  /* its name; "" of other files and of a hostPath */
    const char *below; /* in `host_path`, relative: what of the volume,
                        * "" all of it; "CONTAINER/NUMBER" of MOUNT_SUBPATH;
                        * NULL of a hostPath */
};

struct mount_rules {
    const char *kubelet_root; /* "/var/lib/kubelet" */
    /* Folders of the remote that its operator lets pods mount, absolute. */
    const char *const *allowed;
    size_t n_allowed;
};
/* Say of what kind a mount of the pod `uid` is.  -EPERM names the path and why
 * a remote cannot have it: another pod's, a hostPath that is not allowed, a
 * volume of another kind (its plugin's name is told), an image volume,
 * propagation to the home; -EINVAL: it is relative, too long, or has "." or
 * ".." in it. */
int mount_judge(const struct mount_rules *rules, const char *uid,
                struct mount *m, struct error *err);

/* Is this an absolute path without "." and ".."? */
bool mount_path_valid(const char *path);
/* And is it at or below a folder that the operator allows? */
bool mount_path_allowed(const struct mount_rules *rules, const char *path);

#endif
