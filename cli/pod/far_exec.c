/* biga exec and attach, by way of the extender. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "cli/base/put.h"
#include "cli/base/say.h"
#include "cli/base/ws_status.h"
#include "cli/pod/far.h"

/* Of v5.channel.k8s.io. */
#define PROTOCOL "v5.channel.k8s.io"
enum {
    CHANNEL_IN = 0,
    CHANNEL_OUT = 1,
    CHANNEL_ERR = 2,
    CHANNEL_END = 3,
    CHANNEL_SIZE = 4,
    CHANNEL_CLOSE = 255,
    PIECE = 32 << 10,
    PATH_MAX_BYTES = 64 << 10,
};

struct running {
    const struct far_command *of;
    struct pod_stream *stream;
    int signals; /* -1: none */
    bool input;  /* more may come */
    bool ended;
    int code;
};

/* --- our terminal ------------------------------------------------------------ */

static struct termios terminal; /* as it was */
static bool changed;

static void restore_terminal(void)
{
    if (changed)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal);
    changed = false;
}

/* As the command's own: nothing of what is typed is taken here. */
static int take_terminal(void)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &terminal) < 0)
        return cli_usage("--tty: standard input is no terminal");
    raw = terminal;
    cfmakeraw(&raw);
    (void)atexit(restore_terminal); /* also when we fail in between */
    changed = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    return 0;
}

static void send_size(struct running *r)
{
    struct winsize size;
    cleanup_str struct str text = STR_INIT(64);
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    str_addf(&text, "{\"Width\":%u,\"Height\":%u}", size.ws_col, size.ws_row);
    pod_stream_send(r->stream, CHANNEL_SIZE, text.data, text.size);
}

/* --- what comes and goes ------------------------------------------------------ */

static int take(void *ctx, int channel, const char *data, size_t size,
                struct error *err)
{
    struct running *r = ctx;
    if (channel == CHANNEL_OUT)
        return put_all(r->of->out, data, size, "standard output", err);
    if (channel == CHANNEL_ERR)
        return put_all(STDERR_FILENO, data, size, "standard error", err);
    if (channel != CHANNEL_END || size == 0)
        return 0;
    r->ended = true;
    return ws_status_read(data, size, &r->code, err);
}

static void read_input(struct running *r)
{
    char block[PIECE];
    const char end = CHANNEL_IN;
    ssize_t n = read(r->of->in, block, sizeof block);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        pod_stream_send(r->stream, CHANNEL_IN, block, (size_t)n);
        return;
    }
    r->input = false; /* one that cannot be read has ended */
    pod_stream_send(r->stream, CHANNEL_CLOSE, &end, 1);
}

static void read_signal(struct running *r)
{
    struct signalfd_siginfo info;
    if (read(r->signals, &info, sizeof info) == sizeof info)
        send_size(r);
}

static int turn(struct running *r, struct error *err)
{
    bool now, room = pod_stream_unsent(r->stream) < POD_STREAM_UNSENT_MAX;
    struct pollfd p[] = {
        pod_stream_poll(r->stream, &now),
        {.fd = r->signals, .events = POLLIN},
        {.fd = r->input && room ? r->of->in : -1, .events = POLLIN},
    };
    if (poll(p, 3, now ? 0 : -1) < 0)
        return errno == EINTR ? 0 : error_errno(err, errno, "poll");
    if (p[1].revents)
        read_signal(r);
    if (p[2].revents)
        read_input(r);
    return pod_stream_turn(r->stream, p[0].revents, take, r, err);
}

static int run(struct running *r, struct error *err)
{
    int rc = 0;
    while (rc == 0 && !r->ended)
        rc = turn(r, err);
    if (r->ended)
        return rc == -EPIPE ? 0 : rc; /* it ended after its status */
    return rc == -EPIPE ? error_set(err, ECONNRESET,
                                    "the stream ended, and how the command "
                                    "ended is not known")
                        : rc;
}

/* --- together ----------------------------------------------------------------- */

static int make_path(const struct cli *c, const char *pod,
                     const struct far_command *command, struct str *path)
{
    far_container_path(c, pod, command->argv ? "exec" : "attach", path);
    str_addf(path, "&stdin=%s&stdout=true&stderr=%s&tty=%s",
             command->input ? "true" : "false", command->tty ? "false" : "true",
             command->tty ? "true" : "false");
    for (size_t i = 0; command->argv && command->argv[i]; i++)
        cli_add_query(path, "command", command->argv[i]);
    return path->overflow
               ? cli_usage("exec: the command is over %d bytes", PATH_MAX_BYTES)
               : 0;
}

static int watch_size(struct running *r)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* a set of ours */
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signals < 0)
        return cli_fail("signalfd: %s", strerror(errno));
    int rc = take_terminal();
    if (rc == 0)
        send_size(r);
    return rc;
}

int far_command_run(struct cli *c, const char *pod,
                    const struct far_command *command)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_with(pod_stream) struct pod_stream *stream = NULL;
    struct running r = {.of = command, .signals = -1, .input = command->input};
    struct error err = {0};
    if (command->tty && !isatty(STDIN_FILENO)) /* before anything is begun */
        return cli_usage("--tty: standard input is no terminal");
    int rc = make_path(c, pod, command, &path);
    if (rc == 0)
        rc = pod_stream_open(c, str_text(&path), PROTOCOL, &stream, &c->status);
    r.stream = stream;
    if (rc == 0 && command->tty)
        rc = watch_size(&r);
    if (rc)
        return rc;
    rc = run(&r, &err);
    restore_terminal();
    if (r.signals >= 0)
        (void)close(r.signals);
    return rc < 0 ? cli_fail("%s: %s", pod, err.text) : r.code;
}
