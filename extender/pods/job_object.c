#include "extender/pods/job_object.h"

#include <inttypes.h>
#include <string.h>

#include "extender/pods/pod_labels.h"
#include "lib/base/nearest_word.h"

enum { HOST_NAME_MAX_SIZE = 63 };

#define INDEX_KEY "batch.kubernetes.io/job-completion-index"

/* What is read of one. */
struct job {
    const char *name, *namespace; /* NULL: none */
    const cJSON *metadata, *spec; /* of the template; metadata may be NULL */
    int64_t completions;
};

/* --- what is not supported ------------------------------------------------- */

static const struct {
    const char *name, *why;
} refused[] = {
    {"activeDeadlineSeconds", "nobody ends jobs after a time"},
    {"backoffLimitPerIndex", "a pod that failed is not made anew"},
    {"managedBy", "nobody else manages jobs here"},
    {"manualSelector", "pods are found by their job's name"},
    {"maxFailedIndexes", "the job ends when one pod fails"},
    {"podFailurePolicy", "the job ends when one pod fails"},
    {"podReplacementPolicy", "a pod that failed is not made anew"},
    {"selector", "pods are found by their job's name"},
    {"successPolicy", "the job ends when all of its pods have"},
    {"ttlSecondsAfterFinished", "it stays until biga delete job"},
};
static const char *const known[] = {"backoffLimit", "completionMode",
                                    "completions",  "parallelism",
                                    "suspend",      "template"};

static bool is_known(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

static const char *nearest(const char *name)
{
    const char *best = NULL;
    size_t least = NEAREST_WORD_NOT;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t d = nearest_word_guess(name, known[i]);
        best = d < least ? known[i] : best;
        least = d < least ? d : least;
    }
    return best;
}

/* Every member is one that is read, or is refused by its name. */
static int check_members(struct reader *spec)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, spec->json)
    {
        size_t i = 0;
        if (is_known(m->string) || cJSON_IsNull(m))
            continue;
        while (i < ARRAY_LEN(refused) && strcmp(refused[i].name, m->string))
            i++;
        if (i < ARRAY_LEN(refused))
            return reader_fail(spec, m->string,
                               "is not supported without Kubernetes (%s): take "
                               "it out",
                               refused[i].why);
        const char *meant = nearest(m->string);
        return reader_fail(spec, m->string, "is no member of a Job%s%s%s",
                           meant ? "; did you mean \"" : "", meant ? meant : "",
                           meant ? "\"?" : "");
    }
    return 0;
}

/* Its keys would say nothing: pods have those of the template. */
static int check_keys(struct reader *metadata, const char *map)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, reader_opt_object(metadata, map))
    {
        if (strncmp(m->string, "biga.dev/", 9) == 0)
            return reader_fail(metadata, map,
                               "has \"%.64s\", which belongs into "
                               "spec.template.metadata.%s: pods are placed by "
                               "what stands there",
                               m->string, map);
    }
    return metadata->failed ? -EINVAL : 0;
}

/* --- reading ---------------------------------------------------------------- */

static int read_metadata(struct reader *top, struct job *job)
{
    struct reader r;
    const cJSON *json = reader_object(top, "metadata");
    if (!json)
        return -EINVAL;
    reader_init(&r, json, "metadata", top->err);
    job->name = reader_string(&r, "name", HOST_NAME_MAX_SIZE);
    job->namespace = reader_opt_string(&r, "namespace", HOST_NAME_MAX_SIZE);
    if (check_keys(&r, "labels") < 0 || check_keys(&r, "annotations") < 0)
        return -EINVAL;
    return r.failed ? -EINVAL : 0;
}

/* A pod that failed is not made anew, which is a limit of 0; a container that
 * is started again counts in Kubernetes, too. */
static int check_restarts(struct reader *spec, struct reader *pod)
{
    const char *policy = reader_opt_string(pod, "restartPolicy", 32);
    int64_t limit = reader_opt_int(spec, "backoffLimit", 0, INT32_MAX, -1);
    if (pod->failed || spec->failed)
        return -EINVAL;
    bool never = policy && strcmp(policy, "Never") == 0;
    if (!never && (!policy || strcmp(policy, "OnFailure") != 0))
        return reader_fail(pod, "restartPolicy",
                           "is \"%.32s\", must be \"Never\" or \"OnFailure\"",
                           policy ? policy : "");
    if (never && limit > 0)
        return reader_fail(spec, "backoffLimit",
                           "is %" PRId64
                           ", must be 0: a pod that failed is not "
                           "made anew; restartPolicy \"OnFailure\" starts its "
                           "containers again",
                           limit);
    if (!never && limit >= 0)
        return reader_fail(spec, "backoffLimit",
                           "is %" PRId64 ", must be absent with restartPolicy "
                           "\"OnFailure\": restarts are not counted",
                           limit);
    return 0;
}

static int read_template(struct reader *spec, struct job *job)
{
    struct reader r, pod;
    const cJSON *json = reader_object(spec, "template");
    if (!json)
        return -EINVAL;
    reader_init(&r, json, "spec.template", spec->err);
    job->metadata = reader_opt_object(&r, "metadata");
    job->spec = reader_object(&r, "spec");
    if (!job->spec || reader_finish_strict(&r) < 0)
        return -EINVAL;
    reader_init(&pod, job->spec, "spec.template.spec", spec->err);
    return check_restarts(spec, &pod);
}

static int read_counts(struct reader *spec, struct job *job)
{
    const char *mode = reader_opt_string(spec, "completionMode", 32);
    if (spec->failed)
        return -EINVAL;
    if (!mode || strcmp(mode, "Indexed") != 0)
        return reader_fail(spec, "completionMode",
                           "is \"%.32s\", must be \"Indexed\": a pair has an "
                           "index",
                           mode ? mode : "NonIndexed");
    job->completions = reader_int(spec, "completions", 1, JOB_OBJECT_PODS_MAX);
    int64_t parallelism = reader_opt_int(spec, "parallelism", 0, INT32_MAX, 1);
    if (spec->failed)
        return -EINVAL;
    if (parallelism != job->completions)
        return reader_fail(spec, "parallelism",
                           "is %" PRId64
                           ", must be as many as completions (%" PRId64
                           "): all pairs run at the same time",
                           parallelism, job->completions);
    if (reader_opt_bool(spec, "suspend", false))
        return reader_fail(spec, "suspend",
                           "is true, must be false or absent: "
                           "apply the job when it is to run");
    return spec->failed ? -EINVAL : 0;
}

/* The last pod has the longest name. */
static int check_name(struct reader *top, const struct job *job)
{
    cleanup_free char *name = xasprintf("%s-%" PRId64, job->name,
                                        job->completions - 1);
    if (strlen(name) > HOST_NAME_MAX_SIZE)
        return reader_fail(top, "metadata",
                           "name: \"%s\" makes a pod \"%s\", whose name is "
                           "longer than %d bytes",
                           job->name, name, HOST_NAME_MAX_SIZE);
    return 0;
}

static int read_job(const cJSON *json, struct job *job, struct error *err)
{
    struct reader top, spec;
    reader_init(&top, json, "", err);
    const char *version = reader_string(&top, "apiVersion", 64);
    if (top.failed)
        return -EINVAL;
    if (strcmp(version, "batch/v1") != 0)
        return reader_fail(&top, "apiVersion",
                           "is \"%.64s\", must be \"batch/v1\"", version);
    const cJSON *object = reader_object(&top, "spec");
    if (!object || read_metadata(&top, job) < 0)
        return -EINVAL;
    reader_init(&spec, object, "spec", err);
    if (spec.failed || check_members(&spec) < 0 ||
        read_counts(&spec, job) < 0 || read_template(&spec, job) < 0)
        return -EINVAL;
    return check_name(&top, job);
}

/* --- making ------------------------------------------------------------------ */

static cJSON *member(cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* What the pod says is wrong otherwise is told when it is read. */
static cJSON *open_object(cJSON *parent, const char *name)
{
    cJSON *m = member(parent, name);
    if (cJSON_IsObject(m))
        return m;
    cJSON_DeleteItemFromObjectCaseSensitive(parent, name);
    return cJSON_AddObjectToObject(parent, name);
}

static void put_text(cJSON *object, const char *name, const char *text)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    if (!cJSON_AddStringToObject(object, name, text))
        abort(); /* out of memory */
}

static void put_keys(cJSON *metadata, const struct job *job, const char *name,
                     const char *index)
{
    cJSON *labels = open_object(metadata, "labels");
    put_text(metadata, "name", name);
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "namespace");
    if (job->namespace)
        put_text(metadata, "namespace", job->namespace);
    put_text(labels, JOB_OBJECT_LABEL, job->name);
    put_text(labels, "job-name", job->name);
    put_text(labels, INDEX_KEY, index);
    put_text(open_object(metadata, "annotations"), INDEX_KEY, index);
}

/* Unless it has one of that name. */
static void put_index(cJSON *container, const char *index)
{
    static const char variable[] = "JOB_COMPLETION_INDEX";
    cJSON *env = member(container, "env"), *x;
    if (!cJSON_IsObject(container) ||
        (env && !cJSON_IsNull(env) && !cJSON_IsArray(env)))
        return; /* is told when the pod is read */
    if (!cJSON_IsArray(env)) {
        cJSON_DeleteItemFromObjectCaseSensitive(container, "env");
        env = cJSON_AddArrayToObject(container, "env");
    }
    cJSON_ArrayForEach(x, env)
    {
        const cJSON *name = member(x, "name");
        if (cJSON_IsString(name) && strcmp(name->valuestring, variable) == 0)
            return;
    }
    x = cJSON_CreateObject();
    put_text(x, "name", variable);
    put_text(x, "value", index);
    (void)cJSON_AddItemToArray(env, x);
}

static void put_indexes(cJSON *spec, const char *index)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        cJSON *container;
        cJSON_ArrayForEach(container, member(spec, lists[i]))
        {
            put_index(container, index);
        }
    }
}

static cJSON *make_pod(const struct job *job, int64_t i)
{
    char index[24];
    (void)snprintf(index, sizeof index, "%" PRId64, i);
    cleanup_free char *name = xasprintf("%s-%s", job->name, index);
    cJSON *pod = cJSON_CreateObject();
    cJSON *metadata = job->metadata ? cJSON_Duplicate(job->metadata, true)
                                    : cJSON_CreateObject();
    cJSON *spec = cJSON_Duplicate(job->spec, true);
    if (!pod || !metadata || !spec)
        abort(); /* out of memory */
    put_text(pod, "apiVersion", "v1");
    put_text(pod, "kind", "Pod");
    (void)cJSON_AddItemToObject(pod, "metadata", metadata);
    (void)cJSON_AddItemToObject(pod, "spec", spec);
    put_keys(metadata, job, name, index);
    put_indexes(spec, index);
    if (!member(spec, "hostname"))
        put_text(spec, "hostname", name);
    return pod;
}

/* By its labels: a selector of other pods may have the same key.  Within a text
 * the quotes would be escaped. */
bool job_object_made(const char *pod)
{
    static const char key[] = "\"" JOB_OBJECT_LABEL "\":";
    const struct jtext labels = pod_labels_find(pod, strlen(pod));
    return memmem(labels.data, labels.size, key, sizeof key - 1) != NULL;
}

int job_object_each(const cJSON *json, job_object_f *visit, void *arg,
                    struct error *err)
{
    struct job job = {0};
    int r = read_job(json, &job, err);
    for (int64_t i = 0; r == 0 && i < job.completions; i++)
        r = visit(arg, make_pod(&job, i));
    return r;
}
