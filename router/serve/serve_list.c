/* Lists: the home's answer, and what is known of all remotes. */
#include <errno.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/serve/serve_guess.h"
#include "router/wire/pod_stats.h"

/* --- what remotes have --------------------------------------------------------
 */

/* The items of all remotes, as they are told. */
struct merging {
    struct serve *s;
    const struct method *m;
    struct far *far;         /* the present one */
    const struct str *stats; /* of containers, as each remote says them now */
    struct list_item *items;
    size_t n, cap;
    size_t n_fars;                /* when it began */
    size_t ends[SERVE_FARS_MAX];  /* of each remote's items */
    size_t sizes[SERVE_FARS_MAX]; /* bytes of them */
    struct arena arena;
};

static void keep_item(struct merging *m, const struct list_item *item)
{
    struct list_item *to;
    m->items = xgrow(m->items, m->n, &m->cap, sizeof *m->items);
    to = &m->items[m->n++];
    to->id = arena_strndup(&m->arena, item->id, strlen(item->id));
    to->sandbox_id = arena_strndup(&m->arena, item->sandbox_id,
                                   strlen(item->sandbox_id));
    to->message.size = item->message.size;
    to->message.data = arena_strndup(&m->arena, item->message.data,
                                     item->message.size);
    m->sizes[m->far - m->s->fars] += told_list_size(item->message.size);
}

static uint32_t ended_state(const struct merging *m, const char *id)
{
    cleanup_with(remote_view) struct remote_view *v =
        remote_view(m->far->remote);
    return exits_state(m->s->exits, m->far, id, remote_view_status(v, id));
}

/* A container that has ended, and whose log is not here yet, runs still. */
static void add_item(void *ctx, const struct list_item *item)
{
    struct merging *m = ctx;
    cleanup_str struct str other = STR_INIT(FROM_REMOTE_ITEM_MAX);
    bool containers = m->m->id == METHOD_LIST_CONTAINERS ||
                      m->m->id == METHOD_STREAM_CONTAINERS;
    struct list_item shown = *item;
    uint32_t state = containers && exits_item_has_ended(item->message)
                         ? ended_state(m, item->id)
                         : CRI_EXITED;
    if (state != CRI_EXITED &&
        exits_hide_item(item->message, state, &other) == 0)
        shown.message = (struct proto_bytes){str_text(&other), other.size};
    keep_item(m, &shown);
}

static bool is_pod_stats(const struct method *m)
{
    return m->id == METHOD_LIST_POD_SANDBOX_STATS ||
           m->id == METHOD_STREAM_POD_SANDBOX_STATS;
}

static bool is_stats(const struct method *m)
{
    return m->id == METHOD_LIST_CONTAINER_STATS ||
           m->id == METHOD_STREAM_CONTAINER_STATS || is_pod_stats(m);
}

static void add_reply(struct merging *m, struct proto_bytes raw)
{
    struct knowing k;
    struct error err = {0};
    if (raw.size == 0)
        return;
    knowing_init(&k, m->far);
    if (from_remote_list(m->m, raw, &k.known, add_item, m, &err) != 0)
        log_event(LOG_WARN, "remote-list", "remote",
                  remote_name(m->far->remote), "call", method_name(m->m),
                  "error", err.text, NULL);
    knowing_fini(&k);
}

static void add_stats(struct merging *m, struct proto_bytes containers)
{
    cleanup_str struct str pods = STR_INIT(SERVE_REPLY_MAX);
    struct knowing k;
    pods.soft = true;
    if (!is_pod_stats(m->m)) {
        add_reply(m, containers);
        return;
    }
    knowing_init(&k, m->far);
    if (pod_stats_write(containers, &k.known, NULL, &pods, NULL) == 0)
        add_reply(m, (struct proto_bytes){str_text(&pods), pods.size});
    knowing_fini(&k);
}

static void add_far(struct merging *m, struct far *far)
{
    const struct str *now = &m->stats[far - m->s->fars];
    m->far = far;
    if (is_stats(m->m) && now->size) {
        add_stats(m, (struct proto_bytes){str_text(now), now->size});
    } else if (is_stats(m->m)) {
        cleanup_with(remote_stats) struct remote_stats *s =
            remote_stats(far->remote);
        add_stats(m, remote_stats_containers(s));
    } else if (serve_is_silent(far)) {
        cleanup_str struct str guessed = STR_INIT(SERVE_REPLY_MAX);
        serve_guess_list(far, m->m, &guessed);
        add_reply(m, (struct proto_bytes){str_text(&guessed), guessed.size});
    } else {
        cleanup_with(remote_view) struct remote_view *v =
            remote_view(far->remote);
        struct proto_bytes raw = remote_view_list(v, m->m);
        cleanup_str struct str made = STR_INIT(SERVE_REPLY_MAX);
        serve_guess_made(far, m->m, remote_view_time(v), raw, &made);
        add_reply(m, raw);
        add_reply(m, (struct proto_bytes){str_text(&made), made.size});
    }
    m->ends[far - m->s->fars] = m->n;
}

static int tell(const struct merging *m, const struct request_filter *filter,
                struct proto_bytes home, struct str *out, struct error *err)
{
    struct told_list l = {.method = m->m, .filter = filter, .out = out};
    int r = told_list_begin(&l, home, m->sizes, m->n_fars, err);
    size_t k = 0;
    for (size_t i = 0; r == 0 && i < m->n_fars; i++) {
        told_list_remote(&l);
        for (; k < m->ends[i]; k++)
            told_list_add(&l, &m->items[k]);
    }
    if (l.n_left_out > 0)
        log_event(LOG_ERROR, "list-too-long", "call", method_name(m->m), NULL);
    return r;
}

struct asked {
    struct serve *s;
    const struct method *m;
    struct request req;
    struct str stats[SERVE_FARS_MAX];
};

static int merge(const struct asked *a, struct proto_bytes home,
                 struct str *out, struct error *err)
{
    struct serve *s = a->s;
    struct merging to = {.s = s, .m = a->m, .stats = a->stats};
    struct far *far;
    to.n_fars = s->n_fars;
    for (size_t i = 0; (far = serve_next(s, &i));)
        if (far < s->fars + to.n_fars)
            add_far(&to, far);
    int r = tell(&to, &a->req.filter, home, out, err);
    free(to.items);
    arena_fini(&to.arena);
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
