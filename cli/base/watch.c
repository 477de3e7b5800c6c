#include "cli/base/watch.h"

#include <signal.h>
#include <string.h>

#include "cli/base/say.h"
#include "lib/base/backoff.h"
#include "lib/http/sse.h"
#include "lib/io/clock.h"

enum {
    CONNECT_MS = 10000,
    SILENT_MS = 45000, /* the server says something each 15 s */
    UNTOLD_MS = 5000, /* so old is what is shown before it is looked at again */
    AGAIN_MIN_MS = 250,
    AGAIN_MAX_MS = 10000,
    SLEEP_MS = 100,
    POLL_MS = 2000,
};

struct watching {
    struct cli *cli;
    watch_f *again;
    void *ctx;
    bool untold;
    const struct watch_stream *stream; /* in place of these; or NULL */
    struct sse sse;
    int64_t looked_ms;
    struct backoff backoff;
    bool lost; /* and it was told */
    int rc;    /* of the last time */
};

/* Of signals; one watch at a time. */
static atomic_bool stop;

void watch_stop(void)
{
    atomic_store(&stop, true);
}

static void on_signal(int signal)
{
    (void)signal;
    watch_stop();
}

/* The first ends us well, the second as ever.  Calls that wait are
 * interrupted. */
static void take_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static int print(struct cli *c)
{
    size_t n = fwrite(str_text(&c->out), 1, c->out.size, stdout);
    bool written = n == c->out.size && fflush(stdout) == 0;
    str_reset(&c->out);
    return written ? 0 : cli_fail("standard output: %s", strerror(errno));
}

static int look(struct watching *w, const char *data)
{
    w->looked_ms = clock_ms();
    w->rc = w->stream ? w->stream->take(w->cli, w->stream->ctx, data)
                      : w->again(w->cli, w->ctx);
    if (w->rc == 0)
        w->rc = print(w->cli);
    return w->rc;
}

static bool on_event(void *ctx, const struct sse_event *event)
{
    struct watching *w = ctx;
    if (w->lost)
        fprintf(stderr, "biga: %s answers again\n", w->cli->set.server);
    w->lost = false;
    backoff_succeed(&w->backoff);
    return look(w, event->data) == 0 && !atomic_load(&stop);
}

static bool on_bytes(void *ctx, const char *data, size_t size)
{
    struct watching *w = ctx;
    int64_t looked_ms = w->looked_ms;
    if (!sse_feed(&w->sse, data, size))
        return false;
    return !w->untold || w->looked_ms != looked_ms ||
           clock_ms() - looked_ms < UNTOLD_MS || look(w, "") == 0;
}

/* Follow the changes for as long as that goes well: 0, or -errno; the answer's
 * status is c->status. */
static int follow(struct watching *w, struct http_answer *answer,
                  struct error *err)
{
    struct http_client *http;
    const struct http_follow f = {
        .take = on_bytes, .ctx = w, .silent_ms = SILENT_MS};
    cleanup_str struct str path = STR_INIT(8192);
    if (w->stream)
        w->stream->path(w->stream->ctx, &path);
    else
        str_add(&path, "/v1/changes");
    const struct http_request rq = {.method = "GET",
                                    .path = str_text(&path),
                                    .accept = "text/event-stream",
                                    .follow = &f};
    int r = cli_connect(w->cli, CONNECT_MS, &stop, &http, err);
    if (r < 0)
        return r;
    sse_init(&w->sse, on_event, w);
    r = http_send(http, &rq, answer, err);
    sse_fini(&w->sse);
    http_client_destroy(http);
    return r;
}

/* Will trying again not help? */
static bool is_final(long status)
{
    return status >= 400 && status < 500 && status != 408 && status != 429;
}

/* In parts, since a signal may come just before one. */
static void sleep_ms(int64_t ms)
{
    for (; ms > 0 && !atomic_load(&stop); ms -= SLEEP_MS)
        (void)nanosleep(&(struct timespec){.tv_nsec = SLEEP_MS * 1000000L},
                        NULL);
}

/* What the last look ended with, when it is more than a server that did not
 * answer just then. */
static int final_of(const struct watching *w)
{
    long status = w->cli->status;
    return (status >= 200 && status < 300) || is_final(status) ? w->rc : 0;
}

/* Once round: false when it is over, with w->rc. */
static bool go_on(struct watching *w)
{
    struct http_answer answer = {.body = STR_INIT(STR_MAX_DEFAULT)};
    struct error err = {0};
    w->rc = 0;
    int r = follow(w, &answer, &err);
    bool ended = atomic_load(&stop);
    if (ended)
        w->rc = 0;
    else if (w->rc)
        w->rc = final_of(w);
    else if (r == 0 && is_final(answer.status))
        w->rc = cli_fail_answer("server", &answer);
    ended = ended || w->rc;
    if (!ended && !w->lost)
        fprintf(stderr, "biga: lost %s: %s; trying again\n", w->cli->set.server,
                r < 0 ? err.text : "it ended the answer");
    w->lost = true;
    str_fini(&answer.body);
    if (!ended)
        sleep_ms(backoff_fail(&w->backoff));
    return !ended && !atomic_load(&stop);
}

static int run(struct watching *w)
{
    w->backoff = (struct backoff){.min_ms = AGAIN_MIN_MS,
                                  .max_ms = AGAIN_MAX_MS,
                                  .random = (uint64_t)clock_ns()};
    take_signals();
    /* what a stream's command has already found goes first */
    w->rc = w->again ? look(w, "") : print(w->cli);
    if (w->rc)
        return w->rc;
    while (go_on(w))
        ;
    return w->rc;
}

int watch_run(struct cli *c, watch_f *again, void *ctx, bool untold)
{
    struct watching w = {
        .cli = c, .again = again, .ctx = ctx, .untold = untold};
    return run(&w);
}

int watch_again(struct cli *c, watch_f *again, void *ctx)
{
    struct watching w = {.cli = c, .again = again, .ctx = ctx};
    take_signals();
    while (!atomic_load(&stop) && look(&w, "") == 0)
        sleep_ms(POLL_MS);
    return atomic_load(&stop) ? 0 : w.rc;
}

int watch_stream(struct cli *c, const struct watch_stream *stream)
{
    struct watching w = {.cli = c, .stream = stream};
    return run(&w);
}
