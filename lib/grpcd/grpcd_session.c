#include "lib/grpcd/grpcd_private.h"

#include "lib/h2/h2_invalid.h"

enum {
    WINDOW_ALL = 16 << 20, /* of a connection: given back at once */
    COST_INVALID = 5,      /* of a frame that breaks the protocol */
};

static struct grpcd_call *call_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin_headers(nghttp2_session *session,
                            const nghttp2_frame *frame, void *arg)
{
    struct grpcd_link *l = arg;
    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS &&
        frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        grpcd_stream_create(l, frame->hd.stream_id);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_size,
                     const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    struct grpcd_call *c = call_of(session, frame->hd.stream_id);
    (void)flags;
    (void)arg;
    if (c && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        (void)h2_fields_add(&c->fields, (const char *)name, name_size,
                            (const char *)value, value_size); /* see its head */
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t size, void *arg)
{
    struct grpcd_call *c = call_of(session, id);
    (void)flags;
    (void)arg;
    /* one call that stands still must not hold up the others */
    (void)nghttp2_session_consume_connection(session, size);
    if (c) {
        c->down.unread += size;
        grpcd_stream_data(c, data, size);
    }
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *arg)
{
    bool head = frame->hd.type == NGHTTP2_HEADERS;
    (void)arg;
    if (!head && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct grpcd_call *c = call_of(session, frame->hd.stream_id);
    if (c && head && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        grpcd_stream_head(c);
    if (c && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        grpcd_stream_ended(c);
    return 0;
}

static int on_invalid_frame(nghttp2_session *session,
                            const nghttp2_frame *frame, int code, void *arg)
{
    (void)session;
    (void)frame;
    (void)code;
    grpcd_link_pay(arg, COST_INVALID);
    return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame,
                   void *arg)
{
    struct grpcd_link *l = arg;
    int32_t id = frame->hd.stream_id;
    bool data = frame->hd.type == NGHTTP2_DATA;
    if (data)
        h2_meter_earn(&l->meter, H2_BUDGET_PER_DATA);
    /* answered before it came whole: the rest need not come */
    if ((data || frame->hd.type == NGHTTP2_HEADERS) &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
        nghttp2_session_get_stream_remote_close(session, id) == 0)
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id,
                                        NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code,
                           void *arg)
{
    struct grpcd_call *c = call_of(session, id);
    (void)arg;
    if (c)
        grpcd_stream_closed(c, code);
    return 0;
}

nghttp2_session_callbacks *grpcd_down_callbacks(void)
{
    nghttp2_session_callbacks *c;
    if (nghttp2_session_callbacks_new(&c) != 0)
        abort(); /* out of memory, as x*alloc does */
    nghttp2_session_callbacks_set_on_begin_headers_callback(c,
                                                            on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(
        c, h2_refuse_invalid_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
        c, on_invalid_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    return c;
}

int grpcd_session_create(struct grpcd_link *l)
{
    const struct grpcd *s = l->s;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPCD_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPCD_FIELDS_MAX},
        {l->relay ? NGHTTP2_SETTINGS_ENABLE_PUSH
                  : NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
         l->relay ? 0 : GRPCD_STREAMS},
    };
    int r = l->relay ? nghttp2_session_client_new2(&l->h2, s->up_callbacks, l,
                                                   s->option)
                     : nghttp2_session_server_new2(&l->h2, s->down_callbacks, l,
                                                   s->option);
    if (r == 0)
        r = nghttp2_submit_settings(l->h2, NGHTTP2_FLAG_NONE, settings,
                                    ARRAY_LEN(settings));
    if (r == 0)
        r = nghttp2_session_set_local_window_size(l->h2, NGHTTP2_FLAG_NONE, 0,
                                                  WINDOW_ALL);
    return r;
}
