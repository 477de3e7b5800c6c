#include "lib/base/str.h"

#include <stdarg.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/utf8.h"

void str_init(struct str *s, size_t max)
{
    *s = STR_INIT(max);
}

void str_fini(struct str *s)
{
    if (!s)
        return;
    free(s->data);
    *s = (struct str){.max = s->max, .soft = s->soft};
}

void str_reset(struct str *s)
{
    s->size = 0;
    s->overflow = s->starved = false;
    if (s->data)
        s->data[0] = '\0';
}

void str_drop(struct str *s, size_t n)
{
    if (n == 0)
        return;
    s->size -= n;
    memmove(s->data, s->data + n, s->size);
    s->data[s->size] = '\0';
}

char *str_steal(struct str *s)
{
    char *text = s->data ? s->data : xstrdup("");
    *s = (struct str){.max = s->max, .soft = s->soft};
    return text;
}

const char *str_text(const struct str *s)
{
    return s->data ? s->data : "";
}

/* False when a soft text cannot have it. */
static bool grow(struct str *s, size_t cap)
{
    char *data = s->soft ? try_realloc(s->data, s->cap, cap)
                         : xrealloc(s->data, cap, 1);
    if (!data) {
        s->overflow = s->starved = true;
        return false;
    }
    s->data = data;
    s->cap = cap;
    return true;
}

bool str_reserve(struct str *s, size_t size)
{
    if (s->overflow)
        return false;
    if (size > s->max || s->size > s->max - size) {
        s->overflow = true;
        return false;
    }
    size_t need = s->size + size + 1;
    if (need > s->cap) {
        size_t cap = s->cap ? s->cap : 64;
        while (cap < need)
            cap *= 2;
        return grow(s, cap);
    }
    return true;
}

/* Is there room without more memory? */
static bool has_room(const struct str *s, size_t size)
{
    return size < s->cap - s->size && s->size + size <= s->max && !s->overflow;
}

void str_add_n(struct str *s, const char *data, size_t size)
{
    if (!has_room(s, size) && !str_reserve(s, size))
        return;
    if (size)
        memcpy(s->data + s->size, data, size);
    s->size += size;
    s->data[s->size] = '\0';
}

void str_move(struct str *to, struct str *from)
{
    if (to->size == 0 && !to->overflow && from->size <= to->max) {
        const struct str text = *from;
        from->data = to->data;
        from->cap = to->cap;
        to->data = text.data;
        to->size = text.size;
        to->cap = text.cap;
    } else {
        str_add_n(to, str_text(from), from->size);
    }
    to->overflow |= from->overflow;
    str_reset(from);
}

void str_add(struct str *s, const char *text)
{
    str_add_n(s, text, strlen(text));
}

void str_add_c(struct str *s, char c)
{
    if (!has_room(s, 1) && !str_reserve(s, 1))
        return;
    s->data[s->size++] = c;
    s->data[s->size] = '\0';
}

void str_addf(struct str *s, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && str_reserve(s, (size_t)n)) {
        (void)vsnprintf(s->data + s->size, (size_t)n + 1, fmt, again);
        s->size += (size_t)n;
    }
    va_end(again);
}

size_t str_digits(uint64_t value, char ret_digits[STR_DIGITS_MAX])
{
    size_t n = 1;
    for (uint64_t rest = value; rest >= 10; rest /= 10)
        n++;
    for (size_t i = n; i > 0; value /= 10)
        ret_digits[--i] = (char)('0' + value % 10);
    return n;
}

void str_add_u64(struct str *s, uint64_t value)
{
    char digits[STR_DIGITS_MAX];
    str_add_n(s, digits, str_digits(value, digits));
}

void str_add_i64(struct str *s, int64_t value)
{
    uint64_t magnitude = (uint64_t)value;
    if (value < 0) {
        str_add_c(s, '-');
        magnitude = 0 - magnitude;
    }
    str_add_u64(s, magnitude);
}

static void add_escaped(struct str *s, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    switch (c) {
    case '"':
        str_add_n(s, "\\\"", 2);
        return;
    case '\\':
        str_add_n(s, "\\\\", 2);
        return;
    case '\n':
        str_add_n(s, "\\n", 2);
        return;
    case '\t':
        str_add_n(s, "\\t", 2);
        return;
    case '\r':
        str_add_n(s, "\\r", 2);
        return;
    default:
        break;
    }
    char u[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    str_add_n(s, u, sizeof u);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

bool str_is_plain_json(const char *data, size_t size)
{
    size_t i = 0;
    while (i < size && is_plain((unsigned char)data[i]))
        i++;
    return i == size;
}

static void add_quoted(struct str *s, const char *data, size_t size)
{
    if (!has_room(s, size + 2) && !str_reserve(s, size + 2))
        return;
    char *to = s->data + s->size;
    to[0] = '"';
    if (size)
        memcpy(to + 1, data, size);
    to[size + 1] = '"';
    to[size + 2] = '\0';
    s->size += size + 2;
}

void str_add_json_n(struct str *s, const char *data, size_t size)
{
    const char *p = data, *end = data + size, *run = data;
    if (str_is_plain_json(data, size)) {
        add_quoted(s, data, size);
        return;
    }
    str_add_c(s, '"');
    while (p < end) {
        unsigned char c = (unsigned char)*p;
        size_t n = 1;
        if (is_plain(c)) {
            p++;
            continue;
        }
        if (c >= 0x80 && (n = utf8_sequence(p, (size_t)(end - p))) > 0) {
            p += n;
            continue;
        }
        str_add_n(s, run, (size_t)(p - run));
        if (c >= 0x80)
            str_add_n(s, "\xef\xbf\xbd", 3);
        else
            add_escaped(s, c);
        run = ++p;
    }
    str_add_n(s, run, (size_t)(p - run));
    str_add_c(s, '"');
}

void str_add_json(struct str *s, const char *text)
{
    str_add_json_n(s, text, strlen(text));
}
