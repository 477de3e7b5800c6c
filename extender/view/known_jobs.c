#include "extender/view/known_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void known_jobs_fini(struct known_jobs *k)
{
    jobs_told_fini(&k->told);
    alloc_order_unref(k->order);
    snapshot_unref(k->snapshot);
}

void known_jobs_init(struct known_jobs *k, const struct pod_source *source,
                     struct snapshot *s, struct alloc_order *order,
                     const char *namespace, const struct job_name *behind)
{
    struct job_name from = behind ? *behind : (struct job_name){"", ""};
    if (namespace && strcmp(from.namespace, namespace) < 0)
        from = (struct job_name){namespace, ""};
    *k = (struct known_jobs){
        .snapshot = s,
        .order = order,
        .namespace = namespace,
        .at = alloc_order_job_from(order, from.namespace, from.name, true)};
    jobs_told_begin(&k->told, source, s, &from);
}

/* The name of the next that has places; false: none has. */
static bool next_placed(const struct known_jobs *k, struct job_name *ret_name)
{
    if (k->at == k->order->n_jobs)
        return false;
    const struct demand *d = alloc_job_demand(k->order, &k->order->jobs[k->at]);
    *ret_name = (struct job_name){d->namespace, d->job};
    return true;
}

bool known_jobs_next(struct known_jobs *k)
{
    struct job_name placed;
    bool has_places = next_placed(k, &placed);
    const struct job_name *told = jobs_told_peek(&k->told);
    if (!has_places && !told)
        return false;
    int order = !told ? -1 : !has_places ? 1 : job_name_compare(&placed, told);
    k->name = order <= 0 ? placed : *told;
    k->parts = (struct job_parts){0};
    k->completed = NULL;
    k->is_told = order >= 0;
    k->pod_states = k->told.next_states;
    if (k->namespace && strcmp(k->name.namespace, k->namespace) != 0)
        return false;
    if (order <= 0) {
        const struct alloc_job *j = &k->order->jobs[k->at++];
        k->parts.members = k->order->members + j->first;
        k->parts.n = j->n;
    }
    if (order >= 0)
        jobs_told_pass(&k->told);
    return true;
}

/* Those that neither run nor are over. */
static unsigned unsettled(void)
{
    unsigned states = 0;
    for (int s = 0; s < POD_STATES; s++)
        if (pod_state_is_unsettled((enum pod_state)s))
            states |= 1u << s;
    return states;
}

bool known_jobs_may_be(const struct known_jobs *k, enum job_state state)
{
    const unsigned failed = 1u << POD_STATE_FAILED;
    unsigned states = k->is_told ? k->pod_states : 0;
    switch (state) {
    case JOB_RUNNING:
        return states & 1u << POD_STATE_RUNNING;
    case JOB_SUCCEEDED:
        return states & (1u << POD_STATE_GONE | failed);
    case JOB_FAILED:
        return states & failed;
    default: /* places alone make no other */
        return !k->is_told || (states & unsettled());
    }
}

bool known_jobs_read(struct known_jobs *k)
{
    if (k->is_told && jobs_told_get(&k->told, &k->name, &k->told_of))
        k->parts.told = k->completed = &k->told_of;
    return k->parts.told || k->parts.n > 0;
}

enum job_state known_job_state(const struct job_told *told,
                               const struct alloc_job *places)
{
    if (told && told->state != JOB_PENDING)
        return told->state;
    uint32_t size = told ? told->size : 0, placed = 0;
    if (places) {
        size = places->size > size ? places->size : size;
        placed = places->n_pairs;
    }
    return size > 0 && placed == size ? JOB_PLANNED : JOB_PENDING;
}

enum job_state known_jobs_state(const struct known_jobs *k)
{
    return known_job_state(k->parts.told,
                           k->parts.n ? &k->order->jobs[k->at - 1] : NULL);
}

bool known_job_init(struct known_job *k, const struct pod_source *source,
                    struct snapshot *s, const struct job_name *name)
{
    size_t n;
    *k = (struct known_job){.snapshot = s};
    k->members = alloc_index_find_job(s->allocations, name->namespace,
                                      name->name, &n);
    k->parts = (struct job_parts){.members = k->members, .n = n};
    if (job_told_read(source, s, name, &k->told))
        k->parts.told = &k->told;
    if (n > 0 || k->parts.told)
        return true;
    known_job_fini(k);
    return false;
}

void known_job_fini(struct known_job *k)
{
    free(k->members);
    snapshot_unref(k->snapshot);
}
