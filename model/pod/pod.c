#include "model/pod/pod.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/pod/patience.h"
#include "model/pod/rights.h"
#include "model/topo/card_rights.h"
#include "model/topo/device_set.h"

struct reading;

/* A member that is read; others are skipped. */
struct row {
    struct jtext key;
    const char *path; /* what errors call it; in a container: from there on */
    int (*read)(struct reading *r, const struct row *row);
    const struct row *rows; /* of read_object */
    uint8_t n_rows;
    uint8_t text; /* of read_text: enum pod_text */
    bool again;   /* may be given twice */
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
    LABEL(POD_JOBSET, "jobset.sigs.k8s.io/jobset-name"),
    LABEL(POD_JOBSET_JOBS, "jobset.sigs.k8s.io/replicatedjob-replicas"),
    LABEL(POD_JOBSET_INDEX, "jobset.sigs.k8s.io/job-index"),
    LABEL(POD_REPLICA_JOB, "training.kubeflow.org/job-name"),
    LABEL(POD_REPLICA_TYPE, "training.kubeflow.org/replica-type"),
    LABEL(POD_REPLICA_INDEX, "training.kubeflow.org/replica-index"),
    ANNOTATION(POD_SIZE, "biga.dev/size"),
    ANNOTATION(POD_CARDS, "biga.dev/cards"),
    ANNOTATION(POD_ALIGN, "biga.dev/align"),
    ANNOTATION(POD_EXCLUSIVE, "biga.dev/exclusive"),
    ANNOTATION(POD_ARCH, "biga.dev/arch"),
    ANNOTATION(POD_DEVICES, DEVICE_SETS_KEY),
    ANNOTATION(POD_PAIR_GPUS, "biga.dev/gpus"),
    ANNOTATION(POD_PAIR_NICS, "biga.dev/nics"),
    ANNOTATION(POD_PAIR_CPUS, "biga.dev/cpus"),
    ANNOTATION(POD_PAIR_MEMORY, "biga.dev/memory-mib"),
    ANNOTATION(POD_WITHIN, "biga.dev/within"),
    ANNOTATION(POD_PREFER_WITHIN, "biga.dev/prefer-within"),
    ANNOTATION(POD_PREFER_ALIGN, "biga.dev/prefer-align"),
    ANNOTATION(POD_SHAPES, "biga.dev/shapes"),
    ANNOTATION(POD_BUDDY, "biga.dev/buddy"),
    ANNOTATION(POD_CARD_LOST, PATIENCE_KEY),
    ANNOTATION(POD_OWN_CARDS, "biga.dev/card"),
    ANNOTATION(POD_OWN_CORES, "biga.dev/card-cores"),
    ANNOTATION(POD_OWN_MEMORY, "biga.dev/card-memory-mib"),
    ANNOTATION(POD_INDEX_ANNOTATION,
               "batch.kubernetes.io/job-completion-index"),
    TEXT(POD_GROUP, "podGroupName", "spec.schedulingGroup.podGroupName"),
};

static const struct jtext resource_names[POD_GPUS] = {
    KEY("biga.dev/card"), KEY("biga.dev/card-cores"),
    KEY("biga.dev/card-memory-mib"), KEY("cpu"), KEY("memory")};

enum {
    SHOWN_MAX = 48, /* bytes of a wrong value that an error repeats */
    CONTAINERS_MAX = 4096,
};

struct amounts {
    int64_t of[POD_RESOURCE_COUNT];
};

enum { REQUESTS, LIMITS, MAPS };
static const char *const map_names[MAPS] = {"requests", "limits"};

struct reading {
    struct jscan *s;
    struct error *err;
    struct pod *pod;
    struct amounts containers; /* sum */
    struct amounts sidecars;   /* sum of restartable init containers */
    struct amounts init_peak;

    /* the container that is being read */
    const char *list; /* "containers"; NULL: none */
    unsigned index;
    unsigned map; /* REQUESTS or LIMITS */
    struct amounts amounts[MAPS];
    uint32_t found[MAPS]; /* bits of resources */
    struct jtext restart_policy;

    uint8_t n_resources;
    struct row resources[POD_RESOURCE_COUNT]; /* last: not zeroed at first */
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

/* The JSON itself is wrong. */
static int fail_json(struct reading *r)
{
    return jscan_error(r->s, r->err);
}

static int refuse(struct reading *r, const struct row *row, const char *what)
{
    char place[48] = "";
    if (r->list)
        (void)snprintf(place, sizeof place, "spec.%s[%u]", r->list, r->index);
    if (row->path)
        return error_set(r->err, EINVAL, "%s%s: %s", place, row->path, what);
    return error_set(r->err, EINVAL, "%s.resources.%s[\"%s\"]: %s", place,
                     map_names[r->map], row->key.data, what);
}

/* What comes next: 1 the wanted kind, 0 nothing (a null, consumed), or an
 * error. */
static int expect(struct reading *r, enum jkind wanted, const struct row *row)
{
    static const char *const words[] = {
        [JKIND_OBJECT] = "must be an object",
        [JKIND_ARRAY] = "must be a list",
        [JKIND_STRING] = "must be a string",
        [JKIND_NUMBER] = "must be a whole number",
    };
    if (jscan_peek(r->s) == wanted)
        return 1;
    if (jscan_null(r->s))
        return 0;
    return r->s->fault ? fail_json(r) : refuse(r, row, words[wanted]);
}

static int read_text(struct reading *r, const struct row *row)
{
    int rc = expect(r, JKIND_STRING, row);
    if (rc <= 0)
        return rc;
    return jscan_string(r->s, &r->pod->text[row->text]) ? 0 : fail_json(r);
}

static int read_object(struct reading *r, const struct row *row)
{
    struct jtext key;
    uint32_t seen = 0;
    int rc = expect(r, JKIND_OBJECT, row);
    if (rc <= 0)
        return rc;
    (void)jscan_object(r->s); /* it is one */
    while (jscan_member(r->s, &key)) {
        const struct row *member = row->rows, *end = member + row->n_rows;
        while (member < end && !is_key(&key, &member->key))
            member++;
        if (member == end) {
            (void)jscan_skip(r->s); /* a fault ends the loop */
            continue;
        }
        uint32_t bit = UINT32_C(1) << (member - row->rows);
        if (seen & bit && !member->again)
            return refuse(r, member, "given twice");
        seen |= bit;
        if ((rc = member->read(r, member)) < 0)
            return rc;
    }
    return r->s->fault ? fail_json(r) : 0;
}
#define ROWS(its_rows) \
    .read = read_object, .rows = (its_rows), .n_rows = ARRAY_LEN(its_rows)

/* --- resources ----------------------------------------------------------- */

static void note_bad_quantity(struct reading *r, const char *name,
                              const struct jtext *t)
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
        "spec.%s[%u].resources.%s[\"%s\"]: is %.*s%s, must be %s", r->list,
        r->index, map_names[r->map], name,
        (int)(t->size < SHOWN_MAX ? t->size : SHOWN_MAX), t->data,
        t->size < SHOWN_MAX ? "" : "…",
        i < ARRAY_LEN(allowed) && allowed[i]
            ? allowed[i]
            : "a whole number of at most 4294967295, with or without one of k, "
              "M, G, Ki, Mi, Gi");
}

/* The quantity that comes next, a string or a number. */
static int read_quantity(struct reading *r, const struct row *row)
{
    const char *name = row->key.data;
    unsigned i = (unsigned)(row - r->resources);
    int64_t *value = &r->amounts[r->map].of[i];
    char decoded[64];
    struct jtext raw, text;
    r->found[r->map] |= UINT32_C(1) << i;
    if (jscan_null(r->s))
        return 0;
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
        note_bad_quantity(r, name, &raw);
    return 0;
}

static int read_amounts(struct reading *r, const struct row *row);
static const struct row resources_rows[MAPS] = {
    [REQUESTS] = {KEY("requests"), ".resources.requests", .read = read_amounts},
    [LIMITS] = {KEY("limits"), ".resources.limits", .read = read_amounts},
};

static int read_amounts(struct reading *r, const struct row *row)
{
    const struct row map = {
        .path = row->path, .rows = r->resources, .n_rows = r->n_resources};
    r->map = (unsigned)(row - resources_rows);
    return read_object(r, &map);
}

static int read_policy(struct reading *r, const struct row *row)
{
    (void)row;
    if (jscan_peek(r->s) == JKIND_STRING)
        (void)jscan_string(r->s, &r->restart_policy); /* a fault sticks */
    else
        (void)jscan_skip(r->s); /* the same */
    return 0;
}

/* --- rights ----------------------------------------------------------------- */

/* What is of another type is refused by who runs the pod. */
static void note_if_true(struct reading *r, uint64_t right)
{
    r->pod->rights |= jscan_peek(r->s) == JKIND_TRUE ? right : 0;
    (void)jscan_skip(r->s); /* a fault sticks */
}

static int read_privileged(struct reading *r, const struct row *row)
{
    (void)row;
    note_if_true(r, CARD_RIGHTS_PRIVILEGED);
    return 0;
}

static int read_host_pid(struct reading *r, const struct row *row)
{
    (void)row;
    note_if_true(r, CARD_RIGHTS_HOST_PID);
    return 0;
}

static int read_host_ipc(struct reading *r, const struct row *row)
{
    (void)row;
    note_if_true(r, CARD_RIGHTS_HOST_IPC);
    return 0;
}

static int read_capabilities(struct reading *r, const struct row *row)
{
    char decoded[64];
    struct jtext text;
    (void)row;
    if (jscan_peek(r->s) != JKIND_ARRAY) {
        (void)jscan_skip(r->s); /* a fault sticks */
        return 0;
    }
    (void)jscan_array(r->s); /* it is one */
    while (jscan_element(r->s)) {
        if (jscan_peek(r->s) != JKIND_STRING) {
            (void)jscan_skip(r->s); /* the same */
            continue;
        }
        if (!jscan_string(r->s, &text))
            break;
        size_t size = text.size < sizeof decoded ? jtext_decode(&text, decoded)
                                                 : 0;
        const char *name = decoded;
        if (size > 4 && memcmp(name, "CAP_", 4) == 0) {
            name += 4;
            size -= 4;
        }
        r->pod->rights |= rights_capability_bits(name, size);
    }
    return 0;
}

static const struct row capability_rows[] = {
    {KEY("add"), "", read_capabilities, .again = true},
};
static const struct row security_rows[] = {
    {KEY("privileged"), "", read_privileged, .again = true},
    {KEY("capabilities"), ".securityContext.capabilities",
     ROWS(capability_rows)},
};

static const struct row container_rows[] = {
    {KEY("resources"), ".resources", ROWS(resources_rows)},
    {KEY("restartPolicy"), "", read_policy, .again = true},
    {KEY("securityContext"), ".securityContext", ROWS(security_rows)},
};

/* Per resource its request, else its limit, as the API server fills in a
 * missing request. */
static struct amounts container_takes(const struct reading *r)
{
    struct amounts take;
    for (unsigned i = 0; i < POD_RESOURCE_COUNT; i++)
        take.of[i] = r->found[REQUESTS] & UINT32_C(1) << i
                         ? r->amounts[REQUESTS].of[i]
                         : r->amounts[LIMITS].of[i];
    return take;
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

static int read_container(struct reading *r, bool init)
{
    static const struct row row = {.path = "", ROWS(container_rows)};
    static const struct jtext always = KEY("Always");
    memset(r->amounts, 0, sizeof r->amounts);
    memset(r->found, 0, sizeof r->found);
    r->restart_policy.data = NULL;
    int rc = read_object(r, &row);
    if (rc < 0)
        return rc;
    struct amounts take = container_takes(r);
    add_container(r, init,
                  r->restart_policy.data && is_key(&r->restart_policy, &always),
                  &take);
    return 0;
}

static int read_containers(struct reading *r, const struct row *row)
{
    int rc = expect(r, JKIND_ARRAY, row);
    if (rc <= 0)
        return rc;
    bool init = row->key.data[0] == 'i';
    (void)jscan_array(r->s); /* it is one */
    for (r->index = 0; jscan_element(r->s); r->index++) {
        if (r->index == CONTAINERS_MAX)
            return error_set(r->err, EINVAL, "%s: more than %d", row->path,
                             CONTAINERS_MAX);
        r->list = row->key.data;
        rc = read_container(r, init);
        r->list = NULL;
        if (rc < 0)
            return rc;
    }
    return r->s->fault ? fail_json(r) : 0;
}

/* --- the whole ----------------------------------------------------------- */

static int read_priority(struct reading *r, const struct row *row)
{
    int rc = expect(r, JKIND_NUMBER, row);
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
    {KEY("hostPID"), "", read_host_pid, .again = true},
    {KEY("hostIPC"), "", read_host_ipc, .again = true},
};
static const struct row pod_rows[] = {
    {KEY("metadata"), "metadata", ROWS(metadata_rows)},
    {KEY("spec"), "spec", ROWS(spec_rows)},
};

static void add_resource(struct reading *r, struct jtext name)
{
    r->resources[r->n_resources++] = (struct row){.key = name,
                                                  .read = read_quantity};
}

int pod_read(struct jscan *s,
             const char (*gpu_resources)[GPU_RESOURCE_NAME_MAX + 1],
             unsigned n_gpu_resources, struct pod *ret_pod, struct error *err)
{
    static const struct row row = {.path = "the pod", ROWS(pod_rows)};
    struct pod pod;
    memset(&pod, 0, offsetof(struct pod, bad) + sizeof pod.bad.code);
    struct reading r;
    memset(&r, 0, offsetof(struct reading, resources));
    r.s = s;
    r.err = err;
    r.pod = &pod;
    for (unsigned i = 0; i < POD_GPUS; i++)
        add_resource(&r, resource_names[i]);
    for (unsigned i = 0; i < n_gpu_resources; i++)
        add_resource(&r, (struct jtext){gpu_resources[i],
                                        strlen(gpu_resources[i]), false});
    if (jscan_peek(s) == JKIND_NULL)
        return refuse(&r, &row, "must be an object");
    int rc = read_object(&r, &row);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < POD_RESOURCE_COUNT; i++)
        pod.take[i] = effective(&r, i);
    *ret_pod = pod;
    return 0;
}
