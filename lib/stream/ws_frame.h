/* ws_frame - frames of a WebSocket (RFC 6455, section 5.2), as a client reads
 * and writes them, and what a container runtime says at a command's end in
 * v4.channel.k8s.io.  Bytes in, messages out; no I/O. */
#ifndef BIGA_LIB_STREAM_WS_FRAME_H
#define BIGA_LIB_STREAM_WS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    WS_MESSAGE_MAX = 1 << 20, /* bytes of one message */
    WS_HEAD_MAX = 14,         /* of what stands before it */
    WS_MASK = 4,
};
enum ws_kind {
    WS_TEXT = 1,
    WS_BINARY = 2,
    WS_CLOSE = 8,
    WS_PING = 9,
    WS_PONG = 10,
};

struct ws_message {
    enum ws_kind kind;
    const char *data; /* in the caller's bytes */
    size_t size;
};
/* The first frame of a server: how many bytes it takes, 0 when it is not all
 * there, -EMSGSIZE for one over WS_MESSAGE_MAX, or -EPROTO: it is masked, not
 * whole (runtimes send each message in one frame), or of a kind that is not
 * known. */
ssize_t ws_frame_read(const char *data, size_t size,
                      struct ws_message *ret_message, struct error *err);
/* Append one of a client, whole and masked.  `size` <= WS_MESSAGE_MAX. */
void ws_frame_write(enum ws_kind kind, const unsigned char mask[WS_MASK],
                    const char *data, size_t size, struct str *out);

/* What stands before a message of either side, which is to follow: of a client
 * its mask first. */
void ws_frame_head(enum ws_kind kind, bool masked, size_t size,
                   struct str *out);

#endif
