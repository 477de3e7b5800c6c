/* volume_sync - volumes of pods on remotes: delivered before a container is
 * created, kept up to date while the pod is there, and gone with it.
 *
 * Each remote has a thread, begun with its first pod, which delivers what the
 * kubelet has changed within 2 s of it, tries again what failed, and removes
 * what is to go.  A remote that does not answer delays nobody but who asks for
 * it.  All functions may be called from any thread at any time.
 *
 *     configMap, etc-hosts, termination log, emptyDir  DISK/pods/UID/…
 *     secret, projected, downwardAPI, emptyDir Memory  MEMORY/UID/…
 *
 * The helper's container has DISK at the same path, MEMORY at ACT_MEMORY_HELPER,
 * and the rights of root in it (CHOWN, FOWNER, DAC_OVERRIDE).  An emptyDir in
 * memory has its limit where both mounts are shared (cri_mount.shared) and it
 * has SYS_ADMIN; else it is a folder without one, and `volume-unlimited` is
 * logged.
 *
 * What goes on is the path below the kubelet's folder of the pod.  A hostPath
 * is the remote's own path (mount.h says which are allowed). */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_SYNC_H
#define BIGA_ROUTER_VOLUME_VOLUME_SYNC_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "router/volume/volume_send.h"
#include "router/wire/mount.h"

enum {
    VOLUME_LANES = 3,          /* calls at once on one remote */
    VOLUME_REMOTES_MAX = 64,   /* more are -ENOSPC */
    VOLUME_PODS_MAX = 1024,    /* of one remote */
    VOLUME_MESSAGE_MAX = 4096, /* bytes of a termination message, its last: what
                                * the kubelet reads of it */
};

struct volume_sync_config {
    const char *kubelet_root;  /* "/var/lib/kubelet" */
    const char *disk;          /* on remotes, and the same for their helper */
    const char *memory;        /* NULL: ACT_MEMORY_DIR (pod_dir.h) */
    const char *memory_helper; /* where the helper has it; NULL:
                                * ACT_MEMORY_HELPER */
    volume_exec_f *exec;
    void *ctx;
};
struct volume_sync;
/* Texts are copied. */
int volume_sync_create(const struct volume_sync_config *config,
                       struct volume_sync **ret_sync, struct error *err);
/* Waits for calls that are under way.  Remotes keep what they have. */
void volume_sync_destroy(struct volume_sync *s);
DEFINE_CLEANUP(volume_sync, struct volume_sync *, volume_sync_destroy)

struct volume_pod {
    const char *remote, *uid; /* borrowed for the call */
};

/* Before the sandbox is made: has the kubelet mounted a volume for the pod that
 * a remote cannot have?  -EPERM names it and its plugin ("volume data: is of
 * kubernetes.io/csi").  Looks into the kubelet's folder alone. */
int volume_sync_check(const struct volume_sync *s, const char *uid,
                      struct error *err);

/* Before CreateContainer: deliver what these mounts need, which mount_judge()
 * has judged, and say where each of them is on the remote; the caller frees the
 * paths and the list.  Blocks for some calls of the remote.  Once more is a
 * success, by one call when nothing has changed.  -EAGAIN: there is no helper yet,
 * or the kubelet is changing it: to be tried again; -EPERM, -EINVAL, -EFBIG
 * name the volume. */
int volume_sync_prepare(struct volume_sync *s, const struct volume_pod *pod,
                        const struct mount *mounts, size_t n, char ***ret_paths,
                        struct error *err);
/* The same of a container that was made by a former process, without waiting:
 * what changed meanwhile is delivered by the remote's thread. */
int volume_sync_adopt(struct volume_sync *s, const struct volume_pod *pod,
                      const struct mount *mounts, size_t n, struct error *err);

/* Before a container is told as exited: copy its termination message to the
 * kubelet's file, `mount` of kind MOUNT_TERMINATION_LOG.  Blocks for a call of
 * the remote.  A file that is not there is a success. */
int volume_sync_collect(struct volume_sync *s, const struct volume_pod *pod,
                        const struct mount *mount, struct error *err);

/* Where that path of a remote is on the home, of this pod; the caller frees it,
 * NULL when it is none of its volumes.  Pure. */
char *volume_sync_home_path(const struct volume_sync *s, const char *uid,
                            const char *path);

/* No container of it runs any more, as when its sandbox was stopped: all of it
 * goes, secrets and tokens first, as soon as the kubelet has no volume of it
 * either (a pod that gets another sandbox keeps its emptyDirs).  Returns at
 * once; tried again until the remote has done it, or it is prepared again. */
void volume_sync_forget(struct volume_sync *s, const struct volume_pod *pod);
/* Forget all pods on that remote but these, and those that were prepared or
 * adopted: what a former process has left.  Returns at once. */
void volume_sync_sweep(struct volume_sync *s, const char *remote,
                       const char *const *uids, size_t n);
/* Volumes, or changes of them, so far. */
struct volume_sync_counts {
    uint64_t n_delivered, n_failed;
};
void volume_sync_count(struct volume_sync *s,
                       struct volume_sync_counts *ret_counts);
/* Wait until nothing is to be delivered or removed on that remote, at most `ms`
 * (tests, and the end of the program). -ETIMEDOUT. */
int volume_sync_settle(struct volume_sync *s, const char *remote, unsigned ms);

#endif
