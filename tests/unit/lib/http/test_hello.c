#include "lib/http/httpd_hello.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <string.h>

#include "lib/base/str.h"

/* What GnuTLS sends first when it offers these protocols. */
static ssize_t keep(gnutls_transport_ptr_t arg, const void *data, size_t size)
{
    str_add_n(arg, data, size);
    return (ssize_t)size;
}

static ssize_t nothing(gnutls_transport_ptr_t arg, void *data, size_t size)
{
    (void)arg;
    (void)data;
    (void)size;
    errno = EAGAIN;
    return -1;
}

static void hello_of(struct str *out, const char *const *names, unsigned n)
{
    gnutls_session_t session;
    gnutls_certificate_credentials_t own;
    gnutls_datum_t list[8];
    str_reset(out);
    cr_assert_eq(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK), 0);
    cr_assert_eq(gnutls_certificate_allocate_credentials(&own), 0);
    cr_assert_eq(gnutls_set_default_priority(session), 0);
    (void)gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, own);
    for (unsigned i = 0; i < n; i++)
        list[i] = (gnutls_datum_t){(unsigned char *)names[i],
                                   (unsigned)strlen(names[i])};
    if (n)
        cr_assert_eq(gnutls_alpn_set_protocols(session, list, n, 0), 0);
    gnutls_transport_set_ptr(session, out);
    gnutls_transport_set_push_function(session, keep);
    gnutls_transport_set_pull_function(session, nothing);
    cr_assert_eq(gnutls_handshake(session), GNUTLS_E_AGAIN);
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(own);
}

static enum hello read_of(const struct str *s, size_t size)
{
    size_t need = 0;
    enum hello r = hello_read(s->data, size, &need);
    if (r == HELLO_MORE)
        cr_expect(need > size && need <= HELLO_MAX && need <= s->size,
                  "%zu of %zu: %zu", size, s->size, need);
    return r;
}

Test(hello, finds_the_offer)
{
    static const struct {
        const char *names[3];
        unsigned n;
        enum hello wanted;
    } offers[] = {
        {{"h2", "http/1.1"}, 2, HELLO_H2},
        {{"http/1.1", "h2"}, 2, HELLO_H2},
        {{"h2"}, 1, HELLO_H2},
        {{"http/1.1"}, 1, HELLO_OTHER},
        {{"h2c", "h", "H2"}, 3, HELLO_OTHER},
        {{NULL}, 0, HELLO_OTHER},
    };
    cleanup_str struct str hello = STR_INIT(1 << 16);
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
        hello_of(&hello, offers[i].names, offers[i].n);
        for (size_t size = 0; size < hello.size; size++)
            cr_expect_eq(read_of(&hello, size), HELLO_MORE, "%zu", size);
        cr_expect_eq(read_of(&hello, hello.size), offers[i].wanted, "%zu", i);
        str_add(&hello, "and what comes next");
        cr_expect_eq(read_of(&hello, hello.size), offers[i].wanted, "%zu", i);
    }
}

/* Whatever one byte is changed to, or wherever it is cut, it stays within. */
Test(hello, survives_damage)
{
    static const char *const names[] = {"h2"};
    cleanup_str struct str hello = STR_INIT(1 << 16);
    size_t need;
    unsigned other = 0;
    hello_of(&hello, names, 1);
    for (size_t at = 0; at < hello.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            hello.data[at] = (char)(hello.data[at] ^ 1 << bit);
            other += hello_read(hello.data, hello.size, &need) == HELLO_OTHER;
            hello.data[at] = (char)(hello.data[at] ^ 1 << bit);
        }
    cr_expect_gt(other, 100);
    hello.data[3] = 0x40; /* a record of 16 KiB and one */
    hello.data[4] = 1;
    cr_expect_eq(hello_read(hello.data, hello.size, &need), HELLO_OTHER);
    cr_expect_eq(hello_read("GET / HTTP/1.1\r\n", 16, &need), HELLO_OTHER);
    cr_expect_eq(hello_read("G", 1, &need), HELLO_OTHER);
    cr_expect_eq(hello_read("", 0, &need), HELLO_MORE);
}
