#include <string.h>

#include "lib/grpcd/grpcd_private.h"

enum { KEEP = 16 << 10 }; /* bytes of a buffer that is empty */

/* --- queues ----------------------------------------------------------------- */

size_t grpcd_queue_left(const struct grpcd_queue *q)
{
    return q->data.size - q->at;
}

/* Empty, or so much of it has gone that the rest is cheap to move. */
static void tidy(struct grpcd_queue *q)
{
    size_t left = grpcd_queue_left(q);
    if (left == 0 && q->data.cap > KEEP) {
        str_fini(&q->data);
        q->at = 0;
    } else if (q->at > left) {
        memmove(q->data.data, q->data.data + q->at, left);
        q->data.size = left;
        q->at = 0;
    }
}

void grpcd_queue_add(struct grpcd *s, struct grpcd_queue *q, const void *data,
                     size_t size)
{
    if (q->data.max == 0)
        q->data.max = STR_MAX_DEFAULT;
    str_add_n(&q->data, data, size);
    atomic_fetch_add(&s->held, size);
}

void grpcd_queue_take(struct grpcd *s, struct grpcd_queue *q, void *ret_data,
                      size_t size)
{
    memcpy(ret_data, q->data.data + q->at, size);
    q->at += size;
    atomic_fetch_sub(&s->held, size);
    tidy(q);
}

ssize_t grpcd_leg_read(struct grpcd *s, struct grpcd_leg *leg, uint8_t *buffer,
                       size_t size, bool *ret_end)
{
    size_t left = grpcd_queue_left(&leg->out);
    *ret_end = false;
    if (left == 0 && !leg->out_ended) {
        leg->waits = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (size > left)
        size = left;
    if (size > 0)
        grpcd_queue_take(s, &leg->out, buffer, size);
    *ret_end = size == left && leg->out_ended;
    return (ssize_t)size;
}

void grpcd_queue_drop(struct grpcd *s, struct grpcd_queue *q)
{
    atomic_fetch_sub(&s->held, grpcd_queue_left(q));
    str_fini(&q->data);
    q->at = 0;
}

/* --- legs ------------------------------------------------------------------- */

struct grpcd_leg *grpcd_leg_of(struct grpcd_call *c, const struct grpcd_link *l)
{
    return l->relay ? &c->up : &c->down;
}

void grpcd_leg_attach(struct grpcd_call *c, struct grpcd_link *l, int32_t id)
{
    struct grpcd_leg *leg = grpcd_leg_of(c, l);
    leg->link = l;
    leg->id = id;
    leg->prev = NULL;
    leg->next = l->calls;
    if (l->calls)
        grpcd_leg_of(l->calls, l)->prev = c;
    l->calls = c;
    l->n_calls++;
}

void grpcd_leg_detach(struct grpcd_call *c, struct grpcd_leg *leg)
{
    struct grpcd_link *l = leg->link;
    if (!leg->id)
        return;
    if (leg->prev)
        grpcd_leg_of(leg->prev, l)->next = leg->next;
    else
        l->calls = leg->next;
    if (leg->next)
        grpcd_leg_of(leg->next, l)->prev = leg->prev;
    l->n_calls--;
    leg->id = 0;
    grpcd_queue_drop(c->s, &leg->out);
}

void grpcd_leg_resume(struct grpcd_leg *leg)
{
    if (!leg->id || !leg->waits)
        return;
    leg->waits = false;
    /* fails for a stream that ends just now */
    (void)nghttp2_session_resume_data(leg->link->h2, leg->id);
    grpcd_link_dirty(leg->link);
}

void grpcd_leg_consume(struct grpcd_leg *leg, size_t size)
{
    if (size > leg->unread)
        size = leg->unread;
    leg->unread -= size;
    if (!leg->id || size == 0)
        return;
    (void)nghttp2_session_consume_stream(leg->link->h2, leg->id, size);
    grpcd_link_dirty(leg->link);
}

void grpcd_leg_reset(struct grpcd_leg *leg, uint32_t code)
{
    if (!leg->id)
        return;
    (void)nghttp2_submit_rst_stream(leg->link->h2, NGHTTP2_FLAG_NONE, leg->id,
                                    code);
    grpcd_link_dirty(leg->link);
}

nghttp2_nv *grpcd_nva(const struct h2_fields *fields,
                      bool (*skip)(const char *name), size_t spare,
                      size_t *ret_n)
{
    nghttp2_nv *nva = xmalloc((fields->n + spare + 1) * sizeof *nva);
    const char *name, *value;
    size_t n = 0;
    for (size_t at = 0; h2_fields_next(fields, &at, &name, &value);)
        if (!skip || !skip(name))
            nva[n++] = h2_nv(name, value);
    *ret_n = n;
    return nva;
}
