#include "extender/fit/node_match.h"

#include <string.h>

#include "extender/fit/decimal.h"

const char NODE_MATCH_NAME[] = "";

/* Of the label with this key; NULL: there is none. */
static const char *find(struct node_match *m, const char *key)
{
    size_t low = 0, high = m->n_labels;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(m->labels[middle].key, key);
        if (order == 0 && m->labels[middle].value == NODE_MATCH_NAME) {
            m->asked_name = true;
            return m->name;
        }
        if (order == 0)
            return m->labels[middle].value;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool is_among(const struct needs_requirement *q, const char *value)
{
    for (size_t i = 0; i < q->n_values; i++)
        if (strcmp(q->values[i], value) == 0)
            return true;
    return false;
}

/* `value` NULL: the node has no such label. */
static bool meets(const struct needs_requirement *q, const char *value)
{
    int64_t has, than;
    switch (q->op) {
    case NEEDS_IN:
        return value && is_among(q, value);
    case NEEDS_NOT_IN:
        return !value || !is_among(q, value);
    case NEEDS_EXISTS:
        return value;
    case NEEDS_DOES_NOT_EXIST:
        return !value;
    case NEEDS_GT:
    case NEEDS_LT:
        return value && decimal_parse(value, &has) &&
               decimal_parse(q->values[0], &than) &&
               (q->op == NEEDS_GT ? has > than : has < than);
    case NEEDS_NEVER:
        break;
    }
    return false;
}

/* Fields other than metadata.name are empty. */
static bool meets_field(struct node_match *m, const struct needs_requirement *q)
{
    bool is_name = strcmp(q->key, "metadata.name") == 0;
    m->asked_name = m->asked_name || is_name;
    return meets(q, is_name ? m->name : "");
}

static bool meets_term(struct node_match *m, const struct needs_term *t)
{
    for (size_t i = 0; i < t->n_labels; i++)
        if (!meets(&t->labels[i], find(m, t->labels[i].key)))
            return false;
    for (size_t i = 0; i < t->n_fields; i++)
        if (!meets_field(m, &t->fields[i]))
            return false;
    return t->n_labels || t->n_fields;
}

bool node_match_labels(struct node_match *m, const struct pod_needs *needs)
{
    for (size_t i = 0; i < needs->n_selector; i++)
        if (!meets(&needs->selector[i], find(m, needs->selector[i].key)))
            return false;
    for (size_t i = 0; i < needs->n_terms; i++)
        if (meets_term(m, &needs->terms[i]))
            return true;
    return !needs->has_affinity;
}

static bool tolerates(const struct needs_toleration *t,
                      const struct node_taint *taint)
{
    int64_t says, has;
    if ((*t->effect && strcmp(t->effect, taint->effect) != 0) ||
        (*t->key && strcmp(t->key, taint->key) != 0))
        return false;
    switch (t->op) {
    case NEEDS_EQUAL:
        return strcmp(t->value, taint->value) == 0;
    case NEEDS_ANY:
        return true;
    case NEEDS_TAINT_BELOW:
    case NEEDS_TAINT_ABOVE:
        return decimal_parse(t->value, &says) &&
               decimal_parse(taint->value, &has) &&
               (t->op == NEEDS_TAINT_BELOW ? has < says : has > says);
    case NEEDS_TOLERATES_NONE:
        break;
    }
    return false;
}

const struct node_taint *node_match_taints(const struct node_taint *taints,
                                           size_t n,
                                           const struct pod_needs *needs)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < needs->n_tolerations &&
               !tolerates(&needs->tolerations[k], &taints[i]))
            k++;
        if (k == needs->n_tolerations)
            return &taints[i];
    }
    return NULL;
}
