#include "tests/lib/grpc/rpcclient.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "lib/base/mem.h"
#include "lib/h2/grpc_prefix.h"
#include "lib/h2/grpc_text.h"
#include "lib/io/unix_socket.h"

enum { FIELDS = 64 << 10, OWN = 6, MORE = 64 };

static void fail(const char *what)
{
    fprintf(stderr, "rpcclient: %s\n", what);
    abort();
}

/* --- nghttp2's callbacks -------------------------------------------------- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_size,
                     const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    struct rpc_call *call =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    (void)arg;
    if (call)
        (void)h2_fields_add(
            frame->headers.cat == NGHTTP2_HCAT_RESPONSE ? &call->head
                                                        : &call->trailers,
            (const char *)name, name_size, (const char *)value, value_size);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t size, void *arg)
{
    struct rpc_client *c = arg;
    struct rpc_call *call = nghttp2_session_get_stream_user_data(session, id);
    (void)flags;
    if (call)
        str_add_n(&call->in, (const char *)data, size);
    if (!c->late)
        (void)nghttp2_session_consume(session, id, size);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *arg)
{
    struct rpc_client *c = arg;
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        c->goaway = true;
        c->goaway_code = frame->goaway.error_code;
    }
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code,
                    void *arg)
{
    struct rpc_call *call = nghttp2_session_get_stream_user_data(session, id);
    (void)arg;
    if (call) {
        call->closed = true;
        call->reset = code;
    }
    return 0;
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buffer,
                       size_t size, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    struct rpc_call *call = source->ptr;
    size_t left = call->out.size - call->n_out;
    (void)session;
    (void)id;
    (void)arg;
    if (left == 0 && !call->out_ended) {
        call->waits = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (size > left)
        size = left;
    if (size > 0)
        memcpy(buffer, call->out.data + call->n_out, size);
    call->n_out += size;
    if (size == left && call->out_ended)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)size;
}

/* --- the connection ---------------------------------------------------------- */

struct rpc_client *rpc_open(const char *path)
{
    struct rpc_client *c = xcalloc(1, sizeof *c);
    int tries = 0;
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    const nghttp2_settings_entry push = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    /* one who takes over another's socket has renamed it before that one
     * closes; but who has looked up the path just before is refused */
    while ((c->fd = unix_connect(path)) == -ECONNREFUSED && tries++ < 1000)
        (void)poll(NULL, 0, 1);
    if (c->fd < 0 || nghttp2_session_callbacks_new(&callbacks) != 0 ||
        nghttp2_option_new(&option) != 0)
        fail("no connection");
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                              on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option_set_no_auto_window_update(option, 1);
    if (nghttp2_session_client_new2(&c->h2, callbacks, c, option) != 0 ||
        nghttp2_submit_settings(c->h2, 0, &push, 1) != 0)
        fail("no session");
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return c;
}

void rpc_close(struct rpc_client *c)
{
    nghttp2_session_del(c->h2);
    (void)close(c->fd);
    free(c);
}

static void give(struct rpc_client *c)
{
    const uint8_t *data;
    ssize_t size;
    while (!c->deaf && (size = nghttp2_session_mem_send(c->h2, &data)) > 0)
        while (size > 0 && !c->deaf) {
            struct pollfd p = {.fd = c->fd, .events = POLLOUT};
            ssize_t n = send(c->fd, data, (size_t)size, MSG_NOSIGNAL);
            if (n > 0) {
                data += n;
                size -= n;
            } else if (errno == EAGAIN) {
                if (poll(&p, 1, RPC_PATIENCE_MS) <= 0)
                    fail("the server reads nothing");
            } else {
                c->deaf = true;
            }
        }
}

void rpc_turn(struct rpc_client *c, int ms)
{
    uint8_t data[32 << 10];
    struct pollfd p = {.fd = c->fd, .events = c->silent ? 0 : POLLIN};
    give(c);
    if (c->closed || poll(&p, 1, ms) <= 0)
        return;
    ssize_t n = recv(c->fd, data, sizeof data, 0);
    if (n <= 0 || nghttp2_session_mem_recv(c->h2, data, (size_t)n) < 0)
        c->closed = true;
    give(c);
}

/* --- calls --------------------------------------------------------------------- */

void rpc_begin(struct rpc_client *c, struct rpc_call *call, const char *method,
               const char *const *more)
{
    const nghttp2_data_provider body = {.source.ptr = call,
                                        .read_callback = on_read};
    nghttp2_nv nva[OWN + MORE] = {
        h2_nv(":method", "POST"),
        h2_nv(":scheme", "http"),
        h2_nv(":path", method),
        h2_nv(":authority", "localhost"),
        h2_nv("content-type", "application/grpc"),
        h2_nv("te", "trailers"),
    };
    size_t n = OWN;
    for (; more && *more && n < OWN + MORE; more += 2)
        nva[n++] = h2_nv(more[0], more[1]);
    memset(call, 0, sizeof *call);
    call->client = c;
    call->out = call->in = STR_INIT(STR_MAX_DEFAULT);
    h2_fields_init(&call->head, FIELDS);
    h2_fields_init(&call->trailers, FIELDS);
    call->id = nghttp2_submit_request(c->h2, NULL, nva, n, &body, call);
    if (call->id < 0)
        call->closed = true;
}

static void resume(struct rpc_call *call)
{
    if (call->waits)
        (void)nghttp2_session_resume_data(call->client->h2, call->id);
    call->waits = false;
}

void rpc_send_raw(struct rpc_call *call, const void *data, size_t size)
{
    str_add_n(&call->out, data, size);
    resume(call);
}

void rpc_send(struct rpc_call *call, const void *message, size_t size)
{
    unsigned char prefix[GRPC_PREFIX];
    grpc_prefix(size, prefix);
    rpc_send_raw(call, prefix, sizeof prefix);
    rpc_send_raw(call, message, size);
}

void rpc_send_end(struct rpc_call *call)
{
    call->out_ended = true;
    resume(call);
}

void rpc_reset(struct rpc_call *call, uint32_t code)
{
    (void)nghttp2_submit_rst_stream(call->client->h2, 0, call->id, code);
    give(call->client);
}

void rpc_end(struct rpc_call *call)
{
    if (!call->closed && call->id > 0)
        (void)nghttp2_session_set_stream_user_data(call->client->h2, call->id,
                                                   NULL);
    str_fini(&call->out);
    str_fini(&call->in);
    h2_fields_fini(&call->head);
    h2_fields_fini(&call->trailers);
}

int rpc_code(const struct rpc_call *call)
{
    const char *code = h2_fields_get(&call->trailers, "grpc-status");
    if (!code)
        code = h2_fields_get(&call->head, "grpc-status");
    return code ? (int)strtol(code, NULL, 10) : -1;
}

const char *rpc_text(const struct rpc_call *call)
{
    static _Thread_local char text[RPC_TEXT_MAX];
    const char *value = h2_fields_get(&call->trailers, "grpc-message");
    if (!value)
        value = h2_fields_get(&call->head, "grpc-message");
    size_t n = value ? grpc_text_decode(value, strlen(value), text,
                                        sizeof text - 1)
                     : 0;
    text[n] = '\0';
    return text;
}

int rpc_wait(struct rpc_call *call)
{
    struct rpc_client *c = call->client;
    for (int i = 0; !call->closed && !c->closed; i++) {
        if (i > 1000000)
            fail("a call never ends");
        rpc_turn(c, RPC_PATIENCE_MS);
    }
    return rpc_code(call);
}

void rpc_wait_bytes(struct rpc_call *call, size_t size)
{
    struct rpc_client *c = call->client;
    for (int i = 0; call->in.size < size && !call->closed && !c->closed; i++) {
        if (i > 1000000)
            fail("the bytes never come");
        rpc_turn(c, RPC_PATIENCE_MS);
    }
}

int rpc_unary(struct rpc_client *c, const char *method, const void *message,
              size_t size, struct str *ret_reply)
{
    struct rpc_call call;
    rpc_begin(c, &call, method, NULL);
    rpc_send(&call, message, size);
    rpc_send_end(&call);
    int code = rpc_wait(&call);
    str_reset(ret_reply);
    if (call.in.size > GRPC_PREFIX)
        str_add_n(ret_reply, call.in.data + GRPC_PREFIX,
                  call.in.size - GRPC_PREFIX);
    rpc_end(&call);
    return code;
}
