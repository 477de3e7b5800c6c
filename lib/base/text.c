#include "lib/base/text.h"

#include "lib/base/hidden_text.h"
#include "lib/base/utf8.h"

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
    for (size_t i = 0, n; i < size; i += n) {
        bool hidden;
        n = hidden_text_next(text + i, size - i, &hidden);
        const char *other = escape ? entity(text[i]) : NULL;
        if (hidden)
            str_add_c(out, '?');
        else if (other)
            str_add(out, other);
        else
            str_add_n(out, text + i, n);
    }
}

void text_wrap(const char *text, size_t column, size_t indent, size_t width,
               struct str *out)
{
    bool begun = false; /* the line has a word */
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " "), needs = text_width_n(p, n) + begun;
        if (begun && column + needs > width) {
            str_add_c(out, '\n');
            for (size_t i = 0; i < indent; i++)
                str_add_c(out, ' ');
            column = indent;
            needs--;
            begun = false;
        }
        if (begun)
            str_add_c(out, ' ');
        str_add_n(out, p, n);
        column += needs;
        begun = true;
        p += n + (p[n] == ' ');
    }
}

void text_clean(const char *text, struct str *out)
{
    add_clean(text, strlen(text), false, out);
}

void text_clean_lines(struct str *text)
{
    if (text->size == 0)
        return;
    text->size = hidden_text_blank(text->data, text->size);
    text->data[text->size] = '\0';
}

/* \u0000, of which a character above U+FFFF takes two. */
static void add_number(uint32_t number, struct str *out)
{
    if (number > 0xffff) {
        number -= 0x10000;
        str_addf(out, "\\u%04x", 0xd800 | number >> 10);
        number = 0xdc00 | (number & 0x3ff);
    }
    str_addf(out, "\\u%04x", number);
}

/* A character of `n` bytes that is hidden. */
static void add_hidden(const char *text, size_t n, struct str *out)
{
    if (*text == '\n')
        str_add(out, "\\n");
    else if (*text == '\t')
        str_add(out, "\\t");
    else if (*text == '\r')
        str_add(out, "\\r");
    else if (n == 1 && (unsigned char)*text >= 0x80)
        str_add(out, "\xef\xbf\xbd");
    else
        add_number(hidden_text_number(text, n), out);
}

void text_quote_n(const char *text, size_t size, struct str *out)
{
    str_add_c(out, '"');
    for (size_t i = 0, n; i < size; i += n) {
        bool hidden;
        n = hidden_text_next(text + i, size - i, &hidden);
        if (hidden) {
            add_hidden(text + i, n, out);
            continue;
        }
        if (text[i] == '"' || text[i] == '\\')
            str_add_c(out, '\\');
        str_add_n(out, text + i, n);
    }
    str_add_c(out, '"');
}

void text_escape_n(const char *text, size_t size, struct str *out)
{
    add_clean(text, size, true, out);
}

void text_escape(const char *text, struct str *out)
{
    text_escape_n(text, strlen(text), out);
}

void text_escape_short(const char *text, size_t max, struct str *out)
{
    size_t size = strlen(text), head = size, tail = size;
    if (size > max) {
        head = max / 3;
        tail = size - (max - head - 1);
        while (head > 0 && utf8_inside(text[head]))
            head--;
        while (utf8_inside(text[tail]))
            tail++;
    }
    text_escape_n(text, head, out);
    str_add(out, head < size ? "…" : "");
    text_escape_n(text + tail, size - tail, out);
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

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

void text_lower(char *text)
{
    for (; *text; text++)
        *text = lower(*text);
}

bool text_has(const char *text, size_t size, const char *part, size_t n)
{
    for (size_t i = 0; i + n <= size; i++) {
        size_t k = 0;
        while (k < n && lower(text[i + k]) == part[k])
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static uint64_t bit_of(uint32_t chars)
{
    return UINT64_C(1) << (chars * UINT32_C(0x9e3779b1) >> 26);
}

void text_sketch_add(struct text_sketch *s, const char *text)
{
    uint32_t last = 0; /* up to three, the newest lowest */
    for (const char *p = text; *p; p++) {
        last = (last << 8 | (unsigned char)lower(*p)) & 0xffffff;
        s->chars |= bit_of(last & 0xff);
        if (p > text)
            s->pairs |= bit_of(last & 0xffff);
        if (p > text + 1)
            s->triples |= bit_of(last);
    }
}

void shell_add_word(struct str *out, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789"
                                "-._/:=@%+,";
    if (*word && word[strspn(word, plain)] == '\0') {
        str_add(out, word);
        return;
    }
    str_add_c(out, '\'');
    for (const char *p = word; *p; p++) {
        if (*p == '\'')
            str_add(out, "'\\''");
        else
            str_add_c(out, *p);
    }
    str_add_c(out, '\'');
}
