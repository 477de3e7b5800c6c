#include "router/remote/remote_beat.h"

#include <errno.h>
#include <limits.h>

#include "lib/grpc/grpc_round.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"
#include "router/remote/remote_private.h"

enum {
    STACK = 128 << 10,
    PEEK_MORE = 16 << 10, /* bytes that a list may grow by */
};

/* A remote that is asked here. */
struct remote_member {
    struct remote_member *next;
    struct remote_beat *beat;
    struct remote *remote;
    struct str list; /* the request for its containers */
    bool under_way;  /* with what follows: */
    struct remote_asked asked;
    struct str reply;
};

/* The lock is taken before that of a remote. */
struct remote_beat {
    pthread_mutex_t lock;
    pthread_cond_t wake, ended; /* a call */
    bool stopping, turning;
    int64_t due_ms; /* it looks again then */
    struct remote_member *members;
    struct grpc_round *round; /* of the thread, but for its wake() */
    pthread_t thread;
};

/* --- what came of a call ----------------------------------------------------- */

/* More than such a list can be now: whether it is, the thread finds out. */
static bool is_changed(const struct remote_member *m, int e)
{
    return m->asked.verb == REMOTE_PEEK && e == -EMSGSIZE;
}

static void take(struct remote_member *m, int e, const struct error *err)
{
    struct remote *r = m->remote;
    struct remote_asked *a = &m->asked;
    hold_lock(&r->lock);
    r->asking = false;
    a->e = is_changed(m, e) ? 0 : e;
    a->sum = e == 0 ? remote_peek_sum(&m->reply) : ~r->view->sum;
    if (e < 0)
        a->err = *err;
    if (e == -ENOTCONN)
        r->own = true;
    else if (!r->stopping)
        remote_judge(r, a, clock_ms());
    remote_rouse(r, e < 0);
}

static void done(void *ctx, int e, const struct grpc_end *end,
                 const struct error *err)
{
    struct remote_member *m = ctx;
    struct remote_beat *b = m->beat;
    if (m->asked.verb == REMOTE_PROBE)
        e = remote_probe_judge(e, end);
    if (e < 0)
        grpc_reconnect(m->remote->grpc);
    take(m, e, err);
    str_fini(&m->reply);
    hold_lock(&b->lock);
    m->under_way = false;
    (void)pthread_cond_broadcast(&b->ended);
}

/* --- asking ------------------------------------------------------------------ */

/* With both locks. */
static int begin(struct remote_member *m, enum remote_verb verb, int64_t now)
{
    struct remote *r = m->remote;
    bool peek = verb == REMOTE_PEEK;
    size_t size = r->view->lists[1] ? r->view->lists[1]->size : 0;
    const struct proto_bytes request =
        peek ? (struct proto_bytes){str_text(&m->list), m->list.size}
             : remote_probe_request();
    m->reply = STR_INIT(2 * size + PEEK_MORE);
    m->reply.soft = true;
    const struct grpc_round_call call = {
        .method =
            method_get(peek ? METHOD_LIST_CONTAINERS : METHOD_VERSION)->path,
        .request = request.data,
        .size = request.size,
        .deadline_ms = (unsigned)health_deadline_ms(&r->health),
        .reply = &m->reply,
        .done = done,
        .ctx = m,
    };
    int e = grpc_round_add(m->beat->round, r->grpc, &call);
    if (e < 0)
        return e;
    remote_begin(r, &m->asked, verb, now);
    m->under_way = true;
    return 0;
}

/* One that is due, or nearly, is asked; when the next time is. */
static int64_t tend(struct remote_member *m, int64_t now)
{
    struct remote *r = m->remote;
    enum remote_verb verb;
    hold_lock(&r->lock);
    int64_t due = remote_beat_due(r, now, &verb);
    if (due <= now || (due != INT64_MAX && verb == REMOTE_PROBE &&
                       due - r->health.probe_ms * 2 / 5 <= now)) {
        r->own = begin(m, verb, now) < 0;
        due = INT64_MAX;
    }
    remote_rouse(r, false);
    return due;
}

static int64_t tend_all(struct remote_beat *b, int64_t now)
{
    int64_t first = INT64_MAX;
    for (struct remote_member *m = b->members; m; m = m->next) {
        int64_t due = tend(m, now);
        first = due < first ? due : first;
    }
    return first;
}

/* With the lock, which it gives away meanwhile. */
static void turn(struct remote_beat *b, int64_t ms)
{
    b->turning = true;
    (void)pthread_mutex_unlock(&b->lock);
    grpc_round_turn(b->round, ms < INT_MAX ? (unsigned)ms : INT_MAX);
    (void)pthread_mutex_lock(&b->lock);
    b->turning = false;
}

static void *run(void *beat)
{
    struct remote_beat *b = beat;
    thread_name("beat", NULL);
    (void)pthread_mutex_lock(&b->lock);
    while (!b->stopping) {
        int64_t now = clock_ms();
        b->due_ms = tend_all(b, now);
        if (grpc_round_count(b->round) > 0)
            turn(b, b->due_ms - now);
        else
            (void)clock_wait(&b->wake, &b->lock, b->due_ms);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* With the lock. */
static void wake(struct remote_beat *b)
{
    (void)pthread_cond_signal(&b->wake);
    if (b->turning)
        grpc_round_wake(b->round);
}

/* --- who is asked ------------------------------------------------------------- */

void remote_beat_join(struct remote_beat *b, struct remote *r)
{
    struct remote_member *m = xcalloc(1, sizeof *m);
    m->beat = b;
    m->remote = r;
    m->list = STR_INIT(CRI_TEXT_MAX * 8);
    remote_peek_request(r, &m->list);
    r->member = m;
    hold_lock(&b->lock);
    m->next = b->members;
    b->members = m;
}

void remote_beat_leave(struct remote *r)
{
    struct remote_member *m = r->member;
    if (!m)
        return;
    struct remote_beat *b = m->beat;
    struct remote_member **at = &b->members;
    (void)pthread_mutex_lock(&b->lock);
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    while (m->under_way)
        (void)pthread_cond_wait(&b->ended, &b->lock);
    (void)pthread_mutex_unlock(&b->lock);
    r->member = NULL;
    str_fini(&m->list);
    free(m);
}

void remote_beat_expect(struct remote_member *m, int64_t due_ms)
{
    struct remote_beat *b = m->beat;
    hold_lock(&b->lock);
    if (due_ms >= b->due_ms)
        return;
    b->due_ms = due_ms;
    wake(b);
}

/* --- begin and end ------------------------------------------------------------ */

static void beat_free(struct remote_beat *b)
{
    grpc_round_destroy(b->round);
    (void)pthread_cond_destroy(&b->wake);
    (void)pthread_cond_destroy(&b->ended);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

static int start(struct remote_beat *b)
{
    pthread_attr_t attr;
    (void)pthread_attr_init(&attr); /* cannot fail on Linux */
    (void)pthread_attr_setstacksize(&attr, STACK);
    int code = pthread_create(&b->thread, &attr, run, b);
    (void)pthread_attr_destroy(&attr);
    return -code;
}

int remote_beat_create(struct remote_beat **ret_beat, struct error *err)
{
    struct remote_beat *b = xcalloc(1, sizeof *b);
    (void)pthread_mutex_init(&b->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&b->wake);
    clock_wait_init(&b->ended);
    b->due_ms = INT64_MAX;
    b->round = grpc_round_create();
    if (!b->round || start(b) < 0) {
        beat_free(b);
        return error_set(err, EAGAIN, "no thread that asks remotes");
    }
    *ret_beat = b;
    return 0;
}

void remote_beat_destroy(struct remote_beat *b)
{
    if (!b)
        return;
    (void)pthread_mutex_lock(&b->lock);
    b->stopping = true;
    wake(b);
    (void)pthread_mutex_unlock(&b->lock);
    (void)pthread_join(b->thread, NULL);
    beat_free(b);
}
