/* Drains: the entries of ConfigMap biga-drains (drain_entry.h), told to the
 * writer one by one. */
#include <stdlib.h>
#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "extender/leader/drain_entry.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/kube/collection.h"

/* One entry, as it was told. */
struct entry {
    struct collected in; /* it was in the present ConfigMap */
    char *key;
    char node[DEMAND_NAME_MAX + 1];
    struct card_bars *bars; /* the one */
};

struct cluster_drains {
    struct feed *feed;
    struct strmap entries; /* by key */
    bool listed;           /* the present list has the ConfigMap */
};

struct cluster_drains *cluster_drains_create(struct feed *feed)
{
    struct cluster_drains *c = xcalloc(1, sizeof *c);
    c->feed = feed;
    return c;
}

static void entry_free(void *object)
{
    struct entry *e = object;
    card_bars_unref(e->bars);
    free(e->key);
    free(e);
}

void cluster_drains_destroy(struct cluster_drains *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->entries, entry_free);
    free(c);
}

/* --- telling the writer --------------------------------------------------- */

static void post(struct cluster_drains *c, const struct entry *e, bool gone)
{
    struct feed_op *o = feed_new(c->feed, WRITER_DRAIN, strlen(e->node) + 1);
    o->op.node = feed_text(o, e->node, strlen(e->node));
    o->op.bars = card_bars_ref(e->bars);
    o->op.gone = gone;
    feed_post(o);
}

static void forget(void *ctx, void *object)
{
    struct cluster_drains *c = ctx;
    struct entry *e = object;
    post(c, e, true);
    (void)strmap_remove(&c->entries, e->key);
    entry_free(e);
}

static void keep(struct cluster_drains *c, struct entry *fresh)
{
    struct entry *known = strmap_get(&c->entries, fresh->key);
    fresh->in.listed = true;
    if (known && card_bars_are_same(known->bars, fresh->bars)) {
        known->in.listed = true;
        entry_free(fresh);
        return;
    }
    if (known) {
        (void)strmap_remove(&c->entries, known->key);
        entry_free(known);
    }
    (void)strmap_put(&c->entries, fresh->key, fresh);
    post(c, fresh, false);
}

/* --- one entry ------------------------------------------------------------ */

/* What cannot be read drains all the same: somebody meant it to. */
static void read_text(const cJSON *item, struct card_bar *drain)
{
    const char *text = cJSON_GetStringValue(item);
    struct error err = {0};
    if (text && drain_entry_read(text, strlen(text), drain, &err) == 0)
        return;
    log_event(LOG_WARN, "drain-not-read", "key", item->string, "error",
              text ? err.text : "it is no text", "meanwhile",
              "it counts as drained", NULL);
    drain->drains = true;
    (void)snprintf(drain->reason, sizeof drain->reason,
                   "entry %.64s of ConfigMap " DRAIN_CONFIGMAP
                   " cannot be read",
                   item->string);
    (void)snprintf(drain->since, sizeof drain->since, "?");
    card_drain_explain(drain);
}

static void read_entry(struct cluster_drains *c, const cJSON *item)
{
    struct entry *e = xcalloc(1, sizeof *e);
    struct error err = {0};
    e->bars = card_bars_create(1);
    e->key = xstrdup(item->string);
    if (drain_entry_read_key(e->key, e->node, e->bars->items[0].card, &err) <
        0) {
        log_event(LOG_WARN, "drain-not-read", "key", e->key, "error", err.text,
                  "meanwhile", "it drains nothing", NULL);
        entry_free(e);
        return;
    }
    read_text(item, &e->bars->items[0]);
    keep(c, e);
}

/* --- handlers ------------------------------------------------------------- */

static void on_list(void *ctx)
{
    struct cluster_drains *c = ctx;
    c->listed = false;
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct cluster_drains *c = ctx;
    cleanup_with(json) cJSON *object = NULL;
    struct error err = {0};
    const cJSON *item;
    c->listed = true;
    if (json_parse(json, size, &object, &err) < 0) {
        log_event(LOG_WARN, "drains-not-read", "error", err.text, "meanwhile",
                  "drains stay as they were", NULL);
        return;
    }
    collection_list(&c->entries);
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, "data"))
    {
        read_entry(c, item);
    }
    collection_listed(&c->entries, forget, c);
}

static void forget_all(struct cluster_drains *c)
{
    collection_list(&c->entries);
    collection_listed(&c->entries, forget, c);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    (void)json;
    (void)size;
    forget_all(ctx);
}

static void on_listed(void *ctx)
{
    struct cluster_drains *c = ctx;
    if (!c->listed)
        forget_all(c);
}

const struct reflector_handler cluster_drains_handler = {
    .list = on_list, .put = on_put, .gone = on_gone, .listed = on_listed};
