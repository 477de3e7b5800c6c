#include "cli/base/moment.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "cli/base/cli.h"
#include "cli/base/say.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/rfc3339.h"

enum { DIGITS_MAX = 9, DAY_S = 86400 };

/* "-90s", "90s" or "90s ago" */
static bool parse_ago(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    int64_t n = 0;
    const char *p = text + (*text == '-');
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++) {
        if (p - text > DIGITS_MAX)
            return false;
        n = n * 10 + (*p - '0');
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (*p == units[i].unit && (!p[1] || strcmp(p + 1, " ago") == 0) &&
            n <= now_ms / units[i].ms) {
            *ret_ms = now_ms - n * units[i].ms;
            return true;
        }
    return false;
}

/* The digits that are there are those that strptime() takes. */
static const char *parse_clock(const char *text, struct tm *tm)
{
    if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1]) ||
        text[2] != ':' || !isdigit((unsigned char)text[3]) ||
        !isdigit((unsigned char)text[4]))
        return NULL;
    tm->tm_sec = 0;
    const char *rest = strptime(text, "%H:%M", tm);
    if (rest && *rest == ':' && isdigit((unsigned char)rest[1]) &&
        isdigit((unsigned char)rest[2]))
        rest = strptime(rest, ":%S", tm);
    return rest && !*rest ? rest : NULL;
}

static bool take_local(struct tm *tm, int64_t *ret_s)
{
    struct tm copy = *tm;
    copy.tm_isdst = -1;
    time_t s = mktime(&copy);
    *ret_s = s;
    return s >= 0;
}

static bool parse_local(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    time_t now = (time_t)(now_ms / 1000);
    struct tm tm = {0};
    int64_t s;
    bool dated = strlen(text) > 10 && text[4] == '-' &&
                 (text[10] == ' ' || text[10] == 'T');
    if (!localtime_r(&now, &tm))
        return false;
    if (dated) {
        char date[11];
        memcpy(date, text, 10);
        date[10] = '\0';
        const char *end = strptime(date, "%Y-%m-%d", &tm);
        if (!end || *end)
            return false;
    }
    if (!parse_clock(dated ? text + 11 : text, &tm) || !take_local(&tm, &s))
        return false;
    if (!dated && s > now_ms / 1000) {
        tm.tm_mday--; /* yesterday, also when that was shorter */
        if (!take_local(&tm, &s))
            return false;
    }
    if (s > RFC3339_MAX_MS / 1000)
        return false;
    *ret_ms = s * 1000;
    return true;
}

int moment_parse(const char *text, int64_t now_ms, int64_t *ret_ms,
                 struct error *err)
{
    if (strcmp(text, "now") == 0) {
        *ret_ms = now_ms;
        return 0;
    }
    if (parse_ago(text, now_ms, ret_ms) || rfc3339_parse(text, ret_ms) ||
        parse_local(text, now_ms, ret_ms))
        return 0;
    return error_set(err, EINVAL,
                     "\"%.60s\" is no time; must be one such as 14:05, -2h, "
                     "3d ago, \"2026-11-01 14:05\" or 2026-11-01T14:05:07Z",
                     text);
}

int moment_add_query(struct str *path, const char *key, const char *option,
                     const char *text)
{
    char moment[RFC3339_SIZE];
    struct error err = {0};
    int64_t ms;
    if (!text || !*text)
        return 0;
    if (moment_parse(text, clock_wall_ns() / 1000000, &ms, &err) < 0)
        return cli_usage("%s: %s", option, err.text);
    rfc3339_format(ms, moment);
    cli_add_query(path, key, moment);
    return 0;
}
