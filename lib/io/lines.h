/* lines - whole lines of a file that somebody else appends to. */
#ifndef BIGA_LIB_IO_LINES_H
#define BIGA_LIB_IO_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lines_ask {
    uint64_t offset; /* beyond its end: it was replaced, and is read from 0 */
    size_t max;      /* bytes; a line that is longer comes in parts */
    bool tail;       /* instead: the last `max` bytes, from a line on */
    bool ended;      /* nobody writes it any more: half a line is one, too */
};
struct lines {
    char *data; /* as they stand there, with their ends; the caller frees it */
    size_t size;
    uint64_t next; /* where to go on */
};
/* 0 or -errno. */
int lines_read(int fd, const struct lines_ask *ask, struct lines *ret_lines);

#endif
