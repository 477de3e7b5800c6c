#include "advertiser/act/api/socket_private.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "advertiser/act/api/status_json.h"
#include "lib/io/clock.h"
#include "lib/io/rfc3339.h"

enum {
    STOP_MS = 1000,
    CONNECTIONS_MAX = 128,
    EXEC_BODY_MAX = 256 << 10,
    FLASH_BODY_MAX = 16 << 10,
};

unsigned socket_status(int result)
{
    static const struct {
        int result;
        unsigned status;
    } known[] = {
        {-EINVAL, 400},    {-E2BIG, 400},        {-EFBIG, 400},
        {-ENODATA, 400},   {-EPERM, 403},        {-ENOENT, 404},
        {-EBUSY, 409},     {-EEXIST, 409},       {-EALREADY, 409},
        {-ENOSYS, 501},    {-ENOTSUP, 501},      {-EPROTO, 502},
        {-EREMOTEIO, 502}, {-EKEYREJECTED, 502}, {-EMSGSIZE, 502},
        {-EAGAIN, 503},    {-ECONNREFUSED, 503}, {-EHOSTUNREACH, 503},
        {-ETIMEDOUT, 504}, {-ENOSPC, 507},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].result == result)
            return known[i].status;
    return 500;
}

/* --- what requests say -------------------------------------------------- */

static bool take_names(struct httpd_request *rq, char namespace[64],
                       char name[ACT_NAME_MAX + 1])
{
    const char *ns = httpd_arg(rq, 0), *n = httpd_arg(rq, 1);
    if (!act_namespace_valid(ns) || !act_name_valid(n)) {
        httpd_fail(rq, 400, "\"%.63s/%.253s\" is no pod's name", ns, n);
        return false;
    }
    memcpy(namespace, ns, strlen(ns) + 1);
    memcpy(name, n, strlen(n) + 1);
    return true;
}

/* The pod that the path names: 0; -ENOENT with no more than its names when
 * there is none; -EINVAL when the path names none, which is refused. */
static int find_pod(struct act_socket *s, struct httpd_request *rq,
                    struct act_pod_status *ret_pod)
{
    char namespace[64], name[ACT_NAME_MAX + 1];
    if (!take_names(rq, namespace, name))
        return -EINVAL;
    if (actuator_find(s->a, namespace, name, ret_pod) == 0)
        return 0;
    *ret_pod = (struct act_pod_status){0};
    memcpy(ret_pod->namespace, namespace, sizeof namespace);
    memcpy(ret_pod->name, name, sizeof name);
    return -ENOENT;
}

/* 404 when there is none. */
static bool take_pod(struct act_socket *s, struct httpd_request *rq,
                     struct act_pod_status *ret_pod)
{
    int r = find_pod(s, rq, ret_pod);
    if (r == -ENOENT)
        httpd_fail(rq, 404, "there is no pod %s/%s on this node",
                   ret_pod->namespace, ret_pod->name);
    return r == 0;
}

/* Of a pod whose logs may be kept when it is gone, its names suffice. */
static bool take_logged(struct act_socket *s, struct httpd_request *rq,
                        struct act_pod_status *ret_pod)
{
    return find_pod(s, rq, ret_pod) != -EINVAL;
}

/* A number among the parameters; `otherwise` when it is not there. */
static bool take_number(struct httpd_request *rq, const char *name,
                        uint64_t max, int64_t otherwise, int64_t *ret_value)
{
    const char *text = httpd_query(rq, name);
    if (!text) {
        *ret_value = otherwise;
        return true;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || value > max) {
        httpd_fail(rq, 400, "%s: is \"%.40s\", must be 0 to %" PRIu64, name,
                   text, max);
        return false;
    }
    *ret_value = (int64_t)value;
    return true;
}

static bool take_nothing(struct httpd_request *rq)
{
    static const char *const none[] = {NULL};
    return httpd_query_only(rq, none);
}

/* The card or "host" that the path names; 404 when there is none. */
static bool take_place(struct act_socket *s, struct httpd_request *rq,
                       char place[ACT_NAME_MAX + 1])
{
    struct act_place_status found, list[ACT_PLACES_MAX];
    const char *name = httpd_arg(rq, 0);
    cleanup_str struct str known = STR_INIT(ERROR_TEXT_MAX / 2);
    if (actuator_find_place(s->a, name, &found) == 0) {
        memcpy(place, found.name, sizeof found.name);
        return true;
    }
    size_t n = actuator_places(s->a, list);
    for (size_t i = 0; i < n; i++)
        str_addf(&known, "%s%s", i ? ", " : "", list[i].name);
    httpd_fail(rq, 404, "there is no card \"%.63s\" here; there is %s", name,
               n ? str_text(&known) : "none");
    return false;
}

/* --- answered at once ----------------------------------------------------- */

static void on_pods(struct httpd_request *rq, void *ctx)
{
    const struct act_socket *s = ctx;
    cleanup_free struct act_pod_status *pods = NULL;
    if (!take_nothing(rq))
        return;
    struct str *out = httpd_reply(rq);
    uint64_t version = actuator_version(s->a);
    size_t n = actuator_list(s->a, &pods);
    str_addf(out, "{\"version\":%" PRIu64 ",\"items\":[", version);
    for (size_t i = 0; i < n; i++)
        status_json_pod(&pods[i], out);
    str_add(out, "]}\n");
}

static void on_pod(struct httpd_request *rq, void *ctx)
{
    struct act_pod_status pod;
    if (!take_nothing(rq) || !take_pod(ctx, rq, &pod))
        return;
    status_json_pod(&pod, httpd_reply(rq));
    str_add_c(httpd_reply(rq), '\n');
}

static void on_cards(struct httpd_request *rq, void *ctx)
{
    const struct act_socket *s = ctx;
    struct act_place_status list[ACT_PLACES_MAX];
    if (!take_nothing(rq))
        return;
    struct str *out = httpd_reply(rq);
    size_t n = actuator_places(s->a, list);
    str_add(out, "{\"items\":[");
    for (size_t i = 0; i < n; i++)
        status_json_place(&list[i], out);
    str_add(out, "]}\n");
}

static void on_wait(struct httpd_request *rq, void *ctx)
{
    static const char *const names[] = {"version", "wait", NULL};
    struct act_socket *s = ctx;
    struct act_pod_status pod;
    int64_t version, wait_s;
    if (!httpd_query_only(rq, names) ||
        !take_number(rq, "version", INT64_MAX, 0, &version) ||
        !take_number(rq, "wait", SOCKET_WAIT_S_MAX, SOCKET_WAIT_S_MAX,
                     &wait_s) ||
        !take_pod(s, rq, &pod))
        return;
    if (pod.version > (uint64_t)version || wait_s == 0) {
        status_json_pod(&pod, httpd_reply(rq));
        str_add_c(httpd_reply(rq), '\n');
        return;
    }
    wait_post(s, rq, (uint64_t)version, wait_s);
}

/* --- on threads of their own ------------------------------------------------
 */

static struct call *pod_call(struct act_socket *s, void (*run)(struct call *c),
                             const struct act_pod_status *pod)
{
    struct call *c = call_create(s, run);
    memcpy(c->namespace, pod->namespace, sizeof c->namespace);
    memcpy(c->name, pod->name, sizeof c->name);
    memcpy(c->uid, pod->uid, sizeof c->uid);
    return c;
}

static void on_want(struct httpd_request *rq, void *ctx)
{
    char namespace[64], name[ACT_NAME_MAX + 1];
    if (!take_nothing(rq) || !take_names(rq, namespace, name))
        return;
    struct call *c = call_create(ctx, do_want);
    memcpy(c->namespace, namespace, sizeof namespace);
    memcpy(c->name, name, sizeof name);
    size_t size;
    const char *body = httpd_body(rq, &size);
    c->body = arena_strndup(&c->arena, body, size);
    c->body_size = size;
    call_post(c, rq, "");
}

static void on_start(struct httpd_request *rq, void *ctx)
{
    struct act_pod_status pod;
    if (take_nothing(rq) && take_pod(ctx, rq, &pod))
        call_post(pod_call(ctx, do_begin, &pod), rq, "");
}

/* Who wants a pod decides when it ends. */
static bool is_of_socket(struct httpd_request *rq,
                         const struct act_pod_status *pod)
{
    if (strcmp(pod->owner, SOCKET_OWNER) == 0)
        return true;
    httpd_fail(rq, 409,
               "%s/%s is here because the %s wants it: delete it there, or "
               "drain its card",
               pod->namespace, pod->name, pod->owner);
    return false;
}

static void end_pod(struct httpd_request *rq, struct act_socket *s,
                    void (*run)(struct call *c))
{
    static const char *const names[] = {"grace", NULL};
    struct act_pod_status pod;
    int64_t grace_s;
    if (!httpd_query_only(rq, names) ||
        !take_number(rq, "grace", ITEM_GRACE_MAX, -1, &grace_s) ||
        !take_pod(s, rq, &pod) || !is_of_socket(rq, &pod))
        return;
    struct call *c = pod_call(s, run, &pod);
    c->grace_s = grace_s;
    call_post(c, rq, "");
}

static void on_stop(struct httpd_request *rq, void *ctx)
{
    end_pod(rq, ctx, do_stop);
}

static void on_delete(struct httpd_request *rq, void *ctx)
{
    end_pod(rq, ctx, do_delete);
}

/* Which container is meant; one that is not named is for the actuator to
 * find. */
static bool take_container(struct httpd_request *rq, const char *text,
                           struct call *c)
{
    if (*text && !act_namespace_valid(text)) {
        httpd_fail(rq, 400, "container: \"%.63s\" is no container's name",
                   text);
        return false;
    }
    memcpy(c->container, text, strlen(text) + 1);
    return true;
}

static bool take_bool(struct httpd_request *rq, const char *name,
                      bool *ret_value)
{
    const char *text = httpd_query(rq, name);
    *ret_value = text && strcmp(text, "true") == 0;
    if (!text || *ret_value || strcmp(text, "false") == 0)
        return true;
    httpd_fail(rq, 400, "%s: is \"%.40s\", must be true or false", name, text);
    return false;
}

/* Which lines of a log are meant; with one of these it is read by lines. */
static bool take_lines(struct httpd_request *rq, struct call *c)
{
    const char *since = httpd_query(rq, "sinceTime");
    int64_t tail, seconds;
    struct log_want *w = &c->want;
    *w = LOG_WANT_ALL;
    if (!take_number(rq, "tailLines", INT32_MAX, -1, &tail) ||
        !take_number(rq, "sinceSeconds", INT32_MAX, -1, &seconds) ||
        !take_bool(rq, "timestamps", &w->timestamps) ||
        !take_bool(rq, "previous", &c->log.previous))
        return false;
    if (since && !rfc3339_parse_ns(since, strlen(since), &w->since_ns)) {
        httpd_fail(rq, 400,
                   "sinceTime: is \"%.40s\", must look like "
                   "2026-01-02T03:04:05Z",
                   since);
        return false;
    }
    if (seconds >= 0)
        w->since_ns = clock_wall_ns() - seconds * 1000000000;
    w->tail_lines = tail;
    c->picks = since || seconds >= 0 || tail >= 0 || w->timestamps ||
               c->log.previous;
    return true;
}

static void on_logs(struct httpd_request *rq, void *ctx)
{
    static const char *const names[] = {
        "container", "attempt",      "offset",    "max",        "previous",
        "tailLines", "sinceSeconds", "sinceTime", "timestamps", NULL};
    struct act_pod_status pod;
    int64_t attempt, offset, max;
    bool text = httpd_wants_text(rq);
    const char *container = httpd_query(rq, "container");
    if (!httpd_query_only(rq, names) ||
        !take_number(rq, "offset", INT64_MAX, 0, &offset) ||
        !take_number(rq, "max", text ? ACT_LOG_MAX : SOCKET_LOGS_MAX,
                     SOCKET_LOGS_MAX, &max) ||
        !take_number(rq, "attempt", UINT32_MAX, 0, &attempt) ||
        !take_logged(ctx, rq, &pod))
        return;
    struct call *c = pod_call(ctx, do_logs, &pod);
    c->log.attempt = (uint32_t)attempt;
    c->log.offset = (uint64_t)offset;
    c->log.max = max ? (size_t)max : SOCKET_LOGS_MAX;
    c->text = text;
    if (take_lines(rq, c) && take_container(rq, container ? container : "", c))
        call_post(c, rq, pod.place);
    else
        call_destroy(c);
}

static void run_in(struct httpd_request *rq, struct act_socket *s,
                   void (*run)(struct call *c))
{
    struct act_pod_status pod;
    struct error err;
    size_t size;
    const char *body = httpd_body(rq, &size);
    if (!take_nothing(rq) || !take_pod(s, rq, &pod))
        return;
    struct call *c = pod_call(s, run, &pod);
    if (exec_read(c, body, size, &err) == 0) {
        call_post(c, rq, pod.place);
        return;
    }
    call_destroy(c);
    httpd_fail(rq, 400, "%s", err.text);
}

static void on_exec(struct httpd_request *rq, void *ctx)
{
    run_in(rq, ctx, do_exec);
}

static void on_stream(struct httpd_request *rq, void *ctx)
{
    run_in(rq, ctx, do_stream);
}

static void drain_card(struct httpd_request *rq, struct act_socket *s,
                       bool drain)
{
    char place[ACT_NAME_MAX + 1];
    if (!take_nothing(rq) || !take_place(s, rq, place))
        return;
    struct call *c = call_create(s, do_drain);
    memcpy(c->place, place, sizeof place);
    c->drain = drain;
    call_post(c, rq, "");
}

static void on_drain(struct httpd_request *rq, void *ctx)
{
    drain_card(rq, ctx, true);
}

static void on_undrain(struct httpd_request *rq, void *ctx)
{
    drain_card(rq, ctx, false);
}

static void on_card(struct httpd_request *rq, void *ctx)
{
    const struct act_socket *s = ctx;
    struct act_place_status found;
    char place[ACT_NAME_MAX + 1];
    if (!take_nothing(rq) || !take_place(ctx, rq, place))
        return;
    if (actuator_find_place(s->a, place, &found) < 0) {
        httpd_fail(rq, 404, "%s is not there any more", place);
        return;
    }
    status_json_place(&found, httpd_reply(rq));
    str_add_c(httpd_reply(rq), '\n');
}

static void on_flash(struct httpd_request *rq, void *ctx)
{
    char place[ACT_NAME_MAX + 1];
    struct error err;
    size_t size;
    const char *body = httpd_body(rq, &size);
    if (!take_nothing(rq) || !take_place(ctx, rq, place))
        return;
    struct call *c = call_create(ctx, do_flash);
    memcpy(c->place, place, sizeof place);
    if (flash_read(c, body, size, &err) == 0) {
        call_post(c, rq, "");
        return;
    }
    call_destroy(c);
    httpd_fail(rq, 400, "%s", err.text);
}

static void on_hardware(struct httpd_request *rq, void *ctx)
{
    char place[ACT_NAME_MAX + 1];
    if (!take_nothing(rq) || !take_place(ctx, rq, place))
        return;
    struct call *c = call_create(ctx, do_hardware);
    memcpy(c->place, place, sizeof place);
    call_post(c, rq, place);
}

static void on_objects(struct httpd_request *rq, void *ctx)
{
    char place[ACT_NAME_MAX + 1];
    if (!take_nothing(rq) || !take_place(ctx, rq, place))
        return;
    struct call *c = call_create(ctx, do_objects);
    memcpy(c->place, place, sizeof place);
    call_post(c, rq, place);
}

/* --- from start to end -------------------------------------------------- */

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/v1/pods", on_pods, 0, "pods"},
    {HTTPD_GET, "/v1/pods/:/:", on_pod, 0, "pod"},
    {HTTPD_PUT, "/v1/pods/:/:", on_want, ITEM_SIZE_MAX, "create"},
    {HTTPD_DELETE, "/v1/pods/:/:", on_delete, 0, "delete"},
    {HTTPD_GET, "/v1/pods/:/:/state", on_pod, 0, "state"},
    {HTTPD_GET, "/v1/pods/:/:/wait", on_wait, 0, "wait"},
    {HTTPD_POST, "/v1/pods/:/:/start", on_start, 0, "start"},
    {HTTPD_POST, "/v1/pods/:/:/stop", on_stop, 0, "stop"},
    {HTTPD_GET, "/v1/pods/:/:/logs", on_logs, 0, "logs"},
    {HTTPD_POST, "/v1/pods/:/:/exec", on_exec, EXEC_BODY_MAX, "exec"},
    {HTTPD_POST, "/v1/pods/:/:/stream", on_stream, EXEC_BODY_MAX, "stream"},
    {HTTPD_GET, "/v1/cards", on_cards, 0, "cards"},
    {HTTPD_GET, "/v1/cards/:", on_card, 0, "card"},
    {HTTPD_POST, "/v1/cards/:/flash", on_flash, FLASH_BODY_MAX, "flash"},
    {HTTPD_POST, "/v1/cards/:/drain", on_drain, 0, "drain"},
    {HTTPD_POST, "/v1/cards/:/undrain", on_undrain, 0, "undrain"},
    {HTTPD_GET, "/v1/cards/:/hardware", on_hardware, 0, "hardware"},
    {HTTPD_GET, "/v1/cards/:/objects", on_objects, 0, "objects"},
};

void socket_free(struct act_socket *s)
{
    (void)pthread_cond_destroy(&s->idle);
    (void)pthread_cond_destroy(&s->wake);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

int act_socket_start(struct actuator *a, const char *path,
                     struct act_socket **ret_socket, struct error *err)
{
    struct act_socket *s = xcalloc(1, sizeof *s);
    cleanup_free char *listen = xasprintf("unix:%s", path);
    s->a = a;
    (void)pthread_mutex_init(&s->lock, NULL);
    clock_wait_init(&s->wake);
    clock_wait_init(&s->idle);
    const struct httpd_config config = {
        .name = "actuator",
        .listen = listen,
        .routes = routes,
        .n_routes = ARRAY_LEN(routes),
        .ctx = s,
        .connections_max = CONNECTIONS_MAX,
        .memory_max = (size_t)8 * ITEM_SIZE_MAX,
    };
    int r = waits_start(s, err);
    if (r < 0) {
        socket_free(s);
        return r;
    }
    r = httpd_start(&config, &s->httpd, err);
    if (r < 0) {
        waits_stop(s);
        socket_free(s);
        return r;
    }
    *ret_socket = s;
    return 0;
}

static void refuse_stopping(struct httpd_request *rq, void *arg)
{
    (void)arg;
    httpd_fail(rq, 503, "the advertiser is stopping");
}

bool act_socket_stop(struct act_socket *s)
{
    if (!s)
        return true;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    for (struct call *c = s->calls; c; c = c->next) {
        httpd_then(c->rq, refuse_stopping, NULL);
        httpd_resume(c->rq);
        c->rq = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    waits_stop(s);
    httpd_stop(s->httpd);
    int64_t due = clock_ms() + STOP_MS;
    pthread_mutex_lock(&s->lock);
    while (s->calls && clock_wait(&s->idle, &s->lock, due))
        ;
    bool idle = !s->calls;
    s->abandoned = !idle;
    pthread_mutex_unlock(&s->lock);
    if (idle)
        socket_free(s);
    return idle;
}
