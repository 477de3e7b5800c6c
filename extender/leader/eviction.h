/* eviction - a pod is asked to leave by the Eviction API, so that disruption
 * budgets hold. */
#ifndef BIGA_EXTENDER_LEADER_EVICTION_H
#define BIGA_EXTENDER_LEADER_EVICTION_H

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/kube/client.h"

struct eviction {
    const char *namespace, *name, *uid; /* of that pod and no other */
};

/* What is posted. */
void eviction_write(const struct eviction *e, struct str *out);
/* As kube_call(): -EAGAIN while a budget refuses. */
int eviction_post(struct kube_client *client, const struct eviction *e,
                  unsigned timeout_ms, struct http_answer *answer,
                  struct error *err);

#endif
