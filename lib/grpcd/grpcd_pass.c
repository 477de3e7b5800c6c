#include <errno.h>
#include <string.h>

#include "lib/grpcd/grpcd_private.h"
#include "lib/h2/grpc_text.h"
#include "lib/io/clock.h"

/* --- the request -------------------------------------------------------------- */

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buffer,
                       size_t size, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    struct grpcd_call *c = source->ptr;
    bool ended;
    ssize_t n = grpcd_leg_read(c->s, &c->up, buffer, size, &ended);
    (void)session;
    (void)id;
    (void)arg;
    if (n < 0)
        return n;
    if (ended)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    /* what its handler looked at was given back before */
    if (grpcd_queue_left(&c->up.out) < GRPCD_WINDOW)
        grpcd_leg_consume(&c->down, (size_t)n);
    return n;
}

static bool is_ours(const char *name)
{
    return name[0] == ':' || strcmp(name, "content-length") == 0 ||
           strcmp(name, "grpc-timeout") == 0;
}

/* An edited reply must not come compressed. */
static bool is_ours_to_edit(const char *name)
{
    return is_ours(name) || strcmp(name, "grpc-accept-encoding") == 0;
}

static int submit(struct grpcd_call *c, struct grpcd_link *l)
{
    enum { OWN = 6 };
    const nghttp2_data_provider body = {.source.ptr = c,
                                        .read_callback = on_read};
    char timeout[GRPC_TIMEOUT_MAX];
    const char *const pseudo[][2] = {
        {":method", "POST"},
        {":scheme", "http"},
        {":path", h2_fields_get(&c->fields, ":path")},
        {":authority", "localhost"},
    };
    size_t n;
    cleanup_free nghttp2_nv *rest =
        grpcd_nva(&c->fields, c->edit.reply ? is_ours_to_edit : is_ours, 0, &n);
    cleanup_free nghttp2_nv *nva = xmalloc((n + OWN) * sizeof *nva);
    size_t own = 0;
    for (; own < ARRAY_LEN(pseudo); own++)
        nva[own] = h2_nv(pseudo[own][0], pseudo[own][1]);
    memcpy(nva + own, rest, n * sizeof *nva);
    n += own;
    if (c->due_ms < INT64_MAX) {
        grpc_timeout_write(c->due_ms - clock_ms(), timeout);
        nva[n++] = h2_nv("grpc-timeout", timeout);
    }
    int id = nghttp2_submit_request(l->h2, NULL, nva, n, &body, c);
    if (id > 0)
        grpcd_leg_attach(c, l, id);
    grpcd_link_dirty(l);
    return id;
}

/* What has come until now, or what is to go in its place. */
static void queue_request(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    pthread_mutex_lock(&s->lock);
    atomic_fetch_sub(&s->held, c->first.size + c->in.size);
    if (c->edit.request) {
        unsigned char prefix[GRPC_PREFIX];
        grpc_prefix(c->edit.size, prefix);
        grpcd_queue_add(s, &c->up.out, prefix, sizeof prefix);
        grpcd_queue_add(s, &c->up.out, c->edit.request, c->edit.size);
        c->up.out_ended = true;
    } else {
        if (c->has_first && !c->first_taken)
            grpcd_queue_add(s, &c->up.out, c->first.data, c->first.size);
        grpcd_queue_add(s, &c->up.out, str_text(&c->in), c->in.size);
        c->up.out_ended = c->in_ended || c->down.in_ended;
    }
    str_fini(&c->first);
    str_fini(&c->in);
    c->has_first = false;
    pthread_mutex_unlock(&s->lock);
    free((void *)c->edit.request);
    c->edit.request = NULL;
}

void grpcd_pass_begin(struct grpcd_call *c)
{
    struct error err = {0};
    struct grpcd_link *l = grpcd_relay_link(c->relay, &err);
    c->begun = c->relayed = true;
    if (!l) {
        grpcd_reply_fail(c, GRPC_UNAVAILABLE, err.text);
        return;
    }
    queue_request(c);
    int r = submit(c, l);
    if (r == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED ||
        r ==
            NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE) { /* GOAWAY has come, or it is old */
        grpcd_relay_gone(l);
        grpcd_link_leave(l);
        l = grpcd_relay_link(c->relay, &err);
        r = l ? submit(c, l) : r;
    }
    if (r < 0) {
        grpcd_queue_drop(c->s, &c->up.out);
        grpcd_reply_fail(c, GRPC_UNAVAILABLE,
                         l ? nghttp2_strerror(r) : err.text);
    }
}

void grpcd_pass_data(struct grpcd_call *c, const void *data, size_t size)
{
    if (!c->up.id || c->up.out_ended) { /* nobody wants it any more */
        grpcd_leg_consume(&c->down, size);
        return;
    }
    grpcd_queue_add(c->s, &c->up.out, data, size);
    grpcd_leg_resume(&c->up);
}

void grpcd_pass_ended(struct grpcd_call *c)
{
    c->up.out_ended = true;
    grpcd_leg_resume(&c->up);
}

/* --- the reply ------------------------------------------------------------------ */

void grpcd_pass_sent(struct grpcd_call *c, size_t size)
{
    if (!c->edit.reply)
        grpcd_leg_consume(&c->up, size);
    else if (grpcd_queue_left(&c->down.out) < GRPCD_WINDOW)
        grpcd_leg_consume(&c->up, c->up.unread);
}

static void pass_fail(struct grpcd_call *c, int code, const char *text)
{
    grpcd_leg_reset(&c->up, NGHTTP2_CANCEL);
    grpcd_reply_fail(c, code, text);
}

/* Each message that is whole goes through the caller's hands; 0 or -errno. */
static int edit_messages(struct grpcd_call *c, struct error *err)
{
    struct grpcd *s = c->s;
    struct str *in = &c->edit_in;
    while (in->size >= GRPC_PREFIX) {
        cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
        unsigned char prefix[GRPC_PREFIX];
        size_t size;
        int r = grpc_prefix_read((const unsigned char *)in->data,
                                 s->config.message_max, &size, err);
        if (r < 0 || in->size - GRPC_PREFIX < size)
            return r;
        r = c->edit.reply(c->edit.ctx, in->data + GRPC_PREFIX, size, &out, err);
        if (r == 0 && out.size > s->config.message_max)
            r = error_set(err, EMSGSIZE,
                          "the reply has %zu bytes, the limit is %zu", out.size,
                          s->config.message_max);
        if (r < 0)
            return r;
        grpc_prefix(out.size, prefix);
        grpcd_queue_add(s, &c->down.out, prefix, sizeof prefix);
        grpcd_queue_add(s, &c->down.out, str_text(&out), out.size);
        size += GRPC_PREFIX;
        memmove(in->data, in->data + size, in->size - size);
        in->size -= size;
        atomic_fetch_sub(&s->held, size);
    }
    if (in->size == 0)
        str_fini(in);
    return 0;
}

static void edit_data(struct grpcd_call *c, const void *data, size_t size)
{
    struct error err = {0};
    str_add_n(&c->edit_in, data, size);
    atomic_fetch_add(&c->s->held, size);
    int r = edit_messages(c, &err);
    if (r < 0) {
        pass_fail(c, r == -EPROTO ? GRPC_INTERNAL : grpcd_code_of(-r),
                  err.text);
        return;
    }
    if (grpcd_queue_left(&c->down.out) < GRPCD_WINDOW)
        grpcd_leg_consume(&c->up, c->up.unread);
}

static void take_data(struct grpcd_call *c, const void *data, size_t size)
{
    if (!c->down.id || c->down.out_ended) {
        grpcd_leg_consume(&c->up, size);
        return;
    }
    if (c->edit.reply)
        edit_data(c, data, size);
    else
        grpcd_queue_add(c->s, &c->down.out, data, size);
    grpcd_leg_resume(&c->down);
}

static void note_status(struct grpcd_call *c)
{
    const char *status = h2_fields_get(&c->reply, "grpc-status");
    if (status && c->code < 0)
        c->code = (int)strtol(status, NULL, 10);
}

static void take_head(struct grpcd_call *c, bool end)
{
    const char *status = h2_fields_get(&c->reply, ":status");
    if (!c->down.id || c->down.out_ended)
        return;
    if (h2_fields_are_cut(&c->reply)) {
        pass_fail(c, GRPC_RESOURCE_EXHAUSTED,
                  "headers or trailers of the reply are over 32768 bytes");
        return;
    }
    if (status && status[0] == '1')
        return; /* another head follows */
    if (end)
        note_status(c);
    if (!c->head_sent)
        grpcd_reply_submit(c, &c->reply, end);
    if (!end)
        h2_fields_reset(&c->reply);
}

static void take_end(struct grpcd_call *c)
{
    c->up.in_ended = true;
    if (!c->down.id || c->down.out_ended)
        return;
    if (c->edit_in.size > 0) {
        pass_fail(c, GRPC_INTERNAL, "the reply ends within a message");
        return;
    }
    c->down.out_ended = true;
    grpcd_leg_resume(&c->down);
}

/* Its stream has closed before the end of the reply. */
static void broken(struct grpcd_call *c, uint32_t code)
{
    if (!c->down.id || c->down.out_ended)
        return;
    c->down.out_ended = true;
    grpcd_leg_reset(&c->down, code);
}

void grpcd_pass_lost(struct grpcd_call *c)
{
    const struct grpcd_relay *r = c->relay;
    bool ended = c->up.in_ended;
    char text[400];
    grpcd_leg_detach(c, &c->up);
    (void)snprintf(text, sizeof text,
                   "the connection to %s at unix:%s ended before the answer, "
                   "whether the call was carried out is not known: has it "
                   "just stopped?",
                   r->name, r->path);
    if (!ended)
        grpcd_reply_fail(c, GRPC_UNAVAILABLE, text);
    grpcd_stream_release(c);
}

/* --- nghttp2's callbacks ---------------------------------------------------------- */

static struct grpcd_call *call_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin_headers(nghttp2_session *session,
                            const nghttp2_frame *frame, void *arg)
{
    struct grpcd_call *c = call_of(session, frame->hd.stream_id);
    (void)arg;
    if (c && !c->down.out_ended)
        h2_fields_reset(&c->reply);
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
    if (c && !c->down.out_ended)
        (void)h2_fields_add(&c->reply, (const char *)name, name_size,
                            (const char *)value, value_size); /* take_head() */
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t size, void *arg)
{
    struct grpcd_call *c = call_of(session, id);
    (void)flags;
    (void)arg;
    (void)nghttp2_session_consume_connection(session, size);
    if (c) {
        c->up.unread += size;
        take_data(c, data, size);
    }
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *arg)
{
    struct grpcd_link *l = arg;
    bool head = frame->hd.type == NGHTTP2_HEADERS;
    bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        l->leaving = true;
        grpcd_relay_gone(l);
        grpcd_link_dirty(l);
    }
    if (!head && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct grpcd_call *c = call_of(session, frame->hd.stream_id);
    if (c && head)
        take_head(c, end);
    if (c && end)
        take_end(c);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code,
                           void *arg)
{
    struct grpcd_call *c = call_of(session, id);
    (void)arg;
    if (!c)
        return 0;
    grpcd_leg_detach(c, &c->up);
    if (!c->up.in_ended)
        broken(c, code);
    grpcd_stream_release(c);
    return 0;
}

nghttp2_session_callbacks *grpcd_up_callbacks(void)
{
    nghttp2_session_callbacks *c;
    if (nghttp2_session_callbacks_new(&c) != 0)
        abort(); /* out of memory, as x*alloc does */
    nghttp2_session_callbacks_set_on_begin_headers_callback(c,
                                                            on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    return c;
}
