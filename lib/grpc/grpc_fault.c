#include "lib/grpc/grpc_private.h"

#include <gnutls/x509.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "lib/grpc/grpc_frame.h"
#include "lib/io/clock.h"

enum {
    NAME_MAX_SHOWN = 64,
    PEM_MAX = 256 << 10, /* bytes of a certificate's file */
    /* of OpenSSL, x509_vfy.h; their numbers are a part of its interface */
    VERIFY_NOT_YET = 9,
    VERIFY_EXPIRED = 10,
    VERIFY_SELF_SIGNED = 18,
    VERIFY_SELF_SIGNED_IN_CHAIN = 19,
    VERIFY_NO_ISSUER = 20,
    VERIFY_NO_FIRST = 21,
    VERIFY_PURPOSE = 26,
};

DEFINE_CLEANUP(x509, gnutls_x509_crt_t, gnutls_x509_crt_deinit)
DEFINE_CLEANUP(curl, CURL *, curl_easy_cleanup)

/* --- our certificate ----------------------------------------------------- */

static bool read_own(const char *path, gnutls_x509_crt_t *ret_crt)
{
    cleanup_file FILE *f = fopen(path, "re");
    cleanup_free char *pem = xmalloc(PEM_MAX);
    cleanup_with(x509) gnutls_x509_crt_t crt = NULL;
    if (!f)
        return false;
    size_t size = fread(pem, 1, PEM_MAX, f);
    const gnutls_datum_t data = {(unsigned char *)pem, (unsigned)size};
    if (gnutls_x509_crt_init(&crt) < 0 ||
        gnutls_x509_crt_import(crt, &data, GNUTLS_X509_FMT_PEM) < 0)
        return false;
    *ret_crt = steal(&crt);
    return true;
}

static void name_of(gnutls_x509_crt_t crt,
                    int (*get)(gnutls_x509_crt_t, char *, size_t *),
                    char ret_name[NAME_MAX_SHOWN])
{
    char name[1024];
    size_t size = sizeof name;
    if (get(crt, name, &size) < 0)
        name[0] = '\0', size = 0;
    grpc_text(name, strnlen(name, size), ret_name, NAME_MAX_SHOWN);
}

/* The server only says that it does not take what we showed: what was that,
 * and what is plainly wrong with it? */
static void tell_own(const struct grpc_config *config, char *out, size_t size)
{
    cleanup_with(x509) gnutls_x509_crt_t crt = NULL;
    char subject[NAME_MAX_SHOWN], issuer[NAME_MAX_SHOWN];
    char from[CLOCK_UTC_MAX], until[CLOCK_UTC_MAX];
    out[0] = '\0';
    if (!config->cert || !read_own(config->cert, &crt))
        return;
    time_t now = time(NULL);
    time_t begins = gnutls_x509_crt_get_activation_time(crt);
    time_t ends = gnutls_x509_crt_get_expiration_time(crt);
    name_of(crt, gnutls_x509_crt_get_dn, subject);
    name_of(crt, gnutls_x509_crt_get_issuer_dn, issuer);
    clock_format_utc(begins, from);
    clock_format_utc(ends, until);
    if (now < begins)
        (void)snprintf(out, size, "; it is not valid before %s", from);
    else if (now > ends)
        (void)snprintf(out, size, "; it has expired on %s", until);
    else
        (void)snprintf(out, size,
                       "; it is \"%s\" by \"%s\", valid from %s to %s: is "
                       "that the authority which the server trusts, and its "
                       "clock right?",
                       subject, issuer, from, until);
}

/* --- whose certificate ---------------------------------------------------- */

/* Why the server's TLS refused this client; NULL: it did not. */
static const char *alert_of(const char *reason)
{
    static const struct {
        const char *alert, *says;
    } alerts[] = {
        {"alert certificate required", "it demands one, and we showed none"},
        {"alert bad certificate", "bad certificate"},
        {"alert certificate expired", "certificate expired"},
        {"alert unknown ca", "unknown authority"},
        {"alert certificate unknown", "certificate unknown"},
        {"alert unsupported certificate", "unsupported certificate"},
        {"alert certificate revoked", "certificate revoked"},
        {"alert access denied", "access denied"},
        {"alert decrypt error", "decrypt error"},
    };
    for (size_t i = 0; i < ARRAY_LEN(alerts); i++)
        if (strstr(reason, alerts[i].alert))
            return alerts[i].says;
    return NULL;
}

static int refused_by_server(const struct grpc_config *config, const char *says,
                             struct error *err)
{
    char own[320];
    tell_own(config, own, sizeof own);
    return error_set(err, EKEYREJECTED,
                     "the server refuses our certificate %s (%s)%s",
                     config->cert ? config->cert : "", says, own);
}

static int refused_by_us(const struct grpc_config *config,
                         const struct grpc_fault *fault, struct error *err)
{
    const char *why = fault->reason;
    switch (fault->verify) {
    case VERIFY_EXPIRED:
        why = "it has expired";
        break;
    case VERIFY_NOT_YET:
        why = "it is not valid yet; is our clock right?";
        break;
    case VERIFY_SELF_SIGNED:
    case VERIFY_SELF_SIGNED_IN_CHAIN:
    case VERIFY_NO_ISSUER:
    case VERIFY_NO_FIRST:
        return error_set(err, EKEYREJECTED,
                         "we refuse the server's certificate: no authority "
                         "in %s has signed it",
                         config->ca ? config->ca : "");
    case VERIFY_PURPOSE:
        why = "it is not meant for servers (extended key usage)";
        break;
    default:
        if (strstr(why, "subject name") ||
            strstr(why, "does not match target host"))
            why = "its subject alternative names lack the host of the endpoint";
    }
    return error_set(err, EKEYREJECTED,
                     "we refuse the server's certificate: %s", why);
}

static int tell_tls(const struct grpc_config *config,
                    const struct grpc_fault *fault, struct error *err)
{
    switch (fault->code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return refused_by_us(config, fault, err);
    case CURLE_SSL_CERTPROBLEM:
        return error_set(err, EKEYREJECTED,
                         "our certificate %s or its key %s cannot be used: %s",
                         config->cert, config->key, fault->reason);
    case CURLE_SSL_CACERT_BADFILE:
        return error_set(err, EKEYREJECTED,
                         "our file of authorities %s cannot be used: %s",
                         config->ca, fault->reason);
    default:
        return error_set(err, EKEYREJECTED,
                         "no TLS with the server: %s; does it speak TLS on "
                         "this port?",
                         fault->reason);
    }
}

/* --- everything else ----------------------------------------------------- */

static int tell_timeout(const struct grpc_fault *fault, struct error *err)
{
    if (!fault->connected)
        return error_set(err, ETIMEDOUT,
                         "no connection in time: is the machine up, and the "
                         "way to it?");
    return error_set(err, ETIMEDOUT,
                     "no answer within %u ms: does the server hang?",
                     fault->deadline_ms);
}

/* Codes that would look like the server's own words become ECONNREFUSED. */
static int tell_connect(const struct grpc_fault *fault, struct error *err)
{
    int code = (int)fault->os_errno;
    const char *text = code > 0 ? strerror(code) : fault->reason;
    switch (code) {
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
    case ECONNRESET:
        break;
    default:
        code = ECONNREFUSED;
    }
    return error_set(err, code,
                     "no connection: %s; does the container runtime run, and "
                     "is this its address?",
                     text);
}

bool grpc_fault_lost(const struct grpc_fault *fault)
{
    switch (fault->code) {
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_GOT_NOTHING:
        return true;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: /* also when nghttp2 does not like what came */
        return !strstr(fault->reason, "nghttp2");
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2_STREAM: /* also when that alone was reset */
        return strstr(fault->reason, "end of the underlying stream");
    case CURLE_HTTP2: /* also after GOAWAY */
        return strstr(fault->reason, "reset by peer") ||
               strstr(fault->reason, "Broken pipe");
    default:
        return false;
    }
}

int grpc_fault_tell(const struct grpc_config *config,
                    const struct grpc_fault *fault, struct error *err)
{
    const char *says = alert_of(fault->reason);
    if (says)
        return refused_by_server(config, says, err);
    if (grpc_fault_lost(fault))
        return error_set(err, ECONNRESET,
                         "the connection ended before the answer, whether "
                         "the call was carried out is not known: has the "
                         "server just stopped%s?",
                         config->plaintext ? ", or does it speak TLS" : "");
    switch (fault->code) {
    case CURLE_OPERATION_TIMEDOUT:
        return tell_timeout(fault, err);
    case CURLE_COULDNT_CONNECT:
        return tell_connect(fault, err);
    case CURLE_COULDNT_RESOLVE_HOST:
        return error_set(err, EHOSTUNREACH,
                         "the name of the host is not "
                         "known");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CIPHER:
        return tell_tls(config, fault, err);
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_PARTIAL_FILE:
        return error_set(err, EPROTO, "it broke off the call: %s",
                         fault->reason);
    default:
        return error_set(err, EIO, "%s", fault->reason);
    }
}

/* libcurl keeps only its first complaint; here are all. */
static int take_complaint(CURL *probe, curl_infotype type, char *text,
                          size_t size, void *ctx)
{
    char *ret_reason = ctx;
    char line[CURL_ERROR_SIZE];
    (void)probe;
    if (type != CURLINFO_TEXT)
        return 0;
    grpc_text(text, size, line, sizeof line);
    if (!*ret_reason && alert_of(line))
        (void)snprintf(ret_reason, CURL_ERROR_SIZE, "%s", line);
    return 0;
}

static void listen_on(CURL *probe, curl_socket_t fd, unsigned ms)
{
    CURLcode code = CURLE_AGAIN;
    int64_t until = clock_ms() + ms;
    while (code == CURLE_AGAIN || code == CURLE_OK) {
        struct pollfd what = {.fd = fd, .events = POLLIN};
        int64_t left = until - clock_ms();
        char byte;
        size_t n = 0;
        if (left <= 0 || poll(&what, 1, (int)left) <= 0)
            return;
        code = curl_easy_recv(probe, &byte, 1, &n);
        if (code == CURLE_OK && n == 0)
            return; /* closed */
    }
}

void grpc_fault_listen(CURL *curl, unsigned ms,
                       char ret_reason[CURL_ERROR_SIZE])
{
    cleanup_with(curl) CURL *probe = curl_easy_duphandle(curl);
    curl_socket_t fd = CURL_SOCKET_BAD;
    char first[CURL_ERROR_SIZE];
    ret_reason[0] = '\0';
    if (!probe)
        return;
    (void)curl_easy_setopt(probe, CURLOPT_ERRORBUFFER, first);
    (void)curl_easy_setopt(probe, CURLOPT_DEBUGFUNCTION, take_complaint);
    (void)curl_easy_setopt(probe, CURLOPT_DEBUGDATA, ret_reason);
    (void)curl_easy_setopt(probe, CURLOPT_CONNECT_ONLY, 1L);
    (void)curl_easy_setopt(probe, CURLOPT_SSL_ENABLE_ALPN, 0L);
    (void)curl_easy_setopt(probe, CURLOPT_TIMEOUT_MS, (long)ms);
    (void)curl_easy_setopt(probe, CURLOPT_PREREQFUNCTION, NULL);
    (void)curl_easy_setopt(probe, CURLOPT_SOCKOPTFUNCTION, NULL);
    (void)curl_easy_setopt(probe, CURLOPT_CLOSESOCKETFUNCTION, NULL);
    (void)curl_easy_setopt(probe, CURLOPT_HTTPHEADER, NULL);
    if (curl_easy_perform(probe) == CURLE_OK &&
        curl_easy_getinfo(probe, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK &&
        fd != CURL_SOCKET_BAD)
        listen_on(probe, fd, ms);
}
