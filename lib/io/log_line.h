/* log_line - a line of a log file as container runtimes write it:
 * "TIME stdout|stderr F|P TEXT".  Pure. */
#ifndef BIGA_LIB_IO_LOG_LINE_H
#define BIGA_LIB_IO_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct log_line {
    size_t time;  /* bytes of its time, which it begins with */
    size_t head;  /* bytes before the text; 0 when it has another form */
    bool partial; /* the container's line goes on in the next one */
};
/* A whole line, without its end. */
struct log_line log_line_read(const char *line, size_t size);

#endif
