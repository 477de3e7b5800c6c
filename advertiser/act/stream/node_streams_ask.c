/* The beginning of a stream: the runtime's streaming server is asked for an
 * upgrade, then the extender. */
#include <string.h>

#include "advertiser/act/stream/node_streams_private.h"
#include "lib/base/jwrite.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

#define UPGRADE "biga-stream"
#define SPDY "SPDY/3.1"

static struct stream_conn *conn_of(struct node_stream *n)
{
    return n->asks_extender ? &n->extender : &n->runtime;
}

static const struct stream_plan *plan_of(const struct node_stream *n)
{
    return n->asks_extender ? n->to_extender : n->to_runtime;
}

static struct node_out *out_of(struct node_stream *n)
{
    return n->asks_extender ? &n->out_extender : &n->out_runtime;
}

/* --- heads ----------------------------------------------------------------- */

static void add_host(const struct stream_plan *plan, struct str *out)
{
    bool six = strchr(plan->host, ':') != NULL;
    str_addf(out, "Host: %s%s%s:%u\r\nConnection: Upgrade\r\n", six ? "[" : "",
             plan->host, six ? "]" : "", plan->url.port);
}

static void add_request(struct node_streams *s, struct node_stream *n)
{
    const struct stream_plan *plan = plan_of(n);
    struct str *out = &out_of(n)->bytes;
    size_t len = strlen(plan->url.target);
    const struct join_config forward = {.n_ports = n->order->n_ports};
    if (n->asks_extender) {
        while (len > 0 && plan->url.target[len - 1] == '/')
            len--;
        str_addf(out, "GET %.*s/v1/nodes/%s/streams/%s HTTP/1.1\r\n", (int)len,
                 plan->url.target, s->config.node, n->order->id);
        add_host(plan, out);
        str_add(out, "Upgrade: " UPGRADE "\r\n\r\n");
    } else {
        str_addf(out, "POST %s HTTP/1.1\r\n", plan->url.target);
        add_host(plan, out);
        str_addf(out,
                 "Upgrade: " SPDY "\r\nX-Stream-Protocol-Version: %s\r\n"
                 "Content-Length: 0\r\n\r\n",
                 join_protocol(&forward));
    }
}

/* What stands before all else on the stream to the extender. */
static void add_line(struct node_stream *n)
{
    struct str *out = &n->out_extender.bytes;
    jwrite_object(out, NULL);
    jwrite_int(out, "status", n->status);
    if (n->status != 200)
        jwrite_text(out, "error", n->why.text);
    str_add(out, "}\n");
}

/* --- stages ---------------------------------------------------------------- */

enum node_turn node_stream_refuse(struct node_streams *s, struct node_stream *n,
                                  int status, const struct error *why)
{
    n->status = status;
    n->why = *why;
    if (n->asks_extender) { /* there is nobody to tell */
        log_event(LOG_WARN, "stream-failed", "id", n->order->id, "error",
                  why->text, NULL);
        atomic_fetch_add(&s->failed, 1);
        return NODE_OVER;
    }
    stream_conn_fini(&n->runtime);
    return node_stream_begin(s, n);
}

static int dial(struct node_streams *s, struct node_stream *n)
{
    int e = stream_conn_dial(conn_of(n), &plan_of(n)->to[n->address]);
    return e < 0 ? e : node_streams_watch(s, conn_of(n));
}

/* Of a name that has several addresses another may answer. */
static enum node_turn dial_failed(struct node_streams *s, struct node_stream *n,
                                  int e)
{
    const struct stream_plan *plan = plan_of(n);
    struct error err = {0};
    while (++n->address < plan->n_to) {
        stream_conn_fini(conn_of(n));
        if (dial(s, n) == 0)
            return NODE_ON;
    }
    error_errno(&err, -e, "%s: cannot connect to port %u of %s", plan->remote,
                plan->url.port, plan->host);
    return node_stream_refuse(s, n, 502, &err);
}

enum node_turn node_stream_begin(struct node_streams *s, struct node_stream *n)
{
    n->asks_extender = n->status != 200 || n->order->kind == ORDER_LOG ||
                       n->runtime.fd >= 0;
    str_reset(&n->head);
    n->seen = n->address = 0;
    n->stage = NODE_DIAL;
    n->due_ms = clock_ms() + STREAMS_ANSWER_MS;
    int e = dial(s, n);
    return e < 0 ? dial_failed(s, n, e) : NODE_ON;
}

static enum node_turn on_dial(struct node_streams *s, struct node_stream *n)
{
    const struct stream_plan *plan = plan_of(n);
    struct error err = {0};
    int e = stream_conn_dialled(conn_of(n));
    if (e == -EAGAIN)
        return NODE_WAITS;
    if (e < 0)
        return dial_failed(s, n, e);
    if (plan->creds && stream_conn_tls(conn_of(n), plan->creds, &err) < 0)
        return node_stream_refuse(s, n, 502, &err);
    n->stage = plan->creds ? NODE_SHAKE : NODE_ASK;
    if (n->stage == NODE_ASK)
        add_request(s, n);
    return NODE_ON;
}

static enum node_turn on_shake(struct node_streams *s, struct node_stream *n)
{
    struct error err = {0};
    int e = stream_conn_shake(conn_of(n), &err);
    if (e == -EAGAIN)
        return NODE_WAITS;
    if (e < 0) {
        const struct stream_plan *plan = plan_of(n);
        error_wrap(&err, "%s: streams at port %u of %s", plan->remote,
                   plan->url.port, plan->host);
        return node_stream_refuse(s, n, 502, &err);
    }
    n->stage = NODE_ASK;
    add_request(s, n);
    return NODE_ON;
}

static enum node_turn lost(struct node_streams *s, struct node_stream *n)
{
    struct error err = {0};
    const char *last = conn_of(n)->last;
    error_set(&err, ECONNRESET,
              "%s broke off the connection before it answered%s%s",
              plan_of(n)->remote, last ? ": " : "", last ? last : "");
    return node_stream_refuse(s, n, 502, &err);
}

static enum node_turn on_ask(struct node_streams *s, struct node_stream *n)
{
    if (!node_out_flush(out_of(n), conn_of(n)))
        return lost(s, n);
    if (node_out_left(out_of(n)) > 0)
        return NODE_WAITS;
    n->stage = NODE_ANSWER;
    return NODE_ON;
}

/* The head of an answer: its end; 0: not yet; -errno, as lost, or -EMSGSIZE. */
static ssize_t read_head(struct node_streams *s, struct node_stream *n)
{
    for (;;) {
        size_t room = STREAM_HEAD_MAX - n->head.size;
        if (room == 0)
            return -EMSGSIZE;
        ssize_t got = stream_conn_read(conn_of(n), s->scratch, room);
        if (got <= 0)
            return got == -EAGAIN ? 0 : got == 0 ? -ECONNRESET : got;
        str_add_n(&n->head, s->scratch, (size_t)got);
        size_t end = stream_head_end(n->head.data, n->head.size, n->seen);
        n->seen = n->head.size;
        if (end > 0)
            return (ssize_t)end;
    }
}

/* Both sides are there. */
static enum node_turn go(struct node_streams *s, struct node_stream *n,
                         size_t end)
{
    const struct order *o = n->order;
    const struct join_config config = {
        .ports = o->ports,
        .n_ports = o->kind == ORDER_FORWARD ? o->n_ports : 0,
        .in = o->in,
        .out = o->out,
        .err = o->err,
        .tty = o->tty,
    };
    add_line(n);
    n->stage = NODE_PUMP;
    /* until the runtime has taken its streams, too */
    n->due_ms = clock_ms() + STREAMS_ANSWER_MS;
    if (n->status != 200)
        node_stream_linger(n, false);
    if (n->status != 200 || o->kind == ORDER_LOG)
        return NODE_ON;
    atomic_fetch_add(&s->begun, 1);
    join_init(&n->join, &config, &n->out_runtime.bytes, &n->out_extender.bytes);
    struct error err = {0};
    if (n->head.size > end) /* nobody waits for bytes before the line */
        node_stream_cut(n, "the extender sent bytes before it was asked to");
    else if (join_from_runtime(&n->join, str_text(&n->early), n->early.size,
                               &n->out_runtime.bytes, &n->out_extender.bytes,
                               &err) < 0)
        node_stream_cut(n, err.text);
    return NODE_ON;
}

static enum node_turn on_answer(struct node_streams *s, struct node_stream *n)
{
    struct stream_answer a;
    struct error err = {0};
    ssize_t end = read_head(s, n);
    if (end == 0)
        return NODE_WAITS;
    if (end == -EMSGSIZE)
        error_set(&err, EMSGSIZE, "%s: the head of its answer is too long",
                  plan_of(n)->remote);
    else if (end < 0)
        return lost(s, n);
    else if (stream_answer_read(n->head.data, (size_t)end,
                                n->asks_extender ? UPGRADE : SPDY, &a,
                                &err) < 0)
        error_wrap(&err, "%s: streams", plan_of(n)->remote);
    else if (a.status != 101)
        error_set(&err, EREMOTEIO, "%s answered %d: %.*s", plan_of(n)->remote,
                  a.status, (int)a.head.lens[2], a.head.words[2]);
    if (err.text[0])
        return node_stream_refuse(s, n, 502, &err);
    if (n->asks_extender)
        return go(s, n, (size_t)end);
    str_add_n(&n->early, n->head.data + end, n->head.size - (size_t)end);
    return node_stream_begin(s, n);
}

enum node_turn node_stream_ask(struct node_streams *s, struct node_stream *n)
{
    switch (n->stage) {
    case NODE_DIAL:
        return on_dial(s, n);
    case NODE_SHAKE:
        return on_shake(s, n);
    case NODE_ASK:
        return on_ask(s, n);
    default:
        return on_answer(s, n);
    }
}
