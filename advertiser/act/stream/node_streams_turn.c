/* One stream, from when both of its sides are there to its end. */
#include <string.h>

#include "advertiser/act/stream/node_streams_private.h"
#include "lib/io/clock.h"

enum {
    READS = 4,                 /* in one turn, for others to have theirs */
    ARRIVED_MS = 10,           /* between looks whether all has arrived */
    KEPT = 4 * STREAMS_BUFFER, /* of a buffer that is empty */
};

/* --- bytes ----------------------------------------------------------------- */

static void node_out_drop(struct node_out *o)
{
    str_reset(&o->bytes);
    o->at = 0;
}

bool node_out_flush(struct node_out *o, struct stream_conn *to)
{
    while (node_out_left(o) > 0) {
        ssize_t n = stream_conn_write(to, o->bytes.data + o->at,
                                      node_out_left(o));
        if (n == -EAGAIN)
            return true;
        if (n <= 0)
            return false;
        o->at += (size_t)n;
    }
    if (o->bytes.cap > KEPT) {
        str_fini(&o->bytes);
        str_init(&o->bytes, OUT_MAX);
    }
    node_out_drop(o);
    return true;
}

static bool has_room(const struct node_out *o)
{
    return node_out_left(o) < STREAMS_BUFFER && o->at == 0;
}

/* --- the end --------------------------------------------------------------- */

void node_stream_cut(struct node_stream *n, const char *why)
{
    if (n->cut)
        return;
    (void)snprintf(n->cut_text, sizeof n->cut_text, "%s", why);
    n->cut = n->cut_text;
}

/* The last bytes for the extender are there; it is to close. */
static enum node_turn finish(struct node_stream *n, const char *why)
{
    if (why)
        error_set(&n->why, EPIPE, "%s", why);
    if (n->order->kind == ORDER_LOG && why)
        str_addf(&n->out_extender.bytes, "biga: the log ends here: %s\n", why);
    else if (n->order->kind != ORDER_LOG)
        join_end(&n->join, why, &n->out_extender.bytes);
    stream_conn_fini(&n->runtime);
    node_stream_linger(n, n->order->kind == ORDER_LOG && why);
    return NODE_ON;
}

void node_stream_linger(struct node_stream *n, bool broken)
{
    n->stage = NODE_LINGER;
    n->broken = broken;
    n->due_ms = n->over_ms = clock_ms() + STREAMS_LINGER_MS;
}

/* The extender is told that no more comes, and of a log that was cut that this
 * was not all.  False: it is to be closed. */
static bool shut(struct node_stream *n)
{
    int r = n->broken ? stream_conn_break(&n->extender)
                      : stream_conn_end(&n->extender);
    n->shut = r != -EAGAIN;
    if (n->broken && !n->shut)
        n->due_ms = clock_ms() + ARRIVED_MS;
    return !n->broken || !n->shut || n->extender.session;
}

static enum node_turn on_linger(struct node_streams *s, struct node_stream *n)
{
    ssize_t got = 1;
    if (!node_out_flush(&n->out_extender, &n->extender))
        return NODE_OVER;
    if (node_out_left(&n->out_extender) == 0 && !n->shut && !shut(n))
        return NODE_OVER;
    /* unread bytes would make a reset of the end, which outruns the last word */
    for (int i = 0; i < READS && got > 0; i++)
        got = stream_conn_read(&n->extender, s->scratch, STREAMS_BUFFER);
    n->again = got > 0;
    return got == 0 || (got < 0 && got != -EAGAIN) ? NODE_OVER : NODE_WAITS;
}

/* --- exec, attach, port-forward -------------------------------------------- */

/* -EAGAIN: nothing now; 0: the end; else bytes, or -errno. */
static ssize_t from_runtime(struct node_streams *s, struct node_stream *n,
                            struct error *err)
{
    if (!has_room(&n->out_extender) || !has_room(&n->out_runtime))
        return -EAGAIN;
    ssize_t got = stream_conn_read(&n->runtime, s->scratch, STREAMS_BUFFER);
    if (got <= 0)
        return got;
    int r = join_from_runtime(&n->join, s->scratch, (size_t)got,
                              &n->out_runtime.bytes, &n->out_extender.bytes,
                              err);
    return r < 0 ? r : got;
}

static ssize_t from_client(struct node_streams *s, struct node_stream *n,
                           struct error *err)
{
    if (!join_reads_client(&n->join) || !has_room(&n->out_runtime) ||
        !has_room(&n->out_extender))
        return -EAGAIN;
    ssize_t got = stream_conn_read(&n->extender, s->scratch, STREAMS_BUFFER);
    if (got <= 0)
        return got;
    int r = join_from_client(&n->join, s->scratch, (size_t)got,
                             &n->out_runtime.bytes, &n->out_extender.bytes,
                             err);
    return r < 0 ? r : got;
}

/* The end of what a runtime sends: it has said how it ended, or not. */
static enum node_turn runtime_ended(struct node_stream *n,
                                    const struct error *err)
{
    cleanup_free char *why = NULL;
    if (err->text[0])
        why = xasprintf("%s: %s", n->to_runtime->remote, err->text);
    else if (n->order->kind != ORDER_FORWARD && !n->join.told)
        why = xasprintf("%s ended the stream, not the program there",
                        n->to_runtime->remote);
    return finish(n, why);
}

static enum node_turn on_pump(struct node_streams *s, struct node_stream *n)
{
    struct error err = {0};
    bool moved = false;
    for (int i = 0; i < READS; i++) {
        if (!node_out_flush(&n->out_extender, &n->extender))
            return NODE_OVER;
        if (!node_out_flush(&n->out_runtime, &n->runtime))
            node_out_drop(&n->out_runtime); /* its last words may be there */
        ssize_t up = from_runtime(s, n, &err);
        if (n->join.over || (up <= 0 && up != -EAGAIN))
            return runtime_ended(n, &err);
        ssize_t down = from_client(s, n, &err);
        if (down <= 0 && down != -EAGAIN)
            return down == -EPROTO ? finish(n, err.text) : NODE_OVER;
        moved |= up > 0 || down > 0;
        n->again = up > 0 || down > 0;
        if (!n->again)
            break;
    }
    int64_t soon_ms = clock_ms() + STREAMS_LINGER_MS;
    if (n->extender.hung_up && (moved || n->due_ms > soon_ms))
        n->due_ms = soon_ms; /* it is not read while its input waits */
    else if (moved && join_reads_client(&n->join))
        n->due_ms = clock_ms() + STREAMS_IDLE_MS;
    return node_out_flush(&n->out_extender, &n->extender) ? NODE_WAITS
                                                          : NODE_OVER;
}

/* --- logs ------------------------------------------------------------------ */

/* Can its pod write more? */
static bool goes_on(struct node_streams *s, const struct node_stream *n)
{
    struct act_pod_status pod;
    const struct order *o = n->order;
    return actuator_find(s->a, o->namespace, o->name, &pod) == 0 &&
           (!o->uid[0] || strcmp(pod.uid, o->uid) == 0) &&
           pod.state != ACT_GONE && pod.state != ACT_FAILED;
}

/* A card that does not answer may do so again, before it is lost. */
static bool is_patient(const struct node_stream *n)
{
    return n->order->follow &&
           (n->log_result == -EHOSTUNREACH || n->log_result == -EAGAIN ||
            n->log_result == -ETIMEDOUT);
}

/* Whoever does not follow gets what is there: one that writes faster than it is
 * read would never end.  (One short piece may be due to a long line.) */
static bool is_caught_up(const struct node_stream *n)
{
    return !n->order->follow && n->log_result == 0 && n->log.n_short > 1;
}

/* The last piece is taken: look again at once, later, or no more. */
static enum node_turn look_again(struct node_streams *s, struct node_stream *n)
{
    bool news = n->log_result == 0 && n->log.news;
    if (n->log_result == -ENOENT && n->log.began)
        return finish(n, NULL); /* its pod is gone by now */
    if (n->log_result < 0 && !is_patient(n))
        return finish(n, n->log_err.text);
    if (n->log.ended || is_caught_up(n) ||
        (!news && (!n->order->follow || n->log_last)))
        return finish(n, NULL);
    n->log_last = !news && n->order->follow && !goes_on(s, n);
    n->poll_ms = news ? STREAMS_POLL_MIN_MS : 2 * n->poll_ms;
    if (n->poll_ms > STREAMS_POLL_MAX_MS)
        n->poll_ms = STREAMS_POLL_MAX_MS;
    n->next_poll = news || n->log_last ? 0 : clock_ms() + n->poll_ms;
    n->looks = true;
    return NODE_ON;
}

static enum node_turn on_log(struct node_streams *s, struct node_stream *n)
{
    ssize_t got = stream_conn_read(&n->extender, s->scratch, STREAMS_BUFFER);
    if (got != -EAGAIN) /* it ends; a reader of a log sends nothing */
        return NODE_OVER;
    n->due_ms = INT64_MAX; /* until it has read, or the worker has */
    if (!n->busy && n->piece.size > 0 && has_room(&n->out_extender)) {
        str_add_n(&n->out_extender.bytes, n->piece.data, n->piece.size);
        str_fini(&n->piece);
        str_init(&n->piece, ACT_LOG_MAX);
    }
    if (!node_out_flush(&n->out_extender, &n->extender))
        return NODE_OVER;
    if (n->busy || node_out_left(&n->out_extender) > 0)
        return NODE_WAITS;
    if (!n->looks)
        return look_again(s, n);
    n->due_ms = n->next_poll;
    if (clock_ms() < n->next_poll)
        return NODE_WAITS;
    n->looks = false;
    n->due_ms = INT64_MAX;
    hold_lock(&s->lock);
    node_streams_post_locked(s, n);
    return NODE_WAITS;
}

/* --- a turn ---------------------------------------------------------------- */

static enum node_turn on_late(struct node_streams *s, struct node_stream *n)
{
    struct error err = {0};
    if (n->stage == NODE_LINGER && clock_ms() < n->over_ms)
        return NODE_ON;
    if (n->stage == NODE_LINGER &&
        (n->broken || node_out_left(&n->out_extender)))
        stream_conn_reset(&n->extender);
    if (n->stage == NODE_LINGER)
        return NODE_OVER;
    if (n->stage == NODE_PUMP)
        return n->order->kind == ORDER_LOG
                   ? NODE_ON
                   : finish(n, "nothing was sent for too long");
    error_set(&err, ETIMEDOUT, "%s did not answer within %d ms",
              n->asks_extender ? n->to_extender->remote : n->to_runtime->remote,
              STREAMS_ANSWER_MS);
    return node_stream_refuse(s, n, 504, &err);
}

static enum node_turn on_cut(struct node_streams *s, struct node_stream *n)
{
    struct error err = {0};
    if (n->stage == NODE_PUMP)
        return finish(n, n->cut);
    if (n->stage == NODE_LINGER || n->asks_extender)
        return NODE_ON; /* it is told when that one is there */
    error_set(&err, EHOSTUNREACH, "%s", n->cut);
    return node_stream_refuse(s, n, 503, &err);
}

static enum node_turn step(struct node_streams *s, struct node_stream *n)
{
    if (n->cut && !n->cut_done) {
        n->cut_done = n->stage == NODE_PUMP || !n->asks_extender;
        enum node_turn t = on_cut(s, n);
        if (t == NODE_OVER)
            return t;
    }
    switch (n->stage) {
    case NODE_OPENING:
        return n->status ? node_stream_begin(s, n) : NODE_OVER;
    case NODE_PUMP:
        return n->order->kind == ORDER_LOG ? on_log(s, n) : on_pump(s, n);
    case NODE_LINGER:
        return on_linger(s, n);
    default:
        return node_stream_ask(s, n);
    }
}

bool node_stream_turn(struct node_streams *s, struct node_stream *n)
{
    enum node_turn t = NODE_ON;
    n->again = false;
    if (n->stage != NODE_OPENING && clock_ms() >= n->due_ms)
        t = on_late(s, n);
    while (t == NODE_ON)
        t = step(s, n);
    return t != NODE_OVER;
}
