/* volumes - volume_sync for a test: one line of commands on stdin, one line of
 * the answer on stdout.
 *
 *   volumes ENDPOINT CA CERT KEY HELPER KUBELET-ROOT
 *
 *   prepare UID PATH…    "ok THERE…", or "error TEXT"
 *   adopt UID PATH…      "ok"
 *   check UID            "ok"
 *   collect UID PATH     "ok"
 *   home UID PATH        HERE, or "none"
 *   forget UID           "ok"
 *   sweep UID…           "ok"
 *   settle               "ok"
 *
 * hostPaths below /opt are allowed. */
#include <stdio.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "lib/base/mem.h"
#include "router/volume/volume_sync.h"

enum { WORDS = 64, SETTLE_MS = 120000 };

static const char *helper, *root;
static struct connection lanes[VOLUME_LANES];

static int call(void *ctx, const char *remote, unsigned lane,
                const char *const *argv, size_t n_argv, unsigned ms,
                struct cri_exec *ret_exec, struct error *err)
{
    (void)ctx, (void)remote;
    struct connection *c = &lanes[lane];
    int rc = connection_open(c, err);
    return rc ? rc
              : cri_exec_sync(c->cri, helper, argv, n_argv, ms / 1000, ms,
                              ret_exec, err);
}

static int judge(char *const *words, size_t n, struct mount *mounts,
                 struct error *err)
{
    static const char *const allowed[] = {"/opt"};
    const struct mount_rules rules = {
        .kubelet_root = root, .allowed = allowed, .n_allowed = 1};
    for (size_t i = 0; i < n; i++) {
        mounts[i] = (struct mount){.container_path = "/mnt",
                                   .host_path = words[2 + i]};
        int rc = mount_judge(&rules, words[1], &mounts[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int prepare(struct volume_sync *s, const struct volume_pod *pod,
                   const struct mount *mounts, size_t n, struct error *err)
{
    char **paths;
    int rc = volume_sync_prepare(s, pod, mounts, n, &paths, err);
    if (rc)
        return rc;
    printf("ok");
    for (size_t i = 0; i < n; i++) {
        printf(" %s", paths[i]);
        free(paths[i]);
    }
    free(paths);
    printf("\n");
    return 1;
}

/* 1: it was answered. */
static int obey(struct volume_sync *s, char *const *words, size_t n_words,
                struct error *err)
{
    struct mount mounts[WORDS];
    const char *word = words[0];
    size_t n = n_words > 2 ? n_words - 2 : 0;
    const struct volume_pod pod = {"card", n_words > 1 ? words[1] : ""};
    if (strcmp(word, "settle") == 0)
        return volume_sync_settle(s, "card", SETTLE_MS)
                   ? error_set(err, ETIMEDOUT, "it does not settle")
                   : 0;
    if (strcmp(word, "sweep") == 0) {
        volume_sync_sweep(s, "card", (const char *const *)(words + 1),
                          n_words - 1);
        return 0;
    }
    if (strcmp(word, "forget") == 0) {
        volume_sync_forget(s, &pod);
        return 0;
    }
    if (strcmp(word, "check") == 0)
        return volume_sync_check(s, pod.uid, err);
    if (strcmp(word, "home") == 0) {
        cleanup_free char *path = volume_sync_home_path(s, pod.uid, words[2]);
        printf("%s\n", path ? path : "none");
        return 1;
    }
    int rc = judge(words, n, mounts, err);
    if (rc)
        return rc;
    if (strcmp(word, "adopt") == 0)
        return volume_sync_adopt(s, &pod, mounts, n, err);
    if (strcmp(word, "collect") == 0)
        return volume_sync_collect(s, &pod, mounts, err);
    return prepare(s, &pod, mounts, n, err);
}

static void serve(struct volume_sync *s)
{
    cleanup_free char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        char *words[WORDS] = {NULL}, *rest = line;
        size_t n = 0;
        struct error err = {0};
        line[strcspn(line, "\n")] = '\0';
        for (char *word; n < WORDS && (word = strsep(&rest, " "));)
            words[n++] = word;
        int rc = obey(s, words, n, &err);
        if (rc < 0)
            printf("error %s\n", err.text);
        else if (rc == 0)
            printf("ok\n");
        (void)fflush(stdout); /* the test would miss it */
    }
}

int main(int argc, char **argv)
{
    struct act_place place = {.name = "card"};
    struct error err;
    struct volume_sync *s;
    if (argc != 7)
        return 2;
    (void)snprintf(place.endpoint, sizeof place.endpoint, "%s", argv[1]);
    (void)snprintf(place.ca, sizeof place.ca, "%s", argv[2]);
    (void)snprintf(place.cert, sizeof place.cert, "%s", argv[3]);
    (void)snprintf(place.key, sizeof place.key, "%s", argv[4]);
    helper = argv[5];
    root = argv[6];
    for (unsigned i = 0; i < VOLUME_LANES; i++)
        lanes[i].place = place;
    const struct volume_sync_config config = {
        .kubelet_root = root, .disk = "/var/lib/biga", .exec = call};
    if (volume_sync_create(&config, &s, &err)) {
        (void)fprintf(stderr, "volumes: %s\n", err.text);
        return 1;
    }
    serve(s);
    volume_sync_destroy(s);
    for (unsigned i = 0; i < VOLUME_LANES; i++)
        connection_close(&lanes[i]);
    return 0;
}
