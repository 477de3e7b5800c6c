/* volume_home - what a mount needs on a remote, as the kubelet's folders tell.
 * Looks at the home's file system alone. */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_HOME_H
#define BIGA_ROUTER_VOLUME_VOLUME_HOME_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "router/wire/mount.h"

enum volume_form {
    VOLUME_AS_TREE,   /* a folder with the kubelet's files */
    VOLUME_AS_FILE,   /* one file of the kubelet's, in the same inode */
    VOLUME_AS_OUTPUT, /* a file that the container writes */
    VOLUME_AS_EMPTY,  /* a folder that containers fill */
    VOLUME_AS_PART,   /* a folder in one of these */
    VOLUME_AS_PATH,   /* the remote's own */
};
struct volume_home {
    enum volume_form form;
    bool memory;             /* never on the remote's disk */
    uint64_t limit;          /* bytes of an emptyDir in memory; 0: none */
    uint32_t mode, uid, gid; /* of what a container fills */
    char *path; /* at home: what is read and watched; of a hostPath itself */
    char *name; /* below the pod's folder, at home and on the remote; of a part
                 * on the remote alone */
    char *of;   /* of a part: "disk/…" or "memory/…", as in plans */
};
void volume_home_fini(struct volume_home *h);
/* `m` as mount_judge() filled it in.  -ENOENT: the kubelet has no such path
 * (yet).  -EPERM names a subPath of what a remote cannot have: of a hostPath.
 * `ret_whole` is the emptyDir that a part is of, which has to be there first;
 * of all else it is empty, without a name. */
int volume_home_look(const char *kubelet_root, const char *uid,
                     const struct mount *m, struct volume_home *ret_home,
                     struct volume_home *ret_whole, struct error *err);
/* Has the kubelet a volume of the pod mounted, or its files here? */
bool volume_home_in_use(const char *kubelet_root, const char *uid);
/* -EPERM names a volume of the pod that a remote cannot have. */
int volume_home_check(const char *kubelet_root, const char *uid,
                      struct error *err);

#endif
