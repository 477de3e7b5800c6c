#include "tests/lib/grpc/rpcserver.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "lib/io/clock.h"
#include "tests/lib/tmpdir.h"

/* --- what the methods do -------------------------------------------------- */

static void echo(void *ctx, struct grpcd_call *call)
{
    struct rpc_server *s = ctx;
    const char *value = grpcd_call_metadata(call, "x-echo");
    size_t size;
    const char *message = grpcd_call_first(call, &size);
    atomic_fetch_add(&s->n_begun, 1);
    if (value) {
        grpcd_call_header(call, "x-echo", value, false);
        grpcd_call_header(call, "x-echo-last", value, true);
    }
    if (message)
        grpcd_call_answer(call, message, size);
    else
        grpcd_call_finish(call, GRPC_INVALID_ARGUMENT, "no message");
}

static void wake(void *ctx)
{
    struct rpc_server *s = ctx;
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Only the hook takes the lock of those that wait, and they hold it while
 * they call nothing. */
static void wait_for_it(void *ctx, struct grpcd_call *call)
{
    struct rpc_server *s = ctx;
    grpcd_call_on_cancel(call, wake, s);
    atomic_fetch_add(&s->n_begun, 1);
    pthread_mutex_lock(&s->lock);
    while (!s->released && !grpcd_call_cancelled(call))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    int why = grpcd_call_cancelled(call);
    atomic_store(&s->last_cancelled, why);
    if (why)
        atomic_fetch_add(&s->n_cancelled, 1);
    if (why)
        grpcd_call_finish(call, why, "it was cancelled");
    else
        grpcd_call_answer(call, "released", 8);
}

static void keep(void *ctx, struct grpcd_call *call)
{
    struct rpc_server *s = ctx;
    pthread_mutex_lock(&s->lock);
    bool full = s->n_kept == RPC_KEPT_MAX || s->released;
    if (!full)
        s->kept[s->n_kept++] = call;
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->n_begun, 1);
    if (full)
        grpcd_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "too many are kept");
}

static void count(void *ctx, struct grpcd_call *call)
{
    struct rpc_server *s = ctx;
    size_t size, n = 0;
    const char *message = grpcd_call_first(call, &size);
    cleanup_free char *text = xstrndup(message ? message : "", size);
    char *end;
    size_t times = strtoul(text, &end, 10), bytes = strtoul(end, NULL, 10);
    cleanup_free char *data = xcalloc(1, bytes + 1);
    int r = 0;
    atomic_fetch_add(&s->n_begun, 1);
    while (r == 0 && n < times) {
        memset(data, (int)n++, bytes);
        r = grpcd_call_send(call, data, bytes);
    }
    if (r < 0)
        atomic_fetch_add(&s->n_cancelled, 1);
    grpcd_call_finish(call, r ? GRPC_CANCELLED : GRPC_OK, NULL);
}

static void sum(void *ctx, struct grpcd_call *call)
{
    struct rpc_server *s = ctx;
    const char *message;
    size_t size, all = 0;
    char text[32];
    int r;
    atomic_fetch_add(&s->n_begun, 1);
    while ((r = grpcd_call_next(call, &message, &size)) > 0)
        all += size;
    (void)snprintf(text, sizeof text, "%zu", all);
    if (r < 0)
        grpcd_call_finish(call, GRPC_CANCELLED, NULL);
    else
        grpcd_call_answer(call, text, strlen(text));
}

static void fail(void *ctx, struct grpcd_call *call)
{
    size_t size;
    const char *message = grpcd_call_first(call, &size);
    cleanup_free char *text = xstrndup(message ? message : "", size);
    char *rest;
    int code = (int)strtol(text, &rest, 10);
    (void)ctx;
    grpcd_call_finish(call, code, rest);
}

static void peek(void *ctx, struct grpcd_call *call)
{
    struct rpc_server *s = ctx;
    size_t size;
    const char *message = grpcd_call_first(call, &size);
    if (message && size == 4 && memcmp(message, "work", 4) == 0)
        grpcd_call_work(call, GRPCD_LONG, echo, s);
    else
        grpcd_relay_pass(call, s->relay);
}

static int edit_reply(void *ctx, const char *message, size_t size,
                      struct str *ret_message, struct error *err)
{
    (void)ctx;
    if (size == 4 && memcmp(message, "<bad", 4) == 0)
        return error_set(err, EINVAL, "that reply is bad");
    str_add_n(ret_message, message, size);
    str_add(ret_message, ">");
    return 0;
}

static void edit_done(void *ctx)
{
    struct rpc_server *s = ctx;
    atomic_fetch_add(&s->n_edits_done, 1);
}

static void edit(void *ctx, struct grpcd_call *call)
{
    struct rpc_server *s = ctx;
    size_t size;
    const char *message = grpcd_call_first(call, &size);
    cleanup_str struct str request = STR_INIT(GRPCD_MESSAGE_MAX);
    str_add(&request, "<");
    str_add_n(&request, message, size);
    const struct grpcd_edit what = {.request = str_text(&request),
                                    .size = request.size,
                                    .reply = edit_reply,
                                    .done = edit_done,
                                    .ctx = s};
    grpcd_relay_edit(call, s->relay, &what);
}

static void route(void *ctx, const struct grpcd_call *call,
                  struct grpcd_route *ret_route)
{
    static const struct {
        const char *prefix;
        enum grpcd_how how;
        grpcd_handler_f *handle;
    } routes[] = {
        {"/t.T/Echo", GRPCD_HERE, echo}, {"/t.T/Work", GRPCD_BRIEF, echo},
        {"/t.T/Long", GRPCD_LONG, echo}, {"/t.T/Wait", GRPCD_LONG, wait_for_it},
        {"/t.T/Keep", GRPCD_HERE, keep}, {"/t.T/Count", GRPCD_LONG, count},
        {"/t.T/Sum", GRPCD_LONG, sum},   {"/t.T/Fail", GRPCD_HERE, fail},
        {"/r.Peek/", GRPCD_HERE, peek},  {"/r.Edit/", GRPCD_BRIEF, edit},
    };
    struct rpc_server *s = ctx;
    const char *method = grpcd_call_method(call);
    ret_route->ctx = s;
    if (strncmp(method, "/r.R/", 5) == 0) {
        ret_route->how = GRPCD_RELAY;
        ret_route->relay = s->relay;
    }
    /* what was relayed to us is "/r.R/Echo", say */
    const char *name = strrchr(method, '/');
    for (size_t i = 0; i < ARRAY_LEN(routes) - (s->relay ? 0 : 2); i++)
        if (strncmp(method, routes[i].prefix, strlen(routes[i].prefix)) == 0 ||
            (!s->relay && strcmp(name, strrchr(routes[i].prefix, '/')) == 0)) {
            ret_route->how = routes[i].how;
            ret_route->handle = routes[i].handle;
        }
}

static void ended(void *ctx, const struct grpcd_end *end)
{
    struct rpc_server *s = ctx;
    atomic_store(&s->last_code, end->code);
    atomic_fetch_add(&s->n_ended, 1);
}

/* --- the server ------------------------------------------------------------- */

struct rpc_server *rpc_server_create(const char *path, const char *upstream,
                                     const struct grpcd_config *config)
{
    struct rpc_server *s = xcalloc(1, sizeof *s);
    struct grpcd_config all = config ? *config : (struct grpcd_config){0};
    struct error err = {0};
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    s->dir = path ? NULL : tmpdir_create();
    s->path = path ? xstrdup(path) : xasprintf("%s/s", s->dir);
    all.path = s->path;
    all.route = route;
    all.ended = ended;
    all.ctx = s;
    int r = grpcd_create(&all, &s->grpcd, &err);
    if (r == 0 && upstream)
        r = grpcd_relay_create(s->grpcd, upstream, "the other server",
                               &s->relay, &err);
    if (r == 0)
        r = grpcd_start(s->grpcd, &err);
    if (r < 0) {
        fprintf(stderr, "rpcserver: %s\n", err.text);
        abort();
    }
    return s;
}

void rpc_server_release(struct rpc_server *s)
{
    struct grpcd_call *kept[RPC_KEPT_MAX];
    pthread_mutex_lock(&s->lock);
    s->released = true;
    size_t n = s->n_kept;
    s->n_kept = 0;
    memcpy(kept, s->kept, n * sizeof *kept);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < n; i++) {
        (void)grpcd_call_send(kept[i], "kept", 4);
        grpcd_call_finish(kept[i], GRPC_OK, NULL);
    }
}

void rpc_server_destroy(struct rpc_server *s)
{
    rpc_server_release(s);
    grpcd_destroy(s->grpcd);
    if (s->dir)
        tmpdir_remove(s->dir);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}

void rpc_server_await(const atomic_uint *what, unsigned n)
{
    int64_t until = clock_ns() + 60000000000;
    while (atomic_load(what) < n) {
        if (clock_ns() > until) {
            fprintf(stderr, "rpcserver: waited in vain for %u\n", n);
            abort();
        }
        (void)sched_yield();
    }
}
