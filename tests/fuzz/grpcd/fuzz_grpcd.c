/* A server of gRPC and what any client may send it: whole connections, heads
 * of requests, bodies.  It ends each connection that its client has ended, and
 * each call it has begun, once; and holds nothing then. */
#include <assert.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/unix_socket.h"
#include "tests/lib/grpc/rpcserver.h"
#include "tests/lib/http/h2frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rpc_server *far, *near;

static void end(void)
{
    rpc_server_destroy(near);
    rpc_server_destroy(far);
}

static void begin(void)
{
    const struct grpcd_config small = {.message_max = 4096};
    far = rpc_server_create(NULL, NULL, &small);
    near = rpc_server_create(NULL, far->path, &small);
    (void)atexit(end);
}

static void send_all(int fd, const struct str *bytes)
{
    for (size_t at = 0; at < bytes->size;) {
        ssize_t n = send(fd, bytes->data + at, bytes->size - at, MSG_NOSIGNAL);
        char reply[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
        if (n < 0 && errno != EAGAIN)
            return; /* it has heard enough */
        at += n > 0 ? (size_t)n : 0;
        if (n < 0 && poll(&p, 1, -1) > 0 && p.revents & POLLIN)
            (void)!recv(fd, reply, sizeof reply, 0);
    }
}

/* Until the server has closed. */
static void drain(int fd)
{
    char reply[4096];
    ssize_t n;
    (void)shutdown(fd, SHUT_WR);
    do {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)poll(&p, 1, -1);
        n = recv(fd, reply, sizeof reply, 0);
    } while (n > 0 || (n < 0 && errno == EAGAIN));
}

static void field(struct str *block, const char *name, size_t name_size,
                  const char *value, size_t value_size)
{
    cleanup_free char *n = xstrndup(name, name_size);
    cleanup_free char *v = xstrndup(value, value_size);
    h2_add_field(block, n, v);
}

/* Lines "name:value" in place of the usual head, or after it. */
static void add_head(struct str *out, const char *data, size_t size, bool own)
{
    cleanup_str struct str block = STR_INIT(64 << 10);
    if (!own) {
        h2_add_field(&block, ":method", "POST");
        h2_add_field(&block, ":scheme", "http");
        h2_add_field(&block, ":path", "/r.Peek/Echo");
        h2_add_field(&block, "content-type", "application/grpc");
    }
    for (size_t i = 0; i < size;) {
        const char *line_end = memchr(data + i, '\n', size - i);
        size_t n = line_end ? (size_t)(line_end - data) - i : size - i;
        const char *colon = n > 1 ? memchr(data + i + 1, ':', n - 1) : NULL;
        size_t name = colon ? (size_t)(colon - data) - i : n;
        if (n > 0 && name < 100 && n - name < 100 && block.size < 8000)
            field(&block, data + i, name, data + i + name + (colon != NULL),
                  n - name - (colon != NULL));
        i += n + 1;
    }
    h2_add_frame(out, FRAME_HEADERS, END_HEADERS, 1, block.data, block.size);
}

static void add_body(struct str *out, const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"/t.T/Echo", "/t.T/Sum", "/r.R/Sum",
                                          "/r.Edit/Echo"};
    cleanup_str struct str path = STR_INIT(100);
    size_t step = 1 + data[0] % 64;
    str_addf(&path,
             ":path:%s\n:method:POST\n:scheme:http\n"
             "content-type:application/grpc",
             methods[data[0] / 64]);
    add_head(out, path.data, path.size, true);
    for (size_t i = 1; i < size && i < 16000; i += step) {
        size_t n = size - i < step ? size - i : step;
        h2_add_frame(out, FRAME_DATA, i + n >= size ? END_STREAM : 0, 1,
                     data + i, n);
    }
}

/* The numbers are read one after another, while a call may go on. */
static void check(struct rpc_server *s)
{
    struct grpcd_stats stats;
    for (int64_t i = 0; i < 1000000000; i++) {
        grpcd_stats(s->grpcd, &stats);
        if (stats.n_routed == stats.n_ended && stats.n_calls == 0 &&
            stats.held == 0)
            break;
        (void)usleep(0);
    }
    assert(stats.n_routed == stats.n_ended && stats.n_calls == 0);
    assert(stats.held == 0);
}

/* The first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    if (size < 2)
        return 0;
    if (!near)
        begin();
    if (data[0] % 4 != 3)
        str_add(&out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    if (data[0] % 4 < 2)
        h2_add_frame(&out, FRAME_SETTINGS, 0, 0, NULL, 0);
    if (data[0] % 4 == 0)
        add_head(&out, (const char *)data + 1, size - 1, data[0] & 4);
    else if (data[0] % 4 == 1)
        add_body(&out, data + 1, size - 1);
    else
        str_add_n(&out, (const char *)data + 1, size - 1);
    cleanup_fd int fd = unix_connect(near->path);
    assert(fd >= 0);
    send_all(fd, &out);
    drain(fd);
    rpc_server_release(near);
    rpc_server_release(far);
    check(near);
    check(far);
    return 0;
}
