#include "lib/io/rfc3339.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };
#define NS_MAX_S (INT64_MAX / NS_PER_S - 1)

struct cursor {
    const char *at, *end;
};

/* `n` digits, from `min` to `max`. */
static bool take_number(struct cursor *c, int n, int min, int max, int *ret)
{
    int number = 0;
    for (int i = 0; i < n; i++, c->at++) {
        if (c->at == c->end || *c->at < '0' || *c->at > '9')
            return false;
        number = number * 10 + (*c->at - '0');
    }
    *ret = number;
    return number >= min && number <= max;
}

static bool take_char(struct cursor *c, const char *one_of)
{
    if (c->at == c->end || !*c->at || !strchr(one_of, *c->at))
        return false;
    c->at++;
    return true;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* Days from 1970 to that of the Gregorian calendar, whose year begins in
 * March: timegm() would take a lock for each line of a log. */
static int64_t days_of(int year, int month, int day)
{
    year -= month <= 2;
    int era = year / 400, of_era = year % 400;
    int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return (int64_t)era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 +
           of_year - 719468;
}

static bool take_date(struct cursor *c, int64_t *ret_days)
{
    int year, month, day;
    if (!take_number(c, 4, 1970, 9999, &year) || !take_char(c, "-") ||
        !take_number(c, 2, 1, 12, &month) || !take_char(c, "-") ||
        !take_number(c, 2, 1, days_in(year, month), &day))
        return false;
    *ret_days = days_of(year, month, day);
    return true;
}

static bool take_time(struct cursor *c, int *ret_s)
{
    int hour, minute, second;
    if (!take_number(c, 2, 0, 23, &hour) || !take_char(c, ":") ||
        !take_number(c, 2, 0, 59, &minute) || !take_char(c, ":") ||
        !take_number(c, 2, 0, 60, &second))
        return false;
    *ret_s = hour * 3600 + minute * 60 + second;
    return true;
}

/* Nothing, or a point and one digit or more. */
static bool take_fraction(struct cursor *c, int *ret_ns)
{
    int weight = NS_PER_S / 10, n = 0;
    *ret_ns = 0;
    if (!take_char(c, "."))
        return true;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++, n++) {
        *ret_ns += (*c->at - '0') * weight;
        weight /= 10;
    }
    return n > 0;
}

static bool take_zone(struct cursor *c, int *ret_s)
{
    int hours, minutes;
    *ret_s = 0;
    if (take_char(c, "Zz"))
        return true;
    bool west = c->at < c->end && *c->at == '-';
    if (!take_char(c, "+-") || !take_number(c, 2, 0, 23, &hours) ||
        !take_char(c, ":") || !take_number(c, 2, 0, 59, &minutes))
        return false;
    *ret_s = (hours * 60 + minutes) * (west ? -60 : 60);
    return true;
}

static bool read_moment(const char *text, size_t size, int64_t *ret_s,
                        int *ret_ns)
{
    struct cursor c = {text, text + size};
    int64_t days;
    int second, zone_s;
    if (!take_date(&c, &days) || !take_char(&c, "Tt ") ||
        !take_time(&c, &second) || !take_fraction(&c, ret_ns) ||
        !take_zone(&c, &zone_s) || c.at != c.end)
        return false;
    *ret_s = days * 86400 + second - zone_s;
    return *ret_s >= 0;
}

bool rfc3339_parse(const char *text, int64_t *ret_ms)
{
    int64_t s;
    int ns;
    if (!read_moment(text, strlen(text), &s, &ns) || s > RFC3339_MAX_MS / 1000)
        return false;
    *ret_ms = s * 1000 + ns / 1000000;
    return true;
}

bool rfc3339_parse_ns(const char *text, size_t size, int64_t *ret_ns)
{
    int64_t s;
    int ns;
    if (!read_moment(text, size, &s, &ns) || s > NS_MAX_S)
        return false;
    *ret_ns = s * NS_PER_S + ns;
    return true;
}

void rfc3339_format(int64_t ms, char ret_text[RFC3339_SIZE])
{
    struct tm tm = {0};
    ms = ms < 0 ? 0 : ms > RFC3339_MAX_MS ? RFC3339_MAX_MS : ms;
    time_t s = (time_t)(ms / 1000);
    char whole[RFC3339_SIZE - 8];
    (void)gmtime_r(&s, &tm); /* of these years it cannot fail */
    (void)strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(ret_text, RFC3339_SIZE, "%s.%03dZ", whole, (int)(ms % 1000));
}
