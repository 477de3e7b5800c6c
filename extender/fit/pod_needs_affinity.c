#include <string.h>

#include "extender/fit/pod_needs.h"
#include "lib/base/jwrite.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

static void write_requirement(const char *node, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "key", "metadata.name");
    jwrite_text(out, "operator", "In");
    jwrite_array(out, "values");
    jwrite_text(out, NULL, node);
    jwrite_end_array(out);
    jwrite_end_object(out);
}

static bool is_pinned(const struct needs_term *t, const char *node)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct needs_requirement *q = &t->fields[i];
        if (strcmp(q->key, "metadata.name") == 0 && q->op == NEEDS_IN &&
            strcmp(q->values[0], node) == 0)
            return true;
    }
    return false;
}

/* What is there stays as it stands, in front. */
static void write_term(const struct needs_term *t, const char *node,
                       struct str *out)
{
    bool adds = (t->n_labels || t->n_fields) && !is_pinned(t, node);
    jwrite_object(out, NULL);
    if (t->n_labels) {
        jwrite_key(out, "matchExpressions");
        str_add(out, t->json_labels);
    }
    if (t->n_fields || adds)
        jwrite_key(out, "matchFields");
    if (t->n_fields && !adds) {
        str_add(out, t->json_fields);
    } else if (adds) {
        str_add(out, "[");
        if (t->n_fields) {
            size_t size = strlen(t->json_fields);
            str_add_n(out, t->json_fields + 1, size - 2); /* its brackets */
            str_add(out, ",");
        }
        write_requirement(node, out);
        str_add(out, "]");
    }
    jwrite_end_object(out);
}

void pod_needs_write_affinity(const struct pod_needs *n, const char *node,
                              struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_object(out, "nodeAffinity");
    jwrite_object(out, REQUIRED);
    jwrite_array(out, "nodeSelectorTerms");
    for (size_t i = 0; i < n->n_terms; i++)
        write_term(&n->terms[i], node, out);
    if (n->n_terms == 0) {
        jwrite_object(out, NULL);
        jwrite_array(out, "matchFields");
        write_requirement(node, out);
        jwrite_end_array(out);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
    jwrite_end_object(out);
    jwrite_end_object(out);
}
