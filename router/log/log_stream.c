#include "router/log/log_stream.h"

#include <string.h>

/* The number at `*text`, which ends with `end`; steps behind that. */
static bool number_take(const char **text, char end, uint64_t max,
                        uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9'; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (at == *text || *at != end)
        return false;
    *text = at + 1;
    *ret_value = value;
    return true;
}

static int broken(const struct log_stream *s, const char *what,
                  struct error *err)
{
    return error_set(err, EPROTO, "biga-card follow: byte %zu of %zu: %s",
                     s->at, s->size, what);
}

static int take_data(struct log_stream *s, const char *at,
                     struct log_frame *frame, struct error *err)
{
    uint64_t size;
    if (!number_take(&at, ' ', INT64_MAX - LOG_PIECE_MAX, &frame->offset) ||
        !number_take(&at, '\n', LOG_PIECE_MAX, &size) || size == 0)
        return broken(s, "a frame of data must be \"d TAG OFFSET SIZE\"", err);
    if (size > s->size - (size_t)(at - s->data))
        return broken(s, "a frame is cut off", err);
    frame->kind = LOG_FRAME_DATA;
    frame->data = at;
    frame->size = (size_t)size;
    s->at = (size_t)(at - s->data) + frame->size;
    return 1;
}

static int take_word(struct log_stream *s, char what, const char *at,
                     struct log_frame *frame, struct error *err)
{
    uint64_t value;
    bool fault = what == 'm';
    if (!number_take(&at, '\n', fault ? 4095 : INT64_MAX, &value) ||
        (fault && value == 0))
        return broken(s, "a frame must be \"e TAG OFFSET\" or \"m TAG ERRNO\"",
                      err);
    frame->kind = fault ? LOG_FRAME_FAULT : LOG_FRAME_END;
    frame->offset = fault ? 0 : value;
    frame->fault = fault ? (int)value : 0;
    s->at = (size_t)(at - s->data);
    return 1;
}

/* The last frame counts what came before it: runtimes drop what is too much
 * for them, without a word. */
static int take_last(struct log_stream *s, const char *at, struct error *err)
{
    uint64_t size;
    if (!number_take(&at, '\n', INT64_MAX, &size) || size != s->at ||
        (size_t)(at - s->data) != s->size)
        return broken(s, "the output is not whole", err);
    return 0;
}

int log_stream_next(struct log_stream *s, struct log_frame *ret_frame,
                    struct error *err)
{
    const char *at = s->data + s->at;
    size_t left = s->size - s->at;
    uint64_t tag;
    struct log_frame frame = {0};
    /* numbers end at a line's end: nothing is read behind it */
    if (!memchr(at, '\n', left < LOG_HEAD_MAX ? left : LOG_HEAD_MAX))
        return broken(s, "no frame begins there", err);
    char what = at[0];
    if (what == '\n' || at[1] != ' ')
        return broken(s, "no frame begins there", err);
    at += 2;
    if (what == 'z')
        return take_last(s, at, err);
    if ((what != 'd' && what != 'e' && what != 'm') ||
        !number_take(&at, ' ', UINT32_MAX, &tag))
        return broken(s, "no frame begins there", err);
    frame.tag = (uint32_t)tag;
    int rc = what == 'd' ? take_data(s, at, &frame, err)
                         : take_word(s, what, at, &frame, err);
    if (rc == 1)
        *ret_frame = frame;
    return rc;
}
