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
    free(r->changes);
    for (size_t i = 0; i < r->n_keys; i++)
        free(r->keys[i]);
    free(r->keys);
}

/* Of a job: its pairs with a bound pod and those with a held place alone. */
struct standing {
    int32_t size, bound, held;
};
struct job_change {
    struct standing was, is;
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

/* What was told of it last; HISTORY_REASONS: nothing. */
static enum history_reason find_last(struct record *r, const char *job)
{
    enum history_reason last = HISTORY_REASONS;
    if (r->result == 0)
        r->result = history_book_last(r->book, HISTORY_JOB, job, UINT32_MAX,
                                      &last, r->err);
    return last;
}

/* After a start whoever leads holds places again that were held before. */
static bool is_told_held(struct record *r, const char *job)
{
    enum history_reason last = find_last(r, job);
    return last == HISTORY_PLANNED || last == HISTORY_HELD;
}

static void tell_held(struct record *r, const char *job, bool first,
                      const struct standing *is)
{
    char text[128];
    (void)snprintf(text, sizeof text,
                   "places for %" PRId32 " of %" PRId32 " pairs are held",
                   is->held + (first ? is->bound : 0), is->size);
    tell(r, job, first ? HISTORY_PLANNED : HISTORY_HELD, text);
}

static void tell_bound(struct record *r, const char *job, int32_t size)
{
    char text[128];
    (void)snprintf(text, sizeof text,
                   "all of its %" PRId32 " pairs have a place", size);
    tell(r, job, HISTORY_BOUND, text);
}

static void tell_ended(struct record *r, const char *job)
{
    tell(r, job, HISTORY_ENDED, "none of its pods has a place any more");
}

/* A job is planned whole and held, and then bound pair by pair.  A large one
 * gets its places in pieces, before anybody of it is bound. */
void record_jobs_held(struct record *r)
{
    r->changes = xcalloc(r->n_keys + 1, sizeof *r->changes);
    for (size_t i = 0; i < r->n_keys && r->result == 0; i++) {
        const char *job = r->keys[i];
        const struct allocation *a = strmap_get(&r->jobs, job);
        const struct standing was = count(r->before, &a->demand),
                              is = count(r->after, &a->demand);
        r->changes[i] = (struct job_change){was, is};
        bool first = was.bound == 0, more = is.held > was.held;
        if (is.bound > 0 && is.held > 0 && (first || more) &&
            (was.held || !is_told_held(r, job)))
            tell_held(r, job, first, &is);
    }
}

static void record_job(struct record *r, const char *job,
                       const struct job_change *c)
{
    const struct standing was = c->was, is = c->is;
    bool ends = is.bound == 0 && was.bound > 0;
    char text[128];
    if (is.size > 1 && is.bound == is.size && was.bound < is.size)
        tell_bound(r, job, is.size);
    /* of many a piece, and then the others */
    if (was.held > 0 && (is.held < was.held || ends) && is.bound <= was.bound &&
        is_told_held(r, job)) {
        (void)snprintf(text, sizeof text,
                       "the places held for %" PRId32 " pairs were given back",
                       was.held);
        tell(r, job, HISTORY_RELEASED, text);
    }
    if (ends)
        tell_ended(r, job);
}

void record_jobs(struct record *r)
{
    for (size_t i = 0; i < r->n_keys && r->result == 0; i++)
        record_job(r, r->keys[i], &r->changes[i]);
}

/* --- a start -------------------------------------------------------------- */

/* A pair that had a place, or a job whose places were held (pair -1). */
struct pair_then {
    char *job;
    int32_t pair;
};
struct jobs_then {
    struct pair_then *pairs;
    size_t n, cap;
};

static void add_then(struct jobs_then *t, const char *job, int32_t pair)
{
    t->pairs = xgrow(t->pairs, t->n, &t->cap, sizeof *t->pairs);
    t->pairs[t->n++] = (struct pair_then){xstrdup(job), pair};
}

static void on_place(void *ctx, const struct history_place *p)
{
    if (*p->job)
        add_then(ctx, p->job, p->pair);
}

static void on_held(void *ctx, const char *job)
{
    add_then(ctx, job, -1);
}

static int compare_then(const void *a, const void *b)
{
    const struct pair_then *x = a, *y = b;
    int order = strcmp(x->job, y->job);
    return order ? order : x->pair < y->pair ? -1 : x->pair > y->pair;
}

struct jobs_then *record_jobs_then(struct record *r)
{
    struct jobs_then *t = xcalloc(1, sizeof *t);
    history_book_each_place(r->book, on_place, t);
    if (r->result == 0)
        r->result = history_book_each_held(r->book, on_held, t, r->err);
    if (t->n)
        qsort(t->pairs, t->n, sizeof *t->pairs, compare_then);
    return t;
}

void record_jobs_then_free(struct jobs_then *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->pairs[i].job);
    free(t->pairs);
    free(t);
}

/* Of the job of the pair at `*at`, which is moved behind them all. */
static int32_t count_then(const struct jobs_then *t, size_t *at)
{
    const char *job = t->pairs[*at].job;
    int32_t n = 0, last = -1;
    for (; *at < t->n && strcmp(t->pairs[*at].job, job) == 0; ++*at) {
        n += t->pairs[*at].pair != last;
        last = t->pairs[*at].pair;
    }
    return n;
}

static struct standing count_now(struct record *r, const char *job)
{
    const struct allocation *a = strmap_get(&r->jobs, job);
    return a ? count(r->after, &a->demand) : (struct standing){0};
}

void record_job_held_since(struct record *r, const char *job, int32_t bound)
{
    const struct standing is = count_now(r, job);
    if (is.bound && is.held && !is_told_held(r, job))
        tell_held(r, job, bound == 0, &is);
}

void record_job_since(struct record *r, const char *job, int32_t bound)
{
    const struct standing is = count_now(r, job);
    bool there = is.bound + is.held > 0;
    if (is.size > 1 && is.bound == is.size && bound < is.size)
        tell_bound(r, job, is.size);
    if (is.bound == 0 && bound)
        tell_ended(r, job);
    else if (!there && is_told_held(r, job))
        tell(r, job, HISTORY_RELEASED,
             "the places held for it were given back before this start, or "
             "while nothing was recorded");
}

void record_jobs_since(struct record *r, const struct jobs_then *t,
                       record_job_since_f *record)
{
    struct strmap then = {0};
    for (size_t at = 0; at < t->n;) {
        char *job = t->pairs[at].job;
        (void)strmap_put(&then, job, job);
        record(r, job, count_then(t, &at));
    }
    for (size_t i = 0; i < r->n_keys; i++)
        if (!strmap_get(&then, r->keys[i]))
            record(r, r->keys[i], 0);
    strmap_fini(&then);
}
