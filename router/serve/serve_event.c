/* GetContainerEvents: the home's, and what is noticed of remotes. */
#include <errno.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/serve/serve_private.h"

enum { EVENT_CONTAINERS = 128 }; /* whose statuses go with one */

/* --- what is told -------------------------------------------------------------
 */

struct telling {
    struct far *far;
    struct knowing k;
    struct remote_view *view;
    struct str sandbox, containers[EVENT_CONTAINERS];
    struct proto_bytes list[EVENT_CONTAINERS];
    size_t n;
    bool lacks; /* one has no status yet: it would be taken for gone */
};

static void add_sandbox(struct telling *t, const char *id)
{
    const struct known_sandbox *s = t->k.known.sandbox(t->k.known.ctx, id);
    struct proto_bytes raw = remote_view_status(t->view, id);
    str_init(&t->sandbox, FROM_REMOTE_STATUS_MAX);
    t->sandbox.soft = true;
    if (s && raw.size &&
        from_remote_sandbox_status(raw, s, &t->k.known, &t->sandbox, NULL) < 0)
        str_reset(&t->sandbox);
}

static int write_container(struct telling *t, const char *id, struct str *out)
{
    const struct known_container *c = t->k.known.container(t->k.known.ctx, id);
    struct proto_bytes raw = remote_view_status(t->view, id);
    int e = c && raw.size ? from_remote_container_status(raw, c, out, NULL)
                          : -ENOENT;
    return e < 0 ? e : exits_show(t->far->s->exits, t->far, id, out);
}

static void add_container(struct telling *t, const char *id)
{
    struct str *out = &t->containers[t->n];
    str_init(out, FROM_REMOTE_STATUS_MAX);
    out->soft = true;
    if (write_container(t, id, out) < 0) {
        t->lacks = true;
        str_fini(out);
        return;
    }
    t->list[t->n++] = (struct proto_bytes){str_text(out), out->size};
}

static void add_containers(struct telling *t, const char *sandbox_id)
{
    size_t n = keep_view_count(t->k.view);
    for (size_t i = 0; i < n && !t->lacks; i++) {
        const struct kept *k = keep_view_at(t->k.view, i);
        if (k->kind != KEPT_CONTAINER || k->state != KEPT_MADE ||
            strcmp(k->sandbox_id, sandbox_id) != 0)
            continue;
        if (t->n == EVENT_CONTAINERS)
            t->lacks = true;
        else
            add_container(t, k->id);
    }
}

/* A kubelet may take it for the state of the pod at its time, and let it
 * replace what it knew before then: so it has the time of the lists. */
static int64_t time_of(const struct remote_view *v)
{
    int64_t ns = remote_view_wall_ns(v);
    return ns ? ns : clock_wall_ns();
}

static void put(struct far *far, const char *id, const char *sandbox_id,
                enum cri_event_kind kind)
{
    struct telling *t = xcalloc(1, sizeof *t);
    cleanup_str struct str out = STR_INIT(CRI_EVENT_MAX);
    out.soft = true;
    t->far = far;
    t->view = remote_view(far->remote);
    knowing_init(&t->k, far);
    add_sandbox(t, sandbox_id);
    add_containers(t, sandbox_id);
    const struct container_event e = {
        .container_id = id,
        .kind = kind,
        .created_ns = time_of(t->view),
        .sandbox = {str_text(&t->sandbox), t->sandbox.size},
        .containers = t->list,
        .n_containers = t->n,
    };
    container_event_write(&e, &out);
    /* one without the sandbox is of no use to a kubelet, which says so */
    if (!out.overflow && !t->lacks && t->sandbox.size)
        event_feed_put(far->s->events, out.data, out.size);
    for (size_t i = 0; i < t->n; i++)
        str_fini(&t->containers[i]);
    str_fini(&t->sandbox);
    knowing_fini(&t->k);
    remote_view_unref(t->view);
    free(t);
}

void serve_event_changed(void *ctx, struct remote *r,
                         const struct remote_change *c)
{
    struct far *far = ctx;
    cleanup_with(remote_view) struct remote_view *v = remote_view(r);
    /* what has ended is told when its log is here */
    if (c->kind == CRI_EVENT_STOPPED && !c->sandbox &&
        exits_state(far->s->exits, far, c->id, remote_view_status(v, c->id)) !=
            CRI_EXITED)
        return;
    if (event_feed_is_read(far->s->events))
        put(far, c->id, c->sandbox ? c->id : c->sandbox_id, c->kind);
}

void serve_event_exited(struct far *far, const char *id)
{
    struct kept *k = keep_find(far->s->keep, id);
    if (k && event_feed_is_read(far->s->events)) {
        /* lists of before have been told with it running */
        (void)remote_fresh(far->remote, clock_ms() + far->s->config.fresh_ms,
                           NULL);
        put(far, id, k->sandbox_id, CRI_EVENT_STOPPED);
    }
    kept_unref(k);
}

/* --- to the kubelet -------------------------------------------------------------
 */

struct watching {
    struct serve *s;
    struct grpcd_call *call;
    struct event_reader *reader;
    struct str message;
};

static void wake(void *ctx)
{
    grpc_hub_wake(ctx);
}

static void begun(void *ctx, struct grpc_hub *hub)
{
    struct watching *w = ctx;
    w->reader = event_feed_join(w->s->events, wake, hub);
}

static void over(void *ctx)
{
    struct watching *w = ctx;
    if (w->reader)
        event_feed_leave(w->s->events, w->reader);
    w->reader = NULL;
}

static int forward(void *ctx, const void *message, size_t size)
{
    struct watching *w = ctx;
    return grpcd_call_send(w->call, message, size);
}

/* Those of remotes that have come. */
static int turn(void *ctx)
{
    struct watching *w = ctx;
    int r = w->reader ? 1 : -EUSERS;
    while (r > 0) {
        r = event_feed_take(w->s->events, w->reader, &w->message);
        if (r > 0 && grpcd_call_send(w->call, str_text(&w->message),
                                     w->message.size) < 0)
            r = -ECANCELED;
    }
    return r;
}

void serve_events(void *ctx, struct grpcd_call *call)
{
    struct watching w = {
        .s = ctx, .call = call, .message = STR_INIT(EVENT_FEED_SIZE)};
    struct serve_flow flow = {.call = call,
                              .visit = forward,
                              .turn = turn,
                              .begun = begun,
                              .over = over,
                              .ctx = &w};
    (void)serve_flow_run(w.s, &flow); /* how it ended is in `flow` */
    str_fini(&w.message);
    grpcd_call_finish(call, flow.code, flow.text);
}
