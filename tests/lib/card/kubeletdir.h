/* kubeletdir - what a kubelet does in its folder of a pod: volumes that it
 * replaces at once (AtomicWriter), files that it writes in place. */
#ifndef BIGA_TESTS_LIB_CARD_KUBELETDIR_H
#define BIGA_TESTS_LIB_CARD_KUBELETDIR_H

/* ROOT/pods/UID, with etc-hosts and a termination log of container "main". */
void kubeletdir_pod(const char *root, const char *uid);
/* The volume has these files from then on, "NAME=TEXT", NULL-terminated; NAME
 * may have folders.  `plugin` as in "secret". */
void kubeletdir_update(const char *root, const char *uid, const char *plugin,
                       const char *volume, const char *const *files);
/* A folder that pods fill. */
void kubeletdir_empty(const char *root, const char *uid, const char *volume);
/* In the same inode, made when it is missing; with folders above it. */
void kubeletdir_write(const char *path, const char *text);
/* All volumes of the pod are unmounted. */
void kubeletdir_end(const char *root, const char *uid);

#endif
