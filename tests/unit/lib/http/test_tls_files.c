#include <criterion/criterion.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/http/tls.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/await.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/tlsclient.h"
#include "tests/lib/tmpdir.h"

/* --- files -------------------------------------------------------------- */

enum { CERT, KEY, CA, ME_CERT, ME_KEY, NEW_CERT, NEW_KEY, BUNDLE, FILES };

struct place {
    char *dir, *files[FILES];
    struct cert *authority, *other;
    struct tls *tls;
    struct httpd *httpd;
};

static const struct cert_spec server_spec = {
    .name = "server", .purposes = CERT_SERVER, .local = true};
static const struct cert_spec me_spec = {.name = "me", .purposes = CERT_CLIENT};

static void put(const struct cert *authority, const struct cert_spec *spec,
                const char *cert_file, const char *key_file)
{
    struct cert *c = cert_create(authority, spec);
    cert_write(c, cert_file);
    if (key_file)
        cert_write_key(c, key_file);
    cert_destroy(c);
}

static void put_both(const struct cert *a, const struct cert *b,
                     const char *path)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    cert_pem(a, &text);
    if (b)
        cert_pem(b, &text);
    cert_write_text(text.data, path);
}

static void setup(struct place *p)
{
    static const char *const names[FILES] = {"s.crt",   "s.key",     "ca.crt",
                                             "me.crt",  "me.key",    "new.crt",
                                             "new.key", "bundle.crt"};
    struct error err = {0};
    log_set_level(LOG_ERROR);
    memset(p, 0, sizeof *p);
    p->dir = tmpdir_create();
    for (size_t i = 0; i < FILES; i++)
        p->files[i] = xasprintf("%s/%s", p->dir, names[i]);
    p->authority = cert_authority("one");
    p->other = cert_authority("two");
    cert_write(p->authority, p->files[CA]);
    put_both(p->authority, p->other, p->files[BUNDLE]);
    put(p->authority, &server_spec, p->files[CERT], p->files[KEY]);
    put(p->authority, &me_spec, p->files[ME_CERT], p->files[ME_KEY]);
    put(p->other, &me_spec, p->files[NEW_CERT], p->files[NEW_KEY]);
    const struct tls_config config = {p->files[CERT], p->files[KEY],
                                      p->files[CA]};
    cr_assert_eq(tls_create(&config, &p->tls, &err), 0, "%s", err.text);
}

static void teardown(struct place *p)
{
    httpd_stop(p->httpd);
    tls_destroy(p->tls);
    cert_destroy(p->authority);
    cert_destroy(p->other);
    for (size_t i = 0; i < FILES; i++)
        free(p->files[i]);
    tmpdir_remove(p->dir);
}

static uint64_t accepted(const struct place *p)
{
    int64_t end;
    uint64_t yes, no;
    tls_state(p->tls, &end, &yes, &no);
    return yes;
}

static uint64_t refused(const struct place *p)
{
    int64_t end;
    uint64_t yes, no;
    tls_state(p->tls, &end, &yes, &no);
    return no;
}

static void poll_expect(struct place *p, unsigned yes, unsigned no,
                        const char *what)
{
    uint64_t was_yes = accepted(p), was_no = refused(p);
    tls_poll(p->tls);
    cr_expect_eq(accepted(p) - was_yes, yes, "%s: accepted", what);
    cr_expect_eq(refused(p) - was_no, no, "%s: refused", what);
}

Test(tls_files, are_refused_with_a_reason)
{
    struct place p;
    struct tls *t = NULL;
    struct error err = {0};
    setup(&p);
    const struct cert_spec old = {
        .name = "server", .purposes = CERT_SERVER, .until_s = -5};
    const struct cert_spec young = {.name = "server", .from_s = 900};
    const struct cert_spec dead = {
        .name = "dead", .until_s = -5, .authority = true};
    cleanup_free char *old_cert = xasprintf("%s/old.crt", p.dir);
    cleanup_free char *old_key = xasprintf("%s/old.key", p.dir);
    cleanup_free char *young_cert = xasprintf("%s/young.crt", p.dir);
    cleanup_free char *young_key = xasprintf("%s/young.key", p.dir);
    cleanup_free char *dead_ca = xasprintf("%s/dead.crt", p.dir);
    cleanup_free char *none = xasprintf("%s/none", p.dir);
    put(p.authority, &old, old_cert, old_key);
    put(p.authority, &young, young_cert, young_key);
    put(NULL, &dead, dead_ca, NULL);
    const struct {
        const char *cert, *key, *ca, *text;
    } cases[] = {
        {none, p.files[KEY], p.files[CA], "none: No such file"},
        {p.files[CERT], none, p.files[CA], "none: No such file"},
        {p.files[CERT], p.files[KEY], none, "none: No such file"},
        {p.files[KEY], p.files[KEY], p.files[CA], "no certificate"},
        {p.files[CERT], p.files[CERT], p.files[CA], "no private key"},
        {p.files[CERT], p.files[ME_KEY], p.files[CA], "is not the key of"},
        {p.files[ME_CERT], p.files[ME_KEY], p.files[CA], "serverAuth"},
        {p.files[CERT], p.files[KEY], p.files[ME_CERT], "CA:TRUE"},
        {old_cert, old_key, p.files[CA], "expired at"},
        {young_cert, young_key, p.files[CA], "not valid before"},
        {p.files[CERT], p.files[KEY], dead_ca, "expired at"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct tls_config c = {cases[i].cert, cases[i].key, cases[i].ca};
        cr_expect_lt(tls_create(&c, &t, &err), 0, "%zu", i);
        cr_expect(strstr(err.text, cases[i].text), "%zu: %s", i, err.text);
    }
    teardown(&p);
}

Test(tls_files, that_are_wrong_leave_the_ones_before)
{
    struct place p;
    cleanup_str struct str text = STR_INIT(1 << 20);
    cleanup_free char *half = NULL;
    setup(&p);
    int64_t end, same_end;
    uint64_t n;
    tls_state(p.tls, &end, &n, &n);
    poll_expect(&p, 0, 0, "nothing changed");
    cert_pem(p.authority, &text);
    half = xstrndup(text.data, text.size / 2);
    cert_write_text(half, p.files[CERT]);
    poll_expect(&p, 0, 1, "half a certificate");
    poll_expect(&p, 0, 0, "is said once");
    put(p.authority, &server_spec, p.files[CERT], NULL);
    poll_expect(&p, 0, 1, "the key is still the other one's");
    cert_write_text("", p.files[KEY]);
    poll_expect(&p, 0, 1, "an empty key");
    (void)unlink(p.files[KEY]);
    poll_expect(&p, 0, 1, "no key");
    poll_expect(&p, 0, 0, "is said once, too");
    tls_state(p.tls, &same_end, &n, &n);
    cr_expect_eq(end, same_end);
    put(p.authority, &server_spec, p.files[CERT], p.files[KEY]);
    poll_expect(&p, 1, 0, "a sound pair");
    cert_write_text(half, p.files[CA]);
    poll_expect(&p, 0, 1, "half an authority");
    cert_write(p.other, p.files[CA]);
    poll_expect(&p, 1, 0, "another authority");
    teardown(&p);
}

/* Issued by a machine whose clock is ahead of ours. */
Test(tls_files, that_come_early_are_taken_when_it_is_time)
{
    struct place p;
    setup(&p);
    const struct cert_spec soon = {.name = "server", .from_s = 600};
    put(p.authority, &soon, p.files[CERT], p.files[KEY]);
    poll_expect(&p, 0, 1, "too early");
    poll_expect(&p, 0, 0, "is said once");
    clock_set_wall_ahead(601);
    poll_expect(&p, 1, 0, "now");
    clock_set_wall_ahead(0);
    teardown(&p);
}

/* --- while the server runs ---------------------------------------------- */

static void on_hello(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq), "hello");
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/", on_hello, 0, "hello"},
};

static struct tls_client_config serve(struct place *p, unsigned threads)
{
    struct error err = {0};
    const struct httpd_config http = {
        .name = "test",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = ARRAY_LEN(routes),
        .threads = threads,
        .tls = p->tls,
    };
    cr_assert_eq(httpd_start(&http, &p->httpd, &err), 0, "%s", err.text);
    return (struct tls_client_config){.port = httpd_port(p->httpd),
                                      .ca_file = p->files[BUNDLE],
                                      .cert_file = p->files[ME_CERT],
                                      .key_file = p->files[ME_KEY]};
}

Test(tls_files, new_authorities_judge_connections_that_exist)
{
    struct place p;
    struct tls_client kept;
    setup(&p);
    const struct tls_client_config how = serve(&p, 1);
    cr_assert(tls_client_open(&kept, &how));
    cr_expect_eq(tls_client_call(&kept, "GET", "/", "", NULL), 200);
    cert_write(p.other, p.files[CA]);
    poll_expect(&p, 1, 0, "another authority");
    cr_expect_eq(tls_client_call(&kept, "GET", "/", "", NULL), 403);
    cert_write(p.authority, p.files[CA]);
    poll_expect(&p, 1, 0, "the first one again");
    cr_expect_eq(tls_client_call(&kept, "GET", "/", "", NULL), 200);
    tls_client_close(&kept);
    teardown(&p);
}

static time_t wall_time(time_t *ret_now)
{
    time_t now = (time_t)clock_wall_s();
    if (ret_now)
        *ret_now = now;
    return now;
}

Test(tls_files, certificates_end_on_connections_that_exist)
{
    struct place p;
    struct tls_client kept;
    setup(&p);
    const struct cert_spec short_lived = {.name = "me", .until_s = 600};
    put(p.authority, &short_lived, p.files[ME_CERT], p.files[ME_KEY]);
    const struct tls_client_config how = serve(&p, 1);
    cr_assert(tls_client_open(&kept, &how));
    cr_expect_eq(tls_client_call(&kept, "GET", "/", "", NULL), 200);
    gnutls_global_set_time_function(wall_time);
    clock_set_wall_ahead(601);
    cr_expect_eq(tls_client_call(&kept, "GET", "/", "", NULL), 403);
    cr_expect(strstr(kept.body.data, "expired"), "%s", kept.body.data);
    clock_set_wall_ahead(0);
    gnutls_global_set_time_function(time);
    tls_client_close(&kept);
    teardown(&p);
}

/* --- rotation under load ------------------------------------------------ */

enum { WORKERS = 4, KEPT_FOR = 8 };

struct load {
    struct tls_client_config how[2]; /* before and after the clients' change */
    atomic_int which;
    atomic_bool stopping;
    atomic_uint begun; /* workers */
    atomic_uint good, bad, opened[WORKERS];
    atomic_uint serial; /* of the server's certificate, as seen last */
};

static void *load_run(void *arg)
{
    struct load *l = arg;
    atomic_uint *opened = &l->opened[atomic_fetch_add(&l->begun, 1)];
    while (!atomic_load(&l->stopping)) {
        struct tls_client c;
        if (!tls_client_open(&c, &l->how[atomic_load(&l->which)])) {
            atomic_fetch_add(&l->bad, 1);
            continue;
        }
        atomic_store(&l->serial, tls_client_serial(&c));
        atomic_fetch_add(opened, 1); /* who waits for it reads the serial */
        for (int i = 0; i < KEPT_FOR; i++)
            atomic_fetch_add(tls_client_call(&c, "GET", "/", "", NULL) == 200
                                 ? &l->good
                                 : &l->bad,
                             1);
        tls_client_close(&c);
    }
    return NULL;
}

/* Until no worker has a connection any more that it had, or was about to open,
 * before. */
static void go_round(struct load *l)
{
    for (size_t k = 0; k < WORKERS; k++) {
        unsigned until = atomic_load(&l->opened[k]) + 2;
        AWAIT(atomic_load(&l->opened[k]) >= until);
        cr_assert_geq(atomic_load(&l->opened[k]), until);
    }
}

Test(tls_files, rotation_drops_no_request)
{
    struct place p;
    struct load l = {.which = 0};
    struct tls_client kept;
    pthread_t threads[WORKERS];
    setup(&p);
    l.how[0] = l.how[1] = serve(&p, 2);
    l.how[1].cert_file = p.files[NEW_CERT];
    l.how[1].key_file = p.files[NEW_KEY];
    for (size_t i = 0; i < WORKERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, load_run, &l), 0);
    cr_assert(tls_client_open(&kept, &l.how[0]));
    go_round(&l);
    unsigned serial = atomic_load(&l.serial);
    /* the server's certificate, and half of it on the way */
    cert_write_text("-----BEGIN CERTIFICATE-----\nMIIB", p.files[CERT]);
    poll_expect(&p, 0, 1, "half a certificate");
    go_round(&l);
    put(p.other, &server_spec, p.files[CERT], p.files[KEY]);
    poll_expect(&p, 1, 0, "certificate");
    go_round(&l);
    cr_expect_neq(atomic_load(&l.serial), serial, "new handshakes have it");
    cr_expect_eq(tls_client_call(&kept, "GET", "/", "", NULL), 200);
    /* the clients' authority: both, then clients change, then the new one */
    put_both(p.authority, p.other, p.files[CA]);
    poll_expect(&p, 1, 0, "both authorities");
    go_round(&l);
    cr_expect_eq(tls_client_call(&kept, "GET", "/", "", NULL), 200);
    atomic_store(&l.which, 1);
    go_round(&l);
    cert_write(p.other, p.files[CA]);
    poll_expect(&p, 1, 0, "the new authority");
    go_round(&l);
    atomic_store(&l.stopping, true);
    for (size_t i = 0; i < WORKERS; i++)
        (void)pthread_join(threads[i], NULL);
    cr_expect_eq(atomic_load(&l.bad), 0);
    cr_expect_geq(atomic_load(&l.good), 300);
    cr_expect_eq(tls_client_call(&kept, "GET", "/", "", NULL), 403);
    tls_client_close(&kept);
    teardown(&p);
}
