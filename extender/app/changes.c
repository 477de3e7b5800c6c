#include "extender/app/changes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/app/followers.h"
#include "lib/base/mem.h"
#include "lib/http/httpd_stream.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum { WAITING_MAX = 4096, EVENT_MAX = 128 };

struct client {
    struct httpd_stream *stream;
    uint64_t who;
};

struct changes {
    struct followers *followers;
    uint64_t (*version)(void *ctx);
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping;
    uint64_t told; /* the version that all clients know */
    int64_t told_ms;
    struct client clients[FOLLOWERS_MAX];
    size_t n;
};

static void event_write(char text[EVENT_MAX], uint64_t version)
{
    (void)snprintf(text, EVENT_MAX,
                   "event: change\nid: %" PRIu64 "\ndata: {\"version\":%" PRIu64
                   "}\n\n",
                   version, version);
}

/* Write `text` to all, or nothing (NULL).  Who has gone or does not take it is
 * let go; that never waits here, as the streams have no callback. */
static void tell_locked(struct changes *c, const char *text)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct httpd_stream *s = c->clients[i].stream;
        if (httpd_stream_gone(s) ||
            (text && httpd_stream_write(s, text, strlen(text)) < 0)) {
            httpd_stream_break(s);
            followers_leave(c->followers, c->clients[i].who);
        } else {
            c->clients[kept++] = c->clients[i];
        }
    }
    c->n = kept;
    if (text)
        c->told_ms = clock_ms();
}

static void look_locked(struct changes *c)
{
    uint64_t version = c->version(c->ctx);
    char text[EVENT_MAX];
    if (version != c->told) {
        event_write(text, version);
        c->told = version;
        tell_locked(c, text);
    } else {
        bool silent = clock_ms() - c->told_ms >= CHANGES_ALIVE_MS;
        tell_locked(c, silent ? ":\n\n" : NULL);
    }
}

static void *run(void *arg)
{
    struct changes *c = arg;
    thread_name("changes", NULL);
    hold_lock(&c->lock);
    while (!c->stopping) {
        if (c->n == 0) {
            (void)clock_wait(&c->wake, &c->lock, INT64_MAX);
            continue;
        }
        int64_t due_ms = clock_ms() + CHANGES_LOOK_MS;
        while (!c->stopping && clock_wait(&c->wake, &c->lock, due_ms))
            ; /* also when a client has come: it was told */
        if (!c->stopping)
            look_locked(c);
    }
    return NULL;
}

int changes_start(uint64_t (*version)(void *ctx), void *ctx,
                  struct followers *followers, struct changes **ret_changes,
                  struct error *err)
{
    struct changes *c = xcalloc(1, sizeof *c);
    c->followers = followers;
    c->version = version;
    c->ctx = ctx;
    (void)pthread_mutex_init(&c->lock, NULL);
    clock_wait_init(&c->wake);
    int r = pthread_create(&c->thread, NULL, run, c);
    if (r != 0) {
        (void)pthread_cond_destroy(&c->wake);
        (void)pthread_mutex_destroy(&c->lock);
        free(c);
        return error_errno(err, r, "cannot start the thread of changes");
    }
    *ret_changes = c;
    return 0;
}

void changes_quiesce(struct changes *c)
{
    if (!c)
        return;
    hold_lock(&c->lock);
    c->stopping = true;
    while (c->n > 0) {
        httpd_stream_end(c->clients[--c->n].stream);
        followers_leave(c->followers, c->clients[c->n].who);
    }
    clock_wake_all(&c->wake);
}

void changes_stop(struct changes *c)
{
    if (!c)
        return;
    changes_quiesce(c);
    (void)pthread_join(c->thread, NULL);
    (void)pthread_cond_destroy(&c->wake);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

/* --- a client ------------------------------------------------------------- */

/* Does it know this version? */
static bool has_seen(const struct httpd_request *rq, uint64_t version)
{
    const char *id = httpd_header(rq, "Last-Event-ID");
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, version);
    return id && strcmp(id, text) == 0;
}

void changes_follow(struct changes *c, struct httpd_request *rq,
                    uint64_t client)
{
    char text[EVENT_MAX] = ":\n\n";
    hold_lock(&c->lock);
    if (c->stopping || c->n == FOLLOWERS_MAX) {
        httpd_fail(rq, 503,
                   c->stopping ? "the server is stopping"
                               : "%d clients listen already",
                   FOLLOWERS_MAX);
        return;
    }
    if (!followers_enter(c->followers, rq, client))
        return;
    if (c->n == 0) { /* nobody had to be told of what was before */
        c->told = c->version(c->ctx);
        c->told_ms = clock_ms();
    }
    httpd_content_type(rq, "text/event-stream");
    httpd_set_header(rq, "Cache-Control", "no-store");
    struct httpd_stream *s = httpd_stream_begin(rq, WAITING_MAX, NULL, NULL);
    if (!s) {
        followers_leave(c->followers, client);
        return;
    }
    if (!has_seen(rq, c->told))
        event_write(text, c->told);
    (void)httpd_stream_write(s, text, strlen(text)); /* fits, or it is gone */
    c->clients[c->n++] = (struct client){s, client};
    clock_wake_one(&c->wake);
}
