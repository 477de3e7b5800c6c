#include "lib/stream/stream_creds.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <string.h>

#include "lib/io/file.h"

enum { FILE_MAX = 1 << 20 }; /* bytes of one file, as for our own listeners */

/* TLS 1.2 and 1.3 with forward secrecy and authenticated ciphers. */
#define PRIORITIES                                              \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:"               \
    "-RSA:-DHE-RSA:"                                            \
    "-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:" \
    "-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:%PROFILE_MEDIUM"

struct stream_creds {
    gnutls_certificate_credentials_t own;
    char *host;
    gnutls_typed_vdata_st wanted[2]; /* of the server's certificate */
};

void stream_creds_destroy(struct stream_creds *c)
{
    if (!c)
        return;
    if (c->own)
        gnutls_certificate_free_credentials(c->own);
    free(c->host);
    free(c);
}

static int refused(struct error *err, const char *path, const char *why)
{
    return error_set(err, EKEYREJECTED, "%s: %s", path, why);
}

/* A PEM file, whose text is wiped by the caller when it is a key. */
static int pem_read(const char *path, gnutls_datum_t *ret_pem,
                    struct error *err)
{
    char *text;
    size_t size;
    struct error why;
    if (file_read(path, FILE_MAX, &text, &size, &why) < 0)
        return error_set(err, EKEYREJECTED, "%s", why.text);
    *ret_pem = (gnutls_datum_t){(unsigned char *)text, (unsigned)size};
    return 0;
}

static int read_authority(struct stream_creds *c, const char *path,
                          struct error *err)
{
    gnutls_datum_t pem;
    int r = 0;
    if (!path) {
        r = gnutls_certificate_set_x509_system_trust(c->own);
        return r >= 0 ? 0 : refused(err, "the system's", gnutls_strerror(r));
    }
    r = pem_read(path, &pem, err);
    if (r < 0)
        return r;
    r = gnutls_certificate_set_x509_trust_mem(c->own, &pem,
                                              GNUTLS_X509_FMT_PEM);
    free(pem.data);
    return r > 0 ? 0 : refused(err, path, "holds no certificate in PEM form");
}

static int read_own(struct stream_creds *c,
                    const struct stream_creds_config *config, struct error *err)
{
    gnutls_datum_t cert, key;
    int r = pem_read(config->cert, &cert, err);
    if (r < 0)
        return r;
    r = pem_read(config->key, &key, err);
    if (r == 0) {
        r = gnutls_certificate_set_x509_key_mem(c->own, &cert, &key,
                                                GNUTLS_X509_FMT_PEM);
        if (r < 0)
            r = error_set(err, EKEYREJECTED,
                          "%s and %s are no certificate and its key: %s",
                          config->cert, config->key, gnutls_strerror(r));
        explicit_bzero(key.data, key.size);
        free(key.data);
    }
    free(cert.data);
    return r;
}

int stream_creds_create(const struct stream_creds_config *config,
                        struct stream_creds **ret_creds, struct error *err)
{
    cleanup_with(stream_creds) struct stream_creds *c = xcalloc(1, sizeof *c);
    if (gnutls_certificate_allocate_credentials(&c->own) < 0)
        abort(); /* out of memory, as x*alloc does */
    c->host = xstrdup(config->host);
    c->wanted[0] = (gnutls_typed_vdata_st){.type = GNUTLS_DT_DNS_HOSTNAME,
                                           .data = (unsigned char *)c->host};
    c->wanted[1] = (gnutls_typed_vdata_st){
        .type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER};
    int r = read_authority(c, config->ca, err);
    if (r == 0 && config->cert)
        r = read_own(c, config, err);
    if (r == 0)
        *ret_creds = steal(&c);
    return r;
}

/* Servers are told names only (RFC 6066, 3). */
static bool is_name(const char *host)
{
    struct in6_addr unused;
    return inet_pton(AF_INET, host, &unused) != 1 &&
           inet_pton(AF_INET6, host, &unused) != 1;
}

int stream_creds_use(const struct stream_creds *c, gnutls_session_t session)
{
    int r = gnutls_priority_set_direct(session, PRIORITIES, NULL);
    if (r == 0)
        r = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, c->own);
    if (r == 0 && is_name(c->host))
        r = gnutls_server_name_set(session, GNUTLS_NAME_DNS, c->host,
                                   strlen(c->host));
    if (r == 0)
        gnutls_session_set_verify_cert2(
            session, (gnutls_typed_vdata_st *)c->wanted, 2, 0);
    return r;
}
