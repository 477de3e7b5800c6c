#include "model/pod/pod.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/mem.h"

static const struct contract {
    struct jtext key;
    const char *path; /* what errors call it */
} contract[POD_TEXT_COUNT] = {
#define KEY(text)                    \
    {                                \
        text, sizeof text - 1, false \
    }
#define LABEL(key)                               \
    {                                            \
        KEY(key), "metadata.labels[\"" key "\"]" \
    }
#define ANNOTATION(key)                               \
    {                                                 \
        KEY(key), "metadata.annotations[\"" key "\"]" \
    }
    [POD_NAME] = {KEY("name"), "metadata.name"},
    [POD_NAMESPACE] = {KEY("namespace"), "metadata.namespace"},
    [POD_UID] = {KEY("uid"), "metadata.uid"},
    [POD_ROLE] = LABEL("biga.dev/role"),
    [POD_JOB] = LABEL("biga.dev/job"),
    [POD_PAIR] = LABEL("biga.dev/pair"),
    [POD_JOB_NAME] = LABEL("batch.kubernetes.io/job-name"),
    [POD_INDEX_LABEL] = LABEL("batch.kubernetes.io/job-completion-index"),
    [POD_REPLICA_JOB] = LABEL("training.kubeflow.org/job-name"),
    [POD_REPLICA_INDEX] = LABEL("training.kubeflow.org/replica-index"),
    [POD_SIZE] = ANNOTATION("biga.dev/size"),
    [POD_CARDS] = ANNOTATION("biga.dev/cards"),
    [POD_ALIGN] = ANNOTATION("biga.dev/align"),
    [POD_EXCLUSIVE] = ANNOTATION("biga.dev/exclusive"),
    [POD_ARCH] = ANNOTATION("biga.dev/arch"),
    [POD_PAIR_GPUS] = ANNOTATION("biga.dev/gpus"),
    [POD_PAIR_CPUS] = ANNOTATION("biga.dev/cpus"),
    [POD_PAIR_MEMORY] = ANNOTATION("biga.dev/memory-mib"),
    [POD_WITHIN] = ANNOTATION("biga.dev/within"),
    [POD_PREFER_WITHIN] = ANNOTATION("biga.dev/prefer-within"),
    [POD_PREFER_ALIGN] = ANNOTATION("biga.dev/prefer-align"),
    [POD_SHAPES] = ANNOTATION("biga.dev/shapes"),
    [POD_BUDDY] = ANNOTATION("biga.dev/buddy"),
    [POD_INDEX_ANNOTATION] =
        ANNOTATION("batch.kubernetes.io/job-completion-index"),
    [POD_GROUP] = {KEY("podGroupName"), "spec.schedulingGroup.podGroupName"},
};

static const struct jtext resource_names[POD_GPUS] = {
    KEY("biga.dev/card"), KEY("biga.dev/card-cores"),
    KEY("biga.dev/card-memory-mib"), KEY("cpu"), KEY("memory")};

enum {
    SHOWN_MAX = 48, /* bytes of a wrong value that an error repeats */
    PATH_TEXT_MAX = 256,
    CONTAINERS_MAX = 4096,
};

struct amounts {
    int64_t of[POD_RESOURCE_COUNT];
};

struct reading {
    struct jscan *s;
    struct error *err;
    struct pod *pod;
    struct jtext resources[POD_RESOURCE_COUNT]; /* their names */
    unsigned n_resources;
    uint32_t seen;             /* bits of texts */
    struct amounts containers; /* sum */
    struct amounts sidecars;   /* sum of restartable init containers */
    struct amounts init_peak;
};

const char *pod_text_path(enum pod_text text)
{
    return contract[text].path;
}

const char *pod_text_key(enum pod_text text)
{
    return contract[text].key.data;
}

const char *pod_resource_key(enum pod_resource resource)
{
    return resource_names[resource].data;
}

/* --- reading ------------------------------------------------------------- */

/* jtext_is() for a name of known size: most keys differ in it. */
static inline bool is_key(const struct jtext *key, const struct jtext *name)
{
    if (__builtin_expect(key->escaped, false))
        return jtext_is(key, name->data);
    return key->size == name->size &&
           memcmp(key->data, name->data, name->size) == 0;
}
#define IS_KEY(key, text) is_key(key, &(const struct jtext)KEY(text))

/* The JSON itself is wrong. */
static int fail_json(struct reading *r)
{
    return jscan_error(r->s, r->err);
}

/* What comes next: 1 the wanted kind, 0 nothing (a null, consumed), or an
 * error that names the path, which is only then put together. */
static int expect(struct reading *r, enum jkind wanted, const char *path, ...)
    __attribute__((format(printf, 3, 4)));
static int expect(struct reading *r, enum jkind wanted, const char *path, ...)
{
    static const char *const words[] = {
        [JKIND_OBJECT] = "an object",
        [JKIND_ARRAY] = "a list",
        [JKIND_STRING] = "a string",
        [JKIND_NUMBER] = "a whole number",
    };
    enum jkind kind = jscan_peek(r->s);
    if (kind == wanted)
        return 1;
    if (jscan_null(r->s))
        return 0;
    if (r->s->fault)
        return fail_json(r);
    char text[PATH_TEXT_MAX];
    va_list args;
    va_start(args, path);
    (void)vsnprintf(text, sizeof text, path, args);
    va_end(args);
    return error_set(r->err, EINVAL, "%s: must be %s", text, words[wanted]);
}

static int note_once(struct reading *r, uint32_t *seen, unsigned bit,
                     const char *path, ...)
    __attribute__((format(printf, 4, 5)));
static int note_once(struct reading *r, uint32_t *seen, unsigned bit,
                     const char *path, ...)
{
    if (!(*seen & UINT32_C(1) << bit)) {
        *seen |= UINT32_C(1) << bit;
        return 0;
    }
    char text[PATH_TEXT_MAX];
    va_list args;
    va_start(args, path);
    (void)vsnprintf(text, sizeof text, path, args);
    va_end(args);
    return error_set(r->err, EINVAL, "%s: given twice", text);
}

/* Read the text of `field` that comes next. */
static int read_text(struct reading *r, enum pod_text field)
{
    const char *path = contract[field].path;
    int rc = note_once(r, &r->seen, field, "%s", path);
    if (rc == 0)
        rc = expect(r, JKIND_STRING, "%s", path);
    if (rc <= 0)
        return rc;
    return jscan_string(r->s, &r->pod->text[field]) ? 0 : fail_json(r);
}

/* Which of the fields first … last has this key; POD_TEXT_COUNT: none. */
static enum pod_text find_field(const struct jtext *key, enum pod_text first,
                                enum pod_text last)
{
    for (enum pod_text f = first; f <= last; f++)
        if (is_key(key, &contract[f].key))
            return f;
    return POD_TEXT_COUNT;
}

/* An object that is read for its fields first … last alone. */
static int read_map(struct reading *r, const char *path, enum pod_text first,
                    enum pod_text last)
{
    int rc = expect(r, JKIND_OBJECT, "%s", path);
    if (rc <= 0)
        return rc;
    struct jtext key;
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        enum pod_text f = find_field(&key, first, last);
        if (f == POD_TEXT_COUNT)
            (void)jscan_skip(r->s); /* a fault ends the loop */
        else if ((rc = read_text(r, f)) < 0)
            return rc;
    }
    return r->s->fault ? fail_json(r) : 0;
}

static int read_metadata(struct reading *r)
{
    enum { LABELS, ANNOTATIONS };
    int rc = expect(r, JKIND_OBJECT, "metadata");
    if (rc <= 0)
        return rc;
    struct jtext key;
    uint32_t seen = 0;
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        enum pod_text f;
        rc = 0;
        if (IS_KEY(&key, "labels")) {
            rc = note_once(r, &seen, LABELS, "metadata.labels");
            if (rc == 0)
                rc = read_map(r, "metadata.labels", POD_ROLE,
                              POD_REPLICA_INDEX);
        } else if (IS_KEY(&key, "annotations")) {
            rc = note_once(r, &seen, ANNOTATIONS, "metadata.annotations");
            if (rc == 0)
                rc = read_map(r, "metadata.annotations", POD_SIZE,
                              POD_INDEX_ANNOTATION);
        } else if ((f = find_field(&key, POD_NAME, POD_UID)) !=
                   POD_TEXT_COUNT) {
            rc = read_text(r, f);
        } else {
            (void)jscan_skip(r->s); /* a fault ends the loop */
        }
        if (rc < 0)
            return rc;
    }
    return r->s->fault ? fail_json(r) : 0;
}

/* --- resources ----------------------------------------------------------- */

/* Where in the pod the quantities of one map stand. */
struct place {
    const char *list; /* "containers" */
    unsigned index;
    const char *map; /* "requests" */
};

static void note_bad_quantity(struct reading *r, const struct place *place,
                              const char *name, const struct jtext *t)
{
    static const char *const allowed[] = {
        [POD_CPU] = "CPUs such as 2, 1.5 or 500m, at most 4294967",
        [POD_HOST_MEMORY] = "memory such as 512Mi, 16Gi or 1e9, at most "
                            "4294967295Mi",
    };
    if (r->pod->bad.code)
        return; /* the first one is told */
    unsigned i = 0;
    while (i < POD_GPUS && resource_names[i].data != name)
        i++;
    (void)error_set(
        &r->pod->bad, EDOM,
        "spec.%s[%u].resources.%s[\"%s\"]: is %.*s%s, must be %s", place->list,
        place->index, place->map, name,
        (int)(t->size < SHOWN_MAX ? t->size : SHOWN_MAX), t->data,
        t->size < SHOWN_MAX ? "" : "…",
        i < ARRAY_LEN(allowed) && allowed[i]
            ? allowed[i]
            : "a whole number of at most 4294967295, with or without one of k, "
              "M, G, Ki, Mi, Gi");
}

static unsigned find_resource(const struct reading *r, const struct jtext *key)
{
    for (unsigned i = 0; i < r->n_resources; i++)
        if (is_key(key, &r->resources[i]))
            return i;
    return POD_RESOURCE_COUNT;
}

/* The quantity that comes next, a string or a number. */
static int read_quantity(struct reading *r, const struct place *place,
                         const char *name, int64_t *value)
{
    char decoded[64];
    struct jtext raw, text;
    bool is_string = jscan_peek(r->s) == JKIND_STRING;
    if (!jscan_raw(r->s, &raw))
        return fail_json(r);
    text = raw;
    if (is_string) {
        text = (struct jtext){raw.data + 1, raw.size - 2, true};
        if (text.size >= sizeof decoded)
            text.size = sizeof decoded; /* too long for a quantity */
        else
            text = (struct jtext){decoded, jtext_decode(&text, decoded), false};
    }
    bool sound = name == resource_names[POD_CPU].data
                     ? pod_parse_cpus(text.data, text.size, value)
                 : name == resource_names[POD_HOST_MEMORY].data
                     ? pod_parse_memory(text.data, text.size, value)
                     : pod_parse_quantity(text.data, text.size, value);
    if (!sound)
        note_bad_quantity(r, place, name, &raw);
    return 0;
}

/* `requests` or `limits`; bits of the resources found into `*seen`. */
static int read_quantities(struct reading *r, const struct place *place,
                           struct amounts *amounts, uint32_t *seen)
{
    int rc = expect(r, JKIND_OBJECT, "spec.%s[%u].resources.%s", place->list,
                    place->index, place->map);
    if (rc <= 0)
        return rc;
    struct jtext key;
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        unsigned i = find_resource(r, &key);
        if (i == POD_RESOURCE_COUNT) {
            (void)jscan_skip(r->s); /* a fault ends the loop */
            continue;
        }
        const char *name = r->resources[i].data;
        rc = note_once(r, seen, i, "spec.%s[%u].resources.%s[\"%s\"]",
                       place->list, place->index, place->map, name);
        if (rc < 0)
            return rc;
        if (jscan_null(r->s))
            continue;
        rc = read_quantity(r, place, name, &amounts->of[i]);
        if (rc < 0)
            return rc;
    }
    return r->s->fault ? fail_json(r) : 0;
}

/* A container's `resources`: per resource its request, else its limit, as
 * the API server fills in a missing request. */
static int read_resources(struct reading *r, struct place *place,
                          struct amounts *ret)
{
    enum { REQUESTS, LIMITS, MAPS };
    static const char *const names[MAPS] = {"requests", "limits"};
    struct amounts amounts[MAPS] = {0};
    uint32_t found[MAPS] = {0}, seen = 0;
    int rc = expect(r, JKIND_OBJECT, "spec.%s[%u].resources", place->list,
                    place->index);
    if (rc <= 0)
        return rc;
    struct jtext key;
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        unsigned m = IS_KEY(&key, "requests") ? REQUESTS
                     : IS_KEY(&key, "limits") ? LIMITS
                                              : MAPS;
        if (m == MAPS) {
            (void)jscan_skip(r->s); /* a fault ends the loop */
            continue;
        }
        place->map = names[m];
        rc = note_once(r, &seen, m, "spec.%s[%u].resources.%s", place->list,
                       place->index, names[m]);
        if (rc == 0)
            rc = read_quantities(r, place, &amounts[m], &found[m]);
        if (rc < 0)
            return rc;
    }
    for (unsigned i = 0; i < POD_RESOURCE_COUNT; i++)
        ret->of[i] = found[REQUESTS] & UINT32_C(1) << i
                         ? amounts[REQUESTS].of[i]
                         : amounts[LIMITS].of[i];
    return r->s->fault ? fail_json(r) : 0;
}

static int read_container(struct reading *r, struct place *place,
                          struct amounts *ret_take, bool *ret_sidecar)
{
    enum { RESOURCES, RESTART_POLICY };
    int rc = expect(r, JKIND_OBJECT, "spec.%s[%u]", place->list, place->index);
    if (rc <= 0)
        return rc;
    struct jtext key, policy = {0};
    uint32_t seen = 0;
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        rc = 0;
        if (IS_KEY(&key, "resources")) {
            rc = note_once(r, &seen, RESOURCES, "spec.%s[%u].resources",
                           place->list, place->index);
            if (rc == 0)
                rc = read_resources(r, place, ret_take);
        } else if (IS_KEY(&key, "restartPolicy") &&
                   jscan_peek(r->s) == JKIND_STRING) {
            (void)jscan_string(r->s, &policy); /* a fault ends the loop */
        } else {
            (void)jscan_skip(r->s); /* a fault ends the loop */
        }
        if (rc < 0)
            return rc;
    }
    *ret_sidecar = policy.data && IS_KEY(&policy, "Always");
    return r->s->fault ? fail_json(r) : 0;
}

/* Requests as Kubernetes computes them: containers run together; an init
 * container runs alone but for the sidecars started before it. */
static void add_container(struct reading *r, bool init, bool sidecar,
                          const struct amounts *take)
{
    for (unsigned i = 0; i < POD_RESOURCE_COUNT; i++) {
        if (!init) {
            r->containers.of[i] += take->of[i];
            continue;
        }
        int64_t now = r->sidecars.of[i] + take->of[i];
        if (sidecar)
            r->sidecars.of[i] = now;
        if (r->init_peak.of[i] < now)
            r->init_peak.of[i] = now;
    }
}

static int64_t effective(const struct reading *r, unsigned resource)
{
    int64_t run = r->containers.of[resource] + r->sidecars.of[resource];
    int64_t peak = r->init_peak.of[resource];
    return run > peak ? run : peak;
}

static int read_containers(struct reading *r, bool init)
{
    struct place place = {.list = init ? "initContainers" : "containers"};
    int rc = expect(r, JKIND_ARRAY, "spec.%s", place.list);
    if (rc <= 0)
        return rc;
    (void)jscan_array(r->s); /* it is one */
    for (; jscan_element(r->s); place.index++) {
        struct amounts take = {0};
        bool sidecar = false;
        if (place.index == CONTAINERS_MAX)
            return error_set(r->err, EINVAL, "spec.%s: more than %d",
                             place.list, CONTAINERS_MAX);
        rc = read_container(r, &place, &take, &sidecar);
        if (rc < 0)
            return rc;
        add_container(r, init, sidecar, &take);
    }
    return r->s->fault ? fail_json(r) : 0;
}

static int read_priority(struct reading *r)
{
    int rc = expect(r, JKIND_NUMBER, "spec.priority");
    if (rc <= 0)
        return rc;
    struct jtext raw;
    struct jscan number;
    if (!jscan_raw(r->s, &raw))
        return fail_json(r);
    jscan_init(&number, raw.data, raw.size);
    if (!jscan_int64(&number, &r->pod->priority))
        return error_set(r->err, EINVAL,
                         "spec.priority: is %.*s, must be a whole number",
                         (int)raw.size, raw.data); /* the scanner's cap */
    return 0;
}

static int read_spec(struct reading *r)
{
    enum { GROUP, PRIORITY, CONTAINERS, INIT_CONTAINERS, MEMBERS };
    static const struct contract members[MEMBERS] = {
        {KEY("schedulingGroup"), "spec.schedulingGroup"},
        {KEY("priority"), "spec.priority"},
        {KEY("containers"), "spec.containers"},
        {KEY("initContainers"), "spec.initContainers"},
    };
    int rc = expect(r, JKIND_OBJECT, "spec");
    if (rc <= 0)
        return rc;
    struct jtext key;
    uint32_t seen = 0;
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        unsigned m = 0;
        while (m < MEMBERS && !is_key(&key, &members[m].key))
            m++;
        if (m == MEMBERS) {
            (void)jscan_skip(r->s); /* a fault ends the loop */
            continue;
        }
        rc = note_once(r, &seen, m, "%s", members[m].path);
        if (rc == 0)
            rc = m == GROUP ? read_map(r, members[m].path, POD_GROUP, POD_GROUP)
                 : m == PRIORITY ? read_priority(r)
                                 : read_containers(r, m == INIT_CONTAINERS);
        if (rc < 0)
            return rc;
    }
    return r->s->fault ? fail_json(r) : 0;
}

static int read_pod(struct reading *r)
{
    enum { METADATA, SPEC };
    struct jtext key;
    uint32_t seen = 0;
    int rc = expect(r, JKIND_OBJECT, "the pod");
    if (rc <= 0)
        return rc < 0 ? rc
                      : error_set(r->err, EINVAL, "the pod: must be an object");
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        rc = 0;
        if (IS_KEY(&key, "metadata")) {
            rc = note_once(r, &seen, METADATA, "metadata");
            if (rc == 0)
                rc = read_metadata(r);
        } else if (IS_KEY(&key, "spec")) {
            rc = note_once(r, &seen, SPEC, "spec");
            if (rc == 0)
                rc = read_spec(r);
        } else {
            (void)jscan_skip(r->s); /* a fault ends the loop */
        }
        if (rc < 0)
            return rc;
    }
    return r->s->fault ? fail_json(r) : 0;
}

int pod_read(struct jscan *s,
             const char (*gpu_resources)[GPU_RESOURCE_NAME_MAX + 1],
             unsigned n_gpu_resources, struct pod *ret_pod, struct error *err)
{
    struct pod pod;
    memset(&pod, 0, offsetof(struct pod, bad) + sizeof pod.bad.code);
    struct reading r = {.s = s, .err = err, .pod = &pod};
    memcpy(r.resources, resource_names, sizeof resource_names);
    r.n_resources = POD_GPUS + n_gpu_resources;
    for (unsigned i = POD_GPUS; i < r.n_resources; i++) {
        const char *name = gpu_resources[i - POD_GPUS];
        r.resources[i] = (struct jtext){name, strlen(name), false};
    }
    int rc = read_pod(&r);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < POD_RESOURCE_COUNT; i++)
        pod.take[i] = effective(&r, i);
    *ret_pod = pod;
    return 0;
}
