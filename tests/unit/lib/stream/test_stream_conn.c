/* Plain connections; those over TLS are in test_stream_relay. */
#include "lib/stream/stream_conn.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/streamserver.h"

static struct stream_conn conn;
static int far;

static void set_up(void)
{
    int pair[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    stream_conn_init(&conn, pair[0]);
    far = pair[1];
}

static void tear_down(void)
{
    stream_conn_fini(&conn);
    cr_expect_eq(conn.fd, -1);
    stream_conn_fini(&conn); /* of none */
    (void)close(far);
}

TestSuite(stream_conn, .init = set_up, .fini = tear_down);

Test(stream_conn, does_nothing_before_it_is_told)
{
    char c;
    cr_assert_eq(send(far, "x", 1, 0), 1);
    cr_expect_eq(stream_conn_read(&conn, &c, 1), -EAGAIN);
    cr_expect_eq(stream_conn_write(&conn, "y", 1), -EAGAIN);
    stream_conn_happened(&conn, EPOLLIN);
    cr_expect_eq(stream_conn_write(&conn, "y", 1), -EAGAIN);
    cr_expect_eq(stream_conn_read(&conn, &c, 1), 1);
    cr_expect(conn.readable, "there may be more");
    cr_expect_eq(stream_conn_read(&conn, &c, 1), -EAGAIN);
    cr_expect(!conn.readable && conn.told && !conn.hung_up);
    stream_conn_happened(&conn, EPOLLOUT);
    cr_expect_eq(stream_conn_write(&conn, "y", 1), 1);
}

Test(stream_conn, both_ends_of_it)
{
    char c;
    cr_expect_eq(stream_conn_end(&conn), 0);
    cr_expect_eq(recv(far, &c, 1, 0), 0);
    cr_assert_eq(send(far, "x", 1, 0), 1);
    (void)close(far);
    stream_conn_happened(&conn, EPOLLIN | EPOLLRDHUP);
    cr_expect(conn.hung_up);
    cr_expect_eq(stream_conn_read(&conn, &c, 1), 1, "what came before is lost");
    cr_expect_eq(stream_conn_read(&conn, &c, 1), 0);
    stream_conn_happened(&conn, EPOLLOUT);
    cr_expect_lt(stream_conn_write(&conn, "y", 1), 0);
    far = -1;
}

/* Until the kernel has said yes or no. */
static int dial(uint16_t port, struct stream_conn *c)
{
    struct sockaddr_storage to = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&to;
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(stream_conn_dial(c, &to), 0);
    cr_expect_eq(stream_conn_dialled(c), -EAGAIN);
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    cr_assert_eq(poll(&p, 1, 60000), 1);
    stream_conn_happened(c, EPOLLOUT);
    return stream_conn_dialled(c);
}

Test(stream_conn, is_dialled)
{
    struct stream_conn c = STREAM_CONN_NONE;
    uint16_t port = 0;
    int listener = raw_listen(&port);
    cr_expect_eq(dial(port, &c), 0);
    stream_conn_fini(&c);
    (void)close(listener);
    int nowhere = raw_nowhere(&port);
    cr_expect_eq(dial(port, &c), -ECONNREFUSED);
    stream_conn_fini(&c);
    (void)close(nowhere);
}
