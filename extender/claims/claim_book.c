#include "extender/claims/claim_book.h"

#include <stdlib.h>
#include <string.h>

#include "extender/claims/claim_book_private.h"
#include "lib/base/jrow.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"
#include "lib/io/log.h"

/* --- classes and templates ------------------------------------------------ */

struct book_class {
    struct book_object object;
    struct claim_class *class;
};

const struct claim_class *book_class(struct claim_book *b, const char *name)
{
    const struct book_class *c =
        strmap_get(&b->kinds[CLAIM_BOOK_CLASSES].objects, name);
    return c ? c->class : NULL;
}

static void classes_changed(struct claim_book *b)
{
    b->classes_epoch++;
    b->classes_changed = true;
    atomic_fetch_add(&b->version, 1);
}

/* The resources that classes give, in the caller's array; each is freed. */
static char **class_resources(struct claim_book *b, size_t *ret_n)
{
    struct strmap *classes = &b->kinds[CLAIM_BOOK_CLASSES].objects;
    char **list = xcalloc(2 * classes->n + 1, sizeof *list);
    size_t n = 0, pos = 0;
    for (const struct book_class *c; (c = strmap_next(classes, &pos));) {
        list[n++] = xasprintf("deviceclass.resource.kubernetes.io/%s",
                              c->object.key);
        if (c->class->extended_resource[0])
            list[n++] = xstrdup(c->class->extended_resource);
    }
    *ret_n = n;
    return list;
}

static int put_class(struct book_kind *k, const char *key, const char *json,
                     size_t size, struct error *err)
{
    struct book_class *c = strmap_get(&k->objects, key);
    struct claim_class *class = NULL;
    if (!c && k->objects.n >= CLAIM_BOOK_CLASSES_MAX)
        return error_set(err, ENOSPC, "there are more than %d classes",
                         CLAIM_BOOK_CLASSES_MAX);
    int r = claim_class_read(json, size, &class, err);
    if (r < 0)
        return r;
    if (!c) {
        c = xcalloc(1, sizeof *c);
        c->object.key = xstrdup(key);
        (void)strmap_put(&k->objects, c->object.key, c);
    }
    claim_class_destroy(c->class);
    c->class = class;
    classes_changed(k->book);
    return 0;
}

static void drop_class(struct claim_book *b, struct book_object *object)
{
    struct book_class *c = (struct book_class *)object; /* its first member */
    claim_class_destroy(c->class);
    free(c->object.key);
    free(c);
    classes_changed(b);
}

static void template_clear(struct book_template *t)
{
    book_spec_unref(t->spec);
    free(t->labels);
    free(t->annotations);
    t->spec = NULL;
    t->labels = t->annotations = NULL;
}

static int put_template(struct book_kind *k, const char *key, const char *json,
                        size_t size, struct error *err)
{
    struct book_template *t = strmap_get(&k->objects, key);
    cleanup_with(claim_template) struct claim_template *read = NULL;
    if (!t && k->objects.n >= CLAIM_BOOK_TEMPLATES_MAX)
        return error_set(err, ENOSPC, "there are more than %d templates",
                         CLAIM_BOOK_TEMPLATES_MAX);
    int r = claim_template_read(json, size, &read, err);
    if (r < 0)
        return r;
    if (!t) {
        t = xcalloc(1, sizeof *t);
        t->object.key = xstrdup(key);
        (void)strmap_put(&k->objects, t->object.key, t);
    }
    template_clear(t);
    t->bad = read->bad;
    t->spec = read->spec ? book_spec_create(steal(&read->spec)) : NULL;
    t->labels = xstrdup(read->labels);
    t->annotations = xstrdup(read->annotations);
    atomic_fetch_add(&k->book->version, 1);
    return 0;
}

static void drop_template(struct claim_book *b, struct book_object *object)
{
    struct book_template *t = (struct book_template *)object; /* its first
                                                               * member */
    template_clear(t);
    free(t->object.key);
    free(t);
    atomic_fetch_add(&b->version, 1);
}

/* --- the collections ------------------------------------------------------ */

static const struct {
    const char *name; /* for the log */
    bool namespaced;
    int (*put)(struct book_kind *k, const char *key, const char *json,
               size_t size, struct error *err);
    /* frees it; it is in no table any more */
    void (*drop)(struct claim_book *b, struct book_object *object);
} kinds[CLAIM_BOOK_KINDS] = {
    [CLAIM_BOOK_OWN_SLICES] = {"slice", false, book_put_slice, book_drop_slice},
    [CLAIM_BOOK_SLICES] = {"slice", false, book_put_slice, book_drop_slice},
    [CLAIM_BOOK_CLAIMS] = {"claim", true, book_put_claim, book_drop_claim},
    [CLAIM_BOOK_CLASSES] = {"class", false, put_class, drop_class},
    [CLAIM_BOOK_TEMPLATES] = {"template", true, put_template, drop_template},
};

struct meta {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char name[DEMAND_NAME_MAX + 1];
};

static const struct jrow metadata_rows[] = {
    JROW("namespace", JROW_LAX, jrow_copy, struct meta, namespace),
    JROW("name", JROW_LAX, jrow_copy, struct meta, name),
    JROW_END,
};
static const struct jrow meta_rows[] = {
    JROW_OBJECT("metadata", JROW_LAX, metadata_rows),
    JROW_END,
};

/* The caller frees; NULL: it has no name that could be. */
static char *read_key(const struct book_kind *k, const char *json, size_t size)
{
    struct meta meta = {0};
    struct jscan s;
    bool namespaced = kinds[k->kind].namespaced;
    jscan_init_kube(&s, json, size);
    if (jrow_parse(&s, JROW_STRICT, meta_rows, &meta, NULL) < 0 ||
        !meta.name[0] || (namespaced && !meta.namespace[0]))
        return NULL;
    return namespaced ? xasprintf("%s/%s", meta.namespace, meta.name)
                      : xstrdup(meta.name);
}

static void forget(void *ctx, void *object)
{
    struct book_kind *k = ctx;
    struct book_object *o = object;
    (void)strmap_remove(&k->objects, o->key);
    kinds[k->kind].drop(k->book, o);
}

/* Unlocks; nothing is called with the lock held. */
static void unlock_and_tell(struct claim_book *b)
{
    struct book_note *notes = b->notes;
    size_t n = b->n_notes, n_resources = 0;
    bool tell = b->classes_changed && b->config.classes;
    char **resources = tell ? class_resources(b, &n_resources) : NULL;
    b->classes_changed = false;
    b->notes = NULL;
    b->n_notes = b->notes_cap = 0;
    pthread_mutex_unlock(&b->lock);
    for (size_t i = 0; i < n; i++) {
        if (notes[i].use)
            b->config.used(b->config.ctx, notes[i].use, notes[i].gone);
        else
            b->config.changed(b->config.ctx, notes[i].namespace, notes[i].name,
                              notes[i].owner);
        claim_use_unref(notes[i].use);
        free(notes[i].namespace);
        free(notes[i].name);
        free(notes[i].owner);
    }
    free(notes);
    if (tell)
        b->config.classes(b->config.ctx, (const char *const *)resources,
                          n_resources);
    for (size_t i = 0; i < n_resources; i++)
        free(resources[i]);
    free(resources);
}

/* What it said before does not hold any more; but there being no room is
 * logged once. */
static void refuse(struct book_kind *k, const char *key, int result,
                   const struct error *err)
{
    struct book_object *old = key ? strmap_get(&k->objects, key) : NULL;
    if (result != -ENOSPC || !k->full)
        log_event(LOG_WARN, "object-refused", "kind", kinds[k->kind].name,
                  "name", key ? key : "", "error", err->text, NULL);
    k->full |= result == -ENOSPC;
    if (old)
        forget(k, old);
}

static void on_list(void *ctx)
{
    struct book_kind *k = ctx;
    hold_lock(&k->book->lock);
    collection_list(&k->objects);
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct book_kind *k = ctx;
    struct error err = {0};
    cleanup_free char *key = read_key(k, json, size);
    pthread_mutex_lock(&k->book->lock);
    int r = key ? kinds[k->kind].put(k, key, json, size, &err)
                : error_set(&err, EINVAL, "is no object with a name");
    struct book_object *o = key && r == 0 ? strmap_get(&k->objects, key) : NULL;
    if (o)
        o->in.listed = true;
    else if (r < 0)
        refuse(k, key, r, &err);
    unlock_and_tell(k->book);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    struct book_kind *k = ctx;
    cleanup_free char *key = read_key(k, json, size);
    pthread_mutex_lock(&k->book->lock);
    struct book_object *o = key ? strmap_get(&k->objects, key) : NULL;
    if (o)
        forget(k, o);
    unlock_and_tell(k->book);
}

static void on_listed(void *ctx)
{
    struct book_kind *k = ctx;
    pthread_mutex_lock(&k->book->lock);
    collection_listed(&k->objects, forget, k);
    unlock_and_tell(k->book);
}

const struct reflector_handler claim_book_handler = {
    .list = on_list, .put = on_put, .gone = on_gone, .listed = on_listed};

void *claim_book_ctx(struct claim_book *b, enum claim_book_kind kind)
{
    return &b->kinds[kind];
}

uint64_t claim_book_version(const struct claim_book *b)
{
    return atomic_load(&b->version);
}

/* --- start and end -------------------------------------------------------- */

struct claim_book *claim_book_create(const struct claim_book_config *config)
{
    struct claim_book *b = xcalloc(1, sizeof *b);
    b->config = *config;
    b->classes_epoch = 1;
    (void)pthread_mutex_init(&b->lock, NULL); /* cannot fail on Linux */
    for (size_t i = 0; i < CLAIM_BOOK_KINDS; i++) {
        b->kinds[i].book = b;
        b->kinds[i].kind = (enum claim_book_kind)i;
    }
    return b;
}

static void drop_all(struct book_kind *k)
{
    /* nothing is listed: all are forgotten */
    collection_list(&k->objects);
    collection_listed(&k->objects, forget, k);
    strmap_fini(&k->objects);
}

static void drop_rule(void *rule)
{
    book_rule_unref(rule);
}

void claim_book_destroy(struct claim_book *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < CLAIM_BOOK_KINDS; i++)
        drop_all(&b->kinds[i]);
    for (size_t i = 0; i < b->n_notes; i++) {
        claim_use_unref(b->notes[i].use);
        free(b->notes[i].namespace);
        free(b->notes[i].name);
        free(b->notes[i].owner);
    }
    free(b->notes);
    strmap_fini_with(&b->rules, drop_rule);
    strmap_fini(&b->pools);
    strmap_fini(&b->nodes);
    free(b->free_slots);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}
