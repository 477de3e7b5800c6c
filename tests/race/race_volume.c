/* Volumes of pods on two remotes, everything at once, for some seconds, for
 * ThreadSanitizer to watch: a kubelet that changes them, containers that come
 * and go, remotes that fail and hang, sweeps, and routers that end in the middle
 * of it.  At the end of each round what is left must be what the kubelet has.
 *
 *   race_volume [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/volume/volume_sync.h"
#include "tests/lib/card/cardexec.h"
#include "tests/lib/card/kubeletdir.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

enum { PODS = 6, HANGS_MS = 600000, CHANGES = 40, ASKS = 30 };

static char *top, *kubelet, *disk, *memory;
static struct cardexec *card;
static struct volume_sync *sync_;
static const char *const remotes[] = {"card-0", "card-1"};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_volume: %s: %s\n", what, why);
    abort();
}

struct pod {
    pthread_t kubelet, router;
    char uid[16];
    unsigned n;
};

static struct volume_pod name_of(const struct pod *p)
{
    return (struct volume_pod){remotes[p->n % 2], p->uid};
}

static void update(const struct pod *p, unsigned n)
{
    cleanup_free char *a = xasprintf("a=%u", n);
    cleanup_free char *b = xasprintf("b=%u", n);
    cleanup_free char *hosts = xasprintf("%s/pods/%s/etc-hosts", kubelet,
                                         p->uid);
    kubeletdir_update(kubelet, p->uid, "secret", "s",
                      (const char *const[]){a, b, NULL});
    kubeletdir_write(hosts, a);
}

static void *be_kubelet(void *arg)
{
    const struct pod *p = arg;
    for (unsigned i = 1; i <= CHANGES; i++)
        update(p, i);
    return NULL;
}

static int ask(const struct pod *p, const char *below, char *ret_path,
               struct mount *ret_mount, struct error *err)
{
    const struct mount_rules rules = {.kubelet_root = kubelet};
    (void)snprintf(ret_path, 512, "%s/pods/%s/%s", kubelet, p->uid, below);
    *ret_mount = (struct mount){.container_path = "/x", .host_path = ret_path};
    return mount_judge(&rules, p->uid, ret_mount, err);
}

/* Where the secret is there; NULL: not this time. */
static char *prepare(const struct pod *p, struct mount mounts[3],
                     char paths[3][512])
{
    static const char *const below[] = {"volumes/kubernetes.io~secret/s",
                                        "etc-hosts", "containers/main/1a2b"};
    const struct volume_pod name = name_of(p);
    struct error err;
    char **there;
    for (size_t i = 0; i < 3; i++)
        if (ask(p, below[i], paths[i], &mounts[i], &err))
            die("mount_judge", err.text);
    if (volume_sync_prepare(sync_, &name, mounts, 3, &there, &err))
        return NULL;
    char *path = there[0];
    free(there[1]);
    free(there[2]);
    free(there);
    return path;
}

static void *be_router(void *arg)
{
    const struct pod *p = arg;
    const struct volume_pod name = name_of(p);
    struct mount mounts[3];
    char paths[3][512];
    struct error err;
    for (unsigned i = 0; i < ASKS; i++) {
        free(prepare(p, mounts, paths));
        if (i % 5 == 1)
            (void)volume_sync_collect(sync_, &name, &mounts[2], &err);
        if (i % 7 == 2)
            volume_sync_forget(sync_, &name);
        if (i % 11 == 3)
            volume_sync_sweep(sync_, name.remote, NULL, 0);
        if (i % 3 == 0)
            cardexec_fail(card, "", EAGAIN, i % 2 ? 1 : -1);
        (void)volume_sync_check(sync_, p->uid, &err);
    }
    return NULL;
}

static void expect(const char *folder, const char *name, const char *text)
{
    cleanup_free char *path = xasprintf("%s/%s", folder, name);
    cleanup_free char *found = access(path, R_OK) == 0
                                   ? testdata_read(path, NULL)
                                   : xstrdup("none");
    if (strcmp(found, text) != 0)
        die(path, found);
}

/* The last of it is there; where. */
static char *await_end(struct pod *p)
{
    const struct volume_pod name = name_of(p);
    struct mount mounts[3];
    char paths[3][512], last[16], *there = NULL;
    for (unsigned i = 0; !there && i < 10; i++)
        there = prepare(p, mounts, paths);
    if (!there)
        die(p->uid, "is not delivered");
    (void)snprintf(last, sizeof last, "%d", CHANGES);
    expect(there, "a", last);
    expect(there, "b", last);
    volume_sync_forget(sync_, &name);
    return there;
}

/* And then nothing is. */
static void end_all(struct pod *pods)
{
    char *there[PODS];
    for (unsigned i = 0; i < PODS; i++) {
        (void)pthread_join(pods[i].kubelet, NULL);
        (void)pthread_join(pods[i].router, NULL);
    }
    cardexec_fail(card, "", 0, 0); /* and nobody has it fail again */
    for (unsigned i = 0; i < PODS; i++)
        there[i] = await_end(&pods[i]);
    for (unsigned i = 0; i < PODS; i++)
        kubeletdir_end(kubelet, pods[i].uid);
    for (unsigned i = 0; i < ARRAY_LEN(remotes); i++)
        if (volume_sync_settle(sync_, remotes[i], HANGS_MS))
            die(remotes[i], "does not settle");
    for (unsigned i = 0; i < PODS; i++) {
        if (access(there[i], F_OK) == 0)
            die(there[i], "is still there");
        free(there[i]);
    }
}

static void round_of(unsigned round)
{
    static struct pod pods[PODS];
    const struct volume_sync_config config = {.kubelet_root = kubelet,
                                              .disk = disk,
                                              .memory = memory,
                                              .memory_helper = memory,
                                              .exec = cardexec_run,
                                              .ctx = card};
    struct error err;
    if (volume_sync_create(&config, &sync_, &err))
        die("create", err.text);
    for (unsigned i = 0; i < PODS; i++) {
        pods[i].n = i;
        (void)snprintf(pods[i].uid, sizeof pods[i].uid, "r%u-%u", round, i);
        kubeletdir_pod(kubelet, pods[i].uid);
        update(&pods[i], 0);
        (void)pthread_create(&pods[i].kubelet, NULL, be_kubelet, &pods[i]);
        (void)pthread_create(&pods[i].router, NULL, be_router, &pods[i]);
    }
    end_all(pods);
    /* some end while something is to be done */
    if (round % 2)
        volume_sync_sweep(sync_, "card-0", NULL, 0);
    volume_sync_destroy(sync_);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 4;
    int64_t end = clock_ms() + seconds * 1000;
    unsigned round = 0;
    log_set_level(LOG_ERROR);
    top = tmpdir_create();
    kubelet = xasprintf("%s/kubelet", top);
    disk = xasprintf("%s/disk", top);
    memory = xasprintf("%s/memory", top);
    card = cardexec_create();
    do
        round_of(round++);
    while (clock_ms() < end);
    cardexec_destroy(card);
    free(kubelet);
    free(disk);
    free(memory);
    tmpdir_remove(top);
    printf("%u rounds\n", round);
    return 0;
}
