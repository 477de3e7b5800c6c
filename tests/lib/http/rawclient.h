/* rawclient - a client that can misbehave: it sends what it is told, byte by
 * byte if need be, and reads replies one at a time.  Every read gives up
 * after RAW_PATIENCE_MS.  And a socket for servers that do. */
#ifndef BIGA_TESTS_LIB_HTTP_RAWCLIENT_H
#define BIGA_TESTS_LIB_HTTP_RAWCLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

enum { RAW_PATIENCE_MS = 300000 };

struct raw_reply {
    int status;      /* 0: closed or timed out before a whole reply */
    struct str head; /* status line and headers */
    struct str body;
};
void raw_reply_fini(struct raw_reply *r);

/* A connection to the loopback address; aborts when it cannot be had. */
int raw_connect(uint16_t port);
/* One that listens there, and does nothing else; `*port` 0: on a free one,
 * which it is set to.  Aborts when it cannot be had. */
int raw_listen(uint16_t *port);
/* One that does not listen: as long as it is open, nobody is given this port
 * who does not ask for it by number, as raw_listen() beside it may. */
int raw_bind(uint16_t *port);
/* One that has a port on which nobody listens, and nobody else will while it
 * is open: who connects there is refused.  Aborts as well. */
int raw_nowhere(uint16_t *ret_port);
/* False when the peer has closed. */
bool raw_send_n(int fd, const void *data, size_t size);
bool raw_send(int fd, const char *text);
/* The next reply; its buffers are reset first.  With `no_body` (HEAD) none
 * is read. Returns its status. */
int raw_read(int fd, bool no_body, struct raw_reply *ret_reply);
/* True when the peer closes within `ms`; what comes until then is lost. */
bool raw_closed_within(int fd, int ms);
/* A header's value in the caller's buffer, "" when absent. */
const char *raw_header(const struct raw_reply *r, const char *name,
                       char *buffer, size_t size);

/* One request on a connection of its own; body NULL: none.  `headers` are
 * whole lines with \r\n, or "". */
int raw_call(uint16_t port, const char *method, const char *target,
             const char *headers, const char *body,
             struct raw_reply *ret_reply);

#endif
