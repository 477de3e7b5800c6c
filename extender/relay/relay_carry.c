/* The thread that carries the bytes of all streams. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "extender/app/app_metrics.h"
#include "extender/relay/relay_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    EVENTS = 64, /* taken at once */
    DRAINS = 16, /* reads of what nobody wants any more, in one turn */
};

/* What the thread has. */
struct carrier {
    struct relay *relay;
    struct relay_stream *first; /* by next_carried */
    char *scratch;              /* STREAM_WAY_MAX bytes */
    int64_t now_ms;
    bool quiet;
};

enum turn { TURN_WAITS, TURN_AGAIN, TURN_OVER };

static void watch(struct relay *r, struct httpd_upgraded *u)
{
    struct stream_conn *c = httpd_upgraded_conn(u);
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                            .data.ptr = c};
    /* where it fails there is no memory: its time-out, or the peer, ends it */
    (void)epoll_ctl(r->epoll, EPOLL_CTL_ADD, c->fd, &e);
    c->told = true; /* it may have bytes already */
}

static struct stream_conn *node_conn(struct relay_stream *s)
{
    return httpd_upgraded_conn(s->node_side);
}

/* --- the end ------------------------------------------------------------------ */

/* Bytes that are not read when a connection is closed would make of its end a
 * reset, which can outrun what was sent. */
static bool drain(struct carrier *c, struct stream_conn *from)
{
    ssize_t n = 1;
    for (int i = 0; i < DRAINS && n > 0; i++)
        n = stream_conn_read(from, c->scratch, STREAM_WAY_MAX);
    return n > 0 || n == -EAGAIN;
}

static void side_close(struct carrier *c, struct httpd_upgraded *u)
{
    struct stream_conn *conn = httpd_upgraded_conn(u);
    /* what is not taken at once is gone with it */
    (void)stream_conn_end(conn);
    (void)drain(c, conn);
    (void)epoll_ctl(c->relay->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
    httpd_upgraded_close(u);
}

static void count_bytes(struct relay_stream *s)
{
    static const char *const to_client = "to-client", *const to_node =
                                                          "to-node";
    struct metrics *m = s->relay->metrics;
    if (s->in.moved > s->counted_in)
        metrics_add(m, APP_STREAM_BYTES, &to_client,
                    s->in.moved - s->counted_in);
    if (s->out.moved > s->counted_out)
        metrics_add(m, APP_STREAM_BYTES, &to_node,
                    s->out.moved - s->counted_out);
    s->counted_in = s->in.moved;
    s->counted_out = s->out.moved;
}

/* Of what was not joined the client is told by relay_answer_locked(). */
static void stream_over(struct carrier *c, struct relay_stream *s)
{
    count_bytes(s);
    side_close(c, s->node_side);
    if (s->client_side)
        side_close(c, s->client_side);
    if (s->log && s->whole)
        httpd_stream_end(s->log);
    else if (s->log)
        httpd_stream_break(s->log);
    hold_lock(&s->relay->lock);
    s->carried = false;
    relay_drop_locked(s);
}

/* --- the node's first line ------------------------------------------------------ */

static void answer(struct relay_stream *s, unsigned status, const char *result,
                   const char *text)
{
    hold_lock(&s->relay->lock);
    s->seen = RELAY_ANSWERED;
    relay_answer_locked(s, status, result, "%s", text);
}

static enum turn fail(struct relay_stream *s, unsigned status,
                      const char *result, const char *text)
{
    cleanup_free char *failure = xasprintf("node %s: %s", s->node, text);
    answer(s, status, result, failure);
    return TURN_OVER;
}

/* All of it is there; what follows is the stream's. */
static enum turn take_line(struct relay_stream *s, size_t size)
{
    struct relay_line line;
    struct error err;
    if (relay_line_read(s->line, size, &line, &err) < 0) {
        (void)error_wrap(&err, "its first line");
        return fail(s, 502, "failed", err.text);
    }
    if (line.status != 200)
        return fail(s, line.status, "refused",
                    *line.error ? line.error : "it says no more");
    s->line_size -= size + 1;
    memmove(s->line, s->line + size + 1, s->line_size);
    s->until_ms = INT64_MAX;
    answer(s, 200, "joined", "");
    return TURN_WAITS;
}

static enum turn on_taken(struct carrier *c, struct relay_stream *s)
{
    for (;;) {
        char *end = memchr(s->line, '\n', s->line_size);
        if (end)
            return take_line(s, (size_t)(end - s->line));
        if (s->line_size == RELAY_LINE_MAX)
            return fail(s, 502, "failed", "its first line is too long");
        ssize_t n = stream_conn_read(node_conn(s), s->line + s->line_size,
                                     RELAY_LINE_MAX - s->line_size);
        if (n == -EAGAIN && c->now_ms >= s->until_ms)
            return fail(s, 504, "late", "it came, and does not say more");
        if (n == -EAGAIN)
            return TURN_WAITS;
        if (n <= 0)
            return fail(s, 502, "failed", "it came, and went without a word");
        s->line_size += (size_t)n;
    }
}

/* --- bytes both ways -------------------------------------------------------------- */

/* The client is gone; or the node, and all that it sent is delivered. */
static bool is_over(const struct relay_stream *s)
{
    return s->in.to_lost || s->out.from_lost ||
           (s->in.shut && (s->out.shut || s->in.from_lost));
}

/* A client that has hung up is not read while what it sent before waits: it has
 * some time from when the node took the last of that. */
static bool has_left(const struct relay_stream *s, bool moved)
{
    return httpd_upgraded_conn(s->client_side)->hung_up &&
           (moved || s->until_ms == INT64_MAX);
}

static enum turn on_pump(struct carrier *c, struct relay_stream *s)
{
    bool ended = s->in.ended || s->out.ended;
    struct stream_conn *client = httpd_upgraded_conn(s->client_side);
    const struct stream_way_ends out = {client, node_conn(s), NULL, NULL};
    const struct stream_way_ends in = {node_conn(s), client, NULL, NULL};
    bool done = stream_way_turn(&s->out, &out, c->scratch);
    done &= stream_way_turn(&s->in, &in, c->scratch);
    bool moved = s->out.moved > s->counted_out;
    count_bytes(s);
    if (is_over(s))
        return TURN_OVER;
    if ((s->until_ms == INT64_MAX && (s->in.ended || s->out.ended)) ||
        (!ended && has_left(s, moved)))
        s->until_ms = c->now_ms + RELAY_LINGER_MS;
    if (c->now_ms >= s->until_ms) {
        if (s->out.n > 0) /* an end behind that would not reach it */
            stream_conn_reset(node_conn(s));
        return TURN_OVER;
    }
    return done ? TURN_WAITS : TURN_AGAIN;
}

/* --- a log -------------------------------------------------------------------------- */

static enum turn on_log(struct carrier *c, struct relay_stream *s)
{
    for (int i = 0; i < STREAM_WAY_READS; i++) {
        size_t room = httpd_stream_room(s->log);
        if (httpd_stream_gone(s->log))
            return TURN_OVER;
        if (room == 0)
            return TURN_WAITS;
        ssize_t n = stream_conn_read(node_conn(s), c->scratch,
                                     room < STREAM_WAY_MAX ? room
                                                           : STREAM_WAY_MAX);
        if (n == -EAGAIN)
            return TURN_WAITS;
        s->whole = n == 0;
        if (n <= 0 || httpd_stream_write(s->log, c->scratch, (size_t)n) < 0)
            return TURN_OVER;
        s->in.moved += (uint64_t)n;
        count_bytes(s);
    }
    return TURN_AGAIN;
}

/* --- a turn of all -------------------------------------------------------------------- */

static enum turn begin(struct carrier *c, struct relay_stream *s)
{
    s->seen = RELAY_JOINED;
    if (s->client_side) {
        watch(c->relay, s->client_side);
        stream_way_put(&s->in, s->line, s->line_size);
    } else if (s->line_size > 0 &&
               httpd_stream_write(s->log, s->line, s->line_size) < 0) {
        return TURN_OVER;
    } else {
        s->in.moved += s->line_size;
    }
    return TURN_AGAIN;
}

static enum turn stream_turn(struct carrier *c, struct relay_stream *s)
{
    if (c->quiet && s->seen == RELAY_TAKEN)
        return fail(s, 503, "stopped", "the server is stopping");
    if (c->quiet && s->seen == RELAY_JOINED)
        return TURN_OVER;
    switch (s->seen) {
    case RELAY_TAKEN:
        return on_taken(c, s);
    case RELAY_JOINED:
        return s->log ? on_log(c, s) : on_pump(c, s);
    case RELAY_LEAVING:
        return TURN_OVER;
    default:
        return TURN_WAITS;
    }
}

/* Has anything happened to it? */
static bool is_due(struct carrier *c, struct relay_stream *s)
{
    struct stream_conn *node = node_conn(s);
    /* the client's side is its handler's until then */
    struct stream_conn *client = s->seen == RELAY_JOINED && s->client_side
                                     ? httpd_upgraded_conn(s->client_side)
                                     : NULL;
    bool due = s->again || c->quiet || node->told || (client && client->told) ||
               atomic_exchange(&s->changed, false) || c->now_ms >= s->until_ms;
    node->told = s->again = false;
    if (client)
        client->told = false;
    return due;
}

/* When the carrier has to look again: 0 at once. */
static int64_t turn_all(struct carrier *c)
{
    int64_t due_ms = INT64_MAX;
    c->now_ms = clock_ms();
    for (struct relay_stream **at = &c->first, *s; (s = *at);) {
        enum turn t = is_due(c, s) ? stream_turn(c, s) : TURN_WAITS;
        if (t == TURN_OVER) {
            *at = s->next_carried;
            stream_over(c, s);
            continue;
        }
        s->again = t == TURN_AGAIN;
        if (s->again)
            due_ms = 0;
        else if (s->until_ms < due_ms)
            due_ms = s->until_ms;
        at = &s->next_carried;
    }
    return due_ms;
}

/* A stream that others have done something to. */
static void take_news(struct carrier *c, struct relay_stream *s,
                      enum relay_state state)
{
    if (s->seen == RELAY_WANTED) { /* new here */
        s->seen = RELAY_TAKEN;
        s->until_ms = clock_ms() + RELAY_COME_MS;
        s->next_carried = c->first;
        c->first = s;
        watch(c->relay, s->node_side);
    }
    if (state == RELAY_JOINED && s->seen != RELAY_JOINED &&
        begin(c, s) == TURN_OVER)
        s->seen = RELAY_LEAVING;
    if (state == RELAY_LEAVING)
        s->seen = RELAY_LEAVING;
    s->again = true;
}

/* The next of those; NULL: there is none. */
static struct relay_stream *
next_news(struct carrier *c, enum relay_state *ret_state, bool *ret_goes_on)
{
    struct relay *r = c->relay;
    hold_lock(&r->lock);
    struct relay_stream *s;
    while ((s = r->news)) {
        r->news = s->next_news;
        s->in_news = false;
        *ret_state = s->state;
        if (s->carried)
            break;
        relay_drop_locked(s); /* it was given up meanwhile */
    }
    c->quiet = r->quiet;
    *ret_goes_on = !r->stopping || c->first;
    return s;
}

/* False: it is all over. */
static bool look(struct carrier *c)
{
    enum relay_state state = RELAY_WANTED;
    bool goes_on;
    for (struct relay_stream *s; (s = next_news(c, &state, &goes_on));)
        take_news(c, s, state);
    return goes_on;
}

static void wait_for_events(struct carrier *c, int64_t due_ms)
{
    struct relay *r = c->relay;
    struct epoll_event events[EVENTS];
    uint64_t count;
    if (due_ms > 0) {
        hold_lock(&r->lock);
        r->carrier_due_ms = due_ms;
        relay_due_locked(r, due_ms);
    }
    int n = epoll_wait(r->epoll, events, EVENTS, due_ms > 0 ? -1 : 0);
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr)
            stream_conn_happened(events[i].data.ptr, events[i].events);
        else
            (void)!read(r->wake, &count, sizeof count); /* there or not */
    }
}

void *relay_carrier_run(void *relay)
{
    struct carrier c = {.relay = relay, .scratch = xmalloc(STREAM_WAY_MAX)};
    thread_name("streams", NULL);
    while (look(&c))
        wait_for_events(&c, turn_all(&c));
    free(c.scratch);
    return NULL;
}
