#include <string.h>

#include "lib/base/utf8.h"
#include "model/claim/claim_cel_private.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

int cel_refuse(const struct lexer *l, int code, const char *text)
{
    const struct token *t = &l->token;
    size_t left = (size_t)(l->end - l->begin) - t->at;
    size_t size = t->kind == TOKEN_END ? 0 : (size_t)(l->p - l->begin) - t->at;
    if (size == 0 && t->kind != TOKEN_END)
        size = left > 0;
    if (size > 40)
        size = 40;
    if (size == 0)
        return error_set(l->err, code, "at %zu: the end: %s", t->at + 1, text);
    return error_set(l->err, code, "at %zu: \"%.*s\": %s", t->at + 1, (int)size,
                     l->begin + t->at, text);
}

bool cel_token_is(const struct lexer *l, const char *sign)
{
    const struct token *t = &l->token;
    return (t->kind == TOKEN_SIGN || t->kind == TOKEN_WORD) &&
           t->size == strlen(sign) && memcmp(t->data, sign, t->size) == 0;
}

/* White space, and comments up to the end of their line. */
static void skip_blank(struct lexer *l)
{
    while (l->p < l->end) {
        if (l->end - l->p > 1 && l->p[0] == '/' && l->p[1] == '/') {
            const char *line = memchr(l->p, '\n', (size_t)(l->end - l->p));
            l->p = line ? line : l->end;
        } else if (strchr(" \t\n\r\f", *l->p) && *l->p) {
            l->p++;
        } else {
            return;
        }
    }
}

/* --- texts --------------------------------------------------------------- */

static int hex_value(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static size_t put_utf8(char *dst, uint32_t c)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        dst[i] = (char)(0x80 | (c & 0x3f));
    dst[0] = n == 1 ? (char)c : (char)(lead[n] | c);
    return n;
}

/* `n` digits to the base of `base`; false when there are fewer. */
static bool read_code(struct lexer *l, unsigned n, uint32_t base, uint32_t *ret)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < n; i++, l->p++) {
        int digit = l->p < l->end ? hex_value(*l->p) : -1;
        if (digit < 0 || (uint32_t)digit >= base)
            return false;
        value = value * base + (uint32_t)digit;
    }
    *ret = value;
    return true;
}

/* Behind a backslash; its character is at most four bytes, and what it stands
 * for in the source at least two. */
static bool read_escape(struct lexer *l, char *dst, size_t *size)
{
    static const char from[] = "abfnrtv\\?\"'`", to[] = "\a\b\f\n\r\t\v\\?\"'`";
    if (l->p == l->end || !*l->p)
        return false;
    char c = *l->p;
    const char *simple = strchr(from, c);
    uint32_t code;
    if (simple) {
        dst[(*size)++] = to[simple - from];
        l->p++;
        return true;
    }
    bool octal = c >= '0' && c <= '3';
    unsigned n = octal                  ? 3
                 : c == 'x' || c == 'X' ? 2
                 : c == 'u'             ? 4
                 : c == 'U'             ? 8
                                        : 0;
    l->p += !octal;
    if (n == 0 || !read_code(l, n, octal ? 8 : 16, &code) || code == 0 ||
        code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return false;
    *size += put_utf8(dst + *size, code);
    return true;
}

/* From its opening quote on. */
static int lex_text(struct lexer *l, bool raw)
{
    char quote = *l->p;
    size_t n = l->end - l->p >= 3 && l->p[1] == quote && l->p[2] == quote ? 3
                                                                          : 1;
    char *text = l->store;
    size_t size = 0;
    l->token.kind = TOKEN_TEXT;
    l->p += n;
    for (;;) {
        if (l->p == l->end || (n == 1 && (*l->p == '\n' || *l->p == '\r')))
            return cel_refuse(l, EINVAL, "is a text without its end");
        if (*l->p == quote &&
            (n == 1 ||
             (l->end - l->p >= 3 && l->p[1] == quote && l->p[2] == quote)))
            break;
        if (*l->p == '\\' && !raw) {
            l->p++;
            if (!read_escape(l, text, &size))
                return cel_refuse(l, EINVAL, "has an escape that is none");
        } else if (*l->p == '\0') {
            return cel_refuse(l, EINVAL, "has a NUL");
        } else {
            text[size++] = *l->p++;
        }
    }
    l->p += n;
    text[size] = '\0';
    l->store += size + 1; /* its quotes took more */
    l->token.data = text;
    l->token.size = size;
    return 0;
}

/* --- numbers and signs ---------------------------------------------------- */

static int lex_number(struct lexer *l)
{
    bool hex = l->end - l->p > 2 && l->p[0] == '0' &&
               (l->p[1] == 'x' || l->p[1] == 'X');
    uint64_t base = hex ? 16 : 10, value = 0;
    l->p += hex ? 2 : 0;
    const char *from = l->p;
    bool fits = true;
    for (; l->p < l->end; l->p++) {
        int digit = hex_value(*l->p);
        if (digit < 0 || (uint64_t)digit >= base)
            break;
        fits = fits && !__builtin_mul_overflow(value, base, &value) &&
               !__builtin_add_overflow(value, (uint64_t)digit, &value);
    }
    l->token.kind = TOKEN_INT;
    l->token.number = value;
    if (l->p < l->end && (*l->p == 'u' || *l->p == 'U' || *l->p == '.' ||
                          *l->p == 'e' || *l->p == 'E'))
        return cel_refuse(l, ENOTSUP,
                          "Biga reads integers with a sign, and no others");
    if (l->p == from || (l->p < l->end && is_letter(*l->p)))
        return cel_refuse(l, EINVAL, "is no number");
    if (!fits)
        return cel_refuse(l, EINVAL, "does not fit 64 bits");
    return 0;
}

static int lex_sign(struct lexer *l)
{
    static const char *const two[] = {"==", "!=", "<=", ">=", "&&", "||"};
    size_t size = 1;
    for (size_t i = 0; i < ARRAY_LEN(two); i++)
        if (l->end - l->p > 1 && memcmp(l->p, two[i], 2) == 0)
            size = 2;
    if (size == 1 && (!*l->p || !strchr("()[]{}.,?:!<>-+*/%", *l->p))) {
        l->token.kind = TOKEN_SIGN;
        l->p += utf8_sequence(l->p, (size_t)(l->end - l->p));
        if (l->token.at < (size_t)(l->end - l->begin) &&
            l->begin[l->token.at] == '`')
            return cel_refuse(l, ENOTSUP, CEL_NOT_READ);
        return cel_refuse(l, EINVAL, "means nothing in CEL");
    }
    l->token.kind = TOKEN_SIGN;
    l->token.data = l->p;
    l->token.size = size;
    l->p += size;
    return 0;
}

int cel_lex(struct lexer *l)
{
    skip_blank(l);
    l->token = (struct token){.kind = TOKEN_END,
                              .at = (size_t)(l->p - l->begin)};
    if (l->p == l->end)
        return 0;
    if (*l->p == '"' || *l->p == '\'')
        return lex_text(l, false);
    if (is_digit(*l->p))
        return lex_number(l);
    if (!is_letter(*l->p))
        return lex_sign(l);
    const char *from = l->p;
    while (l->p < l->end && (is_letter(*l->p) || is_digit(*l->p)))
        l->p++;
    size_t size = (size_t)(l->p - from);
    bool quoted = l->p < l->end && (*l->p == '"' || *l->p == '\'');
    l->token.kind = TOKEN_WORD;
    l->token.data = from;
    l->token.size = size;
    if (!quoted || size > 2)
        return 0;
    if (size == 1 && (*from == 'r' || *from == 'R'))
        return lex_text(l, true);
    return cel_refuse(l, ENOTSUP, "Biga reads texts, and no bytes");
}
