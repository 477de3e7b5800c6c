#include "extender/jobs/job_told.h"

#include <stdlib.h>
#include <string.h>

#include "extender/jobs/ended_jobs.h"
#include "extender/state/scope.h"
#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- the pods of jobs ------------------------------------------------------ */

/* Pods with texts of their own. */
struct gathered {
    const struct scope *scope;
    const char *namespace, *job; /* NULL: all */
    struct arena *texts;
    struct job_pod *list;
    size_t n, cap;
};

static const char *keep(struct arena *texts, const char *text)
{
    return *text ? arena_strndup(texts, text, strlen(text)) : "";
}

static struct job_name name_of(const struct job_pod *p)
{
    return (struct job_name){p->namespace, p->job};
}

static void gather(void *arg, const struct job_pod *pod)
{
    struct gathered *g = arg;
    if (!*pod->job || pod->role == ROLE_SERVICE ||
        !scope_sees(g->scope, pod->namespace) ||
        (g->namespace && strcmp(g->namespace, pod->namespace) != 0) ||
        (g->job && strcmp(g->job, pod->job) != 0))
        return;
    g->list = xgrow(g->list, g->n, &g->cap, sizeof *g->list);
    struct job_pod *p = &g->list[g->n++];
    *p = *pod;
    p->namespace = keep(g->texts, pod->namespace);
    p->name = keep(g->texts, pod->name);
    p->job = keep(g->texts, pod->job);
    p->reason = keep(g->texts, pod->reason);
    p->message = keep(g->texts, pod->message);
    p->uid = "";
}

static int compare_jobs(const struct job_pod *a, const struct job_pod *b)
{
    const struct job_name x = name_of(a), y = name_of(b);
    return job_name_compare(&x, &y);
}

static int compare_pods(const void *pa, const void *pb)
{
    const struct job_pod *a = pa, *b = pb;
    int order = compare_jobs(a, b);
    if (order == 0)
        order = (a->pair > b->pair) - (a->pair < b->pair);
    if (order == 0)
        order = (a->role != ROLE_HOST) - (b->role != ROLE_HOST);
    return order ? order : strcmp(a->name, b->name);
}

/* --- one job --------------------------------------------------------------- */

/* What is counted of its pods beside what is told. */
struct count {
    struct job_told *told;
    bool over, failed, runs;
    bool start_unknown, end_unknown;
    unsigned worth; /* of the reason */
};

static bool is_over(const struct job_pod *p)
{
    return p->state == POD_STATE_GONE || p->state == POD_STATE_FAILED;
}

/* Does its reason only follow from another pod's? */
static bool follows(const struct job_pod *p)
{
    static const char *const words[] = {"JobFailed", "JobNotPlaced",
                                        "JobTornDown", "PairIncomplete",
                                        "PairNotPlaced"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(p->reason, words[i]) == 0)
            return true;
    return false;
}

/* How much it tells of what the job waits for or ended with. */
static unsigned worth(const struct job_pod *p)
{
    if (p->state == POD_STATE_FAILED)
        return follows(p) ? 5 : 6;
    if (p->state == POD_STATE_PENDING)
        return p->told && !*p->reason ? 1 : follows(p) ? 3 : 4;
    return *p->reason && strcmp(p->reason, "WaitsForPair") != 0 && !is_over(p)
               ? 2
               : 0;
}

static void count_times(struct count *c, const struct job_pod *p)
{
    struct job_told *t = c->told;
    bool began = p->state == POD_STATE_RUNNING || is_over(p);
    if (p->submitted_s && (!t->submitted_s || p->submitted_s < t->submitted_s))
        t->submitted_s = p->submitted_s;
    if (p->started_s && (!t->started_s || p->started_s < t->started_s))
        t->started_s = p->started_s;
    if (p->ended_s > t->ended_s)
        t->ended_s = p->ended_s;
    c->start_unknown |= began && !p->started_s;
    c->end_unknown |= is_over(p) && !p->ended_s;
}

static void count_reason(struct count *c, const struct job_pod *p)
{
    struct job_told *t = c->told;
    unsigned w = worth(p);
    if (w <= c->worth)
        return;
    c->worth = w;
    job_reason(p->reason, p->message, t->reason);
    (void)snprintf(t->pod, sizeof t->pod, "%s", p->name);
    t->asks = p->state == POD_STATE_PENDING && !p->told;
    t->gated = p->gated;
}

/* When the newest host pod of a pair was made, where it is not the first one; 0
 * else.  A Job's controller in a cluster makes those anew that failed: what was
 * made before has no say any more. */
static int64_t remade_s(const struct job_pod *pods, size_t n)
{
    size_t hosts = 0;
    int64_t newest_s = 0;
    for (size_t i = 0; i < n; i++) {
        if (pods[i].role != ROLE_HOST)
            continue;
        hosts++;
        newest_s = pods[i].submitted_s > newest_s ? pods[i].submitted_s
                                                  : newest_s;
    }
    return hosts > 1 ? newest_s : 0;
}

static void count_pair(struct count *c, const struct job_pod *pods, size_t n)
{
    struct job_told *t = c->told;
    size_t hosts = 0, over = 0, hosts_over = 0, running = 0, ready = 0;
    int64_t since_s = remade_s(pods, n);
    for (size_t i = 0; i < n; i++) {
        const struct job_pod *p = &pods[i];
        uint32_t size = (uint32_t)(p->size > p->pair ? p->size : p->pair + 1);
        t->size = size > t->size ? size : t->size;
        hosts += p->role == ROLE_HOST;
        hosts_over += p->role == ROLE_HOST && is_over(p);
        over += is_over(p);
        running += p->state == POD_STATE_RUNNING;
        ready += p->state == POD_STATE_RUNNING && p->ready;
        count_times(c, p);
        if (p->state == POD_STATE_FAILED && p->submitted_s < since_s)
            continue;
        c->failed |= p->state == POD_STATE_FAILED;
        count_reason(c, p);
    }
    bool is_pair_over = hosts ? hosts_over == hosts : over == n;
    c->over &= is_pair_over;
    c->runs |= !is_pair_over && running > 0;
    t->running += running > 0 && running + over == n && !is_pair_over;
    t->ready += ready > 0 && ready + over == n && !is_pair_over;
}

static void count_job(struct job_told *ret_told, const struct job_pod *pods,
                      size_t n)
{
    struct count c = {.told = ret_told, .over = true};
    *ret_told = (struct job_told){0};
    (void)snprintf(ret_told->namespace, sizeof ret_told->namespace, "%s",
                   pods->namespace);
    (void)snprintf(ret_told->name, sizeof ret_told->name, "%s", pods->job);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && pods[end].pair == pods[i].pair; end++)
            ;
        count_pair(&c, pods + i, end - i);
    }
    ret_told->state = c.over   ? (c.failed ? JOB_FAILED : JOB_SUCCEEDED)
                      : c.runs ? JOB_RUNNING
                               : JOB_PENDING;
    if (c.start_unknown)
        ret_told->started_s = 0;
    if (!c.over || c.end_unknown)
        ret_told->ended_s = 0;
    if (ret_told->state == JOB_SUCCEEDED)
        ret_told->reason[0] = '\0';
    ret_told->asks &= ret_told->state == JOB_PENDING;
}

/* --- all of them ----------------------------------------------------------- */

static void add(struct jobs_told *t, const struct job_told *job)
{
    t->list = xgrow(t->list, t->n, &t->cap, sizeof *t->list);
    t->list[t->n++] = *job;
}

static struct job_name told_name(const struct job_told *job)
{
    return (struct job_name){job->namespace, job->name};
}

static int compare_told(const void *pa, const void *pb)
{
    const struct job_name a = told_name(pa), b = told_name(pb);
    return job_name_compare(&a, &b);
}

/* Those that are gone join those that are there. */
struct joining {
    const struct scope *scope;
    struct jobs_told *told;
    size_t n; /* of those that are there, in order */
    const char *namespace, *job;
};

static void join_ended(void *arg, const struct job_told *job)
{
    struct joining *j = arg;
    const struct job_told *list = j->told->list;
    if (!scope_sees(j->scope, job->namespace) ||
        (j->namespace && strcmp(j->namespace, job->namespace) != 0) ||
        (j->job && strcmp(j->job, job->name) != 0))
        return;
    size_t at = lower_bound(j->n, i, compare_told(&list[i], job) < 0);
    if (at == j->n || compare_told(&list[at], job) != 0)
        add(j->told, job);
}

void jobs_told_read(const struct pod_source *source, const struct snapshot *s,
                    const char *namespace, const char *job,
                    struct jobs_told *ret_told)
{
    const struct scope *scope = s ? s->scope : NULL; /* a test has none */
    struct arena texts = {NULL};
    struct gathered g = {
        .scope = scope, .namespace = namespace, .job = job, .texts = &texts};
    struct jobs_told t = {0};
    struct job_told one;
    const struct pods_asked asked = {.namespace = namespace,
                                     .job = namespace ? job : NULL};
    pod_source_tell(source, each_pod, s, &asked, gather, &g);
    pod_source_tell(source, each_asking, s, gather, &g);
    if (g.n)
        qsort(g.list, g.n, sizeof *g.list, compare_pods);
    for (size_t i = 0, end; i < g.n; i = end) {
        for (end = i + 1; end < g.n; end++)
            if (compare_jobs(&g.list[i], &g.list[end]) != 0)
                break;
        count_job(&one, g.list + i, end - i);
        add(&t, &one);
    }
    free(g.list);
    arena_fini(&texts);
    struct ended_jobs *ended = pod_source_ask(source, ended);
    struct joining j = {scope, &t, t.n, namespace, job};
    if (ended)
        ended_jobs_each(ended, clock_wall_s(), join_ended, &j);
    if (t.n)
        qsort(t.list, t.n, sizeof *t.list, compare_told);
    *ret_told = t;
}

void jobs_told_fini(struct jobs_told *t)
{
    free(t->list);
    *t = (struct jobs_told){0};
}
