#include "model/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Texts repeat what was wrong, and end on a terminal: no escape codes. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\n' && *text != '\t') ||
            *text == 0x7f)
            *text = '?';
}

int error_set(struct error *err, int code, const char *fmt, ...)
{
    if (err) {
        int saved = errno;
        va_list ap;
        va_start(ap, fmt);
        err->code = code;
        (void)vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        make_plain(err->text);
        errno = saved;
    }
    return -code;
}

int error_errno(struct error *err, int code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        err->code = code;
        (void)vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        make_plain(err->text);
        size_t len = strlen(err->text);
        (void)snprintf(err->text + len, sizeof err->text - len, ": %s",
                       strerror(code));
    }
    return -code;
}

int error_wrap(struct error *err, const char *fmt, ...)
{
    if (!err)
        return -EINVAL;

    char text[ERROR_TEXT_MAX];
    va_list ap;
    memcpy(text, err->text, sizeof text);
    va_start(ap, fmt);
    (void)vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    make_plain(err->text);
    size_t len = strlen(err->text);
    (void)snprintf(err->text + len, sizeof err->text - len, ": %s", text);
    return err->code ? -err->code : -EINVAL;
}
