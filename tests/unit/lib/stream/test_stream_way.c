#include "lib/stream/stream_way.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"

/* from --> our `ends.from` == way ==> our `ends.to` --> to */
static int from, to;
static struct stream_conn a, b;
static struct stream_way way;
static struct stream_way_ends ends = {.from = &a, .to = &b};
static char scratch[STREAM_WAY_MAX];
static size_t n_seen;

static void set_up(void)
{
    int pair[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    from = pair[0];
    stream_conn_init(&a, pair[1]);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    to = pair[0];
    stream_conn_init(&b, pair[1]);
    stream_way_init(&way);
}

static void tear_down(void)
{
    stream_way_fini(&way);
    stream_conn_fini(&a);
    stream_conn_fini(&b);
    (void)close(from);
    (void)close(to);
}

TestSuite(stream_way, .init = set_up, .fini = tear_down);

static bool turn(void)
{
    stream_conn_happened(&a, EPOLLIN);
    stream_conn_happened(&b, EPOLLOUT);
    return stream_way_turn(&way, &ends, scratch);
}

static size_t receive_all(void)
{
    static char data[1 << 16];
    size_t sum = 0;
    ssize_t n;
    while ((n = recv(to, data, sizeof data, 0)) > 0)
        sum += (size_t)n;
    return sum;
}

static size_t send_all(void)
{
    static const char data[1 << 16];
    size_t sum = 0;
    ssize_t n;
    while ((n = send(from, data, sizeof data, MSG_NOSIGNAL)) > 0)
        sum += (size_t)n;
    return sum;
}

Test(stream_way, holds_no_more_than_its_cap)
{
    size_t sent = 0, more;
    while ((more = send_all()) > 0) {
        sent += more;
        for (int i = 0; i < 100; i++)
            (void)turn();
        cr_assert_leq(way.n, STREAM_WAY_MAX);
    }
    cr_expect_gt(way.n, 0, "nobody reads, and nothing waits");
    size_t received = 0;
    do {
        more = receive_all();
        received += more;
        (void)turn();
    } while (more > 0);
    cr_expect_eq(received, sent);
    cr_expect_eq(way.n, 0);
    cr_expect_null(way.data, "memory is held for nothing");
    cr_expect_eq(way.moved, sent);
}

Test(stream_way, ends_behind_what_was_sent)
{
    char c;
    size_t sent = send_all();
    (void)shutdown(from, SHUT_WR);
    size_t received = 0;
    while (!way.shut) {
        (void)turn();
        received += receive_all();
    }
    cr_expect_eq(received, sent);
    cr_expect_eq(recv(to, &c, 1, 0), 0);
    cr_expect(way.ended && !way.from_lost && !way.to_lost);
    /* the other direction is open */
    cr_expect_eq(send(to, "x", 1, 0), 1);
    stream_conn_happened(&b, EPOLLIN);
    cr_expect_eq(stream_conn_read(&b, &c, 1), 1);
}

Test(stream_way, a_reader_that_is_gone)
{
    (void)send_all();
    (void)close(to);
    (void)turn();
    cr_expect(way.to_lost && way.shut && way.ended);
    to = -1;
}

static void count(void *ctx, const void *data, size_t size)
{
    (void)ctx;
    (void)data;
    n_seen += size;
}

Test(stream_way, a_limit_ends_it)
{
    ends.saw = count;
    way.limit = 5;
    cr_assert_eq(send(from, "123456789", 9, 0), 9);
    stream_way_put(&way, "ab", 2);
    while (!way.shut)
        (void)turn();
    cr_expect_eq(receive_all(), 7);
    cr_expect_eq(n_seen, 5, "only what was read is shown");
    ends.saw = NULL;
}

/* One read fits into `to`, and so do those of a turn: it has twice the room. */
Test(stream_way, a_turn_is_limited)
{
    const int room = 2 * STREAM_WAY_READS * STREAM_WAY_MAX;
    (void)setsockopt(b.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    (void)setsockopt(from, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    cr_assert_gt(send_all(), STREAM_WAY_READS * STREAM_WAY_MAX);
    cr_expect(!turn(), "one turn took all");
    cr_expect_leq(way.moved, STREAM_WAY_READS * STREAM_WAY_MAX);
}
