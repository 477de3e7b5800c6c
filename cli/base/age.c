#include "cli/base/age.h"

#include <inttypes.h>

#include "lib/io/clock.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

void age_format(int64_t s, char ret_text[AGE_SIZE])
{
    static const struct {
        int64_t below, unit, rest; /* rest: of the smaller unit; 0: none */
        char name, rest_name;
    } forms[] = {
        {2 * MINUTE, 1, 0, 's', 0},    {10 * MINUTE, MINUTE, 1, 'm', 's'},
        {3 * HOUR, MINUTE, 0, 'm', 0}, {8 * HOUR, HOUR, MINUTE, 'h', 'm'},
        {2 * DAY, HOUR, 0, 'h', 0},    {8 * DAY, DAY, HOUR, 'd', 'h'},
        {INT64_MAX, DAY, 0, 'd', 0},
    };
    size_t i = 0;
    while (s >= forms[i].below && forms[i].below < INT64_MAX)
        i++;
    int64_t rest = forms[i].rest ? s % forms[i].unit / forms[i].rest : 0;
    if (rest)
        (void)snprintf(ret_text, AGE_SIZE, "%" PRId64 "%c%" PRId64 "%c",
                       s / forms[i].unit, forms[i].name, rest,
                       forms[i].rest_name);
    else
        (void)snprintf(ret_text, AGE_SIZE, "%" PRId64 "%c", s / forms[i].unit,
                       forms[i].name);
}

void age_add(struct table *t, const char *moment)
{
    int64_t then = clock_parse_utc(moment), now = clock_wall_s();
    int64_t since = now > then ? now - then : 0; /* clocks differ */
    age_add_seconds(t, then < 0 ? -1 : (double)since);
}

void age_add_seconds(struct table *t, double seconds)
{
    char text[AGE_SIZE] = "";
    if (seconds >= 0)
        age_format((int64_t)seconds, text);
    table_add(t, text);
}
