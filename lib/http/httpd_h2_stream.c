#include "lib/http/httpd_h2.h"

#include "lib/base/mem.h"
#include "lib/h2/h2_invalid.h"
#include "lib/io/clock.h"

enum {
    COST_INVALID = 5, /* of a frame or a request that breaks the protocol */
    REPLY_FIELDS_MAX = 3 + HEADERS_MAX,
};

/* --- what handlers use ---------------------------------------------------- */

static const char *field(const struct httpd_request *rq, const char *name)
{
    return h2_fields_get(&rq->h2.fields, name);
}

static const char *h2_header(const struct httpd_request *rq, const char *name)
{
    const char *value = field(rq, name);
    return !value && strcasecmp(name, "Host") == 0 ? field(rq, ":authority")
                                                   : value;
}

static void h2_suspend(struct httpd_request *rq)
{
    rq->h2.c->n_suspended++;
}

static void h2_resume(struct httpd_request *rq)
{
    struct h2_loop *loop = rq->h2.c->loop;
    rq->next = NULL;
    hold_lock(&loop->lock);
    bool first = !loop->resumed;
    if (first)
        loop->resumed = rq;
    else
        loop->last_resumed->next = rq;
    loop->last_resumed = rq;
    if (first) /* under the lock: the loop may end once it has the request */
        h2_wake(loop);
}

static const struct transport http2 = {h2_header, h2_suspend, h2_resume};

/* --- streams -------------------------------------------------------------- */

/* What the connection waits for, as far as others may end it. */
static void conn_update(struct h2_conn *c)
{
    enum conn_state state = c->n_in[CONN_HANDLING]    ? CONN_HANDLING
                            : c->n_in[CONN_REPLYING]  ? CONN_REPLYING
                            : c->n_in[CONN_STREAMING] ? CONN_STREAMING
                            : c->n_in[CONN_ARRIVING]  ? CONN_ARRIVING
                                                      : CONN_IDLE;
    if ((int)state != atomic_load(&c->conn->state))
        conn_enter(c->conn, state);
}

static void stream_enter(struct httpd_request *rq, enum conn_state state)
{
    struct h2_conn *c = rq->h2.c;
    c->n_in[rq->h2.state]--;
    c->n_in[state]++;
    rq->h2.state = state;
    rq->h2.since_ms = clock_ms();
    conn_update(c);
}

static struct httpd_request *stream_create(struct h2_conn *c, int32_t id)
{
    struct httpd_request *rq = request_take(c->loop->h);
    struct h2_stream *s = &rq->h2;
    rq->transport = &http2;
    rq->conn = c->conn;
    h2_fields_reset(&s->fields);
    s->dropped = s->sent = 0;
    s->broken = false;
    s->id = id;
    s->c = c;
    s->state = CONN_ARRIVING;
    s->since_ms = clock_ms();
    s->prev = NULL;
    s->next = c->streams;
    if (s->next)
        s->next->h2.prev = rq;
    c->streams = rq;
    c->n_in[CONN_ARRIVING]++;
    conn_update(c);
    return rq;
}

static void stream_destroy(struct httpd_request *rq)
{
    struct h2_conn *c = rq->h2.c;
    request_observe(rq);
    if (rq->phase == PHASE_REPLIED)
        c->reply_bytes -= rq->reply.size;
    c->n_in[rq->h2.state]--;
    if (rq->h2.prev)
        rq->h2.prev->h2.next = rq->h2.next;
    else
        c->streams = rq->h2.next;
    if (rq->h2.next)
        rq->h2.next->h2.prev = rq->h2.prev;
    if (!c->streams)
        c->idle_ms = clock_ms();
    conn_update(c);
    request_give(rq);
}

/* Its client is not there any more.  One that is suspended is somebody's, and
 * stays until it is resumed. */
static void stream_drop(struct httpd_request *rq)
{
    rq->h2.id = 0;
    if (rq->stream && stream_unpark(rq->stream)) {
        rq->suspended = false;
        rq->h2.c->n_suspended--;
    }
    if (!rq->suspended)
        stream_destroy(rq);
}

void h2_streams_drop(struct h2_conn *c)
{
    for (struct httpd_request *rq = c->streams, *next; rq; rq = next) {
        next = rq->h2.next;
        stream_drop(rq);
    }
}

void h2_stream_reset(struct httpd_request *rq, uint32_t why)
{
    if (rq->h2.id)
        (void)nghttp2_submit_rst_stream(rq->h2.c->h2, NGHTTP2_FLAG_NONE,
                                        rq->h2.id, why);
}

static struct httpd_request *stream_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

/* --- replies -------------------------------------------------------------- */

static ssize_t on_reply_read(nghttp2_session *session, int32_t id,
                             uint8_t *buffer, size_t size, uint32_t *flags,
                             nghttp2_data_source *source, void *arg)
{
    struct httpd_request *rq = source->ptr;
    size_t left = rq->reply.size - rq->h2.sent;
    (void)session;
    (void)id;
    (void)arg;
    if (size >= left) {
        size = left;
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    memcpy(buffer, rq->reply.data + rq->h2.sent, size);
    rq->h2.sent += size;
    return (ssize_t)size;
}

/* The client is to see that its reply is not whole, and all of what there is:
 * with RST_STREAM there are some that drop what they have not looked at yet.
 * That goes out when they have, which the answer to a PING says, or after
 * reply_ms. */
void h2_stream_break(struct httpd_request *rq)
{
    uint8_t mark[8] = {0};
    memcpy(mark, &rq->h2.id, sizeof rq->h2.id);
    (void)nghttp2_submit_ping(rq->h2.c->h2, NGHTTP2_FLAG_NONE, mark);
    rq->h2.since_ms = rq->h2.broken ? rq->h2.since_ms : clock_ms();
    rq->h2.broken = true;
}

static void on_pong(nghttp2_session *session, const uint8_t mark[8])
{
    int32_t id;
    memcpy(&id, mark, sizeof id);
    struct httpd_request *rq = id > 0 ? stream_of(session, id) : NULL;
    if (rq && rq->h2.broken)
        h2_stream_reset(rq, NGHTTP2_INTERNAL_ERROR);
}

/* Of a reply that is written bit by bit. */
static ssize_t on_stream_read(nghttp2_session *session, int32_t id,
                              uint8_t *buffer, size_t size, uint32_t *flags,
                              nghttp2_data_source *source, void *arg)
{
    struct httpd_request *rq = source->ptr;
    ssize_t n = stream_take(rq->stream, buffer, size);
    (void)session;
    (void)id;
    (void)arg;
    if (n == STREAM_BROKEN && !rq->h2.broken)
        h2_stream_break(rq);
    if (n == STREAM_PARKED || n == STREAM_BROKEN)
        return NGHTTP2_ERR_DEFERRED;
    if (n == STREAM_ENDED) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return 0;
    }
    return n;
}

static void stream_reply(struct httpd_request *rq)
{
    struct h2_conn *c = rq->h2.c;
    char status[16], length[24];
    nghttp2_nv fields[REPLY_FIELDS_MAX];
    size_t n = 0;
    request_seal(rq);
    c->reply_bytes += rq->reply.size;
    (void)snprintf(status, sizeof status, "%u", rq->status);
    (void)snprintf(length, sizeof length, "%zu", rq->reply.size);
    fields[n++] = h2_nv(":status", status);
    if (rq->reply.size || rq->stream)
        fields[n++] = h2_nv("content-type", rq->type);
    /* RFC 9110, 8.6: not with 204, and with 304 only that of a 200 */
    if (rq->status != 204 && rq->status != 304 && !rq->stream)
        fields[n++] = h2_nv("content-length", length);
    for (unsigned i = 0; i < rq->n_headers; i++)
        fields[n++] = h2_nv(rq->headers[i].name, rq->headers[i].value);
    const char *method = field(rq, ":method");
    bool bare = (rq->reply.size == 0 && !rq->stream) ||
                (method && strcmp(method, "HEAD") == 0);
    const nghttp2_data_provider body = {
        .source.ptr = rq,
        .read_callback = rq->stream ? on_stream_read : on_reply_read};
    stream_enter(rq, rq->stream ? CONN_STREAMING : CONN_REPLYING);
    c->leave |= rq->close;
    h2_dirty(c);
    if (nghttp2_submit_response(c->h2, rq->h2.id, fields, n,
                                bare ? NULL : &body) < 0)
        h2_stream_reset(rq, NGHTTP2_INTERNAL_ERROR);
}

void h2_stream_resumed(struct httpd_request *rq)
{
    struct h2_conn *c = rq->h2.c;
    c->n_suspended--;
    h2_dirty(c);
    if (rq->phase == PHASE_REPLIED && rq->h2.id) {
        rq->suspended = false;
        (void)nghttp2_session_resume_data(c->h2, rq->h2.id);
        return;
    }
    if (!request_go_on(rq))
        return;
    if (rq->h2.id)
        stream_reply(rq);
    else
        stream_destroy(rq);
}

/* --- requests ------------------------------------------------------------- */

/* Of a body that nobody reads so much is dropped as for HTTP/1.1: there are
 * clients that do not expect an answer before they have sent it all. */
static void refuse_early(struct httpd_request *rq)
{
    if (rq->refused &&
        (rq->at_once || rq->h2.dropped > rq->body.max + DROP_MAX))
        stream_reply(rq);
}

/* All headers are there. */
static void stream_head(struct httpd_request *rq)
{
    const char *method = field(rq, ":method"), *path = field(rq, ":path");
    struct head head = {.length = field(rq, "content-length"),
                        .origin = field(rq, "origin"),
                        .host = field(rq, "host"),
                        .authority = field(rq, ":authority")};
    head.n_lengths = head.length != NULL;
    rq->phase = PHASE_BODY;
    if (rq->h2.fields.text.starved)
        request_refuse(rq, 503, "there is no memory for the headers");
    else if (rq->h2.fields.size > H2_FIELDS_MAX)
        request_refuse(rq, 431, "the headers have more than %d bytes",
                       H2_FIELDS_MAX);
    else if (rq->h2.c->reply_bytes > H2_REPLIES_MAX)
        request_refuse(rq, 503,
                       "more than %d bytes of earlier replies wait to be read",
                       H2_REPLIES_MAX);
    rq->uri_fault = uri_parse(path ? path : "", &rq->uri, &rq->err);
    request_judge(rq, method ? method : "", &head);
    refuse_early(rq);
}

static void stream_whole(struct httpd_request *rq)
{
    if (rq->phase != PHASE_BODY)
        return; /* was refused before */
    stream_enter(rq, CONN_HANDLING);
    if (request_begin(rq))
        stream_reply(rq);
}

/* --- nghttp2's callbacks -------------------------------------------------- */

static int on_begin_headers(nghttp2_session *session,
                            const nghttp2_frame *frame, void *arg)
{
    if (frame->hd.type != NGHTTP2_HEADERS ||
        frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct httpd_request *rq = stream_create(arg, frame->hd.stream_id);
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                                rq);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_size,
                     const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    struct httpd_request *rq = stream_of(session, frame->hd.stream_id);
    (void)flags;
    (void)arg;
    if (!rq || rq->phase != PHASE_NEW)
        return 0; /* trailers say nothing here */
    (void)h2_fields_add(&rq->h2.fields, (const char *)name, name_size,
                        (const char *)value, value_size); /* see its head */
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t size, void *arg)
{
    struct httpd_request *rq = stream_of(session, id);
    (void)flags;
    (void)arg;
    if (!rq || rq->phase != PHASE_BODY)
        return 0;
    request_take_body(rq, (const char *)data, size);
    if (rq->refused)
        rq->h2.dropped += size;
    refuse_early(rq);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *arg)
{
    bool head = frame->hd.type == NGHTTP2_HEADERS;
    (void)arg;
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
        on_pong(session, frame->ping.opaque_data);
    if (!head && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct httpd_request *rq = stream_of(session, frame->hd.stream_id);
    if (rq && head && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        stream_head(rq);
    if (rq && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        stream_whole(rq);
    return 0;
}

static int on_invalid_frame(nghttp2_session *session,
                            const nghttp2_frame *frame, int code, void *arg)
{
    struct h2_conn *c = arg;
    (void)session;
    (void)frame;
    (void)code;
    if (!h2_meter_pay(&c->meter, COST_INVALID, clock_ms()))
        c->flood = true;
    return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame,
                   void *arg)
{
    struct h2_conn *c = arg;
    int32_t id = frame->hd.stream_id;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        c->goaway_waiting = false;
    if (frame->hd.type == NGHTTP2_DATA)
        h2_meter_earn(&c->meter, H2_BUDGET_PER_DATA);
    /* answered before it came whole: the rest need not come */
    if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
        nghttp2_session_get_stream_remote_close(session, id) == 0)
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id,
                                        NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code,
                           void *arg)
{
    struct httpd_request *rq = stream_of(session, id);
    (void)code;
    (void)arg;
    if (rq)
        stream_drop(rq);
    return 0;
}

nghttp2_session_callbacks *h2_callbacks(void)
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

int h2_session_create(struct h2_conn *c)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTPD_STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_FIELDS_MAX},
    };
    int r = nghttp2_session_server_new2(&c->h2, c->loop->callbacks, c,
                                        c->loop->option);
    if (r == 0)
        r = nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, settings,
                                    ARRAY_LEN(settings));
    if (r == 0)
        r = nghttp2_session_set_local_window_size(c->h2, NGHTTP2_FLAG_NONE, 0,
                                                  H2_WINDOW_ALL);
    return r;
}
