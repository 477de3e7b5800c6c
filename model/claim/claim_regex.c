#include "model/claim/claim_regex.h"

#include <regex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

struct claim_regex {
    regex_t posix;
};

/* What stands before the cursor, which a repetition is of. */
enum before { NOTHING, ONE, GROUP, REPEATED };

struct translation {
    const char *p, *end;
    struct str *out; /* for POSIX */
    enum before before;
    unsigned open; /* groups */
    struct error *err;
};

static int not_read(struct translation *t, const char *what)
{
    return error_set(t->err, ENOTSUP,
                     "the regular expression has %s, which Biga does not read",
                     what);
}

static int broken(struct translation *t, const char *what)
{
    return error_set(t->err, EINVAL, "the regular expression has %s", what);
}

static const char *class_of(char c)
{
    return c == 'd'   ? "0-9"
           : c == 'w' ? "0-9A-Za-z_"
           : c == 's' ? "\t\n\f\r "
                      : NULL;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

static int put_escape(struct translation *t)
{
    if (t->p == t->end)
        return broken(t, "a \\ at its end");
    char c = *t->p++;
    t->before = ONE;
    if (class_of(c)) {
        str_addf(t->out, "[%s]", class_of(c));
        return 0;
    }
    if (is_alnum(c) || c == '_' || c == '<' || c == '>' || c == '`' ||
        c == '\'')
        return not_read(t, "a \\ before a letter, a digit or one of _<>`'");
    str_add_c(t->out, '\\');
    str_add_c(t->out, c);
    return 0;
}

/* A set, of which POSIX has no escapes: its members are plain, or ranges of
 * letters or digits. */
static int put_set(struct translation *t)
{
    str_add_c(t->out, '[');
    if (t->p < t->end && *t->p == '^')
        str_add_c(t->out, *t->p++);
    const char *from = t->p;
    for (; t->p < t->end && (*t->p != ']' || t->p == from); t->p++) {
        char c = *t->p;
        bool range = c == '-' && t->p > from && t->p + 1 < t->end &&
                     t->p[1] != ']';
        if (c == ']' || c == '[' || c == '\\' || c == '^' || c == '&' ||
            c == '~')
            return not_read(t, "one of ][\\^&~ within []");
        if (c == '-' && !range && t->p > from && t->p[-1] == '-')
            return not_read(t, "-- within []");
        if (range && !(is_alnum(t->p[-1]) && is_alnum(t->p[1])))
            return not_read(t, "a range of other than letters or digits");
        if (range && t->p[-1] > t->p[1])
            return broken(t, "a range that goes backwards");
        str_add_c(t->out, c);
        if (range) { /* the end of a range begins no other */
            str_add_c(t->out, *++t->p);
            if (t->p + 1 < t->end && t->p[1] == '-' && t->p + 2 < t->end &&
                t->p[2] != ']')
                return not_read(t, "a range behind a range");
        }
    }
    if (t->p == t->end)
        return broken(t, "a [ without ]");
    t->p++;
    str_add_c(t->out, ']');
    t->before = ONE;
    return 0;
}

static bool read_count(struct translation *t, unsigned *ret)
{
    const char *from = t->p;
    unsigned value = 0;
    for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
        if (value <= CLAIM_REGEX_REPEAT)
            value = value * 10 + (unsigned)(*t->p - '0');
    *ret = value;
    return t->p > from && value <= CLAIM_REGEX_REPEAT;
}

static int put_count(struct translation *t)
{
    unsigned least, most;
    const char *from = t->p - 1;
    if (t->before != ONE)
        return not_read(t, "{} behind other than one character");
    if (!read_count(t, &least))
        return not_read(t, "{} without a small number");
    most = least;
    if (t->p < t->end && *t->p == ',') {
        t->p++;
        if (t->p < t->end && *t->p != '}' && !read_count(t, &most))
            return not_read(t, "{} without a small number");
    }
    if (t->p == t->end || *t->p != '}')
        return not_read(t, "{ as a character");
    if (most < least && t->p[-1] != ',')
        return broken(t, "{} with its lower number behind");
    t->p++;
    str_add_n(t->out, from, (size_t)(t->p - from));
    t->before = REPEATED;
    return 0;
}

static int put_group(struct translation *t, char c)
{
    if (c == '(' && t->p < t->end && (*t->p == '?' || *t->p == '*'))
        return not_read(t, "(?");
    if (c == ')' && t->open-- == 0)
        return broken(t, "a ) without (");
    t->open += c == '(';
    str_add_c(t->out, c);
    t->before = c == ')' ? GROUP : NOTHING;
    return 0;
}

static int put_next(struct translation *t)
{
    char c = *t->p++;
    if (c < ' ' || c > '~')
        return not_read(t, "other than plain ASCII");
    switch (c) {
    case '\\':
        return put_escape(t);
    case '[':
        return put_set(t);
    case '{':
        return put_count(t);
    case '(':
    case ')':
        return put_group(t, c);
    case '*':
    case '+':
    case '?':
        if (t->before == NOTHING)
            return not_read(t, "a repetition of nothing");
        if (t->before == REPEATED)
            return not_read(t, "a repetition behind another");
        t->before = REPEATED;
        break;
    case '|':
    case '^':
    case '$':
        t->before = NOTHING; /* of which RE2 takes repetitions: not read */
        break;
    case '}':
        return not_read(t, "} as a character");
    default:
        t->before = ONE;
    }
    str_add_c(t->out, c);
    return 0;
}

static int translate(const char *text, size_t size, struct str *out,
                     struct error *err)
{
    struct translation t = {text, text + size, out, NOTHING, 0, err};
    while (t.p < t.end) {
        int rc = put_next(&t);
        if (rc < 0)
            return rc;
    }
    return t.open ? broken(&t, "a ( without )") : 0;
}

int claim_regex_compile(const char *text, size_t size,
                        struct claim_regex **ret_regex, struct error *err)
{
    cleanup_str struct str posix = STR_INIT(16 * CLAIM_REGEX_MAX);
    if (size > CLAIM_REGEX_MAX)
        return error_set(err, ENOTSUP,
                         "the regular expression has %zu bytes, Biga reads %d",
                         size, CLAIM_REGEX_MAX);
    int rc = translate(text, size, &posix, err);
    if (rc < 0)
        return rc;
    struct claim_regex *regex = xcalloc(1, sizeof *regex);
    if (regcomp(&regex->posix, str_text(&posix), REG_EXTENDED | REG_NOSUB)) {
        free(regex);
        return error_set(err, ENOTSUP,
                         "the regular expression is none that Biga reads");
    }
    *ret_regex = regex;
    return 0;
}

void claim_regex_destroy(struct claim_regex *regex)
{
    if (!regex)
        return;
    regfree(&regex->posix);
    free(regex);
}

int claim_regex_search(const struct claim_regex *regex, const char *text,
                       size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] < ' ' || text[i] > '~')
            return -ENOTSUP;
    cleanup_free char *whole = xstrndup(text, size);
    return regexec(&regex->posix, whole, 0, NULL, 0) == 0;
}
