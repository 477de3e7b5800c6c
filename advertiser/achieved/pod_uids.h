/* pod_uids - the UIDs of this node's pods, which the kubelet's list does not
 * tell: the folders of their logs are named NAMESPACE_NAME_UID. */
#ifndef BIGA_ADVERTISER_ACHIEVED_POD_UIDS_H
#define BIGA_ADVERTISER_ACHIEVED_POD_UIDS_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/achieved/cgroups.h"
#include "lib/base/mem.h"

enum { POD_UIDS_MAX = 8192, POD_UIDS_NAME_MAX = 253 };

struct pod_uids {
    struct pod_uid {
        char pod[63 + 1 + POD_UIDS_NAME_MAX + 1]; /* "NAMESPACE_NAME" */
        char uid[CGROUPS_UID_MAX + 1];
    } * items; /* by pod */
    size_t n, cap;
};

/* Of `dir`; what cannot be read has none. */
void pod_uids_look(const char *dir, struct pod_uids *ret_uids);
void pod_uids_fini(struct pod_uids *u);
/* False when the name is none of a folder of logs. */
bool pod_uid_read(const char *name, struct pod_uid *ret_uid);

/* The UID of the pod; NULL when it is not known.  Logs of pods that are gone
 * stay for a while: it is that of the only one which has a control group. */
const char *pod_uids_find(const struct pod_uids *u, const char *namespace,
                          const char *name, const struct cgroups *groups);

#endif
