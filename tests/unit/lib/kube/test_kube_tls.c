/* Calls over mutual TLS: who is trusted, whose name is expected, and that
 * certificates which change are used without a restart. */
#include "lib/kube/client.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/http/httpd.h"
#include "lib/http/tls.h"
#include "lib/io/clock.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/tmpdir.h"

/* Who the client is, and by what name it called. */
static void whoami(struct httpd_request *rq, void *ctx)
{
    const struct tls_peer *peer = httpd_peer(rq);
    const char *host = httpd_header(rq, "Host");
    (void)ctx;
    str_addf(httpd_reply(rq), "%s at %.9s", peer ? peer->common_name : "nobody",
             host ? host : "");
}

struct site {
    char *dir;
    struct cert *authority, *foreign;
    struct tls *tls;
    struct httpd *httpd;
    struct kube_config config;
    struct kube_client *client;
    struct http_answer answer;
};

static char *file(const struct site *s, const char *name)
{
    return xasprintf("%s/%s", s->dir, name);
}

/* DIR/NAME.crt and DIR/NAME.key. */
static void issue(const struct site *s, const struct cert *authority,
                  const char *name, const struct cert_spec *spec)
{
    cleanup_free char *crt = xasprintf("%s/%s.crt", s->dir, name);
    cleanup_free char *key = xasprintf("%s/%s.key", s->dir, name);
    struct cert *c = cert_create(authority, spec);
    cert_write(c, crt);
    cert_write_key(c, key);
    cert_destroy(c);
}

static void issue_client(const struct site *s, const char *name)
{
    const struct cert_spec spec = {.name = name, .purposes = CERT_CLIENT};
    issue(s, s->authority, "client", &spec);
}

/* A server for 127.0.0.1 and kube.example, or for the latter alone. */
static void site_start(struct site *s, bool local)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/whoami", whoami, 0, "whoami"}};
    const struct cert_spec spec = {.name = "kube.example",
                                   .dns = {"kube.example"},
                                   .purposes = CERT_SERVER,
                                   .local = local};
    struct error err = {0};
    memset(s, 0, sizeof *s);
    s->dir = tmpdir_create();
    s->authority = cert_authority("ours");
    s->foreign = cert_authority("foreign");
    issue(s, s->authority, "server", &spec);
    cleanup_free char *crt = file(s, "server.crt");
    cleanup_free char *key = file(s, "server.key");
    cleanup_free char *ca = file(s, "ca.crt");
    cert_write(s->authority, ca);
    const struct tls_config tls = {crt, key, ca};
    cr_assert_eq(tls_create(&tls, &s->tls, &err), 0, "%s", err.text);
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .threads = 1,
                                        .tls = s->tls};
    cr_assert_eq(httpd_start(&config, &s->httpd, &err), 0, "%s", err.text);
    s->config.server = xasprintf("https://127.0.0.1:%u", httpd_port(s->httpd));
    s->config.ca_file = file(s, "ca.crt");
    s->config.cert_file = file(s, "client.crt");
    s->config.key_file = file(s, "client.key");
    issue_client(s, "first");
}

static void site_connect(struct site *s)
{
    struct error err = {0};
    cr_assert_eq(kube_client_create(&s->config, 60000, &s->client, &err), 0,
                 "%s", err.text);
}

static void site_stop(struct site *s)
{
    kube_client_destroy(s->client);
    httpd_stop(s->httpd);
    tls_destroy(s->tls);
    cert_destroy(s->authority);
    cert_destroy(s->foreign);
    str_fini(&s->answer.body);
    char *const texts[] = {s->config.server,    s->config.server_name,
                           s->config.ca_file,   s->config.ca_pem,
                           s->config.cert_file, s->config.cert_pem,
                           s->config.key_file,  s->config.key_pem};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    tmpdir_remove(s->dir);
}

static int call(struct site *s, struct error *err)
{
    const struct kube_request rq = {.method = "GET", .path = "/whoami"};
    return kube_call(s->client, &rq, &s->answer, err);
}

static void expect_answer(struct site *s, const char *want)
{
    struct error err = {0};
    cr_assert_eq(call(s, &err), 0, "%s", err.text);
    cr_expect_str_eq(s->answer.body.data, want);
}

Test(kube_tls, files)
{
    struct site s;
    site_start(&s, true);
    site_connect(&s);
    expect_answer(&s, "first at 127.0.0.1");
    site_stop(&s);
}

static char *read_text(const char *path)
{
    cleanup_file FILE *f = fopen(path, "re");
    char *text = xcalloc(1, 16384);
    cr_assert_not_null(f);
    cr_assert_gt(fread(text, 1, 16383, f), 0u);
    return text;
}

/* PEM texts win over files. */
Test(kube_tls, texts)
{
    struct site s;
    site_start(&s, true);
    s.config.ca_pem = read_text(s.config.ca_file);
    s.config.cert_pem = read_text(s.config.cert_file);
    s.config.key_pem = read_text(s.config.key_file);
    cert_write(s.foreign, s.config.ca_file);
    issue_client(&s, "second");
    site_connect(&s);
    expect_answer(&s, "first at 127.0.0.1");
    site_stop(&s);
}

/* Nothing is sent to one that is not trusted. */
static void expect_untrusted(struct site *s)
{
    struct error err = {0};
    cr_expect_eq(call(s, &err), -ECONNREFUSED, "%s", err.text);
    cr_expect_not_null(strstr(err.text, "certificate"), "%s", err.text);
}

Test(kube_tls, a_foreign_authority)
{
    struct site s;
    site_start(&s, true);
    cert_write(s.foreign, s.config.ca_file);
    site_connect(&s);
    expect_untrusted(&s);
    site_stop(&s);
}

Test(kube_tls, the_name_that_is_expected)
{
    struct site s;
    site_start(&s, false);
    site_connect(&s);
    expect_untrusted(&s); /* it is not valid for 127.0.0.1 */
    kube_client_destroy(s.client);
    s.client = NULL;
    s.config.server_name = xstrdup("kube.example");
    site_connect(&s);
    /* the certificate's name, and the host's address all the same */
    expect_answer(&s, "first at 127.0.0.1");
    kube_client_destroy(s.client);
    s.client = NULL;
    free(s.config.server_name);
    s.config.server_name = xstrdup("other.example");
    site_connect(&s);
    expect_untrusted(&s);
    site_stop(&s);
}

Test(kube_tls, a_client_without_a_certificate_is_refused)
{
    struct site s;
    struct error err = {0};
    site_start(&s, true);
    free(s.config.cert_file);
    free(s.config.key_file);
    s.config.cert_file = s.config.key_file = NULL;
    site_connect(&s);
    cr_expect_eq(call(&s, &err), -EACCES, "%s", err.text);
    site_stop(&s);
}

/* The connection that exists stands on the certificate before: a new one is
 * begun, within a second. */
Test(kube_tls, a_client_certificate_that_changes)
{
    struct site s;
    clock_set_fake(100000);
    site_start(&s, true);
    site_connect(&s);
    expect_answer(&s, "first at 127.0.0.1");
    issue_client(&s, "second");
    clock_set_fake(100900);
    expect_answer(&s, "first at 127.0.0.1");
    clock_set_fake(101000);
    expect_answer(&s, "second at 127.0.0.1");
    expect_answer(&s, "second at 127.0.0.1");
    site_stop(&s);
    clock_set_fake(-1);
}

/* The certificate is new, the key not yet: calls fail unsent, and succeed
 * once both are there. */
Test(kube_tls, a_pair_that_changes_in_two_steps)
{
    struct site s;
    struct error err = {0};
    clock_set_fake(100000);
    site_start(&s, true);
    site_connect(&s);
    expect_answer(&s, "first at 127.0.0.1");
    cleanup_free char *key = read_text(s.config.key_file);
    issue_client(&s, "second");
    cleanup_free char *second_key = read_text(s.config.key_file);
    cert_write_text(key, s.config.key_file);
    clock_set_fake(102000);
    cr_expect_eq(call(&s, &err), -ECONNREFUSED, "%s", err.text);
    cert_write_text(second_key, s.config.key_file);
    expect_answer(&s, "second at 127.0.0.1");
    site_stop(&s);
    clock_set_fake(-1);
}

/* An authority that is withdrawn is not trusted from memory. */
Test(kube_tls, an_authority_that_changes)
{
    struct site s;
    clock_set_fake(100000);
    site_start(&s, true);
    site_connect(&s);
    expect_answer(&s, "first at 127.0.0.1");
    cert_write(s.foreign, s.config.ca_file);
    clock_set_fake(102000);
    expect_untrusted(&s);
    cert_write(s.authority, s.config.ca_file);
    clock_set_fake(104000);
    expect_answer(&s, "first at 127.0.0.1");
    site_stop(&s);
    clock_set_fake(-1);
}
