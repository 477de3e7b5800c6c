#include "advertiser/act/card/log_pick.h"

#include <string.h>

#include "lib/io/log_line.h"
#include "lib/io/rfc3339.h"

/* --- lines ----------------------------------------------------------------- */

static bool is_wanted(const struct log_pick *p, const char *text,
                      const struct log_line *line)
{
    int64_t ns;
    return p->want->since_ns == INT64_MIN || line->time == 0 ||
           !rfc3339_parse_ns(text, line->time, &ns) || ns >= p->want->since_ns;
}

static void give(struct log_pick *p, const char *data, size_t size,
                 struct str *out)
{
    int64_t limit = p->want->limit_bytes;
    uint64_t left = limit < 0 ? UINT64_MAX : (uint64_t)limit - p->given;
    size_t n = size < left ? size : (size_t)left;
    str_add_n(out, data, n);
    p->given += n;
    p->full = limit >= 0 && p->given >= (uint64_t)limit;
}

static void take_line(struct log_pick *p, const char *text, size_t size,
                      bool ends, struct str *out)
{
    struct log_line line = log_line_read(text, size);
    bool goes_on = line.head ? line.partial : !ends;
    if (!p->inside) {
        p->wanted = p->skip == 0 && is_wanted(p, text, &line);
        if (p->skip > 0)
            p->skip--;
        if (p->wanted && p->want->timestamps && line.time) {
            give(p, text, line.time, out);
            give(p, " ", 1, out);
        }
    }
    if (p->wanted) {
        give(p, text + line.head, size - line.head, out);
        if (!goes_on)
            give(p, "\n", 1, out);
    }
    p->inside = goes_on;
}

void log_pick_lines(struct log_pick *p, const char *lines, size_t size,
                    struct str *out)
{
    p->full = p->want->limit_bytes >= 0 &&
              p->given >= (uint64_t)p->want->limit_bytes;
    for (size_t at = 0; at < size && !p->full;) {
        const char *end = memchr(lines + at, '\n', size - at);
        size_t n = end ? (size_t)(end - lines) - at : size - at;
        take_line(p, lines + at, n, end != NULL, out);
        at += n + (end != NULL);
    }
}

uint64_t log_pick_count(const char *lines, size_t size)
{
    uint64_t n = 0;
    bool inside = false;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(lines + at, '\n', size - at);
        size_t len = end ? (size_t)(end - lines) - at : size - at;
        struct log_line line = log_line_read(lines + at, len);
        n += !inside;
        inside = line.head ? line.partial : !end;
        at += len + (end != NULL);
    }
    return n;
}
