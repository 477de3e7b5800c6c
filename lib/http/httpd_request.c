#include <netinet/in.h>
#include <stdarg.h>
#include <strings.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/http/cookies.h"
#include "lib/http/httpd_private.h"

enum {
    KEEP_BUFFER = 1 << 20, /* larger buffers do not go back to the pool */
    KEEP_BYTES = 8 << 20,  /* in the pool of one server */
    REPLY_FIRST = 2 * ERROR_TEXT_MAX,
};

/* --- the pool of requests ------------------------------------------------- */

static size_t request_size(const struct httpd_request *rq)
{
    return rq->body.cap + rq->reply.cap + rq->h2.fields.text.cap + sizeof *rq;
}

static void drop_headers(struct httpd_request *rq)
{
    while (rq->n_headers > 0)
        free(rq->headers[--rq->n_headers].value);
}

struct httpd_request *request_take(struct httpd *h)
{
    pthread_mutex_lock(&h->pool_lock);
    struct httpd_request *rq = h->pool;
    if (rq) {
        h->pool = rq->next;
        h->pool_bytes -= request_size(rq);
    }
    pthread_mutex_unlock(&h->pool_lock);
    if (!rq) {
        rq = xcalloc(1, sizeof *rq);
        rq->h = h;
        rq->uri.repeats = h->config.repeats;
        str_init(&rq->reply, STR_MAX_DEFAULT);
        h2_fields_init(&rq->h2.fields, H2_FIELDS_MAX);
    }
    str_reset(&rq->reply);
    /* there is always room to say what is wrong */
    rq->reply.soft = false;
    (void)str_reserve(&rq->reply, REPLY_FIRST);
    rq->reply.soft = true;
    atomic_fetch_add(&h->n_requests, 1);
    rq->phase = PHASE_NEW;
    rq->route = NULL;
    rq->then = NULL;
    rq->stream = NULL;
    rq->refused = rq->suspended = rq->close = rq->at_once = false;
    rq->refusal = NULL;
    rq->status = 200;
    rq->type = "application/json";
    drop_headers(rq);
    rq->user[0] = '\0';
    rq->started_ns = rq->took_ns = 0;
    str_reset(&rq->body);
    for (size_t i = 0; i < URI_ARGS_MAX; i++)
        rq->args[i] = "";
    return rq;
}

void request_destroy(struct httpd_request *rq)
{
    drop_headers(rq);
    str_fini(&rq->body);
    str_fini(&rq->reply);
    h2_fields_fini(&rq->h2.fields);
    free(rq);
}

static void body_uncharge(struct httpd_request *rq)
{
    atomic_fetch_sub(&rq->h->memory_used, rq->charged);
    rq->charged = 0;
}

void request_drop_body(struct httpd_request *rq)
{
    str_fini(&rq->body);
    body_uncharge(rq);
}

void request_give(struct httpd_request *rq)
{
    struct httpd *h = rq->h;
    stream_leave(rq);
    httpd_keep(rq, NULL, NULL);
    body_uncharge(rq);
    atomic_fetch_sub(&h->n_requests, 1);
    if (rq->body.cap > KEEP_BUFFER)
        str_fini(&rq->body);
    if (rq->reply.cap > KEEP_BUFFER)
        str_fini(&rq->reply);
    size_t size = request_size(rq);
    pthread_mutex_lock(&h->pool_lock);
    bool keep = h->pool_bytes + size <= KEEP_BYTES;
    if (keep) {
        rq->next = h->pool;
        h->pool = rq;
        h->pool_bytes += size;
    }
    pthread_mutex_unlock(&h->pool_lock);
    if (!keep)
        request_destroy(rq);
}

bool request_reserve(struct httpd_request *rq, size_t size)
{
    struct str *body = &rq->body;
    atomic_size_t *used = &rq->h->memory_used;
    if (size > body->max || body->size > body->max - size) {
        request_refuse(rq, 413, "body is larger than the %zu bytes accepted",
                       body->max);
        return false;
    }
    size_t need = body->size + size + 1, room = body->cap * 2;
    if (need <= body->cap)
        return true;
    if (rq->length && room > rq->length + 1)
        room = rq->length + 1;
    if (room < need)
        room = need;
    size_t more = room - body->cap;
    if (atomic_fetch_add(used, more) + more > rq->h->config.memory_max) {
        atomic_fetch_sub(used, more);
        request_refuse(rq, 503, "too many large requests at once");
        return false;
    }
    rq->charged += more;
    char *data = try_realloc(body->data, body->cap, room);
    if (!data) {
        request_refuse(rq, 503, "there is no memory for a body of %zu bytes",
                       rq->length > need ? rq->length : need - 1);
        return false;
    }
    body->data = data;
    body->cap = room;
    return true;
}

/* --- what handlers use ---------------------------------------------------- */

enum httpd_method httpd_method(const struct httpd_request *rq)
{
    return rq->method;
}

const char *httpd_path(const struct httpd_request *rq)
{
    return rq->uri.path;
}

const char *httpd_arg(const struct httpd_request *rq, size_t n)
{
    return n < URI_ARGS_MAX ? rq->args[n] : "";
}

const char *httpd_query(const struct httpd_request *rq, const char *name)
{
    return uri_param(&rq->uri, name);
}

const char *httpd_query_n(const struct httpd_request *rq, const char *name,
                          size_t n)
{
    return uri_param_n(&rq->uri, name, n);
}

bool httpd_query_at(const struct httpd_request *rq, size_t n,
                    const char **ret_name, const char **ret_value)
{
    if (n >= rq->uri.n_params)
        return false;
    *ret_name = rq->uri.params[n].name;
    *ret_value = rq->uri.params[n].value;
    return true;
}

const char *httpd_route_name(const struct httpd_request *rq)
{
    return rq->route->name;
}

const char *httpd_route_path(const struct httpd_request *rq)
{
    return rq->route->path;
}

bool httpd_query_only(struct httpd_request *rq, const char *const *names)
{
    for (unsigned i = 0; i < rq->uri.n_params; i++) {
        size_t n = 0;
        while (names[n] && strcmp(names[n], rq->uri.params[i].name) != 0)
            n++;
        if (!names[n]) {
            httpd_fail(rq, 400, "unknown query parameter \"%.64s\"",
                       rq->uri.params[i].name);
            return false;
        }
    }
    return true;
}

const char *httpd_header(const struct httpd_request *rq, const char *name)
{
    return rq->transport->header(rq, name);
}

bool httpd_cookie(const struct httpd_request *rq, const char *name,
                  struct str *out)
{
    const char *header = httpd_header(rq, "Cookie"), *key, *value;
    size_t at = 0;
    if (header && cookies_find(header, name, out))
        return true;
    /* HTTP/2 may have each in a field of its own (RFC 9113, 8.2.3) */
    while (h2_fields_next(&rq->h2.fields, &at, &key, &value))
        if (strcasecmp(key, "cookie") == 0 && cookies_find(value, name, out))
            return true;
    return false;
}

char *httpd_body(struct httpd_request *rq, size_t *ret_size)
{
    *ret_size = rq->body.size;
    return rq->body.data ? rq->body.data : rq->no_body;
}

/* The weight that an Accept header gives to `type`, in thousandths, and
 * where it stands; -1 when it is not named. */
static int accept_weight(const char *accept, const char *type, size_t *ret_at)
{
    size_t size = strlen(type), at = 0;
    for (const char *p = accept; *p; at++) {
        p += strspn(p, " \t,");
        size_t item = strcspn(p, ",");
        if (strncasecmp(p, type, size) == 0 && strchr(" \t,;", p[size])) {
            const char *q = memmem(p, item, "q=", 2);
            *ret_at = at;
            return q ? (int)(strtod(q + 2, NULL) * 1000) : 1000;
        }
        p += item;
    }
    return -1;
}

bool httpd_wants(const struct httpd_request *rq, const char *type)
{
    const char *accept = httpd_header(rq, "Accept");
    size_t type_at = 0, json_at = 0;
    if (!accept)
        return false;
    int wanted = accept_weight(accept, type, &type_at);
    int json = accept_weight(accept, "application/json", &json_at);
    return wanted > 0 &&
           (wanted > json || (wanted == json && type_at < json_at));
}

bool httpd_wants_text(const struct httpd_request *rq)
{
    return httpd_wants(rq, "text/plain");
}

void httpd_set_user(struct httpd_request *rq, const char *user)
{
    (void)snprintf(rq->user, sizeof rq->user, "%s", user);
}

const char *httpd_user(const struct httpd_request *rq)
{
    return rq->user;
}

void httpd_keep(struct httpd_request *rq, void *kept, void (*drop)(void *kept))
{
    if (rq->kept)
        rq->drop_kept(rq->kept);
    rq->kept = kept;
    rq->drop_kept = drop;
}

void *httpd_kept(const struct httpd_request *rq)
{
    return rq->kept;
}

struct str *httpd_reply(struct httpd_request *rq)
{
    return &rq->reply;
}

void httpd_status(struct httpd_request *rq, unsigned status)
{
    rq->status = status;
}

void httpd_content_type(struct httpd_request *rq, const char *type)
{
    rq->type = type;
}

void httpd_close_after(struct httpd_request *rq)
{
    rq->close = true;
}

void httpd_set_header(struct httpd_request *rq, const char *name,
                      const char *value)
{
    if (rq->n_headers == HEADERS_MAX)
        return;
    rq->headers[rq->n_headers].name = name;
    rq->headers[rq->n_headers++].value = xstrdup(value);
}

static void fail(struct httpd_request *rq, unsigned status, const char *fmt,
                 va_list ap)
{
    char text[ERROR_TEXT_MAX];
    (void)vsnprintf(text, sizeof text, fmt, ap);
    rq->status = status;
    rq->type = "application/json";
    str_reset(&rq->reply);
    if (rq->h->config.write_error) {
        rq->h->config.write_error(&rq->reply, status, text);
        return;
    }
    str_add(&rq->reply, "{\"error\":");
    str_add_json(&rq->reply, text);
    str_addf(&rq->reply, ",\"status\":%u}\n", status);
}

void httpd_fail(struct httpd_request *rq, unsigned status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(rq, status, fmt, ap);
    va_end(ap);
}

void request_refuse(struct httpd_request *rq, unsigned status, const char *fmt,
                    ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(rq, status, fmt, ap);
    va_end(ap);
    rq->refused = true;
}

void httpd_refusal(struct httpd_request *rq, const char *word)
{
    rq->refusal = word;
}

void httpd_suspend(struct httpd_request *rq)
{
    rq->suspended = true;
    rq->transport->suspend(rq);
}

void httpd_then(struct httpd_request *rq,
                void (*then)(struct httpd_request *rq, void *arg), void *arg)
{
    rq->then = then;
    rq->lost = NULL;
    rq->then_arg = arg;
}

void httpd_or_else(struct httpd_request *rq, void (*lost)(void *arg))
{
    rq->lost = lost;
}

uint64_t httpd_address(const struct httpd_request *rq)
{
    struct sockaddr_storage a = {0};
    socklen_t size = sizeof a;
    if (getpeername(rq->conn->fd, (struct sockaddr *)&a, &size) != 0)
        return 0;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)&a)->sin6_addr;
    if (a.ss_family == AF_INET)
        return hash_bytes(&v4->sin_addr, sizeof v4->sin_addr) | 1;
    if (a.ss_family != AF_INET6)
        return 0;
    return IN6_IS_ADDR_V4MAPPED(v6) ? hash_bytes(v6->s6_addr + 12, 4) | 1
                                    : hash_bytes(v6->s6_addr, 8) | 1;
}

bool httpd_hung_up(const struct httpd_request *rq)
{
    return conn_hung_up(rq->conn->fd);
}

void httpd_resume(struct httpd_request *rq)
{
    rq->transport->resume(rq);
}
