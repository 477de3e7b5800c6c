#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/jrow.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/kube/collection.h"

enum { LABELS_MAX = 8192 }; /* bytes of the labels of one node that matter */

struct member {
    struct collected in;
    char *name;
    char *labels; /* those that matter, as JSON members; NULL: none */
    bool lost;    /* as the writer was told */
};

struct cluster_nodes {
    struct feed *feed;
    struct fabric_labels labels[8]; /* that matter: the set, or all presets */
    size_t n_labels;
    struct {
        struct reflector_handler handler; /* members may be NULL */
        void *ctx;
    } next[CLUSTER_NODES_NEXT_MAX];
    size_t n_next;
    void (*each)(void *ctx, void (*visit)(void *ctx, const char *node),
                 void *visit_ctx); /* of cluster_nodes_each(), or NULL */
    void *each_ctx;
    bool complete; /* listed at least once */

    pthread_mutex_t lock;  /* guards what follows */
    struct strmap members; /* by name; changed by the reflector alone */
    bool changed;          /* some labels, since that was last asked */
};

struct cluster_nodes *cluster_nodes_create(struct feed *feed,
                                           const struct fabric_labels *labels)
{
    static const char *const presets[] = {"topograph", "nvidia", "gke", "aws"};
    struct cluster_nodes *c = xcalloc(1, sizeof *c);
    c->feed = feed;
    (void)pthread_mutex_init(&c->lock, NULL); /* cannot fail on Linux */
    if (labels->n_keys)
        c->labels[c->n_labels++] = *labels;
    for (size_t i = 0; i < ARRAY_LEN(presets) && !labels->n_keys; i++)
        if (fabric_labels_parse(presets[i], &c->labels[c->n_labels], NULL) == 0)
            c->n_labels++;
    return c;
}

static void member_free(void *object)
{
    struct member *m = object;
    free(m->name);
    free(m->labels);
    free(m);
}

void cluster_nodes_destroy(struct cluster_nodes *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->members, member_free);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

void cluster_nodes_next(struct cluster_nodes *c,
                        const struct reflector_handler *next, void *ctx)
{
    if (c->n_next == CLUSTER_NODES_NEXT_MAX)
        abort(); /* the caller's list is constant */
    c->next[c->n_next].handler = *next;
    c->next[c->n_next++].ctx = ctx;
}

void cluster_nodes_each(struct cluster_nodes *c,
                        void (*each)(void *ctx,
                                     void (*visit)(void *ctx, const char *node),
                                     void *visit_ctx),
                        void *ctx)
{
    c->each = each;
    c->each_ctx = ctx;
}

/* --- labels ------------------------------------------------------------- */

/* A tier's keys are alternatives with '|' between. */
static bool is_among(const char *keys, const struct jtext *key)
{
    while (*keys) {
        size_t size = strcspn(keys, "|");
        if (size == key->size && memcmp(keys, key->data, size) == 0)
            return true;
        keys += size;
        keys += *keys == '|';
    }
    return false;
}

static bool matters(const struct cluster_nodes *c, const struct jtext *key)
{
    for (size_t i = 0; i < c->n_labels; i++)
        for (unsigned k = 0; k < c->labels[i].n_keys; k++)
            if (is_among(c->labels[i].keys[k], key))
                return true;
    return false;
}

/* The members of the labels that matter, `"a":"x","b":"y"`; NULL: none. */
static char *pick_labels(const struct cluster_nodes *c,
                         const struct jtext *labels)
{
    cleanup_str struct str out = STR_INIT(LABELS_MAX);
    struct jscan s;
    struct jtext key, value;
    if (!labels->data)
        return NULL;
    jscan_init_kube(&s, labels->data, labels->size);
    (void)jscan_object(&s); /* it is one */
    while (jscan_member(&s, &key)) {
        if (jscan_peek(&s) != JKIND_STRING || !matters(c, &key)) {
            (void)jscan_skip(&s); /* a fault ends the loop */
            continue;
        }
        if (!jscan_string(&s, &value))
            break;
        str_add(&out, out.size ? ",\"" : "\"");
        str_add_n(&out, key.data, key.size);
        str_add(&out, "\":\"");
        str_add_n(&out, value.data, value.size);
        str_add_c(&out, '"');
    }
    return out.size && !out.overflow ? str_steal(&out) : NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool cluster_nodes_changed(void *ctx)
{
    struct cluster_nodes *c = ctx;
    hold_lock(&c->lock);
    bool changed = c->changed;
    c->changed = false;
    return changed;
}

static int compare_name(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a;
    const struct member *y = *(struct member *const *)b;
    return strcmp(x->name, y->name);
}

/* In the order of names, so that every replica reads the same. */
void cluster_nodes_write(void *ctx, struct str *out)
{
    struct cluster_nodes *c = ctx;
    struct member *m;
    size_t n = 0, pos = 0;
    pthread_mutex_lock(&c->lock);
    cleanup_free struct member **list = xcalloc(c->members.n + 1, sizeof *list);
    while ((m = strmap_next(&c->members, &pos)))
        if (m->labels)
            list[n++] = m;
    qsort(list, n, sizeof *list, compare_name);
    for (size_t i = 0; i < n; i++) {
        str_add(out, i ? ",\n" : "{\"kind\":\"NodeList\",\"items\":[\n");
        str_add(out, "{\"metadata\":{\"name\":");
        str_add_json(out, list[i]->name);
        str_add(out, ",\"labels\":{");
        str_add(out, list[i]->labels);
        str_add(out, "}}}");
    }
    if (n)
        str_add(out, "]}\n");
    pthread_mutex_unlock(&c->lock);
}

/* --- readiness ---------------------------------------------------------- */

struct condition {
    struct jtext type, status;
};

/* "Ready" of status.conditions is there, and not True. */
static void read_condition(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("type", JROW_LAX, jrow_text, struct condition, type),
        JROW("status", JROW_LAX, jrow_text, struct condition, status),
        JROW_END,
    };
    struct condition c = {0};
    (void)jrow_read(s, JROW_LAX, rows, &c); /* a fault sticks */
    if (c.type.data && jtext_is(&c.type, "Ready") &&
        !(c.status.data && jtext_is(&c.status, "True")))
        *(bool *)to = true;
}

static bool is_unready(const struct jtext *status)
{
    static const struct jrow rows[] = {
        JROW_EACH("conditions", JROW_LAX, read_condition),
        JROW_END,
    };
    struct jscan s;
    bool unready = false;
    if (!status->data)
        return false;
    jscan_init_kube(&s, status->data, status->size);
    (void)jrow_read(&s, JROW_LAX, rows, &unready); /* it is one */
    return unready;
}

static void post_lost(struct cluster_nodes *c, const char *name, bool lost)
{
    struct feed_op *o = feed_new(c->feed, WRITER_LOST, strlen(name) + 1);
    o->op.node = feed_text(o, name, strlen(name));
    o->op.gone = lost;
    feed_post(o);
}

void cluster_nodes_check(void *ctx, const char *node)
{
    struct cluster_nodes *c = ctx;
    if (c->complete && !strmap_get(&c->members, node))
        post_lost(c, node, true);
}

/* --- handlers ----------------------------------------------------------- */

static void on_list(void *ctx)
{
    struct cluster_nodes *c = ctx;
    collection_list(&c->members);
    for (size_t i = 0; i < c->n_next; i++)
        if (c->next[i].handler.list)
            c->next[i].handler.list(c->next[i].ctx);
}

static void member_put(struct cluster_nodes *c,
                       const struct cluster_object *object)
{
    bool unready = is_unready(&object->status);
    cleanup_free char *labels = pick_labels(c, &object->labels);
    struct member *m = strmap_get(&c->members, object->name);
    bool is_new = !m;
    pthread_mutex_lock(&c->lock);
    if (!m) {
        m = xcalloc(1, sizeof *m);
        m->name = xstrdup(object->name);
        (void)strmap_put(&c->members, m->name, m);
    }
    if (!same_text(m->labels, labels)) {
        free(m->labels);
        m->labels = steal(&labels);
        c->changed = true;
    }
    pthread_mutex_unlock(&c->lock);
    m->in.listed = true;
    if (is_new || m->lost != unready)
        post_lost(c, m->name, unready);
    m->lost = unready;
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct cluster_nodes *c = ctx;
    struct cluster_object object;
    struct error err = {0};
    if (cluster_object_read(json, size, &object, &err) == 0)
        member_put(c, &object);
    else
        log_event(LOG_WARN, "node-unreadable", "error", err.text, NULL);
    for (size_t i = 0; i < c->n_next; i++)
        if (c->next[i].handler.put)
            c->next[i].handler.put(c->next[i].ctx, json, size);
}

static void forget(void *ctx, void *object)
{
    struct cluster_nodes *c = ctx;
    struct member *m = object;
    post_lost(c, m->name, true);
    pthread_mutex_lock(&c->lock);
    (void)strmap_remove(&c->members, m->name);
    c->changed = c->changed || m->labels;
    pthread_mutex_unlock(&c->lock);
    member_free(m);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    struct cluster_nodes *c = ctx;
    struct cluster_object object;
    if (cluster_object_read(json, size, &object, NULL) == 0) {
        struct member *m = strmap_get(&c->members, object.name);
        if (m)
            forget(c, m);
    }
    for (size_t i = 0; i < c->n_next; i++)
        if (c->next[i].handler.gone)
            c->next[i].handler.gone(c->next[i].ctx, json, size);
}

static void on_listed(void *ctx)
{
    struct cluster_nodes *c = ctx;
    collection_listed(&c->members, forget, c);
    c->complete = true;
    if (c->each)
        c->each(c->each_ctx, cluster_nodes_check, c);
    for (size_t i = 0; i < c->n_next; i++)
        if (c->next[i].handler.listed)
            c->next[i].handler.listed(c->next[i].ctx);
}

const struct reflector_handler cluster_nodes_handler = {
    .list = on_list, .put = on_put, .gone = on_gone, .listed = on_listed};
