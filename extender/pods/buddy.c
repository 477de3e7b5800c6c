#include "extender/pods/buddy.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static cJSON *member(cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* The member as an object: made when it is absent or null. */
static int open_object(cJSON *parent, const char *name, cJSON **ret,
                       struct error *err)
{
    cJSON *item = member(parent, name);
    if (item && cJSON_IsNull(item)) {
        cJSON_DeleteItemFromObjectCaseSensitive(parent, name);
        item = NULL;
    }
    if (!item)
        item = cJSON_AddObjectToObject(parent, name);
    if (!cJSON_IsObject(item))
        return error_set(err, EINVAL, "template.%s: must be an object", name);
    *ret = item;
    return 0;
}

static void put_text(cJSON *object, const char *name, const char *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    (void)cJSON_AddStringToObject(object, name, value); /* memory aborts */
}

static void put_new_text(cJSON *object, const char *name, const char *value)
{
    if (!member(object, name))
        put_text(object, name, value);
}

/* --- what must not be in the template ----------------------------------- */

static int check_spec(cJSON *spec, struct error *err)
{
    const cJSON *containers = member(spec, "containers");
    if (cJSON_GetArraySize(containers) < 1)
        return error_set(err, EINVAL,
                         "template.spec.containers: must have one at least");
    if (member(spec, "nodeName"))
        return error_set(err, EINVAL,
                         "template.spec.nodeName: must be absent, as the xPU "
                         "pod goes where its host pod goes");
    return 0;
}

static int check_labels(cJSON *labels, struct error *err)
{
    const cJSON *role = member(labels, "biga.dev/role");
    if (role &&
        (!cJSON_IsString(role) || strcmp(role->valuestring, "xpu") != 0))
        return error_set(err, EINVAL,
                         "template.metadata.labels[\"biga.dev/role\"]: must "
                         "be \"xpu\" or absent");
    return 0;
}

/* --- what makes it the host pod's --------------------------------------- */

static void put_labels(cJSON *labels, const struct demand *d)
{
    char pair[16];
    (void)snprintf(pair, sizeof pair, "%d", (int)d->pair);
    put_text(labels, "biga.dev/role", "xpu");
    put_text(labels, "biga.dev/job", d->job);
    put_text(labels, "biga.dev/pair", pair);
}

/* Annotations of a pod that are its own. */
static const char *const own[] = {WORD_ALLOCATION, "biga.dev/buddy",
                                  "biga.dev/card", "biga.dev/card-cores",
                                  "biga.dev/card-memory-mib"};

static bool is_own(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(key, own[i]) == 0)
            return true;
    return false;
}

/* The contract's other annotations of the host pod speak of the pair, so the
 * xPU pod says the same. */
static void put_annotations(cJSON *annotations, cJSON *host,
                            const struct demand *d)
{
    char text[32];
    const cJSON *a;
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, WORD_ALLOCATION);
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, "biga.dev/buddy");
    cJSON_ArrayForEach(a, member(member(host, "metadata"), "annotations"))
    {
        if (!is_own(a->string) && cJSON_IsString(a) &&
            strncmp(a->string, "biga.dev/", 9) == 0)
            put_text(annotations, a->string, a->valuestring);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, "biga.dev/size");
    if (d->size > 1) { /* else the index of a pair may be any */
        (void)snprintf(text, sizeof text, "%d", (int)d->size);
        put_text(annotations, "biga.dev/size", text);
    }
    if (d->gpus) {
        (void)snprintf(text, sizeof text, "%u", d->gpus);
        put_new_text(annotations, "biga.dev/gpus", text);
    }
    if (d->cpu_milli) {
        (void)snprintf(text, sizeof text, "%um", d->cpu_milli);
        put_new_text(annotations, "biga.dev/cpus", text);
    }
    if (d->memory_mib) {
        (void)snprintf(text, sizeof text, "%u", d->memory_mib);
        put_new_text(annotations, "biga.dev/memory-mib", text);
    }
    (void)snprintf(text, sizeof text, "%u", d->pair_cards);
    put_new_text(annotations, "biga.dev/cards", text);
}

/* --- its door ------------------------------------------------------------ */

static bool asks_by_resources(cJSON *container)
{
    static const char *const maps[] = {"requests", "limits"};
    cJSON *resources = member(container, "resources");
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        const cJSON *amount;
        cJSON_ArrayForEach(amount, member(resources, maps[i]))
        {
            if (strncmp(amount->string, "biga.dev/", 9) == 0)
                return true;
        }
    }
    return false;
}

/* Did kube-scheduler ask Biga about the pod?  It does so for resources
 * biga.dev/… alone, and without its configuration refuses these. */
static bool is_asked_about(cJSON *spec)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        cJSON *container;
        cJSON_ArrayForEach(container, member(spec, lists[i]))
        {
            if (asks_by_resources(container))
                return true;
        }
    }
    return false;
}

static cJSON *find_gate(cJSON *gates)
{
    cJSON *gate;
    cJSON_ArrayForEach(gate, gates)
    {
        const cJSON *name = member(gate, "name");
        if (cJSON_IsString(name) && strcmp(name->valuestring, WORD_PLACE) == 0)
            return gate;
    }
    return NULL;
}

/* Does the host pod come by the gate?  One whose gate is open has its place by
 * it when nobody else can have given that. */
static bool is_gated(cJSON *host)
{
    cJSON *spec = member(host, "spec");
    const cJSON *given = member(member(member(host, "metadata"), "annotations"),
                                WORD_ALLOCATION);
    return find_gate(member(spec, "schedulingGates")) ||
           (cJSON_IsString(given) && !is_asked_about(spec));
}

/* The xPU pod goes through the door of its host pod; other gates stay. */
static int put_gate(cJSON *spec, bool gated, struct error *err)
{
    cJSON *gates = member(spec, "schedulingGates");
    if (gates && !cJSON_IsArray(gates) && !cJSON_IsNull(gates))
        return error_set(err, EINVAL,
                         "template.spec.schedulingGates: must be a list");
    if (!cJSON_IsArray(gates)) {
        cJSON_DeleteItemFromObjectCaseSensitive(spec, "schedulingGates");
        gates = NULL;
    }
    cJSON *gate = find_gate(gates);
    if (!gated && gate)
        cJSON_Delete(cJSON_DetachItemViaPointer(gates, gate));
    if (!gated || gate)
        return 0;
    if (!gates)
        gates = cJSON_AddArrayToObject(spec, "schedulingGates");
    gate = cJSON_CreateObject();
    put_text(gate, "name", WORD_PLACE);
    (void)cJSON_AddItemToArray(gates, gate);
    return 0;
}

static void put_owner(cJSON *metadata, const struct demand *d)
{
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "ownerReferences");
    cJSON *owners = cJSON_AddArrayToObject(metadata, "ownerReferences");
    cJSON *owner = cJSON_CreateObject();
    put_text(owner, "apiVersion", "v1");
    put_text(owner, "kind", "Pod");
    put_text(owner, "name", d->name);
    put_text(owner, "uid", d->uid);
    (void)cJSON_AddTrueToObject(owner, "controller");
    (void)cJSON_AddItemToArray(owners, owner);
}

/* What an API server gives an object and a new one must not have. */
static void drop_identity(cJSON *metadata)
{
    static const char *const given[] = {
        "uid",           "resourceVersion", "creationTimestamp",
        "generateName",  "generation",      "deletionTimestamp",
        "managedFields", "selfLink",        "finalizers"};
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, given[i]);
}

static int compose(const struct buddy_input *in, cJSON *host, cJSON *template,
                   struct error *err)
{
    const struct demand *d = &in->pod->demand;
    cJSON *metadata = NULL, *spec = NULL, *labels = NULL, *annotations = NULL;
    int r = open_object(template, "metadata", &metadata, err);
    if (r == 0)
        r = open_object(template, "spec", &spec, err);
    if (r == 0)
        r = open_object(metadata, "labels", &labels, err);
    if (r == 0)
        r = open_object(metadata, "annotations", &annotations, err);
    if (r == 0)
        r = check_labels(labels, err);
    if (r == 0)
        r = check_spec(spec, err);
    if (r == 0)
        r = put_gate(spec, in->in_cluster && is_gated(host), err);
    if (r < 0)
        return r;
    drop_identity(metadata);
    put_text(metadata, "name", in->name);
    put_text(metadata, "namespace", d->namespace);
    put_labels(labels, d);
    put_annotations(annotations, host, d);
    put_owner(metadata, d);
    if (in->pod->scheduler[0])
        put_new_text(spec, "schedulerName", in->pod->scheduler);
    put_text(template, "apiVersion", "v1");
    put_text(template, "kind", "Pod");
    return 0;
}

int buddy_compose(const struct buddy_input *in, struct str *out,
                  struct error *err)
{
    cleanup_with(json) cJSON *host = NULL;
    cleanup_with(json) cJSON *object = NULL;
    int r = json_parse(in->host, in->host_size, &host, err);
    if (r < 0)
        return error_wrap(err, "host pod");
    r = json_parse(in->template, in->template_size, &object, err);
    if (r < 0)
        return error_wrap(err, "PodTemplate");
    cJSON *template = member(object, "template");
    if (!cJSON_IsObject(template))
        return error_set(err, EINVAL, "template: must be an object");
    r = compose(in, host, template, err);
    if (r < 0)
        return r;
    char *text = cJSON_PrintUnformatted(template);
    if (!text)
        abort(); /* out of memory, as x*alloc does */
    str_add(out, text);
    cJSON_free(text);
    return out->overflow
               ? error_set(err, E2BIG, "template: is larger than %zu bytes",
                           out->max)
               : 0;
}

/* --- those that came with them ------------------------------------------- */

void buddy_templates_fini(struct buddy_templates *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->list[i].namespace);
        free(t->list[i].name);
        free(t->list[i].json);
    }
    free(t->list);
    *t = (struct buddy_templates){0};
}

static char *take_text(const cJSON *json, const char *name,
                       const char *otherwise)
{
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(json, "metadata");
    const char *text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, name));
    return xstrdup(text && *text ? text : otherwise);
}

int buddy_templates_add(struct buddy_templates *t, const cJSON *json,
                        struct error *err)
{
    if (t->n == BUDDY_TEMPLATES_MAX)
        return error_set(err, EINVAL, "more than %d PodTemplates at once",
                         BUDDY_TEMPLATES_MAX);
    cleanup_free char *text = cJSON_PrintUnformatted(json);
    size_t size = text ? strlen(text) : SIZE_MAX;
    if (size > BUDDY_TEMPLATE_SIZE_MAX)
        return error_set(err, EINVAL,
                         "is a PodTemplate of %zu bytes, at most %d are "
                         "allowed",
                         size, BUDDY_TEMPLATE_SIZE_MAX);
    t->list = xgrow(t->list, t->n, &t->cap, sizeof *t->list);
    t->list[t->n++] =
        (struct buddy_template){take_text(json, "namespace", "default"),
                                take_text(json, "name", ""), steal(&text)};
    return 0;
}

const struct buddy_template *
buddy_templates_find(const struct buddy_templates *t, const char *namespace,
                     const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->list[i].namespace, namespace) == 0 &&
            strcmp(t->list[i].name, name) == 0)
            return &t->list[i];
    return NULL;
}
