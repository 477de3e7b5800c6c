#include <poll.h>

#include "tests/lib/http/h2frames.h"
#include "tests/lib/http/h2server_private.h"

enum {
    FLOOD_FRAMES = 64, /* in one write */
    STUFFED_BYTES = 1 << 20,
    STUFFING_BYTES = 4 << 20,
};

/* --- good replies --------------------------------------------------------- */

static const struct reply *find_reply(const struct h2_server *s,
                                      const char *path)
{
    const char *name = strrchr(path, '/');
    const struct reply *other = NULL;
    for (size_t i = 0; i < s->n_replies; i++) {
        const struct reply *r = &s->replies[i];
        if (!r->method)
            other = r;
        else if (name && strcmp(r->method, name + 1) == 0)
            return r;
    }
    return other;
}

/* The whole reply but for its trailers. */
static void add_reply(struct conn *c, struct str *out, int32_t stream)
{
    struct h2_server *s = c->s;
    pthread_mutex_lock(&s->lock);
    const struct reply *r = find_reply(s, c->path);
    h2_add_headers(out, stream, "200", "application/grpc");
    h2_add_message(out, stream, r ? str_text(&r->message) : "",
                   r ? r->message.size : 0);
    pthread_mutex_unlock(&s->lock);
}

/* Whether the client has ended the connection. */
static bool has_left(const struct conn *c)
{
    struct pollfd what = {.fd = c->fd, .events = POLLRDHUP};
    return poll(&what, 1, 0) > 0;
}

static _Thread_local unsigned deadline_ms; /* of the call that is handled */

unsigned h2_server_deadline_ms(void)
{
    return deadline_ms;
}

/* In milliseconds, as lib/grpc says it. */
static unsigned deadline_of(const struct conn *c)
{
    static const char name[] = "grpc-timeout: ";
    const char *at = strstr(str_text(&c->headers), name);
    return at ? (unsigned)strtoul(at + sizeof name - 1, NULL, 10) : 0;
}

/* What the handler says, whole or one message after the other. */
static bool reply_handled(struct conn *c, int32_t stream, h2_handler_f *handler,
                          void *ctx)
{
    struct str out = STR_INIT(128 << 20), message = STR_INIT(64 << 20);
    const char *name = strrchr(c->path, '/');
    bool whole = c->body.size >= 5, well = true, begun = false;
    int code = H2_MORE;
    deadline_ms = deadline_of(c);
    while (well && code == H2_MORE) {
        str_reset(&out);
        str_reset(&message);
        code = handler(ctx, name ? name + 1 : "", whole ? c->body.data + 5 : "",
                       whole ? c->body.size - 5 : 0, &message);
        if (!begun && (code != H2_MORE || message.size > 0)) {
            h2_add_headers(&out, stream, "200", "application/grpc");
            begun = true;
        }
        if (code == 0 || (code == H2_MORE && message.size > 0))
            h2_add_message(&out, stream, str_text(&message), message.size);
        if (code != H2_MORE) {
            char text[16];
            (void)snprintf(text, sizeof text, "%d", code);
            h2_add_trailers(&out, stream, text, code ? str_text(&message) : "");
        }
        well = out.size == 0 || conn_write(c, out.data, out.size);
        well = well && !(code == H2_MORE && has_left(c));
    }
    str_fini(&message);
    str_fini(&out);
    return well;
}

static bool reply_well(struct conn *c, int32_t stream)
{
    struct h2_server *s = c->s;
    struct str out = STR_INIT(128 << 20);
    char code[16], text[200];
    bool well = true;
    pthread_mutex_lock(&s->lock);
    h2_handler_f *handler = s->handler;
    void *ctx = s->handler_ctx;
    pthread_mutex_unlock(&s->lock);
    if (handler)
        return reply_handled(c, stream, handler, ctx);
    pthread_mutex_lock(&s->lock);
    const struct reply *r = find_reply(s, c->path);
    unsigned repeat = s->repeat, ms = s->repeat_ms;
    (void)snprintf(code, sizeof code, "%d", r ? r->code : 12);
    (void)snprintf(text, sizeof text, "%s",
                   !r        ? "unknown method"
                   : r->text ? r->text
                             : "");
    h2_add_headers(&out, stream, "200", "application/grpc");
    for (unsigned i = 0; well && r && r->code == 0 && i < repeat; i++) {
        h2_add_message(&out, stream, str_text(&r->message), r->message.size);
        if (ms == 0)
            continue;
        well = conn_write(c, out.data, out.size);
        str_reset(&out);
        pthread_mutex_unlock(&s->lock);
        (void)poll(NULL, 0, (int)ms);
        pthread_mutex_lock(&s->lock);
        r = find_reply(s, c->path);
    }
    pthread_mutex_unlock(&s->lock);
    h2_add_trailers(&out, stream, code, text);
    well = well && conn_write(c, out.data, out.size);
    str_fini(&out);
    return well;
}

/* --- ill ones ------------------------------------------------------------- */

/* The same bytes until the other side has had enough. */
static void flood(struct conn *c, const struct str *bytes)
{
    while (!atomic_load(&c->s->stopping) &&
           conn_write(c, bytes->data, bytes->size))
        ;
}

static bool flood_with(struct conn *c, int32_t stream, enum h2_fault fault)
{
    struct str out = STR_INIT(4 << 20), block = STR_INIT(H2_FRAME_MAX);
    h2_add_field(&block, "x-more", "and more");
    if (fault == H2_DATA_FLOOD || fault == H2_EMPTY_FLOOD ||
        fault == H2_TRAILERS_FLOOD)
        h2_add_headers(&out, stream, "200", "application/grpc");
    if (fault == H2_HEADERS_FLOOD)
        h2_add_frame(&out, FRAME_HEADERS, 0, stream, block.data, block.size);
    bool well = out.size == 0 || conn_write(c, out.data, out.size);
    str_reset(&out);
    for (int i = 0; i < FLOOD_FRAMES; i++) {
        if (fault == H2_HEADERS_FLOOD)
            h2_add_frame(&out, FRAME_CONTINUATION, 0, stream, block.data,
                         block.size);
        else if (fault == H2_DATA_FLOOD)
            h2_add_message(&out, stream, "\012\002v1", 4);
        else if (fault == H2_EMPTY_FLOOD)
            h2_add_frame(&out, FRAME_DATA, 0, stream, NULL, 0);
        else if (fault == H2_PING_FLOOD)
            h2_add_frame(&out, FRAME_PING, 0, 0, "12345678", 8);
        else if (fault == H2_TRAILERS_FLOOD)
            h2_add_frame(&out, FRAME_HEADERS, END_HEADERS, stream, block.data,
                         block.size);
        else
            h2_add_frame(&out, FRAME_SETTINGS, 0, 0, NULL, 0);
    }
    if (well)
        flood(c, &out);
    str_fini(&out);
    str_fini(&block);
    return false;
}

/* A reply that takes its time. */
static bool drip(struct conn *c, int32_t stream)
{
    struct str out = STR_INIT(4096);
    struct str message = STR_INIT(4096);
    bool well = true;
    h2_add_headers(&out, stream, "200", "application/grpc");
    h2_add_prefix(&message, 0, 1000);
    for (size_t i = 0; well && i < 1000 && !atomic_load(&c->s->stopping); i++) {
        char byte = i < message.size ? message.data[i] : '\012';
        h2_add_frame(&out, FRAME_DATA, 0, stream, &byte, 1);
        well = conn_write(c, out.data, out.size);
        str_reset(&out);
        (void)poll(NULL, 0, 50);
    }
    str_fini(&out);
    str_fini(&message);
    return false;
}

/* A message that is not as it should be, or is not all. */
static void add_ill_message(struct str *out, int32_t stream,
                            enum h2_fault fault)
{
    struct str data = STR_INIT(4096);
    switch (fault) {
    case H2_COMPRESSED:
        h2_add_prefix(&data, 1, 4);
        break;
    case H2_BAD_FLAG:
        h2_add_prefix(&data, 0x55, 4);
        break;
    case H2_PREFIX_2GIB:
        h2_add_prefix(&data, 0, (size_t)2 << 30);
        break;
    case H2_PREFIX_OVER:
        h2_add_prefix(&data, 0, (16 << 20) + 1);
        break;
    case H2_GARBAGE:
        h2_add_prefix(&data, 0, 4);
        str_add(&data, "\377\377\377\377");
        break;
    case H2_HALF_PREFIX:
        str_add_n(&data, "\0\0", 2);
        break;
    default:
        h2_add_prefix(&data, 0, 100);
    }
    if (fault != H2_HALF_PREFIX && fault != H2_GARBAGE)
        str_add(&data, "\012\002v1");
    h2_add_headers(out, stream, "200", "application/grpc");
    h2_add_data(out, stream, &data, 0);
    str_fini(&data);
}

static void add_stuffed(struct str *out, int32_t stream)
{
    cleanup_free char *zeros = xcalloc(1, STUFFED_BYTES);
    h2_add_headers(out, stream, "200", "application/grpc");
    h2_add_message(out, stream, zeros, STUFFED_BYTES);
    for (size_t i = 0; i < STUFFING_BYTES / H2_FRAME_MAX; i++)
        h2_add_frame(out, FRAME_UNKNOWN, 0, stream, zeros, H2_FRAME_MAX);
    h2_add_trailers(out, stream, "0", "");
}

static void add_page(struct str *out, int32_t stream, const char *status)
{
    struct str page = STR_INIT(4096);
    str_add(&page, "<html>This is no container runtime.</html>");
    h2_add_headers(out, stream, status, "text/html");
    h2_add_data(out, stream, &page, END_STREAM);
    str_fini(&page);
}

/* Headers and trailers in one, as a call that fails is answered. */
static void add_refusal(struct str *out, int32_t stream)
{
    struct str block = STR_INIT(4096);
    h2_add_field(&block, ":status", "200");
    h2_add_field(&block, "content-type", "application/grpc");
    h2_add_field(&block, "grpc-status", "5");
    h2_add_field(&block, "grpc-message", "there is none");
    h2_add_frame(out, FRAME_HEADERS, END_HEADERS | END_STREAM, stream,
                 block.data, block.size);
    str_fini(&block);
}

/* Those about the connection and its frames; false: it is over then. */
static bool add_ill_frames(struct conn *c, struct str *out, int32_t stream,
                           enum h2_fault fault)
{
    switch (fault) {
    case H2_GOAWAY:
        h2_add_goaway(out, 0);
        return false;
    case H2_RESET_HEADERS:
        h2_add_headers(out, stream, "200", "application/grpc");
        break;
    case H2_RESET_HALF:
    case H2_CLOSE_HALF:
        add_ill_message(out, stream, H2_HALF);
        break;
    case H2_RESET_MESSAGE:
        add_reply(c, out, stream);
        break;
    case H2_RESET_AFTER:
        add_reply(c, out, stream);
        h2_add_trailers(out, stream, "0", "");
        break;
    case H2_FRAME_LONG:
        h2_add_headers(out, stream, "200", "application/grpc");
        str_add_n(out, "\377\377\377\0\0\0\0\0\1", 9);
        break;
    case H2_FRAME_SHORT:
        h2_add_frame(out, FRAME_WINDOW, 0, stream, "\0\0\1", 3);
        break;
    case H2_FRAME_STREAM:
        h2_add_frame(out, FRAME_DATA, 0, stream + 100, "x", 1);
        break;
    default:
        break;
    }
    if (fault >= H2_RESET && fault <= H2_RESET_AFTER)
        h2_add_code(out, FRAME_RST, stream,
                    fault == H2_RESET_AFTER ? 0 : H2_CANCEL);
    return fault != H2_CLOSE_HALF;
}

/* A reply whose status is missing, doubled or alone. */
static void add_ill_status(struct conn *c, struct str *out, int32_t stream,
                           enum h2_fault fault)
{
    cleanup_str struct str block = STR_INIT(4096);
    if (fault == H2_NO_TRAILERS) {
        add_reply(c, out, stream);
        h2_add_frame(out, FRAME_DATA, END_STREAM, stream, NULL, 0);
        return;
    }
    if (fault == H2_NO_STATUS || fault == H2_BAD_STATUS) {
        add_reply(c, out, stream);
        h2_add_trailers(out, stream, fault == H2_NO_STATUS ? NULL : "zero", "");
        return;
    }
    h2_add_field(&block, ":status", "200");
    h2_add_field(&block, "content-type", "application/grpc");
    h2_add_field(&block, "grpc-status", "0");
    if (fault == H2_STATUS_TWICE)
        h2_add_field(&block, "grpc-status", "0");
    h2_add_frame(out, FRAME_HEADERS, END_HEADERS | END_STREAM, stream,
                 block.data, block.size);
}

static bool reply_ill(struct conn *c, struct str *out, int32_t stream,
                      enum h2_fault fault)
{
    switch (fault) {
    case H2_EMPTY:
        h2_add_headers(out, stream, "200", "application/grpc");
        h2_add_trailers(out, stream, "0", "");
        return true;
    case H2_TWO:
        add_reply(c, out, stream);
        h2_add_message(out, stream, "", 0);
        h2_add_trailers(out, stream, "0", "");
        return true;
    case H2_NO_TRAILERS:
    case H2_NO_STATUS:
    case H2_BAD_STATUS:
    case H2_STATUS_TWICE:
    case H2_STATUS_ONLY:
        add_ill_status(c, out, stream, fault);
        return true;
    case H2_GOAWAY_WITH:
    case H2_GOAWAY_HALF:
        if (fault == H2_GOAWAY_WITH)
            add_reply(c, out, stream);
        else
            add_ill_message(out, stream, H2_HALF);
        h2_add_trailers(out, stream, "0", "");
        h2_add_goaway(out, stream);
        return true;
    case H2_GOAWAY_REFUSED:
        add_refusal(out, stream);
        h2_add_goaway(out, stream);
        return true;
    case H2_COMPRESSED:
    case H2_BAD_FLAG:
    case H2_HALF:
    case H2_HALF_PREFIX:
    case H2_PREFIX_2GIB:
    case H2_PREFIX_OVER:
    case H2_GARBAGE:
        add_ill_message(out, stream, fault);
        h2_add_trailers(out, stream, "0", "");
        return true;
    case H2_NOT_GRPC:
    case H2_NOT_FOUND:
        add_page(out, stream, fault == H2_NOT_GRPC ? "200" : "404");
        return true;
    case H2_BIG_HEADERS:
    case H2_BIG_TRAILERS:
        if (fault == H2_BIG_TRAILERS)
            add_reply(c, out, stream);
        h2_add_big_block(out, stream, fault == H2_BIG_TRAILERS);
        return true;
    case H2_HPACK_TABLE:
    case H2_HPACK_BOMB:
        (fault == H2_HPACK_TABLE ? h2_add_table : h2_add_bomb)(out, stream);
        return true;
    case H2_NOISE:
        str_add(out, "What would you like to know of me, and who are you?");
        return true;
    default:
        return add_ill_frames(c, out, stream, fault);
    }
}

/* Answer the request that is there; false: close. */
bool conn_answer(struct conn *c, int32_t stream)
{
    enum h2_fault fault = (enum h2_fault)atomic_load(&c->s->fault);
    struct str out = STR_INIT(128 << 20);
    bool go_on = true;
    switch (fault) {
    case H2_WELL:
    case H2_GOAWAY_AFTER:
        go_on = reply_well(c, stream);
        if (fault == H2_GOAWAY_AFTER)
            h2_add_goaway(&out, stream);
        break;
    case H2_HEADERS_FLOOD:
    case H2_DATA_FLOOD:
    case H2_EMPTY_FLOOD:
    case H2_PING_FLOOD:
    case H2_SETTINGS_FLOOD:
    case H2_TRAILERS_FLOOD:
        return flood_with(c, stream, fault);
    case H2_DRIP:
        return drip(c, stream);
    case H2_STUFFED:
        add_stuffed(&out, stream);
        break;
    case H2_SILENT:
        return true;
    case H2_CLOSE:
        return false;
    default:
        go_on = reply_ill(c, &out, stream, fault);
    }
    if (out.size > 0)
        go_on = conn_write(c, out.data, out.size) && go_on;
    str_fini(&out);
    return go_on;
}
