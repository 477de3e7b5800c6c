#include "extender/state/alloc_order.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

typedef const struct allocation *item;
typedef int order_f(const struct allocation *a, const struct allocation *b);

/* --- orders --------------------------------------------------------------- */

static int compare_job(const struct demand *d, const char *namespace,
                       const char *job)
{
    int order = strcmp(d->namespace, namespace);
    return order ? order : strcmp(d->job, job);
}

static bool is_same_job(const struct allocation *a, const struct allocation *b)
{
    return compare_job(&a->demand, b->demand.namespace, b->demand.job) == 0;
}

static int compare_member(const struct allocation *a,
                          const struct allocation *b)
{
    int order = compare_job(&a->demand, b->demand.namespace, b->demand.job);
    if (order == 0)
        order = (a->demand.pair > b->demand.pair) -
                (a->demand.pair < b->demand.pair);
    if (order == 0)
        order = (a->number > b->number) - (a->number < b->number);
    return order ? order : allocation_compare_pod(a, b);
}

static int sort_pods(const void *a, const void *b)
{
    return allocation_compare_pod(*(const item *)a, *(const item *)b);
}

static int sort_members(const void *a, const void *b)
{
    return compare_member(*(const item *)a, *(const item *)b);
}

static bool is_member(const struct allocation *a)
{
    return a->demand.job[0] && a->demand.role != ROLE_SERVICE;
}

/* --- what is different ------------------------------------------------------ */

struct changes {
    item *gone, *come;
    size_t n_gone, n_come, cap_gone, cap_come;
};

static void note(void *ctx, const struct allocation *before,
                 const struct allocation *after)
{
    struct changes *c = ctx;
    if (before) {
        c->gone = xgrow(c->gone, c->n_gone, &c->cap_gone, sizeof *c->gone);
        c->gone[c->n_gone++] = before;
    }
    if (after) {
        c->come = xgrow(c->come, c->n_come, &c->cap_come, sizeof *c->come);
        c->come[c->n_come++] = after;
    }
}

static void sort_changes(struct changes *c,
                         int (*order)(const void *, const void *))
{
    if (c->n_gone)
        qsort(c->gone, c->n_gone, sizeof *c->gone, order);
    if (c->n_come)
        qsort(c->come, c->n_come, sizeof *c->come, order);
}

static size_t keep_members(item *list, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (is_member(list[i]))
            list[kept++] = list[i];
    return kept;
}

/* The list without those that are gone, and with those that have come. */
static item *merge(const item *old, size_t n, const struct changes *c,
                   order_f *order, size_t *ret_n)
{
    item *list = xmalloc((n + c->n_come + 1) * sizeof *list);
    size_t at = 0, to = 0, gone = 0, come = 0;
    while (gone < c->n_gone || come < c->n_come) {
        bool goes = come == c->n_come ||
                    (gone < c->n_gone &&
                     order(c->gone[gone], c->come[come]) <= 0);
        item x = goes ? c->gone[gone] : c->come[come];
        size_t run = lower_bound(n - at, i, order(old[at + i], x) < 0);
        memcpy(list + to, old + at, run * sizeof *list);
        to += run;
        at += run;
        if (goes) {
            gone++;
            at++;
        } else {
            list[to++] = c->come[come++];
        }
    }
    memcpy(list + to, old + at, (n - at) * sizeof *list);
    *ret_n = to + n - at;
    return list;
}

/* --- jobs ------------------------------------------------------------------- */

static size_t job_end(const struct alloc_order *o, size_t first)
{
    return lower_bound_near(first, o->n_members, i,
                            is_same_job(o->members[first], o->members[i]));
}

static void count_pairs(const struct alloc_order *o, struct alloc_job *j)
{
    int32_t last = -1;
    for (size_t i = j->first; i < j->first + j->n; i++) {
        const struct demand *d = &o->members[i]->demand;
        uint32_t size = (uint32_t)(d->size > d->pair ? d->size : d->pair + 1);
        j->size = size > j->size ? size : j->size;
        j->n_pairs += d->pair != last;
        last = d->pair;
    }
}

/* The next job, which begins at `first`; where the one after does. */
static size_t add_job(struct alloc_order *o, size_t *cap, size_t first)
{
    o->jobs = xgrow(o->jobs, o->n_jobs, cap, sizeof *o->jobs);
    struct alloc_job *j = &o->jobs[o->n_jobs++];
    *j = (struct alloc_job){.first = first, .n = job_end(o, first) - first};
    count_pairs(o, j);
    return first + j->n;
}

/* Those of the last order from `*from` to `end` are as they were, a bit further
 * on or back; where the next one begins. */
static size_t keep_jobs(struct alloc_order *o, size_t *cap, size_t at,
                        const struct alloc_order *last, size_t *from,
                        size_t end)
{
    for (; *from < end; ++*from) {
        o->jobs = xgrow(o->jobs, o->n_jobs, cap, sizeof *o->jobs);
        o->jobs[o->n_jobs] = last->jobs[*from];
        o->jobs[o->n_jobs].first = at;
        at += o->jobs[o->n_jobs++].n;
    }
    return at;
}

/* One that something has happened to, by its names; NULL: there is no more. */
static const struct allocation *next_touched(const struct changes *c,
                                             size_t *gone, size_t *come)
{
    item a = *gone < c->n_gone ? c->gone[*gone] : NULL;
    item b = *come < c->n_come ? c->come[*come] : NULL;
    item first = !a ? b : !b || compare_member(a, b) < 0 ? a : b;
    while (*gone < c->n_gone && is_same_job(first, c->gone[*gone]))
        ++*gone;
    while (*come < c->n_come && is_same_job(first, c->come[*come]))
        ++*come;
    return first;
}

static void find_jobs(struct alloc_order *o, const struct alloc_order *last,
                      const struct changes *c)
{
    size_t cap = 0, gone = 0, come = 0, old = 0, at = 0;
    for (item x; last && (x = next_touched(c, &gone, &come));) {
        const char *namespace = x->demand.namespace, *job = x->demand.job;
        size_t end = alloc_order_job_from(last, namespace, job, false);
        at = keep_jobs(o, &cap, at, last, &old, end);
        old = alloc_order_job_from(last, namespace, job, true);
        if (at < o->n_members && is_same_job(o->members[at], x))
            at = add_job(o, &cap, at);
    }
    if (last)
        at = keep_jobs(o, &cap, at, last, &old, last->n_jobs);
    while (at < o->n_members)
        at = add_job(o, &cap, at);
}

/* --- all of it ---------------------------------------------------------------- */

static void sort_all(struct alloc_order *o)
{
    o->pods = alloc_index_list(o->of, &o->n_pods);
    o->members = xmalloc((o->n_pods + 1) * sizeof(*o->members));
    memcpy(o->members, o->pods, o->n_pods * sizeof(*o->members));
    o->n_members = keep_members(o->members, o->n_pods);
    if (o->n_members)
        qsort(o->members, o->n_members, sizeof(*o->members), sort_members);
}

struct alloc_order *alloc_order_create(struct alloc_index *x,
                                       const struct alloc_order *last)
{
    struct changes c = {0};
    struct alloc_order *o = xcalloc(1, sizeof *o);
    atomic_init(&o->refs, 1);
    o->of = alloc_index_ref(x);
    if (last) {
        alloc_index_diff(last->of, x, note, &c);
        sort_changes(&c, sort_pods);
        o->pods = merge(last->pods, last->n_pods, &c, allocation_compare_pod,
                        &o->n_pods);
        c.n_gone = keep_members(c.gone, c.n_gone);
        c.n_come = keep_members(c.come, c.n_come);
        sort_changes(&c, sort_members);
        o->members = merge(last->members, last->n_members, &c, compare_member,
                           &o->n_members);
    } else {
        sort_all(o);
    }
    find_jobs(o, last, &c);
    free(c.gone);
    free(c.come);
    return o;
}

DEFINE_REF(alloc_order_ref, struct alloc_order)

void alloc_order_unref(struct alloc_order *o)
{
    if (!o || !refs_drop(&o->refs))
        return;
    alloc_index_unref(o->of);
    free(o->pods);
    free(o->members);
    free(o->jobs);
    free(o);
}

size_t alloc_order_job_from(const struct alloc_order *o, const char *namespace,
                            const char *job, bool past)
{
    return lower_bound(
        o->n_jobs, i,
        compare_job(alloc_job_demand(o, &o->jobs[i]), namespace, job) < past);
}
