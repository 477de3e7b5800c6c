/* pod_condition - a condition of a pod's status, which only Biga owns, as it is
 * told to the API server: by server-side apply. */
#ifndef BIGA_EXTENDER_LEADER_POD_CONDITION_H
#define BIGA_EXTENDER_LEADER_POD_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/client.h"

struct pod_condition {
    const char *namespace, *name, *uid; /* of the pod */
    const char *manager;                /* of the field, one for each type */
    const char *type, *reason, *message;
    bool is_true;
    int64_t since_s; /* Unix time */
};
/* As kube_call(), but -ENOENT also when another pod has the name now. */
int pod_condition_apply(struct kube_client *client,
                        const struct pod_condition *condition,
                        unsigned timeout_ms, struct http_answer *answer,
                        struct error *err);

#endif
