#include "advertiser/probe/vpd.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
    TAG_LARGE = 0x80,     /* bit: two bytes of length follow */
    TAG_READ_ONLY = 0x90, /* VPD-R */
    TAG_END_NAME = 0x0f,  /* of a small resource, in bits 3 to 6 */
};

static int keyword_find(const unsigned char *p, size_t size,
                        const char keyword[2],
                        char ret_value[VPD_VALUE_MAX + 1])
{
    while (size >= 3) {
        const size_t len = p[2];
        if (len > size - 3)
            return -EINVAL;
        if (memcmp(p, keyword, 2) == 0) {
            size_t n = strnlen((const char *)p + 3, len);
            while (n > 0 && p[3 + n - 1] == ' ')
                n--;
            memcpy(ret_value, p + 3, n);
            ret_value[n] = '\0';
            return 0;
        }
        p += 3 + len;
        size -= 3 + len;
    }
    return -ENOENT;
}

int vpd_find(const unsigned char *data, size_t size, const char keyword[2],
             char ret_value[VPD_VALUE_MAX + 1])
{
    while (size > 0) {
        const unsigned char tag = data[0];
        const bool large = tag & TAG_LARGE;
        const size_t head = large ? 3 : 1;
        if (!large && tag >> 3 == TAG_END_NAME)
            return -ENOENT;
        if (size < head)
            return -EINVAL;
        const size_t len = large ? (size_t)data[1] | (size_t)data[2] << 8
                                 : tag & 7u;
        if (len > size - head)
            return -EINVAL;
        if (tag == TAG_READ_ONLY)
            return keyword_find(data + head, len, keyword, ret_value);
        data += head + len;
        size -= head + len;
    }
    return -ENOENT;
}
