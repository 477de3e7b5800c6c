#include "extender/fit/pod_needs.h"

#include <string.h>

#include "extender/fit/decimal.h"
#include "lib/base/hash.h"
#include "lib/base/jrow.h"
#include "lib/base/refs.h"

/* What decides is to be of its type: taken for absent, it would let a pod be
 * anywhere. */
#define WITHIN(key, rows) JROW_OBJECT(key, JROW_NULLABLE, rows)
#define EACH(key, read) JROW_EACH(key, JROW_NULLABLE, read)
#define TEXT(key, type, field) JROW(key, JROW_NULLABLE, jrow_text, type, field)

/* --- lists that grow, and then are part of the needs ---------------------- */

struct list {
    char *data;
    size_t n, cap;
};

static void *list_add(struct list *l, size_t size)
{
    l->data = xgrow(l->data, l->n, &l->cap, size);
    return memset(l->data + l->n++ * size, 0, size);
}

static const void *list_end(struct list *l, struct arena *a, size_t size)
{
    void *kept = NULL;
    if (l->n)
        kept = memcpy(arena_alloc(a, l->n * size), l->data, l->n * size);
    free(l->data);
    l->data = NULL;
    return kept;
}

static const char *copy(struct arena *a, const struct jtext *text)
{
    char *plain = arena_alloc(a, text->size + 1);
    if (text->data)
        (void)jtext_decode(text, plain);
    return plain;
}

/* --- node affinity ------------------------------------------------------ */

struct reading {
    struct arena *memory;
    struct list selector, terms, tolerations;
    bool has_affinity;
    unsigned unjudged;
};

/* A requirement and a term on their way. */
struct requirement {
    struct arena *memory;
    struct jtext key, operator;
    struct list values;
};

struct term {
    struct arena *memory;
    struct list labels, fields;
    struct jtext json_labels, json_fields;
};

static void read_value(struct jscan *s, void *to)
{
    struct requirement *q = to;
    struct jtext text;
    size_t at = jscan_offset(s);
    if (!jscan_string(s, &text))
        return;
    if (q->values.n == POD_NEEDS_VALUES_MAX) {
        jscan_fail(s, "more than 16384 values of one requirement", at);
        return;
    }
    const char **value = list_add(&q->values, sizeof *value);
    *value = copy(q->memory, &text);
}

static const struct jrow requirement_rows[] = {
    TEXT("key", struct requirement, key),
    TEXT("operator", struct requirement, operator),
    EACH("values", read_value),
    JROW_END,
};

static enum needs_operator operator_of(const struct jtext *name)
{
    static const char *const names[NEEDS_NEVER] = {
        "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
    unsigned i = 0;
    while (i < NEEDS_NEVER && !(name->data && jtext_is(name, names[i])))
        i++;
    return (enum needs_operator)i;
}

/* By the rules of k8s.io/apimachinery, labels.NewRequirement: what is against
 * them is met nowhere. */
static bool is_sound(const struct needs_requirement *q, bool of_fields)
{
    int64_t number;
    switch (q->op) {
    case NEEDS_IN:
    case NEEDS_NOT_IN:
        return of_fields ? q->n_values == 1 : q->n_values > 0;
    case NEEDS_EXISTS:
    case NEEDS_DOES_NOT_EXIST:
        return !of_fields && q->n_values == 0;
    case NEEDS_GT:
    case NEEDS_LT:
        return !of_fields && q->n_values == 1 &&
               decimal_parse(q->values[0], &number);
    case NEEDS_NEVER:
        break;
    }
    return false;
}

/* The array under the cursor, into `to`; `raw` is its text. */
static void read_requirements(struct jscan *s, struct term *t, struct list *to,
                              struct jtext *raw)
{
    (void)jscan_peek(s); /* white space */
    const char *from = s->p;
    if (!jscan_array(s))
        return;
    while (jscan_element(s)) {
        struct requirement q = {.memory = t->memory};
        size_t at = jscan_offset(s);
        (void)jrow_read(s, JROW_STRICT, requirement_rows, &q);
        size_t n_values = q.values.n;
        const char *const *values = list_end(&q.values, t->memory,
                                             sizeof *values);
        if (to->n == POD_NEEDS_REQUIREMENTS_MAX)
            jscan_fail(s, "more than 64 requirements of one term", at);
        if (s->fault)
            return;
        struct needs_requirement *kept = list_add(to, sizeof *kept);
        kept->key = copy(t->memory, &q.key);
        kept->op = operator_of(&q.operator);
        kept->values = values;
        kept->n_values = n_values;
        if (!is_sound(kept, to == &t->fields))
            kept->op = NEEDS_NEVER;
    }
    *raw = (struct jtext){.data = from, .size = (size_t)(s->p - from)};
}

static void read_expressions(struct jscan *s, void *to)
{
    struct term *t = to;
    read_requirements(s, t, &t->labels, &t->json_labels);
}

static void read_fields(struct jscan *s, void *to)
{
    struct term *t = to;
    read_requirements(s, t, &t->fields, &t->json_fields);
}

static const struct jrow term_rows[] = {
    JROW_CALL("matchExpressions", JROW_NULLABLE, JKIND_ARRAY, read_expressions),
    JROW_CALL("matchFields", JROW_NULLABLE, JKIND_ARRAY, read_fields),
    JROW_END,
};

static void read_term(struct jscan *s, void *to)
{
    struct reading *r = to;
    struct term t = {.memory = r->memory};
    size_t at = jscan_offset(s);
    bool whole = jrow_read(s, JROW_STRICT, term_rows, &t);
    struct needs_term kept = {
        .n_labels = t.labels.n,
        .n_fields = t.fields.n,
        .labels = list_end(&t.labels, r->memory, sizeof *kept.labels),
        .fields = list_end(&t.fields, r->memory, sizeof *kept.fields),
    };
    if (!whole)
        return; /* a fault sticks, and what was read before it is half */
    if (kept.n_labels)
        kept.json_labels = arena_strndup(r->memory, t.json_labels.data,
                                         t.json_labels.size);
    if (kept.n_fields)
        kept.json_fields = arena_strndup(r->memory, t.json_fields.data,
                                         t.json_fields.size);
    if (r->terms.n == POD_NEEDS_TERMS_MAX)
        jscan_fail(s, "more than 32 terms of node affinity", at);
    else
        memcpy(list_add(&r->terms, sizeof kept), &kept, sizeof kept);
}

static const struct jrow required_rows[] = {
    EACH("nodeSelectorTerms", read_term),
    JROW_END,
};

static void read_required(struct jscan *s, void *to)
{
    ((struct reading *)to)->has_affinity = true;
    (void)jrow_read(s, JROW_STRICT, required_rows, to); /* a fault sticks */
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
static const struct jrow node_affinity_rows[] = {
    JROW_CALL(REQUIRED, JROW_NULLABLE, JKIND_OBJECT, read_required),
    JROW_END,
};

static void read_pod_term(struct jscan *s, void *to)
{
    ((struct reading *)to)->unjudged |= NEEDS_PODS;
    (void)jscan_skip(s); /* a fault sticks */
}

static const struct jrow pod_affinity_rows[] = {
    EACH(REQUIRED, read_pod_term),
    JROW_END,
};
static const struct jrow affinity_rows[] = {
    WITHIN("nodeAffinity", node_affinity_rows),
    WITHIN("podAffinity", pod_affinity_rows),
    WITHIN("podAntiAffinity", pod_affinity_rows),
    JROW_END,
};

/* --- the other parts of the spec ----------------------------------------- */

static void read_selector(struct jscan *s, void *to)
{
    struct reading *r = to;
    struct jtext key, value;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (!jscan_string(s, &value))
            return;
        if (r->selector.n == POD_NEEDS_SELECTOR_MAX) {
            jscan_fail(s, "spec.nodeSelector: more than 64 members",
                       jscan_offset(s));
            return;
        }
        const char **values = arena_alloc(r->memory, sizeof *values);
        *values = copy(r->memory, &value);
        struct needs_requirement *q = list_add(&r->selector, sizeof *q);
        *q = (struct needs_requirement){copy(r->memory, &key), NEEDS_IN, values,
                                        1};
    }
}

struct toleration {
    struct jtext key, value, effect, operator;
};

static const struct jrow toleration_rows[] = {
    TEXT("key", struct toleration, key),
    TEXT("value", struct toleration, value),
    TEXT("effect", struct toleration, effect),
    TEXT("operator", struct toleration, operator),
    JROW_END,
};

static enum needs_toleration_operator tolerates(const struct jtext *name)
{
    static const char *const names[NEEDS_TOLERATES_NONE] = {"Equal", "Exists",
                                                            "Lt", "Gt"};
    unsigned i = 0;
    if (!name->size)
        return NEEDS_EQUAL;
    while (i < NEEDS_TOLERATES_NONE && !jtext_is(name, names[i]))
        i++;
    return (enum needs_toleration_operator)i;
}

static void read_toleration(struct jscan *s, void *to)
{
    struct toleration t = {0};
    struct reading *r = to;
    size_t at = jscan_offset(s);
    (void)jrow_read(s, JROW_STRICT, toleration_rows, &t); /* a fault sticks */
    if (r->tolerations.n == POD_NEEDS_TOLERATIONS_MAX) {
        jscan_fail(s, "spec.tolerations: more than 256", at);
        return;
    }
    struct needs_toleration *kept = list_add(&r->tolerations, sizeof *kept);
    kept->key = copy(r->memory, &t.key);
    kept->value = copy(r->memory, &t.value);
    kept->effect = copy(r->memory, &t.effect);
    kept->op = tolerates(&t.operator);
}

static const struct jrow spread_rows[] = {
    TEXT("whenUnsatisfiable", struct toleration, operator),
    JROW_END,
};

static void read_spread(struct jscan *s, void *to)
{
    struct toleration t = {0};
    (void)jrow_read(s, JROW_STRICT, spread_rows, &t); /* a fault sticks */
    if (t.operator.data && jtext_is(&t.operator, "DoNotSchedule"))
        ((struct reading *)to)->unjudged |= NEEDS_SPREAD;
}

static void read_volume_claim(struct jscan *s, void *to)
{
    ((struct reading *)to)->unjudged |= NEEDS_VOLUMES;
    (void)jscan_skip(s); /* a fault sticks */
}

static const struct jrow volume_rows[] = {
    JROW_CALL("persistentVolumeClaim", JROW_LAX, JKIND_OBJECT,
              read_volume_claim),
    JROW_CALL("ephemeral", JROW_LAX, JKIND_OBJECT, read_volume_claim),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW_CALL("nodeSelector", JROW_NULLABLE, JKIND_OBJECT, read_selector),
    WITHIN("affinity", affinity_rows),
    EACH("tolerations", read_toleration),
    EACH("topologySpreadConstraints", read_spread),
    JROW_OBJECTS("volumes", JROW_LAX, volume_rows),
    JROW_END,
};
static const struct jrow rows[] = {
    WITHIN("spec", spec_rows),
    JROW_END,
};

/* --- begin and end ------------------------------------------------------ */

static int read_takes(const char *json, size_t size, struct pod_needs *n,
                      struct error *err)
{
    int rc = pod_takes_read(json, size, &n->takes, err);
    if (rc == 0 && n->takes.more)
        rc = error_set(err, EINVAL, "the pod asks for %s", n->takes.more);
    return rc;
}

static int read_spec(const char *json, size_t size, struct pod_needs *n,
                     struct error *err)
{
    struct jscan s;
    struct reading r = {.memory = &n->memory};
    jscan_init_kube(&s, json, size);
    int rc = jrow_parse(&s, JROW_STRICT, rows, &r, err);
    n->n_selector = r.selector.n;
    n->n_terms = r.terms.n;
    n->n_tolerations = r.tolerations.n;
    n->selector = list_end(&r.selector, &n->memory, sizeof *n->selector);
    n->terms = list_end(&r.terms, &n->memory, sizeof *n->terms);
    n->tolerations = list_end(&r.tolerations, &n->memory,
                              sizeof *n->tolerations);
    n->has_affinity = r.has_affinity;
    n->unjudged = r.unjudged;
    return rc;
}

int pod_needs_read(const char *json, size_t size, struct pod_needs **ret_needs,
                   struct error *err)
{
    cleanup_with(pod_needs) struct pod_needs *n = xcalloc(1, sizeof *n);
    cleanup_str struct str all = STR_INIT(STR_MAX_DEFAULT);
    atomic_init(&n->refs, 1);
    int rc = read_takes(json, size, n, err);
    if (rc == 0)
        rc = read_spec(json, size, n, err);
    if (rc < 0)
        return rc;
    pod_needs_write(n, &all);
    n->all_size = all.size;
    n->hash = hash_bytes(str_text(&all), all.size);
    n->all = str_steal(&all);
    *ret_needs = steal(&n);
    return 0;
}

DEFINE_REF(pod_needs_ref, struct pod_needs)

void pod_needs_unref(struct pod_needs *n)
{
    if (!n || !refs_drop(&n->refs))
        return;
    pod_takes_fini(&n->takes);
    arena_fini(&n->memory);
    free(n->all);
    free(n);
}

bool pod_needs_equal(const struct pod_needs *a, const struct pod_needs *b)
{
    return a == b || (a->hash == b->hash && a->all_size == b->all_size &&
                      memcmp(a->all, b->all, a->all_size) == 0);
}
