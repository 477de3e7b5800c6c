#include "extender/relay/relay.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "extender/app/app_metrics.h"
#include "extender/relay/relay_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- the table ------------------------------------------------------------ */

void relay_count(struct relay *r, enum relay_kind kind, const char *result)
{
    const char *labels[METRICS_LABELS_MAX] = {relay_kind_name(kind), result};
    metrics_add(r->metrics, APP_STREAMS_TOTAL, labels, 1);
}

void relay_close(struct relay_stream *s)
{
    str_fini(&s->told_text);
    stream_way_fini(&s->in);
    stream_way_fini(&s->out);
    free(s->node);
    free(s);
}

void relay_drop_locked(struct relay_stream *s)
{
    struct relay *r = s->relay;
    if (s->asked || s->carried || s->in_news)
        return;
    if (s->prev)
        s->prev->next = s->next;
    else
        r->first = s->next;
    if (s->next)
        s->next->prev = s->prev;
    else
        r->last = s->prev;
    r->n--;
    relay_count(r, s->kind, s->result);
    relay_close(s);
}

void relay_wake(struct relay *r)
{
    const uint64_t one = 1;
    if (write(r->wake, &one, sizeof one) < 0)
        return; /* it is full, and wakes all the same */
}

void relay_news_locked(struct relay_stream *s)
{
    struct relay *r = s->relay;
    if (!s->in_news) {
        s->in_news = true;
        s->next_news = r->news;
        r->news = s;
    }
    relay_wake(r);
}

void relay_answer_locked(struct relay_stream *s, unsigned status,
                         const char *result, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(s->failure, sizeof s->failure, fmt, ap);
    va_end(ap);
    s->state = RELAY_ANSWERED;
    s->status = status;
    s->result = result;
    httpd_resume(s->rq);
}

/* --- start and stop ----------------------------------------------------------- */

static void relay_free(struct relay *r)
{
    if (r->epoll >= 0)
        (void)close(r->epoll);
    if (r->wake >= 0)
        (void)close(r->wake);
    (void)pthread_cond_destroy(&r->timing);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

int relay_start(struct metrics *metrics, struct relay **ret_relay,
                struct error *err)
{
    struct relay *r = xcalloc(1, sizeof *r);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    (void)pthread_mutex_init(&r->lock, NULL);
    clock_wait_init(&r->timing);
    r->metrics = metrics;
    r->started_ms = clock_ms();
    r->carrier_due_ms = INT64_MAX;
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = r->epoll < 0 || r->wake < 0 ||
                     epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->wake, &e) < 0
                 ? errno
                 : 0;
    if (rc == 0)
        rc = pthread_create(&r->carrier, NULL, relay_carrier_run, r);
    if (rc) {
        relay_free(r);
        return error_errno(err, rc, "cannot relay streams");
    }
    rc = pthread_create(&r->timer, NULL, relay_timer_run, r);
    if (rc) {
        r->quiet = r->stopping = true; /* nobody else knows of it */
        relay_wake(r);
        (void)pthread_join(r->carrier, NULL);
        relay_free(r);
        return error_errno(err, rc, "cannot start a thread");
    }
    *ret_relay = r;
    return 0;
}

static void node_free(void *node)
{
    struct relay_node *n = node;
    free(n->name);
    free(n);
}

void relay_quiesce(struct relay *r)
{
    if (!r)
        return;
    hold_lock(&r->lock);
    r->quiet = true;
    for (struct relay_stream *s = r->first; s; s = s->next)
        if (s->state == RELAY_WANTED)
            relay_answer_locked(s, 503, "stopped", "the server is stopping");
    size_t pos = 0;
    for (struct relay_node *n; (n = strmap_next(&r->nodes, &pos));)
        relay_node_tell_locked(n);
    relay_wake(r);
}

void relay_stop(struct relay *r)
{
    if (!r)
        return;
    relay_quiesce(r);
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    clock_wake_one(&r->timing);
    relay_wake(r);
    pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->timer, NULL);
    (void)pthread_join(r->carrier, NULL);
    strmap_fini_with(&r->nodes, node_free);
    relay_free(r);
}

void relay_gauge(struct relay *r)
{
    int64_t n[RELAY_KINDS] = {0};
    pthread_mutex_lock(&r->lock);
    for (const struct relay_stream *s = r->first; s; s = s->next)
        n[s->kind]++;
    pthread_mutex_unlock(&r->lock);
    for (unsigned i = 0; i < RELAY_KINDS; i++) {
        const char *kind = relay_kind_name((enum relay_kind)i);
        metrics_set(r->metrics, APP_STREAMS, &kind, n[i]);
    }
}
