/* Events as they come: server-sent events. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/admit/access.h"
#include "extender/admit/sight.h"
#include "extender/app/followers.h"
#include "extender/history/history.h"
#include "extender/serve/routes_private.h"
#include "lib/http/httpd_stream.h"
#include "lib/io/clock.h"

enum {
    WAITING_MAX = 256 << 10, /* bytes, of a client that is slow */
    PAGE = 100,              /* events that are read at once */
    SILENT_MS = 14000,       /* then something is said that says nothing */
};

/* One client.  It is read for on the history's reading thread alone, whenever
 * there is news or room, and goes there when the client has gone. */
struct follow {
    struct history_question question; /* first */
    struct history_follower follower;
    struct history *history;
    struct httpd_stream *stream;
    struct history_query query;
    struct scope *scope; /* or NULL */
    struct followers *followers;
    uint64_t client;
    uint64_t last; /* event that was sent, or passed over */
    int64_t wrote_ms;
    bool full; /* the client is slow: wait for room */
    bool gone;

    pthread_mutex_t lock; /* guards what follows */
    bool asking, again;
};

/* Any thread.  When there is no room for the question, the next news asks. */
static void ask(struct follow *f)
{
    hold_lock(&f->lock);
    f->again = f->asking;
    if (!f->asking)
        f->asking = history_ask(f->history, &f->question) == 0;
}

static void on_news(struct history_follower *follower)
{
    ask((struct follow *)((char *)follower -
                          offsetof(struct follow, follower)));
}

static void on_changed(void *ctx)
{
    ask(ctx);
}

static void follow_free(struct follow *f)
{
    (void)pthread_mutex_destroy(&f->lock);
    scope_unref(f->scope);
    free(f);
}

/* Nobody calls it any more when this frees it. */
static void follow_end(struct follow *f, bool whole)
{
    followers_leave(f->followers, f->client);
    history_unfollow(f->history, &f->follower);
    if (whole)
        httpd_stream_end(f->stream);
    else
        httpd_stream_break(f->stream);
    follow_free(f);
}

static void send_event(void *ctx, const struct history_event *e)
{
    struct follow *f = ctx;
    cleanup_str struct str text = STR_INIT(65536);
    if (f->full || f->gone)
        return;
    str_addf(&text, "id: %" PRIu64 "\ndata:", e->seq);
    history_event_write(e, &text);
    str_add(&text, "\n\n");
    int r = httpd_stream_write(f->stream, text.data, text.size);
    f->full = r == -EAGAIN;
    f->gone = r == -EPIPE;
    if (r < 0 && r != -EMSGSIZE)
        return;
    f->last = e->seq;
    f->wrote_ms = clock_ms();
}

/* Proxies, and clients, take a connection for dead that is silent. */
static void send_comment(struct follow *f)
{
    static const char comment[] = ":\n\n";
    int64_t now_ms = clock_ms();
    if (f->full || f->gone || now_ms < f->wrote_ms + SILENT_MS)
        return;
    f->gone = httpd_stream_write(f->stream, comment, sizeof comment - 1) ==
              -EPIPE; /* one that is slow has enough to read */
    f->wrote_ms = now_ms;
}

/* One look, so that other questions have their turn: a month may lie between
 * two events that pass.  `*ret_more`: it is to be asked again, at once. */
static int send_new(struct follow *f, struct history_reader *r, bool *ret_more,
                    struct error *err)
{
    struct history_filter filter = history_query_filter(&f->query);
    uint64_t newest = history_state(f->history).newest, next = 0;
    filter.limit = PAGE;
    filter.after = f->last;
    f->full = false;
    int e = history_read_events(r, &filter, send_event, f, &next, err);
    *ret_more = e == 0 && next && !f->full && !f->gone;
    if (*ret_more) /* up to there all was sent, or passed over */
        f->last = next;
    else if (e == 0 && !f->full && newest > f->last)
        f->last = newest;
    send_comment(f);
    return e;
}

static void answer(struct history_question *q, struct history_reader *r)
{
    struct follow *f = (struct follow *)q;
    bool more = false;
    int e = r ? send_new(f, r, &more, &q->error) : -q->error.code;
    if (e < 0 || f->gone || httpd_stream_gone(f->stream)) {
        follow_end(f, e == 0);
        return;
    }
    pthread_mutex_lock(&f->lock);
    f->asking = (f->again || more) && history_ask(f->history, q) == 0;
    f->again = false;
    pthread_mutex_unlock(&f->lock);
}

/* Behind the event that the client had last, from a time on, or from now on. */
static bool take_start(struct httpd_request *rq, struct app *app,
                       const struct history_query *query, uint64_t *ret_last)
{
    const char *last = httpd_header(rq, "Last-Event-ID");
    const struct history_query_texts t = {.after = last};
    struct history_query from;
    struct error err = {0};
    if (query->filter.newest_first || query->filter.until_ms) {
        httpd_fail(rq, 400,
                   "follow: has no end, so until and order=desc "
                   "cannot be combined with it");
        return false;
    }
    if (last && history_query_parse(&t, &from, &err) < 0) {
        httpd_fail(rq, 400, "Last-Event-ID: is \"%.40s\", must be a number",
                   last);
        return false;
    }
    uint64_t newest = history_state(app->history).newest;
    *ret_last = last ? from.filter.after
                : httpd_query(rq, "continue") || query->filter.since_ms
                    ? query->filter.after
                    : newest;
    if (last && newest && *ret_last > newest) /* of a file set aside since */
        *ret_last = newest;
    return true;
}

void follow_events(struct httpd_request *rq, struct app *app,
                   const struct history_query *query)
{
    struct follow *f = xcalloc(1, sizeof *f);
    f->question.answer = answer;
    f->question.apart = true; /* streams have a cap */
    f->follower.news = on_news;
    f->history = app->history;
    f->query = *query;
    f->scope = sight_scope(rq) ? scope_ref(sight_scope(rq)) : NULL;
    f->question.scope = f->scope;
    f->followers = app->followers;
    f->client = access_follower(rq, &app->listener);
    f->wrote_ms = clock_ms();
    (void)pthread_mutex_init(&f->lock, NULL); /* cannot fail on Linux */
    if (take_start(rq, app, query, &f->last) &&
        followers_enter(f->followers, rq, f->client)) {
        httpd_content_type(rq, "text/event-stream");
        httpd_set_header(rq, "Cache-Control", "no-cache");
        f->asking = true; /* `changed` may come before all is set */
        f->stream = httpd_stream_begin(rq, WAITING_MAX, on_changed, f);
        if (!f->stream)
            followers_leave(f->followers, f->client);
    }
    if (!f->stream) {
        follow_free(f);
        return;
    }
    history_follow(f->history, &f->follower);
    /* Until here nobody asks, and so nobody frees it; from here on the thread
     * that answers may, at once. */
    if (history_ask(f->history, &f->question) == 0)
        return;
    pthread_mutex_lock(&f->lock);
    f->asking = false; /* the next news asks */
    pthread_mutex_unlock(&f->lock);
}
