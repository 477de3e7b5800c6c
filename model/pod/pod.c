#include "model/pod/pod.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/mem.h"

struct reading;

/* A member that is read; others are skipped. */
struct row {
    struct jtext key;
    const char *path; /* what errors call it; in a container: from there on */
    int (*read)(struct reading *r, const struct row *row);
    const struct row *rows; /* of read_object */
    uint8_t n_rows;
    uint8_t text; /* of read_text: enum pod_text */
};

static int read_text(struct reading *r, const struct row *row);
static int read_object(struct reading *r, const struct row *row);

#define KEY(text)                    \
    {                                \
        text, sizeof text - 1, false \
    }
#define TEXT(field, key, path) \
    [field] = {KEY(key), path, read_text, .text = (field)}
#define LABEL(field, key) TEXT(field, key, "metadata.labels[\"" key "\"]")
#define ANNOTATION(field, key) \
    TEXT(field, key, "metadata.annotations[\"" key "\"]")
static const struct row texts[POD_TEXT_COUNT] = {
    TEXT(POD_NAME, "name", "metadata.name"),
    TEXT(POD_NAMESPACE, "namespace", "metadata.namespace"),
    TEXT(POD_UID, "uid", "metadata.uid"),
    LABEL(POD_ROLE, "biga.dev/role"),
    LABEL(POD_JOB, "biga.dev/job"),
    LABEL(POD_PAIR, "biga.dev/pair"),
    LABEL(POD_JOB_NAME, "batch.kubernetes.io/job-name"),
    LABEL(POD_INDEX_LABEL, "batch.kubernetes.io/job-completion-index"),
    LABEL(POD_REPLICA_JOB, "training.kubeflow.org/job-name"),
    LABEL(POD_REPLICA_INDEX, "training.kubeflow.org/replica-index"),
    ANNOTATION(POD_SIZE, "biga.dev/size"),
    ANNOTATION(POD_CARDS, "biga.dev/cards"),
    ANNOTATION(POD_ALIGN, "biga.dev/align"),
    ANNOTATION(POD_EXCLUSIVE, "biga.dev/exclusive"),
    ANNOTATION(POD_ARCH, "biga.dev/arch"),
    ANNOTATION(POD_PAIR_GPUS, "biga.dev/gpus"),
    ANNOTATION(POD_PAIR_CPUS, "biga.dev/cpus"),
    ANNOTATION(POD_PAIR_MEMORY, "biga.dev/memory-mib"),
    ANNOTATION(POD_WITHIN, "biga.dev/within"),
    ANNOTATION(POD_PREFER_WITHIN, "biga.dev/prefer-within"),
    ANNOTATION(POD_PREFER_ALIGN, "biga.dev/prefer-align"),
    ANNOTATION(POD_SHAPES, "biga.dev/shapes"),
    ANNOTATION(POD_BUDDY, "biga.dev/buddy"),
    ANNOTATION(POD_INDEX_ANNOTATION,
               "batch.kubernetes.io/job-completion-index"),
    TEXT(POD_GROUP, "podGroupName", "spec.schedulingGroup.podGroupName"),
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
    struct amounts containers; /* sum */
    struct amounts sidecars;   /* sum of restartable init containers */
    struct amounts init_peak;
};

const char *pod_text_path(enum pod_text text)
{
    return texts[text].path;
}

const char *pod_text_key(enum pod_text text)
{
    return texts[text].key.data;
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

static int read_text(struct reading *r, const struct row *row)
{
    int rc = expect(r, JKIND_STRING, "%s", row->path);
    if (rc <= 0)
        return rc;
    return jscan_string(r->s, &r->pod->text[row->text]) ? 0 : fail_json(r);
}

static int read_object(struct reading *r, const struct row *row)
{
    struct jtext key;
    uint32_t seen = 0;
    int rc = expect(r, JKIND_OBJECT, "%s", row->path);
    if (rc <= 0)
        return rc;
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        unsigned i = 0;
        while (i < row->n_rows && !is_key(&key, &row->rows[i].key))
            i++;
        if (i == row->n_rows) {
            (void)jscan_skip(r->s); /* a fault ends the loop */
            continue;
        }
        const struct row *member = &row->rows[i];
        if (seen & UINT32_C(1) << i)
            return error_set(r->err, EINVAL, "%s: given twice", member->path);
        seen |= UINT32_C(1) << i;
        if ((rc = member->read(r, member)) < 0)
            return rc;
    }
    return r->s->fault ? fail_json(r) : 0;
}
#define ROWS(its_rows) \
    .read = read_object, .rows = (its_rows), .n_rows = ARRAY_LEN(its_rows)

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

static int read_containers(struct reading *r, const struct row *row)
{
    bool init = row->key.data[0] == 'i';
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

static int read_priority(struct reading *r, const struct row *row)
{
    int rc = expect(r, JKIND_NUMBER, "%s", row->path);
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

static const struct row metadata_rows[] = {
    {KEY("labels"), "metadata.labels", read_object, .rows = &texts[POD_ROLE],
     .n_rows = POD_REPLICA_INDEX - POD_ROLE + 1},
    {KEY("annotations"), "metadata.annotations", read_object,
     .rows = &texts[POD_SIZE], .n_rows = POD_INDEX_ANNOTATION - POD_SIZE + 1},
    {KEY("name"), "metadata.name", read_text, .text = POD_NAME},
    {KEY("namespace"), "metadata.namespace", read_text, .text = POD_NAMESPACE},
    {KEY("uid"), "metadata.uid", read_text, .text = POD_UID},
};
static const struct row spec_rows[] = {
    {KEY("schedulingGroup"), "spec.schedulingGroup", read_object,
     .rows = &texts[POD_GROUP], .n_rows = 1},
    {KEY("priority"), "spec.priority", .read = read_priority},
    {KEY("containers"), "spec.containers", .read = read_containers},
    {KEY("initContainers"), "spec.initContainers", .read = read_containers},
};
static const struct row pod_rows[] = {
    {KEY("metadata"), "metadata", ROWS(metadata_rows)},
    {KEY("spec"), "spec", ROWS(spec_rows)},
};

int pod_read(struct jscan *s,
             const char (*gpu_resources)[GPU_RESOURCE_NAME_MAX + 1],
             unsigned n_gpu_resources, struct pod *ret_pod, struct error *err)
{
    static const struct row row = {.path = "the pod", ROWS(pod_rows)};
    struct pod pod;
    memset(&pod, 0, offsetof(struct pod, bad) + sizeof pod.bad.code);
    struct reading r = {.s = s, .err = err, .pod = &pod};
    memcpy(r.resources, resource_names, sizeof resource_names);
    r.n_resources = POD_GPUS + n_gpu_resources;
    for (unsigned i = POD_GPUS; i < r.n_resources; i++) {
        const char *name = gpu_resources[i - POD_GPUS];
        r.resources[i] = (struct jtext){name, strlen(name), false};
    }
    if (jscan_peek(s) == JKIND_NULL)
        return error_set(err, EINVAL, "%s: must be an object", row.path);
    int rc = read_object(&r, &row);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < POD_RESOURCE_COUNT; i++)
        pod.take[i] = effective(&r, i);
    *ret_pod = pod;
    return 0;
}
