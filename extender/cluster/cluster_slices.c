#include <stdlib.h>
#include <string.h>

#include "extender/app/app_metrics.h"
#include "extender/cluster/cluster_parts.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/kube/collection.h"
#include "model/slice/slice.h"

/* One ResourceSlice as the API server has it. */
struct slice_entry {
    struct collected in;
    char *name;
    struct pool *pool;
    uint64_t version; /* resourceVersion */
    struct slice_epoch epoch;
    size_t count;       /* slices that its pool is said to have */
    uint64_t spec_hash; /* of the bytes of its spec */
    char *body;         /* kept: it may have to be given again when a newer
                         * one is deleted */
    size_t body_size;
    bool posted;  /* the writer has something of that name */
    bool current; /* and it is this */
};

/* The slices of one node. */
struct pool {
    char *node;
    struct slice_entry **entries;
    size_t n, cap;
    struct slice_epoch epoch; /* of those that the writer has */
    size_t count;
};

struct cluster_slices {
    struct cluster_slices_config config;
    struct strmap entries; /* by name */
    struct strmap pools;   /* by node */
    uint64_t newest;       /* version */
};

struct cluster_slices *
cluster_slices_create(const struct cluster_slices_config *config)
{
    struct cluster_slices *c = xcalloc(1, sizeof *c);
    c->config = *config;
    return c;
}

void cluster_slices_each(struct cluster_slices *c,
                         void (*visit)(void *ctx, const char *node), void *ctx)
{
    size_t pos = 0;
    struct pool *p;
    while ((p = strmap_next(&c->pools, &pos)))
        visit(ctx, p->node);
}

static void entry_free(void *object)
{
    struct slice_entry *e = object;
    free(e->name);
    free(e->body);
    free(e);
}

static void pool_free(void *pool)
{
    struct pool *p = pool;
    free(p->node);
    free(p->entries);
    free(p);
}

void cluster_slices_destroy(struct cluster_slices *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->entries, entry_free);
    strmap_fini_with(&c->pools, pool_free);
    free(c);
}

/* --- telling the writer ------------------------------------------------- */

static const char *reject_reason(int result)
{
    return result == -ESTALE   ? "stale"
           : result == -EEXIST ? "foreign"
           : result == -EINVAL ? "invalid"
                               : "error";
}

static void put_done(struct feed_op *o)
{
    const struct cluster_slices *c = o->op.ctx;
    if (o->op.result == 0) {
        metrics_count(c->config.metrics, APP_SLICES_ACCEPTED,
                      o->op.created ? "created" : "changed");
        return;
    }
    metrics_count(c->config.metrics, APP_SLICES_REJECTED,
                  reject_reason(o->op.result));
    log_event(LOG_WARN, "slice-refused", "slice", o->op.name, "error",
              o->op.error.text, NULL);
}

static void post_put(struct cluster_slices *c, struct slice_entry *e)
{
    struct feed_op *o = feed_new(c->config.feed, WRITER_PUT_SLICE,
                                 strlen(e->name) + e->body_size + 2);
    o->op.name = feed_text(o, e->name, strlen(e->name));
    o->op.body = feed_text(o, e->body, e->body_size);
    o->op.body_size = e->body_size;
    o->op.ctx = c;
    o->then = put_done;
    feed_post(o);
    e->posted = e->current = true;
}

static void post_delete(struct cluster_slices *c, struct slice_entry *e)
{
    struct feed_op *o = feed_new(c->config.feed, WRITER_DELETE_SLICE,
                                 strlen(e->name) + 1);
    o->op.name = feed_text(o, e->name, strlen(e->name));
    feed_post(o);
    e->posted = e->current = false;
}

/* --- what holds for a node ---------------------------------------------- */

static bool same_epoch(const struct slice_epoch *a, const struct slice_epoch *b)
{
    return a->generation == b->generation &&
           strcmp(a->boot_id, b->boot_id) == 0;
}

static int compare_version(const void *a, const void *b)
{
    const struct slice_entry *x = *(struct slice_entry *const *)a;
    const struct slice_entry *y = *(struct slice_entry *const *)b;
    return x->version < y->version ? 1 : x->version > y->version ? -1 : 0;
}

static void withdraw(struct cluster_slices *c, struct pool *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->entries[i]->posted)
            post_delete(c, p->entries[i]);
}

static bool has_posted(const struct pool *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->entries[i]->posted)
            return true;
    return false;
}

/* Can ingest go from what the writer has to this epoch by itself? */
static bool is_advance(const struct pool *p, const struct slice_entry *winner)
{
    return !has_posted(p) ||
           (strcmp(p->epoch.boot_id, winner->epoch.boot_id) == 0 &&
            winner->epoch.generation > p->epoch.generation);
}

/* The newest slice says which epoch holds; the others of that epoch go with
 * it.  The writer is given those, and loses the rest. */
static void settle(struct cluster_slices *c, struct pool *p)
{
    if (p->n == 0)
        return;
    qsort(p->entries, p->n, sizeof(*p->entries), compare_version);
    const struct slice_entry *winner = p->entries[0];
    bool same = has_posted(p) && same_epoch(&p->epoch, &winner->epoch) &&
                p->count == winner->count;
    if (!same && !is_advance(p, winner))
        withdraw(c, p);
    p->epoch = winner->epoch;
    p->count = winner->count;
    size_t taken = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct slice_entry *e = p->entries[i];
        bool in = taken < winner->count && e->count == winner->count &&
                  same_epoch(&e->epoch, &winner->epoch);
        taken += in;
        if (in && !e->current)
            post_put(c, e);
        else if (!in && e->posted && same)
            post_delete(c, e); /* there are more than there should be */
        else if (!in)
            e->current = false; /* ingest drops the old epoch, if it takes the
                                 * new one: it is deleted later all the same */
    }
}

static void pool_remove(struct cluster_slices *c, struct slice_entry *e)
{
    struct pool *p = e->pool;
    size_t at = 0;
    while (p->entries[at] != e)
        at++;
    p->entries[at] = p->entries[--p->n];
    if (e->posted)
        post_delete(c, e);
    (void)strmap_remove(&c->entries, e->name);
    entry_free(e);
    if (p->n) {
        settle(c, p);
        return;
    }
    (void)strmap_remove(&c->pools, p->node);
    pool_free(p);
}

static struct pool *pool_get(struct cluster_slices *c, const char *node)
{
    struct pool *p = strmap_get(&c->pools, node);
    if (!p) {
        p = xcalloc(1, sizeof *p);
        p->node = xstrdup(node);
        (void)strmap_put(&c->pools, p->node, p);
        if (c->config.appeared)
            c->config.appeared(c->config.ctx, node);
    }
    return p;
}

static struct slice_entry *entry_get(struct cluster_slices *c, const char *name,
                                     const char *node)
{
    struct slice_entry *e = strmap_get(&c->entries, name);
    if (e && strcmp(e->pool->node, node) != 0) {
        pool_remove(c, e);
        e = NULL;
    }
    if (e)
        return e;
    e = xcalloc(1, sizeof *e);
    e->name = xstrdup(name);
    e->pool = pool_get(c, node);
    struct pool *p = e->pool;
    p->entries = xgrow(p->entries, p->n, &p->cap, sizeof(*p->entries));
    p->entries[p->n++] = e;
    (void)strmap_put(&c->entries, e->name, e);
    return e;
}

/* --- handlers ----------------------------------------------------------- */

/* Versions of one collection grow; where one is no number, what comes later
 * counts as newer. */
static uint64_t version_of(struct cluster_slices *c, const char *text)
{
    char *end;
    uint64_t version = strtoull(text, &end, 10);
    if (end == text || *end)
        version = c->newest + 1;
    if (version > c->newest)
        c->newest = version;
    return version;
}

static void on_list(void *ctx)
{
    struct cluster_slices *c = ctx;
    collection_list(&c->entries);
}

static void refuse(struct cluster_slices *c, const char *name,
                   const struct error *err)
{
    struct slice_entry *e = strmap_get(&c->entries, name);
    metrics_count(c->config.metrics, APP_SLICES_REJECTED, "invalid");
    log_event(LOG_WARN, "slice-refused", "slice", name, "error", err->text,
              NULL);
    if (e) /* what it said before does not hold any more */
        pool_remove(c, e);
}

static void entry_set(struct cluster_slices *c, struct slice_entry *e,
                      const struct slice *slice, uint64_t spec_hash)
{
    const struct slice_epoch *epoch = slice_get_epoch(slice);
    bool same = same_epoch(&e->epoch, epoch);
    /* other content under the same epoch: ingest must forget all of it */
    if (e->spec_hash != spec_hash && same && e->posted)
        withdraw(c, e->pool);
    if (e->spec_hash != spec_hash || !same)
        e->current = false;
    e->epoch = *epoch;
    e->count = slice_get_pool_count(slice);
    e->spec_hash = spec_hash;
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct cluster_slices *c = ctx;
    struct cluster_object object;
    struct error err = {0};
    cleanup_with(slice) struct slice *slice = NULL;
    if (cluster_object_read(json, size, &object, &err) < 0) {
        refuse(c, "", &err);
        return;
    }
    uint64_t version = version_of(c, object.resource_version);
    uint64_t hash = hash_bytes(object.spec.data, object.spec.size);
    struct slice_entry *e = strmap_get(&c->entries, object.name);
    if (e && e->version == version && e->spec_hash == hash) {
        e->in.listed = true; /* again: it need not be decoded */
        return;
    }
    if (slice_decode(json, size, &slice, &err) < 0) {
        refuse(c, object.name, &err);
        return;
    }
    e = entry_get(c, object.name, slice_get_node(slice));
    e->in.listed = true;
    entry_set(c, e, slice, hash);
    e->version = version;
    free(e->body);
    e->body = xmemdup(json, size);
    e->body_size = size;
    settle(c, e->pool);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    struct cluster_slices *c = ctx;
    struct cluster_object object;
    if (cluster_object_read(json, size, &object, NULL) < 0)
        return;
    struct slice_entry *e = strmap_get(&c->entries, object.name);
    if (e)
        pool_remove(c, e);
}

static void forget(void *ctx, void *object)
{
    pool_remove(ctx, object);
}

static void on_listed(void *ctx)
{
    struct cluster_slices *c = ctx;
    collection_listed(&c->entries, forget, c);
    if (c->config.listed)
        c->config.listed(c->config.ctx);
}

const struct reflector_handler cluster_slices_handler = {
    .list = on_list, .put = on_put, .gone = on_gone, .listed = on_listed};
