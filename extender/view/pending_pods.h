/* pending_pods - the pods without a place that wait for one, by namespace and
 * name. */
#ifndef BIGA_EXTENDER_VIEW_PENDING_PODS_H
#define BIGA_EXTENDER_VIEW_PENDING_PODS_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/jobs/job_told.h"
#include "extender/state/snapshot.h"

/* Of one answer so many are judged. */
enum { PENDING_ASKS_MAX = 64 };

struct pending_pod {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char name[DEMAND_NAME_MAX + 1], job[DEMAND_NAME_MAX + 1];
    int32_t pair, size;
    int64_t since_s;
    bool told; /* `reason` says what it waits for, else it is to be judged */
    char reason[JOB_REASON_MAX];
};

struct pending_pods {
    const struct snapshot *snapshot;
    const char *namespace; /* NULL: all */
    struct pending_pod *list;
    size_t n, cap;
};

/* Does it wait for a place? */
bool pending_pod_waits(const struct job_pod *pod, const struct snapshot *s);
/* Those of a namespace (NULL: all).  The snapshot is borrowed. */
void pending_pods_read(struct pending_pods *ret,
                       const struct pod_source *source,
                       const struct snapshot *s, const char *namespace);
void pending_pods_fini(struct pending_pods *p);

/* Pods of a job that is planned as a whole have one verdict: is it that of
 * `last` (NULL: none was)? */
bool pending_pod_is_like(const struct pending_pod *p,
                         const struct pending_pod *last);

#endif
