#include "advertiser/act/api/socket_private.h"
#include "lib/io/thread_name.h"

#include <inttypes.h>
#include <string.h>

enum { STACK_SIZE = 1 << 20 };

struct call *call_create(struct act_socket *s, void (*run)(struct call *c))
{
    struct call *c = xcalloc(1, sizeof *c);
    c->s = s;
    c->run = run;
    c->status = 200;
    str_init(&c->out, STR_MAX_DEFAULT);
    return c;
}

void call_destroy(struct call *c)
{
    arena_fini(&c->arena);
    str_fini(&c->out);
    free(c);
}

static void call_reply(struct call *c)
{
    struct httpd_request *rq = c->rq;
    if (c->result < 0) {
        httpd_fail(rq, socket_status(c->result), "%s", c->err.text);
    } else {
        str_move(httpd_reply(rq), &c->out);
        httpd_status(rq, c->status);
    }
    if (c->result == 0 && c->text) {
        char next[24], attempt[16];
        (void)snprintf(next, sizeof next, "%" PRIu64, c->next_offset);
        (void)snprintf(attempt, sizeof attempt, "%" PRIu32, c->next_attempt);
        httpd_content_type(rq, "text/plain"); /* bytes, as they are */
        httpd_set_header(rq, "Biga-Next", next);
        httpd_set_header(rq, "Biga-Attempt", attempt);
    }
    httpd_resume(rq);
}

static void *call_thread(void *arg)
{
    struct call *c = arg;
    struct act_socket *s = c->s;
    thread_name("socket call", NULL);
    c->run(c);
    pthread_mutex_lock(&s->lock);
    struct call **at = &s->calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    if (c->rq)
        call_reply(c);
    call_destroy(c);
    bool last = !s->calls;
    bool abandoned = last && s->abandoned;
    if (last)
        pthread_cond_signal(&s->idle);
    pthread_mutex_unlock(&s->lock);
    if (abandoned)
        socket_free(s);
    return NULL;
}

/* Detached; who stops counts the calls. */
static int thread_start(struct call *c)
{
    pthread_attr_t attr;
    pthread_t thread;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, STACK_SIZE);
    int r = pthread_create(&thread, &attr, call_thread, c);
    (void)pthread_attr_destroy(&attr);
    return -r;
}

/* Those that hold a large piece of a log take the memory of a host. */
static void narrow_locked(const struct act_socket *s, struct call *c)
{
    size_t n = 0;
    for (const struct call *o = s->calls; o; o = o->next)
        n += o->log.max > SOCKET_LOGS_MAX;
    if (n >= SOCKET_WIDE_MAX && c->log.max > SOCKET_LOGS_MAX)
        c->log.max = SOCKET_LOGS_MAX;
}

static bool has_room_locked(const struct act_socket *s, const char *lane)
{
    size_t n = 0, max = *lane ? SOCKET_CALLS_MAX : SOCKET_CHANGES_MAX;
    for (const struct call *c = s->calls; c; c = c->next)
        n += strcmp(c->lane, lane) == 0;
    return n < max;
}

void call_post(struct call *c, struct httpd_request *rq, const char *lane)
{
    struct act_socket *s = c->s;
    (void)snprintf(c->lane, sizeof c->lane, "%s", lane);
    pthread_mutex_lock(&s->lock);
    bool stopping = s->stopping;
    bool room = !stopping && has_room_locked(s, lane);
    narrow_locked(s, c);
    int r = room ? thread_start(c) : 0;
    /* the thread ends with the lock, which it does not get before all this is
     * done */
    if (room && r == 0) {
        c->rq = rq;
        c->next = s->calls;
        s->calls = c;
        httpd_suspend(rq);
        pthread_mutex_unlock(&s->lock);
        return;
    }
    pthread_mutex_unlock(&s->lock);
    call_destroy(c);
    if (stopping)
        httpd_fail(rq, 503, "the advertiser is stopping");
    else if (r < 0)
        httpd_fail(rq, 503, "cannot start a thread: %s", strerror(-r));
    else if (*lane)
        httpd_fail(rq, 503, "%s: %d calls are under way there, try again later",
                   lane, SOCKET_CALLS_MAX);
    else
        httpd_fail(rq, 503, "%d changes are under way, try again later",
                   SOCKET_CHANGES_MAX);
}
