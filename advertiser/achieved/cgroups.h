/* cgroups - which CPUs and NUMA nodes the containers of this host may use, as
 * their control groups say: of version 2, and of version 1's cpuset.
 *
 *     …/kubepods/burstable/podUID/ID                           cgroupfs
 *     …/kubepods-burstable-podU_I_D.slice/cri-containerd-ID.scope   systemd
 *     …/ID, …/cri-containerd-ID.scope                 without a kubelet */
#ifndef BIGA_ADVERTISER_ACHIEVED_CGROUPS_H
#define BIGA_ADVERTISER_ACHIEVED_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/achieved/index_set.h"
#include "lib/base/error.h"

enum {
    CGROUPS_UID_MAX = 36,
    CGROUPS_ID_MAX = 64, /* of a container: so many hexadecimal digits */
    CGROUPS_DEPTH_MAX = 16,
    CGROUPS_SEEN_MAX = 65536, /* groups of a look; more are not looked at */
    CGROUPS_CONTAINERS_MAX = 8192,
};

struct cgroup_container {
    char uid[CGROUPS_UID_MAX + 1]; /* of its pod, with '-'; "" of none */
    char id[CGROUPS_ID_MAX + 1];
    bool known; /* both could be read */
    struct index_set cpus, mems;
};

struct cgroups {
    struct index_set mems;               /* of the host */
    struct cgroup_container *containers; /* by uid, then id */
    size_t n, cap;
};

/* Looks below `sysroot` ("" for /).  -ENOENT: there is no cpuset there. */
int cgroups_look(const char *sysroot, struct cgroups *ret_groups,
                 struct error *err);
void cgroups_fini(struct cgroups *g);

/* What the containers of a pod may use together.  False when it is not known:
 * none of them is there, or cannot be read.  The sandbox, which looks like any
 * other container and has all that the pod may have, is left out: it is the one
 * with the most. */
bool cgroups_of_pod(const struct cgroups *g, const char *uid,
                    struct index_set *ret_cpus, struct index_set *ret_mems);
/* Is a container of it there, or its sandbox? */
bool cgroups_has_pod(const struct cgroups *g, const char *uid);
/* NULL when there is none of that id. */
const struct cgroup_container *cgroups_find(const struct cgroups *g,
                                            const char *id);

/* The pod of a group by its name, as above; false when it is none's. */
bool cgroups_pod_uid(const char *name, char ret_uid[CGROUPS_UID_MAX + 1]);
/* The container of a group by its name; false when it is none's. */
bool cgroups_container_id(const char *name, char ret_id[CGROUPS_ID_MAX + 1]);

#endif
