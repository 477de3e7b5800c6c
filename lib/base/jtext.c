#include "lib/base/jscan.h"

#include <string.h>

#include "lib/base/jscan_private.h"

bool jtext_is(const struct jtext *t, const char *name)
{
    size_t len = strlen(name);
    if (!t->escaped)
        return t->size == len && memcmp(t->data, name, len) == 0;
    char decoded[256];
    return t->size < sizeof decoded && jtext_decode(t, decoded) == len &&
           memcmp(decoded, name, len) == 0;
}

bool jtext_is_nocase(const struct jtext *t, const char *name)
{
    char decoded[256];
    size_t len = strlen(name), size = t->size;
    const char *data = t->data;
    if (t->escaped) {
        if (size >= sizeof decoded)
            return false;
        size = jtext_decode(t, decoded);
        data = decoded;
    }
    if (size != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char a = (unsigned char)data[i], b = (unsigned char)name[i];
        if (a >= 'A' && a <= 'Z')
            a = (unsigned char)(a + 32);
        if (b >= 'A' && b <= 'Z')
            b = (unsigned char)(b + 32);
        if (a != b)
            return false;
    }
    return true;
}

static size_t put_utf8(char *dst, unsigned cp)
{
    if (cp < 0x80) {
        dst[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        dst[0] = (char)(0xc0 | cp >> 6);
        dst[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        dst[0] = (char)(0xe0 | cp >> 12);
        dst[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        dst[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    dst[0] = (char)(0xf0 | cp >> 18);
    dst[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    dst[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    dst[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

/* One escape, already checked, at `p` (on its backslash): writes what it
 * stands for and returns how far to move on. */
static size_t decode_escape(const char *p, const char *end, char *dst,
                            size_t *ret_written)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (p[1] != 'u') {
        const char *at = strchr(from, p[1]);
        *dst = at ? to[at - from] : p[1];
        *ret_written = 1;
        return 2;
    }
    unsigned cp = (unsigned)jtext_hex4(p + 2, end);
    size_t used = 6;
    if (cp == 0) /* a text has none (jscan_init_kube) */
        cp = 0xfffd;
    if (cp >= 0xd800 && cp <= 0xdbff) {
        unsigned low = (unsigned)jtext_hex4(p + 8, end);
        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        used = 12;
    }
    *ret_written = put_utf8(dst, cp);
    return used;
}

size_t jtext_decode(const struct jtext *t, char *dst)
{
    const char *p = t->data, *end = t->size ? p + t->size : p; /* or NULL */
    char *out = dst;
    while (p < end) {
        const char *slash = t->escaped ? memchr(p, '\\', (size_t)(end - p))
                                       : NULL;
        size_t run = (size_t)((slash ? slash : end) - p);
        memcpy(out, p, run);
        out += run;
        p += run;
        if (slash) {
            size_t written;
            p += decode_escape(p, end, out, &written);
            out += written;
        }
    }
    *out = '\0';
    return (size_t)(out - dst);
}
