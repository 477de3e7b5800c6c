#include "extender/pods/applied_apply.h"

#include <string.h>

#include "extender/pods/applied_uid.h"
#include "extender/pods/buddy.h"
#include "extender/pods/job_object.h"
#include "extender/pods/kube_pod.h"
#include "lib/base/json.h"
#include "lib/io/clock.h"
#include "model/pod/pod_keys.h"

enum { WHERE_MAX = 64, LABEL_MAX = 384, LISTS_MAX = 4 };

void applied_body_fini(struct applied_body *b)
{
    for (size_t i = 0; i < b->n; i++) {
        applied_pod_unref(b->changes[i].pod);
        applied_config_unref(b->changes[i].config);
    }
    free(b->changes);
    *b = (struct applied_body){0};
}

/* --- one form for what says the same ---------------------------------------- */

static int by_key(const void *a, const void *b)
{
    return strcmp((*(cJSON *const *)a)->string, (*(cJSON *const *)b)->string);
}

static void sort_members(cJSON *object)
{
    size_t n = (size_t)cJSON_GetArraySize(object), i = 0;
    if (n < 2)
        return;
    cleanup_free cJSON **list = xcalloc(n, sizeof *list);
    for (cJSON *m = object->child; m; m = m->next)
        list[i++] = m;
    qsort(list, n, sizeof *list, by_key);
    for (i = 0; i < n; i++) {
        list[i]->next = i + 1 < n ? list[i + 1] : NULL;
        /* as cJSON has it: the first one's is the last */
        list[i]->prev = list[i > 0 ? i - 1 : n - 1];
    }
    object->child = list[0];
}

/* Recursion ends at JSCAN_DEPTH_MAX. */
static void sort_all(cJSON *json)
{
    if (cJSON_IsObject(json))
        sort_members(json);
    for (cJSON *m = json->child; m; m = m->next)
        if (cJSON_IsObject(m) || cJSON_IsArray(m))
            sort_all(m);
}

static void set_text(cJSON *object, const char *name, const char *text)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    if (!cJSON_AddStringToObject(object, name, text))
        abort(); /* out of memory */
}

/* What an API server wrote, or what says nothing about the pod. */
static void drop_foreign(cJSON *metadata)
{
    static const char *const names[] = {
        "creationTimestamp", "deletionGracePeriodSeconds",
        "deletionTimestamp", "generation",
        "managedFields",     "resourceVersion",
        "selfLink",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, names[i]);
    cJSON *notes = cJSON_GetObjectItemCaseSensitive(metadata, "annotations");
    if (cJSON_IsObject(notes))
        cJSON_DeleteItemFromObjectCaseSensitive(
            notes, "kubectl.kubernetes.io/last-applied-configuration");
}

static void normalise(cJSON *json, cJSON *metadata, const char *uid)
{
    const cJSON *namespace = cJSON_GetObjectItemCaseSensitive(metadata,
                                                              "namespace");
    cJSON_DeleteItemFromObjectCaseSensitive(json, "status");
    drop_foreign(metadata);
    if (!namespace || cJSON_IsNull(namespace) ||
        (cJSON_IsString(namespace) && !*namespace->valuestring))
        set_text(metadata, "namespace", "default");
    if (uid)
        set_text(metadata, "uid", uid);
    else
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "uid");
    sort_all(json);
}

/* --- what only an API server's scheduler could do ---------------------------- */

static bool says_something(const cJSON *m)
{
    if (!m || cJSON_IsNull(m))
        return false;
    if (cJSON_IsString(m))
        return *m->valuestring != '\0';
    return !(cJSON_IsArray(m) || cJSON_IsObject(m)) || m->child;
}

static int check_placing(const cJSON *json, struct error *err)
{
    static const char *const names[] = {"affinity", "nodeName", "nodeSelector",
                                        "schedulingGates",
                                        "topologySpreadConstraints"};
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(json, "spec");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(spec, names[i]);
        if (!says_something(m))
            continue;
        cleanup_free char *text = cJSON_PrintUnformatted(m);
        return error_set(
            err, EINVAL,
            "spec.%s: is %.64s: without Kubernetes pods are placed "
            "by what schema/pod.md says alone: take it out",
            names[i], text ? text : "?");
    }
    return 0;
}

/* --- documents ----------------------------------------------------------------- */

/* Where we are. */
struct applying {
    const struct demand_config *config;
    struct applied_body *body;
    char where[WHERE_MAX];            /* "document 2, items[3]" */
    struct buddy_templates templates; /* for host pods applied with them */
    size_t size;                      /* bytes of all changes */
    struct error *err;
};

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *m = object ? cJSON_GetObjectItemCaseSensitive(object, name)
                            : NULL;
    return cJSON_IsString(m) ? m->valuestring : "";
}

/* The error, with where it is. */
static int explain(const struct applying *x, const cJSON *json)
{
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(json, "metadata");
    const char *namespace = text_of(metadata, "namespace");
    return error_wrap(x->err, "%s (%.32s %.63s/%.128s)", x->where,
                      text_of(json, "kind"), *namespace ? namespace : "default",
                      text_of(metadata, "name"));
}

static const char *name_of(const struct pod_change *c, bool *ret_secret,
                           const char **ret_namespace)
{
    *ret_secret = c->config && c->config->secret;
    *ret_namespace = c->pod ? c->pod->namespace : c->config->namespace;
    return c->pod ? c->pod->name : c->config->name;
}

static bool is_same(const struct pod_change *a, const struct pod_change *b)
{
    const char *in_a, *in_b;
    bool secret_a, secret_b;
    const char *name_a = name_of(a, &secret_a, &in_a);
    const char *name_b = name_of(b, &secret_b, &in_b);
    return a->kind == b->kind && secret_a == secret_b &&
           strcmp(name_a, name_b) == 0 && strcmp(in_a, in_b) == 0;
}

/* Takes the object of `change` over. */
static int add(struct applying *x, struct pod_change change)
{
    struct applied_body *b = x->body;
    b->changes = xgrow(b->changes, b->n, &b->cap, sizeof *b->changes);
    b->changes[b->n++] = change;
    for (size_t i = 0; i + 1 < b->n; i++)
        if (is_same(&b->changes[i], &change))
            return error_set(x->err, EINVAL,
                             "metadata.name: there are two of that name");
    x->size += change.pod ? change.pod->size : change.config->size;
    if (x->size > APPLIED_MADE_MAX)
        return error_set(x->err, EINVAL,
                         "more than %d MiB of objects at once, with those that "
                         "Jobs and PodTemplates make",
                         APPLIED_MADE_MAX >> 20);
    if (b->n > APPLIED_CHANGES_MAX)
        return error_set(x->err, EINVAL, "more than %d objects at once",
                         APPLIED_CHANGES_MAX);
    return 0;
}

static int create_pod(struct applying *x, cJSON *json, cJSON *metadata,
                      struct applied_pod **ret_pod)
{
    char uid[APPLIED_UID_SIZE];
    applied_uid_create(clock_wall_ns() / 1000000, uid);
    normalise(json, metadata, uid);
    cleanup_free char *text = cJSON_PrintUnformatted(json);
    struct jscan s;
    jscan_init(&s, text, strlen(text));
    /* before all else: a misspelt role is not a missing one */
    if (pod_keys_check(&s, x->err) < 0) {
        x->err->code = EINVAL;
        return -EINVAL;
    }
    return applied_pod_create(text, strlen(text), uid, x->config, ret_pod,
                              x->err);
}

static const char *buddy_of(const cJSON *metadata)
{
    return text_of(cJSON_GetObjectItemCaseSensitive(metadata, "annotations"),
                   "biga.dev/buddy");
}

static int apply_pod(struct applying *x, cJSON *json, cJSON *metadata)
{
    struct pod_change change = {.kind = APPLIED_APPLY};
    int e = check_placing(json, x->err);
    if (e == 0)
        e = create_pod(x, json, metadata, &change.pod);
    if (e < 0)
        return e;
    /* a host pod and its buddy are a pair by the name of their job */
    if (*buddy_of(metadata) && change.pod->demand.role == ROLE_HOST &&
        !change.pod->demand.job[0]) {
        cJSON *labels = cJSON_GetObjectItemCaseSensitive(metadata, "labels");
        set_text(labels, "biga.dev/job", change.pod->name);
        applied_pod_unref(steal(&change.pod));
        e = create_pod(x, json, metadata, &change.pod);
    }
    return e == 0 ? add(x, change) : e;
}

/* --- buddies -------------------------------------------------------------- */

/* The xPU pod of a host pod, as a cluster's extender makes it. */
static int make_buddy(struct applying *x, const struct applied_pod *host,
                      const struct buddy_template *template)
{
    struct kube_pod pod;
    cleanup_str struct str text = STR_INIT(PODSPEC_SIZE_MAX);
    cleanup_with(json) cJSON *json = NULL;
    cleanup_free char *name = xasprintf("%s-xpu", host->name);
    int e = kube_pod_read(host->json, host->size, x->config, &pod, x->err);
    const struct buddy_input in = {
        .host = host->json,
        .host_size = host->size,
        .pod = &pod,
        .template = template->json,
        .template_size = strlen(template->json),
        .name = name,
    };
    if (e == 0)
        e = buddy_compose(&in, &text, x->err);
    if (e == 0)
        e = json_parse(str_text(&text), text.size, &json, x->err);
    if (e < 0)
        return e;
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(json, "metadata");
    if (job_object_made(host->json)) /* so is its buddy */
        set_text(cJSON_GetObjectItemCaseSensitive(metadata, "labels"),
                 JOB_OBJECT_LABEL, host->demand.job);
    /* no owner is needed: the pod ends with its host pod, as its pair.  And
     * without the owner's uid the same pod applied again is unchanged. */
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "ownerReferences");
    return apply_pod(x, json, metadata);
}

static int make_buddies(struct applying *x)
{
    size_t n = x->body->n;
    for (size_t i = 0; i < n; i++) {
        struct applied_pod *host = x->body->changes[i].pod;
        cleanup_with(json) cJSON *json = NULL;
        if (!host || host->demand.role != ROLE_HOST ||
            !strstr(host->json, "\"biga.dev/buddy\""))
            continue;
        int e = json_parse(host->json, host->size, &json, x->err);
        const char *name =
            buddy_of(cJSON_GetObjectItemCaseSensitive(json, "metadata"));
        const struct buddy_template *t =
            buddy_templates_find(&x->templates, host->namespace, name);
        if (e < 0 || !*name)
            continue;
        if (!t)
            return error_set(x->err, EINVAL,
                             "Pod %s/%s: metadata.annotations[\"biga.dev/buddy"
                             "\"]: is \"%.128s\", must be the name of a "
                             "PodTemplate that is applied with it",
                             host->namespace, host->name, name);
        if (make_buddy(x, host, t) < 0)
            return error_wrap(x->err, "PodTemplate %.63s/%.128s for pod %.128s",
                              t->namespace, t->name, host->name);
    }
    return 0;
}

static int apply_config(struct applying *x, cJSON *json, cJSON *metadata)
{
    struct pod_change change = {.kind = CONFIG_APPLY};
    normalise(json, metadata, NULL);
    cleanup_free char *text = cJSON_PrintUnformatted(json);
    int e = applied_config_create(text, strlen(text), &change.config, x->err);
    return e == 0 ? add(x, change) : e;
}

static int apply_job_pod(void *arg, cJSON *pod)
{
    struct applying *x = arg;
    cleanup_with(json) cJSON *own = pod;
    int e = apply_pod(x, own,
                      cJSON_GetObjectItemCaseSensitive(own, "metadata"));
    return e < 0 ? error_wrap(x->err, "spec.template") : e;
}

static int apply_object(struct applying *x, cJSON *json)
{
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(json, "metadata");
    const char *kind = text_of(json, "kind");
    int e;
    if (!cJSON_IsObject(metadata))
        e = error_set(x->err, EINVAL, "metadata: must be an object");
    else if (strcmp(kind, "Pod") == 0)
        e = apply_pod(x, json, metadata);
    else if (strcmp(kind, "Job") == 0)
        e = job_object_each(json, apply_job_pod, x, x->err);
    else if (strcmp(kind, "PodTemplate") == 0)
        e = buddy_templates_add(&x->templates, json, x->err);
    else if (strcmp(kind, "ConfigMap") == 0 || strcmp(kind, "Secret") == 0)
        e = apply_config(x, json, metadata);
    else
        e = error_set(x->err, EINVAL,
                      "kind: is \"%.64s\", must be \"Pod\", \"Job\", "
                      "\"PodTemplate\", \"ConfigMap\", \"Secret\" or "
                      "\"List\"",
                      kind);
    return e < 0 ? explain(x, json) : 0;
}

static int apply_list(struct applying *x, cJSON *list)
{
    char document[WHERE_MAX];
    int i = 0;
    memcpy(document, x->where, sizeof document);
    cJSON *items = cJSON_GetObjectItemCaseSensitive(list, "items");
    if (!cJSON_IsArray(items))
        return error_set(x->err, EINVAL, "%s (List): items: must be an array",
                         x->where);
    for (cJSON *m = items->child; m; m = m->next) {
        (void)snprintf(x->where, sizeof x->where, "%.32s, items[%d]", document,
                       i++);
        int e = apply_object(x, m);
        if (e < 0)
            return e;
    }
    return 0;
}

static int apply_document(struct applying *x, const struct jtext *bytes)
{
    cleanup_with(json) cJSON *json = NULL;
    int e = json_parse(bytes->data, bytes->size, &json, x->err);
    if (e < 0)
        return error_wrap(x->err, "%s", x->where);
    if (!cJSON_IsObject(json))
        return error_set(x->err, EINVAL, "%s: must be an object", x->where);
    const char *kind = text_of(json, "kind");
    size_t size = strlen(kind);
    if (size >= 4 && strcmp(kind + size - 4, "List") == 0)
        return apply_list(x, json);
    return apply_object(x, json);
}

static bool at_end(struct jscan *s)
{
    while (s->p < s->end && strchr(" \t\r\n", *s->p) && *s->p)
        s->p++;
    return s->p == s->end;
}

int applied_body_read(const char *data, size_t size,
                      const struct demand_config *config,
                      struct applied_body *ret_body, struct error *err)
{
    struct applied_body body = {0};
    struct applying x = {.config = config, .body = &body, .err = err};
    struct jscan s;
    struct jtext bytes;
    int e = 0;
    jscan_init(&s, data, size);
    for (unsigned n = 1; e == 0 && !at_end(&s); n++) {
        (void)snprintf(x.where, sizeof x.where, "document %u", n);
        e = jscan_raw(&s, &bytes) ? apply_document(&x, &bytes)
                                  : jscan_error(&s, err);
    }
    if (e == 0)
        e = make_buddies(&x);
    buddy_templates_fini(&x.templates);
    if (e == 0 && body.n == 0)
        e = error_set(err, EINVAL,
                      "the body: is empty, must have a Pod, Job, ConfigMap, "
                      "Secret or List");
    if (e < 0) {
        applied_body_fini(&body);
        return e;
    }
    *ret_body = body;
    return 0;
}
