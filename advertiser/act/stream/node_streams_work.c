/* What may wait: calls of runtimes, names that are looked up, files of keys,
 * logs.  Threads come when there is something to do, and go again. */
#include <errno.h>
#include <string.h>

#include "advertiser/act/stream/node_streams_private.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    IDLE_MS = 5000, /* then a worker ends */
    STOP_MS = 1000, /* a worker that waits for a card takes longer */
    STACK = 256 << 10,
};

/* --- what they do ---------------------------------------------------------- */

static int status_of(int result)
{
    switch (-result) {
    case EINVAL:
        return 400;
    case ENOENT:
        return 404;
    case ENOTSUP:
        return 501;
    case EHOSTUNREACH:
    case EAGAIN:
        return 503;
    case ETIMEDOUT:
        return 504;
    default:
        return 502;
    }
}

static int plan_runtime(struct node_stream *n, const struct act_stream *to,
                        struct error *err)
{
    char host[ACT_NAME_MAX + 1];
    const struct act_place *p = &to->place;
    card_host(p, host);
    bool here = !host[0]; /* a unix socket: of this host */
    const char *loopback = strncmp(to->url, "http://[::1]", 12) == 0
                               ? "::1"
                               : "127.0.0.1";
    const struct stream_plan_ask ask = {
        .remote = p->name,
        .container = n->order->name,
        .url = to->url,
        .host = here ? loopback : host,
        .ca = p->ca[0] ? p->ca : NULL,
        .cert = p->cert[0] ? p->cert : NULL,
        .key = p->key[0] ? p->key : NULL,
        .plaintext = p->plaintext || here,
    };
    return stream_plan_create(&ask, &n->to_runtime, err);
}

static int open_runtime(struct node_streams *s, struct node_stream *n,
                        struct error *err)
{
    const struct order *o = n->order;
    static const enum act_stream_kind kinds[] = {[ORDER_EXEC] = ACT_EXEC,
                                                 [ORDER_ATTACH] = ACT_ATTACH,
                                                 [ORDER_FORWARD] = ACT_FORWARD};
    const struct act_stream_ask ask = {
        .kind = kinds[o->kind],
        .namespace = o->namespace,
        .name = o->name,
        .uid = o->uid[0] ? o->uid : NULL,
        .container = o->container,
        .cmd = {.argv = o->argv,
                .n_argv = o->n_argv,
                .streams = {o->in, o->out, o->err, o->tty}},
        .ports = {o->ports, o->n_ports},
    };
    struct act_stream to;
    int r = actuator_stream(s->a, &ask, &to, err);
    return r < 0 ? r : plan_runtime(n, &to, err);
}

static void read_log(struct node_streams *s, struct node_stream *n)
{
    n->log_result = log_reader_next(&n->log, s->a, &n->piece, &n->log_err);
}

static int open_log(struct node_streams *s, struct node_stream *n,
                    struct error *err)
{
    const struct order *o = n->order;
    struct log_want want = o->log;
    const struct act_log_ask ask = {.namespace = o->namespace,
                                    .name = o->name,
                                    .uid = o->uid[0] ? o->uid : NULL,
                                    .container = o->container,
                                    .previous = o->previous};
    if (o->since_s >= 0)
        want.since_ns = clock_wall_ns() - o->since_s * 1000000000;
    log_reader_init(&n->log, &ask, &want);
    read_log(s, n);
    if (n->log_result < 0)
        *err = n->log_err;
    return n->log_result;
}

/* The listener may be named by a path, too. */
static int plan_extender(struct node_streams *s, struct node_stream *n,
                         struct error *err)
{
    const struct http_config *c = &s->config.http;
    struct stream_url url;
    int r = stream_url_parse(c->base, &url, err);
    if (r < 0)
        return r;
    const struct stream_plan_ask ask = {.remote = "the extender",
                                        .container = n->order->id,
                                        .url = c->base,
                                        .host = url.host,
                                        .ca = c->ca_file,
                                        .cert = c->cert_file,
                                        .key = c->key_file,
                                        .plaintext = true,
                                        .system_ca = !c->ca_file};
    return stream_plan_create(&ask, &n->to_extender, err);
}

static void open_one(struct node_streams *s, struct node_stream *n)
{
    const struct order *o = n->order;
    struct error err = {0}, lost = {0};
    int r = o->fault[0]            ? error_set(&err, EINVAL, "%s", o->fault)
            : o->kind == ORDER_LOG ? open_log(s, n, &err)
                                   : open_runtime(s, n, &err);
    n->status = r < 0 ? status_of(r) : 200;
    n->why = err;
    if (plan_extender(s, n, &lost) < 0) {
        n->status = 0; /* nobody to tell */
        n->why = lost;
    }
    n->opened = true;
}

/* --- the threads ----------------------------------------------------------- */

/* The first whose place has not its share of workers; lock held. */
static struct node_stream *take_job(struct node_streams *s)
{
    for (struct node_stream **at = &s->jobs; *at; at = &(*at)->next_job) {
        struct node_stream *n = *at;
        unsigned busy = 0;
        for (size_t i = 0; i < s->n; i++)
            busy += s->list[i]->at_work &&
                    strcmp(s->list[i]->place, n->place) == 0;
        if (busy >= STREAMS_LANE)
            continue;
        *at = n->next_job;
        n->at_work = true;
        return n;
    }
    return NULL;
}

static void work(struct node_streams *s, struct node_stream *n)
{
    pthread_mutex_unlock(&s->lock);
    if (n->opened)
        read_log(s, n);
    else
        open_one(s, n);
    pthread_mutex_lock(&s->lock);
    n->at_work = n->working = false;
    pthread_cond_broadcast(&s->work_wake); /* its place has room again */
    node_streams_wake(s);
}

static void *worker(void *streams)
{
    struct node_streams *s = streams;
    thread_name("streams work", NULL);
    pthread_mutex_lock(&s->lock);
    int64_t due = clock_ms() + IDLE_MS;
    while (!atomic_load(&s->stopping)) {
        struct node_stream *n = take_job(s);
        if (n) {
            work(s, n);
            due = clock_ms() + IDLE_MS;
            continue;
        }
        s->n_idle++;
        bool more = clock_wait(&s->work_wake, &s->lock, due);
        s->n_idle--;
        if (!more)
            break;
    }
    s->n_workers--;
    pthread_cond_broadcast(&s->worker_gone);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool start_worker(struct node_streams *s)
{
    pthread_t thread;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, STACK);
    bool ok = pthread_create(&thread, &attr, worker, s) == 0;
    (void)pthread_attr_destroy(&attr);
    return ok;
}

void node_streams_post_locked(struct node_streams *s, struct node_stream *n)
{
    struct node_stream **at = &s->jobs;
    unsigned n_jobs = 1;
    for (; *at; at = &(*at)->next_job)
        n_jobs++;
    *at = n;
    n->next_job = NULL;
    n->working = true;
    /* one more than needed at times: it goes again */
    if (n_jobs > s->n_idle && s->n_workers < STREAMS_WORKERS && start_worker(s))
        s->n_workers++;
    pthread_cond_signal(&s->work_wake);
}

bool node_streams_workers_stop(struct node_streams *s)
{
    int64_t due = clock_ms() + STOP_MS;
    hold_lock(&s->lock);
    while (s->n_workers > 0)
        if (!clock_wait(&s->worker_gone, &s->lock, due))
            break;
    return s->n_workers == 0;
}
