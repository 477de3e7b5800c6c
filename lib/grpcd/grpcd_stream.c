#include <errno.h>
#include <string.h>

#include "lib/grpcd/grpcd_private.h"
#include "lib/h2/grpc_text.h"
#include "lib/io/clock.h"

/* --- coming and going ------------------------------------------------------- */

void grpcd_stream_create(struct grpcd_link *l, int32_t id)
{
    struct grpcd *s = l->s;
    struct grpcd_call *c = xcalloc(1, sizeof *c);
    pthread_mutexattr_t recursive;
    c->s = s;
    c->begun_ms = clock_ms();
    c->due_ms = c->timer_ms = INT64_MAX;
    c->code = -1;
    c->cancel_fd = -1;
    h2_fields_init(&c->fields, GRPCD_FIELDS_MAX);
    h2_fields_init(&c->reply, GRPCD_FIELDS_MAX);
    h2_fields_init(&c->trailers, GRPCD_FIELDS_MAX);
    c->first = c->in = STR_INIT(STR_MAX_DEFAULT);
    c->sending = c->edit_in = STR_INIT(STR_MAX_DEFAULT);
    (void)pthread_mutexattr_init(&recursive);
    (void)pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&c->hook_lock, &recursive);
    (void)pthread_mutexattr_destroy(&recursive);
    clock_wait_init(&c->changed);
    grpcd_leg_attach(c, l, id);
    (void)nghttp2_session_set_stream_user_data(l->h2, id, c);
    s->n_calls++;
    atomic_store(&s->stat_calls, s->n_calls);
}

static void tell_end(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    const struct grpcd_end end = {
        .method = h2_fields_get(&c->fields, ":path"),
        .code = c->code,
        .relayed = c->relayed,
        .took_ms = clock_ms() - c->begun_ms,
        .received = c->received,
        .sent = c->sent,
    };
    if (!c->routed)
        return;
    if (s->config.ended)
        s->config.ended(s->config.ctx, &end);
    atomic_fetch_add(&s->n_ended, 1);
}

/* Both streams have closed, and no handler has it. */
void grpcd_stream_release(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    if (c->owned || c->down.id || c->up.id)
        return;
    if (c->edit.done)
        c->edit.done(c->edit.ctx);
    atomic_fetch_sub(&s->held, c->first.size + c->in.size + c->edit_in.size +
                                   c->sending.size);
    grpcd_queue_drop(s, &c->down.out);
    grpcd_queue_drop(s, &c->up.out);
    s->n_calls--;
    atomic_store(&s->stat_calls, s->n_calls);
    tell_end(c); /* nothing is held for it any more */
    grpcd_call_fini(c);
    h2_fields_fini(&c->fields);
    h2_fields_fini(&c->reply);
    h2_fields_fini(&c->trailers);
    str_fini(&c->edit_in);
    free((void *)c->edit.request);
    free(c);
}

void grpcd_stream_cancel(struct grpcd_call *c, int code)
{
    struct grpcd *s = c->s;
    const uint64_t one = 1;
    if (!c->owned || atomic_load(&c->cancelled))
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&c->cancelled, code);
    if (c->cancel_fd >= 0)
        (void)!write(c->cancel_fd, &one, sizeof one); /* there is room */
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&s->lock);
    hold_lock(&c->hook_lock);
    grpcd_cancel_f *hook = steal(&c->hook);
    if (hook)
        hook(c->hook_ctx);
}

void grpcd_stream_closed(struct grpcd_call *c, uint32_t code)
{
    bool answered = c->down.out_ended && code == NGHTTP2_NO_ERROR;
    grpcd_leg_detach(c, &c->down);
    if (c->down.link->n_calls == 0)
        c->down.link->idle_ms = clock_ms();
    if (!answered)
        grpcd_reply_note(c, GRPC_CANCELLED);
    grpcd_stream_cancel(c, GRPC_CANCELLED);
    grpcd_leg_reset(&c->up, code == NGHTTP2_NO_ERROR ? NGHTTP2_CANCEL : code);
    grpcd_stream_release(c);
}

/* --- the request ------------------------------------------------------------ */

/* An answer of HTTP, to who does not speak gRPC; false: it is answered. */
static bool judge_http(struct grpcd_call *c)
{
    const char *method = h2_fields_get(&c->fields, ":method");
    const char *type = h2_fields_get(&c->fields, "content-type");
    struct h2_fields reply;
    const char *status =
        !method || strcmp(method, "POST") != 0                        ? "405"
        : !type || strncmp(type, GRPCD_TYPE, strlen(GRPCD_TYPE)) != 0 ? "415"
                                                                      : NULL;
    if (!status)
        return true;
    h2_fields_init(&reply, 1000);
    (void)h2_fields_add_text(&reply, ":status", status);
    grpcd_reply_submit(c, &reply, true);
    h2_fields_fini(&reply);
    return false;
}

/* What every call must be; false: it is answered. */
static bool judge(struct grpcd_call *c)
{
    const struct grpcd *s = c->s;
    const char *path = h2_fields_get(&c->fields, ":path");
    const char *timeout = h2_fields_get(&c->fields, "grpc-timeout");
    char text[200];
    int64_t ms = 0;
    int code = 0;
    if (h2_fields_are_cut(&c->fields)) {
        code = GRPC_RESOURCE_EXHAUSTED;
        (void)snprintf(text, sizeof text, "the headers have over %d bytes",
                       GRPCD_FIELDS_MAX);
    } else if (!unix_peer_is_ours(c->down.link->uid)) {
        code = GRPC_PERMISSION_DENIED;
        (void)snprintf(text, sizeof text,
                       "this socket answers root and the user with the id "
                       "%u, not the one with %u",
                       (unsigned)geteuid(), (unsigned)c->down.link->uid);
    } else if (!judge_http(c)) {
        return false;
    } else if (!path || path[0] != '/' || strlen(path) > GRPCD_METHOD_MAX) {
        code = GRPC_UNIMPLEMENTED;
        (void)snprintf(text, sizeof text, "that path is no method");
    } else if (timeout && !grpc_timeout_read(timeout, &ms)) {
        code = GRPC_INTERNAL;
        (void)snprintf(text, sizeof text, "grpc-timeout \"%.20s\" is no time",
                       timeout);
    } else if (s->n_calls > s->config.calls) {
        code = GRPC_RESOURCE_EXHAUSTED;
        (void)snprintf(text, sizeof text, "%u calls are under way, the limit",
                       s->config.calls);
    } else if (atomic_load(&s->held) > s->config.memory_max) {
        code = GRPC_RESOURCE_EXHAUSTED;
        (void)snprintf(text, sizeof text,
                       "messages of other calls hold %zu bytes, the limit",
                       s->config.memory_max);
    } else if (s->forced) {
        code = GRPC_UNAVAILABLE;
        (void)snprintf(text, sizeof text, "the server stops");
    }
    if (code)
        grpcd_reply_finish(c, code, text);
    else if (timeout)
        c->due_ms = c->timer_ms = c->begun_ms + ms;
    return !code;
}

void grpcd_stream_head(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    if (!judge(c))
        return;
    c->routed = true;
    atomic_fetch_add(&s->n_routed, 1);
    s->config.route(s->config.ctx, c, &c->route);
    if (c->due_ms < INT64_MAX)
        grpcd_due(s, c->due_ms);
    if (c->route.how == GRPCD_RELAY && c->route.relay) {
        c->relay = c->route.relay;
        grpcd_pass_begin(c);
    } else if (c->route.how == GRPCD_RELAY || !c->route.handle) {
        grpcd_reply_finish(c, GRPC_UNIMPLEMENTED,
                           "there is no such method here");
    }
}

/* The first message is there, or there is none. */
static void begin(struct grpcd_call *c)
{
    c->begun = c->owned = true;
    if (c->route.how == GRPCD_HERE)
        c->route.handle(c->route.ctx, c);
    else
        grpcd_work(c);
}

/* Is a whole message at the front?  -errno: it may not come. */
static int whole(struct grpcd_call *c, const struct str *in, size_t *ret_size,
                 struct error *err)
{
    size_t size;
    if (in->size < GRPC_PREFIX)
        return 0;
    int r = grpc_prefix_read((const unsigned char *)in->data,
                             c->s->config.message_max, &size, err);
    if (r < 0)
        return r;
    *ret_size = GRPC_PREFIX + size;
    return in->size >= *ret_size;
}

static void refuse(struct grpcd_call *c, int r, const struct error *err)
{
    int code = r == -EPROTO ? GRPC_INTERNAL : grpcd_code_of(-r);
    grpcd_reply_fail(c, code, err->text);
    grpcd_stream_cancel(c, code);
}

/* With the lock: what is behind the first message is not its. */
static void split_first(struct grpcd_call *c, size_t size)
{
    c->first = c->in;
    c->in = STR_INIT(STR_MAX_DEFAULT);
    str_add_n(&c->in, c->first.data + size, c->first.size - size);
    c->first.size = size;
    c->has_first = true;
}

/* Give the window back for what the handler will need before it can go on. */
static void give_window(struct grpcd_call *c)
{
    struct error err;
    size_t size;
    pthread_mutex_lock(&c->s->lock);
    bool more = whole(c, &c->in, &size, &err) <= 0;
    pthread_mutex_unlock(&c->s->lock);
    if (more)
        grpcd_leg_consume(&c->down, c->down.unread);
}

void grpcd_stream_data(struct grpcd_call *c, const void *data, size_t size)
{
    struct grpcd *s = c->s;
    struct error err = {0};
    size_t first = 0;
    c->received += size;
    if (c->relayed) {
        grpcd_pass_data(c, data, size);
        return;
    }
    if (c->down.out_ended || !c->routed) { /* it is answered */
        grpcd_leg_consume(&c->down, size);
        return;
    }
    pthread_mutex_lock(&s->lock);
    str_add_n(&c->in, data, size);
    int r = whole(c, &c->in, &first, &err);
    bool begins = r > 0 && !c->begun;
    if (begins)
        split_first(c, first);
    if (c->begun && r != 0)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->held, size);
    if (r < 0)
        refuse(c, r, &err);
    else if (atomic_load(&s->held) > s->config.memory_max + GRPCD_MESSAGE_MAX)
        refuse(c, -ENOMEM,
               &(struct error){.text = "messages hold all the memory there is "
                                       "for them"});
    else
        give_window(c);
    if (begins && r > 0)
        begin(c);
}

void grpcd_stream_ended(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    c->down.in_ended = true;
    if (c->relayed) {
        grpcd_pass_ended(c);
        return;
    }
    pthread_mutex_lock(&s->lock);
    c->in_ended = true;
    bool half = c->in.size > 0 && !c->begun;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&s->lock);
    if (!c->routed || c->down.out_ended || c->begun)
        return;
    if (half)
        grpcd_reply_finish(c, GRPC_INTERNAL,
                           "the request ends within a message");
    else
        begin(c);
}

/* --- what handlers want ----------------------------------------------------- */

static void take_messages(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    struct str sending = STR_INIT(STR_MAX_DEFAULT);
    pthread_mutex_lock(&s->lock);
    str_move(&sending, &c->sending);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_sub(&s->held, sending.size);
    if (sending.size > 0 && c->down.id && !c->down.out_ended) {
        if (!c->head_sent)
            grpcd_reply_begin(c);
        grpcd_queue_add(s, &c->down.out, sending.data, sending.size);
        grpcd_leg_resume(&c->down);
    }
    str_fini(&sending);
}

void grpcd_stream_posted(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    pthread_mutex_lock(&s->lock);
    enum grpcd_wish wish = c->wish;
    c->wish = WISH_NONE;
    pthread_mutex_unlock(&s->lock);
    take_messages(c);
    if (c->down.id)
        give_window(c);
    switch (wish) {
    case WISH_NONE:
        return;
    case WISH_WORK:
        grpcd_work(c);
        return;
    case WISH_PASS:
        c->owned = false;
        if (c->down.id && !c->down.out_ended)
            grpcd_pass_begin(c);
        break;
    case WISH_FINISH:
        c->owned = false;
        if (c->down.id)
            grpcd_reply_finish(c, c->wish_code, c->wish_text);
        break;
    }
    grpcd_stream_release(c);
}

void grpcd_stream_tick(struct grpcd_call *c, int64_t now)
{
    if (c->timer_ms == INT64_MAX)
        return;
    if (now < c->timer_ms) {
        grpcd_due(c->s, c->timer_ms);
        return;
    }
    c->timer_ms = INT64_MAX;
    grpcd_leg_reset(&c->up, NGHTTP2_CANCEL);
    grpcd_reply_fail(c, GRPC_DEADLINE_EXCEEDED,
                     "the deadline of the call has passed");
    grpcd_stream_cancel(c, GRPC_DEADLINE_EXCEEDED);
}
