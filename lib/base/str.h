/* str - a text that grows, with a cap that it never exceeds.
 *
 * When an addition would pass `max`, nothing more is added and `overflow`
 * is set; the caller checks it once, at the end.  The same happens to a text
 * that is `soft` when its memory cannot be had; others end the process.  The
 * text is always NUL-terminated once anything was added. */
#ifndef BIGA_LIB_BASE_STR_H
#define BIGA_LIB_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct str {
    char *data;
    size_t size; /* bytes in use, without the final NUL */
    size_t cap;
    size_t max;
    bool overflow;
    bool soft;
    bool starved; /* the overflow is one of memory */
};

#define STR_MAX_DEFAULT ((size_t)256 << 20)

void str_init(struct str *s, size_t max);
void str_fini(struct str *s);              /* frees; NULL allowed */
void str_reset(struct str *s);             /* empties, keeps the buffer */
void str_drop(struct str *s, size_t n);    /* its first n bytes, of size */
char *str_steal(struct str *s);            /* caller frees; never NULL */
const char *str_text(const struct str *s); /* "" when empty */

/* Make room for `size` more bytes.  Returns false (and sets overflow) past
 * the cap. */
bool str_reserve(struct str *s, size_t size);

void str_add(struct str *s, const char *text);
void str_add_n(struct str *s, const char *data, size_t size);
/* Add all of `from`, which is empty then; where `to` was, without a copy. */
void str_move(struct str *to, struct str *from);
void str_add_c(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The digits of a number, which no NUL follows; returns how many. */
enum { STR_DIGITS_MAX = 20 };
size_t str_digits(uint64_t value, char ret_digits[STR_DIGITS_MAX]);
void str_add_u64(struct str *s, uint64_t value);
void str_add_i64(struct str *s, int64_t value);

/* Add `data` as a JSON string with its quotes; bytes that are not UTF-8
 * become U+FFFD. */
void str_add_json_n(struct str *s, const char *data, size_t size);
void str_add_json(struct str *s, const char *text);
/* Does it stand between the quotes of a JSON string as it is? */
bool str_is_plain_json(const char *data, size_t size);

#define STR_INIT(max_size) ((struct str){.max = (max_size)})
#define cleanup_str __attribute__((__cleanup__(str_fini)))

#endif
