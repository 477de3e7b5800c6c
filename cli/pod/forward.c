/* biga port-forward: what connects to a port here is in the pod. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/base/put.h"
#include "cli/base/say.h"
#include "cli/pod/far.h"
#include "cli/pod/pod_verbs.h"
#include "lib/base/mem.h"
#include "lib/io/thread_name.h"

#define PROTOCOL "v4.channel.k8s.io"
enum {
    CHANNEL_DATA = 0,
    CHANNEL_ERROR = 1,
    CHANNEL_CLOSE = 255, /* of exec's v5; our nodes take it here, too */
    PORTS_MAX = 32,
    CONNECTIONS_MAX = 128,
    PIECE = 32 << 10,
    PATH_BYTES = 4096,
};

struct port {
    uint16_t here, there; /* here 0: any */
    int fd;
};

struct forward {
    struct cli *c;
    const char *pod;
    struct port ports[PORTS_MAX];
    size_t n;
    atomic_uint connections;
};

/* --- one connection ------------------------------------------------------------ */

struct connection {
    struct forward *f;
    uint16_t there;
    int fd;
    struct pod_stream *stream;
    bool begun[2]; /* of each channel: its first message, which is the port */
    struct str trouble;
};

static int take(void *ctx, int channel, const char *data, size_t size,
                struct error *err)
{
    struct connection *x = ctx;
    if (channel != CHANNEL_DATA && channel != CHANNEL_ERROR)
        return 0;
    if (!x->begun[channel]) { /* the port comes before anything else */
        if (size < sizeof(uint16_t))
            return error_set(err, EPROTO, "the node said no port first");
        x->begun[channel] = true;
        data += sizeof(uint16_t);
        size -= sizeof(uint16_t);
    }
    if (channel == CHANNEL_DATA)
        return put_all(x->fd, data, size, "the connection", err);
    str_add_n(&x->trouble, data, size);
    return 0;
}

/* What the one here sent: false when it sends no more. */
static bool pass_on(struct connection *x)
{
    char block[PIECE];
    const char end = CHANNEL_DATA;
    ssize_t n = recv(x->fd, block, sizeof block, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n > 0)
        pod_stream_send(x->stream, CHANNEL_DATA, block, (size_t)n);
    else /* or else the one in the pod would wait for more, for ever */
        pod_stream_send(x->stream, CHANNEL_CLOSE, &end, 1);
    return n > 0;
}

/* When the one here sends no more it still gets what comes, until the one there
 * ends, too. */
static int run(struct connection *x, struct error *err)
{
    bool sends = true;
    int r = 0;
    while (r == 0) {
        bool now;
        struct pollfd p[] = {
            pod_stream_poll(x->stream, &now),
            {.fd = x->fd, .events = POLLRDHUP},
        };
        if (sends && pod_stream_unsent(x->stream) < POD_STREAM_UNSENT_MAX)
            p[1].events |= POLLIN;
        if (!sends)
            p[1].events = 0;
        if (poll(p, 2, now ? 0 : -1) < 0 && errno != EINTR)
            return error_errno(err, errno, "poll");
        if (p[1].revents & (POLLHUP | POLLERR))
            return 0; /* it has closed */
        if (sends && p[1].revents & (POLLIN | POLLRDHUP))
            sends = pass_on(x);
        r = pod_stream_turn(x->stream, p[0].revents, take, x, err);
    }
    return r == -EPIPE ? 0 : r;
}

static void *serve(void *arg)
{
    struct connection *x = arg;
    cleanup_str struct str path = STR_INIT(PATH_BYTES);
    struct error err = {0};
    thread_name("forward", NULL);
    far_path(x->f->pod, "portforward", &path);
    str_addf(&path, "?ports=%u", x->there);
    int rc = pod_stream_open(x->f->c, str_text(&path), PROTOCOL, &x->stream,
                             NULL);
    if (rc == 0 && run(x, &err) < 0)
        (void)cli_fail("port %u: %s", x->there, err.text);
    if (x->trouble.size)
        (void)cli_fail("port %u: %s", x->there, str_text(&x->trouble));
    pod_stream_close(x->stream);
    (void)close(x->fd); /* nothing is left to be sent */
    str_fini(&x->trouble);
    atomic_fetch_sub(&x->f->connections, 1);
    free(x);
    return NULL;
}

static void accept_one(struct forward *f, const struct port *port)
{
    pthread_t thread;
    int fd = accept4(port->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return; /* it has gone again */
    if (atomic_fetch_add(&f->connections, 1) >= CONNECTIONS_MAX) {
        (void)cli_fail("port-forward: over %d connections: one is refused",
                       CONNECTIONS_MAX);
        atomic_fetch_sub(&f->connections, 1);
        (void)close(fd);
        return;
    }
    struct connection *x = xcalloc(1, sizeof *x);
    *x = (struct connection){
        .f = f, .there = port->there, .fd = fd, .trouble = STR_INIT(4096)};
    if (pthread_create(&thread, NULL, serve, x) == 0) {
        (void)pthread_detach(thread); /* one of ours */
        return;
    }
    (void)cli_fail("port-forward: no thread for a connection");
    atomic_fetch_sub(&f->connections, 1);
    (void)close(fd);
    str_fini(&x->trouble);
    free(x);
}

/* --- ports ---------------------------------------------------------------------- */

static bool read_port(const char *text, size_t size, bool zero,
                      uint16_t *ret_port)
{
    unsigned long n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || size > 5)
            return false;
        n = n * 10 + (unsigned)(text[i] - '0');
    }
    *ret_port = (uint16_t)n;
    return size > 0 && n <= UINT16_MAX && (n > 0 || zero);
}

/* "PORT", "HERE:THERE", ":THERE". */
static int parse_port(const char *text, struct port *ret_port)
{
    const char *colon = strchr(text, ':'), *there = colon ? colon + 1 : text;
    *ret_port = (struct port){.fd = -1};
    bool ok = read_port(there, strlen(there), false, &ret_port->there);
    if (!colon)
        ret_port->here = ret_port->there;
    else if (colon > text)
        ok = ok &&
             read_port(text, (size_t)(colon - text), true, &ret_port->here);
    return ok ? 0
              : cli_usage("port-forward: \"%s\": must be PORT, HERE:THERE, or "
                          ":THERE for any port here; ports are 1 to 65535",
                          text);
}

static int listen_at(struct forward *f, struct port *port)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *to = NULL;
    char number[8];
    int on = 1;
    const char *address = f->c->set.address;
    (void)snprintf(number, sizeof number, "%u", port->here);
    if (getaddrinfo(address, number, &hints, &to))
        return cli_usage("--address: \"%s\": must be an IP address", address);
    port->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof own;
    bool ok = port->fd >= 0 &&
              setsockopt(port->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ==
                  0 &&
              bind(port->fd, to->ai_addr, to->ai_addrlen) == 0 &&
              listen(port->fd, CONNECTIONS_MAX) == 0 &&
              getsockname(port->fd, (struct sockaddr *)&own, &size) == 0;
    int e = errno;
    freeaddrinfo(to);
    if (!ok)
        return cli_fail("port-forward: %s port %u: %s", address, port->here,
                        strerror(e));
    port->here = ntohs(own.ss_family == AF_INET6
                           ? ((struct sockaddr_in6 *)&own)->sin6_port
                           : ((struct sockaddr_in *)&own)->sin_port);
    printf("%s:%u is port %u of %s\n", address, port->here, port->there,
           f->pod);
    (void)fflush(stdout); /* who waits for this line has it */
    return 0;
}

/* Nobody is to learn that there is no such pod when they connect. */
static int find_pod(struct cli *c, const char *pod)
{
    cleanup_str struct str path = STR_INIT(PATH_BYTES);
    cleanup_with(json) cJSON *json = NULL;
    str_add(&path, "/v1/pods/");
    cli_add_name(&path, pod);
    return cli_get(c, str_text(&path), &json);
}

int verb_port_forward(struct cli *c, int argc, char **argv)
{
    struct forward f = {.c = c, .pod = argv[0], .n = (size_t)argc - 1};
    struct pollfd p[PORTS_MAX];
    int rc = 0;
    /* one that closes in between is not to end the others */
    (void)signal(SIGPIPE, SIG_IGN);
    if (f.n > PORTS_MAX)
        return cli_usage("port-forward: %zu ports, at most %d allowed", f.n,
                         PORTS_MAX);
    for (size_t i = 0; rc == 0 && i < f.n; i++)
        rc = parse_port(argv[1 + i], &f.ports[i]);
    if (rc == 0)
        rc = find_pod(c, f.pod);
    for (size_t i = 0; rc == 0 && i < f.n; i++) {
        rc = listen_at(&f, &f.ports[i]);
        p[i] = (struct pollfd){.fd = f.ports[i].fd, .events = POLLIN};
    }
    while (rc == 0) { /* until a signal ends us */
        if (poll(p, f.n, -1) < 0 && errno != EINTR)
            return cli_fail("poll: %s", strerror(errno));
        for (size_t i = 0; i < f.n; i++)
            if (p[i].revents)
                accept_one(&f, &f.ports[i]);
    }
    return rc;
}
