#include "extender/relay/ws_hello.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"

#define WS_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_LEN 24
#define VERSION "13"

enum { NONCE = 16, SHA1 = 20 };

static bool is_key(const char *key)
{
    cleanup_str struct str nonce = STR_INIT(NONCE + 2);
    return strlen(key) == KEY_LEN && base64_decode(key, KEY_LEN, &nonce) &&
           nonce.size == NONCE;
}

static void make_accept(const char *key, char ret_accept[WS_ACCEPT_SIZE])
{
    char text[KEY_LEN + sizeof WS_GUID];
    unsigned char digest[SHA1];
    cleanup_str struct str out = STR_INIT(WS_ACCEPT_SIZE);
    (void)snprintf(text, sizeof text, "%s" WS_GUID, key);
    if (gnutls_hash_fast(GNUTLS_DIG_SHA1, text, strlen(text), digest) < 0)
        abort(); /* it is always there */
    base64_add(&out, digest, sizeof digest);
    (void)snprintf(ret_accept, WS_ACCEPT_SIZE, "%s", str_text(&out));
}

/* The first that the client names and we know. */
static const char *choose(const char *offered, const char *const *known)
{
    for (const char *p = offered; *p;) {
        p += strspn(p, " \t,");
        size_t n = strcspn(p, " \t,");
        for (size_t i = 0; n > 0 && known[i]; i++)
            if (strlen(known[i]) == n && memcmp(known[i], p, n) == 0)
                return known[i];
        p += n;
    }
    return NULL;
}

int ws_hello_read(const struct ws_ask *ask, const char *const *known,
                  struct ws_hello *ret_hello, struct error *err)
{
    const char *offered = ask->protocols ? ask->protocols : "";
    if (!ask->version || strcmp(ask->version, VERSION) != 0)
        return error_set(err, EINVAL,
                         "Sec-WebSocket-Version: is \"%.16s\", must be "
                         "\"" VERSION "\"",
                         ask->version ? ask->version : "");
    if (!ask->key || !is_key(ask->key))
        return error_set(err, EINVAL,
                         "Sec-WebSocket-Key: is \"%.32s\", must be 16 bytes as "
                         "base64",
                         ask->key ? ask->key : "");
    if (strlen(offered) > WS_OFFER_MAX)
        return error_set(err, EINVAL,
                         "Sec-WebSocket-Protocol: has more than %d bytes",
                         WS_OFFER_MAX);
    const char *chosen = choose(offered, known);
    if (!chosen)
        return error_set(err, EINVAL,
                         "Sec-WebSocket-Protocol: is \"%.128s\", must name "
                         "\"%s\"%s%s%s",
                         offered, known[0], known[1] ? " or \"" : "",
                         known[1] ? known[1] : "", known[1] ? "\"" : "");
    make_accept(ask->key, ret_hello->accept);
    ret_hello->protocol = chosen;
    return 0;
}
