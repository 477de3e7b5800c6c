/* error - what went wrong, in words, on the caller's stack.
 *
 * Every fallible function returns 0 or -errno and takes a `struct error *`
 * as its last argument.  On success the error is left untouched; on failure
 * the text says what was wrong, naming the field or file, and no
 * out-parameter has been written.  No heap, so nothing to free. */
#ifndef BIGA_LIB_BASE_ERROR_H
#define BIGA_LIB_BASE_ERROR_H

#include <errno.h>

#define ERROR_TEXT_MAX 512

struct error {
    int code; /* positive errno */
    char text[ERROR_TEXT_MAX];
};

/* Fill `err` (may be NULL) with `code` (positive errno) and a formatted
 * text, cut to ERROR_TEXT_MAX; what is hidden (hidden_text.h) becomes '?', but
 * for newlines and tabs.  Returns -code, so that one can write
 * `return error_set(err, EINVAL, "…")`.  Keeps errno. */
int error_set(struct error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with ": " and strerror(code) appended. */
int error_errno(struct error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "context: " before the text already in `err`.  Returns -err->code
 * (-EINVAL when err is NULL or empty). */
int error_wrap(struct error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
