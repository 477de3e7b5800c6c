/* http_curl - a handle of libcurl with the options that all of ours have: no
 * redirects, no proxies, TLS 1.2 at least, and of a struct http_config what
 * HTTPS needs.  For http, and for those who drive handles themselves. */
#ifndef BIGA_LIB_HTTP_HTTP_CURL_H
#define BIGA_LIB_HTTP_HTTP_CURL_H

#include <curl/curl.h>

#include "lib/base/error.h"
#include "lib/http/http.h"

/* A server: its address as given, and what a handle needs to go there. */
struct http_target {
    char *shown; /* the address without a trailing slash, for people */
    char *base;  /* what URLs begin with; differs when the certificate's name
                  * is another than the host's */
    char *host_header;             /* "Host: …" then; else NULL */
    struct curl_slist *connect_to; /* where that name is; else NULL */
    char *unix_path;               /* of a unix socket; else NULL */
};
int http_target_init(struct http_target *t, const struct http_config *config,
                     struct error *err);
void http_target_fini(struct http_target *t);

/* A new handle (curl_easy_cleanup) that borrows `target`, `config` and its
 * texts, and writes what is wrong into `reason` (CURL_ERROR_SIZE bytes). The
 * caller sets URL, method, headers and deadlines.  Sessions are not resumed
 * and authorities not remembered, so that each new connection stands on what
 * the files say then. */
int http_curl_create(const struct http_config *config,
                     const struct http_target *target, char *reason,
                     CURL **ret_curl, struct error *err);

/* Set an option, unless one before it has failed. */
#define HTTP_CURL_SET(code, curl, option, value)                  \
    do {                                                          \
        if ((code) == CURLE_OK)                                   \
            (code) = curl_easy_setopt((curl), (option), (value)); \
    } while (0)

/* Append a line to a list of headers; never NULL. */
struct curl_slist *http_curl_header(struct curl_slist *list, const char *line);

#endif
