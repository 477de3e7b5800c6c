#include "cli/verb/run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/mem.h"

static cJSON *object(cJSON *parent, const char *name)
{
    return cJSON_AddObjectToObject(parent, name); /* memory aborts */
}

static void put(cJSON *parent, const char *name, const char *text)
{
    if (text && *text)
        (void)cJSON_AddStringToObject(parent, name, text);
}

static void put_number(cJSON *parent, const char *name, int64_t n)
{
    (void)cJSON_AddNumberToObject(parent, name, (double)n);
}

/* As a text, as annotations are; nothing when it is 0. */
static void put_count(cJSON *parent, const char *name, int64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, n);
    put(parent, name, n > 0 ? text : NULL);
}

static char *template_name(const struct run *r)
{
    return xasprintf("%s-xpu", r->name);
}

static bool has_xpu(const struct run *r)
{
    return *r->set->xpu_image;
}

static cJSON *begin(const struct run *r, const char *version, const char *kind,
                    const char *name)
{
    cJSON *json = cJSON_CreateObject();
    put(json, "apiVersion", version);
    put(json, "kind", kind);
    cJSON *metadata = object(json, "metadata");
    put(metadata, "name", name);
    put(metadata, "namespace", r->namespace);
    return json;
}

/* The only container of a pod; its `resources.limits` are returned. */
static cJSON *add_container(cJSON *spec, const char *name, const char *image,
                            cJSON *command)
{
    cJSON *list = cJSON_AddArrayToObject(spec, "containers");
    cJSON *container = cJSON_CreateObject();
    put(container, "name", name);
    put(container, "image", image);
    if (command)
        (void)cJSON_AddItemToObject(container, "command", command);
    (void)cJSON_AddItemToArray(list, container);
    return object(object(container, "resources"), "limits");
}

/* What is asked of each card, where it is taken. */
static void add_card(const struct run *r, cJSON *limits, bool takes)
{
    const struct cli_settings *s = r->set;
    put_number(limits, "biga.dev/card", r->cards);
    if (takes && s->card_cores)
        put_number(limits, "biga.dev/card-cores", s->card_cores);
    if (takes && s->card_memory_mib)
        put_number(limits, "biga.dev/card-memory-mib", s->card_memory_mib);
}

static void add_annotations(const struct run *r, cJSON *metadata)
{
    const struct cli_settings *s = r->set;
    cleanup_free char *buddy = template_name(r);
    cJSON *notes = object(metadata, "annotations");
    put_count(notes, "biga.dev/size", r->pairs);
    put(notes, "biga.dev/align", s->align);
    put(notes, "biga.dev/prefer-align", s->prefer_align);
    put(notes, "biga.dev/within", s->within);
    put(notes, "biga.dev/prefer-within", s->prefer_within);
    put_count(notes, "biga.dev/nics", s->nics);
    put(notes, "biga.dev/cpus", s->cpus);
    put(notes, "biga.dev/buddy", has_xpu(r) ? buddy : NULL);
}

static cJSON *command_of(const struct run *r)
{
    cJSON *list = r->n_command > 0 ? cJSON_CreateArray() : NULL;
    for (int i = 0; i < r->n_command; i++)
        (void)cJSON_AddItemToArray(list, cJSON_CreateString(r->command[i]));
    return list;
}

cJSON *run_job(const struct run *r)
{
    const struct cli_settings *s = r->set;
    cJSON *json = begin(r, "batch/v1", "Job", r->name);
    cJSON *spec = object(json, "spec");
    put(spec, "completionMode", "Indexed");
    put_number(spec, "completions", r->pairs);
    put_number(spec, "parallelism", r->pairs);
    put_number(spec, "backoffLimit", 0);
    cJSON *template = object(spec, "template");
    cJSON *metadata = object(template, "metadata");
    put(object(metadata, "labels"), "biga.dev/role", "host");
    add_annotations(r, metadata);
    cJSON *pod = object(template, "spec");
    put(pod, "restartPolicy", "Never");
    cJSON *limits = add_container(pod, "main", s->image, command_of(r));
    add_card(r, limits, !has_xpu(r));
    if (s->gpus)
        put_number(limits, s->gpu_resource, s->gpus);
    return json;
}

cJSON *run_template(const struct run *r)
{
    const struct cli_settings *s = r->set;
    cleanup_free char *name = template_name(r);
    if (!has_xpu(r))
        return NULL;
    cJSON *json = begin(r, "v1", "PodTemplate", name);
    cJSON *pod = object(object(json, "template"), "spec");
    cJSON *command = NULL;
    /* what makes it run on a card where kubelets do; ignored elsewhere */
    put(pod, "runtimeClassName", "xpu");
    (void)cJSON_AddTrueToObject(pod, "hostNetwork");
    put(pod, "restartPolicy", "OnFailure");
    if (*s->xpu_command) {
        const char *const shell[] = {"sh", "-c", s->xpu_command};
        command = cJSON_CreateStringArray(shell, ARRAY_LEN(shell));
    }
    add_card(r, add_container(pod, "main", s->xpu_image, command), true);
    return json;
}
