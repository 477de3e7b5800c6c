#include "model/base/text.h"

#include "model/base/utf8.h"

size_t text_width_n(const char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += !utf8_inside(text[i]);
    return n;
}

size_t text_width(const char *text)
{
    return text_width_n(text, strlen(text));
}

/* Bytes of the control character at `text`, 0 when it is none. */
static size_t control_at(const char *text, size_t size)
{
    const unsigned char *u = (const unsigned char *)text;
    if (u[0] < 0x20 || u[0] == 0x7f)
        return 1;
    return u[0] == 0xc2 && size > 1 && u[1] >= 0x80 && u[1] < 0xa0 ? 2 : 0;
}

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void add_clean(const char *text, size_t size, bool escape,
                      struct str *out)
{
    for (size_t i = 0; i < size; i++) {
        size_t control = control_at(text + i, size - i);
        const char *other = escape ? entity(text[i]) : NULL;
        if (control) {
            str_add_c(out, '?');
            i += control - 1;
        } else if (other) {
            str_add(out, other);
        } else {
            str_add_c(out, text[i]);
        }
    }
}

void text_clean(const char *text, struct str *out)
{
    add_clean(text, strlen(text), false, out);
}

void text_escape_n(const char *text, size_t size, struct str *out)
{
    add_clean(text, size, true, out);
}

void text_escape(const char *text, struct str *out)
{
    text_escape_n(text, strlen(text), out);
}

/* --- the order of names ----------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The number at `*text` without its zeros in front; `*text` is behind it. */
static size_t take_number(const char **text, const char **ret_digits)
{
    while (**text == '0')
        ++*text;
    *ret_digits = *text;
    while (is_digit(**text))
        ++*text;
    return (size_t)(*text - *ret_digits);
}

static int number_order(const char **a, const char **b)
{
    const char *x, *y;
    size_t n = take_number(a, &x), m = take_number(b, &y);
    if (n != m)
        return n < m ? -1 : 1;
    return memcmp(x, y, n);
}

int text_order(const char *a, const char *b)
{
    const char *x = a, *y = b;
    while (*x && *y) {
        int order = 0;
        if (is_digit(*x) && is_digit(*y))
            order = number_order(&x, &y);
        else
            order = (unsigned char)*x++ - (unsigned char)*y++;
        if (order)
            return order;
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b);
}
