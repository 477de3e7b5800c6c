/* Containers that come, write, are rotated, end and go, calls that fail, a
 * remote that is cut off now and then and people who count, all at once, for
 * some seconds, for ThreadSanitizer to watch.  Every container that ends has all
 * of its bytes in the kubelet's files.
 *
 *   race_log_copier [SECONDS] */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/card/follower.h"
#include "tests/lib/tmpdir.h"

enum { N_PODS = 3, N_WRITES = 40, LINES = 20, HANGS_MS = 600000 };

struct race {
    char *top;
    struct follower card;
    struct log_copier *copier;
    atomic_bool stopping;
    atomic_uint n_lives;
};
struct pod {
    struct race *race;
    unsigned n;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_log_copier: %s: %s\n", what, why);
    abort();
}

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static size_t say(struct race *r, const char *name)
{
    char text[LINES * 48];
    size_t n = 0;
    for (unsigned i = 0; i < LINES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "2026-01-01T00:00:00.1Z stdout F line %u\n", i);
    follower_write(r->top, name, text, n);
    return n;
}

/* One life of a container, rotated once. */
static void live(struct race *r, const char *name)
{
    struct error err = {0};
    cleanup_free char *path = xasprintf("%s/pods/pod/%s", r->top, name);
    cleanup_free char *old = xasprintf("%s.1", path);
    size_t size = 0;
    int rc;
    if (follower_add(r->copier, r->top, name, &err) != 0)
        die("add", err.text);
    for (unsigned i = 0; i < N_WRITES; i++) {
        size += say(r, name);
        if (i == N_WRITES / 2 &&
            (rename(path, old) != 0 ||
             log_copier_reopen(r->copier, name, &err) != 0))
            die("reopen", err.text);
    }
    while ((rc = log_copier_finish(r->copier, name, HANGS_MS, &err)) ==
           -ENETUNREACH)
        (void)sched_yield();
    if (rc)
        die("finish", err.text);
    if ((size_t)(size_of(path) + size_of(old)) != size)
        die(name, "bytes are missing, or came twice");
    log_copier_remove(r->copier, name);
}

static void *pod_run(void *arg)
{
    struct pod *p = arg;
    for (unsigned i = 0; !atomic_load(&p->race->stopping); i++) {
        cleanup_free char *name = xasprintf("%u-%u.log", p->n, i);
        live(p->race, name);
        (void)atomic_fetch_add(&p->race->n_lives, 1);
    }
    return NULL;
}

static void *disturb(void *arg)
{
    struct race *r = arg;
    struct log_copier_counts counts;
    for (unsigned i = 0; !atomic_load(&r->stopping); i++) {
        log_copier_cut(r->copier, "card", i % 8 == 0);
        log_copier_count(r->copier, &counts);
        if (i % 64 == 5)
            atomic_store(&r->card.n_fail, 1);
        if (i % 64 == 37)
            atomic_store(&r->card.n_cut, 1);
        (void)usleep(5000);
    }
    log_copier_cut(r->copier, "card", false);
    return NULL;
}

int main(int argc, char **argv)
{
    int64_t end = clock_ms() +
                  1000 * (argc > 1 ? strtol(argv[1], NULL, 10) : 3);
    struct race r = {.top = tmpdir_create()};
    struct pod pods[N_PODS];
    pthread_t threads[N_PODS + 1];
    log_set_level(LOG_ERROR);
    r.copier = follower_copier(&r.card, r.top);
    for (unsigned i = 0; i < N_PODS; i++) {
        pods[i] = (struct pod){.race = &r, .n = i};
        if (pthread_create(&threads[i], NULL, pod_run, &pods[i]) != 0)
            die("pthread_create", "pod");
    }
    if (pthread_create(&threads[N_PODS], NULL, disturb, &r) != 0)
        die("pthread_create", "disturb");
    while (clock_ms() < end || atomic_load(&r.n_lives) < N_PODS)
        (void)usleep(10000);
    atomic_store(&r.stopping, true);
    for (unsigned i = 0; i <= N_PODS; i++)
        (void)pthread_join(threads[i], NULL);
    log_copier_destroy(r.copier);
    (void)printf("race_log_copier: %u lives of containers\n",
                 atomic_load(&r.n_lives));
    tmpdir_remove(r.top);
    return 0;
}
