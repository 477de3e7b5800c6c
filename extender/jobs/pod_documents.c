#include "extender/jobs/pod_documents.h"

#include <stdlib.h>
#include <string.h>

#include "extender/pods/buddy.h"
#include "extender/pods/job_object.h"
#include "lib/base/json.h"
#include "lib/base/jwrite.h"
#include "model/pod/podspec.h"

enum { WHERE_MAX = 64 };

struct making {
    const struct demand_config *config;
    struct str *out;
    size_t n, max;
    struct buddy_templates templates;
    bool gathers;     /* the first time: templates alone */
    const char *data; /* the first document: that may be an array */
    char where[WHERE_MAX];
    struct error *err;
};

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(m) ? m->valuestring : "";
}

static const cJSON *metadata_of(const cJSON *json)
{
    return cJSON_GetObjectItemCaseSensitive(json, "metadata");
}

static const char *namespace_of(const cJSON *json)
{
    const char *namespace = text_of(metadata_of(json), "namespace");
    return *namespace ? namespace : "default";
}

/* --- pods ------------------------------------------------------------------ */

static int put_pod(struct making *m, const cJSON *pod)
{
    cleanup_free char *text = cJSON_PrintUnformatted(pod);
    if (m->n++ == m->max)
        return error_set(m->err, EINVAL, "more than %zu pods", m->max);
    jwrite_key(m->out, NULL);
    str_add(m->out, text);
    return m->out->overflow
               ? error_set(m->err, EINVAL, "more than %zu MiB of pods",
                           m->out->max >> 20)
               : 0;
}

static const struct buddy_template *find_template(const struct making *m,
                                                  const cJSON *host)
{
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(metadata_of(host),
                                                          "annotations");
    const char *name = text_of(notes, "biga.dev/buddy");
    return *name ? buddy_templates_find(&m->templates, namespace_of(host), name)
                 : NULL;
}

/* What only the API server, or the extender, gives a pod. */
static cJSON *with_identity(const cJSON *pod)
{
    cJSON *copy = cJSON_Duplicate(pod, true);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(copy, "metadata");
    const char *namespace = namespace_of(pod);
    cleanup_free char *own = xstrdup(namespace);
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "namespace");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "uid");
    if (!copy || !cJSON_AddStringToObject(metadata, "namespace", own) ||
        !cJSON_AddStringToObject(metadata, "uid", "simulated"))
        abort(); /* out of memory */
    return copy;
}

/* A pod that breaks the contract is told when it is judged. */
static int make_buddy(struct making *m, const cJSON *host,
                      const struct buddy_template *template)
{
    struct kube_pod pod;
    struct error ignored;
    cleanup_with(json) cJSON *whole = with_identity(host), *json = NULL;
    cleanup_free char *text = cJSON_PrintUnformatted(whole);
    cleanup_free char *name = xasprintf("%s-xpu",
                                        text_of(metadata_of(host), "name"));
    cleanup_str struct str buddy = STR_INIT(PODSPEC_SIZE_MAX);
    if (kube_pod_read(text, strlen(text), m->config, &pod, &ignored) < 0 ||
        pod.broken || pod.demand.role != ROLE_HOST)
        return 0;
    if (!pod.demand.job[0]) /* as its owner makes them a pair */
        memcpy(pod.demand.job, pod.demand.name, sizeof pod.demand.job);
    const struct buddy_input in = {.host = text,
                                   .host_size = strlen(text),
                                   .pod = &pod,
                                   .template = template->json,
                                   .template_size = strlen(template->json),
                                   .name = name};
    if (buddy_compose(&in, &buddy, m->err) < 0)
        return error_wrap(m->err, "PodTemplate %.128s", template->name);
    if (json_parse(str_text(&buddy), buddy.size, &json, m->err) < 0)
        return -EINVAL;
    return put_pod(m, json);
}

static int make_pod(struct making *m, const cJSON *pod)
{
    const struct buddy_template *template = find_template(m, pod);
    int r = put_pod(m, pod);
    return r == 0 && template ? make_buddy(m, pod, template) : r;
}

static int make_job_pod(void *arg, cJSON *pod)
{
    cleanup_with(json) cJSON *own = pod;
    return make_pod(arg, own);
}

/* --- documents --------------------------------------------------------------- */

static int take_object(struct making *m, const cJSON *json)
{
    const char *kind = text_of(json, "kind");
    int r = 0;
    if (m->gathers)
        r = strcmp(kind, "PodTemplate") == 0
                ? buddy_templates_add(&m->templates, json, m->err)
                : 0;
    else if (!*kind || strcmp(kind, "Pod") == 0)
        r = make_pod(m, json);
    else if (strcmp(kind, "Job") == 0)
        r = job_object_each(json, make_job_pod, m, m->err);
    return r < 0 ? error_wrap(m->err, "%s (%.32s %.63s/%.128s)", m->where, kind,
                              namespace_of(json),
                              text_of(metadata_of(json), "name"))
                 : r;
}

static int take_document(struct making *m, const struct jtext *bytes)
{
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *x;
    int r = json_parse(bytes->data, bytes->size, &json, m->err);
    if (r < 0)
        return error_wrap(m->err, "%s", m->where);
    if (!cJSON_IsObject(json) && bytes->data != m->data)
        return error_set(m->err, EINVAL, "%s: must be an object", m->where);
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(json, "items");
    const cJSON *list = cJSON_IsArray(json) ? json : items;
    if (!cJSON_IsArray(list))
        return take_object(m, json);
    char document[32];
    int i = 0;
    (void)snprintf(document, sizeof document, "%.31s", m->where);
    cJSON_ArrayForEach(x, list)
    {
        (void)snprintf(m->where, sizeof m->where, "%s, items[%d]", document,
                       i++);
        if ((r = take_object(m, x)) < 0)
            return r;
    }
    return 0;
}

/* No more documents. */
static bool at_end(struct jscan *s)
{
    while (s->p < s->end && *s->p && strchr(" \t\r\n", *s->p))
        s->p++;
    return s->p == s->end;
}

static int take_all(struct making *m, const char *data, size_t size)
{
    struct jscan s;
    struct jtext bytes;
    int r = 0;
    jscan_init(&s, data, size);
    for (unsigned n = 1; r == 0 && !at_end(&s); n++) {
        m->data = n == 1 ? s.p : m->data;
        (void)snprintf(m->where, sizeof m->where, "document %u", n);
        r = jscan_raw(&s, &bytes) ? take_document(m, &bytes)
                                  : jscan_error(&s, m->err);
    }
    return r;
}

static bool has(const char *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text));
}

bool pod_documents_need_making(const char *data, size_t size)
{
    struct jscan s;
    struct jtext first;
    jscan_init(&s, data, size);
    if (!jscan_raw(&s, &first))
        return false;
    /* what stands behind one that is no object of Kubernetes is a fault, which
     * is told with its position */
    if (!at_end(&s))
        return *s.p == '{' && has(first.data, first.size, "\"kind\"");
    return has(data, size, "\"Job\"") || has(data, size, "\"PodTemplate\"");
}

int pod_documents_make(const char *data, size_t size,
                       const struct demand_config *config, size_t max,
                       struct str *out, struct error *err)
{
    struct making m = {
        .config = config, .out = out, .max = max, .gathers = true, .err = err};
    int r = take_all(&m, data, size);
    m.gathers = false;
    jwrite_array(out, NULL);
    if (r == 0)
        r = take_all(&m, data, size);
    jwrite_end_array(out);
    buddy_templates_fini(&m.templates);
    return r;
}
