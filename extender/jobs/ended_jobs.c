#include "extender/jobs/ended_jobs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"

enum {
    KEY_MAX = DEMAND_NAMESPACE_MAX + DEMAND_NAME_MAX + 2,
    NO_PAIR = -1,
};

/* What is left of a pair.  A Job's controller in a cluster makes host pods anew
 * that failed; what was made before the last one has no say then, and who goes
 * first is not said. */
struct pair {
    int32_t index;
    bool has_host, remade;    /* remade: it had more than one */
    bool failed;              /* one of its pods has */
    bool cut, bare_cut;       /* its last host pod, or an xPU pod, was deleted
                              * before its end */
    int64_t host_s, failed_s; /* when the last one was made */
};

struct entry {
    char key[KEY_MAX];
    struct job_told told;
    struct pair *pairs; /* by index */
    size_t n_pairs, cap_pairs;
    size_t n_hosts, n_failed, n_cut, n_bare_cut; /* of the pairs */
    int32_t reason_of;       /* a pair that failed, or NO_PAIR */
    int64_t ended_s, gone_s; /* ended_s: the latest of its pods */
};

struct ended_jobs {
    pthread_mutex_t lock;
    struct strmap jobs; /* struct entry by key */
    size_t n_pairs;     /* of all */
};

static void entry_free(void *entry)
{
    struct entry *x = entry;
    free(x->pairs);
    free(x);
}

struct ended_jobs *ended_jobs_create(void)
{
    struct ended_jobs *e = xcalloc(1, sizeof *e);
    (void)pthread_mutex_init(&e->lock, NULL); /* cannot fail on Linux */
    return e;
}

void ended_jobs_destroy(struct ended_jobs *e)
{
    if (!e)
        return;
    strmap_fini_with(&e->jobs, entry_free);
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}

/* --- all of them; with the lock ------------------------------------------ */

static void drop(struct ended_jobs *e, struct entry *x)
{
    e->n_pairs -= x->n_pairs;
    entry_free(strmap_remove(&e->jobs, x->key));
}

static void drop_oldest(struct ended_jobs *e, const struct entry *but)
{
    struct entry *oldest = NULL, *x;
    size_t pos = 0;
    while ((x = strmap_next(&e->jobs, &pos)))
        if (x != but && (!oldest || x->gone_s < oldest->gone_s))
            oldest = x;
    if (oldest)
        drop(e, oldest);
}

/* The job of the pod, new when that is of a later one. */
static struct entry *entry_of(struct ended_jobs *e, const struct job_pod *pod)
{
    char key[KEY_MAX];
    (void)snprintf(key, sizeof key, "%s/%s", pod->namespace, pod->job);
    struct entry *x = strmap_get(&e->jobs, key);
    if (x && pod->submitted_s > x->gone_s) {
        drop(e, x);
        x = NULL;
    }
    if (x)
        return x;
    if (e->jobs.n >= ENDED_JOBS_MAX)
        drop_oldest(e, NULL);
    x = xcalloc(1, sizeof *x);
    x->reason_of = NO_PAIR;
    memcpy(x->key, key, sizeof key);
    (void)snprintf(x->told.namespace, sizeof x->told.namespace, "%s",
                   pod->namespace);
    (void)snprintf(x->told.name, sizeof x->told.name, "%s", pod->job);
    x->told.gone = true;
    (void)strmap_put(&e->jobs, x->key, x);
    return x;
}

static struct pair *pair_of(struct ended_jobs *e, struct entry *x,
                            int32_t index)
{
    size_t at = lower_bound(x->n_pairs, i, x->pairs[i].index < index);
    if (at < x->n_pairs && x->pairs[at].index == index)
        return &x->pairs[at];
    if (e->n_pairs >= ENDED_PAIRS_MAX)
        drop_oldest(e, x);
    x->pairs = xgrow(x->pairs, x->n_pairs, &x->cap_pairs, sizeof *x->pairs);
    memmove(&x->pairs[at + 1], &x->pairs[at],
            (x->n_pairs - at) * sizeof *x->pairs);
    x->pairs[at] = (struct pair){.index = index};
    x->n_pairs++;
    e->n_pairs++;
    return &x->pairs[at];
}

/* --- one job ------------------------------------------------------------- */

static bool has_failed(const struct pair *p)
{
    return p->failed && !(p->remade && p->failed_s < p->host_s);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_to_pair(struct pair *p, const struct job_pod *pod)
{
    bool failed = pod->state == POD_STATE_FAILED;
    bool over = failed || pod->state == POD_STATE_GONE;
    if (failed) {
        p->failed_s = later(p->failed_s, pod->submitted_s);
        p->failed = true;
    }
    if (pod->role != ROLE_HOST) {
        p->bare_cut |= !over;
        return;
    }
    p->remade = p->has_host;
    p->has_host = true;
    if (pod->submitted_s >= p->host_s)
        p->cut = !over;
    p->host_s = later(p->host_s, pod->submitted_s);
}

/* The first that is told of the last try of a pair that failed. */
static void add_reason(struct entry *x, const struct pair *p,
                       const struct job_pod *pod, int64_t failed_s)
{
    bool ours = x->reason_of == p->index;
    if (!has_failed(p) && ours) {
        x->reason_of = NO_PAIR;
        x->told.reason[0] = '\0';
    }
    if (pod->state != POD_STATE_FAILED || !has_failed(p) ||
        (ours ? pod->submitted_s <= failed_s : x->reason_of != NO_PAIR))
        return;
    x->reason_of = p->index;
    job_reason(pod->reason, pod->message, x->told.reason);
}

/* The earlier of two times, where 0 is not known. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a && (!b || a < b) ? a : b;
}

static void count_pod(struct ended_jobs *e, struct entry *x,
                      const struct job_pod *pod)
{
    struct job_told *t = &x->told;
    uint32_t size = (uint32_t)(pod->size > pod->pair ? pod->size
                                                     : pod->pair + 1);
    struct pair *p = pair_of(e, x, pod->pair), old = *p;
    t->size = size > t->size ? size : t->size;
    t->submitted_s = earlier(pod->submitted_s, t->submitted_s);
    t->started_s = earlier(pod->started_s, t->started_s);
    x->ended_s = later(x->ended_s, pod->ended_s);
    add_to_pair(p, pod);
    add_reason(x, p, pod, old.failed_s);
    x->n_hosts += (size_t)p->has_host - old.has_host;
    x->n_failed += (size_t)has_failed(p) - has_failed(&old);
    x->n_cut += (size_t)p->cut - old.cut;
    x->n_bare_cut += (size_t)p->bare_cut - old.bare_cut;
}

/* Deleted before its end; xPU pods end after their host pods, however those
 * do. */
static bool is_cancelled(const struct entry *x)
{
    return (x->n_hosts ? x->n_cut : x->n_bare_cut) > 0;
}

void ended_jobs_add(struct ended_jobs *e, const struct job_pod *pod,
                    int64_t now_s)
{
    if (!*pod->job || pod->role == ROLE_SERVICE)
        return;
    hold_lock(&e->lock);
    struct entry *x = entry_of(e, pod);
    x->gone_s = now_s;
    count_pod(e, x, pod);
    bool cancelled = is_cancelled(x);
    x->told.state = x->n_failed || cancelled ? JOB_FAILED : JOB_SUCCEEDED;
    x->told.ended_s = cancelled ? now_s : x->ended_s;
    if (x->n_failed == 0)
        job_reason(cancelled ? "Deleted" : "",
                   cancelled ? "before it had ended" : "", x->told.reason);
}

void ended_jobs_each(struct ended_jobs *e, int64_t now_s, ended_jobs_f *visit,
                     void *arg)
{
    struct entry *x;
    size_t pos = 0;
    hold_lock(&e->lock);
    while ((x = strmap_next(&e->jobs, &pos)))
        if (now_s - x->gone_s < ENDED_JOBS_S)
            visit(arg, &x->told);
}
