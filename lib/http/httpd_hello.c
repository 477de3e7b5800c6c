#include "lib/http/httpd_hello.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    RECORD_HEAD = 5,
    RECORD_HANDSHAKE = 22,
    CLIENT_HELLO = 1,
    EXTENSION_ALPN = 16, /* RFC 7301 */
    HELLO_FIXED = 34,    /* version and random */
};

/* What is left to read.  A read past the end takes nothing, and `bad` stays
 * set from then on. */
struct bytes {
    const uint8_t *at;
    size_t size;
    bool bad;
};

static struct bytes take(struct bytes *b, size_t size)
{
    if (b->bad || size > b->size) {
        *b = (struct bytes){NULL, 0, true};
        return *b;
    }
    struct bytes taken = {b->at, size, false};
    b->at += size;
    b->size -= size;
    return taken;
}

/* A number of `n` bytes; 0 when they are not there. */
static size_t number(struct bytes *b, size_t n)
{
    const struct bytes digits = take(b, n);
    size_t value = 0;
    for (size_t i = 0; i < digits.size; i++)
        value = value << 8 | digits.at[i];
    return value;
}

/* A vector whose length stands before it, in `n` bytes. */
static struct bytes vector(struct bytes *b, size_t n)
{
    size_t size = number(b, n);
    return take(b, size);
}

static bool names_h2(struct bytes alpn)
{
    struct bytes names = vector(&alpn, 2);
    while (names.size > 0) {
        const struct bytes name = vector(&names, 1);
        if (name.size == 2 && memcmp(name.at, "h2", 2) == 0)
            return true;
    }
    return false;
}

static bool offers_h2(struct bytes hello)
{
    (void)take(&hello, HELLO_FIXED);
    (void)vector(&hello, 1); /* session */
    (void)vector(&hello, 2); /* ciphers */
    (void)vector(&hello, 1); /* compressions */
    struct bytes extensions = vector(&hello, 2);
    while (extensions.size > 0) {
        size_t type = number(&extensions, 2);
        const struct bytes value = vector(&extensions, 2);
        if (!value.bad && type == EXTENSION_ALPN)
            return names_h2(value);
    }
    return false;
}

enum hello hello_read(const void *data, size_t size, size_t *ret_need)
{
    struct bytes all = {data, size, false};
    if (size < RECORD_HEAD) {
        *ret_need = RECORD_HEAD;
        return size > 0 && all.at[0] != RECORD_HANDSHAKE ? HELLO_OTHER
                                                         : HELLO_MORE;
    }
    size_t type = number(&all, 1), version = number(&all, 2) >> 8;
    size_t length = number(&all, 2);
    if (type != RECORD_HANDSHAKE || version != 3 ||
        length > HELLO_MAX - RECORD_HEAD)
        return HELLO_OTHER;
    if (all.size < length) {
        *ret_need = RECORD_HEAD + length;
        return HELLO_MORE;
    }
    struct bytes record = take(&all, length);
    if (number(&record, 1) != CLIENT_HELLO)
        return HELLO_OTHER;
    /* one that goes on in a second record has no end here */
    return offers_h2(vector(&record, 3)) ? HELLO_H2 : HELLO_OTHER;
}
