/* stream_url - where a remote runtime serves one exec, attach or port-forward,
 * as its reply names it.  Pure.  The text is the remote's, hence hostile: nothing
 * that could end a line reaches a request's head, and the host that it names is
 * only compared with that of the remote's own endpoint, never dialled. */
#ifndef BIGA_LIB_STREAM_STREAM_URL_H
#define BIGA_LIB_STREAM_STREAM_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    STREAM_URL_MAX = 2048, /* bytes of the whole text */
    STREAM_HOST_MAX = 253, /* of a name (RFC 1035) */
};

struct stream_url {
    bool tls;                       /* https */
    char host[STREAM_HOST_MAX + 1]; /* without the brackets of version 6 */
    uint16_t port;                  /* 80 or 443 where the text has none */
    char target[STREAM_URL_MAX];    /* path and query, begins with '/' */
};

/* "http://HOST[:PORT][/PATH][?QUERY]" or https.  -ENAMETOOLONG: longer than
 * STREAM_URL_MAX; -EINVAL: another scheme, a user, no host, a host that is
 * neither a name nor an address, a port that is none, a fragment, or a byte
 * that is no printable ASCII. */
int stream_url_parse(const char *text, struct stream_url *ret_url,
                     struct error *err);
/* May a stream of this URL be dialled at `host`, the host of the remote's
 * endpoint (a name or an address, version 6 without brackets)?  0: both are
 * the same name or address; or the URL has the unspecified address, which is
 * each of the remote's; or `host` is a name and the URL an address that is not
 * loopback, as runtimes tell the address they listen on.  Else -EHOSTUNREACH
 * with a text that names both, and what to do about it. */
int stream_url_is_at(const struct stream_url *url, const char *host,
                     struct error *err);

#endif
