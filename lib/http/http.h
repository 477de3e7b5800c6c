/* http - a small HTTP client on libcurl: one kept connection per client,
 * a deadline on every call, a cap on every answer.  Only http and https, also
 * http by a unix socket, no redirects, no proxies from the environment. */
#ifndef BIGA_LIB_HTTP_HTTP_H
#define BIGA_LIB_HTTP_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

struct http_client; /* use from one thread at a time */

/* `base` is like "http://127.0.0.1:8702", a trailing slash is dropped; or
 * "unix:/path" of a socket. */
int http_client_create(const char *base, unsigned timeout_ms,
                       struct http_client **ret_client, struct error *err);
void http_client_destroy(struct http_client *c); /* NULL allowed */

/* The same with everything that HTTPS may need.  All texts are borrowed for
 * the client's life; NULL: not given.  PEM texts win over files; files are
 * read again for each new connection. */
struct http_config {
    const char *base;
    unsigned timeout_ms;
    const char *ca_file, *ca_pem;     /* NULL both: the system's */
    const char *cert_file, *cert_pem; /* ours */
    const char *key_file, *key_pem;
    const char *server_name; /* to expect in the certificate, if not the
                              * host of `base` */
    size_t answer_max;       /* bytes of one answer's body; 0: 64 MiB */
    const atomic_bool *stop; /* once true, a call that is under way ends with
                              * -ECANCELED, within a second; NULL: never */
};
int http_client_open(const struct http_config *config,
                     struct http_client **ret_client, struct error *err);
/* Sent with every call from then on: "Bearer …"; NULL: none. Copied. */
void http_client_set_authorization(struct http_client *c, const char *value);
/* Drop the kept connection: the next call begins a new one (with what the
 * files then say). */
void http_client_reconnect(struct http_client *c);

struct http_answer {
    long status;     /* 200 … */
    struct str body; /* str_fini when done */
};

/* One request; blocks until the whole answer is here or the deadline passed.
 * `body` may be NULL; `accept` NULL means application/json. Any HTTP status
 * is a success (0) here; -errno with a text that names the URL when there
 * was no answer. `ret_answer->body` is reset first and reused. */
int http_call(struct http_client *c, const char *method, const char *path,
              const char *body, size_t body_size, const char *accept,
              struct http_answer *ret_answer, struct error *err);

/* An answer that comes bit by bit and may never end. */
struct http_follow {
    /* Each piece of the body of an answer with status 200; false ends it. */
    bool (*take)(void *ctx, const char *data, size_t size);
    void *ctx;
    unsigned silent_ms; /* -ETIMEDOUT when nothing came for so long; 0: never */
};

/* The same with a content type and a deadline of its own (0: the client's),
 * or followed: then the deadline is that of the connection, and the body of an
 * answer with another status is in the answer. */
struct http_request {
    const char *method, *path, *accept, *content_type;
    const char *body;
    size_t body_size;
    unsigned timeout_ms;
    const struct http_follow *follow; /* NULL: not */
};
int http_send(struct http_client *c, const struct http_request *request,
              struct http_answer *ret_answer, struct error *err);
/* A header of the last answer; NULL when it has none of that name.  Until the
 * next call. */
const char *http_client_header(const struct http_client *c, const char *name);
/* Milliseconds that the last answer's Retry-After asks to wait; 0: none. */
unsigned http_client_retry_ms(const struct http_client *c);
/* How the last failure is to be taken: true when the server surely saw
 * nothing of the request (no connection was made). */
bool http_client_unsent(const struct http_client *c);
/* Was the last request sent more than once?  A connection that was kept ended
 * before an answer came: the first may have been carried out, and the answer is
 * that to the second. */
bool http_client_resent(const struct http_client *c);

/* The "error" (or Kubernetes "message") member of a JSON error body, or the
 * start of the body, as text for a person. */
void http_answer_error(const struct http_answer *a, struct str *out);

#endif
