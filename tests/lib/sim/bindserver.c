#include "tests/lib/sim/bindserver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/bindserver_private.h"
#include "tests/lib/sim/simstate.h"

static void die(const char *what)
{
    perror(what);
    abort();
}

/* --- what is asked ------------------------------------------------------ */

static void copy_member(const cJSON *object, const char *name,
                        char ret[NAME_MAX_])
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    (void)snprintf(ret, NAME_MAX_, "%s",
                   cJSON_IsString(item) ? item->valuestring : "?");
}

/* False when it is no Binding as it should be. */
static bool read_binding(struct request *q)
{
    cleanup_with(json) cJSON *json = NULL;
    char kind[NAME_MAX_], name[NAME_MAX_], target[NAME_MAX_];
    if (json_parse(q->body, strlen(q->body), &json, NULL) < 0)
        return false;
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(json, "metadata");
    const cJSON *to = cJSON_GetObjectItemCaseSensitive(json, "target");
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(meta, "annotations");
    const cJSON *note = cJSON_GetObjectItemCaseSensitive(notes,
                                                         "biga.dev/allocation");
    copy_member(json, "kind", kind);
    copy_member(meta, "name", name);
    copy_member(meta, "uid", q->uid);
    copy_member(to, "kind", target);
    copy_member(to, "name", q->node);
    q->allocation = cJSON_IsString(note) ? xstrdup(note->valuestring) : NULL;
    return strcmp(kind, "Binding") == 0 && strcmp(target, "Node") == 0 &&
           strcmp(name, q->pod) == 0;
}

/* The one node that the affinity of a patch names. */
static void copy_pin(const cJSON *spec, char ret_node[NAME_MAX_])
{
    static const char *const path[] = {
        "affinity", "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"};
    const cJSON *at = spec;
    ret_node[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(path); i++)
        at = cJSON_GetObjectItemCaseSensitive(at, path[i]);
    const cJSON *fields = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetArrayItem(at, 0), "matchFields");
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetArrayItem(fields, 0), "values");
    const cJSON *node = cJSON_GetArrayItem(values, 0);
    if (cJSON_IsString(node))
        (void)snprintf(ret_node, NAME_MAX_, "%s", node->valuestring);
}

static bool read_patch(struct request *q)
{
    cleanup_with(json) cJSON *json = NULL;
    if (json_parse(q->body, strlen(q->body), &json, NULL) < 0 ||
        !strstr(q->data, "application/merge-patch+json"))
        return false;
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(json, "metadata");
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(json, "spec");
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(meta, "annotations");
    const cJSON *note = cJSON_GetObjectItemCaseSensitive(notes,
                                                         "biga.dev/allocation");
    copy_member(meta, "uid", q->uid);
    copy_pin(spec, q->node);
    q->opens =
        cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(spec, "schedulingGates"));
    q->unbinds =
        cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(spec, "nodeName"));
    q->allocation = cJSON_IsString(note) ? xstrdup(note->valuestring) : NULL;
    return cJSON_IsString(note);
}

/* The uid that it must have. */
static bool read_precondition(struct request *q)
{
    cleanup_with(json) cJSON *json = NULL;
    char kind[NAME_MAX_];
    if (json_parse(q->body, strlen(q->body), &json, NULL) < 0)
        return false;
    copy_member(json, "kind", kind);
    const cJSON *options = json;
    if (q->call == CALL_EVICT)
        options = cJSON_GetObjectItemCaseSensitive(json, "deleteOptions");
    copy_member(cJSON_GetObjectItemCaseSensitive(options, "preconditions"),
                "uid", q->uid);
    return strcmp(kind, q->call == CALL_EVICT ? "Eviction" : "DeleteOptions") ==
           0;
}

static bool read_body(struct request *q)
{
    switch (q->call) {
    case CALL_BIND:
        return read_binding(q);
    case CALL_OPEN:
        return read_patch(q);
    case CALL_DELETE:
    case CALL_EVICT:
        return read_precondition(q);
    case CALL_LOOK:
        break;
    }
    return true;
}

static const struct {
    const char *method, *tail, *shown;
} calls[] = {
    [CALL_LOOK] = {"GET", "", "GET"},
    [CALL_BIND] = {"POST", "/binding", "POST"},
    [CALL_OPEN] = {"PATCH", "", "PATCH"},
    [CALL_DELETE] = {"DELETE", "", "DELETE"},
    [CALL_EVICT] = {"POST", "/eviction", "EVICT"},
};

/* "POST /api/v1/namespaces/ns/pods/p1/binding HTTP/1.1". */
static bool read_line(struct request *q)
{
    static const char prefix[] = "/api/v1/namespaces/ns/pods/";
    char target[512];
    if (sscanf(q->data, "%7s %511s", q->method, target) != 2 ||
        strncmp(target, prefix, strlen(prefix)) != 0)
        return false;
    const char *name = target + strlen(prefix);
    int size = (int)strcspn(name, "/");
    (void)snprintf(q->pod, sizeof q->pod, "%.*s", size < 63 ? size : 63, name);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (strcmp(q->method, calls[i].method) == 0 &&
            strcmp(name + size, calls[i].tail) == 0) {
            q->call = (enum call)i;
            return true;
        }
    return false;
}

/* --- faults ------------------------------------------------------------- */

static enum bindserver_fault next_fault(struct bindserver *s, bool post)
{
    struct faults *f = post ? &s->posts : &s->looks;
    if (f->at < f->n)
        return f->list[f->at++];
    if (f->always != FAULT_NONE)
        return f->always;
    if (s->chaos && sim_random(&s->random) % 1000 < s->chaos)
        return (enum bindserver_fault)(sim_random(&s->random) % FAULT_COUNT);
    return FAULT_NONE;
}

static void set_faults(struct bindserver *s, const char *method,
                       const struct faults *to)
{
    pthread_mutex_lock(&s->lock);
    *(strcmp(method, "GET") != 0 ? &s->posts : &s->looks) = *to;
    pthread_mutex_unlock(&s->lock);
}

void bindserver_faults(struct bindserver *s, const char *method,
                       const enum bindserver_fault *faults, size_t n)
{
    struct faults f = {.n = n};
    memcpy(f.list, faults, n * sizeof *faults);
    set_faults(s, method, &f);
}

void bindserver_always(struct bindserver *s, const char *method,
                       enum bindserver_fault fault)
{
    set_faults(s, method, &(struct faults){.always = fault});
}

void bindserver_chaos(struct bindserver *s, unsigned permille, uint64_t seed)
{
    pthread_mutex_lock(&s->lock);
    s->chaos = permille;
    s->random = seed;
    pthread_mutex_unlock(&s->lock);
}

static enum bindserver_fault log_call(struct bindserver *s,
                                      const struct request *q)
{
    pthread_mutex_lock(&s->lock);
    bool to_node = q->call == CALL_BIND || q->call == CALL_OPEN;
    str_addf(&s->calls, "%s %s%s%s\n", calls[q->call].shown, q->pod,
             to_node ? " " : "", to_node ? q->node : "");
    if (q->call != CALL_LOOK) {
        str_reset(&s->last_body);
        str_add(&s->last_body, q->body);
    }
    enum bindserver_fault fault = next_fault(s, q->call != CALL_LOOK);
    pthread_mutex_unlock(&s->lock);
    return fault;
}

static bool is_done(enum bindserver_fault f)
{
    return f == FAULT_NONE || f == FAULT_ERROR_DONE || f == FAULT_SILENT_DONE ||
           f == FAULT_CUT_DONE || f == FAULT_GARBAGE;
}

static bool is_silent(enum bindserver_fault f)
{
    return f == FAULT_SILENT || f == FAULT_SILENT_DONE || f == FAULT_LATE_DONE;
}

static bool is_cut(enum bindserver_fault f)
{
    return f == FAULT_CUT || f == FAULT_CUT_DONE;
}

/* Until the peer has enough of it. */
static void be_silent(int fd)
{
    char c[256];
    while (recv(fd, c, sizeof c, 0) > 0)
        continue;
}

static bool send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static bool send_reply(int fd, const struct reply *r)
{
    cleanup_free char *head =
        xasprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n",
                  r->status, r->body.size);
    return send_all(fd, head, strlen(head)) &&
           send_all(fd, str_text(&r->body), r->body.size);
}

/* True when the connection goes on. */
static bool answer(struct bindserver *s, int fd, struct request *q,
                   struct reply *r)
{
    if (!read_line(q) || !read_body(q)) {
        bindserver_reply(r, 400, "BadRequest", "no such thing");
        return send_reply(fd, r);
    }
    enum bindserver_fault fault = log_call(s, q);
    if (q->call == CALL_LOOK)
        bindserver_show(s, q, r);
    else if (is_done(fault))
        bindserver_carry_out(s, q, r);
    else if (fault == FAULT_LATE_DONE)
        bindserver_carry_out_later(s, q);
    if (q->call == CALL_LOOK && fault == FAULT_NONE)
        bindserver_carry_out_late(s, q->pod);
    free(q->allocation);
    if (is_silent(fault))
        be_silent(fd);
    if (is_silent(fault) || is_cut(fault))
        return false;
    if (fault == FAULT_FORBIDDEN)
        bindserver_reply(r, 403, "Forbidden", "pods is forbidden");
    else if (fault == FAULT_INVALID)
        bindserver_reply(r, 422, "Invalid", "Pod is invalid");
    else if (fault == FAULT_BUSY)
        bindserver_reply(r, 429, "TooManyRequests", "slower");
    else if (fault == FAULT_ERROR || fault == FAULT_ERROR_DONE)
        bindserver_reply(r, 500, "InternalError", "etcd does not answer");
    else if (fault == FAULT_GARBAGE && r->status < 300) {
        r->status = 200;
        str_reset(&r->body);
        str_add(&r->body, "{\"kind\":");
    }
    return send_reply(fd, r);
}

/* --- connections -------------------------------------------------------- */

/* One whole request; false at the end. */
static bool read_request(int fd, struct request *q)
{
    size_t size = 0, whole = 0;
    q->allocation = NULL;
    q->opens = false;
    q->body = "";
    while (whole == 0 || size < whole) {
        if (size == REQUEST_MAX)
            return false;
        ssize_t n = recv(fd, q->data + size, REQUEST_MAX - size, 0);
        if (n <= 0)
            return false;
        size += (size_t)n;
        q->data[size] = '\0';
        char *end = strstr(q->data, "\r\n\r\n");
        if (!end || whole)
            continue;
        const char *length = strcasestr(q->data, "\r\nContent-Length:");
        whole = (size_t)(end - q->data) + 4;
        q->body = q->data + whole;
        if (length && length < end)
            whole += strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    }
    return true;
}

static void *serve(void *ctx)
{
    struct conn *c = ctx;
    struct request *q = xcalloc(1, sizeof *q);
    struct reply r = {.body = STR_INIT(1 << 20)};
    while (read_request(c->fd, q) && answer(c->s, c->fd, q, &r))
        continue;
    str_fini(&r.body);
    free(q);
    pthread_mutex_lock(&c->s->lock);
    (void)close(c->fd);
    c->fd = -1;
    pthread_mutex_unlock(&c->s->lock);
    return NULL;
}

/* One that is free. */
static struct conn *new_conn(struct bindserver *s)
{
    size_t i = 0;
    while (i < s->n_conns && s->conns[i].fd >= 0)
        i++;
    if (i == CONNS_MAX)
        abort();
    if (i == s->n_conns)
        s->n_conns++;
    else
        (void)pthread_join(s->conns[i].thread, NULL); /* it has ended */
    return &s->conns[i];
}

static void *accept_all(void *ctx)
{
    struct bindserver *s = ctx;
    int listener = s->listener;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        pthread_mutex_lock(&s->lock);
        struct conn *c = new_conn(s);
        *c = (struct conn){.s = s, .fd = fd};
        if (pthread_create(&c->thread, NULL, serve, c))
            die("pthread_create");
        pthread_mutex_unlock(&s->lock);
    }
}

void bindserver_open(struct bindserver *s)
{
    s->listener = raw_listen(&s->port);
    if (pthread_create(&s->acceptor, NULL, accept_all, s))
        die("pthread_create");
}

void bindserver_close(struct bindserver *s)
{
    (void)shutdown(s->listener, SHUT_RDWR);
    (void)pthread_join(s->acceptor, NULL);
    (void)close(s->listener);
    s->listener = -1;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_conns; i++)
        if (s->conns[i].fd >= 0)
            (void)shutdown(s->conns[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
}

struct bindserver *bindserver_start(void)
{
    struct bindserver *s = xcalloc(1, sizeof *s);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->opened, NULL);
    str_init(&s->calls, 1 << 24);
    str_init(&s->last_body, REQUEST_MAX);
    s->keeper = raw_bind(&s->port);
    bindserver_open(s);
    s->config.server = xasprintf("http://127.0.0.1:%u", s->port);
    s->config.namespace = xstrdup("default");
    return s;
}

void bindserver_stop(struct bindserver *s)
{
    if (!s)
        return;
    if (s->listener >= 0)
        bindserver_close(s);
    (void)close(s->keeper);
    for (size_t i = 0; i < s->n_conns; i++)
        (void)pthread_join(s->conns[i].thread, NULL);
    bindserver_forget_pods(s);
    str_fini(&s->calls);
    str_fini(&s->last_body);
    free(s->config.server);
    free(s->config.namespace);
    (void)pthread_cond_destroy(&s->opened);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

const struct kube_config *bindserver_config(const struct bindserver *s)
{
    return &s->config;
}

char *bindserver_calls(struct bindserver *s)
{
    pthread_mutex_lock(&s->lock);
    char *text = xstrdup(str_text(&s->calls));
    pthread_mutex_unlock(&s->lock);
    return text;
}

char *bindserver_last_body(struct bindserver *s)
{
    pthread_mutex_lock(&s->lock);
    char *body = xstrdup(str_text(&s->last_body));
    pthread_mutex_unlock(&s->lock);
    return body;
}
