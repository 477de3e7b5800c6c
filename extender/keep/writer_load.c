/* Builds the first snapshot from the store. */
#include "extender/keep/applied_draft.h"
#include "extender/keep/slice_loader.h"
#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

struct load {
    struct writer *w;
    struct slice_loader *loader;
    struct draft *draft;
    int64_t now_ms;
};

static int load_boot(void *ctx, const char *node, const char *boot_id)
{
    struct load *load = ctx;
    ingest_retired(load->w->ingest, node, boot_id);
    return 0;
}

static int load_allocation(void *ctx, struct allocation *a)
{
    struct load *load = ctx;
    draft_allocate(load->draft, allocation_ref(a));
    return 0;
}

static int add_slice(void *ctx, const char *name, const char *json, size_t size,
                     uint64_t resource_version)
{
    slice_loader_add(ctx, name, json, size, resource_version);
    return 0;
}

static void take_slice(struct load *load, const struct stored_slice *s,
                       const struct node *node)
{
    slice_cache_put(load->w->heard, s->name, &s->digest, s->resource_version,
                    node);
    if (node->published)
        slice_loader_learn(load->loader, s, node->published);
}

/* A slice that this release refuses is left out: its advertiser publishes
 * again. */
static void put_slice(void *ctx, const struct stored_slice *s)
{
    struct load *load = ctx;
    struct error err = s->error;
    struct ingest_result result = {0};
    int e = s->slice ? ingest_put(load->w->ingest, s->slice, load->now_ms,
                                  load->draft, &result, &err)
                     : -err.code;
    const char *node = s->slice ? slice_get_node(s->slice) : NULL;
    if (e == 0 && is_doubtful(load->w, node))
        draft_set_status(load->draft, node, NODE_DOUBTFUL);
    if (e == 0)
        take_slice(load, s, draft_node(load->draft, node));
    else
        log_event(LOG_WARN, "slice-not-loaded", "slice", s->name, "error",
                  err.text, NULL);
    ingest_result_fini(&result);
}

static int load_slices(struct load *load, struct error *err)
{
    load->loader = slice_loader_create(put_slice, load);
    int e = store_each_slice(load->w->store, NULL, add_slice, load->loader,
                             err);
    slice_loader_destroy(load->loader);
    return e;
}

/* The node was silent when the last run ended: stale until it is heard from. */
static int load_silent(void *ctx, const char *name, uint64_t number)
{
    struct load *load = ctx;
    (void)number;
    const struct node *node = draft_node(load->draft, name);
    if (!node)
        return 0;
    atomic_store(&node->liveness->heard_ms,
                 load->now_ms - load->w->config.fresh_ms - 1);
    draft_set_status(load->draft, name, NODE_STALE);
    return 0;
}

struct feed_progress_load {
    struct feed_progress *fed;
    bool has_floor;
};

static int load_fed(void *ctx, const char *node, uint64_t number)
{
    struct feed_progress_load *load = ctx;
    if (*node)
        feed_progress_load(load->fed, node, number);
    else
        feed_progress_set_floor(load->fed, number);
    load->has_floor |= !*node;
    return 0;
}

/* For allocations that an older release made, or that were saved from a damaged
 * database, it is not known whether their nodes were told: assume so. */
static int load_all_fed(struct writer *w, struct error *err)
{
    struct feed_progress_load load = {.fed = w->fed};
    struct error ignored; /* the next start computes the same floor, or a
                           * higher one */
    uint64_t floor = store_resource_version(w->store);
    int e = store_each_fed(w->store, load_fed, &load, err);
    if (e < 0 || (load.has_floor && !store_past_mark(w->store)))
        return e;
    feed_progress_set_floor(w->fed, floor);
    if (store_begin(w->store, &ignored) < 0)
        return 0;
    if (store_put_fed(w->store, "", floor, &ignored) < 0 ||
        store_commit(w->store, &ignored) < 0)
        store_rollback(w->store);
    return 0;
}

int writer_load(struct writer *w, struct error *err)
{
    cleanup_with(snapshot) struct snapshot *empty = snapshot_create_empty();
    cleanup_with(draft) struct draft *draft = draft_create(empty);
    struct load load = {.w = w, .draft = draft, .now_ms = clock_ms()};
    int e = doubt_load(w, err);
    if (e == 0)
        e = store_each_retired_boot(w->store, load_boot, &load, err);
    /* allocations first: those of a node are then counted once, when it is
     * added */
    if (e == 0)
        e = store_each_allocation(w->store, load_allocation, &load, err);
    if (e == 0)
        e = load_slices(&load, err);
    if (e == 0)
        e = drains_load(w, draft, err);
    if (e == 0)
        e = store_each_silent(w->store, load_silent, &load, err);
    if (e == 0 && w->config.pods)
        e = load_all_fed(w, err);
    if (e == 0 && w->config.pods)
        e = pods_load(w->config.pods, w->store, err);
    if (e < 0)
        return e;
    ingest_mark(w->ingest);
    draft_set_fabric(draft, w->config.fabric);
    draft_set_policy(draft, w->config.policy);
    w->current = draft_commit(steal(&draft));
    leases_load(w);
    atomic_store(&w->version, store_resource_version(w->store));
    return 0;
}
