/* A node's streams: clients of a relay follow logs and run commands in a pod on
 * a card, hang up early and late, while the pod's card fares well and badly; at
 * last the node stops while streams are open.  For some seconds, for
 * ThreadSanitizer to watch.
 *
 *   race_node_streams [SECONDS]
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/act/stream/node_streams.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/stream/spdy_frame.h"
#include "lib/stream/ws_frame.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/sim/relayrig.h"
#include "tests/lib/tmpdir.h"

enum { N_CLIENTS = 6 };
#define LINE "2026-01-01T00:00:00Z stdout F a line\n"

static struct relay_rig relay;
static struct actrig r;
static struct node_streams *streams; /* under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *dir;
static atomic_bool stopping;
static atomic_ulong n_logs, n_echoed, n_others;
static int listener;

/* --- a runtime's streaming server ------------------------------------------ */

static bool send_all(int fd, const struct str *what)
{
    return write(fd, what->data, what->size) == (ssize_t)what->size;
}

/* Takes the three streams of a command, and writes what it reads; until either
 * side has enough. */
static void serve_command(int fd)
{
    static const char reply[] = "\x80\x03\0\x02\0\0\0\x04\0\0\0";
    struct spdy_reader reader = {0};
    struct spdy_piece p;
    struct error err;
    char data[4096];
    cleanup_str struct str out = STR_INIT(1 << 20);
    for (char id = 1; id <= 5; id = (char)(id + 2)) {
        str_add_n(&out, reply, sizeof reply - 1);
        str_add_c(&out, id);
    }
    for (ssize_t n;
         send_all(fd, &out) && (n = read(fd, data, sizeof data)) > 0;) {
        str_reset(&out);
        for (ssize_t at = 0, took; at < n; at += took) {
            took = spdy_read(&reader, data + at, (size_t)(n - at), &p, &err);
            if (took < 0)
                return;
            if (p.kind == SPDY_DATA && p.stream == 3)
                spdy_data(5, p.data, p.size, false, &out);
            if (p.last && p.kind == SPDY_DATA && p.stream == 3) {
                spdy_data(1, "{\"status\":\"Success\"}", 20, true, &out);
                (void)send_all(fd, &out);
                return;
            }
        }
    }
}

static void *serve(void *arg)
{
    static const char answer[] =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
        "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n"
        "\r\n";
    int fd = (int)(intptr_t)arg;
    cleanup_str struct str head = STR_INIT(1 << 16);
    char c;
    while (!(head.size > 4 &&
             memcmp(head.data + head.size - 4, "\r\n\r\n", 4) == 0) &&
           read(fd, &c, 1) == 1)
        str_add_c(&head, c);
    if (write(fd, answer, sizeof answer - 1) == sizeof answer - 1)
        serve_command(fd);
    (void)close(fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    (void)arg;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
            abort();
        (void)pthread_detach(thread);
    }
    return NULL;
}

/* Its URL. */
static char *listen_loopback(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) < 0 ||
        listen(listener, 64) < 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) < 0)
        abort();
    return xasprintf("http://127.0.0.1:%u/exec/x", ntohs(at.sin_port));
}

/* --- clients --------------------------------------------------------------- */

static void read_log(struct relay_peer *p)
{
    char text[7];
    unsigned n = 0;
    while (n < 50 && relay_peer_take(p, text, sizeof text))
        n++;
    atomic_fetch_add(n == 50 ? &n_logs : &n_others, 1);
}

static void converse(struct relay_peer *p)
{
    static const unsigned char mask[WS_MASK] = {1, 2, 3, 4};
    cleanup_str struct str said = STR_INIT(4096);
    char text[8];
    bool good = true;
    ws_frame_write(WS_BINARY, mask, "\0hello", 6, &said);
    for (int i = 0; i < 5 && good; i++)
        good = relay_peer_send(p, said.data, said.size) &&
               relay_peer_take(p, text, 8) &&
               memcmp(text + 2, "\1hello", 6) == 0;
    atomic_fetch_add(good ? &n_echoed : &n_others, 1);
}

static void *client_run(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    cleanup_str struct str head = STR_INIT(1 << 16);
    for (unsigned round = seed; !atomic_load(&stopping); round += 7) {
        bool log = round % 2;
        struct relay_peer p =
            relay_rig_ask(&relay, "n0-a",
                          log ? "log?follow=1&tailLines=50"
                              : "exec?command=cat&stdin=1&stdout=1",
                          log ? "" : RELAY_WS);
        if (round % 5 == 4) {
            relay_peer_close(&p);
            continue;
        }
        int status = relay_peer_head(&p, &head);
        if (status == 200)
            read_log(&p);
        else if (status == 101)
            converse(&p);
        else
            atomic_fetch_add(&n_others, 1);
        relay_peer_close(&p);
    }
    return NULL;
}

/* --- the node --------------------------------------------------------------- */

static void on_changed(void *ctx)
{
    (void)ctx;
    hold_lock(&lock);
    node_streams_poke(streams);
}

static void write_log(void)
{
    cleanup_free char *path = xasprintf("%s/a-1.log", dir);
    FILE *f = fopen(path, "we");
    for (int i = 0; f && i < 500; i++)
        (void)fputs(LINE, f);
    if (!f || fclose(f) != 0)
        abort();
}

static void start_pod(const char *url)
{
    static const char spec[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":"
        "\"ns\",\"name\":\"n0-a\",\"uid\":\"u-1\"},\"spec\":{\"containers\":[{"
        "\"name\":\"a\",\"image\":\"i\",\"imagePullPolicy\":\"IfNotPresent\"}]"
        "}}";
    const struct act_pod pod = {.owner = "extender",
                                .namespace = "ns",
                                .name = "n0-a",
                                .uid = "u-1",
                                .place = "card-0",
                                .spec = spec,
                                .spec_size = sizeof spec - 1,
                                .sriov_vfs = -1};
    struct act_pod_status now = {0};
    struct error err;
    actrig_init(&r, 1);
    r.config.helper_image = "helper";
    r.config.changed = on_changed;
    cardserver_take(r.cards[0], &(struct cardserver_times){0});
    cardserver_logs(r.cards[0], dir);
    cardserver_exec(r.cards[0], 0, url, "");
    actrig_open(&r);
    if (actuator_want(r.a, &pod, &err) < 0)
        abort();
    while (now.state != ACT_RUNNING) {
        (void)actuator_wait(r.a, now.version, 100);
        if (actuator_find(r.a, "ns", "n0-a", &now) < 0)
            abort();
    }
}

int main(int argc, char **argv)
{
    pthread_t clients[N_CLIENTS], server;
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    struct error err;
    (void)signal(SIGPIPE, SIG_IGN);
    dir = tmpdir_create();
    write_log();
    cleanup_free char *url = listen_loopback();
    relay_rig_start(&relay, false);
    start_pod(url);
    cleanup_free char *base = xasprintf("http://127.0.0.1:%u",
                                        httpd_port(relay.publish));
    const struct node_streams_config config = {
        .http = {.base = base, .timeout_ms = 5000}, .node = "n0", .wait_s = 1};
    struct node_streams *mine;
    if (node_streams_start(r.a, &config, &mine, &err) < 0 ||
        pthread_create(&server, NULL, accept_all, NULL) != 0)
        abort();
    pthread_mutex_lock(&lock);
    streams = mine;
    pthread_mutex_unlock(&lock);
    for (uintptr_t i = 0; i < N_CLIENTS; i++)
        if (pthread_create(&clients[i], NULL, client_run, (void *)i) != 0)
            return 1;
    int64_t end = clock_ms() + (int64_t)(seconds * 1000);
    while (clock_ms() < end || !atomic_load(&n_logs) ||
           !atomic_load(&n_echoed)) {
        struct node_streams_state state;
        node_streams_poke(mine);
        node_streams_state(mine, &state);
        (void)usleep(5000);
    }
    pthread_mutex_lock(&lock);
    streams = NULL;
    pthread_mutex_unlock(&lock);
    bool idle = node_streams_stop(mine); /* while streams are open */
    atomic_store(&stopping, true);
    relay_quiesce(relay.relay);
    for (int i = 0; i < N_CLIENTS; i++)
        (void)pthread_join(clients[i], NULL);
    (void)shutdown(listener, SHUT_RDWR);
    (void)pthread_join(server, NULL);
    relay_rig_stop(&relay);
    if (!idle)
        return 1; /* the card answers at once */
    actrig_fini(&r);
    tmpdir_remove(dir);
    printf("%lu logs, %lu conversations, %lu others\n", atomic_load(&n_logs),
           atomic_load(&n_echoed), atomic_load(&n_others));
    return 0;
}
