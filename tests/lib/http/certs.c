#include "tests/lib/http/certs.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/mem.h"

enum { HOUR = 3600 };

struct cert {
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
};

static void must(int r, const char *what)
{
    if (r >= 0)
        return;
    (void)fprintf(stderr, "certs: %s: %s\n", what, gnutls_strerror(r));
    abort();
}
#define MUST(call) must((call), #call)

static void set_names(gnutls_x509_crt_t crt, const struct cert_spec *spec)
{
    const struct {
        const char *oid, *value;
    } parts[] = {
        {GNUTLS_OID_X520_COMMON_NAME, spec->name},
        {GNUTLS_OID_X520_COMMON_NAME, spec->second_name},
        {GNUTLS_OID_X520_ORGANIZATION_NAME, spec->organization},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (parts[i].value)
            MUST(gnutls_x509_crt_set_dn_by_oid(
                crt, parts[i].oid, 0, parts[i].value,
                (unsigned)strlen(parts[i].value)));
    for (size_t i = 0; i < ARRAY_LEN(spec->dns) && spec->dns[i]; i++)
        MUST(gnutls_x509_crt_set_subject_alt_name(
            crt, GNUTLS_SAN_DNSNAME, spec->dns[i],
            (unsigned)strlen(spec->dns[i]), GNUTLS_FSAN_APPEND));
    if (!spec->local)
        return;
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    MUST(gnutls_x509_crt_set_subject_alt_name(
        crt, GNUTLS_SAN_DNSNAME, "localhost", 9, GNUTLS_FSAN_APPEND));
    MUST(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS,
                                              &loopback, sizeof loopback,
                                              GNUTLS_FSAN_APPEND));
}

static void set_uses(gnutls_x509_crt_t crt, const struct cert_spec *spec)
{
    MUST(gnutls_x509_crt_set_basic_constraints(crt, spec->authority, -1));
    MUST(gnutls_x509_crt_set_key_usage(
        crt, spec->authority ? GNUTLS_KEY_KEY_CERT_SIGN
                             : GNUTLS_KEY_DIGITAL_SIGNATURE));
    if (spec->purposes & CERT_SERVER)
        MUST(gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER,
                                                 0));
    if (spec->purposes & CERT_CLIENT)
        MUST(gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_CLIENT,
                                                 0));
}

struct cert *cert_create(const struct cert *authority,
                         const struct cert_spec *spec)
{
    static atomic_uint serial = 1;
    struct cert *c = xcalloc(1, sizeof *c);
    time_t now = time(NULL);
    uint32_t number = htonl(atomic_fetch_add(&serial, 1));
    MUST(gnutls_x509_privkey_init(&c->key));
    MUST(gnutls_x509_privkey_generate(
        c->key, GNUTLS_PK_ECDSA,
        GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    MUST(gnutls_x509_crt_init(&c->crt));
    MUST(gnutls_x509_crt_set_version(c->crt, 3));
    MUST(gnutls_x509_crt_set_serial(c->crt, &number, sizeof number));
    MUST(gnutls_x509_crt_set_key(c->crt, c->key));
    MUST(gnutls_x509_crt_set_activation_time(
        c->crt, now + (spec->from_s ? spec->from_s : -HOUR)));
    MUST(gnutls_x509_crt_set_expiration_time(
        c->crt, now + (spec->until_s ? spec->until_s : HOUR)));
    set_names(c->crt, spec);
    set_uses(c->crt, spec);
    const struct cert *by = authority ? authority : c;
    MUST(gnutls_x509_crt_sign2(c->crt, by->crt, by->key, GNUTLS_DIG_SHA256, 0));
    return c;
}

struct cert *cert_authority(const char *name)
{
    const struct cert_spec spec = {.name = name, .authority = true};
    return cert_create(NULL, &spec);
}

void cert_destroy(struct cert *c)
{
    if (!c)
        return;
    gnutls_x509_crt_deinit(c->crt);
    gnutls_x509_privkey_deinit(c->key);
    free(c);
}

static void export(const struct cert *c, gnutls_x509_crt_fmt_t form,
                   struct str *out)
{
    gnutls_datum_t d;
    MUST(gnutls_x509_crt_export2(c->crt, form, &d));
    str_add_n(out, (char *)d.data, d.size);
    gnutls_free(d.data);
}

void cert_pem(const struct cert *c, struct str *out)
{
    export(c, GNUTLS_X509_FMT_PEM, out);
}

void cert_der(const struct cert *c, struct str *out)
{
    export(c, GNUTLS_X509_FMT_DER, out);
}

void cert_write_text(const char *text, const char *path)
{
    cleanup_free char *aside = xasprintf("%s.new", path);
    FILE *f = fopen(aside, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || rename(aside, path) != 0)
        abort();
}

void cert_write(const struct cert *c, const char *path)
{
    cleanup_str struct str text = STR_INIT(65536);
    cert_pem(c, &text);
    cert_write_text(text.data, path);
}

void cert_write_key(const struct cert *c, const char *path)
{
    gnutls_datum_t d;
    MUST(gnutls_x509_privkey_export2(c->key, GNUTLS_X509_FMT_PEM, &d));
    cert_write_text((char *)d.data, path); /* it ends with a NUL */
    gnutls_free(d.data);
}

void cert_issue(const struct cert *authority, const struct cert_spec *spec,
                const char *cert_path, const char *key_path)
{
    struct cert *c = cert_create(authority, spec);
    cert_write(c, cert_path);
    cert_write_key(c, key_path);
    cert_destroy(c);
}
