/* grpc_frame - what a reply of gRPC is made of: messages behind their
 * prefixes, and the lines of headers and trailers.  Bytes in, messages and a
 * verdict out; no I/O. */
#ifndef BIGA_LIB_GRPC_GRPC_FRAME_H
#define BIGA_LIB_GRPC_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/grpc/grpc.h"
#include "lib/h2/grpc_prefix.h"
#include "lib/h2/grpc_text.h"

/* Messages as they come, in pieces of any size. */
struct grpc_frames {
    struct str *message;   /* of the caller: the present one, or the only one */
    size_t message_max;    /* bytes */
    grpc_message_f *visit; /* NULL: unary, there is one message */
    void *ctx;
    unsigned char prefix[GRPC_PREFIX];
    size_t n_prefix; /* bytes of it that are here */
    size_t left;     /* bytes of the message that are not */
    size_t n_messages;
};
/* 0; -EPROTO or -EMSGSIZE with a text, before anything was allocated for what
 * a prefix announces; or what `visit` returned. */
int grpc_frames_feed(struct grpc_frames *f, const char *data, size_t size,
                     struct error *err);
/* The reply has ended well: was it whole? */
int grpc_frames_end(const struct grpc_frames *f, struct error *err);

/* Headers, then trailers, or both in one. */
struct grpc_head {
    size_t size; /* bytes of all lines */
    int status;  /* of HTTP; 0: no reply has begun */
    bool grpc;   /* by its content type */
    int code;    /* of grpc-status; -1: none came */
    char message[GRPC_MESSAGE_MAX];
};
void grpc_head_init(struct grpc_head *h);
/* One line as libcurl gives it, with its end: "HTTP/2 200", "name: value". */
int grpc_head_line(struct grpc_head *h, const char *line, size_t size,
                   struct error *err);
/* 0: the reply ended with status OK; -EREMOTEIO: with another one; -EPROTO */
int grpc_head_end(const struct grpc_head *h, struct error *err);

#endif
