/* rpcclient - a client of gRPC on a unix socket that shows what came, stream by
 * stream, and can misbehave: reads late, resets, sends any bytes.  Of one
 * thread; what takes longer than RPC_PATIENCE_MS fails the test. */
#ifndef BIGA_TESTS_LIB_GRPC_RPCCLIENT_H
#define BIGA_TESTS_LIB_GRPC_RPCCLIENT_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "lib/base/str.h"
#include "lib/h2/h2_fields.h"

enum { RPC_PATIENCE_MS = 60000, RPC_TEXT_MAX = 8192 };

struct rpc_client {
    int fd;
    nghttp2_session *h2;
    bool closed; /* by the server */
    bool deaf;   /* it takes no more; what it said may still be here */
    bool goaway; /* came, with: */
    uint32_t goaway_code;
    bool late;   /* no window is given back */
    bool silent; /* nothing is read at all */
};

struct rpc_call {
    struct rpc_client *client;
    int32_t id;
    struct str out; /* with prefixes */
    size_t n_out;
    bool out_ended, waits;
    struct h2_fields head, trailers;
    struct str in; /* with prefixes */
    bool closed;
    uint32_t reset; /* its code */
};

/* Aborts when there is no connection. */
struct rpc_client *rpc_open(const char *path);
void rpc_close(struct rpc_client *c);

/* `more` (NULL: none) are further headers, "name", "value", …, NULL.  Zeroes
 * `call`, which stays where it is until rpc_end(). */
void rpc_begin(struct rpc_client *c, struct rpc_call *call, const char *method,
               const char *const *more);
void rpc_send(struct rpc_call *call, const void *message, size_t size);
void rpc_send_raw(struct rpc_call *call, const void *data, size_t size);
void rpc_send_end(struct rpc_call *call);
void rpc_reset(struct rpc_call *call, uint32_t code);
void rpc_end(struct rpc_call *call); /* frees */

/* Send and read what there is, after a wait of `ms` at most. */
void rpc_turn(struct rpc_client *c, int ms);
/* Until the call has closed; its code, -1: there was none. */
int rpc_wait(struct rpc_call *call);
/* Until so many bytes came. */
void rpc_wait_bytes(struct rpc_call *call, size_t size);
int rpc_code(const struct rpc_call *call);
/* grpc-message, decoded, until the next one. */
const char *rpc_text(const struct rpc_call *call);

/* One unary call: its code; the message, without its prefix. */
int rpc_unary(struct rpc_client *c, const char *method, const void *message,
              size_t size, struct str *ret_reply);

#endif
