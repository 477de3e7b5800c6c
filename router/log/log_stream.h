/* log_stream - what `biga-card follow` has written, frame by frame (its form
 * stands in card/follow.h).  Bytes of a card, which is hostile: no number, size
 * or order of them is believed.  Pure. */
#ifndef BIGA_ROUTER_LOG_LOG_STREAM_H
#define BIGA_ROUTER_LOG_LOG_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    LOG_HEAD_MAX = 64,         /* characters of a frame's head */
    LOG_PIECE_MAX = 512 << 10, /* bytes of one frame */
};
enum log_frame_kind {
    LOG_FRAME_DATA,  /* bytes of a file */
    LOG_FRAME_END,   /* all was given, and nobody writes it any more */
    LOG_FRAME_FAULT, /* the file cannot be read */
};
struct log_frame {
    enum log_frame_kind kind;
    uint32_t tag;
    uint64_t offset;  /* of its first byte; of the end */
    const char *data; /* borrowed from what is read */
    size_t size;      /* 1 to LOG_PIECE_MAX */
    int fault;        /* an errno: 1 to 4095 */
};
/* A walk through the output of one round; zeroed but for data and size. */
struct log_stream {
    const char *data;
    size_t size, at;
};
/* 1: a frame.  0: there are no more, and the output is whole.  -EPROTO: it is
 * cut off, or against the form; the text says where. */
int log_stream_next(struct log_stream *s, struct log_frame *ret_frame,
                    struct error *err);

#endif
