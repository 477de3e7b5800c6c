/* Certificates, authorities and tokens that are replaced while clients shake
 * hands, publish, read and hang up, for some seconds, for ThreadSanitizer to
 * watch.
 *
 *   race_tls [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "extender/admit/access.h"
#include "extender/serve/app.h"
#include "extender/server.h"
#include "lib/io/log.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/tlsclient.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define TOKEN "a-token-of-twenty-two"

enum { N_CLIENTS = 4, PER_CONNECTION = 4 };
/* clients read an authority of their own: the server's is half at times */
enum { CA, MY_CA, CERT, KEY, NODE_CERT, NODE_KEY, TOKENS, FILES };

static char *dir, *files[FILES];
static struct server *server;
static struct cert *authority;
static atomic_bool stopping;
static atomic_ulong n_good, n_bad;

static void put(const struct cert_spec *spec, const char *crt, const char *key)
{
    struct cert *c = cert_create(authority, spec);
    cert_write(c, crt);
    cert_write_key(c, key);
    cert_destroy(c);
}

static const struct cert_spec extender = {.name = "extender", .local = true};
static const struct cert_spec node = {.name = "system:node:h1"};

static void count(int status, int wanted)
{
    atomic_fetch_add(status == wanted ? &n_good : &n_bad, 1);
}

static void *publish(void *arg)
{
    const unsigned number = *(const unsigned *)arg;
    const struct tls_client_config how = {
        .port = server_port(server, SERVER_PUBLISH),
        .ca_file = files[MY_CA],
        .cert_file = files[NODE_CERT],
        .key_file = files[NODE_KEY]};
    cleanup_free char *json = sim_slice("h1", 2, "boot-1", 1, 0);
    while (!atomic_load(&stopping)) {
        struct tls_client c;
        if (!tls_client_open(&c, &how)) {
            count(0, 200);
            continue;
        }
        for (unsigned i = 0; i < PER_CONNECTION; i++) {
            (void)tls_client_call(&c, "PUT", SLICES "/h1-xpu.biga.dev-0", "",
                                  json);
            count(tls_client_call(&c, "GET", SLICES, "", NULL), 200);
        }
        if (number == 0) /* hangs up in the middle of a request */
            (void)tls_client_send(&c, "PUT /x HTTP/1.1\r\nContent-Le", 27);
        tls_client_close(&c);
    }
    return NULL;
}

static void *read_all(void *arg)
{
    const struct tls_client_config how = {
        .port = server_port(server, SERVER_READ), .ca_file = files[MY_CA]};
    (void)arg;
    while (!atomic_load(&stopping)) {
        struct tls_client c;
        if (!tls_client_open(&c, &how)) {
            count(0, 200);
            continue;
        }
        for (int i = 0; i < PER_CONNECTION; i++) {
            count(tls_client_call(&c, "GET", "/metrics",
                                  "Authorization: Bearer " TOKEN "\r\n", NULL),
                  200);
            count(tls_client_call(&c, "GET", "/v1/nodes", "", NULL), 401);
        }
        tls_client_close(&c);
    }
    return NULL;
}

static void rotate(unsigned round)
{
    struct app *app = server_app(server);
    cleanup_str struct str text = STR_INIT(1 << 16);
    put(&extender, files[CERT], files[KEY]);
    tls_poll(app->tls);
    if (round % 4 == 0)
        cert_write_text("half", files[CA]);
    else
        cert_write(authority, files[CA]);
    tls_poll(app->tls);
    str_addf(&text, TOKEN ",user%u\n", round);
    cert_write_text(text.data, files[TOKENS]);
    access_poll(app->listener.access);
}

static void start(void)
{
    static const char *const names[FILES] = {"ca.crt", "my-ca.crt", "s.crt",
                                             "s.key",  "node.crt",  "node.key",
                                             "tokens"};
    struct error err = {0};
    dir = tmpdir_create();
    for (int i = 0; i < FILES; i++)
        files[i] = xasprintf("%s/%s", dir, names[i]);
    authority = cert_authority("authority");
    cert_write(authority, files[CA]);
    cert_write(authority, files[MY_CA]);
    put(&extender, files[CERT], files[KEY]);
    put(&node, files[NODE_CERT], files[NODE_KEY]);
    cert_write_text(TOKEN ",user\n", files[TOKENS]);
    struct server_config config = {
        .listen = {"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
        .tls_cert = files[CERT],
        .tls_key = files[KEY],
        .client_ca = files[CA],
        .token_file = files[TOKENS],
        .fresh_ms = 3600000,
        .sweep_ms = 100,
        .connections = 64,
        .request_ms = 600000, /* slow is no error */
    };
    demand_config_default(&config.demand);
    if (server_start(&config, &server, &err) == 0)
        return;
    fprintf(stderr, "race_tls: %s\n", err.text);
    exit(1);
}

int main(int argc, char **argv)
{
    pthread_t clients[N_CLIENTS];
    static const unsigned numbers[N_CLIENTS] = {0, 1, 2, 3};
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    log_set_level((enum log_level)(LOG_ERROR + 1));
    start();
    for (int i = 0; i < N_CLIENTS; i++)
        if (pthread_create(&clients[i], NULL, i % 2 ? read_all : publish,
                           (void *)&numbers[i]))
            abort();
    unsigned rounds = 0;
    for (; rounds < seconds * 20 || !atomic_load(&n_good); rounds++) {
        rotate(rounds);
        (void)usleep(50000);
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < N_CLIENTS; i++)
        (void)pthread_join(clients[i], NULL);
    server_stop(server);
    printf("%u rotations, %lu good answers, %lu bad\n", rounds,
           atomic_load(&n_good), atomic_load(&n_bad));
    cert_destroy(authority);
    for (int i = 0; i < FILES; i++)
        free(files[i]);
    tmpdir_remove(dir);
    return atomic_load(&n_bad) || !atomic_load(&n_good);
}
