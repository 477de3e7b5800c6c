#include "extender/pods/kube_pod.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/jrow.h"
#include "lib/base/mem.h"
#include "model/pod/quantity.h"

/* Members of another type than expected count as absent: what they mean is
 * the API server's affair. */
#define TEXT(key, field) JROW(key, JROW_LAX, jrow_copy, struct kube_pod, field)
#define WITHIN(key, rows) JROW_OBJECT(key, JROW_LAX, rows)
#define EACH(key, read) JROW_EACH(key, JROW_LAX, read)
#define CALL(key, kind, read) JROW_CALL(key, JROW_LAX, kind, read)

/* --- scanning what is not ours ---------------------------------------------
 *
 * Members of another type than expected count as absent: what they mean is
 * the API server's affair.  A fault of the JSON sticks to the scanner. */

static bool enter_object(struct jscan *s)
{
    if (jscan_peek(s) == JKIND_OBJECT)
        return jscan_object(s);
    (void)jscan_skip(s); /* a fault sticks */
    return false;
}

static bool enter_array(struct jscan *s)
{
    if (jscan_peek(s) == JKIND_ARRAY)
        return jscan_array(s);
    (void)jscan_skip(s); /* the same */
    return false;
}

static bool take_string(struct jscan *s, struct jtext *ret)
{
    if (jscan_peek(s) == JKIND_STRING)
        return jscan_string(s, ret);
    (void)jscan_skip(s); /* the same */
    return false;
}

/* A string that fits `cap` bytes with its NUL; else `dst` stays as it is. */
static bool copy_text(const struct jtext *text, char *dst, size_t cap)
{
    if (text->size >= cap)
        return false;
    (void)jtext_decode(text, dst);
    return true;
}

static bool copy_string(struct jscan *s, char *dst, size_t cap)
{
    struct jtext text;
    return take_string(s, &text) && copy_text(&text, dst, cap);
}
#define COPY_STRING(s, field) copy_string(s, field, sizeof(field))

/* --- requests ----------------------------------------------------------- */

struct request {
    int64_t cpu, memory; /* both in thousandths; -1: not stated */
};

struct requests {
    struct request containers; /* sum, with sidecars */
    struct request sidecars;   /* sum of those so far */
    struct request init_peak;
    struct request pod; /* of spec.resources */
    struct request overhead;
};

static int64_t add(int64_t a, int64_t b)
{
    return b <= 0 ? a : a > INT64_MAX - b ? INT64_MAX : a + b;
}

static void request_add(struct request *sum, const struct request *r)
{
    sum->cpu = add(sum->cpu, r->cpu);
    sum->memory = add(sum->memory, r->memory);
}

static void request_raise(struct request *to, const struct request *r)
{
    if (to->cpu < r->cpu)
        to->cpu = r->cpu;
    if (to->memory < r->memory)
        to->memory = r->memory;
}

static void read_quantity(struct jscan *s, int64_t *ret)
{
    struct jtext text;
    int64_t milli;
    if (jscan_peek(s) == JKIND_STRING ? !jscan_string(s, &text)
                                      : !jscan_raw(s, &text))
        return;
    if (quantity_parse(text.data, text.size, &milli))
        *ret = milli;
}

/* {"cpu":"1","memory":"1Gi"} */
static void read_amounts(struct jscan *s, struct request *ret)
{
    struct jtext key;
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "cpu"))
            read_quantity(s, &ret->cpu);
        else if (jtext_is(&key, "memory"))
            read_quantity(s, &ret->memory);
        else
            (void)jscan_skip(s); /* a fault ends the loop */
    }
}

/* {"requests":{…}}: the API server has put limits there that stand alone. */
static void read_resources(struct jscan *s, struct request *ret)
{
    struct jtext key;
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "requests"))
            read_amounts(s, ret);
        else
            (void)jscan_skip(s); /* a fault ends the loop */
    }
}

static void read_container(struct jscan *s, struct request *ret,
                           bool *ret_sidecar)
{
    struct jtext key, policy;
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "resources"))
            read_resources(s, ret);
        else if (jtext_is(&key, "restartPolicy"))
            *ret_sidecar = take_string(s, &policy) &&
                           jtext_is(&policy, "Always");
        else
            (void)jscan_skip(s); /* a fault ends the loop */
    }
}

/* As k8s.io/component-helpers/resource, PodRequests: containers run together;
 * an init container runs beside the sidecars started before it. */
static void read_containers(struct jscan *s, bool init, struct requests *r)
{
    if (!enter_array(s))
        return;
    while (jscan_element(s)) {
        struct request take = {-1, -1};
        bool sidecar = false;
        read_container(s, &take, &sidecar);
        if (!init || sidecar)
            request_add(&r->containers, &take);
        if (!init)
            continue;
        struct request now = r->sidecars;
        request_add(&now, &take);
        if (sidecar)
            r->sidecars = now;
        request_raise(&r->init_peak, &now);
    }
}

static void requests_finish(const struct requests *r, struct kube_pod *pod)
{
    struct request all = r->containers;
    request_raise(&all, &r->init_peak);
    if (r->pod.cpu >= 0) /* stated for the pod as a whole */
        all.cpu = r->pod.cpu;
    if (r->pod.memory >= 0)
        all.memory = r->pod.memory;
    request_add(&all, &r->overhead);
    pod->cpu_milli = all.cpu;
    pod->memory_kib = quantity_kib(all.memory);
}

/* --- metadata ----------------------------------------------------------- */

/* Texts that are too long are none of ours, and stay empty. */
struct owner {
    char kind[16], api[16];
    char name[sizeof((struct kube_pod *)0)->owner_name];
    char uid[sizeof((struct kube_pod *)0)->owner_uid];
};

static const struct jrow owner_rows[] = {
    JROW("kind", JROW_LAX, jrow_copy, struct owner, kind),
    JROW("apiVersion", JROW_LAX, jrow_copy, struct owner, api),
    JROW("name", JROW_LAX, jrow_copy, struct owner, name),
    JROW("uid", JROW_LAX, jrow_copy, struct owner, uid),
    JROW_END,
};

static void read_owner(struct jscan *s, void *to)
{
    struct owner o = {0};
    struct kube_pod *pod = to;
    (void)jrow_read(s, JROW_LAX, owner_rows, &o); /* a fault sticks */
    if (strcmp(o.kind, "Pod") != 0 || strcmp(o.api, "v1") != 0 || !o.uid[0] ||
        pod->owner_uid[0])
        return;
    memcpy(pod->owner_name, o.name, sizeof o.name);
    memcpy(pod->owner_uid, o.uid, sizeof o.uid);
}

static void read_deletion(struct jscan *s, void *to)
{
    ((struct kube_pod *)to)->deleting = !jscan_null(s) && jscan_skip(s);
}

static const struct jrow annotation_rows[] = {
    JROW(WORD_ALLOCATION, JROW_LAX, jrow_text, struct kube_pod, allocation),
    TEXT("biga.dev/buddy", buddy),
    JROW_END,
};

static const struct jrow metadata_rows[] = {
    TEXT("name", demand.name), /* these three are checked at the end */
    TEXT("namespace", demand.namespace),
    TEXT("uid", demand.uid),
    TEXT("resourceVersion", resource_version),
    WITHIN("annotations", annotation_rows),
    EACH("ownerReferences", read_owner),
    CALL("deletionTimestamp", JKIND_NONE, read_deletion),
    JROW_END,
};

/* --- spec and status ---------------------------------------------------- */

static bool has_elements(struct jscan *s)
{
    bool any = false;
    if (!enter_array(s))
        return false;
    for (; jscan_element(s); any = true)
        (void)jscan_skip(s); /* a fault ends the loop */
    return any;
}

static void read_spec(struct jscan *s, struct kube_pod *pod, struct requests *r)
{
    struct jtext key;
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "nodeName"))
            (void)COPY_STRING(s, pod->node); /* too long: no such node */
        else if (jtext_is(&key, "schedulerName"))
            (void)COPY_STRING(s, pod->scheduler); /* the same */
        else if (jtext_is(&key, "schedulingGates"))
            pod->gated = has_elements(s);
        else if (jtext_is(&key, "containers"))
            read_containers(s, false, r);
        else if (jtext_is(&key, "initContainers"))
            read_containers(s, true, r);
        else if (jtext_is(&key, "overhead"))
            read_amounts(s, &r->overhead);
        else if (jtext_is(&key, "resources"))
            read_resources(s, &r->pod);
        else
            (void)jscan_skip(s); /* a fault ends the loop */
    }
}

static void read_phase(struct jscan *s, void *to)
{
    static const char *const names[POD_PHASE_UNKNOWN] = {"Pending", "Running",
                                                         "Succeeded", "Failed"};
    struct jtext text;
    unsigned phase = 0;
    if (!jscan_string(s, &text))
        return;
    while (phase < POD_PHASE_UNKNOWN && !jtext_is(&text, names[phase]))
        phase++;
    ((struct kube_pod *)to)->phase = (enum pod_phase)phase;
}

static uint64_t text_hash(const struct jtext *text)
{
    cleanup_free char *plain = xmalloc(text->size + 1);
    return hash_bytes(plain, text->data ? jtext_decode(text, plain) : 0);
}

struct condition {
    struct jtext type, status, message, reason;
};

static const struct jrow condition_rows[] = {
    JROW("type", JROW_LAX, jrow_text, struct condition, type),
    JROW("status", JROW_LAX, jrow_text, struct condition, status),
    JROW("message", JROW_LAX, jrow_text, struct condition, message),
    JROW("reason", JROW_LAX, jrow_text, struct condition, reason),
    JROW_END,
};

static void read_condition(struct jscan *s, void *to)
{
    struct condition c = {0};
    struct kube_pod *pod = to;
    (void)jrow_read(s, JROW_LAX, condition_rows, &c); /* a fault sticks */
    bool is_true = c.status.data && jtext_is(&c.status, "True");
    if (!c.type.data)
        return;
    if (jtext_is(&c.type, "Ready"))
        pod->ready = pod->ready || is_true;
    else if (jtext_is(&c.type, "PodScheduled"))
        pod->unschedulable = !is_true && c.reason.data &&
                             jtext_is(&c.reason, "Unschedulable");
    else if (jtext_is(&c.type, KUBE_POD_XPU_READY)) {
        pod->xpu_ready = is_true;
        bool no_buddy = c.reason.data && jtext_is(&c.reason, KUBE_POD_NO_BUDDY);
        pod->no_buddy = no_buddy ? text_hash(&c.message) : 0;
    } else if (jtext_is(&c.type, KUBE_POD_PAIRED) && is_true &&
               c.message.data &&
               c.message.size < sizeof pod->paired_uid) /* else no UID */
        (void)jtext_decode(&c.message, pod->paired_uid);
}

static void read_restarts(struct jscan *s, void *to)
{
    struct kube_pod *pod = to;
    int64_t n;
    if (jscan_int64(s, &n) && n > 0)
        pod->restarts = (uint32_t)(n > UINT32_MAX - pod->restarts
                                       ? UINT32_MAX
                                       : pod->restarts + n);
}

static const struct jrow container_status_rows[] = {
    CALL("restartCount", JKIND_NUMBER, read_restarts),
    JROW_END,
};

static const struct jrow status_rows[] = {
    CALL("phase", JKIND_STRING, read_phase),
    TEXT("nominatedNodeName", nominated),
    EACH("conditions", read_condition),
    JROW_OBJECTS("containerStatuses", JROW_LAX, container_status_rows),
    JROW_END,
};

/* --- the whole ---------------------------------------------------------- */

static int read_object(const char *json, size_t size, struct kube_pod *pod,
                       struct error *err)
{
    struct jscan s;
    struct jtext key;
    struct requests requests = {.pod = {-1, -1}};
    jscan_init_kube(&s, json, size);
    if (!enter_object(&s) && !s.fault)
        return error_set(err, EINVAL, "the pod: must be an object");
    while (jscan_member(&s, &key)) {
        if (jtext_is(&key, "metadata"))
            (void)jrow_read(&s, JROW_LAX, metadata_rows, pod);
        else if (jtext_is(&key, "spec"))
            read_spec(&s, pod, &requests);
        else if (jtext_is(&key, "status"))
            (void)jrow_read(&s, JROW_LAX, status_rows, pod);
        else
            (void)jscan_skip(&s); /* a fault ends the loop */
    }
    if (!jscan_end(&s))
        return jscan_error(&s, err);
    requests_finish(&requests, pod);
    return 0;
}

static int check_names(const struct kube_pod *pod, struct error *err)
{
    const struct {
        const char *path, *value;
        int max;
    } names[] = {
        {"metadata.name", pod->demand.name, DEMAND_NAME_MAX},
        {"metadata.namespace", pod->demand.namespace, DEMAND_NAMESPACE_MAX},
        {"metadata.uid", pod->demand.uid, DEMAND_UID_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!names[i].value[0])
            return error_set(err, EINVAL, "%s: must have 1 to %d bytes",
                             names[i].path, names[i].max);
    return 0;
}

int kube_pod_read(const char *json, size_t size,
                  const struct demand_config *config, struct kube_pod *ret_pod,
                  struct error *err)
{
    struct kube_pod pod = {.phase = POD_PHASE_UNKNOWN, .xpu_ready = -1};
    int r = read_object(json, size, &pod, err);
    if (r == 0)
        r = check_names(&pod, err);
    if (r < 0)
        return r;
    struct jscan s;
    struct demand demand;
    jscan_init_kube(&s, json, size);
    pod.broken = demand_read(&s, config, &demand, &pod.why) < 0;
    if (!pod.broken) {
        /* which has no names that are not sound, when nothing hangs on them */
        memcpy(demand.name, pod.demand.name, sizeof demand.name);
        memcpy(demand.namespace, pod.demand.namespace, sizeof demand.namespace);
        memcpy(demand.uid, pod.demand.uid, sizeof demand.uid);
        pod.demand = demand;
    }
    /* most pods of a cluster have no key of ours, right or wrong */
    if (memmem(json, size, "biga.dev", 8)) {
        jscan_init_kube(&s, json, size);
        (void)pod_keys_check(&s, &pod.odd); /* that it is JSON is known */
    }
    *ret_pod = pod;
    return 0;
}

bool kube_pod_is_finished(const struct kube_pod *pod)
{
    return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}
