#include <string.h>

#include "lib/grpcd/grpcd_private.h"
#include "lib/h2/grpc_text.h"

enum { STATUS_MAX = 3 * GRPCD_TEXT_MAX + 200 }; /* bytes of its two fields */

void grpcd_reply_note(struct grpcd_call *c, int code)
{
    if (c->code < 0)
        c->code = code;
}

static bool no_length(const char *name)
{
    return strcmp(name, "content-length") == 0;
}

/* All DATA is out: the trailers. */
static void submit_trailers(struct grpcd_call *c)
{
    size_t n;
    cleanup_free nghttp2_nv *nva = grpcd_nva(&c->reply, no_length, 0, &n);
    (void)nghttp2_submit_trailer(c->down.link->h2, c->down.id, nva, n);
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buffer,
                       size_t size, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    struct grpcd_call *c = source->ptr;
    bool ended;
    ssize_t n = grpcd_leg_read(c->s, &c->down, buffer, size, &ended);
    (void)session;
    (void)id;
    (void)arg;
    if (n < 0)
        return n;
    c->sent += (size_t)n;
    if (ended) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (c->reply.n > 0) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            submit_trailers(c);
        }
    }
    grpcd_reply_sent(c, (size_t)n);
    return n;
}

void grpcd_reply_submit(struct grpcd_call *c, const struct h2_fields *fields,
                        bool end)
{
    const nghttp2_data_provider body = {.source.ptr = c,
                                        .read_callback = on_read};
    size_t n;
    cleanup_free nghttp2_nv *nva = grpcd_nva(fields, no_length, 0, &n);
    c->head_sent = true;
    c->down.out_ended |= end;
    if (!c->down.id)
        return;
    if (nghttp2_submit_response(c->down.link->h2, c->down.id, nva, n,
                                end ? NULL : &body) < 0)
        grpcd_leg_reset(&c->down, NGHTTP2_INTERNAL_ERROR);
    grpcd_link_dirty(c->down.link);
}

/* The reply's headers, or what precedes the status in a reply without any;
 * those of its handler, too, when it is not about to add some. */
static void own_head(struct grpcd_call *c, bool handlers,
                     struct h2_fields *ret_fields)
{
    const char *name, *value;
    h2_fields_init(ret_fields, GRPCD_FIELDS_MAX);
    (void)h2_fields_add_text(ret_fields, ":status", "200");
    (void)h2_fields_add_text(ret_fields, "content-type", GRPCD_TYPE);
    if (!handlers)
        return;
    for (size_t at = 0; h2_fields_next(&c->reply, &at, &name, &value);)
        (void)h2_fields_add_text(ret_fields, name, value);
    h2_fields_reset(&c->reply);
}

static void add_status(struct h2_fields *fields, int code, const char *text)
{
    cleanup_str struct str message = STR_INIT(3 * GRPCD_TEXT_MAX + 1);
    char number[16];
    (void)snprintf(number, sizeof number, "%d", code);
    fields->max = fields->size + STATUS_MAX; /* it always fits */
    (void)h2_fields_add_text(fields, "grpc-status", number);
    if (!text || !*text)
        return;
    grpc_text_encode(text, strnlen(text, GRPCD_TEXT_MAX), &message);
    (void)h2_fields_add(fields, "grpc-message", 12, message.data, message.size);
}

static void own_trailers(struct grpcd_call *c, struct h2_fields *fields)
{
    const char *name, *value;
    for (size_t at = 0; h2_fields_next(&c->trailers, &at, &name, &value);)
        (void)h2_fields_add_text(fields, name, value);
}

void grpcd_reply_begin(struct grpcd_call *c)
{
    struct h2_fields head;
    own_head(c, true, &head);
    grpcd_reply_submit(c, &head, false);
    h2_fields_fini(&head);
}

void grpcd_reply_finish(struct grpcd_call *c, int code, const char *text)
{
    if (c->down.out_ended)
        return;
    grpcd_reply_note(c, code);
    if (c->head_sent) {
        h2_fields_reset(&c->reply);
        if (!c->owned)
            own_trailers(c, &c->reply);
        add_status(&c->reply, code, text);
        c->down.out_ended = true;
        grpcd_leg_resume(&c->down);
        return;
    }
    struct h2_fields all;
    own_head(c, !c->owned, &all);
    if (!c->owned)
        own_trailers(c, &all);
    add_status(&all, code, text);
    grpcd_reply_submit(c, &all, true);
    h2_fields_fini(&all);
}

void grpcd_reply_fail(struct grpcd_call *c, int code, const char *text)
{
    struct grpcd_leg *leg = &c->down;
    if (!leg->id || (leg->out_ended && grpcd_queue_left(&leg->out) == 0))
        return;
    grpcd_reply_note(c, code);
    /* trailers would wait behind what the client does not take */
    if (c->head_sent && (grpcd_queue_left(&leg->out) > 0 ||
                         nghttp2_session_get_stream_remote_window_size(
                             leg->link->h2, leg->id) <= 0)) {
        leg->out_ended = true;
        grpcd_leg_reset(leg, NGHTTP2_CANCEL);
        return;
    }
    grpcd_reply_finish(c, code, text);
}

/* So many bytes of the reply are on their way. */
void grpcd_reply_sent(struct grpcd_call *c, size_t size)
{
    struct grpcd *s = c->s;
    if (c->relayed) {
        grpcd_pass_sent(c, size);
        return;
    }
    hold_lock(&s->lock);
    bool blocked = c->n_queued > GRPCD_QUEUE_MAX;
    c->n_queued -= size < c->n_queued ? size : c->n_queued;
    if (blocked && c->n_queued <= GRPCD_QUEUE_MAX)
        pthread_cond_broadcast(&c->changed);
}
