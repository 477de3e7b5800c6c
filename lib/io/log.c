#include "lib/io/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/text.h"

enum { LINE_MAX_BYTES = 16384, VALUE_MAX_BYTES = 2048 };

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static _Atomic int threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

enum log_level log_level(void)
{
    return (enum log_level)atomic_load_explicit(&threshold,
                                                memory_order_relaxed);
}

int log_level_parse(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (strcmp(text, level_names[i]) == 0)
            return (int)i;
    return -1;
}

static void add_time(struct str *line)
{
    struct timespec now;
    struct tm utc;
    char text[32];
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail on Linux */
    if (!gmtime_r(&now.tv_sec, &utc))
        memset(&utc, 0, sizeof utc);
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    text[n] = '\0';
    str_addf(line, "ts=%s.%03dZ", text, (int)(now.tv_nsec / 1000000));
}

static bool is_plain(const char *value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\')
            return false;
    }
    return size > 0;
}

static void add_value(struct str *line, const char *value)
{
    size_t size = value ? strnlen(value, VALUE_MAX_BYTES) : 0;
    if (is_plain(value, size))
        str_add_n(line, value, size);
    else
        text_quote_n(value ? value : "", size, line);
}

void log_event(enum log_level level, const char *event, ...)
{
    cleanup_str struct str line = STR_INIT(LINE_MAX_BYTES);
    const char *key;
    va_list ap;

    if (level < log_level())
        return;
    add_time(&line);
    str_addf(&line, " level=%s event=%s", level_names[level], event);
    va_start(ap, event);
    while ((key = va_arg(ap, const char *))) {
        const char *value = va_arg(ap, const char *);
        str_addf(&line, " %s=", key);
        add_value(&line, value);
    }
    va_end(ap);
    line.max = line.size + 1; /* room for the end, even when cut */
    line.overflow = false;
    str_add_c(&line, '\n');
    /* one call, so that lines of several threads do not mix; nobody is left
     * to tell when stderr is gone */
    (void)fwrite(line.data, 1, line.size, stderr);
}
