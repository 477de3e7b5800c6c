/* One remote under many threads: pods are made, started and ended while others
 * read what is known, wait for lists and have calls cut, and the runtime is
 * frozen, dies and comes back.  At the end everything that was made is known,
 * once.  ThreadSanitizer says the rest. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/router/remoterig.h"

enum { MAKERS = 4, PODS = 12, TROUBLES = 6, PATIENCE_MS = 600000 };

static struct remoterig rig;
static atomic_bool over;
static atomic_uint n_failed;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "race_remote: %s\n", what);
    exit(1);
}

/* As the kubelet does, until it is there. */
static void make(const struct kept *what, char ret_id[KEPT_ID_MAX + 1])
{
    int64_t until = clock_ms() + PATIENCE_MS;
    struct error err = {0};
    while (remoterig_make(&rig, what, ret_id, &err) < 0) {
        must(clock_ms() < until, err.text);
        atomic_fetch_add(&n_failed, 1);
        (void)poll(NULL, 0, 1);
    }
}

static void *maker(void *arg)
{
    char uid[32], sandbox[KEPT_ID_MAX + 1], id[KEPT_ID_MAX + 1];
    struct grpc_end end;
    for (unsigned i = 0; i < PODS; i++) {
        (void)snprintf(uid, sizeof uid, "u-%u-%u", (unsigned)(uintptr_t)arg, i);
        const struct kept s = keeprig_sandbox(uid, 0);
        make(&s, sandbox);
        const struct kept c = keeprig_container(uid, sandbox, "c", 0);
        make(&c, id);
        (void)remote_fresh(rig.remote, clock_ms() + 1000, NULL);
        (void)remoterig_call(&rig, METHOD_START_CONTAINER, id, 1000, &end,
                             NULL);
        remote_touch(rig.remote, id);
        if (i % 2 == 0)
            continue;
        if (remoterig_call(&rig, METHOD_REMOVE_POD_SANDBOX, sandbox, 1000, &end,
                           NULL) == 0)
            must(keep_forget(rig.keep, sandbox, NULL) == 0, "forget");
    }
    return NULL;
}

static void *reader(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        struct remote_view *v = remote_view(rig.remote);
        struct keep_view *k = keep_view(rig.keep);
        char reason[ACT_MESSAGE_MAX];
        for (size_t i = 0; i < keep_view_count(k); i++)
            (void)remote_view_status(v, keep_view_at(k, i)->id);
        (void)remote_view_list(v, method_get(METHOD_LIST_CONTAINERS));
        (void)remote_health(rig.remote, reason);
        remote_stats_unref(remote_stats(rig.remote));
        keep_view_unref(k);
        remote_view_unref(v);
        remote_nudge(rig.remote);
    }
    return NULL;
}

static void wait_health(bool ready)
{
    int64_t until = clock_ms() + PATIENCE_MS;
    while ((remote_health(rig.remote, NULL) == ACT_READY) != ready) {
        must(clock_ms() < until, "its health does not change");
        (void)poll(NULL, 0, 1);
    }
}

static void *trouble(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < TROUBLES; i++) {
        runtimeserver_fail(rig.server, "RunPodSandbox", -GRPC_UNAVAILABLE, 2);
        runtimeserver_fail(rig.server, "CreateContainer", -GRPC_UNKNOWN, 2);
        if (i % 2) {
            runtimeserver_freeze(rig.server, true);
            wait_health(false);
            runtimeserver_freeze(rig.server, false);
        } else {
            runtimeserver_down(rig.server);
            wait_health(false);
            runtimeserver_up(rig.server);
        }
        wait_health(true);
    }
    return NULL;
}

/* Each object is known, and is there; each pod has one of each. */
static void check(void)
{
    int64_t until = clock_ms() + PATIENCE_MS;
    wait_health(true);
    while (remote_fresh(rig.remote, until, NULL) < 0)
        must(clock_ms() < until, "it is not listed");
    struct keep_view *k = keep_view(rig.keep);
    for (size_t i = 0; i < keep_view_count(k); i++) {
        const struct kept *one = keep_view_at(k, i);
        must(one->state == KEPT_MADE, "a call has no end");
        must(runtimeserver_count(rig.server, one->uid) == 2, "twice, or lost");
    }
    must(keep_view_count(k) == runtimeserver_count(rig.server, NULL),
         "not all are known");
    keep_view_unref(k);
}

int main(void)
{
    pthread_t threads[MAKERS + 1], readers[2];
    log_set_level(LOG_ERROR);
    remoterig_open_real(&rig);
    for (uintptr_t i = 0; i < MAKERS; i++)
        must(pthread_create(&threads[i], NULL, maker, (void *)i) == 0,
             "thread");
    must(pthread_create(&threads[MAKERS], NULL, trouble, NULL) == 0, "thread");
    for (size_t i = 0; i < 2; i++)
        must(pthread_create(&readers[i], NULL, reader, NULL) == 0, "thread");
    for (size_t i = 0; i < MAKERS + 1; i++)
        (void)pthread_join(threads[i], NULL);
    check();
    atomic_store(&over, true);
    for (size_t i = 0; i < 2; i++)
        (void)pthread_join(readers[i], NULL);
    unsigned n = runtimeserver_count(rig.server, NULL);
    remoterig_close(&rig);
    (void)printf("race_remote: %u objects are there, %u calls failed before\n",
                 n, atomic_load(&n_failed));
    return 0;
}
