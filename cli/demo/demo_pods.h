/* demo_pods - the pods of the demo as JSON, and kube-scheduler's part: filter with
 * all node names, prioritize with those that are left, bind to the best. */
#ifndef BIGA_CLI_DEMO_DEMO_PODS_H
#define BIGA_CLI_DEMO_DEMO_PODS_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/http/http.h"

enum pod_kind { POD_SERVICE, POD_TENANT, POD_HOST, POD_XPU };

#define DEMO_NAMESPACE "demo"
#define DEMO_JOB "allreduce"

struct pod_spec {
    enum pod_kind kind;
    size_t index; /* of the pair in its job, of the service's node, or of the
                   * tenant: a host pod that has nothing to do with the job */
    size_t size;  /* pairs in the job */
};

/* The pod's name, like "allreduce-host-3". */
void pod_name(const struct pod_spec *pod, char *ret_name, size_t size);
/* The pod as kube-scheduler sends it. */
void pod_encode(const struct pod_spec *pod, struct str *out);

/* Schedule one pod among `names`.  On success the node it was bound to is in
 * `ret_node` (the caller frees).  -ENOSPC when no node is left, with the
 * reason of the first one that gives any. */
int pod_schedule(struct http_client *scheduler, const struct pod_spec *pod,
                 char *const *names, size_t n, char **ret_node,
                 struct error *err);

#endif
