/* Copies logs of one card into a folder, as biga-cri does, until its input
 * ends:
 *
 *   bench_follow ENDPOINT CA CERT KEY HELPER PODS STATES STEP [ROUND]
 *
 * HELPER is the container of biga-card, PODS and STATES are folders here, STEP
 * is how many bytes of a log stay on the card, ROUND how many a call gives.  Each
 * line of its input is answered with one, "ok" or "error TEXT":
 *
 *   add KEY REMOTE_PATH PATH
 *   reopen KEY
 *   finish KEY
 *   helper ID      from now on, another container
 *   count          "ok BYTES ROUNDS FAULTS LOST" */
#include <inttypes.h>
#include <string.h>

#include "router/log/log_caller.h"
#include "router/log/log_copier.h"

enum { FINISH_MS = 600000 };

struct card {
    struct grpc_config grpc;
    pthread_mutex_t lock;
    char helper[CRI_ID_MAX + 1];
};

static int find(void *ctx, const char *remote, struct grpc_config *ret_config,
                unsigned *ret_generation, char ret_helper[CRI_ID_MAX + 1],
                struct error *err)
{
    struct card *card = ctx;
    (void)remote;
    (void)err;
    hold_lock(&card->lock);
    *ret_config = card->grpc;
    *ret_generation = 1;
    memcpy(ret_helper, card->helper, sizeof card->helper);
    return 0;
}

static int count(struct log_copier *c)
{
    struct log_copier_counts n;
    log_copier_count(c, &n);
    (void)printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                 n.bytes, n.rounds, n.faults, n.lost);
    return 1;
}

static int set_helper(struct card *card, const char *id)
{
    hold_lock(&card->lock);
    (void)snprintf(card->helper, sizeof card->helper, "%s", id);
    return 0;
}

/* 1: it has answered. */
static int obey(struct log_copier *c, struct card *card, char *line,
                struct error *err)
{
    char *words[4] = {0};
    size_t n = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *word; n < 4 && (word = strsep(&line, " "));)
        words[n++] = word;
    if (n == 1 && strcmp(words[0], "count") == 0)
        return count(c);
    if (n == 2 && strcmp(words[0], "helper") == 0)
        return set_helper(card, words[1]);
    if (n == 2 && strcmp(words[0], "reopen") == 0)
        return log_copier_reopen(c, words[1], err);
    if (n == 2 && strcmp(words[0], "finish") == 0)
        return log_copier_finish(c, words[1], FINISH_MS, err);
    if (n == 4 && strcmp(words[0], "add") == 0)
        return log_copier_add(c,
                              &(struct log_target){.key = words[1],
                                                   .remote = "card",
                                                   .remote_path = words[2],
                                                   .path = words[3]},
                              err);
    return error_set(err, EINVAL, "what is that");
}

int main(int argc, char **argv)
{
    char line[4096];
    struct error err = {0};
    struct card card = {.lock = PTHREAD_MUTEX_INITIALIZER};
    cleanup_with(log_caller) struct log_caller *caller = NULL;
    cleanup_with(log_copier) struct log_copier *c = NULL;
    if (argc < 9 || argc > 10) {
        (void)fprintf(stderr, "usage: bench_follow ENDPOINT CA CERT KEY "
                              "HELPER PODS STATES STEP [ROUND]\n");
        return 2;
    }
    card.grpc = (struct grpc_config){
        .endpoint = argv[1], .ca = argv[2], .cert = argv[3], .key = argv[4]};
    (void)set_helper(&card, argv[5]);
    struct log_caller_source source = {.find = find, .ctx = &card};
    caller = log_caller_create(&source);
    struct log_copier_config config = {.pod_logs = argv[6],
                                       .states = argv[7],
                                       .free_step = strtoull(argv[8], NULL, 10),
                                       .remote_dir = "/var/lib/biga/follow",
                                       .exec = log_caller_exec,
                                       .ctx = caller};
    if (log_copier_create(&config, &c, &err) != 0) {
        (void)fprintf(stderr, "bench_follow: %s\n", err.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        int rc = obey(c, &card, line, &err);
        if (rc < 0)
            (void)printf("error %s\n", err.text);
        else if (rc == 0)
            (void)printf("ok\n");
        (void)fflush(stdout);
    }
    return 0;
}
