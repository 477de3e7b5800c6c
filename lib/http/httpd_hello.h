/* httpd_hello - the first bytes of a TLS connection: does the client offer
 * HTTP/2?  Pure.
 *
 * Read ahead of the handshake, which takes nothing from this: whatever is not
 * plainly a ClientHello that offers "h2" is left to HTTP/1.1, and its TLS. */
#ifndef BIGA_LIB_HTTP_HTTPD_HELLO_H
#define BIGA_LIB_HTTP_HTTPD_HELLO_H

#include <stddef.h>

enum hello {
    HELLO_MORE, /* bytes are needed */
    HELLO_H2,
    HELLO_OTHER,
};

/* A record's head and its longest payload (RFC 8446, 5.1). */
enum { HELLO_MAX = 5 + (1 << 14) };

/* `ret_need` is set for HELLO_MORE: how many there must be before it is worth
 * to ask again; more than `size`, at most HELLO_MAX. */
enum hello hello_read(const void *data, size_t size, size_t *ret_need);

#endif
