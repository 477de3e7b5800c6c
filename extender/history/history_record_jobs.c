/* Jobs whose pods and held places have changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history_record_private.h"

void record_job_key(const struct demand *d,
                    char ret_key[HISTORY_OBJECT_MAX + 1])
{
    ret_key[0] = '\0';
    if (d->job[0] && d->role != ROLE_SERVICE)
        (void)snprintf(ret_key, HISTORY_OBJECT_MAX + 1, "%s/%s", d->namespace,
                       d->job);
}

void record_job_touched(struct record *r, const struct allocation *a)
{
    char key[HISTORY_OBJECT_MAX + 1];
    record_job_key(&a->demand, key);
    if (!*key || strmap_get(&r->jobs, key))
        return;
    r->keys = xgrow(r->keys, r->n_keys, &r->keys_cap, sizeof *r->keys);
    r->keys[r->n_keys] = xstrdup(key);
    (void)strmap_put(&r->jobs, r->keys[r->n_keys++], (void *)a);
}

void record_jobs_fini(struct record *r)
{
    strmap_fini(&r->jobs);
    for (size_t i = 0; i < r->n_keys; i++)
        free(r->keys[i]);
    free(r->keys);
}

/* Of a job: its pairs with a bound pod and those with a held place alone. */
struct standing {
    int32_t size, bound, held;
};

static struct standing count(const struct snapshot *s, const struct demand *d)
{
    struct standing x = {0};
    size_t n;
    cleanup_free const struct allocation **list =
        alloc_index_find_job(s->allocations, d->namespace, d->job, &n);
    for (size_t i = 0, end; i < n; i = end) {
        bool bound = false;
        for (end = i; end < n && list[end]->demand.pair == list[i]->demand.pair;
             end++) {
            bound |= !list[end]->held;
            x.size = list[end]->demand.size > x.size ? list[end]->demand.size
                                                     : x.size;
        }
        x.bound += bound;
        x.held += !bound;
    }
    return x;
}

static void tell(struct record *r, const char *job, enum history_reason reason,
                 const char *text)
{
    record_event(r, &(struct history_event){.kind = HISTORY_JOB,
                                            .reason = reason,
                                            .object = job,
                                            .job = job,
                                            .pair = -1,
                                            .message = text});
}

/* A job is planned whole and held, and then bound pair by pair. */
static void record_job(struct record *r, const char *job,
                       const struct demand *d)
{
    struct standing was = count(r->before, d), is = count(r->after, d);
    char text[128];
    if (is.held > was.held) {
        bool first = was.bound + was.held == 0;
        (void)snprintf(text, sizeof text,
                       "places for %" PRId32 " of %" PRId32 " pairs are held",
                       is.held + (first ? is.bound : 0), is.size);
        tell(r, job, first ? HISTORY_PLANNED : HISTORY_HELD, text);
    }
    if (is.size > 1 && is.bound == is.size && was.bound < is.size) {
        (void)snprintf(text, sizeof text,
                       "all of its %" PRId32 " pairs have a "
                       "place",
                       is.size);
        tell(r, job, HISTORY_BOUND, text);
    }
    if (is.held == 0 && was.held > 0 && is.bound <= was.bound) {
        (void)snprintf(text, sizeof text,
                       "the places held for %" PRId32 " pairs were given back",
                       was.held);
        tell(r, job, HISTORY_RELEASED, text);
    }
    if (is.bound + is.held == 0 && was.bound > 0)
        tell(r, job, HISTORY_ENDED, "none of its pods has a place any more");
}

void record_jobs(struct record *r)
{
    for (size_t i = 0; i < r->n_keys && r->result == 0; i++) {
        const struct allocation *a = strmap_get(&r->jobs, r->keys[i]);
        record_job(r, r->keys[i], &a->demand);
    }
}
