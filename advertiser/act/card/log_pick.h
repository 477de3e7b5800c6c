/* log_pick - the lines of a log that somebody wants, of a file as the runtime
 * writes it ("TIME stdout|stderr F|P TEXT"): from a time on, without the first
 * ones, with or without their times, so many bytes.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_CARD_LOG_PICK_H
#define BIGA_ADVERTISER_ACT_CARD_LOG_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

struct log_want {
    int64_t since_ns;    /* since 1970; INT64_MIN: all */
    int64_t tail_lines;  /* -1: all */
    int64_t limit_bytes; /* -1: all */
    bool timestamps;     /* before each line */
};
#define LOG_WANT_ALL    \
    ((struct log_want){ \
        .since_ns = INT64_MIN, .tail_lines = -1, .limit_bytes = -1})

struct log_pick {
    const struct log_want *want;
    uint64_t skip;  /* lines that are left out first */
    uint64_t given; /* bytes */
    bool inside;    /* the last line goes on in the next one, */
    bool wanted;    /* and it is wanted */
    bool full;      /* limit_bytes are given */
};
/* Lines with their ends, the last of which may lack its own: it goes on with
 * what comes next, or nothing does.  Appends to `out`. */
void log_pick_lines(struct log_pick *p, const char *lines, size_t size,
                    struct str *out);

/* How many lines these are, as a container wrote them: pieces count once. */
uint64_t log_pick_count(const char *lines, size_t size);

#endif
