#include "lib/http/tls.h"

#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/mem.h"
#include "lib/http/tls_private.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/watch.h"

enum {
    FILE_MAX = 1 << 20, /* bytes of one file */
    OWN_MAX = 16,       /* certificates in our chain */
    CA_MAX = 1024,      /* authorities */
    CHAIN_MAX = 16,     /* certificates that a client shows */
    /* a verdict is looked at again after this long: an authority too can
     * expire, and the clock can be set */
    VERDICT_S = 60,
};

DEFINE_CLEANUP(privkey, gnutls_x509_privkey_t, gnutls_x509_privkey_deinit)

/* --- one sound state of the files --------------------------------------- */

struct tls_set {
    atomic_uint refs;
    uint64_t number;
    gnutls_certificate_credentials_t own;
    gnutls_x509_trust_list_t clients; /* NULL: none is asked for */
    int64_t not_after;                /* of our certificate, Unix seconds */
};

void tls_set_give(struct tls_set *set)
{
    if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
        return;
    if (set->clients)
        gnutls_x509_trust_list_deinit(set->clients, 1);
    if (set->own)
        gnutls_certificate_free_credentials(set->own);
    free(set);
}
DEFINE_CLEANUP(tls_set, struct tls_set *, tls_set_give)

int tls_set_use(struct tls_set *set, gnutls_session_t session, bool ask)
{
    int r = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, set->own);
    if (r < 0 || !ask)
        return r;
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    /* Without names of authorities: a client that was started before they
     * changed would find that its certificate is of none of them, and send
     * nothing (crypto/tls does), though the new ones may have signed it. */
    gnutls_certificate_send_x509_rdn_sequence(session, 1);
    return 0;
}

/* Certificates of a PEM text. */
struct certs {
    gnutls_x509_crt_t *list;
    unsigned n;
};

static void certs_fini(struct certs *c)
{
    for (unsigned i = 0; i < c->n; i++)
        gnutls_x509_crt_deinit(c->list[i]);
    gnutls_free(c->list);
}
#define cleanup_certs __attribute__((__cleanup__(certs_fini)))

static gnutls_datum_t datum_of(const struct str *text)
{
    return (gnutls_datum_t){(unsigned char *)text->data, (unsigned)text->size};
}

static int certs_read(const char *path, const struct str *text, unsigned max,
                      struct certs *ret, struct error *err)
{
    const gnutls_datum_t pem = datum_of(text);
    struct certs certs = {NULL, 0};
    if (!memmem(str_text(text), text->size, "-----BEGIN CERT", 15))
        return error_set(err, EINVAL, "%s: holds no certificate in PEM form",
                         path);
    int r = gnutls_x509_crt_list_import2(&certs.list, &certs.n, &pem,
                                         GNUTLS_X509_FMT_PEM, 0);
    if (r < 0)
        return error_set(err, EINVAL,
                         "%s: holds a certificate that is damaged or cut off: "
                         "%s",
                         path, gnutls_strerror(r));
    if (certs.n > max) {
        unsigned n = certs.n;
        certs_fini(&certs);
        return error_set(err, EINVAL,
                         "%s: holds %u certificates, at most %u are allowed",
                         path, n, max);
    }
    *ret = certs;
    return 0;
}

/* Is the time within a certificate's life?  -EAGAIN: it will be. */
static int life_check(const char *path, gnutls_x509_crt_t crt, int64_t now,
                      struct error *err)
{
    time_t from = gnutls_x509_crt_get_activation_time(crt);
    time_t until = gnutls_x509_crt_get_expiration_time(crt);
    char text[32];
    if (now < from) {
        clock_format_utc(from, text);
        return error_set(err, EAGAIN, "%s: is not valid before %s", path, text);
    }
    if (now > until) {
        clock_format_utc(until, text);
        return error_set(err, EINVAL, "%s: expired at %s", path, text);
    }
    return 0;
}

/* --- reading ------------------------------------------------------------ */

enum tls_file { FILE_CERT, FILE_KEY, FILE_CA, FILES };

struct tls {
    pthread_mutex_t polling; /* guards the files and their texts */
    struct watched_file files[FILES];
    struct str texts[FILES];
    unsigned n_files;
    bool early; /* what the files hold becomes valid later */

    pthread_mutex_t lock; /* guards what follows */
    struct tls_set *set;
    uint64_t accepted, refused;
    atomic_uint_fast64_t number; /* of the set */
};

static int read_own(const struct tls *t, int64_t now, struct tls_set *set,
                    struct error *err)
{
    const char *cert = t->files[FILE_CERT].path,
               *path = t->files[FILE_KEY].path;
    cleanup_certs struct certs chain = {NULL, 0};
    cleanup_with(privkey) gnutls_x509_privkey_t key = NULL;
    const gnutls_datum_t pem = datum_of(&t->texts[FILE_KEY]);
    int r = certs_read(cert, &t->texts[FILE_CERT], OWN_MAX, &chain, err);
    if (r == 0)
        r = life_check(cert, chain.list[0], now, err);
    if (r < 0)
        return r;
    if (!gnutls_x509_crt_check_key_purpose(chain.list[0],
                                           GNUTLS_KP_TLS_WWW_SERVER, 0))
        return error_set(err, EINVAL,
                         "%s: is not meant for servers: its extended key usage "
                         "must have serverAuth",
                         cert);
    r = gnutls_x509_privkey_init(&key);
    if (r == 0 && pem.size == 0)
        r = GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR;
    if (r == 0)
        r = gnutls_x509_privkey_import2(key, &pem, GNUTLS_X509_FMT_PEM, NULL,
                                        0);
    if (r < 0)
        return error_set(err, EINVAL,
                         "%s: holds no private key in PEM form without a "
                         "password: %s",
                         path, gnutls_strerror(r));
    r = gnutls_certificate_set_x509_key(set->own, chain.list, (int)chain.n,
                                        key);
    if (r < 0)
        return error_set(err, EINVAL, "%s: is not the key of %s: %s", path,
                         cert, gnutls_strerror(r));
    set->not_after = gnutls_x509_crt_get_expiration_time(chain.list[0]);
    return 0;
}

static int read_authorities(const struct tls *t, int64_t now,
                            struct tls_set *set, struct error *err)
{
    const char *path = t->files[FILE_CA].path;
    cleanup_certs struct certs cas = {NULL, 0};
    struct error last;
    unsigned alive = 0;
    int r = certs_read(path, &t->texts[FILE_CA], CA_MAX, &cas, err);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < cas.n; i++) {
        if (gnutls_x509_crt_get_ca_status(cas.list[i], NULL) <= 0)
            return error_set(err, EINVAL,
                             "%s: certificate %u is not that of an authority "
                             "(CA:TRUE)",
                             path, i + 1);
        alive += life_check(path, cas.list[i], now, &last) == 0;
    }
    if (!alive)
        return error_set(err, last.code, "%s", last.text);
    r = gnutls_x509_trust_list_init(&set->clients, 0);
    if (r == 0)
        r = gnutls_x509_trust_list_add_cas(set->clients, cas.list, cas.n,
                                           GNUTLS_TL_NO_DUPLICATES);
    if (r < 0)
        return error_set(err, EINVAL, "%s: %s", path, gnutls_strerror(r));
    cas.n = 0; /* the list's own now */
    return 0;
}

static int set_read(const struct tls *t, struct tls_set **ret_set,
                    struct error *err)
{
    cleanup_with(tls_set) struct tls_set *set = xcalloc(1, sizeof *set);
    int64_t now = clock_wall_s();
    atomic_store(&set->refs, 1);
    if (gnutls_certificate_allocate_credentials(&set->own) < 0)
        abort(); /* out of memory, as x*alloc does */
    int r = read_own(t, now, set, err);
    if (r == 0 && t->n_files > FILE_CA)
        r = read_authorities(t, now, set, err);
    if (r == 0)
        *ret_set = steal(&set);
    return r;
}

static void text_wipe(struct str *text)
{
    if (text->data)
        explicit_bzero(text->data, text->cap);
    str_fini(text);
}

/* 1 and a new set when a file is another one, 0 when none is. */
static int files_read(struct tls *t, struct tls_set **ret_set,
                      struct error *err)
{
    int failed = 0;
    bool changed = false;
    for (unsigned i = 0; i < t->n_files; i++) {
        cleanup_str struct str text = STR_INIT(FILE_MAX + 1);
        struct error why;
        int r = watch_poll(&t->files[i], &text, &why);
        if (r < 0 && !failed) {
            failed = r;
            *err = why;
        }
        if (r == 0)
            continue;
        changed = true;
        text_wipe(&t->texts[i]);
        t->texts[i] = text;
        str_init(&text, 0);
    }
    if (failed || (!changed && !t->early))
        return failed;
    int r = set_read(t, ret_set, err);
    t->early = r == -EAGAIN;
    if (t->early && !changed)
        return 0; /* said before */
    return r < 0 ? r : 1;
}

static void log_accepted(const struct tls *t, const struct tls_set *set)
{
    char until[32];
    clock_format_utc((time_t)set->not_after, until);
    log_event(LOG_INFO, "tls", "certificate", t->files[FILE_CERT].path,
              "not-after", until, "client-ca",
              t->n_files > FILE_CA ? t->files[FILE_CA].path : "none", NULL);
}

void tls_poll(void *ctx)
{
    struct tls *t = ctx;
    cleanup_with(tls_set) struct tls_set *set = NULL;
    struct error err = {0};
    pthread_mutex_lock(&t->polling);
    int r = files_read(t, &set, &err);
    if (r > 0)
        log_accepted(t, set);
    else if (r < 0)
        log_event(LOG_ERROR, "tls-refused", "error", err.text, "in-force",
                  "the certificates before", NULL);
    pthread_mutex_lock(&t->lock);
    t->accepted += r > 0;
    t->refused += r < 0;
    if (r > 0) {
        struct tls_set *before = t->set;
        set->number = before->number + 1;
        t->set = set;
        atomic_store(&t->number, set->number);
        set = before;
    }
    pthread_mutex_unlock(&t->lock);
    pthread_mutex_unlock(&t->polling);
}

int tls_create(const struct tls_config *config, struct tls **ret_tls,
               struct error *err)
{
    cleanup_with(tls) struct tls *t = xcalloc(1, sizeof *t);
    const char *const paths[FILES] = {config->cert_file, config->key_file,
                                      config->client_ca_file};
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_mutex_init(&t->polling, NULL);
    while (t->n_files < FILES && paths[t->n_files]) {
        watch_init(&t->files[t->n_files], paths[t->n_files], FILE_MAX);
        t->n_files++;
    }
    int r = files_read(t, &t->set, err);
    if (r < 0)
        return r;
    t->accepted = 1;
    log_accepted(t, t->set);
    *ret_tls = steal(&t);
    return 0;
}

void tls_destroy(struct tls *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->n_files; i++) {
        watch_fini(&t->files[i]);
        text_wipe(&t->texts[i]);
    }
    tls_set_give(t->set);
    (void)pthread_mutex_destroy(&t->polling);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

void tls_state(struct tls *t, int64_t *ret_not_after, uint64_t *ret_accepted,
               uint64_t *ret_refused)
{
    hold_lock(&t->lock);
    *ret_not_after = t->set->not_after;
    *ret_accepted = t->accepted;
    *ret_refused = t->refused;
}

struct tls_set *tls_set_take(struct tls *t)
{
    hold_lock(&t->lock);
    struct tls_set *set = t->set;
    atomic_fetch_add(&set->refs, 1);
    return set;
}

/* --- verifying clients -------------------------------------------------- */

bool tls_asks(const struct tls *t)
{
    return t->n_files > FILE_CA;
}

bool tls_verdict_holds(struct tls *t, const struct tls_verdict *v, int64_t now)
{
    return v->number == atomic_load(&t->number) && now <= v->until &&
           now >= v->until - VERDICT_S;
}

static void refuse(struct tls_verdict *v, const char *word, const char *text)
{
    v->refusal = word;
    (void)snprintf(v->text, sizeof v->text, "%s", text);
}

static void refuse_status(struct tls_verdict *v, unsigned status)
{
    if (status & GNUTLS_CERT_EXPIRED)
        refuse(v, "expired", "the client's certificate has expired");
    else if (status & GNUTLS_CERT_NOT_ACTIVATED)
        refuse(v, "not-yet-valid", "the client's certificate is not valid yet");
    else if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
        refuse(v, "purpose",
               "the client's certificate is not meant for clients: its "
               "extended key usage must have clientAuth");
    else if (status & GNUTLS_CERT_INSECURE_ALGORITHM)
        refuse(v, "weak",
               "the client's certificate or one above it is too weak: RSA "
               "needs 2048 bits, signatures SHA-256");
    else
        refuse(v, "foreign",
               "the client's certificate is of no authority that is accepted "
               "here");
}

/* What the client showed, as objects. */
static int chain_read(const gnutls_datum_t *der, unsigned n,
                      struct certs *ret_chain)
{
    ret_chain->list = gnutls_calloc(n, sizeof *ret_chain->list);
    if (!ret_chain->list)
        abort(); /* out of memory, as x*alloc does */
    for (unsigned i = 0; i < n; i++) {
        int r = gnutls_x509_crt_init(&ret_chain->list[i]);
        if (r < 0)
            return r;
        ret_chain->n = i + 1;
        r = gnutls_x509_crt_import(ret_chain->list[i], &der[i],
                                   GNUTLS_X509_FMT_DER);
        if (r < 0)
            return r;
    }
    return 0;
}

static void chain_verify(struct tls_set *set, struct certs *chain,
                         struct tls_verdict *v)
{
    gnutls_typed_vdata_st purpose = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT,
    };
    unsigned status = GNUTLS_CERT_INVALID;
    int r = gnutls_x509_trust_list_verify_crt2(
        set->clients, chain->list, chain->n, &purpose, 1,
        GNUTLS_PROFILE_TO_VFLAGS(GNUTLS_PROFILE_MEDIUM), &status, NULL);
    if (r < 0)
        refuse(v, "foreign", gnutls_strerror(r));
    else if (status)
        refuse_status(v, status);
    for (unsigned i = 0; i < chain->n; i++) {
        int64_t end = gnutls_x509_crt_get_expiration_time(chain->list[i]);
        if (!v->refusal && end < v->until)
            v->until = end;
    }
}

void tls_verify(struct tls *t, gnutls_session_t session, int64_t now,
                struct tls_verdict *ret_verdict)
{
    struct tls_verdict *v = ret_verdict;
    cleanup_with(tls_set) struct tls_set *set = tls_set_take(t);
    cleanup_certs struct certs chain = {NULL, 0};
    unsigned n = 0;
    struct error err;
    const gnutls_datum_t *der = gnutls_certificate_get_peers(session, &n);
    memset(v, 0, sizeof *v);
    v->number = set->number;
    v->until = now + VERDICT_S;
    if (!der || n == 0)
        refuse(v, "missing", "a client certificate is needed here");
    else if (n > CHAIN_MAX)
        refuse(v, "unreadable", "the client shows too many certificates");
    else if (chain_read(der, n, &chain) < 0)
        refuse(v, "unreadable", "the client's certificate cannot be read");
    else
        chain_verify(set, &chain, v);
    if (!v->refusal && tls_peer_read(der[0].data, der[0].size, &v->peer, &err))
        refuse(v, "unreadable", err.text);
}
