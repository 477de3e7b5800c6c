/* tls_private - what the server (httpd) needs of tls for each connection. */
#ifndef BIGA_LIB_HTTP_TLS_PRIVATE_H
#define BIGA_LIB_HTTP_TLS_PRIVATE_H

#include <gnutls/gnutls.h>

#include "lib/http/tls.h"

/* TLS 1.2 and 1.3 with forward secrecy, authenticated ciphers and no SHA-1;
 * the cheapest cipher that the client has. */
#define TLS_PRIORITIES                                                   \
    "NORMAL:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:" \
    "-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:"                 \
    "-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"          \
    "-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:%SERVER_PRECEDENCE"

/* One sound state of the files.  Each connection keeps that of its
 * handshake until it is closed. */
struct tls_set;
struct tls_set *tls_set_take(struct tls *t);
void tls_set_give(struct tls_set *set); /* NULL allowed */
/* Before the handshake: this certificate is shown, and with `ask` the client
 * is asked for one (which it need not have). */
int tls_set_use(struct tls_set *set, gnutls_session_t session, bool ask);

/* Is there an authority of clients? */
bool tls_asks(const struct tls *t);

/* Whether a client's certificate is good, and for how long that holds. */
struct tls_verdict {
    /* NULL: it is good; otherwise one word for metrics: missing, foreign,
     * expired, not-yet-valid, purpose, weak, unreadable */
    const char *refusal;
    char text[256]; /* the same for a person */
    struct tls_peer peer;
    uint64_t number; /* of the authorities that decided */
    int64_t until;   /* Unix seconds */
};
/* Does the verdict still hold? */
bool tls_verdict_holds(struct tls *t, const struct tls_verdict *v, int64_t now);
/* On the connection's thread, after the handshake; `now` in Unix seconds. */
void tls_verify(struct tls *t, gnutls_session_t session, int64_t now,
                struct tls_verdict *ret_verdict);

#endif
