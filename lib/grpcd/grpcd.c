#include "lib/grpcd/grpcd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "lib/grpcd/grpcd_private.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    EVENTS = 64,
    LAST_WORDS_MS = 1000, /* for clients to take them, when the server stops */
};

static _Thread_local const struct grpcd *turning; /* on this thread */

bool grpcd_is_here(const struct grpcd *s)
{
    return turning == s;
}

void grpcd_wake(struct grpcd *s)
{
    const uint64_t one = 1;
    (void)!write(s->wake, &one, sizeof one); /* if it is full, it wakes too */
}

void grpcd_due(struct grpcd *s, int64_t ms)
{
    if (ms < s->due_ms)
        s->due_ms = ms;
}

/* --- the thread ------------------------------------------------------------- */

static void take_posted(struct grpcd *s)
{
    for (;;) {
        pthread_mutex_lock(&s->lock);
        struct grpcd_call *c = s->posted;
        if (c) {
            s->posted = c->next_posted;
            c->posted = false;
        }
        pthread_mutex_unlock(&s->lock);
        if (!c)
            return;
        grpcd_stream_posted(c);
    }
}

static void flush_dirty(struct grpcd *s)
{
    while (s->dirty) {
        struct grpcd_link *l = s->dirty;
        s->dirty = l->next_dirty;
        l->dirty = false;
        grpcd_link_flush(l);
    }
}

/* No more calls: who has connected already is told so. */
static void leave(struct grpcd *s, unsigned drain_ms)
{
    grpcd_accept(s);
    s->leaving = true;
    s->drained_ms = clock_ms() + drain_ms;
    grpcd_due(s, s->drained_ms);
    (void)grpcd_listener_watch(s, EPOLL_CTL_DEL, 0);
    unix_file_fini(&s->file);
    (void)close(s->fd);
    s->fd = -1;
    for (struct grpcd_link *l = s->first; l; l = l->next)
        grpcd_link_leave(l);
}

/* What is left has no more time; at the second time, not even to be told. */
static void force(struct grpcd *s)
{
    bool again = s->forced;
    s->forced = true;
    s->drained_ms += LAST_WORDS_MS;
    grpcd_due(s, s->drained_ms);
    for (struct grpcd_link *l = s->first; l; l = l->next) {
        for (struct grpcd_call *c = l->calls, *next; c && !again; c = next) {
            next = c->down.next;
            grpcd_leg_reset(&c->up, NGHTTP2_CANCEL);
            grpcd_reply_fail(c, GRPC_UNAVAILABLE, "the server stops");
            grpcd_stream_cancel(c, GRPC_UNAVAILABLE);
        }
        if (again)
            grpcd_link_end(l);
    }
}

static void tick(struct grpcd *s)
{
    int64_t now = clock_ms();
    if (now < s->due_ms)
        return;
    s->due_ms = INT64_MAX;
    for (struct grpcd_link *l = s->first; l; l = l->next)
        grpcd_link_tick(l, now);
    grpcd_accept_tick(s);
    if (s->leaving && now >= s->drained_ms)
        force(s);
    else if (s->leaving)
        grpcd_due(s, s->drained_ms);
}

static bool look_for_stop(struct grpcd *s)
{
    pthread_mutex_lock(&s->lock);
    bool stopping = s->stopping;
    unsigned drain_ms = s->drain_ms;
    pthread_mutex_unlock(&s->lock);
    if (stopping && !s->leaving) {
        leave(s, drain_ms);
        flush_dirty(s);
    }
    return stopping;
}

static void close_relays(struct grpcd *s)
{
    for (struct grpcd_relay *r = s->relays; r; r = r->next)
        for (struct grpcd_link *l = r->first; l; l = l->next)
            grpcd_link_end(l);
    flush_dirty(s);
}

static int wait_ms(const struct grpcd *s)
{
    if (s->due_ms == INT64_MAX)
        return -1;
    int64_t wait = s->due_ms - clock_ms();
    return wait <= 0 ? 0 : wait < 60000 ? (int)wait : 60000;
}

static void turn(struct grpcd *s)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(s->epoll, events, EVENTS, wait_ms(s));
    for (int i = 0; i < n; i++) {
        void *whose = events[i].data.ptr;
        uint64_t times;
        if (!whose)
            (void)!read(s->wake, &times, sizeof times);
        else if (whose == s)
            grpcd_accept(s);
        else
            grpcd_link_event(whose, events[i].events);
    }
    tick(s);
    take_posted(s);
    flush_dirty(s);
}

static void *run(void *arg)
{
    struct grpcd *s = arg;
    thread_name("grpc loop", NULL);
    turning = s;
    while (!look_for_stop(s) || s->first || s->n_calls > 0)
        turn(s);
    close_relays(s);
    return NULL;
}

/* --- starting and stopping --------------------------------------------------- */

static void complete(struct grpcd_config *c)
{
    c->connections = c->connections ? c->connections : GRPCD_CONNECTIONS;
    c->calls = c->calls ? c->calls : GRPCD_CALLS;
    c->brief_threads = c->brief_threads ? c->brief_threads
                                        : GRPCD_BRIEF_THREADS;
    c->long_threads = c->long_threads ? c->long_threads : GRPCD_LONG_THREADS;
    c->message_max = c->message_max ? c->message_max : GRPCD_MESSAGE_MAX;
    c->memory_max = c->memory_max ? c->memory_max : GRPCD_MEMORY;
}

int grpcd_create(const struct grpcd_config *config, struct grpcd **ret_server,
                 struct error *err)
{
    cleanup_with(grpcd) struct grpcd *s = xcalloc(1, sizeof *s);
    struct epoll_event e = {.events = EPOLLIN};
    s->config = *config;
    complete(&s->config);
    s->fd = -1;
    s->due_ms = INT64_MAX;
    (void)pthread_mutex_init(&s->lock, NULL);
    s->down_callbacks = grpcd_down_callbacks();
    s->up_callbacks = grpcd_up_callbacks();
    if (nghttp2_option_new(&s->option) != 0)
        abort(); /* out of memory, as x*alloc does */
    nghttp2_option_set_no_closed_streams(s->option, 1);
    nghttp2_option_set_no_auto_window_update(s->option, 1);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = unix_listen(config->path, config->take_over, &s->fd, &s->file, err);
    if (r == 0 && (s->epoll < 0 || s->wake < 0 ||
                   epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &e) < 0 ||
                   grpcd_listener_watch(s, EPOLL_CTL_ADD, EPOLLIN) < 0))
        r = error_errno(err, errno, "cannot wait for connections");
    s->config.path = s->file.path;
    if (r == 0)
        *ret_server = steal(&s);
    return r;
}

int grpcd_start(struct grpcd *s, struct error *err)
{
    grpcd_lanes_init(s);
    int r = pthread_create(&s->thread, NULL, run, s);
    s->running = r == 0;
    return r ? error_errno(err, r, "cannot start a thread") : 0;
}

void grpcd_stop(struct grpcd *s, unsigned drain_ms)
{
    if (!s->running)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    s->drain_ms = drain_ms;
    pthread_mutex_unlock(&s->lock);
    grpcd_wake(s);
    (void)pthread_join(s->thread, NULL);
    grpcd_lanes_join(s);
    s->running = false;
}

void grpcd_destroy(struct grpcd *s)
{
    if (!s)
        return;
    grpcd_stop(s, 0);
    while (s->relays) {
        struct grpcd_relay *r = s->relays;
        s->relays = r->next;
        grpcd_relay_free(r);
    }
    unix_file_fini(&s->file);
    const int fds[] = {s->fd, s->epoll, s->wake};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    nghttp2_option_del(s->option);
    nghttp2_session_callbacks_del(s->down_callbacks);
    nghttp2_session_callbacks_del(s->up_callbacks);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

void grpcd_stats(struct grpcd *s, struct grpcd_stats *ret_stats)
{
    *ret_stats = (struct grpcd_stats){
        .n_connections = atomic_load(&s->stat_links),
        .n_calls = atomic_load(&s->stat_calls),
        .held = atomic_load(&s->held),
        .n_routed = atomic_load(&s->n_routed),
        .n_ended = atomic_load(&s->n_ended),
        .n_not_accepted = atomic_load(&s->n_not_accepted),
    };
}
