/* What /metrics tells of those that wait. */
#include "extender/gauge/pending_gauges.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

enum { NOW_S = 1767323045, PODS_MAX = 16 };

/* A source that tells of these. */
static struct job_pod pods[PODS_MAX];
static size_t n_pods;
static struct writer *w;
static struct str out;

static void each_asking(void *ctx, const struct snapshot *s, job_pod_f *visit,
                        void *arg)
{
    (void)ctx;
    (void)s;
    for (size_t i = 0; i < n_pods; i++)
        visit(arg, &pods[i]);
}

static const struct pod_source_ops ops = {.each_asking = each_asking};
static const struct pod_source source = {.ops = &ops};

static void start(void)
{
    n_pods = 0;
    w = sim_writer(NULL);
    str_init(&out, STR_MAX_DEFAULT);
}

static void stop(void)
{
    str_fini(&out);
    writer_stop(w);
}

TestSuite(pending_gauges, .init = start, .fini = stop);

/* Submitted so many seconds ago; its job is the name up to '-'. */
static struct job_pod *put(const char *name, const char *reason, int64_t ago_s)
{
    static char jobs[PODS_MAX][32];
    struct job_pod *p = &pods[n_pods];
    char *job = jobs[n_pods++];
    (void)snprintf(job, sizeof *jobs, "%.*s", (int)strcspn(name, "-"), name);
    *p = (struct job_pod){.namespace = "ns",
                          .name = name,
                          .uid = name,
                          .job = job,
                          .role = ROLE_HOST,
                          .pair = name[strcspn(name, "-") + 1] - '0',
                          .size = 2,
                          .state = POD_STATE_PENDING,
                          .told = *reason,
                          .reason = reason,
                          .message = "no node of 3 fits",
                          .submitted_s = NOW_S - ago_s};
    return p;
}

static void write_now(void)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    str_reset(&out);
    cleanup_with(alloc_order) struct alloc_order *order =
        alloc_order_create(s->allocations, NULL);
    pending_gauges_write(&source, s, order, NOW_S, &out);
}

static void expect(const char *line)
{
    cr_expect(strstr(str_text(&out), line), "no %s in %s", line,
              str_text(&out));
}

/* The sum of all samples of a metric. */
static int total(const char *metric)
{
    size_t size = strlen(metric);
    int sum = 0;
    for (const char *at = str_text(&out); (at = strstr(at, metric)); at += size)
        if (at[size] == '{')
            sum += (int)strtol(strchr(at, '}') + 1, NULL, 10);
    return sum;
}

Test(pending_gauges, has_every_series_when_nobody_waits)
{
    write_now();
    expect("biga_pending_pods{reason=\"NoPlace\",age=\"<1m\"} 0\n");
    expect("biga_pending_jobs{reason=\"Other\",age=\">1d\"} 0\n");
    expect("biga_pending_pods_oldest_seconds{reason=\"Gated\"} 0\n");
    cr_expect_eq(total("biga_pending_pods"), 0);
    cr_expect_eq(total("biga_pending_jobs"), 0);
}

Test(pending_gauges, counts_by_reason_and_age)
{
    put("a-0", "NoPlace", 59)->message = "";
    put("a-1", "JobNotPlaced", 59);
    put("b-0", "NoPlace", 60);
    put("c-0", "NoPlace", 86400);
    put("d-0", "", 3600)->gated = true;
    put("e-0", "", 600);
    put("f-0", "ImagePull\"Back\nOff", 0); /* a word of elsewhere */
    put("g-0", "Refused", -5);             /* the clock was set back */
    write_now();
    expect("biga_pending_pods{reason=\"NoPlace\",age=\"<1m\"} 1\n");
    expect("biga_pending_pods{reason=\"NoPlace\",age=\"1m-10m\"} 1\n");
    expect("biga_pending_pods{reason=\"NoPlace\",age=\">1d\"} 1\n");
    expect("biga_pending_pods{reason=\"JobNotPlaced\",age=\"<1m\"} 1\n");
    expect("biga_pending_pods{reason=\"Gated\",age=\"1h-1d\"} 1\n");
    expect("biga_pending_pods{reason=\"Waiting\",age=\"10m-1h\"} 1\n");
    expect("biga_pending_pods{reason=\"Other\",age=\"<1m\"} 1\n");
    expect("biga_pending_pods{reason=\"Refused\",age=\"<1m\"} 1\n");
    expect("biga_pending_pods_oldest_seconds{reason=\"NoPlace\"} 86400\n");
    expect("biga_pending_pods_oldest_seconds{reason=\"Refused\"} 0\n");
    cr_expect_eq(total("biga_pending_pods"), 8);
    /* a job for what most of its pods follow from */
    expect("biga_pending_jobs{reason=\"NoPlace\",age=\"<1m\"} 1\n");
    expect("biga_pending_jobs{reason=\"JobNotPlaced\",age=\"<1m\"} 0\n");
    expect("biga_pending_jobs{reason=\"Gated\",age=\"1h-1d\"} 1\n");
    expect("biga_pending_jobs{reason=\"Waiting\",age=\"10m-1h\"} 1\n");
    expect("biga_pending_jobs_oldest_seconds{reason=\"NoPlace\"} 86400\n");
    cr_expect_eq(total("biga_pending_jobs"), 7);
}

/* Nor a job that runs, or of which every pair has its place. */
Test(pending_gauges, counts_nobody_who_has_a_place)
{
    struct demand placed = sim_member("p-0", ROLE_HOST, "p", 0, 1);
    struct error err;
    cr_assert_eq(sim_publish(w, "n0", 4, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &placed, "n0", NULL, &err), 0, "%s", err.text);
    put("p-0", "", 10)->size = 1;
    put("q-0", "NoPlace", 10)->deleting = true;
    put("r-0", "", 10)->state = POD_STATE_RUNNING;
    put("r-1", "NoPlace", 10);
    put("s-0", "", 10)->state = POD_STATE_GONE;
    write_now();
    expect("biga_pending_pods{reason=\"NoPlace\",age=\"<1m\"} 1\n");
    cr_expect_eq(total("biga_pending_pods"), 1);
    expect("biga_pending_jobs{reason=\"NoPlace\",age=\"<1m\"} 1\n");
    cr_expect_eq(total("biga_pending_jobs"), 1, "of pods that are deleted");
}
