#include "deploy/examples/allreduce/arlink.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum { BACKLOG = 64, AGAIN_MS = 20 };

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* there is always one */
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int left_ms(int64_t end)
{
    int64_t left = end - now_ms();
    return left < 0 ? 0 : (int)left;
}

int arlink_listen(unsigned port, struct error *err)
{
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6,
                                     .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, off = 0;
    if (fd >= 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
        bind(fd, (const struct sockaddr *)&any, sizeof any) == 0 &&
        listen(fd, BACKLOG) == 0)
        return fd;
    int r = error_errno(err, errno, "port %u", port);
    if (fd >= 0)
        (void)close(fd); /* nothing was done with it */
    return r;
}

static void name_peer(struct ar_link *l, const char *what, const char *host,
                      unsigned port)
{
    (void)snprintf(l->who, sizeof l->who, "%s (%s:%u)", what, host, port);
}

/* A machine that is dead says nothing: ask it, and give up after `timeout_ms`,
 * also while nothing is to be sent and who waits does so for any time. */
static int keep_alive(int fd, int timeout_ms, struct error *err)
{
    const int third_s = timeout_ms / 1000 / 3;
    const int every_s = third_s < 1 ? 1 : third_s;
    const struct {
        int level, name, value;
    } wanted[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, every_s},
        {IPPROTO_TCP, TCP_KEEPINTVL, every_s},
        {IPPROTO_TCP, TCP_KEEPCNT, 2},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, timeout_ms},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (setsockopt(fd, wanted[i].level, wanted[i].name, &wanted[i].value,
                       sizeof wanted[i].value) < 0)
            return error_errno(err, errno, "setsockopt");
    return 0;
}

static int adopt(struct ar_link *l, int fd, int timeout_ms, struct error *err)
{
    int r = keep_alive(fd, timeout_ms, err);
    if (r < 0) {
        (void)close(fd); /* nothing was sent */
        return error_wrap(err, "%s", l->who);
    }
    l->fd = fd;
    l->timeout_ms = timeout_ms;
    return 0;
}

int arlink_accept(int listening, int wait_ms, int timeout_ms,
                  struct ar_link *ret_link, struct error *err)
{
    struct pollfd p = {.fd = listening, .events = POLLIN};
    struct sockaddr_in6 from;
    socklen_t size = sizeof from;
    char host[INET6_ADDRSTRLEN] = "?";
    struct ar_link l = AR_LINK_NONE;
    if (poll(&p, 1, wait_ms) == 0)
        return error_set(err, EAGAIN, "nobody connected");
    int fd = accept4(listening, (struct sockaddr *)&from, &size,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "accept");
    (void)inet_ntop(AF_INET6, &from.sin6_addr, host, sizeof host);
    name_peer(&l, "somebody", host, ntohs(from.sin6_port));
    int r = adopt(&l, fd, timeout_ms, err);
    if (r == 0)
        *ret_link = l;
    return r;
}

/* Of an address in either form: one of IPv4 is mapped. */
static bool address_read(const char *host, unsigned port,
                         struct sockaddr_in6 *ret_to)
{
    char mapped[INET6_ADDRSTRLEN + 8];
    *ret_to = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                    .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET6, host, &ret_to->sin6_addr) == 1)
        return true;
    (void)snprintf(mapped, sizeof mapped, "::ffff:%.40s", host);
    return inet_pton(AF_INET6, mapped, &ret_to->sin6_addr) == 1;
}

static int dial_once(const struct sockaddr_in6 *to, int timeout_ms, int *ret_fd)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int e = connect(fd, (const struct sockaddr *)to, sizeof *to) == 0 ? 0
                                                                      : errno;
    socklen_t size = sizeof e;
    if (e == EINPROGRESS && poll(&p, 1, timeout_ms) > 0)
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &size);
    if (e == 0) {
        *ret_fd = fd;
        return 0;
    }
    (void)close(fd); /* nothing was sent */
    return -e;
}

int arlink_dial(const char *host, unsigned port, const char *what,
                int timeout_ms, struct ar_link *ret_link, struct error *err)
{
    struct sockaddr_in6 to;
    struct ar_link l = AR_LINK_NONE;
    int64_t end = now_ms() + timeout_ms;
    int r, fd = -1;
    name_peer(&l, what, host, port);
    if (!address_read(host, port, &to))
        return error_set(err, EINVAL, "%s: must be an address of IPv4 or IPv6",
                         l.who);
    while ((r = dial_once(&to, left_ms(end), &fd)) < 0 && left_ms(end) > 0)
        (void)poll(NULL, 0, AGAIN_MS); /* it may begin later */
    if (r < 0)
        return error_errno(err, r == -EINPROGRESS ? ETIMEDOUT : -r,
                           "%s could not be reached for %d s", l.who,
                           timeout_ms / 1000);
    r = adopt(&l, fd, timeout_ms, err);
    if (r == 0)
        *ret_link = l;
    return r;
}

int arlink_own_address(const struct ar_link *l,
                       unsigned char ret_address[AR_ADDRESS], struct error *err)
{
    struct sockaddr_in6 own = {0};
    socklen_t size = sizeof own;
    if (getsockname(l->fd, (struct sockaddr *)&own, &size) < 0)
        return error_errno(err, errno, "our address towards %s", l->who);
    memcpy(ret_address, &own.sin6_addr, AR_ADDRESS);
    return 0;
}

void arlink_close(struct ar_link *l)
{
    if (l->fd >= 0)
        (void)close(l->fd); /* what matters was answered */
    l->fd = -1;
}

/* --- bytes ----------------------------------------------------------------- */

struct side {
    struct ar_link *link;
    size_t size, done;
};

static bool is_open(const struct side *s)
{
    return s->link && s->done < s->size;
}

static int say_lost(const struct side *s, ssize_t n, struct error *err)
{
    if (n == 0 && s->done == 0)
        return error_set(err, ENODATA, "%s ended the connection", s->link->who);
    if (n == 0)
        return error_set(err, ECONNRESET,
                         "%s ended the connection after %zu of %zu bytes",
                         s->link->who, s->done, s->size);
    return error_set(err, ECONNRESET, "%s: the connection was lost: %s",
                     s->link->who, strerror(errno));
}

/* What the last call said: more came, or why not. */
static int count(struct side *s, ssize_t n, struct error *err)
{
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return say_lost(s, n, err);
    s->done += (size_t)n;
    return 0;
}

static int wait_for_either(const struct side *out, const struct side *in,
                           struct pollfd p[2], struct error *err)
{
    const struct side *late = is_open(in) ? in : out;
    p[0] = (struct pollfd){.fd = is_open(out) ? out->link->fd : -1,
                           .events = POLLOUT};
    p[1] = (struct pollfd){.fd = is_open(in) ? in->link->fd : -1,
                           .events = POLLIN};
    int n = poll(p, 2, late->link->timeout_ms);
    if (n < 0 && errno != EINTR)
        return error_errno(err, errno, "poll");
    if (n != 0)
        return 0;
    return error_set(err, ETIMEDOUT, "%s %s nothing for %d s", late->link->who,
                     late == in ? "sent" : "took",
                     late->link->timeout_ms / 1000);
}

int arlink_exchange(struct ar_link *to, const void *out, size_t out_size,
                    struct ar_link *from, void *in, size_t in_size,
                    struct error *err)
{
    struct side o = {to, out_size, 0}, i = {from, in_size, 0};
    while (is_open(&o) || is_open(&i)) {
        struct pollfd p[2];
        int r = wait_for_either(&o, &i, p, err);
        if (r == 0 && p[0].revents)
            r = count(&o,
                      send(to->fd, (const char *)out + o.done,
                           out_size - o.done, MSG_NOSIGNAL),
                      err);
        if (r == 0 && p[1].revents)
            r = count(&i,
                      recv(from->fd, (char *)in + i.done, in_size - i.done, 0),
                      err);
        if (r < 0)
            return r;
    }
    return 0;
}

int arlink_send(struct ar_link *to, const struct ar_frame *frame,
                const void *data, struct error *err)
{
    unsigned char head[AR_HEAD];
    arframe_write(frame, head);
    int r = arlink_exchange(to, head, sizeof head, NULL, NULL, 0, err);
    return r < 0 ? r
                 : arlink_exchange(to, data, (size_t)frame->bytes, NULL, NULL,
                                   0, err);
}

static int receive_error(struct ar_link *from, const struct ar_frame *f,
                         struct error *err)
{
    char text[AR_ERROR_MAX + 1] = "";
    int r = arlink_exchange(NULL, NULL, 0, from, text, (size_t)f->bytes, err);
    return r < 0 ? r : error_set(err, EREMOTEIO, "%s: %s", from->who, text);
}

int arlink_receive(struct ar_link *from, struct ar_frame *ret_frame,
                   struct error *err)
{
    unsigned char head[AR_HEAD];
    int r = arlink_exchange(NULL, NULL, 0, from, head, sizeof head, err);
    if (r < 0)
        return r;
    if ((r = arframe_read(head, ret_frame, err)) < 0)
        return error_wrap(err, "%s", from->who);
    return ret_frame->kind == AR_ERROR ? receive_error(from, ret_frame, err)
                                       : 0;
}

void arlink_tell(struct ar_link *to, uint16_t rank, uint16_t size,
                 const struct error *why)
{
    size_t n = strnlen(why->text, AR_ERROR_MAX);
    const struct ar_frame f = {AR_ERROR, rank, size, 0, n};
    struct error ignored;
    if (to->fd < 0)
        return;
    to->timeout_ms = AGAIN_MS;
    (void)arlink_send(to, &f, why->text, &ignored); /* as the header says */
}
