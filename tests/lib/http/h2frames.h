/* h2frames - frames of HTTP/2 as bytes, the wrong ones too. */
#ifndef BIGA_TESTS_LIB_HTTP_H2FRAMES_H
#define BIGA_TESTS_LIB_HTTP_H2FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"

enum frame {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW = 8,
    FRAME_CONTINUATION = 9,
    FRAME_UNKNOWN = 0xbe, /* of a type that everybody ignores */
};
enum { END_STREAM = 1, END_HEADERS = 4 };
enum { H2_CANCEL = 8 };

enum { H2_FRAME_MAX = 16384 };

void h2_add_frame(struct str *out, enum frame type, int flags, int32_t stream,
                  const void *data, size_t size);
/* One of HPACK: a literal without indexing, not compressed. */
void h2_add_field(struct str *out, const char *name, const char *value);
void h2_add_headers(struct str *out, int32_t stream, const char *status,
                    const char *type);
/* `code` NULL: without a grpc-status. */
void h2_add_trailers(struct str *out, int32_t stream, const char *code,
                     const char *text);
/* What comes before a message of gRPC. */
void h2_add_prefix(struct str *out, int flag, size_t size);
/* In frames as large as may be; `flags` are those of the last. */
void h2_add_data(struct str *out, int32_t stream, const struct str *data,
                 int flags);
/* A message of gRPC with its prefix. */
void h2_add_message(struct str *out, int32_t stream, const char *message,
                    size_t size);
/* RST_STREAM, GOAWAY */
void h2_add_code(struct str *out, enum frame type, int32_t stream, int code);
void h2_add_goaway(struct str *out, int32_t last);
/* 64 KiB of fields, in a block of headers or trailers and continuations. */
void h2_add_big_block(struct str *out, int32_t stream, bool trailers);
/* Headers of 16 KiB that stand for 32 MiB. */
void h2_add_bomb(struct str *out, int32_t stream);
/* Headers that ask for a table of 1 GiB. */
void h2_add_table(struct str *out, int32_t stream);

#endif
