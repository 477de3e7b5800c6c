#include "model/claim/claim_class.h"

#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_read.h"
#include "model/claim/claim_selectors.h"

struct reading {
    struct claim_reading base;
    struct claim_class *class;
    struct jtext name, extended_resource;
    struct claim_selectors selectors;
};

static void read_selectors(struct jscan *s, void *to)
{
    struct reading *r = to;
    claim_read_selectors(&r->base, s, "spec.selectors", &r->selectors);
}

static const struct jrow metadata_rows[] = {
    JROW("name", JROW_NULLABLE, jrow_text, struct reading, name),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW_CALL("selectors", JROW_NULLABLE, JKIND_ARRAY, read_selectors),
    JROW("extendedResourceName", JROW_NULLABLE, jrow_text, struct reading,
         extended_resource),
    JROW_END,
};
static const struct jrow object_rows[] = {
    JROW_OBJECT("metadata", JROW_NULLABLE, metadata_rows),
    JROW_OBJECT("spec", JROW_NULLABLE, spec_rows),
    JROW_END,
};

/* A text of the object into a field of the class. */
static int copy(struct reading *r, const struct jtext *text, const char *path,
                char to[CLAIM_NAME_MAX + 1])
{
    struct jscan none; /* it only carries the refusal */
    jscan_init(&none, "", 0);
    const char *kept = claim_keep(&r->base, &none, text, CLAIM_NAME_MAX, path);
    if (kept)
        memcpy(to, kept, strlen(kept) + 1);
    return r->base.code;
}

int claim_class_read(const char *json, size_t size,
                     struct claim_class **ret_class, struct error *err)
{
    struct arena arena = {0};
    cleanup_with(claim_class) struct claim_class *class =
        xcalloc(1, sizeof *class);
    cleanup_free struct reading *r = xcalloc(1, sizeof *r);
    r->base = (struct claim_reading){.arena = &arena, .err = err};
    int rc = claim_read_object(json, size, CLAIM_CLASS_MAX, object_rows,
                               &r->base);
    class->n_selectors = r->selectors.n;
    memcpy(class->selectors, r->selectors.items, sizeof class->selectors);
    class->bad = r->selectors.bad;
    if (rc == 0)
        rc = copy(r, &r->name, "metadata.name", class->name);
    if (rc == 0)
        rc = copy(r, &r->extended_resource, "spec.extendedResourceName",
                  class->extended_resource);
    if (rc == 0 && !*class->name)
        rc = error_set(err, EINVAL, "metadata.name: must not be empty");
    if (rc == 0)
        *ret_class = steal(&class);
    arena_fini(&arena);
    return rc;
}

void claim_class_destroy(struct claim_class *class)
{
    if (!class)
        return;
    for (size_t i = 0; i < class->n_selectors; i++)
        claim_cel_destroy(class->selectors[i]);
    free(class);
}
