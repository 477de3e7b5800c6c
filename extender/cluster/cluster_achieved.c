/* What pods have: a ConfigMap for each node, named as it. */
#include <stdlib.h>
#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/jrow.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/kube/collection.h"

struct kept {
    struct collected in;
    char *node;
};

struct cluster_achieved {
    struct achieved_book *book;
    struct strmap kept; /* by node */
};

struct cluster_achieved *cluster_achieved_create(struct achieved_book *book)
{
    struct cluster_achieved *c = xcalloc(1, sizeof *c);
    c->book = book;
    return c;
}

static void kept_free(void *object)
{
    struct kept *k = object;
    free(k->node);
    free(k);
}

void cluster_achieved_destroy(struct cluster_achieved *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->kept, kept_free);
    free(c);
}

/* --- one object --------------------------------------------------------- */

struct object {
    char name[DEMAND_NAME_MAX + 1];
    struct jtext report; /* data NULL: none */
};

static const struct jrow metadata_rows[] = {
    JROW("name", JROW_LAX, jrow_copy, struct object, name),
    JROW_END,
};
static const struct jrow data_rows[] = {
    JROW("report", JROW_LAX, jrow_text, struct object, report),
    JROW_END,
};
static const struct jrow rows[] = {
    JROW_OBJECT("metadata", JROW_LAX, metadata_rows),
    JROW_OBJECT("data", JROW_LAX, data_rows),
    JROW_END,
};

/* Strict again, for the text inside: jscan_init_kube() lets NUL through. */
static int read_report(const struct object *o,
                       struct achieved_report **ret_report, struct error *err)
{
    cleanup_with(achieved_report) struct achieved_report *r = NULL;
    cleanup_free char *text = NULL;
    if (!o->report.data)
        return error_set(err, EINVAL, "data.report: required member missing");
    text = xmalloc(o->report.size + 1);
    size_t size = jtext_decode(&o->report, text);
    if (achieved_report_parse(text, size, &r, err) < 0)
        return error_wrap(err, "data.report");
    if (strcmp(r->node, o->name) != 0)
        return error_set(err, EINVAL,
                         "data.report: node: is \"%s\", must be as the "
                         "ConfigMap, \"%s\"",
                         r->node, o->name);
    *ret_report = steal(&r);
    return 0;
}

static bool read_object(const char *json, size_t size, struct object *ret)
{
    struct jscan s;
    struct error err;
    *ret = (struct object){0};
    jscan_init_kube(&s, json, size);
    return jrow_parse(&s, JROW_STRICT, rows, ret, &err) == 0 && ret->name[0];
}

/* --- the collection ----------------------------------------------------- */

static void on_list(void *ctx)
{
    struct cluster_achieved *c = ctx;
    collection_list(&c->kept);
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct cluster_achieved *c = ctx;
    struct object o;
    struct error err = {0};
    cleanup_with(achieved_report) struct achieved_report *r = NULL;
    if (!read_object(json, size, &o))
        return;
    struct kept *k = strmap_get(&c->kept, o.name);
    if (!k) {
        k = xcalloc(1, sizeof *k);
        k->node = xstrdup(o.name);
        (void)strmap_put(&c->kept, k->node, k);
    }
    k->in.listed = true;
    int e = read_report(&o, &r, &err);
    if (e == 0)
        e = achieved_book_put(c->book, r, &err);
    if (e == 0)
        return;
    log_event(LOG_WARN, "achieved-refused", "node", o.name, "error", err.text,
              NULL);
    achieved_book_drop(c->book, o.name); /* it is not known any more */
}

static void forget(void *ctx, void *object)
{
    struct cluster_achieved *c = ctx;
    struct kept *k = object;
    achieved_book_drop(c->book, k->node);
    (void)strmap_remove(&c->kept, k->node);
    kept_free(k);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    struct cluster_achieved *c = ctx;
    struct object o;
    struct kept *k = read_object(json, size, &o) ? strmap_get(&c->kept, o.name)
                                                 : NULL;
    if (k)
        forget(c, k);
}

static void on_listed(void *ctx)
{
    struct cluster_achieved *c = ctx;
    collection_listed(&c->kept, forget, c);
}

const struct reflector_handler cluster_achieved_handler = {
    .list = on_list, .put = on_put, .gone = on_gone, .listed = on_listed};
