/* Streams that are relayed: clients of all kinds that converse, hang up early
 * and late, nodes that come for them, refuse and vanish, plain and over TLS,
 * and the extender stops while streams are open; for some seconds, for
 * ThreadSanitizer to watch.
 *
 *   race_relay [SECONDS]
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/relayrig.h"

enum { N_CLIENTS = 4, N_NODES = 3 };

static struct relay_rig rigs[2];
static atomic_bool stopping;
static atomic_ulong n_good, n_refused, n_left;

static const struct {
    const char *what, *headers;
} kinds[] = {
    {"log?follow=1", ""},
    {"exec?command=cat&stdin=1&stdout=1", RELAY_WS},
    {"attach?stdout=1", RELAY_WS},
    {"portforward?ports=80", RELAY_WS},
};

/* As far as it goes: the server may stop at any time. */
static void *client_run(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    cleanup_str struct str head = STR_INIT(1 << 16);
    char text[8];
    for (unsigned round = seed; !atomic_load(&stopping); round += 7) {
        unsigned kind = round % ARRAY_LEN(kinds);
        struct relay_peer p =
            relay_rig_ask(&rigs[round % 2], round % 3 ? "n0-a" : "n1-a",
                          kinds[kind].what, kinds[kind].headers);
        if (round % 5 == 4) {
            atomic_fetch_add(&n_left, 1);
            relay_peer_close(&p);
            continue;
        }
        int status = relay_peer_head(&p, &head);
        bool good = status == 101 || status == 200;
        atomic_fetch_add(good ? &n_good : &n_refused, 1);
        for (int i = 0; good && i < 20; i++)
            good = (kind == 0 || relay_peer_send(&p, "1234567", 8)) &&
                   relay_peer_take(&p, text, 8);
        relay_peer_close(&p);
    }
    return NULL;
}

/* Echoes, and says something of its own for logs; then ends in one way or
 * another. */
static void serve(struct relay_peer *p, unsigned round, bool log)
{
    char text[8];
    bool good = relay_peer_send(p, "{\"status\":200}\n", 15);
    for (unsigned i = 0; good && i < 10 + round % 20; i++)
        good = (log || relay_peer_take(p, text, 8)) &&
               relay_peer_send(p, "12345678", 8);
}

static void come(struct relay_rig *rig, const char *node, const char *told,
                 unsigned round)
{
    struct relay_peer p;
    char id[65];
    if (sscanf(told, "{\"id\":\"%64[0-9a-f]\"", id) != 1)
        return;
    const char *end = strchr(told, '\n');
    cleanup_free char *order = xstrndup(told, (size_t)(end - told));
    if (relay_rig_come(rig, node, id, &p) == 101) {
        if (round % 7 == 6)
            (void)relay_peer_send(&p, "{\"status\":404}\n", 15);
        else if (round % 7 != 5)
            serve(&p, round, strstr(order, "\"kind\":\"log\""));
    }
    relay_peer_close(&p);
}

static void *node_run(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    cleanup_str struct str body = STR_INIT(1 << 20);
    char id[65], node[8];
    for (unsigned round = seed; !atomic_load(&stopping); round++) {
        struct relay_rig *rig = &rigs[round % 2];
        (void)snprintf(node, sizeof node, "n%u", round / 2 % 2);
        if (!relay_rig_feed(rig, node, 0, &body, id))
            continue;
        for (const char *told = str_text(&body);
             (told = strstr(told, "{\"id\""));)
            come(rig, node, told++, round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t clients[N_CLIENTS], nodes[N_NODES];
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    (void)signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 2; i++)
        relay_rig_start(&rigs[i], i == 1);
    for (uintptr_t i = 0; i < N_CLIENTS; i++)
        if (pthread_create(&clients[i], NULL, client_run, (void *)i) != 0)
            return 1;
    for (uintptr_t i = 0; i < N_NODES; i++)
        if (pthread_create(&nodes[i], NULL, node_run, (void *)i) != 0)
            return 1;
    int64_t end = clock_ms() + (int64_t)(seconds * 1000);
    while (clock_ms() < end || atomic_load(&n_good) < 10) {
        relay_gauge(rigs[0].relay);
        (void)usleep(5000);
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < 2; i++)
        relay_quiesce(rigs[i].relay); /* while streams are open */
    for (int i = 0; i < N_CLIENTS; i++)
        (void)pthread_join(clients[i], NULL);
    for (int i = 0; i < N_NODES; i++)
        (void)pthread_join(nodes[i], NULL);
    for (int i = 0; i < 2; i++)
        relay_rig_stop(&rigs[i]);
    printf("%lu good, %lu refused, %lu left\n", atomic_load(&n_good),
           atomic_load(&n_refused), atomic_load(&n_left));
    return 0;
}
