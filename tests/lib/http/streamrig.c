#include "tests/lib/http/streamrig.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

enum { PATIENCE_MS = 600000, LOOK_MS = 1 };

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "streamrig: %s\n", what);
    abort();
}

const struct stream_relay_config stream_rig_patient = {
    .head_ms = 600000, .answer_ms = 600000, .linger_ms = 600000};

/* --- start and stop -------------------------------------------------------------- */

static void issue(struct stream_rig *rig, const struct cert_spec *spec,
                  const char *cert, const char *key)
{
    cert_issue(rig->authority, spec, cert, key);
}

static void make_files(struct stream_rig *rig)
{
    static const struct cert_spec me = {.name = "system:node:h1",
                                        .purposes = CERT_CLIENT};
    struct cert *other = cert_authority("other");
    rig->dir = tmpdir_create();
    char **const paths[] = {&rig->ca,  &rig->other_ca, &rig->cert,
                            &rig->key, &rig->my_cert,  &rig->my_key};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        *paths[i] = xasprintf("%s/%zu.pem", rig->dir, i);
    rig->authority = cert_authority("cards");
    cert_write(rig->authority, rig->ca);
    cert_write(other, rig->other_ca);
    cert_destroy(other);
    issue(rig, &me, rig->my_cert, rig->my_key);
}

void stream_rig_start(struct stream_rig *rig,
                      const struct stream_relay_config *config)
{
    const struct stream_relay_config usual = {0};
    struct error err = {0};
    *rig = (struct stream_rig){0};
    make_files(rig);
    must(stream_relay_start(config ? config : &usual, &rig->relay, &err) == 0,
         err.text);
    rig->open = (struct stream_plan_ask){
        .remote = "card-0000-17-00",
        .container = "c1",
        .host = "127.0.0.1",
        .url = rig->url,
        .plaintext = true,
    };
}

void stream_rig_serve(struct stream_rig *rig, bool tls,
                      enum stream_server_manner manner, const char *answer,
                      const struct cert_spec *spec)
{
    static const struct cert_spec good = {
        .name = "card0", .local = true, .purposes = CERT_SERVER};
    struct stream_server_config config = {.manner = manner, .answer = answer};
    rig->tls = tls;
    if (tls) {
        issue(rig, spec ? spec : &good, rig->cert, rig->key);
        config.cert_file = rig->cert;
        config.key_file = rig->key;
        config.client_ca_file = rig->ca;
    }
    rig->open.ca = tls ? rig->ca : NULL;
    rig->open.cert = tls ? rig->my_cert : NULL;
    rig->open.key = tls ? rig->my_key : NULL;
    rig->open.plaintext = !tls;
    rig->server = stream_server_start(&config);
    (void)snprintf(rig->url, sizeof rig->url, "http%s://127.0.0.1:%u/exec/x",
                   tls ? "s" : "", stream_server_port(rig->server));
}

void stream_rig_stop(struct stream_rig *rig)
{
    char *const paths[] = {rig->ca,  rig->other_ca, rig->cert,
                           rig->key, rig->my_cert,  rig->my_key};
    stream_relay_stop(rig->relay);
    if (rig->server)
        stream_server_stop(rig->server);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        free(paths[i]);
    cert_destroy(rig->authority);
    tmpdir_remove(rig->dir);
    *rig = (struct stream_rig){0};
}

/* --- clients ------------------------------------------------------------------------ */

uint16_t stream_rig_port(const char *url)
{
    unsigned port = 0;
    must(sscanf(url, "http://127.0.0.1:%u/", &port) == 1 && port > 0, url);
    return (uint16_t)port;
}

void stream_rig_url(struct stream_rig *rig, char ret_url[STREAM_OWN_URL_MAX])
{
    struct error err = {0};
    must(stream_relay_open(rig->relay, &rig->open, ret_url, &err) == 0,
         err.text);
}

int stream_rig_ask(const char *url, const char *fields)
{
    int fd = raw_connect(stream_rig_port(url));
    cleanup_free char *head =
        xasprintf("POST %s HTTP/1.1\r\nHost: node:10250\r\n%s\r\n",
                  strrchr(url, '/'), fields);
    must(raw_send(fd, head), "no request can be sent");
    return fd;
}

int stream_rig_client(struct stream_rig *rig, const char *fields,
                      struct raw_reply *ret_reply)
{
    char url[STREAM_OWN_URL_MAX];
    stream_rig_url(rig, url);
    int fd = stream_rig_ask(url, fields);
    (void)raw_read(fd, false, ret_reply);
    return fd;
}

static ssize_t receive(int fd, void *data, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    must(poll(&p, 1, PATIENCE_MS) == 1, "nothing comes");
    return recv(fd, data, size, 0);
}

bool stream_rig_read(int fd, void *ret_data, size_t size)
{
    char *at = ret_data;
    while (size > 0) {
        ssize_t n = receive(fd, at, size);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

void stream_rig_read_all(int fd, struct str *out)
{
    cleanup_free char *buffer = xmalloc(64 << 10);
    ssize_t n;
    while ((n = receive(fd, buffer, 64 << 10)) > 0)
        str_add_n(out, buffer, (size_t)n);
}

void stream_rig_until(struct stream_rig *rig, stream_rig_state_f *good)
{
    struct stream_relay_state state;
    for (int i = 0; i < PATIENCE_MS / LOOK_MS; i++) {
        stream_relay_state(rig->relay, &state);
        if (good(&state))
            return;
        (void)poll(NULL, 0, LOOK_MS);
    }
    must(false, "the relay's state does not become as it should");
}
