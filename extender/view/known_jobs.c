#include "extender/view/known_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void known_jobs_fini(struct known_jobs *k)
{
    jobs_told_fini(&k->told);
    free(k->members);
    snapshot_unref(k->snapshot);
}

void known_jobs_init(struct known_jobs *k, const struct pod_source *source,
                     struct snapshot *s, const char *namespace, const char *job)
{
    *k = (struct known_jobs){.snapshot = s};
    k->members = job ? alloc_index_find_job(s->allocations, namespace, job,
                                            &k->n)
                     : job_members(s->allocations, namespace, &k->n);
    jobs_told_read(source, s, namespace, job, &k->told);
}

bool known_jobs_next(struct known_jobs *k)
{
    bool has_places = k->at_member < k->n, is_told = k->at_told < k->told.n;
    const struct allocation *const *m = has_places ? k->members + k->at_member
                                                   : NULL;
    struct job_told *t = is_told ? k->told.list + k->at_told : NULL;
    int order = is_told ? 1 : -1;
    if (!has_places && !is_told)
        return false;
    if (has_places && is_told) {
        order = strcmp((*m)->demand.namespace, t->namespace);
        if (order == 0)
            order = strcmp((*m)->demand.job, t->name);
    }
    k->parts = (struct job_parts){0};
    k->completed = NULL;
    if (order <= 0) {
        size_t end = job_members_end(k->members, k->n, k->at_member);
        k->parts.members = m;
        k->parts.n = end - k->at_member;
        k->at_member = end;
    }
    if (order >= 0) {
        k->parts.told = k->completed = t;
        k->at_told++;
    }
    return true;
}
