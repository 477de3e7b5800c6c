/* http - a small HTTP client on libcurl: one kept connection per client,
 * a deadline on every call, a cap on every answer.  Only http and https, no
 * redirects, no proxies from the environment. */
#ifndef BIGA_IO_HTTP_H
#define BIGA_IO_HTTP_H

#include <stddef.h>

#include "model/base/error.h"
#include "model/base/str.h"

struct http_client; /* use from one thread at a time */

/* `base` is like "http://127.0.0.1:8702"; a trailing slash is dropped. */
int http_client_create(const char *base, unsigned timeout_ms,
                       struct http_client **ret_client, struct error *err);
void http_client_destroy(struct http_client *c); /* NULL allowed */

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

/* The "error" (or Kubernetes "message") member of a JSON error body, or the
 * start of the body, as text for a person. */
void http_answer_error(const struct http_answer *a, struct str *out);

#endif
