#include "extender/jobs/ended_jobs.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/strmap.h"

enum { KEY_MAX = DEMAND_NAMESPACE_MAX + DEMAND_NAME_MAX + 2 };

struct entry {
    char key[KEY_MAX];
    struct job_told told;
    bool has_host, failed, cancelled; /* cancelled: deleted before its end */
    int64_t ended_s, gone_s;          /* ended_s: the latest of its pods */
};

struct ended_jobs {
    pthread_mutex_t lock;
    struct strmap jobs; /* struct entry by key */
};

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
    strmap_fini_with(&e->jobs, free);
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}

/* With the lock. */
static void drop_oldest(struct ended_jobs *e)
{
    struct entry *oldest = NULL, *x;
    size_t pos = 0;
    while ((x = strmap_next(&e->jobs, &pos)))
        if (!oldest || x->gone_s < oldest->gone_s)
            oldest = x;
    if (oldest)
        free(strmap_remove(&e->jobs, oldest->key));
}

/* With the lock: the job of the pod, new when that is of a later one. */
static struct entry *entry_of(struct ended_jobs *e, const struct job_pod *pod)
{
    char key[KEY_MAX];
    (void)snprintf(key, sizeof key, "%s/%s", pod->namespace, pod->job);
    struct entry *x = strmap_get(&e->jobs, key);
    if (x && pod->submitted_s > x->gone_s) {
        free(strmap_remove(&e->jobs, key));
        x = NULL;
    }
    if (x)
        return x;
    if (e->jobs.n >= ENDED_JOBS_MAX)
        drop_oldest(e);
    x = xcalloc(1, sizeof *x);
    memcpy(x->key, key, sizeof key);
    (void)snprintf(x->told.namespace, sizeof x->told.namespace, "%s",
                   pod->namespace);
    (void)snprintf(x->told.name, sizeof x->told.name, "%s", pod->job);
    x->told.gone = true;
    (void)strmap_put(&e->jobs, x->key, x);
    return x;
}

/* The earlier of two times, where 0 is not known. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a && (!b || a < b) ? a : b;
}

static void count_pod(struct entry *x, const struct job_pod *pod)
{
    struct job_told *t = &x->told;
    uint32_t size = (uint32_t)(pod->size > pod->pair ? pod->size
                                                     : pod->pair + 1);
    bool host = pod->role == ROLE_HOST, failed = pod->state == POD_STATE_FAILED;
    bool over = failed || pod->state == POD_STATE_GONE;
    t->size = size > t->size ? size : t->size;
    t->submitted_s = earlier(pod->submitted_s, t->submitted_s);
    t->started_s = earlier(pod->started_s, t->started_s);
    if (pod->ended_s > x->ended_s)
        x->ended_s = pod->ended_s;
    if (failed && !x->failed)
        job_reason(pod->reason, pod->message, t->reason);
    if (host && !x->has_host)
        x->cancelled = false; /* xPU pods end after it, however it ends */
    if (host || !x->has_host)
        x->cancelled |= !over;
    x->has_host |= host;
    x->failed |= failed;
    t->state = x->failed || x->cancelled ? JOB_FAILED : JOB_SUCCEEDED;
    if (x->cancelled && !x->failed)
        job_reason("Deleted", "before it had ended", t->reason);
    else if (!x->failed)
        t->reason[0] = '\0';
}

void ended_jobs_add(struct ended_jobs *e, const struct job_pod *pod,
                    int64_t now_s)
{
    if (!*pod->job || pod->role == ROLE_SERVICE)
        return;
    hold_lock(&e->lock);
    struct entry *x = entry_of(e, pod);
    x->gone_s = now_s;
    count_pod(x, pod);
    x->told.ended_s = x->cancelled ? now_s : x->ended_s;
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
