/* Clients that send what is no HTTP/2, or too much of what is: they are told
 * so and cut off, and others go on. */
#include <criterion/criterion.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/grpcd/grpcd.h"
#include "lib/io/clock.h"
#include "lib/io/unix_socket.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/grpc/rpcserver.h"
#include "tests/lib/http/h2frames.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum { FLOOD = 3000, NEVER = -1, HEAD = 9 };

static void greet(struct str *out)
{
    str_add(out, PREFACE);
    h2_add_frame(out, FRAME_SETTINGS, 0, 0, NULL, 0);
}

static void add_request(struct str *out, int32_t id, int flags)
{
    cleanup_str struct str block = STR_INIT(1000);
    h2_add_field(&block, ":method", "POST");
    h2_add_field(&block, ":scheme", "http");
    h2_add_field(&block, ":path", "/t.T/Echo");
    h2_add_field(&block, "content-type", "application/grpc");
    h2_add_frame(out, FRAME_HEADERS, flags, id, block.data, block.size);
}

/* Sends all of it, and reads until the server has closed: the code of GOAWAY;
 * NEVER: there was none. */
static int goaway_after(int fd, const struct str *out)
{
    cleanup_str struct str in = STR_INIT(64 << 20);
    size_t sent = 0;
    for (;;) {
        char data[4096];
        struct pollfd p = {
            .fd = fd,
            .events = (short)(POLLIN | (sent < out->size ? POLLOUT : 0))};
        cr_assert_gt(poll(&p, 1, RPC_PATIENCE_MS), 0, "it does not close");
        ssize_t n = send(fd, out->data + sent, out->size - sent, MSG_NOSIGNAL);
        sent = n < 0 && errno != EAGAIN ? out->size
                                        : sent + (n > 0 ? (size_t)n : 0);
        n = recv(fd, data, sizeof data, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
        if (n > 0)
            str_add_n(&in, data, (size_t)n);
    }
    for (size_t at = 0; at + HEAD <= in.size;) {
        const unsigned char *h = (const unsigned char *)in.data + at;
        if (h[3] == FRAME_GOAWAY)
            return h[HEAD + 7];
        at += HEAD + ((size_t)h[0] << 16 | (size_t)h[1] << 8 | h[2]);
    }
    return NEVER;
}

static void fill(size_t what, struct str *out)
{
    static const char zeros[16] = "";
    if (what == 0) {
        str_add(out, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        return;
    }
    greet(out);
    switch (what) {
    case 1: /* a PING is as long as it is */
        h2_add_frame(out, FRAME_PING, 0, 0, zeros, 7);
        break;
    case 2: /* headers of no stream */
        add_request(out, 0, END_HEADERS);
        break;
    case 3: /* an even stream is a server's */
        add_request(out, 2, END_HEADERS);
        break;
    case 4: /* DATA of a stream that is not there */
        h2_add_frame(out, FRAME_DATA, 0, 1, "a", 1);
        break;
    case 5: /* something else within headers */
        add_request(out, 1, 0);
        h2_add_frame(out, FRAME_PING, 0, 0, zeros, 8);
        break;
    case 6: /* not what HPACK can read */
        h2_add_frame(out, FRAME_HEADERS, END_HEADERS, 1, "\377\377\377\377", 4);
        break;
    case 7: /* a window of nothing */
        h2_add_frame(out, FRAME_WINDOW, 0, 0, zeros, 4);
        break;
    case 8:
        for (int i = 0; i < FLOOD; i++)
            h2_add_frame(out, FRAME_PING, 0, 0, zeros, 8);
        break;
    case 9:
        for (int i = 0; i < FLOOD; i++)
            h2_add_frame(out, FRAME_SETTINGS, 0, 0, NULL, 0);
        break;
    case 10: /* calls that are reset at once */
        for (int i = 0; i < FLOOD; i++) {
            add_request(out, 1 + 2 * i, END_HEADERS);
            h2_add_code(out, FRAME_RST, 1 + 2 * i, H2_CANCEL);
        }
        break;
    default: /* headers without end */
        add_request(out, 1, 0);
        for (int i = 0; i < FLOOD; i++)
            h2_add_frame(out, FRAME_CONTINUATION, 0, 1, "", 0);
    }
}

Test(grpcd_frames, what_is_wrong_ends_the_connection)
{
    static const int codes[] = {
        NEVER, /* of nghttp2: no preface, no word */
        NGHTTP2_FRAME_SIZE_ERROR,
        NGHTTP2_PROTOCOL_ERROR,
        NGHTTP2_PROTOCOL_ERROR,
        NGHTTP2_PROTOCOL_ERROR,
        NGHTTP2_PROTOCOL_ERROR,
        NGHTTP2_COMPRESSION_ERROR,
        NGHTTP2_PROTOCOL_ERROR,
        NGHTTP2_ENHANCE_YOUR_CALM,
        NGHTTP2_ENHANCE_YOUR_CALM,
        NGHTTP2_ENHANCE_YOUR_CALM,
        NEVER, /* of nghttp2 as well */
    };
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    cleanup_str struct str reply = STR_INIT(1000);
    clock_set_fake(1000); /* no budget comes back */
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        cleanup_str struct str out = STR_INIT(1 << 20);
        cleanup_fd int fd = unix_connect(s->path);
        cr_assert_geq(fd, 0);
        fill(i, &out);
        int code = goaway_after(fd, &out);
        cr_expect_eq(code, codes[i], "%zu: %d", i, code);
        cr_expect_eq(rpc_unary(c, "/t.T/Echo", "a", 1, &reply), GRPC_OK);
    }
    clock_set_fake(-1);
    rpc_close(c);
    rpc_server_destroy(s);
}

/* In virtual time: one frame may take GRPCD_FRAME_MS. */
Test(grpcd_frames, who_sends_a_frame_for_ever_is_cut_off)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    cleanup_str struct str out = STR_INIT(1000), reply = STR_INIT(1000);
    cleanup_fd int fd = unix_connect(s->path);
    struct grpcd_stats stats;
    clock_set_fake(1000);
    greet(&out);
    add_request(&out, 1, END_HEADERS);
    out.size -= 5; /* and the rest never comes */
    cr_assert_eq(send(fd, out.data, out.size, 0), (ssize_t)out.size);
    cr_expect_eq(rpc_unary(c, "/t.T/Echo", "a", 1, &reply), GRPC_OK);
    clock_set_fake(1000 + GRPCD_FRAME_MS - 1);
    cr_expect_eq(rpc_unary(c, "/t.T/Echo", "a", 1, &reply), GRPC_OK);
    grpcd_stats(s->grpcd, &stats);
    cr_expect_eq(stats.n_connections, 2);
    clock_set_fake(1000 + 2 * GRPCD_FRAME_MS);
    out.size = 0;
    cr_expect_eq(rpc_unary(c, "/t.T/Echo", "a", 1, &reply), GRPC_OK);
    (void)goaway_after(fd, &out);
    clock_set_fake(-1);
    rpc_close(c);
    rpc_server_destroy(s);
}
