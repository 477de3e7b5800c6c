/* One stream, from the client's request to its end. */
#include <inttypes.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/stream/stream_relay_private.h"

enum {
    DRAINS = 16, /* reads of what nobody wants any more, in one turn */
};

/* --- from begin to end ------------------------------------------------------------ */

struct stream *stream_join_create(struct stream_relay *r, int client)
{
    struct stream *s = xcalloc(1, sizeof *s);
    s->remote = STREAM_CONN_NONE;
    stream_conn_init(&s->client, client);
    str_init(&s->head, 2 * STREAM_HEAD_MAX);
    stream_way_init(&s->in);
    stream_way_init(&s->out);
    s->due_ms = clock_ms() + r->config.head_ms;
    if (stream_relay_watch(r, &s->client) == 0)
        return s;
    stream_join_destroy(r, s);
    return NULL;
}

/* What the ways have moved since the last time. */
static void count_bytes(struct stream_relay *r, struct stream *s)
{
    uint64_t moved = s->in.moved + s->out.moved;
    if (moved != s->moved)
        s->moved_ms = r->now_ms;
    s->moved = moved;
    atomic_fetch_add(&r->bytes_in, s->in.moved - s->counted_in);
    atomic_fetch_add(&r->bytes_out, s->out.moved - s->counted_out);
    s->counted_in = s->in.moved;
    s->counted_out = s->out.moved;
}

static void log_end(const struct stream *s)
{
    char in[24], out[24];
    (void)snprintf(in, sizeof in, "%" PRIu64, s->in.moved);
    (void)snprintf(out, sizeof out, "%" PRIu64, s->out.moved);
    log_event(LOG_INFO, "stream-ended", "remote", s->plan->remote, "container",
              s->plan->container, "to-client", in, "to-remote", out, NULL);
}

void stream_join_destroy(struct stream_relay *r, struct stream *s)
{
    count_bytes(r, s);
    if (s->stage == STREAM_PUMP)
        log_end(s);
    stream_conn_fini(&s->client);
    stream_conn_fini(&s->remote);
    stream_way_fini(&s->in);
    stream_way_fini(&s->out);
    stream_plan_destroy(s->plan);
    str_fini(&s->head);
    free(s->cut);
    free(s);
}

void stream_join_log(const struct stream *s, const char *text)
{
    log_event(LOG_WARN, "stream-failed", "remote", s->plan->remote, "container",
              s->plan->container, "error", text, NULL);
}

/* An answer of our own instead of the remote's; the client is to close. */
enum stream_turn stream_join_tell(struct stream_relay *r, struct stream *s,
                                  int status, const char *text)
{
    cleanup_str struct str answer = STR_INIT(STREAM_REFUSAL_MAX);
    atomic_fetch_add(&r->refused, 1);
    if (s->plan)
        stream_join_log(s, text);
    stream_refusal_write(status, text, &answer);
    stream_conn_fini(&s->remote);
    stream_way_fini(&s->in);
    stream_way_fini(&s->out);
    stream_way_put(&s->in, answer.data, answer.size);
    s->in.ended = true;
    s->stage = STREAM_TELL;
    s->due_ms = r->now_ms + r->config.head_ms;
    return STREAM_ON;
}

/* --- bytes ------------------------------------------------------------------------------ */

/* It ended without a word of how: clients would take that for success. */
static void tell_broken(struct stream *s)
{
    cleanup_str struct str last = STR_INIT(STREAM_WORD_MAX);
    cleanup_free char *why = xasprintf(
        "%s ended the stream, not the program there", s->plan->remote);
    stream_join_log(s, why);
    stream_word_say(&s->word, why, &last);
    stream_way_put(&s->in, last.data, last.size);
}

static void saw(void *ctx, const void *data, size_t size)
{
    struct stream *s = ctx;
    if (size > 0)
        stream_word_pass(&s->word, data, size);
    else if (stream_word_is_owed(&s->word))
        tell_broken(s);
}

static bool turn_in(struct stream_relay *r, struct stream *s)
{
    const struct stream_way_ends ends = {&s->remote, &s->client, saw, s};
    return stream_way_turn(&s->in, &ends, r->scratch);
}

static bool turn_out(struct stream_relay *r, struct stream *s)
{
    const struct stream_way_ends ends = {&s->client, &s->remote, NULL, NULL};
    return stream_way_turn(&s->out, &ends, r->scratch);
}

/* The client is gone; or the remote, and all that it sent is delivered. */
static bool is_over(const struct stream *s)
{
    return s->in.to_lost || s->out.from_lost ||
           (s->in.shut && (s->out.shut || s->in.from_lost));
}

static enum stream_turn on_pump(struct stream_relay *r, struct stream *s)
{
    bool out = turn_out(r, s), in = turn_in(r, s);
    bool half = s->in.ended || s->out.ended;
    count_bytes(r, s);
    s->due_ms = s->moved_ms + (half ? r->config.linger_ms : r->config.idle_ms);
    if (is_over(s))
        return STREAM_OVER;
    return in && out ? STREAM_WAITS : STREAM_AGAIN;
}

static enum stream_turn on_body(struct stream_relay *r, struct stream *s)
{
    if (!turn_in(r, s))
        return STREAM_AGAIN;
    if (s->in.to_lost)
        return STREAM_OVER;
    if (!s->in.shut)
        return STREAM_WAITS;
    stream_conn_fini(&s->remote);
    s->stage = STREAM_TELL;
    return STREAM_ON;
}

/* Bytes that are not read when a connection is closed would make of its end a
 * reset, which can outrun what was told. */
static bool drain(struct stream_relay *r, struct stream_conn *c)
{
    ssize_t n = 1;
    for (int i = 0; i < DRAINS && n > 0; i++)
        n = stream_conn_read(c, r->scratch, STREAM_WAY_MAX);
    return n > 0 || n == -EAGAIN;
}

static enum stream_turn on_tell(struct stream_relay *r, struct stream *s)
{
    if (!turn_in(r, s))
        return STREAM_AGAIN;
    if (s->in.to_lost || !drain(r, &s->client))
        return STREAM_OVER;
    return s->client.readable ? STREAM_AGAIN : STREAM_WAITS;
}

static enum stream_turn stage(struct stream_relay *r, struct stream *s)
{
    switch (s->stage) {
    case STREAM_PUMP:
        return on_pump(r, s);
    case STREAM_BODY:
        return on_body(r, s);
    case STREAM_TELL:
        return on_tell(r, s);
    default:
        return stream_ask_turn(r, s);
    }
}

bool stream_join_turn(struct stream_relay *r, struct stream *s)
{
    enum stream_turn t = STREAM_ON;
    while (t == STREAM_ON)
        t = stage(r, s);
    s->again = t == STREAM_AGAIN;
    return t != STREAM_OVER;
}

/* --- the end ------------------------------------------------------------------------------ */

bool stream_join_late(struct stream_relay *r, struct stream *s)
{
    struct error err;
    switch (s->stage) {
    case STREAM_HEAD:
        (void)stream_join_tell(r, s, 408,
                               "the request's head did not come in time");
        return stream_join_turn(r, s);
    case STREAM_DIAL:
    case STREAM_SHAKE:
    case STREAM_ASK:
    case STREAM_ANSWER:
        error_set(&err, ETIMEDOUT, "%s did not answer within %u ms",
                  s->plan->remote, r->config.answer_ms);
        (void)stream_join_tell(r, s, 504, err.text);
        return stream_join_turn(r, s);
    case STREAM_PUMP:
        stream_join_finish(r, s, "nothing was sent for too long");
        return false;
    default:
        return false;
    }
}

/* The last bytes, as far as they are taken now. */
static void say(struct stream *s, const char *why)
{
    cleanup_str struct str last = STR_INIT(STREAM_WORD_MAX);
    if (s->stage == STREAM_PUMP && stream_way_flush(&s->in, &s->client) &&
        !s->in.shut)
        stream_word_say(&s->word, why, &last);
    else if (s->stage < STREAM_PUMP)
        stream_refusal_write(503, why, &last);
    if (last.size > 0)
        (void)stream_conn_write(&s->client, last.data, last.size);
}

void stream_join_finish(struct stream_relay *r, struct stream *s,
                        const char *why)
{
    if (s->plan)
        stream_join_log(s, why);
    say(s, why);
    if (s->remote.fd >= 0)
        (void)stream_conn_end(&s->remote); /* gone with what it does not take */
    (void)stream_conn_end(&s->client);
    (void)drain(r, &s->client);
}
