/* A client asks for a stream, and what becomes of its request. */
#include <sys/random.h>

#include "extender/relay/relay_private.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- a client's request, once it is known what becomes of it ---------------- */

/* The client's part is over, and nothing was joined. */
static void client_leaves(void *stream)
{
    struct relay_stream *s = stream;
    hold_lock(&s->relay->lock);
    s->asked = false;
    if (s->status == 200)
        s->result = "left";
    if (s->carried) {
        s->state = RELAY_LEAVING;
        relay_news_locked(s);
    }
    relay_drop_locked(s);
}

/* On the listener's thread. */
static void log_changed(void *stream)
{
    struct relay_stream *s = stream;
    atomic_store(&s->changed, true);
    relay_wake(s->relay);
}

static bool begin(struct relay_stream *s, struct httpd_request *rq)
{
    if (s->kind == RELAY_LOG) {
        httpd_content_type(rq, HTTPD_TEXT);
        httpd_set_header(rq, "Cache-Control", "no-store");
        httpd_set_header(rq, "X-Content-Type-Options", "nosniff");
        s->log = httpd_stream_begin(rq, RELAY_WAITS, log_changed, s);
        return s->log != NULL;
    }
    httpd_set_header(rq, "Sec-WebSocket-Accept", s->hello.accept);
    httpd_set_header(rq, "Sec-WebSocket-Protocol", s->hello.protocol);
    s->client_side = httpd_upgrade(rq, "websocket");
    return s->client_side != NULL;
}

/* Nobody else writes what it reads here once the request goes on. */
static void client_goes_on(struct httpd_request *rq, void *stream)
{
    struct relay_stream *s = stream;
    if (s->status != 200)
        httpd_fail(rq, s->status, "%s", s->failure);
    if (s->status != 200 || !begin(s, rq)) {
        client_leaves(s);
        return;
    }
    hold_lock(&s->relay->lock);
    s->asked = false;
    s->state = RELAY_JOINED;
    relay_news_locked(s);
}

/* --- a client asks ---------------------------------------------------------- */

static const char *query_get(const void *rq, const char *name, size_t n)
{
    return httpd_query_n(rq, name, n);
}

static bool read_hello(struct httpd_request *rq, enum relay_kind kind,
                       struct ws_hello *ret_hello)
{
    static const char *const terminals[] = {"v5.channel.k8s.io",
                                            "v4.channel.k8s.io", NULL};
    static const char *const ports[] = {"v4.channel.k8s.io", NULL};
    struct error err;
    if (kind == RELAY_LOG)
        return true;
    if (!httpd_upgrade_asked(rq, "websocket"))
        return false;
    const struct ws_ask ask = {
        .key = httpd_header(rq, "Sec-WebSocket-Key"),
        .version = httpd_header(rq, "Sec-WebSocket-Version"),
        .protocols = httpd_header(rq, "Sec-WebSocket-Protocol")};
    if (ws_hello_read(&ask, kind == RELAY_PORTFORWARD ? ports : terminals,
                      ret_hello, &err) == 0)
        return true;
    httpd_fail(rq, 400, "%s", err.text);
    return false;
}

static void make_id(char ret_id[RELAY_ID_SIZE])
{
    unsigned char random[RELAY_ID_BYTES];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        abort(); /* so few bytes are always there once booted */
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(ret_id + 2 * i, 3, "%02x", random[i]);
}

static bool read_want(struct httpd_request *rq, struct relay_stream *s)
{
    const struct relay_query query = {query_get, rq};
    struct error err;
    if (!httpd_query_only(rq, relay_want_params(s->kind)))
        return false;
    if (relay_want_read(s->kind, &query, &s->told_text, &err) == 0)
        return read_hello(rq, s->kind, &s->hello);
    httpd_fail(rq, 400, "%s", err.text);
    return false;
}

struct relay_stream *relay_open(struct relay *r, struct httpd_request *rq,
                                enum relay_kind kind)
{
    struct relay_stream *s = xcalloc(1, sizeof *s);
    s->relay = r;
    s->kind = kind;
    str_init(&s->told_text, RELAY_WANT_MAX);
    stream_way_init(&s->in);
    stream_way_init(&s->out);
    make_id(s->id);
    struct str *out = &s->told_text;
    jwrite_object(out, NULL);
    jwrite_text(out, "id", s->id);
    jwrite_text(out, "kind", relay_kind_name(kind));
    if (!read_want(rq, s)) {
        relay_close(s);
        return NULL;
    }
    if (s->hello.protocol)
        jwrite_text(out, "protocol", s->hello.protocol);
    return s;
}

/* The rest of what its node is told. */
static void set_pod(struct relay_stream *s, const struct relay_pod *pod)
{
    struct str *out = &s->told_text;
    s->node = xstrdup(pod->node);
    jwrite_text(out, "namespace", pod->namespace);
    jwrite_text(out, "name", pod->name);
    jwrite_text(out, "uid", pod->uid);
    jwrite_end_object(out);
}

static void format_since(int64_t since_ms, int64_t now_ms,
                         char ret_text[CLOCK_UTC_MAX])
{
    clock_format_utc(clock_wall_s() - (now_ms - since_ms) / 1000, ret_text);
}

/* Is its node there?  If not, the request was answered. */
static bool node_is_there_locked(struct relay *r, struct httpd_request *rq,
                                 const struct relay_pod *pod)
{
    int64_t now_ms = clock_ms();
    char since[CLOCK_UTC_MAX];
    struct relay_node *node = relay_node_find_locked(r, pod->node);
    if (node && node->rq && httpd_hung_up(node->rq)) {
        relay_node_tell_locked(node); /* nobody reads that answer */
        node->gone = true;
    } else if (pod->silent_since_ms < 0 && node && node->rq) {
        return true;
    }
    if (pod->silent_since_ms >= 0) {
        format_since(pod->silent_since_ms, now_ms, since);
        httpd_fail(rq, 503, "node %s is away since %s", pod->node, since);
    } else if (node) {
        if (!node->gone && now_ms - node->asked_ms <= RELAY_AWAY_MS)
            return true;
        format_since(node->asked_ms, now_ms, since);
        httpd_fail(rq, 503,
                   "node %s is away since %s: it asks for streams no more; see "
                   "the log of its biga-advertiser",
                   pod->node, since);
    } else {
        if (now_ms - r->started_ms <= RELAY_START_MS)
            return true;
        format_since(r->started_ms, now_ms, since);
        httpd_fail(rq, 503,
                   "node %s is away since %s, when this extender started, or "
                   "longer: it has not asked for streams; run its "
                   "biga-advertiser with --actuate",
                   pod->node, since);
    }
    return false;
}

/* Is there room for one more?  If not, the request was answered. */
static bool has_room_locked(struct relay *r, struct httpd_request *rq,
                            const char *node, uint64_t client)
{
    size_t of_node = 0, of_client = 0;
    for (const struct relay_stream *s = r->first; s; s = s->next) {
        of_node += strcmp(s->node, node) == 0;
        of_client += client != 0 && s->client == client;
    }
    if (r->quiet)
        httpd_fail(rq, 503, "the server is stopping");
    else if (r->n >= RELAY_STREAMS_MAX)
        httpd_fail(rq, 503, "there are %d streams already", RELAY_STREAMS_MAX);
    else if (of_node >= RELAY_NODE_MAX)
        httpd_fail(rq, 503, "node %s has %d streams already", node,
                   RELAY_NODE_MAX);
    else if (of_client >= RELAY_CLIENT_MAX)
        httpd_fail(rq, 429, "this token has %d streams already",
                   RELAY_CLIENT_MAX);
    else
        return true;
    return false;
}

static void append_locked(struct relay *r, struct relay_stream *s)
{
    s->prev = r->last;
    if (r->last)
        r->last->next = s;
    else
        r->first = s;
    r->last = s;
    r->n++;
}

void relay_ask(struct relay_stream *s, struct httpd_request *rq,
               const struct relay_pod *pod, uint64_t client)
{
    struct relay *r = s->relay;
    set_pod(s, pod);
    hold_lock(&r->lock);
    bool room = has_room_locked(r, rq, pod->node, client);
    if (!room || !node_is_there_locked(r, rq, pod)) {
        relay_count(r, s->kind, room ? "away" : "full");
        relay_close(s);
        return;
    }
    s->client = client;
    s->asked = true;
    s->rq = rq;
    s->due_ms = clock_ms() + RELAY_COME_MS;
    httpd_then(rq, client_goes_on, s);
    httpd_or_else(rq, client_leaves);
    httpd_suspend(rq);
    append_locked(r, s);
    relay_due_locked(r, s->due_ms);
    struct relay_node *node = relay_node_find_locked(r, pod->node);
    if (node)
        relay_node_tell_locked(node);
}
