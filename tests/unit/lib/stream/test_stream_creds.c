#include "lib/stream/stream_creds.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/lib/http/certs.h"
#include "tests/lib/tmpdir.h"

enum { CA, CERT, KEY, OTHER_KEY, TEXT, FILES };

static char *dir, *files[FILES];

static void set_up(void)
{
    static const struct cert_spec me = {.name = "system:node:h1"};
    struct cert *ca = cert_authority("cards"), *other = cert_create(ca, &me);
    dir = tmpdir_create();
    for (int i = 0; i < FILES; i++)
        files[i] = xasprintf("%s/%d.pem", dir, i);
    cert_write(ca, files[CA]);
    cert_issue(ca, &me, files[CERT], files[KEY]);
    cert_write_key(other, files[OTHER_KEY]);
    cert_write_text("not PEM", files[TEXT]);
    cert_destroy(other);
    cert_destroy(ca);
}

static void tear_down(void)
{
    for (int i = 0; i < FILES; i++)
        free(files[i]);
    tmpdir_remove(dir);
}

TestSuite(stream_creds, .init = set_up, .fini = tear_down);

static int create(const char *ca, const char *cert, const char *key,
                  struct error *err)
{
    const struct stream_creds_config config = {"10.0.0.2", ca, cert, key};
    struct stream_creds *creds = NULL;
    int r = stream_creds_create(&config, &creds, err);
    cr_expect_eq(r == 0, creds != NULL);
    stream_creds_destroy(creds);
    return r;
}

static void expect_refused(const char *ca, const char *cert, const char *key,
                           const char *named)
{
    struct error err = {0};
    cr_expect_eq(create(ca, cert, key, &err), -EKEYREJECTED);
    cr_expect(strstr(err.text, named), "%s", err.text);
}

Test(stream_creds, are_files_of_an_endpoint)
{
    struct error err = {0};
    cr_expect_eq(create(files[CA], files[CERT], files[KEY], &err), 0, "%s",
                 err.text);
    cr_expect_eq(create(files[CA], NULL, NULL, &err), 0, "%s", err.text);
}

Test(stream_creds, files_that_are_wrong_are_named)
{
    expect_refused("/nowhere", NULL, NULL, "/nowhere");
    expect_refused(files[TEXT], NULL, NULL, files[TEXT]);
    expect_refused(files[CA], "/nowhere", files[KEY], "/nowhere");
    expect_refused(files[CA], files[CERT], "/nowhere", "/nowhere");
    expect_refused(files[CA], files[CERT], files[TEXT], files[CERT]);
    expect_refused(files[CA], files[CERT], files[OTHER_KEY], files[OTHER_KEY]);
}

Test(stream_creds, set_up_a_session)
{
    static const char *const hosts[] = {"10.0.0.2", "fd00::2", "card0.lab"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        const struct stream_creds_config config = {hosts[i], files[CA], NULL,
                                                   NULL};
        struct stream_creds *creds = NULL;
        struct error err;
        gnutls_session_t session;
        cr_assert_eq(stream_creds_create(&config, &creds, &err), 0);
        cr_assert_eq(gnutls_init(&session, GNUTLS_CLIENT), 0);
        cr_expect_eq(stream_creds_use(creds, session), 0, "%s", hosts[i]);
        gnutls_deinit(session);
        stream_creds_destroy(creds);
    }
}
