#include "lib/grpc/grpc_frame.h"

#include <string.h>
#include <strings.h>

/* --- messages ----------------------------------------------------------- */

static int begin_message(struct grpc_frames *f, struct error *err)
{
    int r = grpc_prefix_read(f->prefix, f->message_max, &f->left, err);
    if (r == -ENOTSUP)
        return error_set(err, EPROTO,
                         "the reply is compressed, which was not asked for");
    if (!f->visit && f->n_messages > 0 && r != -EPROTO)
        return error_set(err, EPROTO,
                         "more than one message in the reply to a call that "
                         "has one");
    if (r == 0)
        str_reset(f->message);
    return r;
}

static int end_message(struct grpc_frames *f)
{
    f->n_prefix = 0;
    f->n_messages++;
    return f->visit ? f->visit(f->ctx, str_text(f->message), f->message->size)
                    : 0;
}

int grpc_frames_feed(struct grpc_frames *f, const char *data, size_t size,
                     struct error *err)
{
    while (size > 0) {
        size_t n;
        int r = 0;
        if (f->n_prefix < GRPC_PREFIX) {
            n = GRPC_PREFIX - f->n_prefix;
            n = n < size ? n : size;
            memcpy(f->prefix + f->n_prefix, data, n);
            f->n_prefix += n;
            if (f->n_prefix < GRPC_PREFIX)
                return 0;
            r = begin_message(f, err);
        } else {
            n = f->left < size ? f->left : size;
            str_add_n(f->message, data, n);
            if (f->message->overflow)
                return error_set(err, EMSGSIZE,
                                 "the reply is over %zu bytes, which is what "
                                 "the caller takes",
                                 f->message->max);
            f->left -= n;
        }
        data += n;
        size -= n;
        if (r == 0 && f->left == 0)
            r = end_message(f);
        if (r != 0)
            return r;
    }
    return 0;
}

int grpc_frames_end(const struct grpc_frames *f, struct error *err)
{
    if (f->n_prefix > 0)
        return error_set(err, EPROTO,
                         "the reply ends within a message, %zu bytes are "
                         "missing",
                         f->n_prefix < GRPC_PREFIX ? GRPC_PREFIX - f->n_prefix
                                                   : f->left);
    if (!f->visit && f->n_messages == 0)
        return error_set(err, EPROTO, "the reply has status OK and no message");
    return 0;
}

/* --- headers and trailers ----------------------------------------------- */

void grpc_head_init(struct grpc_head *h)
{
    memset(h, 0, sizeof *h);
    h->code = -1;
}

/* A whole number of one to three digits; -1: it is none. */
static int number(const char *text, size_t size)
{
    int value = 0;
    if (size < 1 || size > 3)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

static void take_message(struct grpc_head *h, const char *value, size_t size)
{
    char text[GRPC_MESSAGE_MAX];
    size_t n = grpc_text_decode(value, size, text, sizeof text);
    grpc_text(text, n, h->message, sizeof h->message);
}

/* "HTTP/2 200" */
static int take_status(struct grpc_head *h, const char *line, size_t size,
                       struct error *err)
{
    if (size < 7 || memcmp(line, "HTTP/2 ", 7) != 0)
        return error_set(err, EPROTO,
                         "it answers in %.8s, gRPC needs HTTP/2: is this the "
                         "port of a container runtime?",
                         size >= 8 ? line : "something else");
    size_t n = 7;
    while (n < size && line[n] >= '0' && line[n] <= '9')
        n++;
    h->status = number(line + 7, n - 7);
    if (h->status < 100)
        return error_set(err, EPROTO, "it answers with no status of HTTP");
    h->grpc = false; /* of what came before, with a status of 100 or so */
    return 0;
}

static int take_code(struct grpc_head *h, const char *value, size_t size,
                     struct error *err)
{
    int code = number(value, size);
    if (code < 0)
        return error_set(err, EPROTO,
                         "grpc-status is \"%.*s\", which is no number of up "
                         "to three digits",
                         (int)(size < 16 ? size : 16), value);
    if (h->code >= 0)
        return error_set(err, EPROTO, "grpc-status was sent twice");
    h->code = code;
    return 0;
}

static bool is(const char *name, size_t size, const char *expected)
{
    return strlen(expected) == size && strncasecmp(name, expected, size) == 0;
}

int grpc_head_line(struct grpc_head *h, const char *line, size_t size,
                   struct error *err)
{
    if (size > GRPC_HEADERS_MAX - h->size)
        return error_set(err, EPROTO, "headers and trailers are over %d bytes",
                         GRPC_HEADERS_MAX);
    h->size += size;
    while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r' ||
                        line[size - 1] == ' '))
        size--;
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0)
        return take_status(h, line, size, err);
    const char *colon = memchr(line, ':', size);
    if (!colon)
        return 0;
    size_t name = (size_t)(colon - line), from = name + 1;
    while (from < size && line[from] == ' ')
        from++;
    const char *value = line + from;
    size -= from;
    if (is(line, name, "grpc-status"))
        return take_code(h, value, size, err);
    if (is(line, name, "grpc-message"))
        take_message(h, value, size);
    else if (is(line, name, "content-type"))
        h->grpc = size >= 16 && memcmp(value, "application/grpc", 16) == 0;
    return 0;
}

int grpc_head_end(const struct grpc_head *h, struct error *err)
{
    if (h->status == 0)
        return error_set(err, EPROTO, "it ended the call without a reply");
    if (h->code > 0)
        return error_set(err, EREMOTEIO, "%s%s%s", grpc_code_name(h->code),
                         *h->message ? ": " : "", h->message);
    if (h->status != 200)
        return error_set(err, EPROTO,
                         "it answers with status %d of HTTP: is this the "
                         "port of a container runtime?",
                         h->status);
    if (!h->grpc)
        return error_set(err, EPROTO,
                         "its reply is not of the type application/grpc");
    if (h->code < 0)
        return error_set(err, EPROTO, "its reply ended without a grpc-status");
    return 0;
}
