#include "card/card.h"

#include <string.h>

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int card_decode(const char *text, size_t size, unsigned char *out,
                size_t *ret_size)
{
    size_t n = 0;
    if (size % 4 != 0)
        return -EINVAL;
    for (size_t i = 0; i < size; i += 4) {
        unsigned padding = 0;
        uint32_t bits = 0;
        /* padding ends the last group alone */
        if (i + 4 == size)
            padding = text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
        for (unsigned k = 0; k < 4 - padding; k++) {
            int digit = digit_of(text[i + k]);
            if (digit < 0)
                return -EINVAL;
            bits |= (uint32_t)digit << (18 - 6 * k);
        }
        for (unsigned k = 0; k < 3 - padding; k++)
            out[n++] = (unsigned char)(bits >> (16 - 8 * k));
        /* bits that no byte takes would give two texts for one content */
        if (padding && (bits & (padding == 1 ? 0xff : 0xffff)) != 0)
            return -EINVAL;
    }
    *ret_size = n;
    return 0;
}

bool card_name_ok(const char *name)
{
    for (const char *part = name;; part++) {
        size_t len = strcspn(part, "/");
        if (len == 0 || len > 255 || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += len;
        if (!*part)
            return part - name < 4096;
    }
}

/* The bytes up to and with the next blank; 0 when there is none. */
static size_t word_len(const char *text, size_t size)
{
    const char *blank = memchr(text, ' ', size);
    return blank ? (size_t)(blank - text) + 1 : 0;
}

/* As containerd's and CRI-O's loggers write them, of which
 * k8s.io/kubernetes/pkg/kubelet/kuberuntime/logs is the reader: tags are
 * separated by colons, the first says whether the line is whole. */
struct card_line card_line_parse(const char *line, size_t size)
{
    struct card_line other = {.head = 0, .partial = false};
    size_t at = word_len(line, size);
    /* 2026-01-01T00:00:00.000000001+01:00 */
    if (at < 21 || at > 64 || line[0] < '0' || line[0] > '9' ||
        !memchr(line, 'T', at))
        return other;
    size_t n = word_len(line + at, size - at);
    if (n != 7 || (memcmp(line + at, "stdout ", 7) != 0 &&
                   memcmp(line + at, "stderr ", 7) != 0))
        return other;
    at += n;
    n = word_len(line + at, size - at);
    if (n < 2 || n > 64 || (line[at] != 'F' && line[at] != 'P') ||
        (line[at + 1] != ' ' && line[at + 1] != ':'))
        return other;
    return (struct card_line){.head = at + n, .partial = line[at] == 'P'};
}
