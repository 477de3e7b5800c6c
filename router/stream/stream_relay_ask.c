/* The beginning of a stream: what the client asks, and the remote answers. */
#include <string.h>

#include "router/stream/stream_relay_private.h"

enum {
    BODY_MAX = 1 << 20, /* bytes of a refusal whose length is not told */
    /* a head with what came behind it */
    FIRST_MAX = 2 * STREAM_HEAD_MAX + STREAM_REFUSAL_MAX,
};
_Static_assert((int)FIRST_MAX <= (int)STREAM_WAY_MAX, "it has room there");
_Static_assert((int)STREAM_BUFFER_MAX == (int)STREAM_WAY_MAX, "as is said");

/* --- the client's request --------------------------------------------------------- */

/* More of a head into `s->head`.  Its end, 0: not yet; -errno: `c` is lost, or
 * -EMSGSIZE. */
static ssize_t read_head(struct stream_relay *r, struct stream *s,
                         struct stream_conn *c)
{
    for (;;) {
        size_t room = STREAM_HEAD_MAX - s->head.size;
        if (room == 0)
            return -EMSGSIZE;
        ssize_t n = stream_conn_read(c, r->scratch, room);
        if (n <= 0)
            return n == -EAGAIN ? 0 : n == 0 ? -ECONNRESET : n;
        str_add_n(&s->head, r->scratch, (size_t)n);
        size_t end = stream_head_end(s->head.data, s->head.size, s->seen);
        s->seen = s->head.size;
        if (end > 0)
            return (ssize_t)end;
    }
}

static int status_of(int code)
{
    switch (-code) {
    case EOPNOTSUPP:
        return 405;
    case EPROTONOSUPPORT:
        return 426;
    case EFBIG:
        return 413;
    case E2BIG:
    case EMSGSIZE:
        return 431;
    default:
        return 400;
    }
}

/* The plan of the request's ticket; else the status that says why not. */
static int take_plan(struct stream_relay *r, struct stream *s,
                     const struct stream_request *rq)
{
    hold_lock(&r->lock);
    if (r->n_planned >= r->config.streams_max)
        return 503;
    s->plan = stream_tokens_take(r->tickets, rq->token, rq->token_len);
    if (!s->plan)
        return 404;
    r->n_planned++;
    return 0;
}

static enum stream_turn dial(struct stream_relay *r, struct stream *s,
                             const struct stream_request *rq, size_t end)
{
    cleanup_str struct str ask = STR_INIT(2 * STREAM_HEAD_MAX);
    const struct stream_plan *plan = s->plan;
    struct error err;
    (void)snprintf(s->upgrade, sizeof s->upgrade, "%s", rq->upgrade);
    stream_request_write(rq, &plan->url, plan->host, &ask);
    stream_way_put(&s->out, s->head.data + end, s->head.size - end);
    str_reset(&s->head);
    str_move(&s->head, &ask);
    s->seen = 0;
    int e = stream_conn_dial(&s->remote, &plan->to[0]);
    if (e == 0)
        e = stream_relay_watch(r, &s->remote);
    if (e < 0) {
        error_errno(&err, -e, "%s: port %u of %s", plan->remote, plan->url.port,
                    plan->host);
        return stream_join_tell(r, s, 502, err.text);
    }
    s->stage = STREAM_DIAL;
    s->due_ms = r->now_ms + r->config.answer_ms;
    return STREAM_ON;
}

static enum stream_turn on_head(struct stream_relay *r, struct stream *s)
{
    struct stream_request rq;
    struct error err = {0};
    ssize_t end = read_head(r, s, &s->client);
    if (end == 0)
        return STREAM_WAITS;
    if (end == -EMSGSIZE) {
        error_set(&err, EMSGSIZE, "the request's head has more than %d bytes",
                  STREAM_HEAD_MAX);
        return stream_join_tell(r, s, 431, err.text);
    }
    if (end < 0)
        return STREAM_OVER;
    int e = stream_request_read(s->head.data, (size_t)end, &rq, &err);
    if (e < 0)
        return stream_join_tell(r, s, status_of(e), err.text);
    switch (take_plan(r, s, &rq)) {
    case 404:
        return stream_join_tell(
            r, s, 404,
            "there is no such stream: each URL is good once, and for "
            "a minute");
    case 503:
        error_set(&err, EBUSY, "%u streams are open, more are not allowed",
                  r->config.streams_max);
        return stream_join_tell(r, s, 503, err.text);
    }
    return dial(r, s, &rq, (size_t)end);
}

/* --- the remote's answer ------------------------------------------------------------ */

static enum stream_turn on_dial(struct stream_relay *r, struct stream *s)
{
    const struct stream_plan *plan = s->plan;
    struct error err;
    int e = stream_conn_dialled(&s->remote);
    if (e == -EAGAIN)
        return STREAM_WAITS;
    if (e < 0) {
        error_errno(&err, -e, "%s: cannot connect to port %u of %s",
                    plan->remote, plan->url.port, plan->host);
        return stream_join_tell(r, s, 502, err.text);
    }
    if (plan->creds && stream_conn_tls(&s->remote, plan->creds, &err) < 0)
        return stream_join_tell(r, s, 502, err.text);
    s->stage = plan->creds ? STREAM_SHAKE : STREAM_ASK;
    return STREAM_ON;
}

static enum stream_turn on_shake(struct stream_relay *r, struct stream *s)
{
    struct error err = {0};
    int e = stream_conn_shake(&s->remote, &err);
    if (e == -EAGAIN)
        return STREAM_WAITS;
    if (e < 0) {
        error_wrap(&err, "%s: streams at port %u of %s", s->plan->remote,
                   s->plan->url.port, s->plan->host);
        return stream_join_tell(r, s, 502, err.text);
    }
    s->stage = STREAM_ASK;
    return STREAM_ON;
}

static enum stream_turn lost(struct stream_relay *r, struct stream *s)
{
    struct error err;
    error_set(&err, ECONNRESET,
              "%s broke off the connection before it answered%s%s",
              s->plan->remote, s->remote.last ? ": " : "",
              s->remote.last ? s->remote.last : "");
    return stream_join_tell(r, s, 502, err.text);
}

static enum stream_turn on_ask(struct stream_relay *r, struct stream *s)
{
    while (s->seen < s->head.size) {
        ssize_t n = stream_conn_write(&s->remote, s->head.data + s->seen,
                                      s->head.size - s->seen);
        if (n == -EAGAIN)
            return STREAM_WAITS;
        if (n <= 0)
            return lost(r, s);
        s->seen += (size_t)n;
    }
    str_reset(&s->head);
    s->seen = 0;
    s->stage = STREAM_ANSWER;
    return STREAM_ON;
}

/* The answer's head, and what came behind it, for the client. */
static enum stream_turn pass_on(struct stream_relay *r, struct stream *s,
                                const struct stream_answer *a, size_t end)
{
    cleanup_str struct str first = STR_INIT(FIRST_MAX);
    const char *rest = s->head.data + end;
    size_t n = s->head.size - end;
    bool switched = a->status == 101;
    struct error err;
    if (!switched) {
        s->in.limit = a->length != UINT64_MAX ? a->length : BODY_MAX;
        n = n < s->in.limit ? n : (size_t)s->in.limit;
        s->in.limit -= n;
        error_set(&err, EREMOTEIO, "the remote answered %d", a->status);
        stream_join_log(s, err.text);
        atomic_fetch_add(&r->refused, 1);
    }
    stream_answer_write(a, s->upgrade, &first);
    str_add_n(&first, rest, n);
    stream_way_put(&s->in, first.data, first.size);
    stream_word_init(&s->word, s->upgrade, a->protocol);
    stream_word_pass(&s->word, rest, n);
    str_fini(&s->head);
    s->moved_ms = r->now_ms;
    s->stage = switched ? STREAM_PUMP : STREAM_BODY;
    if (switched) {
        s->due_ms = s->moved_ms + r->config.idle_ms;
        atomic_fetch_add(&r->opened, 1);
    }
    return STREAM_ON;
}

static enum stream_turn on_answer(struct stream_relay *r, struct stream *s)
{
    struct stream_answer a;
    struct error err = {0};
    ssize_t end = read_head(r, s, &s->remote);
    if (end == 0)
        return STREAM_WAITS;
    if (end == -EMSGSIZE)
        return stream_join_tell(r, s, 502,
                                "the head of the remote's answer is too long");
    if (end < 0)
        return lost(r, s);
    if (stream_answer_read(s->head.data, (size_t)end, s->upgrade, &a, &err) <
        0) {
        error_wrap(&err, "%s: streams", s->plan->remote);
        return stream_join_tell(r, s, 502, err.text);
    }
    return pass_on(r, s, &a, (size_t)end);
}

enum stream_turn stream_ask_turn(struct stream_relay *r, struct stream *s)
{
    if (s->stage != STREAM_HEAD && s->client.hung_up)
        return STREAM_OVER;
    switch (s->stage) {
    case STREAM_HEAD:
        return on_head(r, s);
    case STREAM_DIAL:
        return on_dial(r, s);
    case STREAM_SHAKE:
        return on_shake(r, s);
    case STREAM_ASK:
        return on_ask(r, s);
    default:
        return on_answer(r, s);
    }
}
