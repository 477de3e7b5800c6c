#include "lib/base/rfc3339.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* `n` digits, from `min` to `max`; `*text` is behind them then. */
static bool take_number(const char **text, int n, int min, int max, int *ret)
{
    int number = 0;
    for (int i = 0; i < n; i++, ++*text) {
        if (!isdigit((unsigned char)**text))
            return false;
        number = number * 10 + (**text - '0');
    }
    *ret = number;
    return number >= min && number <= max;
}

static bool take_char(const char **text, char c)
{
    return **text == c && ++*text;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

static bool take_date(const char **text, struct tm *tm)
{
    int year, month;
    if (!take_number(text, 4, 1970, 9999, &year) || !take_char(text, '-') ||
        !take_number(text, 2, 1, 12, &month) || !take_char(text, '-') ||
        !take_number(text, 2, 1, days_in(year, month), &tm->tm_mday))
        return false;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    return true;
}

static bool take_time(const char **text, struct tm *tm)
{
    return take_number(text, 2, 0, 23, &tm->tm_hour) && take_char(text, ':') &&
           take_number(text, 2, 0, 59, &tm->tm_min) && take_char(text, ':') &&
           take_number(text, 2, 0, 60, &tm->tm_sec);
}

/* Nothing, or a point and one digit or more. */
static bool take_fraction(const char **text, int *ret_ms)
{
    int weight = 100;
    *ret_ms = 0;
    if (!take_char(text, '.'))
        return true;
    if (!isdigit((unsigned char)**text))
        return false;
    for (; isdigit((unsigned char)**text); ++*text, weight /= 10)
        *ret_ms += (**text - '0') * weight;
    return true;
}

static bool take_zone(const char **text, int64_t *ret_ms)
{
    int hours, minutes;
    *ret_ms = 0;
    if (take_char(text, 'Z') || take_char(text, 'z'))
        return true;
    int64_t sign = **text == '-' ? -1 : 1;
    if (!take_char(text, '+') && !take_char(text, '-'))
        return false;
    if (!take_number(text, 2, 0, 23, &hours) || !take_char(text, ':') ||
        !take_number(text, 2, 0, 59, &minutes))
        return false;
    *ret_ms = sign * (hours * 60 + minutes) * 60000;
    return true;
}

bool rfc3339_parse(const char *text, int64_t *ret_ms)
{
    struct tm tm = {0};
    int fraction_ms;
    int64_t zone_ms;
    if (!take_date(&text, &tm) ||
        !(take_char(&text, 'T') || take_char(&text, 't') ||
          take_char(&text, ' ')) ||
        !take_time(&text, &tm) || !take_fraction(&text, &fraction_ms) ||
        !take_zone(&text, &zone_ms) || *text)
        return false;
    int64_t ms = (int64_t)timegm(&tm) * 1000 + fraction_ms - zone_ms;
    if (ms < 0 || ms > RFC3339_MAX_MS)
        return false;
    *ret_ms = ms;
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
