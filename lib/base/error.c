#include "lib/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hidden_text.h"

/* Texts repeat what was wrong, and end on a terminal. */
static void make_plain(char *text)
{
    text[hidden_text_blank(text, strlen(text))] = '\0';
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
        size_t len = strlen(err->text);
        (void)snprintf(err->text + len, sizeof err->text - len, ": %s",
                       strerror(code));
        make_plain(err->text);
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
    size_t len = strlen(err->text);
    (void)snprintf(err->text + len, sizeof err->text - len, ": %s", text);
    make_plain(err->text);
    return err->code ? -err->code : -EINVAL;
}
