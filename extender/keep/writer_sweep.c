/* Which nodes are silent, and what is looked at from time to time. */
#include <string.h>

#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

/* One that was heard from before `oldest_ms` is stale. */
static enum node_status status_since(const struct writer *w,
                                     const struct node *n, int64_t oldest_ms)
{
    if (is_lost(w, n->name))
        return NODE_LOST;
    bool heard = atomic_load_explicit(&n->liveness->heard_ms,
                                      memory_order_relaxed) >= oldest_ms;
    if (!heard)
        return NODE_STALE;
    if (is_doubtful(w, n->name))
        return NODE_DOUBTFUL;
    /* while a pool is incomplete, `topo` is that of the last complete one */
    return n->topo && n->n_slices == n->pool_count ? NODE_READY
                                                   : NODE_INCOMPLETE;
}

enum node_status status_now(const struct writer *w, const struct node *n)
{
    return status_since(w, n, clock_ms() - w->config.fresh_ms);
}

/* Notes which nodes fell silent or came back, for the next start.  If that
 * cannot be stored, the next start counts them as heard from, as all others. */
struct silence {
    struct writer *w;
    bool begun, failed;
    struct error error;
};

static void silence_note(struct silence *x, const char *node, bool silent)
{
    if (x->failed)
        return;
    if (!x->begun)
        x->failed = store_begin(x->w->store, &x->error) < 0;
    x->begun |= !x->failed;
    if (!x->failed &&
        store_set_silent(x->w->store, node, silent, &x->error) < 0)
        x->failed = true;
    if (x->failed)
        log_event(LOG_WARN, "silence-not-stored", "node", node, "error",
                  x->error.text, NULL);
}

static void silence_commit(struct silence *x)
{
    if (!x->begun && !x->failed)
        return;
    if (x->failed)
        store_rollback(x->w->store);
    else
        x->failed = store_commit(x->w->store, &x->error) < 0;
    note_commit(x->w, x->failed ? &x->error : NULL);
}

/* After a failed commit try one that stores only a version.  Clients that are
 * told of the failure may send nothing more that would try it. */
static void try_again(struct writer *w)
{
    struct error err = {0};
    if (writer_can_write(w, &err))
        return;
    err = (struct error){0};
    int e = store_begin(w->store, &err);
    if (e == 0) {
        (void)store_take_version(w->store);
        e = store_commit(w->store, &err);
    }
    note_commit(w, e < 0 ? &err : NULL);
    atomic_store(&w->version, store_resource_version(w->store));
}

void sweep(struct writer *w)
{
    try_again(w);
    write_ops(w, NULL); /* ends the leases whose time is over */
    const struct snapshot *s = w->current;
    struct draft *draft = NULL;
    struct silence silence = {.w = w};
    int64_t oldest_ms = clock_ms() - w->config.fresh_ms;
    end_offers(w, "", &draft);
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *n = snapshot_node(s, i);
        snapshot_fetch(s, i);
        enum node_status status = status_since(w, n, oldest_ms);
        if (status == n->status)
            continue;
        draft_set_status(draft_once(w, &draft), n->name, status);
        silence_note(&silence, n->name, status == NODE_STALE);
        log_event(LOG_INFO, "node-status", "node", n->name, "status",
                  node_status_name(status), NULL);
    }
    silence_commit(&silence);
    bool is_news = draft;
    if (state_intern_full(s->states))
        draft_renew(draft_once(w, &draft));
    /* drafts that were never committed, as of simulations, add states, too */
    if (state_intern_outgrown(s->states, s->n_nodes))
        (void)draft_once(w, &draft); /* to be committed */
    if (draft && !is_news)
        draft_keep_news(draft);
    if (draft)
        swap_snapshot(w, draft_commit(draft));
    trim_after_change(w);
}

static void call_sweep(void *ctx)
{
    sweep(ctx);
}

void writer_sweep(struct writer *w)
{
    struct writer_op op = {.kind = WRITER_CALL, .call = call_sweep, .ctx = w};
    (void)writer_run(w, &op); /* a call has no result */
}

static bool is_stale(struct writer *w, const char *slice_name)
{
    char owner[DEMAND_NAME_MAX + 1];
    if (!slice_cache_node(w->heard, slice_name, owner))
        return false;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t index = snapshot_find(s, owner, strlen(owner));
    return index != NODE_NONE &&
           snapshot_node(s, (size_t)index)->status == NODE_STALE;
}

void sweep_soon(struct writer *w)
{
    hold_lock(&w->lock);
    w->sweep_wanted = true;
    pthread_cond_signal(&w->wake);
}

bool writer_heartbeat(struct writer *w, const struct slice_cache_body *body,
                      uint64_t *ret_resource_version)
{
    if (!slice_cache_repeat(w->heard, body, clock_ms(), ret_resource_version))
        return false;
    if (is_stale(w, body->name))
        sweep_soon(w);
    return true;
}
