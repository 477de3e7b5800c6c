/* Remotes that one beat asks, under many threads: they are touched, called and
 * read, begun and ended, while their runtimes are frozen, die and come back.
 * At the end all are ready.  ThreadSanitizer says the rest. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/remote/remote_beat.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/router/remoterig.h"

enum {
    RIGS = 3,
    TROUBLES = 6,
    RESTARTS = 12,
    PROBE_MS = 100,
    LOST_MS = 8000, /* a probe, with a handshake, has a quarter of it */
    PATIENCE_MS = 600000,
};

/* The first is begun and ended; the second has trouble. */
static struct remoterig rigs[RIGS];
static atomic_bool over;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "race_beat: %s\n", what);
    exit(1);
}

static void wait_health(struct remoterig *r, bool ready)
{
    int64_t until = clock_ms() + PATIENCE_MS;
    while ((remote_health(r->remote, NULL) == ACT_READY) != ready) {
        must(clock_ms() < until, "its health does not change");
        (void)poll(NULL, 0, 1);
    }
}

/* Of those that stay. */
static void *caller(void *arg)
{
    struct grpc_end end;
    (void)arg;
    while (!atomic_load(&over))
        for (size_t i = 1; i < RIGS; i++) {
            remote_touch(rigs[i].remote, "x");
            (void)remote_fresh(rigs[i].remote, clock_ms() + 100, NULL);
            (void)remoterig_call(&rigs[i], METHOD_START_CONTAINER, "x", 1000,
                                 &end, NULL);
            remote_stats_unref(remote_stats(rigs[i].remote));
            remote_view_unref(remote_view(rigs[i].remote));
            (void)poll(NULL, 0, 7);
        }
    return NULL;
}

static void *trouble(void *arg)
{
    struct remoterig *r = arg;
    for (unsigned i = 0; i < TROUBLES; i++) {
        if (i % 2) {
            runtimeserver_freeze(r->server, true);
            wait_health(r, false);
            runtimeserver_freeze(r->server, false);
        } else {
            runtimeserver_down(r->server);
            wait_health(r, false);
            runtimeserver_up(r->server);
        }
        wait_health(r, true);
    }
    return NULL;
}

static void *restart(void *arg)
{
    struct remoterig *r = arg;
    for (unsigned i = 0; i < RESTARTS; i++) {
        runtimeserver_freeze(r->server, i % 3 == 2);
        (void)poll(NULL, 0, 150);
        remote_stop(r->remote);
        runtimeserver_freeze(r->server, false);
        remoterig_restart(r);
        wait_health(r, true);
    }
    return NULL;
}

int main(void)
{
    struct remote_beat *beat = NULL;
    struct error err = {0};
    pthread_t threads[2], callers[2];
    log_set_level(LOG_ERROR);
    must(remote_beat_create(&beat, &err) == 0, err.text);
    for (size_t i = 0; i < RIGS; i++)
        remoterig_open_beat(&rigs[i], beat, LOST_MS, PROBE_MS);
    must(pthread_create(&threads[0], NULL, restart, &rigs[0]) == 0, "thread");
    must(pthread_create(&threads[1], NULL, trouble, &rigs[1]) == 0, "thread");
    for (size_t i = 0; i < 2; i++)
        must(pthread_create(&callers[i], NULL, caller, NULL) == 0, "thread");
    for (size_t i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    atomic_store(&over, true);
    for (size_t i = 0; i < 2; i++)
        (void)pthread_join(callers[i], NULL);
    for (size_t i = 0; i < RIGS; i++) {
        wait_health(&rigs[i], true);
        remoterig_close(&rigs[i]);
    }
    remote_beat_destroy(beat);
    (void)printf("race_beat: all remotes are ready\n");
    return 0;
}
