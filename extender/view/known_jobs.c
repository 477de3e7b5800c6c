#include "extender/view/known_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void known_jobs_fini(struct known_jobs *k)
{
    free(k->told);
    free(k->members);
    snapshot_unref(k->snapshot);
}

static void read_told(struct known_jobs *k, const struct pod_source *source,
                      const char *namespace, const char *job)
{
    const struct job_name behind = {namespace ? namespace : "", ""}, *name;
    struct jobs_told t;
    jobs_told_begin(&t, source, k->snapshot, &behind);
    while ((name = jobs_told_peek(&t))) {
        k->told = xgrow(k->told, k->n_told, &k->told_cap, sizeof *k->told);
        if ((!namespace || strcmp(namespace, name->namespace) == 0) &&
            (!job || strcmp(job, name->name) == 0))
            k->n_told += jobs_told_get(&t, name, &k->told[k->n_told]);
        jobs_told_pass(&t);
    }
    jobs_told_fini(&t);
}

void known_jobs_init(struct known_jobs *k, const struct pod_source *source,
                     struct snapshot *s, const char *namespace, const char *job)
{
    *k = (struct known_jobs){.snapshot = s};
    k->members = job ? alloc_index_find_job(s->allocations, namespace, job,
                                            &k->n)
                     : job_members(s->allocations, namespace, &k->n);
    read_told(k, source, namespace, job);
}

bool known_jobs_next(struct known_jobs *k)
{
    bool has_places = k->at_member < k->n, is_told = k->at_told < k->n_told;
    const struct allocation *const *m = has_places ? k->members + k->at_member
                                                   : NULL;
    struct job_told *t = is_told ? k->told + k->at_told : NULL;
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
