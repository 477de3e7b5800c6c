/* kill -9 at every named point of the history's writes, at its first, second,
 * … hit, and commits that fail: after the restart every event that was
 * committed is there, each pod's events tell of places that it got and gave
 * back in turn, and end with what the writer has.  A damaged file that was set
 * aside in between is one.
 *
 *   race_history_kill [FIRST_SEED]
 *
 * The program runs itself as the one that dies ("--child DIR SEED"), which
 * says on stdout, a pipe, the newest event that is committed.  Exits with 77
 * when it was built without -DFAILPOINTS. */
#include <stdio.h>

#include "lib/io/failpoint.h"

#ifndef FAILPOINTS

int main(void)
{
    (void)printf("race_history_kill: skipped, built without -DFAILPOINTS\n");
    return 77;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "extender/history/history.h"
#include "extender/history/history_db.h"
#include "lib/base/mem.h"
#include "lib/db/dbfile.h"
#include "lib/io/log.h"
#include "tests/lib/failchild.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum { N_NODES = 2, N_CARDS = 8, N_PODS = 12, N_GROUPS = 12, GROUP_MAX = 4 };

static const char *const nodes[N_NODES] = {"n0", "n1"};
static const unsigned hits[] = {1, 2, 3, 5, 8};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_history_kill: %s: %s\n", what, why);
    exit(1);
}

/* What runs in a directory: an extender's writer and its history. */
struct life {
    struct writer *writer;
    struct history *history;
};

static void begin(struct life *l, const char *dir)
{
    struct error err = {0};
    cleanup_free char *state = xasprintf("%s/state", dir);
    cleanup_free char *past = xasprintf("%s/history", dir);
    l->writer = sim_writer(state);
    const struct history_config c = {
        .dir = past, .days = 30, .mib = 1024, .writer = l->writer};
    if (history_start(&c, &l->history, &err) < 0)
        die(dir, err.text);
}

static void end(struct life *l)
{
    history_stop(l->history);
    writer_stop(l->writer);
    history_destroy(l->history);
}

/* --- the child ------------------------------------------------------------ */

static void step(struct life *l, uint64_t *random)
{
    char pod[16], key[24];
    (void)snprintf(pod, sizeof pod, "p%u", sim_random(random) % N_PODS);
    (void)snprintf(key, sizeof key, "ns/%s", pod);
    struct demand d = sim_pod(pod, ROLE_HOST, "", 0);
    unsigned what = sim_random(random) % 5;
    if (what < 2) /* there may be no room, or no such pod */
        (void)sim_bind(l->writer, &d, nodes[sim_random(random) % N_NODES], NULL,
                       NULL);
    else if (what < 4)
        (void)sim_release(l->writer, pod);
    else
        history_post(l->history,
                     &(struct history_event){.kind = HISTORY_POD,
                                             .reason = HISTORY_REFUSED,
                                             .object = key,
                                             .pair = -1,
                                             .message = "fits none of 2"});
}

static void say(struct life *l)
{
    history_settle(l->history);
    uint64_t newest = history_state(l->history).newest;
    if (write(STDOUT_FILENO, &newest, sizeof newest) != (ssize_t)sizeof newest)
        die("pipe", strerror(errno));
}

static int child(const char *dir, const char *seed)
{
    uint64_t random = strtoull(seed, NULL, 10);
    struct life l;
    log_set_level(LOG_ERROR + 1);
    begin(&l, dir);
    for (int i = 0; i < N_NODES; i++)
        if (sim_publish(l.writer, nodes[i], N_CARDS, "boot", 1) != 0)
            die(nodes[i], "cannot be published");
    for (int i = 0; i < N_GROUPS; i++) {
        for (unsigned n = 1 + sim_random(&random) % GROUP_MAX; n > 0; n--)
            step(&l, &random);
        say(&l);
    }
    end(&l);
    return 0;
}

/* --- the parent: what must be --------------------------------------------- */

struct found {
    struct history_question question; /* first */
    const char *where;
    uint64_t newest;
    bool placed[N_PODS];
    char node[N_PODS][8];
    sem_t done;
};

static void on_event(void *ctx, const struct history_event *e)
{
    struct found *f = ctx;
    unsigned pod = 0;
    if (e->seq != ++f->newest)
        die(f->where, "an event is missing");
    if (e->kind != HISTORY_POD || e->reason == HISTORY_REFUSED)
        return;
    if (sscanf(e->object, "ns/p%u", &pod) != 1 || pod >= N_PODS)
        die(f->where, "there is an event of nobody");
    bool placed = e->reason == HISTORY_BOUND;
    if (placed == f->placed[pod])
        die(f->where, placed ? "a pod got a place twice"
                             : "a pod gave a place back twice");
    f->placed[pod] = placed;
}

static void on_place(void *ctx, const struct history_place *p)
{
    (void)snprintf(ctx, sizeof((struct found *)0)->node[0], "%s", p->node);
}

static void answer(struct history_question *q, struct history_reader *r)
{
    struct found *f = (struct found *)q;
    struct history_filter filter = {.kind = HISTORY_KINDS,
                                    .reason = HISTORY_REASONS,
                                    .limit = HISTORY_PAGE_MAX};
    int e = r ? 0 : -1;
    while (e == 0) {
        e = history_read_events(r, &filter, on_event, f, &filter.after,
                                &q->error);
        if (!filter.after)
            break;
    }
    for (unsigned i = 0; i < N_PODS && e == 0; i++) {
        char pod[16];
        (void)snprintf(pod, sizeof pod, "ns/p%u", i);
        e = history_read_place_of_pod(r, pod, INT64_MAX / 2, on_place,
                                      f->node[i], &q->error);
    }
    if (e < 0)
        die(f->where, q->error.text);
    (void)sem_post(&f->done);
}

static void compare(const struct found *f, struct writer *w)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    for (unsigned i = 0; i < N_PODS; i++) {
        char pod[16];
        (void)snprintf(pod, sizeof pod, "p%u", i);
        const struct allocation *a = alloc_index_find(s->allocations, "ns",
                                                      pod);
        if (f->placed[i] != (a != NULL) ||
            strcmp(f->node[i], a ? a->node : "") != 0)
            die(f->where, "a pod is not where it was told to be");
    }
}

static int n_aside(const char *dir)
{
    int n = 0;
    for (int i = 1; i < 20; i++) {
        cleanup_free char *path =
            xasprintf("%s/history/" HISTORY_FILE ".damaged-%d", dir, i);
        n += access(path, F_OK) == 0;
    }
    return n;
}

static void check_restart(const char *dir, uint64_t committed,
                          const char *where)
{
    struct life l;
    struct found f = {.question = {.answer = answer}, .where = where};
    begin(&l, dir);
    history_settle(l.history);
    if (sem_init(&f.done, 0, 0) < 0 || history_ask(l.history, &f.question) < 0)
        die(where, "it cannot be asked");
    while (sem_wait(&f.done) != 0)
        ;
    (void)sem_destroy(&f.done);
    if (f.newest < committed)
        die(where, "what was committed is lost");
    compare(&f, l.writer);
    end(&l);
}

/* --- the parent: one run -------------------------------------------------- */

static void learn(void *committed, const void *record)
{
    uint64_t *most = committed;
    const uint64_t *newest = record;
    *most = *newest > *most ? *newest : *most;
}

/* True when it died, false when it ended by itself. */
static bool run_child(const char *dir, unsigned seed, const char *points,
                      uint64_t *committed)
{
    char number[16];
    (void)snprintf(number, sizeof number, "%u", seed);
    const char *const argv[] = {"race_history_kill", "--child", dir, number,
                                NULL};
    int status = failchild_run(points, argv, sizeof *committed, learn,
                               committed);
    if (status < 0)
        die("a child", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        die(points, "the child ended in another way");
    return true;
}

static void damage(const char *dir)
{
    cleanup_free char *path = xasprintf("%s/history/" HISTORY_FILE, dir);
    cleanup_fd int fd = open(path, O_WRONLY);
    if (fd < 0 || pwrite(fd, "damage", 6, 0) != 6)
        die(path, strerror(errno));
}

/* One name, all hits, on one directory that carries on. */
static void try_name(const char *name, unsigned *seed, unsigned *kills)
{
    char *dir = tmpdir_create();
    bool fails = strcmp(name, "history-commit") == 0;
    bool aside = strstr(name, "-aside");
    uint64_t committed = 0;
    for (size_t i = 0; i < ARRAY_LEN(hits); i++) {
        char points[64];
        (void)snprintf(points, sizeof points, "%s=%s:%u", name,
                       fails ? "fail" : "kill", aside ? 1 : hits[i]);
        if (aside && i == 0)
            check_restart(dir, 0, points); /* there is a file to damage */
        if (aside) {
            damage(dir);
            committed = 0;
        }
        bool killed = run_child(dir, ++*seed, points, &committed);
        if (killed == fails)
            die(points, fails ? "did not end by itself" : "was never hit");
        check_restart(dir, committed, points);
        if (n_aside(dir) != (aside ? (int)i + 1 : 0))
            die(points, "there are other damaged files than one of each");
        *kills += killed;
    }
    tmpdir_remove(dir);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3]);
    unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    unsigned kills = 0;
    (void)unsetenv("BIGA_FAILPOINTS");
    log_set_level(LOG_ERROR + 1);
    for (const char *const *name = failpoint_names(); *name; name++)
        if (strncmp(*name, "history-", 8) == 0)
            try_name(*name, &seed, &kills);
    (void)printf("race_history_kill: %u kills, nothing lost that was committed "
                 "and nothing told twice\n",
                 kills);
    return 0;
}

#endif
