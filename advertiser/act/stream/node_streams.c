#include "advertiser/act/stream/node_streams_private.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

enum {
    WAIT_S = 25,
    BACKOFF_MIN_MS = 500,
    BACKOFF_MAX_MS = 10000,
    QUIET_MS = 200, /* after an answer that has nothing new */
    SCRATCH = STREAMS_BUFFER,
};

/* --- orders ---------------------------------------------------------------- */

static bool was_seen(const struct node_streams *s, const char *id)
{
    size_t n = s->n_seen < SEEN_MAX ? s->n_seen : SEEN_MAX;
    for (size_t i = 0; i < n; i++)
        if (strcmp(s->seen[i], id) == 0)
            return true;
    return false;
}

static void take_order(struct node_streams *s, struct order *order)
{
    struct act_pod_status pod;
    struct node_stream *n = node_stream_create(order);
    if (actuator_find(s->a, order->namespace, order->name, &pod) == 0)
        (void)snprintf(n->place, sizeof n->place, "%s", pod.place);
    hold_lock(&s->lock);
    if (s->n == ARRAY_LEN(s->list)) { /* whoever asked hears that none came */
        node_stream_destroy(n);
        return;
    }
    n->refused = s->n >= STREAMS_MAX;
    s->list[s->n++] = n;
    node_streams_post_locked(s, n);
}

/* How many of them are new. */
static size_t take_orders(struct node_streams *s, struct orders *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct order *order = all->list[i];
        if (was_seen(s, order->id))
            continue;
        memcpy(s->seen[s->n_seen++ % SEEN_MAX], order->id, sizeof order->id);
        all->list[i] = NULL;
        take_order(s, order);
        n++;
    }
    return n;
}

/* --- asking ---------------------------------------------------------------- */

static int ask(struct node_streams *s, struct http_answer *a, size_t *ret_new,
               struct error *err)
{
    const struct node_streams_config *c = &s->config;
    cleanup_free char *path = xasprintf("/v1/nodes/%s/streams?wait=%u", c->node,
                                        c->wait_s);
    const struct http_request rq = {
        .method = "GET",
        .path = path,
        .timeout_ms = c->wait_s * 1000 + c->http.timeout_ms,
    };
    struct orders all = {.n = 0};
    int r = http_send(s->http, &rq, a, err);
    if (r == 0 && a->status != 200) {
        cleanup_str struct str why = STR_INIT(ERROR_TEXT_MAX / 2);
        if (a->status == 401 || a->status == 403)
            http_client_reconnect(s->http);
        http_answer_error(a, &why);
        r = error_set(err, EPROTO, "the extender answered %ld: %s", a->status,
                      str_text(&why));
    }
    if (r == 0)
        r = orders_read(str_text(&a->body), a->body.size, &all, err);
    if (r == 0)
        *ret_new = take_orders(s, &all);
    orders_fini(&all);
    return r;
}

/* An extender of before does not know the route: it is asked now and then. */
static int64_t failed(struct node_streams *s, const struct error *err)
{
    if (strcmp(err->text, s->last.text) != 0) {
        s->last = *err;
        log_event(LOG_WARN, "feed-failed", "node", s->config.node, "what",
                  "streams", "error", err->text, NULL);
    }
    return backoff_fail(&s->backoff);
}

static void pause_ms(struct node_streams *s, int64_t ms)
{
    int64_t due = clock_ms() + ms;
    hold_lock(&s->lock);
    while (!atomic_load(&s->stopping) &&
           clock_wait(&s->stop_wake, &s->lock, due))
        ;
}

static void *asker(void *streams)
{
    struct node_streams *s = streams;
    struct http_answer a = {.body = STR_INIT(ORDER_ANSWER_MAX)};
    thread_name("streams ask", NULL);
    while (!atomic_load(&s->stopping)) {
        struct error err = {0};
        size_t n = 0;
        int64_t began = clock_ms(), ms = 0;
        if (ask(s, &a, &n, &err) < 0) {
            ms = atomic_load(&s->stopping) ? 0 : failed(s, &err);
        } else {
            backoff_succeed(&s->backoff);
            s->last.text[0] = '\0';
            if (n == 0 && clock_ms() - began < QUIET_MS)
                ms = QUIET_MS;
        }
        if (ms > 0)
            pause_ms(s, ms);
    }
    str_fini(&a.body);
    return NULL;
}

/* --- from start to end ----------------------------------------------------- */

static void node_streams_free(struct node_streams *s)
{
    http_client_destroy(s->http);
    if (s->epoll >= 0)
        (void)close(s->epoll);
    if (s->wake >= 0)
        (void)close(s->wake);
    (void)pthread_cond_destroy(&s->stop_wake);
    (void)pthread_cond_destroy(&s->work_wake);
    (void)pthread_cond_destroy(&s->worker_gone);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->scratch);
    free(s);
}

static int open_files(struct node_streams *s, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &s->wake};
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->epoll < 0 || s->wake < 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &event) < 0)
        return error_errno(err, errno, "streams");
    return 0;
}

static void order_stop(struct node_streams *s)
{
    hold_lock(&s->lock);
    atomic_store(&s->stopping, true);
    pthread_cond_broadcast(&s->stop_wake);
    pthread_cond_broadcast(&s->work_wake);
}

static int start_threads(struct node_streams *s, struct error *err)
{
    int r = pthread_create(&s->thread, NULL, node_streams_run, s);
    if (r == 0) {
        r = pthread_create(&s->asker, NULL, asker, s);
        if (r == 0)
            return 0;
        order_stop(s);
        node_streams_wake(s);
        (void)pthread_join(s->thread, NULL); /* a thread of ours: joinable */
    }
    return error_errno(err, r, "cannot start a thread");
}

static void fill_config(struct node_streams *s,
                        const struct node_streams_config *config)
{
    struct node_streams_config *c = &s->config;
    *c = *config;
    c->wait_s = c->wait_s ? c->wait_s : WAIT_S;
    c->http.stop = &s->stopping;
    c->http.answer_max = ORDER_ANSWER_MAX;
    s->backoff = (struct backoff){
        .min_ms = c->backoff_min_ms ? c->backoff_min_ms : BACKOFF_MIN_MS,
        .max_ms = c->backoff_max_ms ? c->backoff_max_ms : BACKOFF_MAX_MS,
        .random = hash_bytes(c->node, strlen(c->node)) ^ (uint64_t)clock_ns(),
    };
}

int node_streams_start(struct actuator *a,
                       const struct node_streams_config *config,
                       struct node_streams **ret_streams, struct error *err)
{
    struct node_streams *s = xcalloc(1, sizeof *s);
    s->a = a;
    s->epoll = s->wake = -1;
    s->scratch = xmalloc(SCRATCH);
    (void)pthread_mutex_init(&s->lock, NULL);
    clock_wait_init(&s->stop_wake);
    clock_wait_init(&s->work_wake);
    clock_wait_init(&s->worker_gone);
    fill_config(s, config);
    int r = open_files(s, err);
    if (r == 0)
        r = http_client_open(&s->config.http, &s->http, err);
    if (r == 0)
        r = start_threads(s, err);
    if (r < 0) {
        node_streams_free(s);
        return r;
    }
    *ret_streams = s;
    return 0;
}

void node_streams_poke(struct node_streams *s)
{
    if (!s)
        return;
    atomic_store(&s->poked, true);
    node_streams_wake(s);
}

bool node_streams_stop(struct node_streams *s)
{
    if (!s)
        return true;
    order_stop(s);
    node_streams_wake(s);
    (void)pthread_join(s->asker, NULL); /* threads of ours: joinable */
    (void)pthread_join(s->thread, NULL);
    if (!node_streams_workers_stop(s))
        return false;
    for (size_t i = 0; i < s->n; i++)
        node_stream_destroy(s->list[i]);
    node_streams_free(s);
    return true;
}

void node_streams_state(struct node_streams *s,
                        struct node_streams_state *ret_state)
{
    hold_lock(&s->lock);
    *ret_state = (struct node_streams_state){
        (unsigned)s->n, atomic_load(&s->begun), atomic_load(&s->failed)};
}
