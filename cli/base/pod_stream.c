#include "cli/base/pod_stream.h"

#include <errno.h>
#include <string.h>

#include "cli/base/say.h"
#include "cli/base/ws_client.h"
#include "lib/io/clock.h"
#include "lib/stream/stream_conn.h"
#include "lib/stream/stream_head.h"
#include "lib/stream/stream_plan.h"

enum {
    OPEN_MS = 30000,
    PIECE = 32 << 10,
    IN_MAX = WS_MESSAGE_MAX + WS_HEAD_MAX + PIECE,
    OUT_MAX = 8 << 20,
    MESSAGE_MAX = 64 << 10, /* of ours; what is longer goes in several */
};

struct pod_stream {
    struct stream_plan *plan;
    struct stream_conn conn;
    struct str in, out; /* came and not taken; to be sent, */
    size_t sent;        /* but for so many bytes of it */
};

/* --- bytes ------------------------------------------------------------------ */

/* All that is here into `in`: 0, -EPIPE at the end, or -errno. */
static int receive(struct pod_stream *s, struct error *err)
{
    char block[PIECE];
    while (s->conn.readable && s->in.max - s->in.size >= sizeof block) {
        ssize_t n = stream_conn_read(&s->conn, block, sizeof block);
        if (n == -EAGAIN)
            return 0;
        if (n == 0)
            return error_set(err, EPIPE, "the server has ended the stream");
        if (n < 0)
            return error_errno(err, (int)-n, "the stream is lost");
        str_add_n(&s->in, block, (size_t)n);
    }
    return 0;
}

static int transmit(struct pod_stream *s, struct error *err)
{
    while (s->sent < s->out.size) {
        ssize_t n = stream_conn_write(&s->conn, s->out.data + s->sent,
                                      s->out.size - s->sent);
        if (n == -EAGAIN)
            return 0;
        if (n < 0)
            return error_errno(err, (int)-n, "the stream is lost");
        s->sent += (size_t)n;
    }
    str_reset(&s->out);
    s->sent = 0;
    return 0;
}

/* --- opening ---------------------------------------------------------------- */

/* Wait for the connection; false: it took too long. */
static bool wait_for(struct pod_stream *s, int64_t until_ms)
{
    int64_t left = until_ms - clock_ms();
    struct pollfd p = {.fd = s->conn.fd,
                       .events = (short)((s->conn.readable ? 0 : POLLIN) |
                                         (s->conn.writable ? 0 : POLLOUT))};
    if (left <= 0)
        return false;
    if (poll(&p, 1, (int)left) > 0)
        stream_conn_happened(&s->conn, (uint32_t)p.revents);
    return true;
}

static int too_long(struct error *err)
{
    return error_set(err, ETIMEDOUT, "nothing came for %d s", OPEN_MS / 1000);
}

static int dial_at(struct pod_stream *s, size_t address, int64_t until_ms,
                   struct error *err)
{
    int r = stream_conn_dial(&s->conn, &s->plan->to[address]);
    while (r == 0 && (r = stream_conn_dialled(&s->conn)) == -EAGAIN)
        r = wait_for(s, until_ms) ? 0 : -ETIMEDOUT;
    if (r == 0)
        return 0;
    stream_conn_fini(&s->conn);
    stream_conn_init(&s->conn, -1);
    return error_errno(err, -r, "connect");
}

static int dial(struct pod_stream *s, int64_t until_ms, struct error *err)
{
    int r = -EHOSTUNREACH;
    for (size_t i = 0; r < 0 && i < s->plan->n_to; i++)
        r = dial_at(s, i, until_ms, err);
    if (r < 0 || !s->plan->creds)
        return r;
    r = stream_conn_tls(&s->conn, s->plan->creds, err);
    while (r == 0 && (r = stream_conn_shake(&s->conn, err)) == -EAGAIN)
        r = wait_for(s, until_ms) ? 0 : too_long(err);
    return r;
}

static int plan(const struct cli *c, struct stream_plan **ret_plan,
                struct error *err)
{
    struct stream_url url;
    int r = stream_url_parse(c->set.server, &url, err);
    if (r < 0)
        return error_wrap(err, "--server");
    const struct stream_plan_ask ask = {
        .remote = "extender",
        .container = "stream",
        .url = c->set.server,
        .host = url.host,
        .ca = c->set.ca,
        .cert = c->set.cert,
        .key = c->set.key,
        .plaintext = !url.tls,
        .system_ca = true,
    };
    return stream_plan_create(&ask, ret_plan, err);
}

static int add_request(struct pod_stream *s, const struct cli *c,
                       const char *path, const char *protocol,
                       struct error *err)
{
    cleanup_str struct str token = STR_INIT(CLI_AUTHORIZATION_MAX);
    int r = cli_authorization(c, &token, err);
    if (r < 0)
        return r;
    bool six = strchr(s->plan->host, ':') != NULL;
    const char *base = s->plan->url.target;
    size_t len = strlen(base);
    while (len > 0 && base[len - 1] == '/')
        len--;
    str_addf(&s->out,
             "GET %.*s%s HTTP/1.1\r\nHost: %s%s%s:%u\r\nConnection: Upgrade\r\n"
             "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Protocol: %s\r\nSec-WebSocket-Key: ",
             (int)len, base, path, six ? "[" : "", s->plan->host,
             six ? "]" : "", s->plan->url.port, protocol);
    ws_client_add_key(&s->out);
    if (token.size)
        str_addf(&s->out, "\r\nAuthorization: %s", str_text(&token));
    str_add(&s->out, "\r\n\r\n");
    return 0;
}

/* The whole answer of one that refuses: what came of its body, until the
 * connection ends or its length is here. */
static int complain(struct pod_stream *s, const struct stream_answer *answer,
                    size_t head, int64_t until_ms)
{
    struct http_answer a = {.status = answer->status, .body = STR_INIT(IN_MAX)};
    struct error ignored = {0};
    while (receive(s, &ignored) == 0 && s->in.size - head < answer->length &&
           s->in.size < s->in.max - PIECE && wait_for(s, until_ms))
        ;
    str_add_n(&a.body, s->in.data + head, s->in.size - head);
    int rc = cli_complain(&a);
    str_fini(&a.body);
    return rc;
}

/* An exit code, or -errno. */
static int await_answer(struct pod_stream *s, int64_t until_ms,
                        long *ret_status, struct error *err)
{
    struct stream_answer answer;
    size_t end = 0;
    int r = 0;
    while (r == 0 && !end) {
        int sent = transmit(s, err);
        r = receive(s, err);
        end = stream_head_end(str_text(&s->in), s->in.size, 0);
        /* it may all be there, and over already */
        r = end ? 0 : r < 0 ? r : sent;
        if (r == 0 && !end && s->in.size > STREAM_HEAD_MAX)
            r = error_set(err, EPROTO, "the answer's head is over %d bytes",
                          STREAM_HEAD_MAX);
        if (r == 0 && !end && !wait_for(s, until_ms))
            r = too_long(err);
    }
    if (r == 0)
        r = stream_answer_read(s->in.data, end, "websocket", &answer, err);
    if (r < 0)
        return r;
    *ret_status = answer.status;
    if (answer.status != 101)
        return complain(s, &answer, end, until_ms);
    str_drop(&s->in, end);
    s->conn.readable = true; /* messages may have come with it: turn at once */
    return 0;
}

int pod_stream_open(struct cli *c, const char *path, const char *protocol,
                    struct pod_stream **ret_stream, long *ret_status)
{
    cleanup_with(pod_stream) struct pod_stream *s = xcalloc(1, sizeof *s);
    int64_t until_ms = clock_ms() + OPEN_MS;
    struct error err = {0};
    long status = 0;
    s->in = STR_INIT(IN_MAX);
    s->out = STR_INIT(OUT_MAX);
    stream_conn_init(&s->conn, -1);
    int r = plan(c, &s->plan, &err);
    if (r == 0)
        r = add_request(s, c, path, protocol, &err);
    if (r < 0)
        return cli_usage("%s", err.text);
    r = dial(s, until_ms, &err);
    if (r == 0)
        r = await_answer(s, until_ms, &status, &err);
    if (ret_status)
        *ret_status = status;
    if (r < 0)
        return cli_complain_unreachable(c, &err);
    if (r == 0)
        *ret_stream = steal(&s);
    return r;
}

void pod_stream_close(struct pod_stream *s)
{
    if (!s)
        return;
    stream_conn_fini(&s->conn);
    stream_plan_destroy(s->plan);
    str_fini(&s->in);
    str_fini(&s->out);
    free(s);
}

/* --- messages --------------------------------------------------------------- */

static void send_frame(struct pod_stream *s, enum ws_kind kind,
                       const char *data, size_t size)
{
    ws_client_add_frame(kind, data, size, &s->out);
}

void pod_stream_send(struct pod_stream *s, int channel, const char *data,
                     size_t size)
{
    cleanup_str struct str message = STR_INIT(MESSAGE_MAX + 1);
    do {
        size_t n = size < MESSAGE_MAX ? size : MESSAGE_MAX;
        str_reset(&message);
        str_add_c(&message, (char)channel);
        str_add_n(&message, data, n);
        send_frame(s, WS_BINARY, message.data, message.size);
        data += n;
        size -= n;
    } while (size);
}

size_t pod_stream_unsent(const struct pod_stream *s)
{
    return s->out.size - s->sent;
}

static int take_message(struct pod_stream *s, const struct ws_message *m,
                        pod_stream_take_f *take, void *ctx, struct error *err)
{
    if (m->kind == WS_PING)
        send_frame(s, WS_PONG, m->data, m->size);
    if (m->kind == WS_CLOSE)
        return error_set(err, EPIPE, "the node has ended the stream");
    if ((m->kind != WS_BINARY && m->kind != WS_TEXT) || !m->size)
        return 0;
    return take(ctx, (unsigned char)m->data[0], m->data + 1, m->size - 1, err);
}

static int take_all(struct pod_stream *s, pod_stream_take_f *take, void *ctx,
                    struct error *err)
{
    size_t at = 0;
    int r = 0;
    while (r == 0) {
        struct ws_message m;
        ssize_t n = ws_frame_read(str_text(&s->in) + at, s->in.size - at, &m,
                                  err);
        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        r = take_message(s, &m, take, ctx, err);
        at += (size_t)n;
    }
    if (at)
        str_drop(&s->in, at);
    return r;
}

struct pollfd pod_stream_poll(const struct pod_stream *s, bool *ret_now)
{
    bool to_send = pod_stream_unsent(s) > 0;
    *ret_now = s->conn.readable || (to_send && s->conn.writable);
    return (struct pollfd){
        .fd = s->conn.fd,
        .events = (short)((s->conn.readable ? 0 : POLLIN) |
                          (to_send && !s->conn.writable ? POLLOUT : 0))};
}

int pod_stream_turn(struct pod_stream *s, short revents,
                    pod_stream_take_f *take, void *ctx, struct error *err)
{
    struct error lost = {0};
    if (revents)
        stream_conn_happened(&s->conn, (uint32_t)revents);
    int end = receive(s, &lost); /* what came before it is taken first */
    int r = take_all(s, take, ctx, err);
    if (r == 0 && s->out.overflow)
        r = error_set(err, EPROTO, "the server reads nothing of the stream");
    if (r == 0 && end == 0)
        return transmit(s, err);
    if (r == 0) {
        *err = lost;
        r = end;
    }
    return r;
}
