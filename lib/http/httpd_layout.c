#include "lib/http/httpd_layout.h"

#include <stdbool.h>
#include <string.h>

enum { CRLF = 2 };

static const char astray[] =
    "a line has no name, is folded, has a NUL, or does "
    "not end with CR LF";

/* RFC 9110, 5.6.2 */
static bool is_token(const char *text)
{
    const char *p = text;
    for (; *p; p++) {
        bool common = ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') || *p == '-';
        if (!common &&
            (*p <= ' ' || *p >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", *p)))
            return false;
    }
    return p > text;
}

/* No control character but NUL, and `allowed`. */
static bool is_clean(const char *text, size_t size, char allowed)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == 0x7f || (c < 0x20 && c && text[i] != allowed))
            return false;
    }
    return true;
}

static void check(struct layout *l, bool right, const char *fault)
{
    if (!right && !l->fault)
        l->fault = fault;
}

/* Where the next line begins.  MHD has made a NUL of CR and of LF; what stands
 * behind another NUL was left out. */
static const char *line_after(struct layout *l, const char *text)
{
    const char *end = text + strlen(text);
    check(l, end[1] == '\0', astray);
    return end + CRLF;
}

void layout_line(struct layout *l, const char *method, const char *target,
                 size_t target_size, const char *version)
{
    *l = (struct layout){.begin = method, .near = ""};
    l->next = line_after(l, version);
    check(l,
          is_token(method) && target == method + strlen(method) + 1 &&
              version == target + target_size + 1,
          "the request line is not METHOD TARGET HTTP/1.1, with a space each");
    /* what stood between the parameters has become NULs and spaces */
    check(l, is_clean(target, target_size, '\0'),
          "the target has a control character");
}

void layout_field(struct layout *l, const char *name, const char *value)
{
    const char *after = name + strlen(name) + 1;
    check(l, name == l->next, astray);
    if (l->fault)
        return;
    check(l, is_token(name), "a header's name is not a token");
    check(l, value == after + strspn(after, " \t"), "a header has a NUL");
    check(l, is_clean(value, strlen(value), '\t'),
          "a header's value has a control character");
    if (!l->fault)
        l->near = name;
    l->next = line_after(l, value);
}

void layout_end(struct layout *l, size_t size)
{
    check(l, l->next + CRLF == l->begin + size, astray);
}
