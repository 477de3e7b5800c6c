#include "extender/pods/pod_source.h"

/* Does the source have this operation?  A source without operations is that
 * of a test which needs none. */
#define HAS(s, op) ((s)->ops && (s)->ops->op)

bool pod_source_leads(const struct pod_source *s,
                      char ret_leader[POD_SOURCE_LEADER_MAX])
{
    ret_leader[0] = '\0';
    return !HAS(s, leads) || s->ops->leads(s->ctx, ret_leader);
}

bool pod_source_is_ready(const struct pod_source *s, struct str *why)
{
    return !HAS(s, is_ready) || s->ops->is_ready(s->ctx, why);
}

void pod_source_gauge(const struct pod_source *s, const struct snapshot *now)
{
    if (HAS(s, gauge))
        s->ops->gauge(s->ctx, now);
}

bool pod_source_find_demand(const struct pod_source *s, const char *uid,
                            struct demand *ret_demand)
{
    return HAS(s, find_demand) && s->ops->find_demand(s->ctx, uid, ret_demand);
}

bool pod_source_find(const struct pod_source *s, const struct snapshot *now,
                     const char *namespace, const char *name,
                     struct pod_account *ret)
{
    return HAS(s, find) && s->ops->find(s->ctx, now, namespace, name, ret);
}

bool pod_source_find_job(const struct pod_source *s, const struct snapshot *now,
                         const char *namespace, const char *job,
                         struct pod_account *ret)
{
    return HAS(s, find_job) &&
           s->ops->find_job(s->ctx, now, namespace, job, ret);
}

bool pod_source_find_unknown_key(const struct pod_source *s,
                                 const char *namespace, const char *name,
                                 struct str *text)
{
    return HAS(s, find_unknown_key) &&
           s->ops->find_unknown_key(s->ctx, namespace, name, text);
}

void pod_source_add_health(const struct pod_source *s,
                           const struct allocation *a, struct str *text)
{
    if (HAS(s, add_health))
        s->ops->add_health(s->ctx, a, text);
}

bool pod_source_add_waiting(const struct pod_source *s,
                            const struct demand *pod, struct str *text)
{
    return HAS(s, add_waiting) && s->ops->add_waiting(s->ctx, pod, text);
}

uint64_t pod_source_version(const struct pod_source *s)
{
    return HAS(s, version) ? s->ops->version(s->ctx) : 0;
}

void pod_source_add_to_allocation(const struct pod_source *s,
                                  const struct allocation *a, struct str *out)
{
    if (HAS(s, add_to_allocation))
        s->ops->add_to_allocation(s->ctx, a, out);
}

void pod_source_add_to_card(const struct pod_source *s, const struct node *node,
                            size_t card, struct str *out)
{
    if (HAS(s, add_to_card))
        s->ops->add_to_card(s->ctx, node, card, out);
}

bool pod_source_listens(const struct pod_source *s)
{
    return HAS(s, answered);
}

void pod_source_answered(const struct pod_source *s,
                         const struct pod_answer *answer)
{
    if (HAS(s, answered))
        s->ops->answered(s->ctx, answer);
}

bool pod_source_may_release(const struct pod_source *s, const char *namespace,
                            const char *name, bool *ret_unfed, struct str *why)
{
    *ret_unfed = false;
    return !HAS(s, may_release) ||
           s->ops->may_release(s->ctx, namespace, name, ret_unfed, why);
}

bool pod_source_binds(const struct pod_source *s)
{
    return HAS(s, bind);
}

void pod_source_bind_begin(const struct pod_source *s, const char *uid)
{
    if (HAS(s, bind_begin))
        s->ops->bind_begin(s->ctx, uid);
}

void pod_source_bind(const struct pod_source *s, struct pod_bind *b)
{
    if (HAS(s, bind))
        s->ops->bind(s->ctx, b);
    else
        b->done(b, b->created ? "bound" : "repeated", "");
}

void pod_source_bind_refused(const struct pod_source *s,
                             const struct pod_bind *b, const char *reason)
{
    if (HAS(s, bind_refused))
        s->ops->bind_refused(s->ctx, b, reason);
}
