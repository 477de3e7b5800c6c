#include "lib/grpcd/grpcd_call.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/grpcd/grpcd_private.h"
#include "lib/io/clock.h"

/* The server's thread sees to it. */
static void post_locked(struct grpcd_call *c)
{
    struct grpcd *s = c->s;
    if (c->posted)
        return;
    bool first = !s->posted;
    c->posted = true;
    c->next_posted = s->posted;
    s->posted = c;
    if (first && !grpcd_is_here(s))
        grpcd_wake(s);
}

void grpcd_call_fini(struct grpcd_call *c)
{
    str_fini(&c->first);
    str_fini(&c->in);
    str_fini(&c->sending);
    free(c->wish_text);
    if (c->cancel_fd >= 0)
        (void)close(c->cancel_fd);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->hook_lock);
}

/* --- what it is ------------------------------------------------------------- */

const char *grpcd_call_method(const struct grpcd_call *call)
{
    return h2_fields_get(&call->fields, ":path");
}

const char *grpcd_call_metadata(const struct grpcd_call *call, const char *name)
{
    return h2_fields_get(&call->fields, name);
}

int64_t grpcd_call_due_ms(const struct grpcd_call *call)
{
    return call->due_ms;
}

unsigned grpcd_call_left_ms(const struct grpcd_call *call, unsigned most)
{
    int64_t left = call->due_ms == INT64_MAX ? INT64_MAX
                                             : call->due_ms - clock_ms();
    return left <= 0 ? 0 : left < (int64_t)most ? (unsigned)left : most;
}

/* --- what came ---------------------------------------------------------------- */

const char *grpcd_call_first(struct grpcd_call *call, size_t *ret_size)
{
    /* the server's thread does not touch it once it is there */
    *ret_size = call->has_first ? call->first.size - GRPC_PREFIX : 0;
    return call->has_first ? call->first.data + GRPC_PREFIX : NULL;
}

/* Of `in`, which has come whole; 0: it has not. */
static size_t next_size(const struct grpcd_call *c)
{
    size_t size;
    if (c->in.size < GRPC_PREFIX ||
        grpc_prefix_read((const unsigned char *)c->in.data,
                         c->s->config.message_max, &size, NULL) < 0)
        return 0;
    return c->in.size - GRPC_PREFIX >= size ? GRPC_PREFIX + size : 0;
}

static void shift_locked(struct grpcd_call *c, size_t size)
{
    atomic_fetch_sub(&c->s->held, c->first.size);
    str_reset(&c->first);
    str_add_n(&c->first, c->in.data, size);
    memmove(c->in.data, c->in.data + size, c->in.size - size);
    c->in.size -= size;
    c->has_first = true;
    post_locked(c); /* there is room for more */
}

int grpcd_call_next(struct grpcd_call *call, const char **ret_message,
                    size_t *ret_size)
{
    struct grpcd *s = call->s;
    size_t size = 0;
    hold_lock(&s->lock);
    if (call->has_first && !call->first_taken) {
        call->first_taken = true;
    } else {
        call->first_taken = true;
        while (!(size = next_size(call)) && !call->in_ended &&
               !atomic_load(&call->cancelled)) {
            if (grpcd_is_here(s))
                return -EAGAIN;
            (void)clock_wait(&call->changed, &s->lock, INT64_MAX);
        }
        if (atomic_load(&call->cancelled))
            return -ECANCELED;
        if (!size)
            return 0;
        shift_locked(call, size);
    }
    *ret_message = call->first.data + GRPC_PREFIX;
    *ret_size = call->first.size - GRPC_PREFIX;
    return 1;
}

/* --- the answer ---------------------------------------------------------------- */

void grpcd_call_header(struct grpcd_call *call, const char *name,
                       const char *value, bool last)
{
    if (!last && call->any_sent)
        return; /* it is too late */
    (void)h2_fields_add_text(last ? &call->trailers : &call->reply, name,
                             value);
}

static void queue_locked(struct grpcd_call *c, const void *message, size_t size)
{
    unsigned char prefix[GRPC_PREFIX];
    grpc_prefix(size, prefix);
    str_add_n(&c->sending, (const char *)prefix, sizeof prefix);
    str_add_n(&c->sending, message, size);
    c->n_queued += sizeof prefix + size;
    atomic_fetch_add(&c->s->held, sizeof prefix + size);
    c->any_sent = true;
}

int grpcd_call_send(struct grpcd_call *call, const void *message, size_t size)
{
    struct grpcd *s = call->s;
    if (size > s->config.message_max)
        return -EMSGSIZE;
    hold_lock(&s->lock);
    while (call->n_queued > GRPCD_QUEUE_MAX && !atomic_load(&call->cancelled)) {
        if (grpcd_is_here(s))
            return -EAGAIN;
        (void)clock_wait(&call->changed, &s->lock, INT64_MAX);
    }
    if (atomic_load(&call->cancelled))
        return -ECANCELED;
    queue_locked(call, message, size);
    post_locked(call);
    return 0;
}

/* It is not the handler's any more. */
static void give_up_locked(struct grpcd_call *c, enum grpcd_wish wish)
{
    c->wish = wish;
    post_locked(c);
}

static void finish(struct grpcd_call *c, const void *message, size_t size,
                   int code, const char *text)
{
    grpcd_call_on_cancel(c, NULL, NULL);
    hold_lock(&c->s->lock);
    if (message && !atomic_load(&c->cancelled))
        queue_locked(c, message, size);
    c->wish_code = code;
    c->wish_text = text && *text ? xstrndup(text, GRPCD_TEXT_MAX) : NULL;
    give_up_locked(c, WISH_FINISH);
}

void grpcd_call_finish(struct grpcd_call *call, int code, const char *text)
{
    finish(call, NULL, 0, code, text);
}

void grpcd_call_answer(struct grpcd_call *call, const void *message,
                       size_t size)
{
    if (size > call->s->config.message_max)
        finish(call, NULL, 0, GRPC_RESOURCE_EXHAUSTED,
               "the reply is larger than a message may be");
    else
        finish(call, size ? message : "", size, GRPC_OK, NULL);
}

int grpcd_code_of(int error)
{
    switch (error) {
    case EINVAL:
        return GRPC_INVALID_ARGUMENT;
    case ENOENT:
        return GRPC_NOT_FOUND;
    case EEXIST:
        return GRPC_ALREADY_EXISTS;
    case ETIMEDOUT:
        return GRPC_DEADLINE_EXCEEDED;
    case ECANCELED:
        return GRPC_CANCELLED;
    case EACCES:
    case EPERM:
        return GRPC_PERMISSION_DENIED;
    case ENOSPC:
    case EMSGSIZE:
    case ENOMEM:
        return GRPC_RESOURCE_EXHAUSTED;
    case ENOTSUP:
        return GRPC_UNIMPLEMENTED;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENOTCONN:
    case EPIPE:
    case EAGAIN:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

void grpcd_call_fail(struct grpcd_call *call, const struct error *err)
{
    finish(call, NULL, 0, grpcd_code_of(err->code), err->text);
}

void grpcd_call_work(struct grpcd_call *call, enum grpcd_how how,
                     grpcd_handler_f *handle, void *ctx)
{
    grpcd_call_on_cancel(call, NULL, NULL);
    hold_lock(&call->s->lock);
    call->route.how = how;
    call->route.handle = handle;
    call->route.ctx = ctx;
    give_up_locked(call, WISH_WORK);
}

/* --- to the relay ---------------------------------------------------------------- */

void grpcd_relay_pass(struct grpcd_call *call, struct grpcd_relay *relay)
{
    grpcd_call_on_cancel(call, NULL, NULL);
    hold_lock(&call->s->lock);
    call->relay = relay;
    give_up_locked(call, WISH_PASS);
}

void grpcd_relay_edit(struct grpcd_call *call, struct grpcd_relay *relay,
                      const struct grpcd_edit *edit)
{
    grpcd_call_on_cancel(call, NULL, NULL);
    hold_lock(&call->s->lock);
    call->relay = relay;
    call->edit = *edit;
    if (edit->request)
        call->edit.request = xmemdup(edit->request, edit->size);
    give_up_locked(call, WISH_PASS);
}

/* --- cancellation ------------------------------------------------------------------ */

int grpcd_call_cancelled(const struct grpcd_call *call)
{
    return atomic_load(&call->cancelled);
}

int grpcd_call_cancel_fd(struct grpcd_call *call)
{
    hold_lock(&call->s->lock);
    if (call->cancel_fd >= 0)
        return call->cancel_fd;
    int fd = eventfd(atomic_load(&call->cancelled) ? 1 : 0,
                     EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    call->cancel_fd = fd;
    return fd;
}

void grpcd_call_on_cancel(struct grpcd_call *call, grpcd_cancel_f *cancel,
                          void *ctx)
{
    hold_lock(&call->hook_lock);
    call->hook = cancel;
    call->hook_ctx = ctx;
    if (cancel && atomic_load(&call->cancelled)) {
        call->hook = NULL;
        cancel(ctx);
    }
}
