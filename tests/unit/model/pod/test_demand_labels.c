/* The job and the pair of pods that controllers of others make, with the labels
 * and annotations that these set (JobSet 0.10.1 under Kubernetes 1.37, Kubeflow
 * Trainer 2.x, MPI operator 0.7, training operator 1.9). */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/pod/demand.h"
#include "tests/lib/podtext.h"

/* A pod of Job `job` of the replicated Job `rep`, which has `jobs` of them, of
 * JobSet `set`, with index `index` in that Job.  The caller frees. */
static char *of_jobset(const char *role, const char *set, const char *rep,
                       int job, int jobs, int index, const char *more)
{
    cleanup_free char *texts = xasprintf(
        "'jobset.sigs.k8s.io/global-replicas':'%d',"
        "'jobset.sigs.k8s.io/group-name':'default',"
        "'jobset.sigs.k8s.io/group-replicas':'%d',"
        "'jobset.sigs.k8s.io/job-global-index':'%d',"
        "'jobset.sigs.k8s.io/job-group-index':'%d',"
        "'jobset.sigs.k8s.io/job-index':'%d',"
        "'jobset.sigs.k8s.io/job-key':'4a1c09a9ed2e8b2ac6a6b4a1e8b0fa9e',"
        "'jobset.sigs.k8s.io/jobset-name':'%s',"
        "'jobset.sigs.k8s.io/jobset-uid':'0b6d5c0e-7ad0-4c52-8d4a-0e2f31',"
        "'jobset.sigs.k8s.io/replicatedjob-name':'%s',"
        "'jobset.sigs.k8s.io/replicatedjob-replicas':'%d',"
        "'jobset.sigs.k8s.io/restart-attempt':'0',"
        "'batch.kubernetes.io/job-completion-index':'%d'",
        jobs + 1, jobs + 1, job + 1, job + 1, job, set, rep, jobs, index);
    return xasprintf(
        "{'metadata':{'generateName':'%s-%s-%d-%d-','name':'%s-%s-%d-%d-x7k2p',"
        "'namespace':'ml','uid':'u-1','labels':{'biga.dev/role':'%s',"
        "'batch.kubernetes.io/controller-uid':'c-%d',"
        "'batch.kubernetes.io/job-name':'%s-%s-%d','controller-uid':'c-%d',"
        "'job-name':'%s-%s-%d',%s},'annotations':{%s%s}},"
        "'spec':{'subdomain':'%s','hostname':'%s-%s-%d-%d'}}",
        set, rep, job, index, set, rep, job, index, role, job, set, rep, job,
        job, set, rep, job, texts, texts, more, set, set, rep, job, index);
}

static void expect_key(const char *text, const char *want)
{
    char key[DEMAND_PAIR_KEY_MAX];
    struct demand d = pod_read_ok(text);
    demand_pair_key(&d, key);
    cr_expect_str_eq(key, want, "%s", text);
}

static void expect(const char *role, const char *rep, int job, int jobs,
                   int index, const char *more, const char *want)
{
    cleanup_free char *text = of_jobset(role, "solver", rep, job, jobs, index,
                                        more);
    expect_key(text, want);
}

static void refuse(int job, int jobs, int index, const char *more,
                   const char *want)
{
    cleanup_free char *text = of_jobset("host", "solver", "hosts", job, jobs,
                                        index, more);
    pod_refused(EDOM, text, want);
}

#define SIZE(n) ",'biga.dev/size':'" n "'"

/* Host pods and xPU pods are a replicated Job each, of one Job with 4 pods. */
Test(demand_labels, pairs_of_a_jobset)
{
    for (int i = 0; i < 4; i++) {
        cleanup_free char *want = xasprintf("ml/solver/%d", i);
        expect("host", "hosts", 0, 1, i, "", want);
        expect("xpu", "cards", 0, 1, i, "", want);
        expect("host", "hosts", 0, 1, i, SIZE("4"), want);
        expect("xpu", "cards", 0, 1, i, SIZE("4"), want);
        /* or the xPU pods are 4 Jobs of one pod */
        expect("xpu", "cards", i, 4, 0, SIZE("4"), want);
    }
    refuse(0, 1, 4, SIZE("4"),
           "metadata.annotations['batch.kubernetes.io/job-completion-index']: "
           "is '4', but metadata.annotations['biga.dev/size'] is '4'; must be "
           "from 0 to 3");
}

/* 3 Jobs of 4 pods: biga.dev/size tells how many pods each has. */
Test(demand_labels, pairs_of_a_jobset_of_several_jobs)
{
    for (int job = 0; job < 3; job++)
        for (int i = 0; i < 4; i++) {
            cleanup_free char *all = xasprintf("ml/solver/%d", job * 4 + i);
            cleanup_free char *alone = xasprintf("ml/solver.%d/%d", job, i);
            expect("host", "hosts", job, 3, i, SIZE("12"), all);
            expect("xpu", "cards", job, 3, i, SIZE("12"), all);
            expect("host", "hosts", job, 3, i, "", alone);
            expect("xpu", "cards", job, 3, i, "", alone);
        }
    refuse(1, 3, 0, SIZE("4"),
           "metadata.annotations['biga.dev/size']: is '4', but "
           "metadata.labels['jobset.sigs.k8s.io/replicatedjob-replicas'] is "
           "'3'; must be a multiple of it, as it counts the pairs of all Jobs");
    refuse(1, 3, 2, SIZE("6"),
           "metadata.annotations['batch.kubernetes.io/job-completion-index']: "
           "is '2', but metadata.annotations['biga.dev/size'] is '6' over 3 "
           "Jobs; must be from 0 to 1");
    refuse(3, 3, 0, "",
           "metadata.labels['jobset.sigs.k8s.io/job-index']: is '3', but "
           "metadata.labels['jobset.sigs.k8s.io/replicatedjob-replicas'] is "
           "'3'; must be from 0 to 2");
}

#define JOBSET "'jobset.sigs.k8s.io/jobset-name':'s'"

Test(demand_labels, a_jobset_with_less_than_all_labels)
{
    expect_key(POD("host", "," JOBSET, "", ""), "ns/s/0");
    expect_key(
        POD("host", "," JOBSET ",'jobset.sigs.k8s.io/job-index':'2'", "", ""),
        "ns/s.2/0");
    /* Jobs without an index of their pods have one each */
    expect_key(POD("host",
                   "," JOBSET ",'jobset.sigs.k8s.io/job-index':'2',"
                   "'jobset.sigs.k8s.io/replicatedjob-replicas':'3'",
                   "'biga.dev/size':'3'", ""),
               "ns/s/2");
    pod_refused(
        EDOM,
        POD("host", "," JOBSET ",'jobset.sigs.k8s.io/job-index':'x'", "", ""),
        "metadata.labels['jobset.sigs.k8s.io/job-index']: is 'x'");
    pod_refused(EDOM,
                POD("host", ",'jobset.sigs.k8s.io/jobset-name':'-'", "", ""),
                "metadata.labels['jobset.sigs.k8s.io/jobset-name']: is '-'");
}

/* What says more of Biga's jobs comes first. */
Test(demand_labels, our_labels_before_jobsets_before_groups)
{
    static const char group[] = "'schedulingGroup':{'podGroupName':'pg-8f2'}";
    cleanup_free char *with_group = xasprintf(
        "{'metadata':{'name':'p','namespace':'ml','labels':{'biga.dev/role':"
        "'xpu'," JOBSET ",'batch.kubernetes.io/job-name':'s-cards-0'}},"
        "'spec':{%s}}",
        group);
    struct demand d = pod_read_ok(with_group);
    cr_expect_str_eq(d.job, "s");
    cr_expect(d.grouped);
    expect_key(POD("host", "," JOBSET ",'biga.dev/job':'j','biga.dev/pair':'3'",
                   "'batch.kubernetes.io/job-completion-index':'1'", ""),
               "ns/j/3");
    expect_key(POD("host",
                   "," JOBSET ",'biga.dev/pair':'3',"
                   "'jobset.sigs.k8s.io/job-index':'1',"
                   "'jobset.sigs.k8s.io/replicatedjob-replicas':'2'",
                   "'biga.dev/size':'8'", ""),
               "ns/s/3");
    expect_key(POD("host", "," JOBSET ",'biga.dev/job':'j'",
                   "'batch.kubernetes.io/job-completion-index':'1'", ""),
               "ns/j/1");
}

/* A TrainJob is a JobSet of its name underneath; its nodes are the pods of one
 * Job. */
Test(demand_labels, pairs_of_a_trainjob)
{
    for (int i = 0; i < 2; i++) {
        cleanup_free char *want = xasprintf("ml/bert/%d", i);
        cleanup_free char *host = of_jobset("host", "bert", "node", 0, 1, i,
                                            SIZE("2"));
        cleanup_free char *xpu = of_jobset("xpu", "bert", "cards", 0, 1, i,
                                           SIZE("2"));
        expect_key(host, want);
        expect_key(xpu, want);
    }
}

#define MPI(role)                                  \
    ",'training.kubeflow.org/job-name':'hpl',"     \
    "'training.kubeflow.org/job-role':'" role "'," \
    "'training.kubeflow.org/operator-name':"       \
    "'mpi-operator'"
#define SIZE_2 "'biga.dev/size':'2'"
#define INDEX(n) ",'training.kubeflow.org/replica-index':'" n "'"
#define OF_JOB(name)                         \
    ",'batch.kubernetes.io/job-name':'" name \
    "','batch.kubernetes.io/controller-uid':'u','job-name':'" name "'"

Test(demand_labels, pairs_of_an_mpijob)
{
    expect_key(POD("host", MPI("worker") INDEX("0"), SIZE_2, ""), "ns/hpl/0");
    expect_key(POD("host", MPI("worker") INDEX("1"), SIZE_2, ""), "ns/hpl/1");
    /* the launcher is a worker, too: the pod of a Job, and the first */
    expect_key(POD("host", MPI("launcher") INDEX("0") OF_JOB("hpl-launcher"),
                   SIZE_2, ""),
               "ns/hpl/0");
    /* else it is none of the pairs */
    expect_key(POD("host", MPI("launcher") OF_JOB("hpl-launcher"), "", ""),
               "ns/hpl-launcher/0");
}

#define TORCH(type, index)                     \
    ",'training.kubeflow.org/job-name':'gpt'," \
    "'training.kubeflow.org/operator-name':"   \
    "'pytorchjob-controller',"                 \
    "'training.kubeflow.org/replica-type':'" type "'" INDEX(index)

Test(demand_labels, pairs_of_a_pytorchjob)
{
    expect_key(POD("host", TORCH("worker", "0"), "", ""), "ns/gpt/0");
    expect_key(POD("host", TORCH("worker", "1"), "", ""), "ns/gpt/1");
    expect_key(
        POD("host",
            TORCH("master", "0") ",'training.kubeflow.org/job-role':'master'",
            "", ""),
        "ns/gpt-master/0");
    /* its author makes it the last pair */
    expect_key(POD("host",
                   TORCH("master", "0") ",'biga.dev/job':'gpt',"
                                        "'biga.dev/pair':'2'",
                   "'biga.dev/size':'3'", ""),
               "ns/gpt/2");
    pod_refused(EDOM, POD("host", TORCH("", "0"), "", ""),
                "metadata.labels['training.kubeflow.org/replica-type']: is ''");
}

/* Names have an end, also those that are made of two. */
Test(demand_labels, long_names)
{
    char name[DEMAND_NAME_MAX + 1];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    cleanup_free char *torch =
        xasprintf("{'metadata':{'name':'p','labels':{'biga.dev/role':'host',"
                  "'training.kubeflow.org/job-name':'%s',"
                  "'training.kubeflow.org/replica-type':'master'}}}",
                  name);
    pod_refused(EDOM, torch,
                "metadata.labels['training.kubeflow.org/job-name']: has 253 "
                "bytes, must have at most 246");
    cleanup_free char *set =
        xasprintf("{'metadata':{'name':'p','labels':{'biga.dev/role':'host',"
                  "'jobset.sigs.k8s.io/jobset-name':'%s',"
                  "'jobset.sigs.k8s.io/job-index':'999999'}}}",
                  name);
    pod_refused(EDOM, set, "has 253 bytes, must have at most 246");
}
