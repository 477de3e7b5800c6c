#include <strings.h>

#include "lib/base/mem.h"
#include "lib/http/httpd_private.h"

enum {
    BODY_FIRST = 256 << 10, /* reserved at once on a Content-Length's word */
};

/* --- a request's head ----------------------------------------------------- */

static unsigned method_parse(const char *method, enum httpd_method *ret)
{
    static const struct {
        const char *name;
        enum httpd_method method;
    } methods[] = {
        {"GET", HTTPD_GET}, {"HEAD", HTTPD_GET},      {"POST", HTTPD_POST},
        {"PUT", HTTPD_PUT}, {"DELETE", HTTPD_DELETE}, {"PATCH", HTTPD_PATCH},
    };
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, method) == 0)
            return *ret = methods[i].method;
    return 0;
}

static void allow_format(unsigned methods, char *text, size_t size)
{
    (void)snprintf(text, size, "%s%s%s%s%s",
                   methods & HTTPD_GET ? "GET, HEAD, " : "",
                   methods & HTTPD_PUT ? "PUT, " : "",
                   methods & HTTPD_POST ? "POST, " : "",
                   methods & HTTPD_DELETE ? "DELETE, " : "",
                   methods & HTTPD_PATCH ? "PATCH, " : "");
    size_t len = strlen(text);
    if (len >= 2)
        text[len - 2] = '\0';
}

static void route_find(struct httpd_request *rq, const char *method)
{
    const struct httpd_config *config = &rq->h->config;
    unsigned wanted = method_parse(method, &rq->method), allowed = 0;
    for (size_t i = 0; i < config->n_routes; i++) {
        const struct httpd_route *route = &config->routes[i];
        if ((route->methods & wanted) == 0 && (route->methods & ~allowed) == 0)
            continue;
        if (!uri_match(&rq->uri, route->path, rq->args))
            continue;
        if (route->methods & wanted) {
            rq->route = route;
            return;
        }
        allowed |= route->methods;
    }
    if (!allowed) {
        request_refuse(rq, 404, "there is nothing at \"%.256s\"", rq->uri.path);
        return;
    }
    char allow[64];
    allow_format(allowed, allow, sizeof allow);
    request_refuse(rq, 405, "method %.16s is not allowed here, only %s", method,
                   allow);
    httpd_set_header(rq, "Allow", allow);
}

/* A length that cannot be told for sure could be told otherwise by a proxy
 * in front of us; MHD has seen to it that a single length is a number. */
static bool framing_bad(const struct head *head)
{
    return head->n_lengths > 1 || head->n_encodings > 1 ||
           (head->n_encodings && (head->n_lengths || head->old)) ||
           (head->encoding && strcasecmp(head->encoding, "chunked") != 0);
}

/* A name or an address, and perhaps a port (RFC 9110, 7.2). */
static bool host_is_good(const char *host)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%";
    const char *p = host;
    if (*p == '[') {
        p += 1 + strspn(p + 1, "0123456789abcdefABCDEF:.");
        if (*p++ != ']')
            return false;
    } else {
        p += strspn(p, letters);
    }
    if (*p == ':')
        p += 1 + strspn(p + 1, "0123456789");
    return !p[strspn(p, " \t")];
}

/* Refuse a head that others may have understood otherwise. */
static bool head_is_clear(struct httpd_request *rq, const struct head *head)
{
    rq->at_once = true;
    if (head->layout.fault)
        request_refuse(rq, 400, "%s%s%.64s%s", head->layout.fault,
                       *head->layout.near ? ", after the header \"" : "",
                       head->layout.near, *head->layout.near ? "\"" : "");
    else if (framing_bad(head))
        request_refuse(rq, 400,
                       "the length of the body is not stated in one "
                       "way: one Content-Length, or chunked");
    else if (head->n_hosts > 1)
        request_refuse(rq, 400, "there are %u Host headers, must be one",
                       head->n_hosts);
    else if (head->host && !host_is_good(head->host))
        request_refuse(rq, 400,
                       "Host is \"%.128s\", must be a name or an address, and "
                       "perhaps a port",
                       head->host);
    else if (head->authority && !host_is_good(head->authority))
        request_refuse(rq, 400,
                       ":authority is \"%.128s\", must be a name or an "
                       "address, and perhaps a port",
                       head->authority);
    else if (head->host && head->authority &&
             strcasecmp(head->host, head->authority) != 0)
        request_refuse(rq, 400, "Host is \"%.128s\", :authority \"%.128s\"",
                       head->host, head->authority);
    else
        rq->at_once = false;
    return !rq->at_once;
}

/* Is it a page of this server, as the browser says? */
static bool is_own_page(const struct httpd_request *rq, const struct head *head)
{
    const char *host = head->host ? head->host : head->authority;
    const char *at = strstr(head->origin, "://");
    return rq->route && rq->route->methods & HTTPD_FROM_PAGES && host && at &&
           strcasecmp(at + 3, host) == 0;
}

void request_judge(struct httpd_request *rq, const char *method,
                   const struct head *head)
{
    size_t length = head->length ? strtoull(head->length, NULL, 10) : 0;
    if (!rq->refused && !head_is_clear(rq, head))
        return;
    if (!rq->refused && rq->uri_fault)
        request_refuse(rq, rq->uri_fault == -ENAMETOOLONG ? 414 : 400, "%s",
                       rq->err.text);
    else if (!rq->refused && request_verify(rq) && request_trust(rq))
        route_find(rq, method);
    size_t max = rq->route ? rq->route->body_max : 0;
    /* only browsers say where a page came from, and hardly a page of ours
     * changes anything; a name that a foreign page has pointed at us proves
     * nothing */
    if (!rq->refused && rq->method != HTTPD_GET && head->origin &&
        !is_own_page(rq, head))
        request_refuse(rq, 403, "requests from pages of %.128s are not allowed",
                       head->origin);
    if (!rq->refused && length > max)
        request_refuse(rq, 413, "body of %zu bytes; at most %zu are accepted",
                       length, max);
    if (rq->refused && length > max && length - max > DROP_MAX)
        rq->at_once = true;
    rq->body.max = max;
    rq->length = length;
    if (!rq->refused && length)
        (void)request_reserve(rq, length < BODY_FIRST ? length : BODY_FIRST);
}
