/* h2server_private - what the files of h2server share: h2server.c has the
 * connections and reads, h2server_answer.c writes replies of all kinds. */
#ifndef BIGA_TESTS_LIB_HTTP_H2SERVER_PRIVATE_H
#define BIGA_TESTS_LIB_HTTP_H2SERVER_PRIVATE_H

#include <gnutls/gnutls.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "tests/lib/http/h2server.h"

enum {
    CONNECTIONS_MAX = 1024, /* at a time */
    REPLIES_MAX = 32,
    HEADERS_KEPT = 4096, /* bytes of a request's headers */
    REQUEST_MAX = 1 << 20,
};

struct reply {
    char *method; /* NULL: all others */
    struct str message;
    int code;
    char *text;
};

struct conn {
    struct h2_server *s;
    int fd;
    gnutls_session_t tls; /* NULL: cleartext */
    nghttp2_session *h2;
    pthread_t thread;
    char path[128];
    struct str headers, body;
    int32_t ready;    /* stream whose request is whole; 0 */
    atomic_bool over; /* its thread has ended, or is about to */
};

struct h2_server {
    struct h2_config config;
    gnutls_certificate_credentials_t own;
    int fd;
    int holder; /* of its port, from before it listens on; -1: a path */
    uint16_t port;
    pthread_t thread;
    pthread_mutex_t lock;
    struct reply replies[REPLIES_MAX];
    size_t n_replies;
    unsigned repeat, repeat_ms;
    h2_handler_f *handler;
    void *handler_ctx;
    struct conn *conns[CONNECTIONS_MAX];
    size_t n_conns;
    atomic_int fault;
    atomic_bool stopping;
    atomic_uint connections, calls, answers;
    struct str headers, body; /* of the last call */
};

bool conn_write(struct conn *c, const void *data, size_t size);
/* The request of that stream is there: answer it; false: close. */
bool conn_answer(struct conn *c, int32_t stream);

#endif
