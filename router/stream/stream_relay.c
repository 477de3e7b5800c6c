#include "router/stream/stream_relay.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "router/stream/stream_relay_private.h"

enum {
    BACKLOG = 128,
    FILES_OWN = 6, /* listener, epoll, eventfd, spare; and two that come and go:
                    * a client that is refused, a file of certificates */
};

static struct stream_relay_config
config_of(const struct stream_relay_config *config)
{
    struct stream_relay_config c = *config;
    c.streams_max = c.streams_max ? c.streams_max : STREAM_RELAY_MAX;
    c.head_ms = c.head_ms ? c.head_ms : STREAM_HEAD_MS;
    c.answer_ms = c.answer_ms ? c.answer_ms : STREAM_ANSWER_MS;
    c.linger_ms = c.linger_ms ? c.linger_ms : STREAM_LINGER_MS;
    c.idle_ms = c.idle_ms ? c.idle_ms : STREAM_IDLE_MS;
    return c;
}

unsigned stream_relay_files(const struct stream_relay_config *config)
{
    return 2 * config_of(config).streams_max + STREAM_HEADS_MAX + FILES_OWN;
}

/* --- start and stop ----------------------------------------------------------- */

static void wake(struct stream_relay *r)
{
    const uint64_t one = 1;
    /* a counter that is full wakes as well */
    (void)!write(r->wake, &one, sizeof one);
}

static void relay_free(struct stream_relay *r)
{
    const int fds[] = {r->listener, r->epoll, r->wake, r->spare};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    stream_tokens_destroy(r->tickets);
    (void)pthread_mutex_destroy(&r->lock);
    free(r->list);
    free(r->scratch);
    free(r);
}
DEFINE_CLEANUP(relay, struct stream_relay *, relay_free)

static int listen_loopback(struct stream_relay *r)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof addr;
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         0);
    if (r->listener < 0 ||
        bind(r->listener, (struct sockaddr *)&addr, size) < 0 ||
        listen(r->listener, BACKLOG) < 0 ||
        getsockname(r->listener, (struct sockaddr *)&addr, &size) < 0)
        return -errno;
    r->port = ntohs(addr.sin_port);
    return 0;
}

static int watch_own(struct stream_relay *r, int *fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};
    return epoll_ctl(r->epoll, EPOLL_CTL_ADD, *fd, &event) < 0 ? -errno : 0;
}

static int open_files(struct stream_relay *r)
{
    int e = listen_loopback(r);
    if (e == 0 && (r->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
        e = -errno;
    if (e == 0 && (r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        e = -errno;
    if (e == 0 && (r->spare = eventfd(0, EFD_CLOEXEC)) < 0)
        e = -errno;
    if (e == 0)
        e = watch_own(r, &r->listener);
    return e == 0 ? watch_own(r, &r->wake) : e;
}

int stream_relay_start(const struct stream_relay_config *config,
                       struct stream_relay **ret_relay, struct error *err)
{
    if (config->streams_max > STREAM_RELAY_MOST)
        return error_set(err, EINVAL,
                         "%u streams at one time: at most %d are possible",
                         config->streams_max, STREAM_RELAY_MOST);
    cleanup_with(relay) struct stream_relay *r = xcalloc(1, sizeof *r);
    r->config = config_of(config);
    r->listener = r->epoll = r->wake = r->spare = -1;
    (void)pthread_mutex_init(&r->lock, NULL);
    r->tickets = stream_tokens_create(stream_plan_destroy);
    r->scratch = xmalloc(STREAM_WAY_MAX);
    int e = open_files(r);
    if (e == 0)
        e = -pthread_create(&r->thread, NULL, stream_relay_run, r);
    if (e < 0)
        return error_errno(err, -e, "cannot relay streams on 127.0.0.1");
    *ret_relay = steal(&r);
    return 0;
}

void stream_relay_stop(struct stream_relay *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_mutex_unlock(&r->lock);
    wake(r);
    (void)pthread_join(r->thread, NULL);
    relay_free(r);
}

/* --- to begin a stream ---------------------------------------------------------- */

int stream_relay_open(struct stream_relay *r,
                      const struct stream_plan_ask *what,
                      char ret_url[STREAM_OWN_URL_MAX], struct error *err)
{
    cleanup_with(stream_plan) struct stream_plan *plan = NULL;
    char ticket[STREAM_TOKEN_LEN + 1];
    int e = stream_plan_create(what, &plan, err);
    if (e < 0)
        return e;
    pthread_mutex_lock(&r->lock);
    e = stream_tokens_add(r->tickets, plan, ticket, err);
    pthread_mutex_unlock(&r->lock);
    if (e < 0)
        return e;
    (void)steal(&plan);
    (void)snprintf(ret_url, STREAM_OWN_URL_MAX, "http://127.0.0.1:%u/%s",
                   r->port, ticket);
    wake(r); /* it is to forget the ticket in time */
    return 0;
}

/* --- to end some ------------------------------------------------------------------ */

/* Either is NULL. */
struct wanted {
    const char *remote, *container;
};

static bool is_wanted(const void *value, const void *ctx)
{
    const struct stream_plan *plan = value;
    const struct wanted *w = ctx;
    return (w->remote && strcmp(plan->remote, w->remote) == 0) ||
           (w->container && strcmp(plan->container, w->container) == 0);
}

static void cut(struct stream_relay *r, const struct wanted *wanted,
                const char *why)
{
    pthread_mutex_lock(&r->lock);
    stream_tokens_revoke(r->tickets, is_wanted, wanted);
    for (size_t i = 0; i < r->n; i++) {
        struct stream *s = r->list[i];
        if (s->plan && !s->cut && is_wanted(s->plan, wanted))
            s->cut = xstrndup(why, STREAM_STATUS_TEXT);
    }
    pthread_mutex_unlock(&r->lock);
    wake(r);
}

void stream_relay_cut_remote(struct stream_relay *r, const char *remote,
                             const char *why)
{
    cut(r, &(struct wanted){.remote = remote}, why);
}

void stream_relay_cut_container(struct stream_relay *r, const char *container,
                                const char *why)
{
    cut(r, &(struct wanted){.container = container}, why);
}

void stream_relay_state(struct stream_relay *r,
                        struct stream_relay_state *ret_state)
{
    hold_lock(&r->lock);
    *ret_state = (struct stream_relay_state){
        .heads = (unsigned)r->n - r->n_planned,
        .streams = r->n_planned,
        .tickets = (unsigned)stream_tokens_n(r->tickets),
        .opened = atomic_load(&r->opened),
        .refused = atomic_load(&r->refused),
        .cut = atomic_load(&r->cut),
        .bytes_in = atomic_load(&r->bytes_in),
        .bytes_out = atomic_load(&r->bytes_out),
    };
}
