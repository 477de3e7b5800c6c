#include <criterion/criterion.h>

#include "lib/base/mem.h"
#include "lib/http/tls.h"
#include "tests/lib/http/certs.h"

static int read_spec(const struct cert_spec *spec, struct tls_peer *ret_peer,
                     struct error *err)
{
    struct cert *authority = cert_authority("a");
    struct cert *c = cert_create(authority, spec);
    cleanup_str struct str der = STR_INIT(65536);
    cert_der(c, &der);
    cert_destroy(c);
    cert_destroy(authority);
    return tls_peer_read(der.data, der.size, ret_peer, err);
}

Test(tls_peer, reads_names)
{
    static struct tls_peer peer;
    struct error err = {0};
    const struct cert_spec spec = {.name = "system:node:h1",
                                   .organization = "biga:advertisers",
                                   .dns = {"h1", "h1.example"},
                                   .local = true};
    cr_assert_eq(read_spec(&spec, &peer, &err), 0, "%s", err.text);
    cr_expect_str_eq(peer.common_name, "system:node:h1");
    cr_expect_eq(peer.n_organizations, 1);
    cr_expect_str_eq(peer.organizations[0], "biga:advertisers");
    cr_expect_eq(peer.n_dns, 3);
    cr_expect_str_eq(peer.dns[1], "h1.example");
    cr_expect_str_eq(peer.dns[2], "localhost");
}

Test(tls_peer, names_nodes)
{
    static struct tls_peer peer;
    char node[TLS_NAME_MAX + 1];
    struct error err = {0};
    const struct {
        struct cert_spec spec;
        const char *node;
    } cases[] = {
        {{.name = "system:node:h1"}, "h1"},
        {{.name = "system:node:h1", .dns = {"h2"}}, "h1"},
        {{.name = "anything", .dns = {"h2"}}, "h2"},
        {{.dns = {"h2"}}, "h2"},
        {{.dns = {"h2", "h3"}}, NULL},
        {{.name = "system:node:"}, NULL},
        {{.name = "system:node:", .dns = {"h2"}}, NULL},
        {{.name = "h1"}, NULL},
        {{.name = "system:kube-scheduler"}, NULL},
        {{.name = "System:Node:h1"}, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cr_assert_eq(read_spec(&cases[i].spec, &peer, &err), 0, "%zu: %s", i,
                     err.text);
        bool found = tls_peer_node(&peer, node);
        cr_expect_eq(found, cases[i].node != NULL, "%zu", i);
        if (found && cases[i].node)
            cr_expect_str_eq(node, cases[i].node, "%zu", i);
    }
}

/* gnutls writes no such name, others do; nobody checks the signature here. */
Test(tls_peer, refuses_names_that_look_like_others)
{
    static struct tls_peer peer;
    static const char bad[] = {'\0', '\x01', '\n', '\x7f', '\xe9'};
    const struct cert_spec spec = {.name = "a", .dns = {"dns-name.example"}};
    struct cert *c = cert_create(NULL, &spec);
    cleanup_str struct str der = STR_INIT(65536);
    struct error err = {0};
    cert_der(c, &der);
    cert_destroy(c);
    char *name = memmem(der.data, der.size, "dns-name.example", 16);
    cr_assert_not_null(name);
    cr_expect_eq(tls_peer_read(der.data, der.size, &peer, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        name[8] = bad[i];
        err.text[0] = '\0';
        cr_expect_eq(tls_peer_read(der.data, der.size, &peer, &err), -EINVAL,
                     "%zu: %s", i, peer.dns[0]);
        cr_expect(strstr(err.text, "DNS name"), "%zu: %s", i, err.text);
    }
}

Test(tls_peer, refuses_what_is_not_clear)
{
    static struct tls_peer peer;
    struct cert_spec many = {.name = "x"};
    const struct {
        struct cert_spec spec;
        const char *text;
    } cases[] = {
        {{.name = "a", .second_name = "b"}, "two common names"},
        {{.name = "a\tb"}, "printable"},
        {{.name = "\xc3\xa9"}, "printable"},
    };
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cr_expect_eq(read_spec(&cases[i].spec, &peer, &err), -EINVAL, "%zu", i);
        cr_expect(strstr(err.text, cases[i].text), "%zu: %s", i, err.text);
    }
    for (size_t i = 0; i <= TLS_NAMES_MAX; i++)
        many.dns[i] = "n";
    cr_expect_eq(read_spec(&many, &peer, &err), -EINVAL);
    cr_expect(strstr(err.text, "more than 16 DNS names"), "%s", err.text);
    cr_expect_eq(tls_peer_read("x", 1, &peer, &err), -EINVAL);
    cr_expect_eq(tls_peer_read("", 0, &peer, &err), -EINVAL);
}
