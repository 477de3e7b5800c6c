/* The queue of operations: posted by any thread, taken by the writer's. */
#include "extender/keep/writer_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"

/* Slices are decoded here, on the poster's thread. */
static void prepare_op(struct writer_op *op)
{
    op->next = NULL;
    op->result = 0;
    op->error = (struct error){0};
    op->created = op->healed = false;
    op->finished = op->again = false;
    op->n_out = 0;
    op->slice = NULL;
    if (op->kind == WRITER_PUT_SLICE)
        op->result = slice_decode(op->body, op->body_size, &op->slice,
                                  &op->error);
}

static void post_locked(struct writer *w, struct writer_op *op)
{
    *w->last = op;
    w->last = &op->next;
    pthread_cond_signal(&w->wake);
}

void writer_post(struct writer *w, struct writer_op *op)
{
    prepare_op(op);
    hold_lock(&w->lock);
    post_locked(w, op);
}

void writer_run_all(struct writer *w, struct writer_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ops[i].done = NULL;
        prepare_op(&ops[i]);
    }
    hold_lock(&w->lock);
    for (size_t i = 0; i < n; i++)
        post_locked(w, &ops[i]);
    for (size_t i = 0; i < n; i++)
        while (!ops[i].finished)
            (void)pthread_cond_wait(&w->done, &w->lock); /* never fails */
}

int writer_run(struct writer *w, struct writer_op *op)
{
    writer_run_all(w, op, 1);
    return op->result;
}

static struct writer_op *take_queue_locked(struct writer *w)
{
    struct writer_op *ops = w->first;
    w->first = NULL;
    w->last = &w->first;
    return ops;
}

struct writer_op *queue_take(struct writer *w)
{
    hold_lock(&w->lock);
    return take_queue_locked(w);
}

void queue_again(struct writer *w, struct writer_op *first,
                 struct writer_op **last)
{
    hold_lock(&w->lock);
    *last = w->first;
    if (!w->first)
        w->last = last;
    w->first = first;
}

bool queue_wait(struct writer *w, int64_t due_ms, struct writer_op **ret_ops,
                bool *ret_sweep)
{
    bool due = false;
    hold_lock(&w->lock);
    while (!w->first && !w->sweep_wanted && !w->stopping && !due)
        due = !clock_wait(&w->wake, &w->lock, due_ms);
    *ret_ops = take_queue_locked(w);
    *ret_sweep = w->sweep_wanted || due;
    bool more = *ret_ops || !w->stopping;
    w->sweep_wanted = false;
    return more;
}

void queue_finish(struct writer *w, struct writer_op *op)
{
    if (op->kind == WRITER_BIND)
        (void)failpoint("bind-before-reply");
    slice_unref(steal(&op->slice));
    if (op->done) {
        op->done(op);
        return;
    }
    hold_lock(&w->lock);
    op->finished = true;
    pthread_cond_broadcast(&w->done);
}
