/* stream_word - a last word to the client of a stream that we end, put between
 * the frames that the remote sends.  Pure.
 * What the remote sends is followed only as far as the lengths of its frames.
 * Over SPDY/3.1 the word is what client-go reads from the error stream, which
 * it opens first; then GOAWAY.  Over WebSocket it is a message of the error
 * channel; then a close frame (1001).  Within a frame nothing can be said. */
#ifndef BIGA_ROUTER_STREAM_STREAM_WORD_H
#define BIGA_ROUTER_STREAM_STREAM_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "lib/stream/stream_status.h"

enum { STREAM_WORD_MAX = 4 << 10 }; /* bytes of all that is said */

struct stream_word {
    enum { STREAM_WORD_NONE, STREAM_WORD_SPDY, STREAM_WORD_WS } frames;
    /* text on the error stream or channel: none, plain, Kubernetes' Status */
    enum { STREAM_WORD_MUTE, STREAM_WORD_PLAIN, STREAM_WORD_STATUS } form;
    bool base64;
    unsigned char start[14]; /* of a frame, until that much is there */
    unsigned n_start;
    uint64_t left; /* bytes of the frame that are to come */
    bool fragment; /* WebSocket: a message is not complete */
    bool open;     /* SPDY: the error stream can be written to */
    bool told;     /* and the remote has done so */
    bool ended;    /* nothing may follow */
};
/* `upgrade` and `protocol` as the answer had them. */
void stream_word_init(struct stream_word *w, const char *upgrade,
                      const char *protocol);
/* These bytes went to the client. */
void stream_word_pass(struct stream_word *w, const void *data, size_t size);
/* Has the remote not said how it ended, and can that still be told? */
bool stream_word_is_owed(const struct stream_word *w);
/* Append what says `text`; nothing when it cannot be said now. */
void stream_word_say(const struct stream_word *w, const char *text,
                     struct str *out);

#endif
