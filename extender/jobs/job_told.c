#include "extender/jobs/job_told.h"

#include <stdlib.h>
#include <string.h>

#include "extender/jobs/ended_jobs.h"
#include "extender/state/scope.h"
#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum { NAMES = 256 }; /* that are asked for at once */

/* --- the pods of jobs ------------------------------------------------------ */

/* Pods with texts of their own. */
struct gathered {
    const struct scope *scope;
    const struct job_name *only; /* NULL: all */
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

static bool is_asked(const struct job_name *only, const struct job_name *job)
{
    return !only || job_name_compare(only, job) == 0;
}

static void add_pod(struct gathered *g, const struct job_pod *pod,
                    const struct job_name *job)
{
    g->list = xgrow(g->list, g->n, &g->cap, sizeof *g->list);
    struct job_pod *p = &g->list[g->n++];
    *p = *pod;
    p->namespace = job->namespace;
    p->job = job->name;
    p->name = keep(g->texts, pod->name);
    p->reason = keep(g->texts, pod->reason);
    p->message = keep(g->texts, pod->message);
    p->uid = "";
}

static void gather(void *arg, const struct job_pod *pod)
{
    struct gathered *g = arg;
    const struct job_name job = name_of(pod);
    if (!*pod->job || pod->role == ROLE_SERVICE || !is_asked(g->only, &job) ||
        !scope_sees(g->scope, pod->namespace))
        return;
    add_pod(g, pod,
            &(struct job_name){keep(g->texts, pod->namespace),
                               keep(g->texts, pod->job)});
}

/* The same of a job that was asked for, whose names are the question's. */
static void gather_member(void *arg, const struct job_pod *pod)
{
    struct gathered *g = arg;
    add_pod(g, pod, g->only);
}

static int compare_jobs(const struct job_pod *a, const struct job_pod *b)
{
    if (a->job == b->job && a->namespace == b->namespace)
        return 0; /* the same texts, as gather_member() gives all */
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

static struct job_name told_name(const struct job_told *job)
{
    return (struct job_name){job->namespace, job->name};
}

static const struct scope *scope_of(const struct jobs_told *t)
{
    return t->snapshot ? t->snapshot->scope : NULL; /* a test has none */
}

static int compare_told(const void *a, const void *b)
{
    const struct job_name x = told_name(a), y = told_name(b);
    return job_name_compare(&x, &y);
}

static void add_ended(void *arg, const struct job_told *job)
{
    struct jobs_told *t = arg;
    const struct job_name name = told_name(job);
    if (!is_asked(t->only, &name) || !scope_sees(scope_of(t), job->namespace))
        return;
    t->ended = xgrow(t->ended, t->n_ended, &t->ended_cap, sizeof *t->ended);
    t->ended[t->n_ended++] = *job;
}

/* Those that are in no order where they come from. */
static void gather_others(struct jobs_told *t)
{
    struct gathered g = {
        .scope = scope_of(t), .only = t->only, .texts = &t->texts};
    struct ended_jobs *ended = pod_source_ask(t->source, ended);
    pod_source_tell(t->source, each_asking, t->snapshot, gather, &g);
    t->asking = g.list;
    t->n_asking = g.n;
    if (g.n)
        qsort(g.list, g.n, sizeof *g.list, compare_pods);
    if (ended)
        ended_jobs_each(ended, clock_wall_s(), add_ended, t);
    if (t->n_ended)
        qsort(t->ended, t->n_ended, sizeof *t->ended, compare_told);
}

/* The first of those that is not below the name, or (`past`) that is above. */
static size_t asking_from(const struct jobs_told *t,
                          const struct job_name *name, bool past)
{
    return lower_bound(t->n_asking, i, ({
                           const struct job_name x = name_of(&t->asking[i]);
                           job_name_compare(&x, name) < past;
                       }));
}

static size_t ended_from(const struct jobs_told *t, const struct job_name *name,
                         bool past)
{
    return lower_bound(t->n_ended, i, ({
                           const struct job_name x = told_name(&t->ended[i]);
                           job_name_compare(&x, name) < past;
                       }));
}

void jobs_told_begin(struct jobs_told *t, const struct pod_source *source,
                     const struct snapshot *s, const struct job_name *behind)
{
    *t = (struct jobs_told){.source = source, .snapshot = s, .behind = *behind};
    gather_others(t);
    t->at_asking = asking_from(t, behind, true);
    t->at_ended = ended_from(t, behind, true);
}

static void add_name(void *arg, const struct job_name *job, unsigned states)
{
    struct jobs_told *t = arg;
    (void)snprintf(t->last[0], sizeof t->last[0], "%s", job->namespace);
    (void)snprintf(t->last[1], sizeof t->last[1], "%s", job->name);
    t->has_all = false;
    if (!scope_sees(scope_of(t), job->namespace))
        return;
    t->names = xgrow(t->names, t->n_names, &t->names_cap, sizeof *t->names);
    t->names[t->n_names++] =
        (struct job_states){{keep(&t->names_texts, job->namespace),
                             keep(&t->names_texts, job->name)},
                            states};
}

static void load_names(struct jobs_told *t)
{
    while (t->at_name == t->n_names && !t->has_all) {
        char last[2][DEMAND_NAME_MAX + 1];
        struct job_name behind = t->behind;
        memcpy(last, t->last, sizeof last);
        if (behind.name == t->last[1])
            behind = (struct job_name){last[0], last[1]};
        arena_fini(&t->names_texts);
        t->n_names = t->at_name = 0;
        t->has_all = true; /* unless one comes */
        pod_source_tell(t->source, each_job, &behind, NAMES, add_name, t);
        t->behind = (struct job_name){t->last[0], t->last[1]};
    }
}

const struct job_name *jobs_told_peek(struct jobs_told *t)
{
    struct job_name names[3];
    size_t n = 0, first = 0;
    load_names(t);
    if (t->at_name < t->n_names)
        names[n++] = t->names[t->at_name].name;
    if (t->at_asking < t->n_asking)
        names[n++] = name_of(&t->asking[t->at_asking]);
    if (t->at_ended < t->n_ended)
        names[n++] = told_name(&t->ended[t->at_ended]);
    for (size_t i = 1; i < n; i++)
        if (job_name_compare(&names[i], &names[first]) < 0)
            first = i;
    t->next = n ? names[first] : (struct job_name){NULL, NULL};
    t->next_states = first == 0 && t->at_name < t->n_names
                         ? t->names[t->at_name].states
                         : JOB_POD_STATES_ALL;
    for (size_t i = first + 1; i < n; i++) /* others tell of it, too */
        if (job_name_compare(&names[i], &names[first]) == 0)
            t->next_states = JOB_POD_STATES_ALL;
    return n ? &t->next : NULL;
}

void jobs_told_pass(struct jobs_told *t)
{
    t->at_name += t->at_name < t->n_names &&
                  job_name_compare(&t->names[t->at_name].name, &t->next) == 0;
    t->at_asking = asking_from(t, &t->next, true);
    t->at_ended = ended_from(t, &t->next, true);
}

static void gather_asking(const struct jobs_told *t, const struct job_name *job,
                          struct gathered *g)
{
    size_t end = asking_from(t, job, true);
    for (size_t i = asking_from(t, job, false); i < end; i++) {
        g->list = xgrow(g->list, g->n, &g->cap, sizeof *g->list);
        g->list[g->n++] = t->asking[i];
    }
}

bool jobs_told_get(const struct jobs_told *t, const struct job_name *job,
                   struct job_told *ret_told)
{
    const struct pods_asked asked = {job->namespace, job->name, false};
    struct arena texts = {.blocks = NULL};
    struct gathered g = {.only = job, .texts = &texts};
    size_t ended = ended_from(t, job, false);
    if (!scope_sees(scope_of(t), job->namespace))
        return false;
    pod_source_tell(t->source, each_pod, t->snapshot, &asked, gather_member,
                    &g);
    gather_asking(t, job, &g);
    bool is_there = g.n > 0;
    if (is_there) {
        qsort(g.list, g.n, sizeof *g.list, compare_pods);
        count_job(ret_told, g.list, g.n);
    } else if (ended < t->n_ended) {
        const struct job_name name = told_name(&t->ended[ended]);
        is_there = job_name_compare(&name, job) == 0;
        if (is_there)
            *ret_told = t->ended[ended];
    }
    free(g.list);
    arena_fini(&texts);
    return is_there;
}

void jobs_told_fini(struct jobs_told *t)
{
    free(t->asking);
    free(t->ended);
    free(t->names);
    arena_fini(&t->texts);
    arena_fini(&t->names_texts);
}

bool job_told_read(const struct pod_source *source, const struct snapshot *s,
                   const struct job_name *job, struct job_told *ret_told)
{
    struct jobs_told t = {.source = source, .snapshot = s, .only = job};
    gather_others(&t);
    bool is_there = jobs_told_get(&t, job, ret_told);
    jobs_told_fini(&t);
    return is_there;
}
