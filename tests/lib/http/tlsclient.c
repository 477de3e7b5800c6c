#include "tests/lib/http/tlsclient.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"

static ssize_t push_piece(gnutls_transport_ptr_t fd, const void *data,
                          size_t size)
{
    (void)usleep(size ? 200 : 0); /* long enough to be a packet */
    return send((int)(intptr_t)fd, data, size ? 1 : 0, MSG_NOSIGNAL);
}

static bool start(struct tls_client *c, const struct tls_client_config *how)
{
    const char *priorities = how->priorities ? how->priorities : "NORMAL";
    const int on = 1; /* the request does not wait for an answer to Finished */
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (gnutls_certificate_allocate_credentials(&c->own) < 0 ||
        gnutls_init(&c->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL) < 0 ||
        gnutls_priority_set_direct(c->session, priorities, NULL) < 0)
        return false;
    if (how->ca_file && gnutls_certificate_set_x509_trust_file(
                            c->own, how->ca_file, GNUTLS_X509_FMT_PEM) <= 0)
        return false;
    if (how->cert_file &&
        gnutls_certificate_set_x509_key_file(
            c->own, how->cert_file, how->key_file, GNUTLS_X509_FMT_PEM) < 0)
        return false;
    (void)gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, c->own);
    if (how->ca_file)
        gnutls_session_set_verify_cert(c->session, "localhost", 0);
    gnutls_transport_set_int(c->session, c->fd);
    if (how->alpn) {
        const gnutls_datum_t alpn = {(unsigned char *)how->alpn,
                                     (unsigned)strlen(how->alpn)};
        (void)gnutls_alpn_set_protocols(c->session, &alpn, 1, 0);
    }
    if (how->in_pieces)
        gnutls_transport_set_push_function(c->session, push_piece);
    gnutls_handshake_set_timeout(c->session, TLS_PATIENCE_MS);
    gnutls_record_set_timeout(c->session, TLS_PATIENCE_MS);
    int r;
    do {
        r = gnutls_handshake(c->session);
    } while (r < 0 && !gnutls_error_is_fatal(r));
    return r == 0;
}

bool tls_client_open(struct tls_client *c, const struct tls_client_config *how)
{
    *c = (struct tls_client){.fd = raw_connect(how->port)};
    str_init(&c->in, 64 << 20);
    str_init(&c->body, 64 << 20);
    if (start(c, how))
        return true;
    tls_client_close(c);
    return false;
}

void tls_client_close(struct tls_client *c)
{
    if (!c->session && !c->own)
        return;
    if (c->session)
        gnutls_deinit(c->session);
    if (c->own)
        gnutls_certificate_free_credentials(c->own);
    (void)close(c->fd);
    str_fini(&c->in);
    str_fini(&c->body);
    *c = (struct tls_client){.fd = -1};
}

bool tls_client_send(struct tls_client *c, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = gnutls_record_send(c->session, data, size);
        if (n < 0 && !gnutls_error_is_fatal((int)n))
            continue;
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static bool receive(struct tls_client *c)
{
    char buffer[16384];
    ssize_t n;
    do {
        n = gnutls_record_recv(c->session, buffer, sizeof buffer);
    } while (n == GNUTLS_E_INTERRUPTED || n == GNUTLS_E_AGAIN);
    c->ended = n <= 0 && n != GNUTLS_E_TIMEDOUT;
    if (n <= 0)
        return false;
    str_add_n(&c->in, buffer, (size_t)n);
    return true;
}

bool tls_client_take(struct tls_client *c, void *ret_data, size_t size)
{
    while (c->in.size < size)
        if (!receive(c))
            return false;
    if (size > 0)
        memcpy(ret_data, c->in.data, size);
    c->in.size -= size;
    memmove(c->in.data, c->in.data + size, c->in.size);
    return true;
}

int tls_client_read(struct tls_client *c)
{
    const char *end;
    int status = 0;
    while (!(end = c->in.size ? memmem(c->in.data, c->in.size, "\r\n\r\n", 4)
                              : NULL))
        if (!receive(c))
            return 0;
    size_t head = (size_t)(end - c->in.data) + 4, size = 0;
    const char *length = memmem(c->in.data, head, "Content-Length: ", 16);
    if (sscanf(c->in.data, "HTTP/1.1 %d", &status) != 1)
        return 0;
    if (length)
        size = strtoul(length + 16, NULL, 10);
    while (c->in.size < head + size)
        if (!receive(c))
            return 0;
    str_reset(&c->body);
    str_add_n(&c->body, c->in.data + head, size);
    c->in.size -= head + size;
    memmove(c->in.data, c->in.data + head + size, c->in.size);
    return status;
}

int tls_client_call(struct tls_client *c, const char *method, const char *path,
                    const char *headers, const char *body)
{
    cleanup_str struct str text = STR_INIT(64 << 20);
    str_addf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, path,
             headers);
    if (body)
        str_addf(&text, "Content-Length: %zu\r\n", strlen(body));
    str_add(&text, "\r\n");
    if (body)
        str_add(&text, body);
    return tls_client_send(c, text.data, text.size) ? tls_client_read(c) : 0;
}

int tls_client_once(const struct tls_client_config *how, const char *path,
                    struct str *ret_body)
{
    struct tls_client c;
    if (!tls_client_open(&c, how))
        return -1;
    int status = tls_client_call(&c, "GET", path, "", NULL);
    if (ret_body) {
        str_reset(ret_body);
        str_add_n(ret_body, str_text(&c.body), c.body.size);
    }
    tls_client_close(&c);
    return status;
}

uint32_t tls_client_serial(const struct tls_client *c)
{
    unsigned n;
    uint32_t number = 0;
    size_t size = sizeof number;
    gnutls_x509_crt_t crt;
    const gnutls_datum_t *der = gnutls_certificate_get_peers(c->session, &n);
    if (!der || gnutls_x509_crt_init(&crt) < 0)
        return 0;
    if (gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) == 0)
        (void)gnutls_x509_crt_get_serial(crt, &number, &size);
    gnutls_x509_crt_deinit(crt);
    return ntohl(number);
}
