#include "extender/view/pending_pods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/state/scope.h"
#include "lib/base/mem.h"

bool pending_pod_waits(const struct job_pod *pod, const struct snapshot *s)
{
    return pod->state == POD_STATE_PENDING && !pod->deleting &&
           !alloc_index_find(s->allocations, pod->namespace, pod->name);
}

static void gather(void *arg, const struct job_pod *pod)
{
    struct pending_pods *g = arg;
    if ((g->namespace && strcmp(g->namespace, pod->namespace) != 0) ||
        !scope_sees(g->snapshot->scope, pod->namespace) ||
        !pending_pod_waits(pod, g->snapshot))
        return;
    g->list = xgrow(g->list, g->n, &g->cap, sizeof *g->list);
    struct pending_pod *p = &g->list[g->n++];
    *p = (struct pending_pod){.pair = pod->pair,
                              .size = pod->size,
                              .since_s = pod->submitted_s,
                              .told = pod->told};
    (void)snprintf(p->namespace, sizeof p->namespace, "%s", pod->namespace);
    (void)snprintf(p->name, sizeof p->name, "%s", pod->name);
    (void)snprintf(p->job, sizeof p->job, "%s", pod->job);
    job_reason(pod->reason, pod->message, p->reason);
}

static int compare(const void *pa, const void *pb)
{
    const struct pending_pod *a = pa, *b = pb;
    int order = strcmp(a->namespace, b->namespace);
    return order ? order : strcmp(a->name, b->name);
}

void pending_pods_read(struct pending_pods *ret,
                       const struct pod_source *source,
                       const struct snapshot *s, const char *namespace)
{
    *ret = (struct pending_pods){.snapshot = s, .namespace = namespace};
    const struct pods_asked asked = {.namespace = namespace, .unsettled = true};
    pod_source_tell(source, each_pod, s, &asked, gather, ret);
    pod_source_tell(source, each_asking, s, gather, ret);
    if (ret->n)
        qsort(ret->list, ret->n, sizeof *ret->list, compare);
}

void pending_pods_fini(struct pending_pods *p)
{
    free(p->list);
}

bool pending_pod_is_like(const struct pending_pod *p,
                         const struct pending_pod *last)
{
    return last && p->size > 1 && strcmp(p->job, last->job) == 0 &&
           strcmp(p->namespace, last->namespace) == 0;
}
