/* tls - a server's certificate and the authority of its clients, from files
 * that may change while it runs; and who a client is by its certificate.
 *
 * The files are looked at once a second: a new, sound set is used for every
 * handshake from then on, while connections that exist go on; a set that is
 * unsound (half written, key of another certificate, expired) is logged and
 * leaves the one before in force.  TLS 1.2 and 1.3 only. */
#ifndef BIGA_LIB_HTTP_TLS_H
#define BIGA_LIB_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

struct tls_config {
    const char *cert_file; /* PEM chain, the server's own first */
    const char *key_file;
    const char *client_ca_file; /* NULL: clients need no certificate */
};

struct tls; /* any thread */
/* Reads the files; the error names the file and what is wrong with it. */
int tls_create(const struct tls_config *config, struct tls **ret_tls,
               struct error *err);
void tls_destroy(struct tls *t); /* NULL allowed; after the listeners */
DEFINE_CLEANUP(tls, struct tls *, tls_destroy)
/* Look at the files now: for a reload thread, and any other.  ctx is the
 * struct tls. */
void tls_poll(void *ctx);
/* For metrics: when the server's certificate ends (Unix seconds), and how
 * often files were accepted and refused. */
void tls_state(struct tls *t, int64_t *ret_not_after, uint64_t *ret_accepted,
               uint64_t *ret_refused);

/* Who a client is, from a certificate that was verified. */
enum { TLS_NAME_MAX = 253, TLS_NAMES_MAX = 16 };
struct tls_peer {
    char common_name[TLS_NAME_MAX + 1]; /* "" when there is none */
    char organizations[4][TLS_NAME_MAX + 1];
    unsigned n_organizations;
    char dns[TLS_NAMES_MAX][TLS_NAME_MAX + 1]; /* subjectAltName */
    unsigned n_dns;
};
/* What a certificate (DER) says of its owner; nothing is verified.  An error
 * when a name is not printable ASCII, when there are two common names, or
 * more names than fit: what is left out could be what matters. */
int tls_peer_read(const void *der, size_t size, struct tls_peer *ret_peer,
                  struct error *err);
/* The name of the node that the peer speaks for: of CN "system:node:NAME", or
 * its only DNS subjectAltName.  False when there is none. */
bool tls_peer_node(const struct tls_peer *peer,
                   char ret_node[TLS_NAME_MAX + 1]);

#endif
