#include "lib/grpc/grpc_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum {
    PUMP_BYTES = 32 << 10, /* in one turn, either way */
};

/* Bytes on their way, from one socket to the other. */
struct way {
    int from, to;
    bool ended; /* nothing more comes, or is taken */
    size_t at, n;
    uint64_t sum; /* of all that came */
    char data[PUMP_BYTES];
};

struct grpc_pump {
    int fd; /* what libcurl has */
    struct way in, out;
};

int grpc_pump_create(int fd, struct grpc_pump **ret_pump)
{
    int pair[2];
    int far = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (far < 0)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   pair) < 0) {
        int e = errno;
        (void)close(far);
        return -e;
    }
    if (dup3(pair[1], fd, O_CLOEXEC) < 0) {
        int e = errno;
        (void)close(far);
        (void)close(pair[0]);
        (void)close(pair[1]);
        return -e;
    }
    (void)close(pair[1]);
    struct grpc_pump *p = xcalloc(1, sizeof *p);
    p->fd = fd;
    p->in.from = p->out.to = far;
    p->in.to = p->out.from = pair[0];
    *ret_pump = p;
    return 0;
}

void grpc_pump_destroy(struct grpc_pump *p)
{
    if (!p)
        return;
    (void)close(p->in.from);
    (void)close(p->in.to);
    free(p);
}

bool grpc_pump_is_on(const struct grpc_pump *p, int fd)
{
    return p->fd == fd;
}

uint64_t grpc_pump_received(const struct grpc_pump *p)
{
    return p->in.sum;
}

static bool is_over(ssize_t n)
{
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void move(struct way *w)
{
    if (w->n == 0 && !w->ended) {
        ssize_t n = recv(w->from, w->data, sizeof w->data, MSG_DONTWAIT);
        w->ended = is_over(n);
        w->at = 0;
        w->n = n > 0 ? (size_t)n : 0;
        w->sum += w->n;
    }
    if (w->n > 0) {
        ssize_t n = send(w->to, w->data + w->at, w->n,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            w->at += (size_t)n;
            w->n -= (size_t)n;
        } else if (is_over(n)) {
            w->ended = true;
            w->n = 0;
        }
    }
    if (w->ended && w->n == 0)
        (void)shutdown(w->to, SHUT_WR);
}

void grpc_pump_turn(struct grpc_pump *p)
{
    move(&p->out);
    move(&p->in);
}

/* A socket from which nothing is wanted is not asked: that it has hung up
 * would be told again and again. */
static void fill(int fd, const struct way *in, const struct way *out,
                 struct curl_waitfd *ret_fd)
{
    short events = (short)((!in->ended && in->n == 0 ? CURL_WAIT_POLLIN : 0) |
                           (out->n > 0 ? CURL_WAIT_POLLOUT : 0));
    *ret_fd = (struct curl_waitfd){.fd = events ? fd : -1, .events = events};
}

void grpc_pump_poll(const struct grpc_pump *p,
                    struct curl_waitfd ret_fds[GRPC_PUMP_FDS])
{
    fill(p->in.from, &p->in, &p->out, &ret_fds[0]);
    fill(p->in.to, &p->out, &p->in, &ret_fds[1]);
}
