/* tlsclient - a client of HTTPS listeners that chooses what it shows and how
 * it speaks.  Every read gives up after TLS_PATIENCE_MS. */
#ifndef BIGA_TESTS_LIB_HTTP_TLSCLIENT_H
#define BIGA_TESTS_LIB_HTTP_TLSCLIENT_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"

enum { TLS_PATIENCE_MS = 300000 };

struct tls_client {
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t own;
    struct str in;   /* what came and was not yet taken */
    struct str body; /* of the last reply */
    bool ended;      /* the server has closed, rather than kept silent */
};

struct tls_client_config {
    uint16_t port;
    const char *ca_file;              /* NULL: whoever the server is */
    const char *cert_file, *key_file; /* NULL: none */
    const char *priorities;           /* NULL: "NORMAL" */
    const char *alpn;                 /* NULL: none */
    bool in_pieces;                   /* the handshake is sent byte by byte */
};
/* True when the handshake succeeded; else the client is closed again. */
bool tls_client_open(struct tls_client *c, const struct tls_client_config *how);
void tls_client_close(struct tls_client *c); /* a zeroed one, too */

/* One request on the connection; body NULL: none.  The status, 0: the
 * connection ended. */
int tls_client_call(struct tls_client *c, const char *method, const char *path,
                    const char *headers, const char *body);
bool tls_client_send(struct tls_client *c, const char *data, size_t size);
int tls_client_read(struct tls_client *c);
/* So many bytes of what comes, as it is; false: the connection ended. */
bool tls_client_take(struct tls_client *c, void *ret_data, size_t size);
/* On a connection of its own; -1: no handshake. */
int tls_client_once(const struct tls_client_config *how, const char *path,
                    struct str *ret_body);
/* The serial number of the server's certificate. */
uint32_t tls_client_serial(const struct tls_client *c);

#endif
