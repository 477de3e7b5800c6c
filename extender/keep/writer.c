#include "extender/keep/writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "extender/keep/applied_draft.h"
#include "extender/keep/job_lease.h"
#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

enum { NODES_PER_COMER = 250 }; /* see take_more() */

/* --- the current snapshot ---------------------------------------------- */

struct snapshot *writer_snapshot(struct writer *w)
{
    hold_lock(&w->current_lock);
    return snapshot_ref(w->current);
}

void swap_snapshot(struct writer *w, struct snapshot *next)
{
    pthread_mutex_lock(&w->current_lock);
    struct snapshot *old = w->current;
    struct writer_watcher watchers[WRITER_WATCHERS_MAX];
    w->current = next;
    memcpy(watchers, w->watchers, sizeof watchers);
    pthread_mutex_unlock(&w->current_lock);
    snapshot_unref(old);
    for (size_t i = 0; i < WRITER_WATCHERS_MAX; i++)
        if (watchers[i].changed)
            watchers[i].changed(watchers[i].ctx);
}

void writer_watch(struct writer *w, void (*changed)(void *ctx), void *ctx)
{
    size_t i = 0;
    hold_lock(&w->current_lock);
    while (i < WRITER_WATCHERS_MAX && w->watchers[i].changed)
        i++;
    assert(i < WRITER_WATCHERS_MAX);
    w->watchers[i] = (struct writer_watcher){changed, ctx};
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* Watchers are called while operations are processed: once an operation posted
 * now is done, no call of a removed watcher can be under way. */
void writer_unwatch(struct writer *w, void *ctx)
{
    struct writer_op barrier = {.kind = WRITER_CALL, .call = nothing};
    pthread_mutex_lock(&w->current_lock);
    for (size_t i = 0; i < WRITER_WATCHERS_MAX; i++)
        if (w->watchers[i].ctx == ctx)
            w->watchers[i] = (struct writer_watcher){NULL, NULL};
    pthread_mutex_unlock(&w->current_lock);
    (void)writer_run(w, &barrier); /* a call has no result */
}

/* --- one batch --------------------------------------------------------- */

struct draft *batch_draft(struct batch *b)
{
    snapshot_unref(b->peek);
    b->peek = NULL;
    if (!b->draft)
        b->draft = draft_create(b->w->current);
    return b->draft;
}

const struct snapshot *batch_peek(struct batch *b)
{
    if (!b->peek)
        b->peek = draft_peek(batch_draft(b));
    return b->peek;
}

const struct snapshot *batch_view(struct batch *b)
{
    return b->draft ? batch_peek(b) : b->w->current;
}

const struct alloc_index *batch_allocations(const struct batch *b)
{
    return b->draft ? draft_allocations(b->draft) : b->w->current->allocations;
}

int batch_begin(struct batch *b)
{
    if (b->in_transaction)
        return 0;
    int e = store_begin(b->w->store, &b->error);
    b->in_transaction = e == 0;
    return e;
}

typedef void apply_f(struct batch *b, struct writer_op *op);

/* Indexed by the kind of operation; NULL: it changes nothing that is stored. */
static apply_f *const applies[] = {
    [WRITER_PUT_SLICE] = apply_put_slice,
    [WRITER_DELETE_SLICE] = apply_delete_slice,
    [WRITER_BIND] = apply_bind,
    [WRITER_RELEASE] = apply_release,
    [WRITER_RELEASE_JOB] = apply_release_job,
    [WRITER_TRUST] = apply_trust,
    [WRITER_ADOPT] = apply_adopt,
    [WRITER_FREE] = apply_free,
    [WRITER_KEEP] = apply_keep,
    [WRITER_LOST] = apply_lost,
    [WRITER_ROOMS] = apply_rooms,
    [WRITER_LEAD] = apply_lead,
    [WRITER_FOLLOW] = apply_follow,
    [WRITER_FED] = apply_fed,
    [WRITER_PODS] = apply_pods,
    [WRITER_DRAIN] = apply_drain,
};

static bool is_write(const struct writer_op *op)
{
    return op->kind < ARRAY_LEN(applies) && applies[op->kind];
}

void note_commit(struct writer *w, const struct error *trouble)
{
    pthread_mutex_lock(&w->lock);
    bool failed = w->trouble.code != 0;
    w->trouble = trouble ? *trouble : (struct error){0};
    pthread_mutex_unlock(&w->lock);
    if (trouble && !failed)
        log_event(LOG_ERROR, "store-fails", "error", trouble->text, NULL);
    else if (!trouble && failed)
        log_event(LOG_INFO, "store-works", NULL);
}

bool writer_can_write(struct writer *w, struct error *ret_trouble)
{
    pthread_mutex_lock(&w->lock);
    *ret_trouble = w->trouble;
    pthread_mutex_unlock(&w->lock);
    return ret_trouble->code == 0;
}

/* Make the transaction durable, then visible. */
static void batch_commit(struct batch *b)
{
    struct writer *w = b->w;
    if (b->has_bind)
        (void)failpoint("bind-before-commit");
    if (store_commit(w->store, &b->error) < 0)
        return;
    note_commit(w, NULL);
    b->in_transaction = false;
    if (b->has_bind) {
        (void)failpoint("bind-after-commit");
        (void)failpoint("bind-before-swap");
    }
    if (b->draft) {
        (void)batch_draft(b); /* releases the peek */
        swap_snapshot(w, draft_commit(steal(&b->draft)));
    }
    if (b->pods)
        applied_draft_commit(steal(&b->pods));
    ingest_mark(w->ingest);
    feed_progress_mark(w->fed);
    leases_mark(w->leases);
    if (b->has_bind)
        (void)failpoint("bind-after-swap");
}

/* The transaction failed: undo the batch and give each operation that had
 * succeeded the error. */
static void batch_fail(struct batch *b, struct writer_op *ops)
{
    struct writer *w = b->w;
    if (b->in_transaction)
        store_rollback(w->store);
    ingest_undo(w->ingest);
    feed_progress_undo(w->fed);
    leases_undo(w->leases);
    note_commit(w, &b->error);
    log_event(LOG_ERROR, "commit-failed", "error", b->error.text, NULL);
    for (struct writer_op *op = ops; op; op = op->next) {
        if (!is_write(op) || (op->result < 0 && op->error.code))
            continue;
        if (taking_is_of(w, op)) /* what it has ends with its lease */
            taking_end(w);
        op->again = false;
        op->error = b->error;
        op->result = -b->error.code;
        op->created = false;
        op->n_out = 0;
        str_reset(&op->out);
    }
}

/* Put the bodies that are stored now into the cache, for writer_heartbeat(). */
static void batch_remember(struct batch *b, const struct writer_op *ops)
{
    struct writer *w = b->w;
    for (size_t i = 0; i < b->n_gone; i++)
        if (!ingest_owner(w->ingest, b->gone[i]))
            slice_cache_remove(w->heard, b->gone[i]);
    for (const struct writer_op *op = ops; op; op = op->next) {
        if (op->result < 0 ||
            (op->kind != WRITER_PUT_SLICE && op->kind != WRITER_DELETE_SLICE))
            continue;
        const char *owner = ingest_owner(w->ingest, op->name);
        int32_t index = owner ? snapshot_find(w->current, owner, strlen(owner))
                              : NODE_NONE;
        if (index == NODE_NONE) {
            slice_cache_remove(w->heard, op->name);
        } else if (op->kind == WRITER_PUT_SLICE) {
            const struct slice_digest body = slice_digest(op->body,
                                                          op->body_size);
            slice_cache_put(w->heard, op->name, &body, op->resource_version,
                            snapshot_node(w->current, (size_t)index));
        }
    }
}

static void batch_fini(struct batch *b)
{
    snapshot_unref(b->peek);
    draft_destroy(b->draft);
    applied_draft_drop(b->pods);
    for (size_t i = 0; i < b->n_gone; i++)
        free(b->gone[i]);
    free(b->gone);
}

/* To make nodes that come visible, all that are there are copied.  Where many
 * come at once, that is done once for more of them: those that are queued now
 * belong to this batch, too.  Nobody is waited for. */
static struct writer_op *take_more(struct batch *b)
{
    size_t n = b->draft ? draft_n_coming(b->draft) : 0;
    if (n == 0 || n >= b->w->current->n_nodes / NODES_PER_COMER)
        return NULL;
    return queue_take(b->w);
}

static void apply(struct batch *b, const struct writer_op *ops,
                  struct writer_op *op)
{
    op->again = taking_delays(b->w, ops, op);
    if (!op->again)
        applies[op->kind](b, op);
    if (!op->again && taking_is_of(b->w, op))
        taking_end(b->w); /* its pod was bound by others meanwhile */
}

void write_ops(struct writer *w, struct writer_op *ops)
{
    struct batch b = {.w = w};
    bool slices = true;      /* and nothing else, which would have to wait */
    (void)leases_expire(&b); /* sets b.error */
    for (struct writer_op *op = ops; op && !b.error.code; op = op->next) {
        slices = slices && op->kind == WRITER_PUT_SLICE;
        if (is_write(op))
            apply(&b, ops, op);
        if (!op->next && slices && !b.error.code)
            op->next = take_more(&b);
    }
    if (!b.error.code && b.in_transaction)
        batch_commit(&b);
    if (b.error.code)
        batch_fail(&b, ops);
    else
        batch_remember(&b, ops);
    if (b.leaves_some && !b.error.code)
        sweep_soon(w); /* else with the next that is due */
    batch_fini(&b);
    atomic_store(&w->version, store_resource_version(w->store));
}

/* The policy is kept in its file, so nothing is stored. */
static void set_policy(struct writer *w, struct policy *policy)
{
    struct draft *draft = draft_create(w->current);
    draft_set_policy(draft, policy);
    swap_snapshot(w, draft_commit(draft));
}

static void set_fabric(struct writer *w, struct fabric *fabric)
{
    struct draft *draft = draft_create(w->current);
    draft_set_fabric(draft, fabric);
    swap_snapshot(w, draft_commit(draft));
}

/* All moves, claims and bars of a batch in one draft.  Nothing is stored: the
 * API server has it. */
static void move_pods(struct writer *w, struct writer_op *ops)
{
    struct draft *draft = NULL;
    for (struct writer_op *op = ops; op; op = op->next) {
        if (op->again)
            continue;
        move_pod(w, op, &draft);
        note_claim(w, op, &draft);
        note_bars(w, op, &draft);
    }
    if (draft)
        swap_snapshot(w, draft_commit(draft));
}

static void read_op(struct writer *w, struct writer_op *op)
{
    if (op->kind == WRITER_GET_SLICE)
        read_slice(w, op);
    else if (op->kind == WRITER_LIST_SLICES)
        read_slices(w, op);
    else if (op->kind == WRITER_SET_POLICY)
        set_policy(w, op->policy);
    else if (op->kind == WRITER_SET_FABRIC)
        set_fabric(w, op->fabric);
    else if (op->kind == WRITER_HEARD)
        read_heard(w, op);
    else if (op->kind == WRITER_CALL)
        op->call(op->ctx);
}

/* --- the thread -------------------------------------------------------- */

/* Writes first, in one transaction; then the moves of pods; then reads, which
 * see both. */
static void process(struct writer *w, struct writer_op *ops)
{
    struct writer_op *first = NULL, **last = &first;
    write_ops(w, ops);
    drains_settle(w, ops);
    if (doubt_settle(w, ops))
        sweep(w);
    move_pods(w, ops);
    for (struct writer_op *op = ops; op; op = op->next)
        read_op(w, op);
    while (ops) {
        struct writer_op *next = ops->next;
        if (ops->again) {
            *last = ops;
            last = &ops->next;
        } else {
            queue_finish(w, ops);
        }
        ops = next;
    }
    if (first)
        queue_again(w, first, last);
}

static int64_t next_sweep(const struct writer *w)
{
    return w->config.sweep_ms > 0 ? clock_ms() + w->config.sweep_ms : INT64_MAX;
}

static void *writer_thread(void *ctx)
{
    struct writer *w = ctx;
    int64_t due_ms = next_sweep(w);
    struct writer_op *ops;
    bool wanted;
    thread_name("writer", NULL);
    while (queue_wait(w, due_ms, &ops, &wanted)) {
        if (ops)
            process(w, ops);
        bool timed = clock_ms() >= due_ms;
        if (timed)
            due_ms = next_sweep(w);
        if (wanted || timed)
            sweep(w);
        store_tidy(w->store);
    }
    return NULL;
}

bool writer_lease_end(struct writer *w, const char *job, int64_t *ret_until_ms)
{
    return leases_end(w->leases, job, ret_until_ms);
}

uint64_t writer_version(struct writer *w)
{
    return atomic_load(&w->version);
}

struct overfull_call {
    struct writer *w;
    writer_overfull_f *told;
    void *ctx;
};

static void call_on_overfull(void *ctx)
{
    const struct overfull_call *c = ctx;
    c->w->overfull = c->told;
    c->w->overfull_ctx = c->ctx;
}

void writer_on_overfull(struct writer *w, writer_overfull_f *told, void *ctx)
{
    struct overfull_call c = {w, told, ctx};
    struct writer_op op = {
        .kind = WRITER_CALL, .call = call_on_overfull, .ctx = &c};
    (void)writer_run(w, &op); /* a call has no result */
}

uint64_t writer_fed(struct writer *w, const char *node)
{
    return feed_progress_number(w->fed, node);
}

uint64_t writer_conflicts(struct writer *w)
{
    return atomic_load(&w->conflicts);
}

/* --- start and stop ---------------------------------------------------- */

static struct writer *writer_create(const struct writer_config *config)
{
    struct writer *w = xcalloc(1, sizeof *w);
    w->config = *config;
    if (w->config.lease_ms == 0)
        w->config.lease_ms = WRITER_LEASE_MS;
    if (w->config.piece == 0)
        w->config.piece = WRITER_PIECE;
    w->last = &w->first;
    w->ingest = ingest_create();
    w->leases = leases_create();
    w->heard = slice_cache_create();
    w->fed = feed_progress_create();
    /* none of these can fail on Linux */
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_mutex_init(&w->current_lock, NULL);
    (void)pthread_cond_init(&w->done, NULL);
    clock_wait_init(&w->wake);
    return w;
}

int writer_start(const struct writer_config *config, struct writer **ret_writer,
                 struct error *err)
{
    struct writer *w = writer_create(config);
    int e = store_open(config->store, config->state_dir, &w->store, err);
    if (e == 0)
        e = writer_load(w, err);
    if (e == 0) {
        int rc = pthread_create(&w->thread, NULL, writer_thread, w);
        w->started = rc == 0;
        e = rc ? error_errno(err, rc, "starting the writer's thread") : 0;
    }
    if (e < 0) {
        writer_stop(w);
        return e;
    }
    *ret_writer = w;
    return 0;
}

static void drop_claim(void *claim)
{
    claim_use_unref(claim);
}

void writer_stop(struct writer *w)
{
    if (!w)
        return;
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        w->stopping = true;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        (void)pthread_join(w->thread, NULL); /* it was started, once */
    }
    snapshot_unref(w->current);
    taking_end(w);
    leases_destroy(w->leases);
    slice_cache_destroy(w->heard);
    feed_progress_destroy(w->fed);
    strmap_fini_with(&w->lost, free);
    strmap_fini_with(&w->trusted, free);
    strmap_fini_with(&w->claims, drop_claim);
    bars_free(w);
    ingest_destroy(w->ingest);
    store_close(w->store);
    (void)pthread_cond_destroy(&w->done);
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_mutex_destroy(&w->current_lock);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
