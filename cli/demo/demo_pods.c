#include "cli/demo/demo_pods.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

enum { NAME_SIZE = 64, ANSWER_MAX = 16 << 20 };

static const char *role(enum pod_kind kind)
{
    return kind == POD_SERVICE ? "service" : kind == POD_XPU ? "xpu" : "host";
}

static bool is_of_job(const struct pod_spec *pod)
{
    return pod->kind == POD_HOST || pod->kind == POD_XPU;
}

void pod_name(const struct pod_spec *pod, char *ret_name, size_t size)
{
    if (is_of_job(pod))
        (void)snprintf(ret_name, size, DEMO_JOB "-%s-%zu", role(pod->kind),
                       pod->index);
    else
        (void)snprintf(ret_name, size, "%s%zu",
                       pod->kind == POD_SERVICE ? "hbn-" : "tenant-",
                       pod->index);
}

/* It need only be unique here; it has the form of one. */
static void add_uid(const struct pod_spec *pod, struct str *out)
{
    str_addf(out, "\"00000000-0000-4000-8000-%04x%08zx\"",
             (unsigned)pod->kind + 1, pod->index);
}

static void add_spec(const struct pod_spec *pod, struct str *out)
{
    static const struct {
        const char *name, *image, *resources;
    } containers[] = {
        [POD_SERVICE] =
            {"hbn", "hbn",
             "\"biga.dev/card\":\"1\",\"biga.dev/card-cores\":\"2\","
             "\"biga.dev/card-memory-mib\":\"2048\""},
        [POD_TENANT] = {"work", "train",
                        "\"cpu\":\"8\",\"memory\":\"64Gi\","
                        "\"nvidia.com/gpu\":\"1\",\"biga.dev/card\":\"1\""},
        [POD_HOST] = {"rank", "mpi-ucc",
                      "\"cpu\":\"8\",\"memory\":\"64Gi\","
                      "\"nvidia.com/gpu\":\"1\",\"biga.dev/card\":\"1\","
                      "\"biga.dev/card-cores\":\"4\","
                      "\"biga.dev/card-memory-mib\":\"4096\""},
        [POD_XPU] = {"ucc-worker", "ucc-worker",
                     "\"biga.dev/card\":\"1\",\"biga.dev/card-cores\":\"4\","
                     "\"biga.dev/card-memory-mib\":\"4096\""},
    };
    const char *resources = containers[pod->kind].resources;
    str_addf(out,
             "\"spec\":{\"schedulerName\":\"default-scheduler\","
             "\"containers\":[{\"name\":\"%s\","
             "\"image\":\"example.org/%s:1\","
             "\"resources\":{\"requests\":{%s},\"limits\":{%s}}}]}",
             containers[pod->kind].name, containers[pod->kind].image, resources,
             resources);
}

void pod_encode(const struct pod_spec *pod, struct str *out)
{
    char name[NAME_SIZE];
    pod_name(pod, name, sizeof name);
    str_addf(out,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
             "\"uid\":",
             name, DEMO_NAMESPACE);
    add_uid(pod, out);
    str_addf(out, ",\"labels\":{\"biga.dev/role\":\"%s\"", role(pod->kind));
    if (is_of_job(pod))
        str_addf(out,
                 ",\"biga.dev/job\":\"%s\",\"biga.dev/pair\":\"%zu\"},"
                 "\"annotations\":{\"biga.dev/size\":\"%zu\","
                 "\"biga.dev/prefer-align\":\"pxb\",",
                 DEMO_JOB, pod->index, pod->size);
    else
        str_add(out, "},\"annotations\":{");
    if (pod->kind == POD_XPU) /* of its host pod, which may come later */
        str_add(out, "\"biga.dev/gpus\":\"1\",\"biga.dev/cpus\":\"8\",");
    str_add(out, "\"biga.dev/arch\":\"arm64\"}},"); /* of the images */
    add_spec(pod, out);
    str_add(out, ",\"status\":{\"phase\":\"Pending\"}}");
}

/* --- kube-scheduler's part ------------------------------------------------ */

static int post(struct http_client *scheduler, const char *verb,
                const struct str *body, cJSON **ret_json, struct error *err)
{
    struct http_answer answer = {.body = STR_INIT(ANSWER_MAX)};
    cleanup_free char *path = xasprintf("/v1/scheduler/%s", verb);
    int rc = http_call(scheduler, "POST", path, body->data, body->size, NULL,
                       &answer, err);
    if (rc == 0 && answer.status != 200) {
        cleanup_str struct str why = STR_INIT(4096);
        http_answer_error(&answer, &why);
        rc = error_set(err, EPROTO, "status %ld: %s", answer.status,
                       str_text(&why));
    } else if (rc == 0) {
        rc = json_parse(str_text(&answer.body), answer.body.size, ret_json,
                        err);
    }
    str_fini(&answer.body);
    return rc < 0 ? error_wrap(err, "%s", verb) : 0;
}

static void add_args(const struct pod_spec *pod, struct str *out)
{
    str_add(out, "{\"Pod\":");
    pod_encode(pod, out);
    str_add(out, ",\"Nodes\":null,\"NodeNames\":[");
}

/* {"node":"why"}: the first of both maps. */
static int refused(const cJSON *result, struct error *err)
{
    const cJSON *failed = cJSON_GetObjectItemCaseSensitive(result,
                                                           "FailedNodes");
    const cJSON *never =
        cJSON_GetObjectItemCaseSensitive(result, "FailedAndUnresolvableNodes");
    const cJSON *first = failed && failed->child ? failed->child
                         : never                 ? never->child
                                                 : NULL;
    return error_set(err, ENOSPC, "no node fits%s%s%s%s", first ? ": " : "",
                     first ? first->string : "", first ? ": " : "",
                     cJSON_IsString(first) ? first->valuestring : "");
}

/* Choose from what prioritize says: the highest score, the first of them. */
static int best_of(struct http_client *scheduler, const struct pod_spec *pod,
                   const cJSON *names, char **ret_node, struct error *err)
{
    cleanup_str struct str body = STR_INIT(ANSWER_MAX);
    cleanup_with(json) cJSON *scores = NULL;
    const cJSON *x, *best = NULL;
    double high = -1;
    add_args(pod, &body);
    cJSON_ArrayForEach(x, names)
    {
        jwrite_text(&body, NULL, x->valuestring);
    }
    str_add(&body, "]}");
    int rc = post(scheduler, "prioritize", &body, &scores, err);
    if (rc < 0)
        return rc;
    cJSON_ArrayForEach(x, scores)
    {
        const cJSON *host = cJSON_GetObjectItemCaseSensitive(x, "Host");
        const cJSON *score = cJSON_GetObjectItemCaseSensitive(x, "Score");
        if (cJSON_IsString(host) && cJSON_IsNumber(score) &&
            score->valuedouble > high) {
            high = score->valuedouble;
            best = host;
        }
    }
    if (!best)
        return error_set(err, EPROTO, "prioritize: gives no score");
    *ret_node = xstrdup(best->valuestring);
    return 0;
}

static int choose(struct http_client *scheduler, const struct pod_spec *pod,
                  char *const *names, size_t n, char **ret_node,
                  struct error *err)
{
    cleanup_str struct str body = STR_INIT(ANSWER_MAX);
    cleanup_with(json) cJSON *result = NULL;
    const cJSON *left, *x;
    add_args(pod, &body);
    for (size_t i = 0; i < n; i++)
        jwrite_text(&body, NULL, names[i]);
    str_add(&body, "]}");
    int rc = post(scheduler, "filter", &body, &result, err);
    if (rc < 0)
        return rc;
    left = cJSON_GetObjectItemCaseSensitive(result, "NodeNames");
    x = cJSON_GetObjectItemCaseSensitive(result, "Error");
    if (cJSON_IsString(x) && *x->valuestring)
        return error_set(err, EPROTO, "filter: %s", x->valuestring);
    cJSON_ArrayForEach(x, left)
    {
        if (!cJSON_IsString(x))
            return error_set(err, EPROTO, "filter: NodeNames: no text");
    }
    if (cJSON_GetArraySize(left) == 0)
        return refused(result, err);
    if (cJSON_GetArraySize(left) > 1)
        return best_of(scheduler, pod, left, ret_node, err);
    *ret_node = xstrdup(left->child->valuestring);
    return 0;
}

static int bind_pod(struct http_client *scheduler, const struct pod_spec *pod,
                    const char *node, struct error *err)
{
    cleanup_str struct str body = STR_INIT(4096);
    cleanup_with(json) cJSON *result = NULL;
    char name[NAME_SIZE];
    pod_name(pod, name, sizeof name);
    str_addf(&body,
             "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":", name,
             DEMO_NAMESPACE);
    add_uid(pod, &body);
    jwrite_text(&body, "Node", node);
    jwrite_end_object(&body);
    int rc = post(scheduler, "bind", &body, &result, err);
    if (rc < 0)
        return rc;
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(result, "Error");
    if (cJSON_IsString(x) && *x->valuestring)
        return error_set(err, EBUSY, "bind to %s: %s", node, x->valuestring);
    return 0;
}

int pod_schedule(struct http_client *scheduler, const struct pod_spec *pod,
                 char *const *names, size_t n, char **ret_node,
                 struct error *err)
{
    cleanup_free char *node = NULL;
    char name[NAME_SIZE];
    pod_name(pod, name, sizeof name);
    int rc = choose(scheduler, pod, names, n, &node, err);
    if (rc == 0)
        rc = bind_pod(scheduler, pod, node, err);
    if (rc < 0)
        return error_wrap(err, "pod %s/%s", DEMO_NAMESPACE, name);
    *ret_node = steal(&node);
    return 0;
}
