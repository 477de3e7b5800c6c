/* ws_input - the frames of a WebSocket's client (RFC 6455), as a server reads
 * them: bit by bit, so that no message has to fit anywhere.  Pure. */
#ifndef BIGA_LIB_STREAM_WS_INPUT_H
#define BIGA_LIB_STREAM_WS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/stream/ws_frame.h"

enum { WS_CONTROL_MAX = 125 };

struct ws_piece {
    enum ws_kind kind; /* 0: of what was taken there is nothing to say (yet);
                        * WS_BINARY also for what was sent as text */
    const char *data;  /* unmasked, in the caller's bytes or in the reader */
    size_t size;
    bool first, last; /* of a message: it begins here, and ends here */
};
struct ws_input {
    unsigned char head[WS_HEAD_MAX];
    unsigned n_head, need;
    uint64_t left;       /* bytes of the frame that are to come */
    unsigned masked;     /* of its mask, the next byte's place */
    bool whole, message; /* the last frame of its message; one is under way */
    char control[WS_CONTROL_MAX];
    unsigned n_control;
};
/* The first piece: how many bytes it takes, which are unmasked in place.
 * -EPROTO: a frame that no client may send. */
ssize_t ws_input_read(struct ws_input *in, char *data, size_t size,
                      struct ws_piece *ret_piece, struct error *err);

#endif
