#include "model/claim/claim_template.h"

#include <stdlib.h>

#include "model/claim/claim_read.h"

struct reading {
    struct claim_reading base;
    struct jtext namespace, name, uid, labels, annotations, spec;
};

#define TEXT(key, field) \
    JROW(key, JROW_NULLABLE, jrow_text, struct reading, field)

/* Bytes of an object; null counts as none. */
static void read_raw(struct jscan *s, void *to)
{
    (void)jscan_raw(s, to); /* a fault sticks */
}
#define RAW(key, field)                                                      \
    JROW_CALL_TO(key, JROW_NULLABLE, JKIND_OBJECT, read_raw, struct reading, \
                 field)

static const struct jrow metadata_rows[] = {
    TEXT("namespace", namespace),
    TEXT("name", name),
    TEXT("uid", uid),
    JROW_END,
};
static const struct jrow made_rows[] = {
    RAW("labels", labels),
    RAW("annotations", annotations),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW_OBJECT("metadata", JROW_NULLABLE, made_rows),
    RAW("spec", spec),
    JROW_END,
};
static const struct jrow object_rows[] = {
    JROW_OBJECT("metadata", JROW_NULLABLE, metadata_rows),
    JROW_OBJECT("spec", JROW_NULLABLE, spec_rows),
    JROW_END,
};

int claim_template_read(const char *json, size_t size,
                        struct claim_template **ret_template, struct error *err)
{
    cleanup_with(claim_template) struct claim_template *t = xcalloc(1,
                                                                    sizeof *t);
    struct reading r = {.base = {.arena = &t->arena, .err = err}};
    struct jscan none; /* it only carries the refusals */
    int rc = claim_read_object(json, size, CLAIM_TEMPLATE_MAX, object_rows,
                               &r.base);
    if (rc < 0)
        return rc;
    jscan_init(&none, "", 0);
    t->namespace = claim_need(&r.base, &none, &r.namespace, CLAIM_NAME_MAX,
                              "metadata.namespace");
    t->name = claim_need(&r.base, &none, &r.name, CLAIM_NAME_MAX,
                         "metadata.name");
    t->uid = claim_keep(&r.base, &none, &r.uid, CLAIM_NAME_MAX, "metadata.uid");
    if (r.base.code)
        return r.base.code;
    t->labels = arena_strndup(&t->arena, r.labels.data ? r.labels.data : "",
                              r.labels.size);
    t->annotations = arena_strndup(&t->arena,
                                   r.annotations.data ? r.annotations.data : "",
                                   r.annotations.size);
    if (!r.spec.data)
        return error_set(err, EINVAL, "spec.spec: must be an object");
    if (claim_spec_read(r.spec.data, r.spec.size, &t->spec, &t->bad) < 0)
        (void)error_wrap(&t->bad, "spec.spec");
    *ret_template = steal(&t);
    return 0;
}

void claim_template_destroy(struct claim_template *t)
{
    if (!t)
        return;
    claim_spec_destroy(t->spec);
    arena_fini(&t->arena);
    free(t);
}
