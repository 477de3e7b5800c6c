/* httpd_request - what a handler of httpd reads of its request, and writes of
 * its reply. */
#ifndef BIGA_LIB_HTTP_HTTPD_REQUEST_H
#define BIGA_LIB_HTTP_HTTPD_REQUEST_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/http/tls.h"

enum httpd_method {
    HTTPD_GET = 1,
    HTTPD_PUT = 2,
    HTTPD_POST = 4,
    HTTPD_DELETE = 8,
    HTTPD_PATCH = 16,
};

/* With the methods of a route: it is also for pages of this server.  Others
 * take from pages only what reads. */
enum { HTTPD_FROM_PAGES = 1 << 8 };

struct httpd_request; /* lives until its reply has been sent */

/* What a handler reads.  Texts are borrowed for the request's life. */
enum httpd_method httpd_method(const struct httpd_request *rq);
const char *httpd_path(const struct httpd_request *rq);
/* The n-th variable part of the path, percent-decoded, never NULL. */
const char *httpd_arg(const struct httpd_request *rq, size_t n);
/* A query parameter, percent-decoded; NULL when absent. */
const char *httpd_query(const struct httpd_request *rq, const char *name);
/* The n-th of those of this name: httpd_config.repeats. */
const char *httpd_query_n(const struct httpd_request *rq, const char *name,
                          size_t n);
/* The n-th parameter of all, as they came; false: there are fewer. */
bool httpd_query_at(const struct httpd_request *rq, size_t n,
                    const char **ret_name, const char **ret_value);
/* Of its route, once that was found: before httpd_config.admit is asked. */
const char *httpd_route_name(const struct httpd_request *rq);
const char *httpd_route_path(const struct httpd_request *rq);
/* True when no parameter but those in `names` (NULL-terminated) is there;
 * otherwise the request has been failed with 400 naming the other one. */
bool httpd_query_only(struct httpd_request *rq, const char *const *names);
/* A request header; NULL when absent. */
const char *httpd_header(const struct httpd_request *rq, const char *name);
/* Append the cookie of that name; false: there is none, or `out` is full. */
bool httpd_cookie(const struct httpd_request *rq, const char *name,
                  struct str *out);
/* The whole body, NUL-terminated (the NUL is not counted); writable, so
 * that a scanner may decode in place. */
char *httpd_body(struct httpd_request *rq, size_t *ret_size);
/* The client by its certificate, which was verified against the listener's
 * client authority at this request's time; NULL without TLS, or when the
 * listener asks for none. */
const struct tls_peer *httpd_peer(const struct httpd_request *rq);
/* Who asks, as httpd_config.admit has found out; "": it has not. */
enum { HTTPD_USER_MAX = 253 };
void httpd_set_user(struct httpd_request *rq, const char *user);
const char *httpd_user(const struct httpd_request *rq);
/* What httpd_config.admit has found out beside that, which is dropped with the
 * request, or for another one; NULL: nothing. */
void httpd_keep(struct httpd_request *rq, void *kept, void (*drop)(void *kept));
void *httpd_kept(const struct httpd_request *rq);
/* Does the client ask for this type, or text/plain, rather than JSON? */
bool httpd_wants(const struct httpd_request *rq, const char *type);
bool httpd_wants_text(const struct httpd_request *rq);

/* What a handler writes: append to the body, then set the status (default
 * 200) and, unless it is JSON, the content type (a constant text).  What is
 * hidden (hidden_text.h) in a HTTPD_TEXT becomes '?', but for newlines and tabs. */
#define HTTPD_TEXT "text/plain; charset=utf-8"
struct str *httpd_reply(struct httpd_request *rq);
void httpd_status(struct httpd_request *rq, unsigned status);
void httpd_content_type(struct httpd_request *rq, const char *type);
/* A reply header, of twelve at most; name is a constant, value is copied. */
void httpd_set_header(struct httpd_request *rq, const char *name,
                      const char *value);

/* The connection ends with this reply, or with the last of those that are on
 * their way on it: the client is to choose anew whom it asks. */
void httpd_close_after(struct httpd_request *rq);

/* Replace the body by {"error":"…","status":N}, or what the listener's
 * write_error makes of it (and set the status). */
void httpd_fail(struct httpd_request *rq, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The status for a body that could not be read: 400, or 503 when there was no
 * memory to. */
static inline unsigned httpd_unread(const struct error *why)
{
    return why->code == ENOMEM ? 503 : 400;
}

/* For the observation: this request was refused for who its client is.  A
 * constant word. */
void httpd_refusal(struct httpd_request *rq, const char *word);

/* Handlers run on the listener's thread and must not block.  One that has to
 * wait calls httpd_suspend(), hands the request to the other thread, and
 * returns; the other thread fills in the reply and calls httpd_resume(),
 * after which it must not touch the request. */
void httpd_suspend(struct httpd_request *rq);
void httpd_resume(struct httpd_request *rq);
/* Whose connection it is, by its address: a number that is the same for the same
 * address, or network of 64 bits of IPv6; 0: not known. */
uint64_t httpd_address(const struct httpd_request *rq);
/* Of a request that is suspended: its client sends no more, and is hardly there
 * any more. */
bool httpd_hung_up(const struct httpd_request *rq);
/* Before suspending: have `then` called with `arg` on the listener's thread
 * once the request is resumed, to write the reply there (or to suspend
 * again). */
void httpd_then(struct httpd_request *rq,
                void (*then)(struct httpd_request *rq, void *arg), void *arg);
/* And have `lost` called with that `arg` instead when libmicrohttpd closes the
 * connection of a client that has gone in place of going on. */
void httpd_or_else(struct httpd_request *rq, void (*lost)(void *arg));

#endif
