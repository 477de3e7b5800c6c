/* ws_hello - a server's part of a WebSocket's handshake (RFC 6455, 4.2).
 * Pure. */
#ifndef BIGA_EXTENDER_RELAY_WS_HELLO_H
#define BIGA_EXTENDER_RELAY_WS_HELLO_H

#include "lib/base/error.h"

enum {
    WS_ACCEPT_SIZE = 29, /* with its NUL */
    WS_OFFER_MAX = 512,  /* bytes of Sec-WebSocket-Protocol */
};

/* What the client sent; NULL: it did not. */
struct ws_ask {
    const char *key, *version, *protocols;
};
struct ws_hello {
    char accept[WS_ACCEPT_SIZE]; /* Sec-WebSocket-Accept */
    const char *protocol;        /* of `known`: the client's first */
};
/* `known` is NULL-terminated.  -EINVAL: it is none, or offers none of these. */
int ws_hello_read(const struct ws_ask *ask, const char *const *known,
                  struct ws_hello *ret_hello, struct error *err);

#endif
