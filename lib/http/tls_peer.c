#include <gnutls/x509-ext.h>
#include <gnutls/x509.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/http/tls.h"

#define NODE_PREFIX "system:node:"
#define SAN "subject alternative name"
#define SAN_OID "2.5.29.17" /* RFC 5280 */

DEFINE_CLEANUP(x509, gnutls_x509_crt_t, gnutls_x509_crt_deinit)
DEFINE_CLEANUP(names, gnutls_subject_alt_names_t,
               gnutls_subject_alt_names_deinit)

/* A name is compared and shown as text: one with a NUL or an escape in it
 * would not be what it looks like. */
static int name_take(const char *what, const char *data, size_t size,
                     char ret_name[TLS_NAME_MAX + 1], struct error *err)
{
    if (size > TLS_NAME_MAX)
        return error_set(err, EINVAL,
                         "certificate: %s has %zu bytes, at most %d are "
                         "allowed",
                         what, size, TLS_NAME_MAX);
    for (size_t i = 0; i < size; i++)
        if (data[i] < ' ' || data[i] > '~')
            return error_set(err, EINVAL,
                             "certificate: %s has a character that is not "
                             "printable ASCII",
                             what);
    memcpy(ret_name, data, size);
    ret_name[size] = '\0';
    return 0;
}

/* The `i`-th value of a part of the subject: 1, or 0 when there is none. */
static int subject_part(gnutls_x509_crt_t crt, const char *oid, unsigned i,
                        char ret_name[TLS_NAME_MAX + 1], struct error *err)
{
    const char *what = strcmp(oid, GNUTLS_OID_X520_COMMON_NAME) == 0
                           ? "common name"
                           : "organization";
    char data[TLS_NAME_MAX + 2];
    size_t size = sizeof data;
    int r = gnutls_x509_crt_get_dn_by_oid(crt, oid, i, 0, data, &size);
    if (r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return 0;
    if (r != 0 && r != GNUTLS_E_SHORT_MEMORY_BUFFER)
        return error_set(err, EINVAL, "certificate: %s: %s", what,
                         gnutls_strerror(r));
    if (r != 0 && size <= TLS_NAME_MAX)
        size = TLS_NAME_MAX + 1; /* too long all the same */
    r = name_take(what, data, size, ret_name, err);
    return r < 0 ? r : 1;
}

static int read_subject(gnutls_x509_crt_t crt, struct tls_peer *peer,
                        struct error *err)
{
    char more[TLS_NAME_MAX + 1];
    int r = subject_part(crt, GNUTLS_OID_X520_COMMON_NAME, 0, peer->common_name,
                         err);
    if (r > 0)
        r = subject_part(crt, GNUTLS_OID_X520_COMMON_NAME, 1, more, err);
    if (r > 0)
        return error_set(err, EINVAL, "certificate: has two common names");
    for (unsigned i = 0; r >= 0; i++) {
        r = subject_part(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, i, more, err);
        if (r <= 0)
            break;
        if (i == ARRAY_LEN(peer->organizations))
            return error_set(err, EINVAL,
                             "certificate: has more than %zu organizations",
                             ARRAY_LEN(peer->organizations));
        memcpy(peer->organizations[i], more, sizeof more);
        peer->n_organizations = i + 1;
    }
    return r;
}

static int names_take(gnutls_subject_alt_names_t names, struct tls_peer *peer,
                      struct error *err)
{
    for (unsigned i = 0;; i++) {
        unsigned type;
        gnutls_datum_t name;
        int r = gnutls_subject_alt_names_get(names, i, &type, &name, NULL);
        if (r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return 0;
        if (r < 0)
            return error_set(err, EINVAL, "certificate: " SAN ": %s",
                             gnutls_strerror(r));
        if (type != GNUTLS_SAN_DNSNAME)
            continue;
        if (peer->n_dns == TLS_NAMES_MAX)
            return error_set(err, EINVAL,
                             "certificate: has more than %d DNS names",
                             TLS_NAMES_MAX);
        r = name_take("DNS name", (const char *)name.data, name.size,
                      peer->dns[peer->n_dns], err);
        if (r < 0)
            return r;
        peer->n_dns++;
    }
}

static int read_dns(gnutls_x509_crt_t crt, struct tls_peer *peer,
                    struct error *err)
{
    gnutls_datum_t extension = {NULL, 0};
    cleanup_with(names) gnutls_subject_alt_names_t names = NULL;
    int r = gnutls_x509_crt_get_extension_by_oid2(crt, SAN_OID, 0, &extension,
                                                  NULL);
    if (r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return 0;
    if (r == 0)
        r = gnutls_subject_alt_names_init(&names);
    if (r == 0)
        r = gnutls_x509_ext_import_subject_alt_names(&extension, names, 0);
    gnutls_free(extension.data);
    return r < 0 ? error_set(err, EINVAL, "certificate: " SAN ": %s",
                             gnutls_strerror(r))
                 : names_take(names, peer, err);
}

int tls_peer_read(const void *der, size_t size, struct tls_peer *ret_peer,
                  struct error *err)
{
    cleanup_with(x509) gnutls_x509_crt_t crt = NULL;
    cleanup_free struct tls_peer *peer = xcalloc(1, sizeof *peer);
    if (size > UINT32_MAX || gnutls_x509_crt_init(&crt) < 0)
        return error_set(err, EINVAL, "certificate: is too large");
    const gnutls_datum_t datum = {(unsigned char *)der, (unsigned)size};
    int r = gnutls_x509_crt_import(crt, &datum, GNUTLS_X509_FMT_DER);
    if (r < 0)
        return error_set(err, EINVAL, "certificate: %s", gnutls_strerror(r));
    r = read_subject(crt, peer, err);
    if (r == 0)
        r = read_dns(crt, peer, err);
    if (r == 0)
        *ret_peer = *peer;
    return r;
}

bool tls_peer_node(const struct tls_peer *peer, char ret_node[TLS_NAME_MAX + 1])
{
    size_t prefix = strlen(NODE_PREFIX);
    const char *node = "";
    if (strncmp(peer->common_name, NODE_PREFIX, prefix) == 0)
        node = peer->common_name + prefix;
    else if (peer->n_dns == 1)
        node = peer->dns[0];
    if (!*node)
        return false;
    (void)snprintf(ret_node, TLS_NAME_MAX + 1, "%s", node);
    return true;
}
