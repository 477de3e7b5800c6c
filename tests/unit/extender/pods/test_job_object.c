#include "extender/pods/job_object.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/pods/applied_apply.h"
#include "lib/base/str.h"

/* A Job of these members of its spec, beside the template with that of a
 * pod. */
static char *job(const char *counts, const char *pod)
{
    return xasprintf(
        "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":"
        "\"ring\",\"namespace\":\"lab\"},\"spec\":{%s\"template\":{"
        "\"metadata\":{\"labels\":{\"biga.dev/role\":\"host\"},"
        "\"annotations\":{\"biga.dev/size\":\"3\"}},\"spec\":{%s}}}}",
        counts, pod);
}

#define COUNTS                                          \
    "\"completionMode\":\"Indexed\",\"completions\":3," \
    "\"parallelism\":3,"
#define POD                                                        \
    "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"a\"," \
    "\"image\":\"i\"}]"

struct made {
    cJSON *pods[8];
    size_t n;
};

static int take(void *arg, cJSON *pod)
{
    struct made *m = arg;
    m->pods[m->n++] = pod;
    return 0;
}

static void drop(struct made *m)
{
    for (size_t i = 0; i < m->n; i++)
        cJSON_Delete(m->pods[i]);
}

static int make(const char *text, struct made *m, struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    *m = (struct made){.n = 0};
    cr_assert_eq(json_parse(text, strlen(text), &json, err), 0, "%s",
                 err->text);
    return job_object_each(json, take, m, err);
}

static void expect_pod(const struct made *m, size_t i, const char *part)
{
    cleanup_free char *text = cJSON_PrintUnformatted(m->pods[i]);
    cr_expect(strstr(text, part), "%s lacks %s", text, part);
}

Test(job_object, makes_a_pod_for_each_index)
{
    struct made m;
    struct error err = {0};
    cleanup_free char *text = job(
        COUNTS "\"backoffLimit\":0,\"suspend\":false,\"selector\":null,",
        "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"a\",\"image\":"
        "\"i\"},{\"name\":\"b\",\"image\":\"i\",\"env\":[{\"name\":"
        "\"JOB_COMPLETION_INDEX\",\"value\":\"own\"}]}],\"initContainers\":[{"
        "\"name\":\"c\",\"image\":\"i\",\"env\":[{\"name\":\"X\",\"value\":"
        "\"1\"}]}]");
    cr_assert_eq(make(text, &m, &err), 0, "%s", err.text);
    cr_assert_eq(m.n, 3);
    expect_pod(&m, 0, "\"name\":\"ring-0\",\"namespace\":\"lab\"");
    expect_pod(&m, 2, "\"name\":\"ring-2\"");
    expect_pod(&m, 2, "\"hostname\":\"ring-2\"");
    expect_pod(&m, 2, "\"batch.kubernetes.io/job-name\":\"ring\"");
    expect_pod(&m, 2, "\"job-name\":\"ring\"");
    expect_pod(&m, 2,
               "\"annotations\":{\"biga.dev/size\":\"3\","
               "\"batch.kubernetes.io/job-completion-index\":\"2\"}");
    expect_pod(&m, 2,
               "\"batch.kubernetes.io/job-completion-index\":\"2\"},"
               "\"annotations\"");
    expect_pod(&m, 2,
               "{\"name\":\"a\",\"image\":\"i\",\"env\":[{\"name\":"
               "\"JOB_COMPLETION_INDEX\",\"value\":\"2\"}]}");
    expect_pod(&m, 2,
               "\"env\":[{\"name\":\"JOB_COMPLETION_INDEX\",\"value\":"
               "\"own\"}]");
    expect_pod(&m, 2,
               "\"env\":[{\"name\":\"X\",\"value\":\"1\"},{\"name\":"
               "\"JOB_COMPLETION_INDEX\",\"value\":\"2\"}]");
    drop(&m);
}

/* Pods are where their Job is, whatever the template says. */
Test(job_object, is_of_one_namespace)
{
    struct made m;
    struct error err = {0};
    cr_assert_eq(make("{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\","
                      "\"metadata\":{\"name\":\"a\"},\"spec\":{" COUNTS
                      "\"template\":{\"metadata\":{\"namespace\":\"other\","
                      "\"name\":\"x\"},\"spec\":{" POD "}}}}",
                      &m, &err),
                 0, "%s", err.text);
    cleanup_free char *text = cJSON_PrintUnformatted(m.pods[0]);
    cr_expect_null(strstr(text, "other"), "%s", text);
    cr_expect(strstr(text, "\"name\":\"a-0\""), "%s", text);
    drop(&m);
}

Test(job_object, names_what_it_cannot_do)
{
    static const struct {
        const char *counts, *pod, *what;
    } bad[] = {
        {"\"completions\":3,", POD, "spec.completionMode: is \"NonIndexed\""},
        {"\"completionMode\":\"indexed\",", POD,
         "completionMode: is \"indexed"},
        {"\"completionMode\":\"Indexed\",", POD, "spec.completions: required"},
        {"\"completionMode\":\"Indexed\",\"completions\":4097,", POD,
         "spec.completions: is 4097, must be 1 to 4096"},
        {"\"completionMode\":\"Indexed\",\"completions\":0,", POD,
         "spec.completions: is 0"},
        {"\"completionMode\":\"Indexed\",\"completions\":2,", POD,
         "spec.parallelism: is 1, must be as many as completions (2)"},
        {COUNTS "\"suspend\":true,", POD, "spec.suspend: is true"},
        {COUNTS "\"ttlSecondsAfterFinished\":60,", POD,
         "spec.ttlSecondsAfterFinished: is not supported"},
        {COUNTS "\"podFailurePolicy\":{},", POD, "spec.podFailurePolicy: is n"},
        {COUNTS "\"backofflimit\":1,", POD,
         "spec.backofflimit: is no member of a Job; did you mean "
         "\"backoffLimit\"?"},
        {COUNTS "\"backoffLimit\":1,", POD,
         "spec.backoffLimit: is 1, must be 0"},
        {COUNTS "\"backoffLimit\":0,", "\"restartPolicy\":\"OnFailure\"",
         "spec.backoffLimit: is 0, must be absent with restartPolicy"},
        {COUNTS, "\"restartPolicy\":\"Always\"",
         "spec.template.spec.restartPolicy: is \"Always\", must be"},
        {COUNTS, "\"containers\":[]", "restartPolicy: is \"\", must be"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct made m;
        struct error err = {0};
        cleanup_free char *text = job(bad[i].counts, bad[i].pod);
        cr_expect_eq(make(text, &m, &err), -EINVAL, "%s", text);
        cr_expect(strstr(err.text, bad[i].what), "%s: no %s", err.text,
                  bad[i].what);
        drop(&m);
    }
}

#define NAMED(metadata)                                                     \
    "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{" metadata \
    "},\"spec\":{" COUNTS "\"template\":{\"spec\":{" POD "}}}}"

Test(job_object, keys_and_names_that_lead_astray_are_refused)
{
    static const struct {
        const char *text, *what;
    } bad[] = {
        {NAMED("\"name\":\"a\",\"annotations\":{\"biga.dev/size\":\"3\"}"),
         "metadata.annotations: has \"biga.dev/size\", which belongs into "
         "spec.template.metadata.annotations"},
        {NAMED("\"name\":\"a\",\"labels\":{\"biga.dev/role\":\"host\"}"),
         "metadata.labels: has \"biga.dev/role\""},
        {NAMED("\"name\":\"a23456789-123456789-123456789-123456789-123456789-"
               "123456789-12\""),
         "whose name is longer than 63 bytes"},
        {NAMED("\"generateName\":\"a\""), "metadata.name: required"},
        {"{\"apiVersion\":\"batch/v1beta1\",\"kind\":\"Job\"}",
         "apiVersion: is \"batch/v1beta1\", must be \"batch/v1\""},
        {"{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":"
         "\"a\"},\"spec\":{" COUNTS "\"template\":{\"spek\":{}}}}",
         "spec.template.spec: required"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct made m;
        struct error err = {0};
        cr_expect_eq(make(bad[i].text, &m, &err), -EINVAL, "%s", bad[i].text);
        cr_expect(strstr(err.text, bad[i].what), "%s: no %s", err.text,
                  bad[i].what);
        drop(&m);
    }
}

/* --- as it is applied ------------------------------------------------------- */

#define BUDDY                                                           \
    "{\"kind\":\"PodTemplate\",\"metadata\":{\"name\":\"worker\","      \
    "\"namespace\":"                                                    \
    "\"lab\"},\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\"," \
    "\"image\":\"i\",\"resources\":{\"limits\":{\"biga.dev/card\":1}}}]}}}"
#define PAIRS                                                                 \
    "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":"   \
    "\"ring\",\"namespace\":\"lab\"},\"spec\":{" COUNTS "\"template\":{"      \
    "\"metadata\":{\"labels\":{\"biga.dev/role\":\"host\"},\"annotations\":{" \
    "\"biga.dev/size\":\"3\",\"biga.dev/buddy\":\"worker\"}},\"spec\":{" POD  \
    "}}}}"

Test(job_object, pairs_come_of_one_job_and_a_template)
{
    struct demand_config config;
    struct applied_body body;
    struct error err = {0};
    demand_config_default(&config);
    cr_assert_eq(applied_body_read(PAIRS BUDDY, strlen(PAIRS BUDDY), &config,
                                   &body, &err),
                 0, "%s", err.text);
    cr_assert_eq(body.n, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct demand *d = &body.changes[i].pod->demand;
        cr_expect_str_eq(d->job, "ring");
        cr_expect_eq(d->pair, i % 3);
        cr_expect_eq(d->size, 3);
        cr_expect_eq(d->role, i < 3 ? ROLE_HOST : ROLE_XPU);
    }
    cr_expect_str_eq(body.changes[5].pod->name, "ring-2-xpu");
    applied_body_fini(&body);
    cr_expect_eq(applied_body_read(PAIRS, strlen(PAIRS), &config, &body, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "biga.dev/buddy"), "%s", err.text);
}

Test(job_object, what_comes_of_a_small_body_is_bounded)
{
    enum { NOTE = 200000, PODS = 400 };
    struct demand_config config;
    struct applied_body body;
    struct error err = {0};
    cleanup_str struct str text = STR_INIT(1 << 20);
    demand_config_default(&config);
    str_addf(&text,
             "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{"
             "\"name\":\"big\"},\"spec\":{\"completionMode\":\"Indexed\","
             "\"completions\":%d,\"parallelism\":%d,\"template\":{"
             "\"metadata\":{\"labels\":{\"biga.dev/role\":\"host\"},"
             "\"annotations\":{\"note\":\"",
             PODS, PODS);
    for (size_t i = 0; i < NOTE; i++)
        str_add_c(&text, 'n');
    str_add(&text, "\"}},\"spec\":{" POD "}}}}");
    cr_expect_eq(
        applied_body_read(str_text(&text), text.size, &config, &body, &err),
        -EINVAL);
    cr_expect(strstr(err.text, "more than 64 MiB of objects at once"), "%s",
              err.text);
}

#define LABELLED(labels, more) \
    "{\"metadata\":{\"labels\":{" labels "}},\"spec\":{" more "}}"
#define JOB_KEY "\"" JOB_OBJECT_LABEL "\":\"ring\""

Test(job_object, its_pods_are_known_by_their_labels)
{
    cr_expect(job_object_made(LABELLED("\"a\":\"b\"," JOB_KEY, "")));
    cr_expect_not(job_object_made(LABELLED("\"a\":\"b\"", "")));
    cr_expect_not(job_object_made(LABELLED("\"a\":\"b\"",
                                           "\"affinity\":{\"podAntiAffinity\":{"
                                           "\"matchLabels\":{" JOB_KEY "}}}")),
                  "it keeps away from those of a Job");
    cr_expect_not(job_object_made("{\"metadata\":{}}"));
}
