/* spdy_frame - SPDY/3.1 as a client speaks it to a container runtime's
 * streaming server: streams with a few headers, bytes both ways.  Pure.
 *
 * Headers go in stored blocks of zlib, which need no dictionary; those that the
 * server sends are not looked at.  Runtimes have no windows: what is not read
 * from the connection holds them back. */
#ifndef BIGA_LIB_STREAM_SPDY_FRAME_H
#define BIGA_LIB_STREAM_SPDY_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    SPDY_HEAD = 8,               /* bytes before each frame's own */
    SPDY_DATA_MAX = 64 << 10,    /* of one frame that we send */
    SPDY_CONTROL_MAX = 64 << 10, /* of one that is not data */
};

/* --- what is sent ---------------------------------------------------------- */

struct spdy_header {
    const char *name, *value; /* the name in lower case */
};
struct spdy_writer {
    bool began; /* some headers were sent */
};
/* Open the stream `id`, odd and higher than all before. */
void spdy_open(struct spdy_writer *w, uint32_t id,
               const struct spdy_header *headers, size_t n, struct str *out);
/* At most SPDY_DATA_MAX bytes; `last`: no more come. */
void spdy_data(uint32_t id, const char *data, size_t size, bool last,
               struct str *out);
void spdy_pong(uint32_t id, struct str *out);

/* --- what comes ------------------------------------------------------------ */

enum spdy_kind {
    SPDY_NOTHING, /* of what was taken there is nothing to say (yet) */
    SPDY_DATA,    /* of `stream`: `data`, and with `last` no more */
    SPDY_REPLY,   /* `stream` was accepted; `last`: it sends nothing */
    SPDY_RESET,   /* `stream` has ended badly */
    SPDY_PING,    /* to be answered, with `stream` for its id */
    SPDY_GOAWAY,  /* the server is about to close */
};
struct spdy_piece {
    enum spdy_kind kind;
    uint32_t stream;
    const char *data; /* in the caller's bytes */
    size_t size;
    bool last;
};
struct spdy_reader {
    unsigned char head[SPDY_HEAD], body[SPDY_HEAD];
    unsigned n_head, n_body;
    uint32_t left; /* bytes of the frame that are to come */
};
/* The first piece: how many bytes it takes, 0 for none at all; -EPROTO: it is
 * another version, or a frame is too long. */
ssize_t spdy_read(struct spdy_reader *r, const char *data, size_t size,
                  struct spdy_piece *ret_piece, struct error *err);

#endif
