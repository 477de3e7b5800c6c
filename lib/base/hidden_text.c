#include "lib/base/hidden_text.h"

#include <string.h>

#include "lib/base/utf8.h"

/* Ascending.  Default_Ignorable_Code_Point is from Unicode 15.0,
 * DerivedCoreProperties.txt, the rest from UnicodeData.txt (Cc, Cf, Zl, Zp);
 * beside these U+FFFE and U+FFFF, which no XML may have. */
static const struct {
    uint32_t first, last;
} ranges[] = {
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},
    {0x034f, 0x034f},   {0x061c, 0x061c},   {0x115f, 0x1160},
    {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},
    {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
    {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
    {0xfffe, 0xffff},   {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
};

uint32_t hidden_text_number(const char *text, size_t n)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t number = (unsigned char)text[0] & masks[n];
    for (size_t i = 1; i < n; i++)
        number = number << 6 | ((unsigned char)text[i] & 0x3f);
    return number;
}

size_t hidden_text_next(const char *text, size_t size, bool *ret_hidden)
{
    const unsigned char first = (unsigned char)text[0];
    size_t n = utf8_sequence(text, size);
    *ret_hidden = n == 0;
    if (n == 0 || (first >= ' ' && first < 0x7f))
        return 1;
    uint32_t number = hidden_text_number(text, n);
    size_t i = 0;
    while (i < sizeof ranges / sizeof *ranges && number > ranges[i].last)
        i++;
    *ret_hidden = i < sizeof ranges / sizeof *ranges &&
                  number >= ranges[i].first;
    return n;
}

size_t hidden_text_blank(char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0, n; i < size; i += n) {
        bool hidden;
        n = hidden_text_next(text + i, size - i, &hidden);
        if (hidden && text[i] != '\n' && text[i] != '\t') {
            text[used++] = '?';
            continue;
        }
        memmove(text + used, text + i, n);
        used += n;
    }
    return used;
}
