#include "extender/gauge/pending_gauges.h"

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

static void count_pod(void *arg, const struct job_pod *pod)
{
    struct tally *t = arg;
    if (pending_pod_waits(pod, t->snapshot))
        count(t, find_reason(pod->reason, pod->gated, false), pod->submitted_s);
}

/* Of one that has places, and of which nobody knows the pods, those are to
 * come. */
static void count_job(struct tally *t, const struct job_parts *parts)
{
    static const struct job_told unknown = {.asks = true};
    const struct job_told *told = parts->told ? parts->told : &unknown;
    struct job_view v;
    if (told->state != JOB_PENDING)
        return;
    job_view_init(&v, t->snapshot, NULL, parts);
    if (v.state == JOB_PENDING)
        count(t, find_reason(told->reason, told->gated, told->asks),
              told->submitted_s);
    job_view_fini(&v);
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

void pending_gauges_write(const struct pod_source *source, struct snapshot *s,
                          struct alloc_order *order, int64_t now_s,
                          struct str *out)
{
    struct tally of_pods = {.snapshot = s, .now_s = now_s}, of_jobs = of_pods;
    struct known_jobs k;
    const struct pods_asked asked = {.unsettled = true};
    pod_source_tell(source, each_pod, s, &asked, count_pod, &of_pods);
    pod_source_tell(source, each_asking, s, count_pod, &of_pods);
    write_tally(&pods, &pods_oldest, &of_pods, out);
    known_jobs_init(&k, source, snapshot_ref(s), alloc_order_ref(order), NULL,
                    NULL);
    while (known_jobs_next(&k))
        if (known_jobs_read(&k))
            count_job(&of_jobs, &k.parts);
    known_jobs_fini(&k);
    write_tally(&jobs, &jobs_oldest, &of_jobs, out);
}
