/* Lists: the home's answer, and what is known of all remotes. */
#include <errno.h>

#include "lib/io/log.h"
#include "router/serve/serve_far_list.h"
#include "router/serve/serve_private.h"

struct asked {
    struct serve *s;
    const struct method *m;
    struct request req;
    struct str stats[SERVE_FARS_MAX]; /* of containers, as each remote says
                                       * them now; empty: as it did before */
};

/* --- all of it --------------------------------------------------------------- */

static bool is_stats(const struct method *m)
{
    return m->id == METHOD_LIST_CONTAINER_STATS ||
           m->id == METHOD_STREAM_CONTAINER_STATS ||
           m->id == METHOD_LIST_POD_SANDBOX_STATS ||
           m->id == METHOD_STREAM_POD_SANDBOX_STATS;
}

static struct far_list *list_of(const struct asked *a, struct far *far)
{
    const struct str *now = &a->stats[far - a->s->fars];
    if (!is_stats(a->m))
        return far_list(far, a->m);
    if (now->size)
        return far_list_stats(far, a->m,
                              (struct proto_bytes){now->data, now->size});
    cleanup_with(remote_stats) struct remote_stats *s =
        remote_stats(far->remote);
    return far_list_stats(far, a->m, remote_stats_containers(s));
}

static void add_items(struct told_list *to, const struct far_list *l)
{
    size_t n;
    const struct list_item *items = far_list_items(l, &n);
    told_list_remote(to);
    for (size_t i = 0; i < n; i++)
        told_list_add(to, &items[i]);
}

static int tell(const struct asked *a, struct far_list *const *lists, size_t n,
                struct proto_bytes home, struct str *out, struct error *err)
{
    struct told_list to = {
        .method = a->m, .filter = &a->req.filter, .out = out};
    size_t sizes[SERVE_FARS_MAX];
    for (size_t i = 0; i < n; i++)
        sizes[i] = far_list_size(lists[i]);
    int r = told_list_begin(&to, home, sizes, n, err);
    for (size_t i = 0; r == 0 && i < n; i++)
        add_items(&to, lists[i]);
    if (to.n_left_out > 0)
        log_event(LOG_ERROR, "list-too-long", "call", method_name(a->m), NULL);
    return r;
}

static int merge(const struct asked *a, struct proto_bytes home,
                 struct str *out, struct error *err)
{
    struct far_list *lists[SERVE_FARS_MAX];
    struct far *far;
    size_t n = 0;
    for (size_t i = 0; (far = serve_next(a->s, &i));)
        lists[n++] = list_of(a, far);
    int r = tell(a, lists, n, home, out, err);
    while (n > 0)
        far_list_unref(lists[--n]);
    return r;
}

/* --- a list in one message ----------------------------------------------------
 */

static void asked_free(void *ctx)
{
    struct asked *a = ctx;
    for (size_t i = 0; i < SERVE_FARS_MAX; i++)
        str_fini(&a->stats[i]);
    request_fini(&a->req);
    free(a);
}

static struct asked *asked_of(struct serve *s, struct grpcd_call *call)
{
    struct asked *a = xcalloc(1, sizeof *a);
    struct proto_bytes b = {"", 0};
    const char *data = grpcd_call_first(call, &b.size);
    a->s = s;
    a->m = method_find(grpcd_call_method(call));
    b.data = data ? data : "";
    if (request_read(a->m, b, &a->req, NULL) == 0)
        return a;
    asked_free(a);
    return NULL;
}

static int add_remotes(void *ctx, const char *message, size_t size,
                       struct str *ret_message, struct error *err)
{
    struct asked *a = ctx;
    const struct proto_bytes home = {message, size};
    int r = merge(a, home, ret_message, err);
    if (r == -EMSGSIZE) { /* the kubelet will say so itself */
        str_reset(ret_message);
        str_add_n(ret_message, message, size);
        r = 0;
    }
    return r;
}

/* Whoever asks for numbers wants those of now, and waits for them; a remote
 * that does not say them at once has said some before. */
static void ask_stats(struct asked *a, struct grpcd_call *call)
{
    struct far *far;
    for (size_t k = 0; (far = serve_next(a->s, &k));) {
        size_t i = (size_t)(far - a->s->fars);
        struct remote *r = far->remote;
        const struct remote_ask ask = {
            .method = method_get(METHOD_LIST_CONTAINER_STATS),
            .request = {"", 0},
            .ms = grpcd_call_left_ms(call, SERVE_STATS_MS)};
        struct grpc_end end = {.code = -1};
        str_init(&a->stats[i], SERVE_REPLY_MAX);
        a->stats[i].soft = true;
        if (remote_health(r, NULL) != ACT_READY ||
            remote_call(r, &ask, &a->stats[i], &end, NULL) < 0)
            str_reset(&a->stats[i]);
    }
}

void serve_list(void *ctx, struct grpcd_call *call)
{
    struct serve *s = ctx;
    struct asked *a = s->n_fars ? asked_of(s, call) : NULL;
    const struct grpcd_edit edit = {
        .reply = add_remotes, .done = asked_free, .ctx = a};
    if (a && is_stats(a->m))
        ask_stats(a, call);
    if (a)
        grpcd_relay_edit(call, s->home, &edit);
    else
        grpcd_relay_pass(call, s->home);
}

/* --- a list in many ------------------------------------------------------------
 */

static int forward(void *ctx, const void *message, size_t size)
{
    return grpcd_call_send(ctx, message, size);
}

/* The remotes' come last, as one message. */
static void end_stream(struct asked *a, struct grpcd_call *call)
{
    cleanup_str struct str out = STR_INIT(SERVE_REPLY_MAX);
    struct error err = {0};
    out.soft = true;
    int r = merge(a, (struct proto_bytes){"", 0}, &out, &err);
    if (r == 0 && out.size)
        r = grpcd_call_send(call, out.data, out.size);
    if (r < 0 && err.text[0])
        grpcd_call_fail(call, &err);
    else
        grpcd_call_finish(call, r < 0 ? GRPC_CANCELLED : GRPC_OK, "");
}

void serve_list_stream(void *ctx, struct grpcd_call *call)
{
    struct serve *s = ctx;
    struct asked *a = asked_of(s, call);
    struct serve_flow flow = {.call = call, .visit = forward, .ctx = call};
    if (!a || s->n_fars == 0) {
        if (a)
            asked_free(a);
        grpcd_relay_pass(call, s->home);
        return;
    }
    if (serve_flow_run(s, &flow) == 0) {
        if (is_stats(a->m))
            ask_stats(a, call);
        end_stream(a, call);
    } else {
        grpcd_call_finish(call, flow.code, flow.text);
    }
    asked_free(a);
}
