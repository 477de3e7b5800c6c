#include "model/pod/patience.h"

#include <string.h>

static int64_t unit_s(char c)
{
    return c == 's' ? 1 : c == 'm' ? 60 : c == 'h' ? 3600 : 0;
}

/* One number and its unit; a number that stands alone is of seconds. */
static bool parse_part(const char **text, bool first, int64_t *sum)
{
    int64_t value = 0;
    const char *p = *text;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value > PATIENCE_MAX_S)
            return false;
    }
    bool alone = first && !*p;
    int64_t unit = alone ? 1 : unit_s(*p);
    *sum += value * unit;
    *text = alone ? p : p + 1;
    return unit > 0 && *sum <= PATIENCE_MAX_S;
}

bool patience_parse(const char *text, int64_t *ret_s)
{
    int64_t sum = 0;
    const char *p = text;
    if (strcmp(text, "never") == 0) {
        *ret_s = PATIENCE_NEVER;
        return true;
    }
    do
        if (!parse_part(&p, p == text, &sum))
            return false;
    while (*p);
    *ret_s = sum;
    return true;
}
