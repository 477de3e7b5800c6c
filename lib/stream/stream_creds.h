/* stream_creds - who a server must be that streams are dialled at, and who we
 * are to it: the authority and the client certificate of its endpoint. */
#ifndef BIGA_LIB_STREAM_STREAM_CREDS_H
#define BIGA_LIB_STREAM_STREAM_CREDS_H

#include <gnutls/gnutls.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

struct stream_creds_config {
    const char *host; /* name or address that the certificate must be for */
    /* Paths of PEM files, as grpc_config has them; cert and key NULL: none is
     * shown; ca NULL: the authorities that the system trusts. */
    const char *ca, *cert, *key;
};
struct stream_creds; /* immutable */
/* Reads the files, which may block.  -EKEYREJECTED and a text that names the
 * file: it cannot be read or is not what it should be. */
int stream_creds_create(const struct stream_creds_config *config,
                        struct stream_creds **ret_creds, struct error *err);
void stream_creds_destroy(struct stream_creds *c); /* NULL allowed */
DEFINE_CLEANUP(stream_creds, struct stream_creds *, stream_creds_destroy)

/* Set up a client's session: TLS 1.2 or 1.3; the server's certificate must be
 * of our authority, for servers, and for the host.  `c` must outlive the
 * session.  Negative: a code of GnuTLS. */
int stream_creds_use(const struct stream_creds *c, gnutls_session_t session);

#endif
