#include "extender/console/html.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "extender/state/scope.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum { NUMBER_MAX = 24 };

struct spec {
    unsigned longs; /* l, ll */
    bool size;      /* z */
    char conversion;
};

/* Behind the '%'; returns what follows. */
static const char *spec_read(const char *p, struct spec *ret)
{
    *ret = (struct spec){0};
    for (; *p == 'l' || *p == 'z'; p++) {
        ret->longs += *p == 'l';
        ret->size |= *p == 'z';
    }
    ret->conversion = *p;
    return *p ? p + 1 : p;
}

static void add_signed(struct str *out, long long value)
{
    char text[NUMBER_MAX];
    (void)snprintf(text, sizeof text, "%lld", value);
    str_add(out, text);
}

static void add_unsigned(struct str *out, unsigned long long value, bool hex)
{
    char text[NUMBER_MAX];
    (void)snprintf(text, sizeof text, hex ? "%llx" : "%llu", value);
    str_add(out, text);
}

static unsigned long long next_unsigned(const struct spec *s, va_list *ap)
{
    if (s->size)
        return va_arg(*ap, size_t);
    if (s->longs == 0)
        return va_arg(*ap, unsigned);
    return s->longs == 1 ? va_arg(*ap, unsigned long)
                         : va_arg(*ap, unsigned long long);
}

static long long next_signed(const struct spec *s, va_list *ap)
{
    if (s->longs == 0)
        return va_arg(*ap, int);
    return s->longs == 1 ? va_arg(*ap, long) : va_arg(*ap, long long);
}

void html_addf(struct str *out, const char *fmt, ...)
{
    struct spec s;
    va_list ap;
    va_start(ap, fmt);
    for (const char *p = fmt; *p;) {
        size_t plain = strcspn(p, "%");
        str_add_n(out, p, plain);
        p += plain;
        if (!*p)
            break;
        p = spec_read(p + 1, &s);
        switch (s.conversion) {
        case 's':
            text_escape(va_arg(ap, const char *), out);
            break;
        case 'd':
            add_signed(out, next_signed(&s, &ap));
            break;
        case 'u':
        case 'x':
            add_unsigned(out, next_unsigned(&s, &ap), s.conversion == 'x');
            break;
        case '%':
            str_add_c(out, '%');
            break;
        default:
            abort(); /* a format that is not ours */
        }
    }
    va_end(ap);
}

void html_add_segment(struct str *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789-._~";
    static const char hex[] = "0123456789ABCDEF";
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (strchr(plain, c)) {
            str_add_c(out, (char)c);
            continue;
        }
        str_add_c(out, '%');
        str_add_c(out, hex[c >> 4]);
        str_add_c(out, hex[c & 15]);
    }
}

void html_add_link(struct str *out, const char *kind, const char *a,
                   const char *b, const char *text)
{
    if (strcmp(a, SCOPE_HIDDEN_NAMESPACE) == 0) { /* it leads nowhere */
        html_addf(out, "%s", text);
        return;
    }
    html_addf(out, "<a href=\"/ui/%s/", kind);
    html_add_segment(out, a);
    if (b) {
        str_add_c(out, '/');
        html_add_segment(out, b);
    }
    html_addf(out, "\">%s</a>", text);
}

void html_add_badge(struct str *out, const char *class, const char *word)
{
    html_addf(out, "<span class=\"badge %s\">%s</span>", class, word);
}

const char *relation_class(const char *word)
{
    static const struct {
        const char *word, *class;
    } classes[] = {{"PIX", "good"},  {"PXB", "good"},     {"PHB", "fair"},
                   {"NODE", "fair"}, {"SOCKET", "worse"}, {"SYS", "bad"}};
    for (size_t i = 0; i < ARRAY_LEN(classes); i++)
        if (strcmp(classes[i].word, word) == 0)
            return classes[i].class;
    return "dim";
}

void html_add_bar(struct str *out, uint64_t free, uint64_t whole,
                  const char *unit)
{
    if (whole == 0)
        return;
    free = free > whole ? whole : free;
    unsigned used = (unsigned)((whole - free) * 100 / whole);
    html_addf(out,
              "<span class=\"meter\"><svg viewBox=\"0 0 100 8\" "
              "preserveAspectRatio=\"none\" aria-hidden=\"true\">"
              "<rect class=\"room\" width=\"100\" height=\"8\"/>"
              "<rect class=\"%s\" width=\"%u\" height=\"8\"/></svg>"
              "<span><b>%llu</b>/%llu <small>%s free</small></span></span>",
              used > 90 ? "used most" : "used", used, (unsigned long long)free,
              (unsigned long long)whole, unit);
}

void html_add_command(struct str *out, const char *command)
{
    html_addf(out,
              "<span class=\"command\"><code>%s</code><button type=\"button\" "
              "class=\"copy\" hidden aria-label=\"Copy: %s\">Copy</button>"
              "</span>",
              command, command);
}
