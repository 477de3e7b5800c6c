/* jscan_private - what scanning (jscan.c) and decoding (jtext.c) share. */
#ifndef BIGA_LIB_BASE_JSCAN_PRIVATE_H
#define BIGA_LIB_BASE_JSCAN_PRIVATE_H

/* The value of four hexadecimal digits; -1 when there are none. */
static inline int jtext_hex4(const char *p, const char *end)
{
    int value = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

#endif
