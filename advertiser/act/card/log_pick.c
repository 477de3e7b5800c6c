#include "advertiser/act/card/log_pick.h"

#include <string.h>

#include "lib/io/log_line.h"

/* --- times ----------------------------------------------------------------- */

static bool digits(const char **at, const char *end, size_t n, int64_t *ret)
{
    int64_t value = 0;
    for (size_t i = 0; i < n; i++, (*at)++) {
        if (*at == end || **at < '0' || **at > '9')
            return false;
        value = value * 10 + (**at - '0');
    }
    *ret = value;
    return true;
}

static bool mark(const char **at, const char *end, const char *one_of)
{
    if (*at == end || !**at || !strchr(one_of, **at))
        return false;
    (*at)++;
    return true;
}

/* Days from 1970 to that of the Gregorian calendar, whose year begins in
 * March. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400, of_era = year % 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
           719468;
}

/* Whatever is behind nine digits is less than a nanosecond. */
static bool fraction(const char **at, const char *end, int64_t *ret_ns)
{
    int64_t unit = 100000000;
    size_t n = 0;
    *ret_ns = 0;
    if (*at == end || **at != '.')
        return true;
    for ((*at)++; *at < end && **at >= '0' && **at <= '9'; (*at)++, n++) {
        *ret_ns += (**at - '0') * unit;
        unit /= 10;
    }
    return n > 0;
}

static bool offset(const char **at, const char *end, int64_t *ret_s)
{
    int64_t hours, minutes;
    *ret_s = 0;
    if (mark(at, end, "zZ"))
        return true;
    bool west = *at < end && **at == '-';
    if (!mark(at, end, "+-") || !digits(at, end, 2, &hours) ||
        !mark(at, end, ":") || !digits(at, end, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *ret_s = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return true;
}

bool log_time_read(const char *text, size_t size, int64_t *ret_ns)
{
    const char *at = text, *end = text + size;
    int64_t year, month, day, hour, minute, second, ns, east;
    if (!digits(&at, end, 4, &year) || !mark(&at, end, "-") ||
        !digits(&at, end, 2, &month) || !mark(&at, end, "-") ||
        !digits(&at, end, 2, &day) || !mark(&at, end, "tT") ||
        !digits(&at, end, 2, &hour) || !mark(&at, end, ":") ||
        !digits(&at, end, 2, &minute) || !mark(&at, end, ":") ||
        !digits(&at, end, 2, &second) || !fraction(&at, end, &ns) ||
        !offset(&at, end, &east) || at != end)
        return false;
    /* what int64_t has of nanoseconds */
    if (year < 1700 || year > 2200 || month < 1 || month > 12 || day < 1 ||
        day > 31 || hour > 23 || minute > 59 || second > 60)
        return false;
    *ret_ns = ((days_of(year, month, day) * 24 + hour) * 3600 + minute * 60 +
               second - east) *
                  1000000000 +
              ns;
    return true;
}

/* --- lines ----------------------------------------------------------------- */

static bool is_wanted(const struct log_pick *p, const char *text,
                      const struct log_line *line)
{
    int64_t ns;
    return p->want->since_ns == INT64_MIN || line->time == 0 ||
           !log_time_read(text, line->time, &ns) || ns >= p->want->since_ns;
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
