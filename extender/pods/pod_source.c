#include "extender/pods/pod_source.h"

bool pod_source_leads(const struct pod_source *s,
                      char ret_leader[POD_SOURCE_LEADER_MAX])
{
    ret_leader[0] = '\0';
    return !pod_source_has(s, leads) || s->ops->leads(s->ctx, ret_leader);
}

bool pod_source_is_ready(const struct pod_source *s, struct str *why)
{
    return !pod_source_has(s, is_ready) || s->ops->is_ready(s->ctx, why);
}

bool pod_source_may_release(const struct pod_source *s, const char *namespace,
                            const char *name, bool *ret_unfed, struct str *why)
{
    *ret_unfed = false;
    return !pod_source_has(s, may_release) ||
           s->ops->may_release(s->ctx, namespace, name, ret_unfed, why);
}

void pod_source_bind(const struct pod_source *s, struct pod_bind *b)
{
    if (pod_source_has(s, bind))
        s->ops->bind(s->ctx, b);
    else
        b->done(b, b->created ? "bound" : "repeated", "");
}
