#include "lib/grpc/grpc_round.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/grpc/grpc_private.h"
#include "lib/io/clock.h"

struct call {
    struct call *next;
    struct grpc_task task;
    struct grpc_round_call what;
    bool begun;
};

struct grpc_round {
    int wake; /* an eventfd */
    struct call *calls;
    size_t n;
    bool news; /* one has ended */
};

struct grpc_round *grpc_round_create(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return NULL;
    struct grpc_round *r = xcalloc(1, sizeof *r);
    r->wake = fd;
    return r;
}

void grpc_round_destroy(struct grpc_round *r)
{
    if (!r)
        return;
    (void)close(r->wake);
    free(r);
}

void grpc_round_wake(struct grpc_round *r)
{
    (void)eventfd_write(r->wake, 1); /* fails when it is full: then it wakes */
}

size_t grpc_round_count(const struct grpc_round *r)
{
    return r->n;
}

/* --- one call ------------------------------------------------------------- */

static void set_round(struct grpc *g, struct grpc_round *round)
{
    hold_lock(&g->lock);
    g->round = round;
}

int grpc_round_add(struct grpc_round *r, struct grpc *g,
                   const struct grpc_round_call *call)
{
    if (!g->to.tls || !g->multi || !grpc_socket_is_open(g))
        return -ENOTCONN;
    if (call->size > GRPC_ROUND_REQUEST)
        return -EMSGSIZE;
    if (r->n == GRPC_ROUND_MAX)
        return -ENOSPC;
    struct call *c = xcalloc(1, sizeof *c);
    c->what = *call;
    c->task = (struct grpc_task){
        .g = g,
        .method = call->method,
        .request = call->request,
        .request_size = call->size,
        .deadline_ms = call->deadline_ms ? call->deadline_ms : 1,
        .brief = true,
    };
    grpc_task_reply(&c->task, call->reply);
    set_round(g, r);
    c->next = r->calls;
    r->calls = c;
    r->n++;
    return 0;
}

/* libcurl begins anew by itself when a connection that was kept ends before an
 * answer; it is refused that.  Where nothing was sent, the caller may. */
static int judge(struct call *c, CURLcode code, struct grpc_end *ret_end,
                 struct error *err)
{
    struct grpc_task *t = &c->task;
    bool unsent = t->sent == 0 && t->head.status == 0;
    bool refused = t->g->refused;
    bool stale = refused ? unsent : grpc_task_stale(t, code);
    t->g->refused = false;
    int e = grpc_transfer_judge(t, refused ? CURLE_SEND_FAIL_REWIND : code,
                                ret_end, err);
    if (!stale)
        return e;
    ret_end->unsent = true;
    return error_set(err, ENOTCONN, "%s: the connection has ended",
                     t->g->config.endpoint);
}

static void end(struct grpc_round *r, struct call *c, CURLcode code)
{
    struct grpc_end how;
    struct error err = {0};
    struct call **at = &r->calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    r->n--;
    r->news = true;
    if (c->begun)
        grpc_transfer_end(&c->task);
    set_round(c->task.g, NULL);
    int e = judge(c, code, &how, &err);
    c->what.done(c->what.ctx, e, &how, &err);
    free(c);
}

static CURLcode begin(struct call *c)
{
    struct grpc_task *t = &c->task;
    grpc_task_init(t);
    if (t->fault)
        return CURLE_ABORTED_BY_CALLBACK;
    c->begun = true;
    return grpc_transfer_begin(t);
}

/* What came for them meanwhile is not too late. */
static void spare(struct grpc_round *r, const struct call *but, int64_t ms)
{
    for (struct call *c = r->calls; c; c = c->next)
        if (c != but)
            c->task.due_ms += ms;
}

/* The time that it takes is its own, not that of the others. */
static void carry_on(struct grpc_round *r, struct call *c)
{
    int64_t from = clock_ms();
    CURLcode code = c->begun ? CURLE_OK : begin(c);
    bool goes = code == CURLE_OK && grpc_transfer_go_on(&c->task, &code);
    if (!goes)
        end(r, c, code);
    spare(r, goes ? c : NULL, clock_ms() - from);
}

/* How long it may be left alone. */
static int wait_ms(const struct call *c)
{
    long libcurl = -1;
    int ms = grpc_task_poll_ms(&c->task);
    (void)curl_multi_timeout(c->task.g->multi, &libcurl);
    return libcurl >= 0 && libcurl < ms ? (int)libcurl : ms;
}

/* A request is small: what libcurl has taken of it is sent. */
static struct pollfd poll_of(const struct call *c)
{
    const struct grpc_task *t = &c->task;
    struct pollfd fd = {.fd = grpc_socket_fd(t->g), .events = POLLIN};
    if (t->sent < t->request_size)
        fd.events |= POLLOUT;
    return fd;
}

/* --- all of them ---------------------------------------------------------- */

static void begin_all(struct grpc_round *r)
{
    for (struct call *c = r->calls, *next; c; c = next) {
        next = c->next;
        if (!c->begun)
            carry_on(r, c);
    }
}

static unsigned wait_of_all(const struct grpc_round *r, unsigned ms,
                            int ret_waits[GRPC_ROUND_MAX],
                            struct pollfd ret_fds[GRPC_ROUND_MAX + 1])
{
    size_t i = 0;
    for (const struct call *c = r->calls; c; c = c->next, i++) {
        ret_waits[i] = wait_ms(c);
        ret_fds[i] = poll_of(c);
        if ((unsigned)ret_waits[i] < ms)
            ms = (unsigned)ret_waits[i];
    }
    ret_fds[i] = (struct pollfd){.fd = r->wake, .events = POLLIN};
    return ms;
}

/* Was it woken? */
static bool woken(struct grpc_round *r)
{
    eventfd_t n;
    return eventfd_read(r->wake, &n) == 0;
}

void grpc_round_turn(struct grpc_round *r, unsigned ms)
{
    struct pollfd fds[GRPC_ROUND_MAX + 1];
    int waits[GRPC_ROUND_MAX];
    r->news = false;
    begin_all(r);
    if (r->news)
        return;
    unsigned wait = wait_of_all(r, ms, waits, fds);
    int n = poll(fds, r->n + 1, wait < INT_MAX ? (int)wait : INT_MAX);
    if (n < 0)
        return;                               /* a signal */
    bool all = fds[r->n].revents && woken(r); /* whoever ends one wakes all */
    unsigned gone = n == 0 ? wait : 0;
    size_t i = 0;
    for (struct call *c = r->calls, *next; c; c = next, i++) {
        next = c->next;
        if (all || fds[i].revents || (unsigned)waits[i] <= gone)
            carry_on(r, c);
    }
}
