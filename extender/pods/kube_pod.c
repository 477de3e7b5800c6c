#include "extender/pods/kube_pod.h"

#include <errno.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/jrow.h"
#include "lib/base/mem.h"
#include "model/pod/patience.h"
#include "model/pod/quantity.h"

enum { ANNOTATION_MAX = 1 << 18 }; /* bytes: what the API server allows */

/* Members of another type than expected count as absent: what they mean is
 * the API server's affair. */
#define TEXT(key, field) JROW(key, JROW_LAX, jrow_copy, struct kube_pod, field)
#define WITHIN(key, rows) JROW_OBJECT(key, JROW_LAX, rows)
#define EACH(key, read) JROW_EACH(key, JROW_LAX, read)
#define CALL(key, kind, read) JROW_CALL(key, JROW_LAX, kind, read)

/* --- requests ----------------------------------------------------------- */

struct request {
    int64_t cpu, memory; /* both in thousandths; -1: not stated */
};

struct reading {
    struct kube_pod pod;       /* stands first: its rows serve for both */
    struct request containers; /* sum, with sidecars */
    struct request sidecars;   /* sum of those so far */
    struct request init_peak;
    struct request whole; /* of spec.resources */
    struct request overhead;
    struct jtext own_reason, own_message;     /* of the pod's status */
    struct jtext ended_reason, ended_message; /* of a container that ended */
};

struct container {
    struct request take;
    struct jtext restart_policy;
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

static void read_quantity(struct jscan *s, void *to)
{
    (void)quantity_scan(s, to); /* what is none counts as not stated */
}

/* {"cpu":"1","memory":"1Gi"} */
#define AMOUNTS(name, type, request)                                      \
    static const struct jrow name[] = {                                   \
        JROW_CALL_TO("cpu", JROW_LAX, JKIND_NONE, read_quantity, type,    \
                     request.cpu),                                        \
        JROW_CALL_TO("memory", JROW_LAX, JKIND_NONE, read_quantity, type, \
                     request.memory),                                     \
        JROW_END,                                                         \
    }
AMOUNTS(container_amounts, struct container, take);
AMOUNTS(pod_amounts, struct reading, whole);
AMOUNTS(overhead_amounts, struct reading, overhead);

/* {"requests":{…}}: the API server has put limits there that stand alone. */
static const struct jrow container_resources[] = {
    WITHIN("requests", container_amounts),
    JROW_END,
};
static const struct jrow pod_resources[] = {
    WITHIN("requests", pod_amounts),
    JROW_END,
};

static const struct jrow container_rows[] = {
    WITHIN("resources", container_resources),
    JROW("restartPolicy", JROW_LAX, jrow_text, struct container,
         restart_policy),
    JROW_END,
};

static void read_container(struct jscan *s, void *to)
{
    struct container c = {.take = {-1, -1}};
    struct reading *r = to;
    if (jrow_read(s, JROW_LAX, container_rows, &c))
        request_add(&r->containers, &c.take);
}

/* As k8s.io/component-helpers/resource, PodRequests: containers run together;
 * an init container runs beside the sidecars started before it. */
static void read_init_container(struct jscan *s, void *to)
{
    struct container c = {.take = {-1, -1}};
    struct reading *r = to;
    struct request now = r->sidecars;
    (void)jrow_read(s, JROW_LAX, container_rows, &c);
    request_add(&now, &c.take);
    request_raise(&r->init_peak, &now);
    if (!c.restart_policy.data || !jtext_is(&c.restart_policy, "Always"))
        return;
    request_add(&r->containers, &c.take);
    r->sidecars = now;
}

static void requests_finish(struct reading *r)
{
    struct request all = r->containers;
    request_raise(&all, &r->init_peak);
    if (r->whole.cpu >= 0) /* stated for the pod as a whole */
        all.cpu = r->whole.cpu;
    if (r->whole.memory >= 0)
        all.memory = r->whole.memory;
    request_add(&all, &r->overhead);
    r->pod.cpu_milli = all.cpu;
    r->pod.memory_kib = quantity_kib(all.memory);
}

/* --- metadata ----------------------------------------------------------- */

/* Texts that are too long are none of ours, and stay empty. */
struct owner {
    char kind[16], api[16];
    char name[sizeof((struct kube_pod *)0)->owner_name];
    char uid[sizeof((struct kube_pod *)0)->owner_uid];
    bool controls;
};

static void read_controls(struct jscan *s, void *to)
{
    (void)jscan_bool(s, &((struct owner *)to)->controls); /* a fault sticks */
}

static const struct jrow owner_rows[] = {
    JROW("kind", JROW_LAX, jrow_copy, struct owner, kind),
    JROW("apiVersion", JROW_LAX, jrow_copy, struct owner, api),
    JROW("name", JROW_LAX, jrow_copy, struct owner, name),
    JROW("uid", JROW_LAX, jrow_copy, struct owner, uid),
    CALL("controller", JKIND_TRUE, read_controls),
    JROW_END,
};

static void read_owner(struct jscan *s, void *to)
{
    struct owner o = {0};
    struct kube_pod *pod = to;
    (void)jrow_read(s, JROW_LAX, owner_rows, &o); /* a fault sticks */
    pod->controlled = pod->controlled || o.controls;
    if (o.controls)
        memcpy(pod->controller_uid, o.uid, sizeof o.uid);
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

static void read_patience(struct jscan *s, void *to)
{
    char text[32];
    struct jtext raw;
    if (!jscan_string(s, &raw) || raw.size >= sizeof text)
        return; /* demand_read() refuses what is none */
    (void)jtext_decode(&raw, text);
    (void)patience_parse(text, &((struct kube_pod *)to)->patience_s);
}

static const struct jrow annotation_rows[] = {
    JROW(WORD_ALLOCATION, JROW_LAX, jrow_text, struct kube_pod, allocation),
    TEXT("biga.dev/buddy", buddy),
    CALL(PATIENCE_KEY, JKIND_STRING, read_patience),
    JROW_END,
};

static const struct jrow metadata_rows[] = {
    TEXT("name", demand.name), /* these three are checked at the end */
    TEXT("namespace", demand.namespace),
    TEXT("uid", demand.uid),
    WITHIN("annotations", annotation_rows),
    EACH("ownerReferences", read_owner),
    CALL("deletionTimestamp", JKIND_NONE, read_deletion),
    TEXT("creationTimestamp", created),
    JROW_END,
};

/* --- spec and status ---------------------------------------------------- */

struct gate {
    char name[sizeof((struct kube_pod *)0)->other_gate];
};

static const struct jrow gate_rows[] = {
    JROW("name", JROW_LAX, jrow_copy, struct gate, name),
    JROW_END,
};

static void read_gate(struct jscan *s, void *to)
{
    struct gate gate = {0};
    struct kube_pod *pod = to;
    (void)jrow_read(s, JROW_LAX, gate_rows, &gate); /* a fault sticks */
    pod->gated = true;
    if (strcmp(gate.name, KUBE_POD_GATE) == 0)
        pod->place_gate = true;
    else if (!pod->other_gate[0])
        memcpy(pod->other_gate, gate.name, sizeof gate.name);
}

static void read_preemption(struct jscan *s, void *to)
{
    struct jtext text;
    if (jscan_string(s, &text))
        ((struct kube_pod *)to)->never_preempts = jtext_is(&text, "Never");
}

static const struct jrow spec_rows[] = {
    TEXT("nodeName", node), /* too long: no such node */
    TEXT("schedulerName", scheduler),
    EACH("schedulingGates", read_gate),
    CALL("preemptionPolicy", JKIND_STRING, read_preemption),
    EACH("containers", read_container),
    EACH("initContainers", read_init_container),
    WITHIN("overhead", overhead_amounts),
    WITHIN("resources", pod_resources),
    JROW_END,
};

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
    char since[sizeof((struct kube_pod *)0)->card_since];
};

static const struct jrow condition_rows[] = {
    JROW("type", JROW_LAX, jrow_text, struct condition, type),
    JROW("status", JROW_LAX, jrow_text, struct condition, status),
    JROW("message", JROW_LAX, jrow_text, struct condition, message),
    JROW("reason", JROW_LAX, jrow_text, struct condition, reason),
    JROW("lastTransitionTime", JROW_LAX, jrow_copy, struct condition, since),
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
    } else if (jtext_is(&c.type, KUBE_POD_CARD_LOST)) {
        pod->card_lost = is_true;
        memcpy(pod->card_since, c.since, sizeof c.since);
        pod->card_text = c.message;
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

struct said {
    struct jtext reason, message;
    char finished[sizeof((struct kube_pod *)0)->finished];
};

static const struct jrow said_rows[] = {
    JROW("reason", JROW_LAX, jrow_text, struct said, reason),
    JROW("message", JROW_LAX, jrow_text, struct said, message),
    JROW("finishedAt", JROW_LAX, jrow_copy, struct said, finished),
    JROW_END,
};

static void read_waiting(struct jscan *s, void *to)
{
    struct said said = {0};
    struct kube_pod *pod = to;
    (void)jrow_read(s, JROW_LAX, said_rows, &said); /* a fault sticks */
    if (pod->reason.data)
        return;
    pod->reason = said.reason;
    pod->message = said.message;
}

static void read_terminated(struct jscan *s, void *to)
{
    struct said said = {0};
    struct reading *r = to;
    (void)jrow_read(s, JROW_LAX, said_rows, &said); /* the same */
    if (strcmp(said.finished, r->pod.finished) > 0) /* RFC 3339, all in UTC */
        memcpy(r->pod.finished, said.finished, sizeof said.finished);
    if (r->ended_reason.data)
        return;
    r->ended_reason = said.reason;
    r->ended_message = said.message;
}

static void take_reason(struct reading *r)
{
    struct kube_pod *pod = &r->pod;
    if (pod->reason.data)
        return;
    bool own = r->own_reason.data != NULL;
    pod->reason = own ? r->own_reason : r->ended_reason;
    pod->message = own ? r->own_message : r->ended_message;
}

static const struct jrow waiting_rows[] = {
    CALL("waiting", JKIND_OBJECT, read_waiting),
    JROW_END,
};
static const struct jrow state_rows[] = {
    CALL("waiting", JKIND_OBJECT, read_waiting),
    CALL("terminated", JKIND_OBJECT, read_terminated),
    JROW_END,
};

static const struct jrow container_status_rows[] = {
    CALL("restartCount", JKIND_NUMBER, read_restarts),
    WITHIN("state", state_rows),
    JROW_END,
};
static const struct jrow init_status_rows[] = {
    WITHIN("state", waiting_rows),
    JROW_END,
};

static const struct jrow status_rows[] = {
    JROW("reason", JROW_LAX, jrow_text, struct reading, own_reason),
    JROW("message", JROW_LAX, jrow_text, struct reading, own_message),
    JROW("podIP", JROW_LAX, jrow_text, struct kube_pod, address),
    JROW_OBJECTS("initContainerStatuses", JROW_LAX, init_status_rows),
    CALL("phase", JKIND_STRING, read_phase),
    TEXT("nominatedNodeName", nominated),
    TEXT("startTime", started),
    EACH("conditions", read_condition),
    JROW_OBJECTS("containerStatuses", JROW_LAX, container_status_rows),
    JROW_END,
};

/* --- the whole ---------------------------------------------------------- */

static const struct jrow rows[] = {
    WITHIN("metadata", metadata_rows),
    WITHIN("spec", spec_rows),
    WITHIN("status", status_rows),
    JROW_END,
};

static int read_object(const char *json, size_t size, struct reading *r,
                       struct error *err)
{
    struct jscan s;
    jscan_init_kube(&s, json, size);
    if (!jrow_read(&s, JROW_LAX, rows, r) && !s.fault)
        return error_set(err, EINVAL, "the pod: must be an object");
    if (!jscan_end(&s))
        return jscan_error(&s, err);
    requests_finish(r);
    take_reason(r);
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
    struct reading r = {
        .pod = {.json = {.data = json, .size = size},
                .phase = POD_PHASE_UNKNOWN,
                .xpu_ready = -1,
                .card_lost = -1,
                .patience_s = -1},
        .whole = {-1, -1},
    };
    int rc = read_object(json, size, &r, err);
    if (rc == 0)
        rc = check_names(&r.pod, err);
    if (rc < 0)
        return rc;
    struct jscan s;
    struct demand demand;
    jscan_init_kube(&s, json, size);
    r.pod.broken = demand_read(&s, config, &demand, &r.pod.why) < 0;
    if (!r.pod.broken) {
        /* demand_read() leaves names empty that break the contract's rules
         * where no decision depends on them; the object has them all */
        memcpy(demand.name, r.pod.demand.name, sizeof demand.name);
        memcpy(demand.namespace, r.pod.demand.namespace,
               sizeof demand.namespace);
        memcpy(demand.uid, r.pod.demand.uid, sizeof demand.uid);
        r.pod.demand = demand;
    }
    /* most pods of a cluster have no key of ours, right or wrong */
    if (memmem(json, size, "biga.dev", 8)) {
        jscan_init_kube(&s, json, size);
        (void)pod_keys_check(&s, &r.pod.odd); /* that it is JSON is known */
    }
    *ret_pod = r.pod;
    return 0;
}

bool kube_pod_is_finished(const struct kube_pod *pod)
{
    return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

bool kube_pod_is_opened(const struct kube_pod *pod)
{
    return !pod->node[0] && !pod->gated && pod->allocation.data;
}

int kube_pod_allocation(const struct kube_pod *pod,
                        struct allocation **ret_allocation, struct error *err)
{
    const struct jtext *raw = &pod->allocation;
    if (!raw->data)
        return error_set(err, ENOENT, "it has no biga.dev/allocation");
    if (raw->size > 2 * ANNOTATION_MAX)
        return error_set(err, EINVAL,
                         "biga.dev/allocation: has %zu bytes, the limit is %d",
                         raw->size, ANNOTATION_MAX);
    cleanup_free char *text = xmalloc(raw->size + 1);
    size_t size = jtext_decode(raw, text);
    struct allocation *a;
    int r = allocation_decode(text, size, &a, err);
    if (r < 0)
        return error_wrap(err, "biga.dev/allocation");
    a->demand.gpus_by_plugin = pod->demand.gpus_by_plugin; /* not written */
    *ret_allocation = a;
    return 0;
}
