/* One connection to the streaming server of this host's runtime: HTTP/1.1
 * upgraded to a WebSocket, where a message's first byte says of which channel
 * it is (v4.channel.k8s.io).
 *
 * That protocol cannot tell the end of the input, so input goes in lines of
 * base64, and an empty line ends it; see the script in rsh.c. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/base/put.h"
#include "cli/base/ws_client.h"
#include "cli/base/ws_status.h"
#include "cli/pod/rsh.h"
#include "lib/base/base64.h"
#include "lib/base/mem.h"

enum {
    CHANNEL_IN = 0,
    CHANNEL_OUT = 1,
    CHANNEL_ERR = 2,
    CHANNEL_END = 3,
    HEAD_MAX = 16 << 10,
    PIECE = 12 << 10,       /* of the input */
    WAITING_MAX = 64 << 10, /* bytes to be sent, above which no input is read */
    BUFFER_MAX = WS_MESSAGE_MAX + WS_HEAD_MAX + (64 << 10),
    PID_LINE_MAX = 16,
};

struct stream {
    const struct rsh_stream *of;
    int fd, signals;
    struct str in, out; /* what came, what is to be sent */
    bool upgraded, ended, input;
    char line[PID_LINE_MAX]; /* the first of the output: its process id */
    size_t line_size;
    long pid;    /* 0: not known yet */
    int pending; /* a signal that waits for it */
    int code;
};

int rsh_url_read(const char *url, struct rsh_url *ret_url, struct error *err)
{
    static const char *const hosts[] = {"http://127.0.0.1:", "http://[::1]:"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        size_t size = strlen(hosts[i]);
        char *end = NULL;
        if (strncmp(url, hosts[i], size) != 0 ||
            !isdigit((unsigned char)url[size]))
            continue;
        unsigned long port = strtoul(url + size, &end, 10);
        if (*end != '/' || port == 0 || port > UINT16_MAX)
            continue;
        *ret_url = (struct rsh_url){i == 1, (uint16_t)port, end};
        return 0;
    }
    const char *host = strstr(url, "://");
    size_t shown = host ? (size_t)(host + 3 - url) : 0;
    shown += strcspn(url + shown, "/"); /* behind it is a secret */
    return error_set(err, EINVAL,
                     "the runtime streams at %.*s, must be "
                     "http://127.0.0.1:PORT/… or http://[::1]:PORT/…: set "
                     "stream_server_address = \"127.0.0.1\" in this host's "
                     "containerd",
                     (int)(shown < 80 ? shown : 80), url);
}

static int dial(const struct rsh_url *url, int *ret_fd, struct error *err)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons(url->port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons(url->port),
                               .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(url->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC,
                    0);
    int r = fd < 0    ? -1
            : url->v6 ? connect(fd, (struct sockaddr *)&six, sizeof six)
                      : connect(fd, (struct sockaddr *)&four, sizeof four);
    if (r < 0) {
        int e = errno;
        if (fd >= 0)
            (void)close(fd); /* nothing was sent */
        return error_errno(err, e, "the runtime's streaming server, port %u",
                           url->port);
    }
    *ret_fd = fd;
    return 0;
}

/* The token in the path, which the runtime takes once, says who we are; that
 * it is the runtime is known from its port on loopback alone. */
static void ask_upgrade(struct stream *s, const struct rsh_url *url)
{
    str_addf(&s->out,
             "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nConnection: Upgrade\r\n"
             "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
             "Sec-WebSocket-Key: ",
             url->path, url->port);
    ws_client_add_key(&s->out);
    str_add(&s->out, "\r\n\r\n");
}

/* --- what comes ------------------------------------------------------------ */

static void tell_signal(struct stream *s, int signal)
{
    if (s->pid)
        s->of->signalled(s->of->ctx, signal, s->pid);
    else
        s->pending = signal;
}

/* The first line, up to its end; how many bytes of it these are. */
static int take_pid(struct stream *s, const char *data, size_t size,
                    size_t *ret_n, struct error *err)
{
    size_t n = 0;
    while (n < size && data[n] != '\n') {
        if (s->line_size + 1 == sizeof s->line ||
            !isdigit((unsigned char)data[n]))
            return error_set(err, EPROTO,
                             "the pod's shell did not say its process id "
                             "first");
        s->line[s->line_size++] = data[n++];
    }
    *ret_n = n + (n < size);
    if (n == size)
        return 0;
    s->pid = strtol(s->line, NULL, 10);
    if (s->pid <= 1)
        return error_set(err, EPROTO, "the pod's shell is process %ld", s->pid);
    if (s->pending)
        tell_signal(s, s->pending);
    return 0;
}

static int take_output(struct stream *s, int channel, const char *data,
                       size_t size, struct error *err)
{
    size_t n = 0;
    int r = channel == CHANNEL_OUT && !s->pid ? take_pid(s, data, size, &n, err)
                                              : 0;
    if (r < 0)
        return r;
    return channel == CHANNEL_OUT ? put_all(STDOUT_FILENO, data + n, size - n,
                                            "standard output", err)
                                  : put_all(STDERR_FILENO, data + n, size - n,
                                            "standard error", err);
}

static void send_frame(struct stream *s, enum ws_kind kind, const char *data,
                       size_t size)
{
    ws_client_add_frame(kind, data, size, &s->out);
}

static int take_message(struct stream *s, const struct ws_message *m,
                        struct error *err)
{
    int channel = m->size ? m->data[0] : -1;
    if (m->kind == WS_PING)
        send_frame(s, WS_PONG, m->data, m->size);
    if (m->kind == WS_CLOSE)
        return error_set(err, ECONNRESET,
                         "the runtime ended the stream without saying how the "
                         "command ended");
    if ((m->kind != WS_BINARY && m->kind != WS_TEXT) || channel < 0)
        return 0;
    if (channel == CHANNEL_OUT || channel == CHANNEL_ERR)
        return take_output(s, channel, m->data + 1, m->size - 1, err);
    if (channel != CHANNEL_END || m->size == 1) /* empty: it is there */
        return 0;
    s->ended = true;
    return ws_status_read(m->data + 1, m->size - 1, &s->code, err);
}

static int take_head(struct stream *s, struct error *err)
{
    const char *end = s->in.size ? memmem(s->in.data, s->in.size, "\r\n\r\n", 4)
                                 : NULL;
    if (!end && s->in.size < HEAD_MAX)
        return 0;
    if (!end || s->in.size < 13 || memcmp(s->in.data, "HTTP/1.1 101 ", 13) != 0)
        return error_set(
            err, EPROTO, "the runtime's streaming server refused: %.*s",
            (int)strcspn(str_text(&s->in), "\r\n"), str_text(&s->in));
    str_drop(&s->in, (size_t)(end - s->in.data) + 4);
    s->upgraded = true;
    return 0;
}

static int take_all(struct stream *s, struct error *err)
{
    size_t at = 0;
    int r = s->upgraded ? 0 : take_head(s, err);
    while (r == 0 && s->upgraded && !s->ended) {
        struct ws_message m;
        ssize_t n = ws_frame_read(str_text(&s->in) + at, s->in.size - at, &m,
                                  err);
        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        r = take_message(s, &m, err);
        at += (size_t)n;
    }
    if (at)
        str_drop(&s->in, at);
    return r;
}

/* --- the turns ------------------------------------------------------------- */

static int receive(struct stream *s, struct error *err)
{
    char block[32 << 10];
    ssize_t n = recv(s->fd, block, sizeof block, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return error_set(err, ECONNRESET,
                         "the runtime broke off the stream%s%s",
                         n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
    str_add_n(&s->in, block, (size_t)n);
    return take_all(s, err);
}

static int transmit(struct stream *s, struct error *err)
{
    ssize_t n = send(s->fd, s->out.data, s->out.size,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return error_errno(err, errno, "the runtime broke off the stream");
    if (s->out.overflow) /* more pings than it takes answers */
        return error_set(err, EPROTO,
                         "the runtime reads nothing of the stream");
    if (n > 0)
        str_drop(&s->out, (size_t)n);
    return 0;
}

/* The next line of base64; an empty one at the end. */
static void read_input(struct stream *s)
{
    char block[PIECE];
    cleanup_str struct str line = STR_INIT(2 * PIECE);
    ssize_t n = read(STDIN_FILENO, block, sizeof block);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    s->input = n > 0; /* one that cannot be read has ended */
    str_add_c(&line, CHANNEL_IN);
    if (n > 0)
        base64_add(&line, block, (size_t)n);
    str_add_c(&line, '\n');
    send_frame(s, WS_BINARY, str_text(&line), line.size);
}

static void read_signal(struct stream *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) == sizeof info)
        tell_signal(s, (int)info.ssi_signo);
}

static int turn(struct stream *s, struct error *err)
{
    bool waits = s->out.size < WAITING_MAX;
    struct pollfd p[] = {
        {.fd = s->fd, .events = (short)(POLLIN | (s->out.size ? POLLOUT : 0))},
        {.fd = s->signals, .events = POLLIN},
        {.fd = s->upgraded && s->input && waits ? STDIN_FILENO : -1,
         .events = POLLIN},
    };
    int r = 0;
    if (poll(p, ARRAY_LEN(p), -1) < 0)
        return errno == EINTR ? 0 : error_errno(err, errno, "poll");
    if (p[1].revents)
        read_signal(s);
    if (p[2].revents)
        read_input(s);
    if (p[0].revents & POLLOUT)
        r = transmit(s, err);
    if (r == 0 && p[0].revents & (POLLIN | POLLHUP | POLLERR))
        r = receive(s, err);
    return r;
}

static void add_passed(sigset_t *set)
{
    static const int passed[] = {SIGHUP,  SIGINT,  SIGQUIT,
                                 SIGTERM, SIGUSR1, SIGUSR2};
    (void)sigemptyset(set); /* fails for no set and no signal of these */
    for (size_t i = 0; i < ARRAY_LEN(passed); i++)
        (void)sigaddset(set, passed[i]);
}

void rsh_signals_hold(void)
{
    sigset_t set;
    add_passed(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* a set of ours */
}

int rsh_stream_run(const struct rsh_stream *of, int *ret_code,
                   struct error *err)
{
    struct rsh_url url;
    sigset_t set;
    struct stream s = {.of = of,
                       .fd = -1,
                       .input = of->input,
                       .in = STR_INIT(BUFFER_MAX),
                       .out = STR_INIT(BUFFER_MAX)};
    add_passed(&set);
    s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    int r = s.signals < 0 ? error_errno(err, errno, "signalfd")
                          : rsh_url_read(of->url, &url, err);
    if (r == 0)
        r = dial(&url, &s.fd, err);
    if (r == 0)
        ask_upgrade(&s, &url);
    while (r == 0 && !s.ended)
        r = turn(&s, err);
    if (s.fd >= 0)
        (void)close(s.fd); /* the command has ended, or the stream has */
    if (s.signals >= 0)
        (void)close(s.signals);
    str_fini(&s.in);
    str_fini(&s.out);
    if (r == 0)
        *ret_code = s.code;
    return r;
}
