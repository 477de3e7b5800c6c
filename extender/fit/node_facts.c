#include "extender/fit/node_facts.h"

#include <string.h>

#include "extender/fit/pod_takes.h"
#include "lib/base/jrow.h"
#include "model/pod/quantity.h"

#define WITHIN(key, rows) JROW_OBJECT(key, JROW_NULLABLE, rows)
#define TEXT(key, type, field) JROW(key, JROW_NULLABLE, jrow_text, type, field)

/* Lists that grow, and are the facts' own in the end. */
struct reading {
    struct node_facts *facts;
    struct node_taint *taints;
    size_t n_taints, taints_cap;
    struct node_label *labels;
    size_t n_labels, labels_cap;
    struct node_amount *amounts;
    size_t n_amounts, amounts_cap;
};

static const char *copy(struct reading *r, const struct jtext *text)
{
    char *plain = arena_alloc(&r->facts->memory, text->size + 1);
    if (text->data)
        (void)jtext_decode(text, plain);
    return plain;
}

static void read_labels(struct jscan *s, void *to)
{
    struct reading *r = to;
    struct jtext key, value;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key) && jscan_string(s, &value)) {
        if (r->n_labels == NODE_FACTS_LABELS_MAX) {
            jscan_fail(s, "more than 4096 labels", jscan_offset(s));
            return;
        }
        r->labels = xgrow(r->labels, r->n_labels, &r->labels_cap,
                          sizeof *r->labels);
        r->labels[r->n_labels++] = (struct node_label){copy(r, &key),
                                                       copy(r, &value)};
    }
}

struct taint {
    struct jtext key, value, effect;
};

static const struct jrow taint_rows[] = {
    TEXT("key", struct taint, key),
    TEXT("value", struct taint, value),
    TEXT("effect", struct taint, effect),
    JROW_END,
};

static void read_taint(struct jscan *s, void *to)
{
    struct taint t = {0};
    struct reading *r = to;
    size_t at = jscan_offset(s);
    (void)jrow_read(s, JROW_STRICT, taint_rows, &t); /* a fault sticks */
    if (!t.effect.data || (!jtext_is(&t.effect, "NoSchedule") &&
                           !jtext_is(&t.effect, "NoExecute")))
        return;
    if (r->n_taints == NODE_FACTS_TAINTS_MAX) {
        jscan_fail(s, "more than 1024 taints", at);
        return;
    }
    r->taints = xgrow(r->taints, r->n_taints, &r->taints_cap,
                      sizeof *r->taints);
    r->taints[r->n_taints++] = (struct node_taint){
        copy(r, &t.key), copy(r, &t.value), copy(r, &t.effect)};
}

/* Of something that is there: what is no quantity is left out. */
static void read_amounts(struct jscan *s, void *to)
{
    struct reading *r = to;
    struct jtext name;
    int64_t milli;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &name)) {
        if (!quantity_scan(s, &milli) ||
            !(pod_takes_counts(name.data, name.size) ||
              jtext_is(&name, "pods")))
            continue; /* a fault ends the loop */
        if (r->n_amounts == NODE_FACTS_RESOURCES_MAX) {
            jscan_fail(s, "more than 256 resources", jscan_offset(s));
            return;
        }
        r->amounts = xgrow(r->amounts, r->n_amounts, &r->amounts_cap,
                           sizeof *r->amounts);
        r->amounts[r->n_amounts++] = (struct node_amount){
            copy(r, &name), pod_takes_units(name.data, name.size, milli)};
    }
}

static void read_name(struct jscan *s, void *to)
{
    struct jtext text;
    struct node_facts *f = ((struct reading *)to)->facts;
    if (jscan_string(s, &text) && text.size < sizeof f->name)
        (void)jtext_decode(&text, f->name);
}

static void read_unschedulable(struct jscan *s, void *to)
{
    if (!jscan_null(s))
        (void)jscan_bool(s, &((struct reading *)to)->facts->unschedulable);
}

static const struct jrow metadata_rows[] = {
    JROW_CALL("name", JROW_NULLABLE, JKIND_STRING, read_name),
    JROW_CALL("labels", JROW_NULLABLE, JKIND_OBJECT, read_labels),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW_CALL("unschedulable", JROW_STRICT, JKIND_NONE, read_unschedulable),
    JROW_EACH("taints", JROW_NULLABLE, read_taint),
    JROW_END,
};
static const struct jrow status_rows[] = {
    JROW_CALL("allocatable", JROW_NULLABLE, JKIND_OBJECT, read_amounts),
    JROW_END,
};
static const struct jrow rows[] = {
    WITHIN("metadata", metadata_rows),
    WITHIN("spec", spec_rows),
    WITHIN("status", status_rows),
    JROW_END,
};

static int compare_label(const void *a, const void *b)
{
    const struct node_label *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Into the facts' own memory. */
static const void *keep(struct arena *a, void *list, size_t n, size_t size)
{
    void *kept = n ? memcpy(arena_alloc(a, n * size), list, n * size) : NULL;
    free(list);
    return kept;
}

static void finish(struct reading *r)
{
    struct node_facts *f = r->facts;
    if (r->n_labels)
        qsort(r->labels, r->n_labels, sizeof *r->labels, compare_label);
    f->n_labels = r->n_labels;
    f->n_taints = r->n_taints;
    f->n_amounts = r->n_amounts;
    f->labels = keep(&f->memory, r->labels, r->n_labels, sizeof *r->labels);
    f->taints = keep(&f->memory, r->taints, r->n_taints, sizeof *r->taints);
    f->amounts = keep(&f->memory, r->amounts, r->n_amounts, sizeof *r->amounts);
}

int node_facts_read(const char *json, size_t size, struct node_facts *ret_facts,
                    struct error *err)
{
    struct jscan s;
    struct node_facts facts = {0};
    struct reading r = {.facts = &facts};
    jscan_init_kube(&s, json, size);
    int rc = jrow_parse(&s, JROW_STRICT, rows, &r, err);
    finish(&r);
    if (rc == 0 && !facts.name[0])
        rc = error_set(err, EINVAL, "metadata.name: must have 1 to %d bytes",
                       NODE_FACTS_NAME_MAX);
    if (rc < 0)
        node_facts_fini(&facts);
    else
        *ret_facts = facts;
    return rc;
}

void node_facts_fini(struct node_facts *f)
{
    arena_fini(&f->memory);
    memset(f, 0, sizeof *f);
}
