#include "extender/gauge/pending_gauges.h"

#include <stdlib.h>
#include <string.h>

#include "extender/jobs/job_state.h"
#include "extender/view/known_jobs.h"
#include "extender/view/pending_pods.h"
#include "lib/base/mem.h"
#include "lib/io/metrics.h"

/* The words of docs/cards.md that a pod without a place can have, and three that
 * stand for none: its gate is closed, nobody has said anything yet, and a word of
 * the cluster's. */
static const char *const reasons[] = {
    "NoPlace",        "JobNotPlaced", "PairNotPlaced", "JobIncomplete",
    "PairIncomplete", "XpuPodFailed", "ConfigMissing", "SpecRefused",
    "NotUnderstood",  "Refused",      "Gated",         "Waiting",
    "Other",
};
enum { REASONS = ARRAY_LEN(reasons), GATED = REASONS - 3, WAITING, OTHER };

/* Each is from the end of the one before on. */
static const struct {
    int64_t below_s;
    const char *name;
} ages[] = {{60, "<1m"},
            {600, "1m-10m"},
            {3600, "10m-1h"},
            {86400, "1h-1d"},
            {INT64_MAX, ">1d"}};
enum { AGES = ARRAY_LEN(ages) };

struct tally {
    const struct snapshot *snapshot;
    int64_t now_s;
    int64_t counts[REASONS][AGES], oldest_s[REASONS];
};

/* `text` begins with it, or says nothing of that kind; `open`: it is yet to be
 * judged. */
static unsigned find_reason(const char *text, bool gated, bool open)
{
    size_t size = strcspn(text, ":");
    for (unsigned i = 0; i < GATED; i++)
        if (strlen(reasons[i]) == size && memcmp(reasons[i], text, size) == 0)
            return i;
    return gated ? GATED : open || !*text ? WAITING : OTHER;
}

static void count(struct tally *t, unsigned reason, int64_t since_s)
{
    int64_t age_s = since_s && since_s < t->now_s ? t->now_s - since_s : 0;
    unsigned i = 0;
    while (age_s >= ages[i].below_s)
        i++;
    t->counts[reason][i]++;
    if (age_s > t->oldest_s[reason])
        t->oldest_s[reason] = age_s;
}

/* --- pods ------------------------------------------------------------------- */

/* The jobs that may wait: those of pods that wait, and those of which places are
 * missing.  Names of the latter are the order's. */
struct jobs {
    struct arena texts;
    struct job_name *list;
    size_t n, cap;
};

static void add_job(struct jobs *jobs, const char *namespace, const char *name)
{
    jobs->list = xgrow(jobs->list, jobs->n, &jobs->cap, sizeof *jobs->list);
    jobs->list[jobs->n++] = (struct job_name){namespace, name};
}

struct pods {
    struct tally *tally;
    struct jobs jobs;
};

static void count_pod(void *arg, const struct job_pod *pod)
{
    struct pods *p = arg;
    struct jobs *jobs = &p->jobs;
    const struct job_name job = {pod->namespace, pod->job};
    if (pending_pod_waits(pod, p->tally->snapshot))
        count(p->tally, find_reason(pod->reason, pod->gated, false),
              pod->submitted_s);
    if (!pod_state_is_unsettled(pod->state) || !*pod->job ||
        pod->role == ROLE_SERVICE ||
        (jobs->n && job_name_compare(&jobs->list[jobs->n - 1], &job) == 0))
        return;
    add_job(jobs,
            arena_strndup(&jobs->texts, job.namespace, strlen(job.namespace)),
            arena_strndup(&jobs->texts, job.name, strlen(job.name)));
}

/* --- jobs ------------------------------------------------------------------- */

/* Of one that has places, and of which nobody knows the pods, those are to
 * come. */
static void count_job(struct tally *t, const struct job_told *told,
                      const struct alloc_job *places)
{
    static const struct job_told unknown = {.asks = true};
    if (known_job_state(told, places) != JOB_PENDING || (!told && !places))
        return;
    told = told ? told : &unknown;
    count(t, find_reason(told->reason, told->gated, told->asks),
          told->submitted_s);
}

static int compare_jobs(const void *a, const void *b)
{
    return job_name_compare(a, b);
}

static void count_jobs(struct tally *t, struct jobs *jobs,
                       const struct pod_source *source,
                       const struct alloc_order *order)
{
    struct jobs_told told;
    for (size_t i = 0; i < order->n_jobs; i++) {
        const struct alloc_job *j = &order->jobs[i];
        const struct demand *d = alloc_job_demand(order, j);
        if (j->n_pairs != j->size)
            add_job(jobs, d->namespace, d->job);
    }
    if (jobs->n)
        qsort(jobs->list, jobs->n, sizeof *jobs->list, compare_jobs);
    jobs_told_begin(&told, source, t->snapshot,
                    &(const struct job_name){"", ""});
    for (size_t i = 0; i < jobs->n; i++) {
        const struct job_name *name = &jobs->list[i];
        struct job_told job;
        if (i && job_name_compare(name, name - 1) == 0)
            continue;
        bool is_told = jobs_told_get(&told, name, &job);
        size_t at = alloc_order_job_from(order, name->namespace, name->name,
                                         false);
        size_t end = alloc_order_job_from(order, name->namespace, name->name,
                                          true);
        count_job(t, is_told ? &job : NULL, at < end ? &order->jobs[at] : NULL);
    }
    jobs_told_fini(&told);
}

static void write_tally(const struct metric_family *number,
                        const struct metric_family *oldest,
                        const struct tally *t, struct str *out)
{
    metrics_write_head(number, out);
    for (unsigned r = 0; r < REASONS; r++)
        for (unsigned a = 0; a < AGES; a++)
            metrics_write_sample(number,
                                 (const char *[]){reasons[r], ages[a].name},
                                 t->counts[r][a], out);
    metrics_write_head(oldest, out);
    for (unsigned r = 0; r < REASONS; r++)
        metrics_write_sample(oldest, &reasons[r], t->oldest_s[r], out);
}

#define GAUGE(...) METRIC_FAMILY(GAUGE, __VA_ARGS__)

static const struct metric_family pods = GAUGE(
    "biga_pending_pods", "Pods that wait for a place, by why and for how long.",
    "reason", "age");
static const struct metric_family pods_oldest =
    GAUGE("biga_pending_pods_oldest_seconds",
          "For how long the first of them waits; 0: there is none.", "reason");
static const struct metric_family jobs =
    GAUGE("biga_pending_jobs",
          "Jobs of which not every pair has its place, and none runs, by why "
          "and for how long.",
          "reason", "age");
static const struct metric_family jobs_oldest =
    GAUGE("biga_pending_jobs_oldest_seconds",
          "For how long the first of them waits; 0: there is none.", "reason");

void pending_gauges_write(const struct pod_source *source,
                          const struct snapshot *s,
                          const struct alloc_order *order, int64_t now_s,
                          struct str *out)
{
    const struct pods_asked asked = {.unsettled = true};
    struct tally of_pods = {.snapshot = s, .now_s = now_s}, of_jobs = of_pods;
    struct pods waiting = {.tally = &of_pods};
    pod_source_tell(source, each_pod, s, &asked, count_pod, &waiting);
    pod_source_tell(source, each_asking, s, count_pod, &waiting);
    write_tally(&pods, &pods_oldest, &of_pods, out);
    count_jobs(&of_jobs, &waiting.jobs, source, order);
    write_tally(&jobs, &jobs_oldest, &of_jobs, out);
    free(waiting.jobs.list);
    arena_fini(&waiting.jobs.texts);
}
