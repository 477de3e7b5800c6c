/* h2rig - an HTTPS listener with HTTP/2 in a place of its own, and a client
 * of HTTP/2 that sends what it is told, frame by frame. */
#ifndef BIGA_TESTS_LIB_HTTP_H2RIG_H
#define BIGA_TESTS_LIB_HTTP_H2RIG_H

#include <nghttp2/nghttp2.h>
#include <stdatomic.h>

#include "lib/http/httpd.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/tlsclient.h"

enum {
    H2_REQUEST_MS = 2000, /* also for replies; while time is virtual */
    H2_BODY_MAX = 4 << 20,
    H2_LARGE = 3 << 20, /* bytes of the reply to /large */
    H2_WAITING_MAX = 512,
};

struct h2_server {
    char *dir;
    char *cert, *key, *ca; /* of the server */
    char *my_cert, *my_key;
    struct cert *authority;
    struct tls *tls;
    struct httpd *httpd;
    atomic_uint observed, refused; /* with a refusal */
    const char *refusal;           /* the last one */
    /* requests of /wait, in the order in which they came (the n-th is at n
     * modulo H2_WAITING_MAX): for the test to resume, whereupon they answer
     * with their query "n" */
    struct httpd_request *_Atomic waiting[H2_WAITING_MAX];
    atomic_uint n_waiting, n_resumed; /* ever; the second is the test's */
};

/* Listens with the routes
 *   GET, POST /       who the client is and how large the body was
 *   GET /large        H2_LARGE bytes
 *   GET /wait?n=…     suspended
 *   GET /close        the connection ends with it
 *   GET /header       what stands in "X-Test" and "Host"
 * for "me", whose certificate holds until `until_s` (0: an hour).  It cuts off
 * who is slow only where time is virtual already: a slow machine is no slow
 * client. */
struct h2_server *h2_server_create(unsigned connections_max, int64_t until_s);
void h2_server_destroy(struct h2_server *s);
struct tls_client_config h2_server_me(const struct h2_server *s);
/* Until so many requests wait. */
void h2_server_await(struct h2_server *s, unsigned n);

/* Virtual time, to end before the server does.  When its loop has found nothing
 * to do for some turns, or has no connection. */
void h2_server_idle(void);
/* Time goes on for `ms`, by steps after each of which it has had a turn. */
void h2_server_pass(int64_t ms);

/* A client of frames: its TLS offers "h2". */
struct h2_client {
    struct tls_client tls;
    nghttp2_hd_inflater *inflater;
    uint8_t type, flags; /* of the last frame that was read */
    int32_t id;
    struct str payload;
    int status; /* of the last HEADERS */
};
/* True when the handshake was done and "h2" chosen.  With `greet` the
 * preface and empty SETTINGS are sent. */
bool h2_client_open(struct h2_client *c, const struct tls_client_config *how,
                    bool greet);
void h2_client_close(struct h2_client *c);
/* False when the server has closed. */
bool h2_client_frame(struct h2_client *c, uint8_t type, uint8_t flags,
                     int32_t id, const void *payload, size_t size);
/* Header fields as literals; more of them by h2_field(). */
void h2_field(struct str *block, const char *name, const char *value);
void h2_request(struct str *block, const char *method, const char *path);
/* A request without a body, as one HEADERS frame. */
bool h2_client_get(struct h2_client *c, int32_t id, const char *path);
/* The next frame; false when the connection has ended. */
bool h2_client_read(struct h2_client *c);
/* Read on to a frame of this type (of this stream, when not -1). */
bool h2_client_read_to(struct h2_client *c, uint8_t type, int32_t id);
/* Read on to GOAWAY; its error code, -1: the connection ended without. */
int h2_client_goaway(struct h2_client *c);
/* Read on: does the server close? */
bool h2_client_closed(struct h2_client *c);

#endif
