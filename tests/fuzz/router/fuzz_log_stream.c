/* The output of biga-card follow, of a card that lies: whatever it is, frames
 * lie in it one behind the other, and only what is counted to its end is
 * whole. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "router/log/log_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned char seen;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log_stream s = {.data = (const char *)data, .size = size};
    struct log_frame frame;
    struct error err = {0};
    size_t at = 0;
    int rc;
    while ((rc = log_stream_next(&s, &frame, &err)) > 0) {
        assert(s.at > at && s.at <= size);
        if (frame.kind == LOG_FRAME_DATA) {
            assert(frame.size > 0 && frame.size <= LOG_PIECE_MAX);
            assert(frame.data > s.data + at);
            assert(frame.data + frame.size == s.data + s.at);
            assert(frame.offset <= INT64_MAX - frame.size);
            for (size_t i = 0; i < frame.size; i++)
                seen = (unsigned char)frame.data[i];
        }
        assert(frame.kind != LOG_FRAME_FAULT ||
               (frame.fault > 0 && frame.fault < 4096));
        at = s.at;
    }
    assert(rc == 0 || (rc == -EPROTO && err.text[0]));
    assert(rc != 0 || (size > 3 && data[size - 1] == '\n'));
    return 0;
}
