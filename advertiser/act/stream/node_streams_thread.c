/* The thread that carries the bytes of all streams. */
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "advertiser/act/stream/node_streams_private.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

enum { EVENTS = 64 };

/* --- streams --------------------------------------------------------------- */

struct node_stream *node_stream_create(struct order *order)
{
    struct node_stream *n = xcalloc(1, sizeof *n);
    n->order = order;
    n->runtime = n->extender = STREAM_CONN_NONE;
    str_init(&n->out_runtime.bytes, OUT_MAX);
    str_init(&n->out_extender.bytes, OUT_MAX);
    str_init(&n->piece, ACT_LOG_MAX + OUT_MAX);
    str_init(&n->head, 2 * STREAM_HEAD_MAX);
    str_init(&n->early, STREAM_HEAD_MAX);
    n->due_ms = INT64_MAX;
    n->poll_ms = STREAMS_POLL_MIN_MS;
    return n;
}

void node_stream_destroy(struct node_stream *n)
{
    stream_conn_fini(&n->runtime);
    stream_conn_fini(&n->extender);
    stream_plan_destroy(n->to_runtime);
    stream_plan_destroy(n->to_extender);
    str_fini(&n->out_runtime.bytes);
    str_fini(&n->out_extender.bytes);
    str_fini(&n->piece);
    str_fini(&n->head);
    str_fini(&n->early);
    order_destroy(n->order);
    free(n);
}

void node_streams_wake(struct node_streams *s)
{
    const uint64_t one = 1;
    /* a counter that is full wakes as well */
    (void)!write(s->wake, &one, sizeof one);
}

int node_streams_watch(struct node_streams *s, struct stream_conn *c)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &event) < 0 ? -errno : 0;
}

/* --- what became of pods --------------------------------------------------- */

/* Why it cannot go on; NULL: it can.  A log may be read after its pod's end. */
static const char *end_of(struct node_streams *s, const struct node_stream *n,
                          struct act_place_status *place)
{
    const struct order *o = n->order;
    struct act_pod_status pod;
    if (o->kind != ORDER_LOG &&
        (actuator_find(s->a, o->namespace, o->name, &pod) < 0 ||
         (o->uid[0] && strcmp(pod.uid, o->uid) != 0) || pod.state == ACT_GONE))
        return "the pod has ended";
    if (n->place[0] && actuator_find_place(s->a, n->place, place) < 0)
        return "its card is not in this node any more";
    return NULL;
}

static void look_at(struct node_streams *s, struct node_stream *n)
{
    struct act_place_status place = {.health = ACT_READY};
    char text[ERROR_TEXT_MAX];
    const char *why = end_of(s, n, &place);
    if (!why && place.health == ACT_LOST) {
        (void)snprintf(text, sizeof text, "%s does not answer: %s", n->place,
                       place.reason);
        why = text;
    }
    if (why)
        node_stream_cut(n, why);
}

/* --- a turn of all --------------------------------------------------------- */

static void wait_for_events(struct node_streams *s, int64_t due_ms)
{
    struct epoll_event events[EVENTS];
    uint64_t count;
    int n = epoll_wait(s->epoll, events, EVENTS, clock_poll_ms(due_ms));
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr == &s->wake)
            (void)!read(s->wake, &count, sizeof count); /* there or not */
        else
            stream_conn_happened(events[i].data.ptr, events[i].events);
}

/* The streams of which a worker has no more than the log, oldest first. */
static size_t
take_list(struct node_streams *s,
          struct node_stream *ret_list[STREAMS_MAX + STREAMS_SPARE])
{
    size_t n = 0;
    hold_lock(&s->lock);
    for (size_t i = 0; i < s->n; i++) {
        struct node_stream *x = s->list[i];
        x->busy = x->working;
        if (!x->busy || x->stage != NODE_OPENING)
            ret_list[n++] = x;
    }
    return n;
}

static void drop(struct node_streams *s, struct node_stream *n)
{
    pthread_mutex_lock(&s->lock);
    size_t i = 0;
    while (s->list[i] != n)
        i++;
    s->n--;
    memmove(&s->list[i], &s->list[i + 1], (s->n - i) * sizeof *s->list);
    pthread_mutex_unlock(&s->lock);
    log_event(LOG_INFO, "stream-ended", "id", n->order->id, "namespace",
              n->order->namespace, "pod", n->order->name, "error", n->why.text,
              NULL);
    node_stream_destroy(n);
}

static int64_t turn_all(struct node_streams *s)
{
    struct node_stream *list[STREAMS_MAX + STREAMS_SPARE];
    size_t n = take_list(s, list);
    bool poked = atomic_exchange(&s->poked, false);
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        struct node_stream *x = list[i];
        bool failed = !x->busy && x->log_result < 0;
        if ((poked || failed) && x->status == 200)
            look_at(s, x);
        x->over = x->over || !node_stream_turn(s, x);
        if (x->over && !x->busy)
            drop(s, x);
        else if (x->over)
            stream_conn_fini(&x->extender);
        else if (x->again)
            due_ms = 0;
        else if (x->due_ms < due_ms)
            due_ms = x->due_ms;
    }
    return due_ms;
}

/* As far as it is taken at once. */
static void say_last(struct node_streams *s)
{
    struct node_stream *list[STREAMS_MAX + STREAMS_SPARE];
    size_t n = take_list(s, list);
    for (size_t i = 0; i < n; i++) {
        if (list[i]->over || list[i]->stage < NODE_PUMP)
            continue;
        node_stream_cut(list[i], "biga-advertiser is stopping");
        (void)node_stream_turn(s, list[i]); /* it goes now, one way or other */
        if (list[i]->broken && !list[i]->shut) /* there is no time to wait */
            stream_conn_reset(&list[i]->extender);
    }
}

void *node_streams_run(void *streams)
{
    struct node_streams *s = streams;
    thread_name("streams", NULL);
    while (!atomic_load(&s->stopping))
        wait_for_events(s, turn_all(s));
    say_last(s);
    return NULL;
}
