#include <stdlib.h>
#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "extender/cluster/dpu_object.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/kube/collection.h"

struct dpu_node;

/* One object of an operator. */
struct dpu {
    struct collected in;
    char *key; /* "NAMESPACE/NAME" */
    struct dpu_node *node;
    bool ready;
    struct card_bar bar; /* unless it is ready */
};

/* A node, and what the objects of both operators say of its cards. */
struct dpu_node {
    char *name;
    struct dpu **dpus;
    size_t n, cap;
};

struct cluster_dpus {
    struct feed *feed;
    struct strmap nodes; /* struct dpu_node, by name */
    struct cluster_dpus_of {
        struct cluster_dpus *all;
        enum dpu_kind kind;
        struct strmap dpus; /* by key */
    } of[DPU_KINDS];
};

struct cluster_dpus *cluster_dpus_create(struct feed *feed)
{
    struct cluster_dpus *c = xcalloc(1, sizeof *c);
    c->feed = feed;
    for (int i = 0; i < DPU_KINDS; i++) {
        c->of[i].all = c;
        c->of[i].kind = (enum dpu_kind)i;
    }
    return c;
}

static void dpu_free(void *object)
{
    struct dpu *d = object;
    free(d->key);
    free(d);
}

static void node_free(void *object)
{
    struct dpu_node *n = object;
    free(n->name);
    free(n->dpus);
    free(n);
}

void cluster_dpus_destroy(struct cluster_dpus *c)
{
    if (!c)
        return;
    for (int i = 0; i < DPU_KINDS; i++)
        strmap_fini_with(&c->of[i].dpus, dpu_free);
    strmap_fini_with(&c->nodes, node_free);
    free(c);
}

struct cluster_dpus_of *cluster_dpus_of(struct cluster_dpus *c,
                                        enum dpu_kind kind)
{
    return &c->of[kind];
}

/* --- telling the writer --------------------------------------------------- */

static int compare_why(const void *a, const void *b)
{
    return strcmp(((const struct card_bar *)a)->why,
                  ((const struct card_bar *)b)->why);
}

/* In the order of their texts, so that all replicas say the same. */
static struct card_bars *node_bars(const struct dpu_node *node)
{
    size_t n = 0;
    cleanup_free struct card_bar *list = xcalloc(node->n + 1, sizeof *list);
    for (size_t i = 0; i < node->n; i++)
        if (!node->dpus[i]->ready)
            list[n++] = node->dpus[i]->bar;
    qsort(list, n, sizeof *list, compare_why);
    if (n > CARD_BARS_MAX) {
        log_event(LOG_WARN, "dpus-left-out", "node", node->name, "text",
                  "more DPUs of one node than are looked at are not ready",
                  NULL);
        n = CARD_BARS_MAX;
    }
    struct card_bars *bars = n ? card_bars_create(n) : NULL;
    if (bars)
        memcpy(bars->items, list, n * sizeof *list);
    return bars;
}

static void post_bars(struct cluster_dpus *c, const struct dpu_node *node)
{
    struct feed_op *o = feed_new(c->feed, WRITER_BARS, strlen(node->name) + 1);
    o->op.node = feed_text(o, node->name, strlen(node->name));
    o->op.bars = node_bars(node);
    feed_post(o);
}

/* --- objects -------------------------------------------------------------- */

static struct dpu_node *node_get(struct cluster_dpus *c, const char *name)
{
    struct dpu_node *n = strmap_get(&c->nodes, name);
    if (n)
        return n;
    n = xcalloc(1, sizeof *n);
    n->name = xstrdup(name);
    (void)strmap_put(&c->nodes, n->name, n);
    return n;
}

static void dpu_join(struct dpu *d, struct dpu_node *n)
{
    d->node = n;
    n->dpus = xgrow(n->dpus, n->n, &n->cap, sizeof(*n->dpus));
    n->dpus[n->n++] = d;
}

/* It is not of its node any more, which loses what was said of it. */
static void dpu_leave(struct cluster_dpus *c, struct dpu *d)
{
    struct dpu_node *n = d->node;
    size_t at = 0;
    while (n->dpus[at] != d)
        at++;
    n->dpus[at] = n->dpus[--n->n];
    d->node = NULL;
    if (!d->ready)
        post_bars(c, n);
    if (n->n)
        return;
    (void)strmap_remove(&c->nodes, n->name);
    node_free(n);
}

static void forget(void *ctx, void *object)
{
    struct cluster_dpus_of *of = ctx;
    struct dpu *d = object;
    dpu_leave(of->all, d);
    (void)strmap_remove(&of->dpus, d->key);
    dpu_free(d);
}

static char *make_key(const struct dpu_object *object)
{
    return xasprintf("%s/%s", object->namespace, object->name);
}

static void set(struct cluster_dpus_of *of, const struct dpu_object *object,
                const char *key)
{
    struct cluster_dpus *c = of->all;
    struct dpu *d = strmap_get(&of->dpus, key);
    if (d && strcmp(d->node->name, object->node) != 0) {
        forget(of, d);
        d = NULL;
    }
    if (!d) {
        d = xcalloc(1, sizeof *d);
        d->key = xstrdup(key);
        d->ready = true; /* nothing was said of it */
        (void)strmap_put(&of->dpus, d->key, d);
        dpu_join(d, node_get(c, object->node));
    }
    d->in.listed = true;
    bool same = d->ready == object->ready &&
                (d->ready || card_bar_is_same(&d->bar, &object->bar));
    d->ready = object->ready;
    d->bar = object->bar;
    if (!same)
        post_bars(c, d->node);
}

/* --- handlers ------------------------------------------------------------- */

static void on_list(void *ctx)
{
    struct cluster_dpus_of *of = ctx;
    collection_list(&of->dpus);
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct cluster_dpus_of *of = ctx;
    struct dpu_object object = {0};
    struct error err = {0};
    int r = dpu_object_read(of->kind, json, size, &object, &err);
    cleanup_free char *key = make_key(&object);
    struct dpu *known = strmap_get(&of->dpus, key);
    if (r == 0 && object.node[0]) {
        set(of, &object, key);
    } else if (r == 0 && known) {
        forget(of, known);
    } else if (r < 0) {
        log_event(LOG_WARN, "dpu-refused", "object", key, "error", err.text,
                  "meanwhile", "its card stays as it was", NULL);
        if (known)
            known->in.listed = true;
    }
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    struct cluster_dpus_of *of = ctx;
    struct dpu_object object = {0};
    (void)dpu_object_read(of->kind, json, size, &object, NULL); /* its name */
    cleanup_free char *key = make_key(&object);
    struct dpu *known = strmap_get(&of->dpus, key);
    if (known)
        forget(of, known);
}

static void on_listed(void *ctx)
{
    struct cluster_dpus_of *of = ctx;
    collection_listed(&of->dpus, forget, of);
}

const struct reflector_handler cluster_dpus_handler = {
    .list = on_list, .put = on_put, .gone = on_gone, .listed = on_listed};
