/* kill -9 of who prepares claims at every named point of that and of its end,
 * at the first hits.  After the restart everything that the kubelet was told is
 * there and as it was, it gets the rest by asking again, nothing is there
 * twice, and nothing stays when all is unprepared.
 *
 * The program runs itself as the one that dies ("--child DIR"), which reports
 * on stdout, a pipe, what the kubelet asks and is told.  Exits with 77 when it
 * was built without -DFAILPOINTS. */
#include <stdio.h>

#include "lib/io/failpoint.h"

#ifndef FAILPOINTS

int main(void)
{
    (void)printf("race_claims: skipped, built without -DFAILPOINTS\n");
    return 77;
}

#else

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/io/log.h"
#include "tests/lib/dra/drarig.h"
#include "tests/lib/tmpdir.h"

enum { N_CLAIMS = 5, GRACE_MS = 1000 };

static const unsigned hits[] = {1, 2, 3, 6};

/* On the pipe: what was asked of which claim, and what was told. */
struct record {
    char kind; /* 'p' to prepare it, 'P' it is; 'u', 'U' */
    unsigned claim;
};

/* What the kubelet knows of a claim. */
enum state { NOTHING, ASKED, PREPARED, LEAVING, GONE };

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_claims: %s: %s\n", what, why);
    exit(1);
}

static void names_of(unsigned claim, char name[16], char uid[16])
{
    (void)snprintf(name, 16, "c%u", claim);
    (void)snprintf(uid, 16, "u-%u", claim);
}

/* Claims in the API server are the same in each process. */
static void begin(struct drarig *r, const char *root)
{
    char name[16], uid[16];
    drarig_init(r, root);
    r->grace_ms = GRACE_MS;
    for (unsigned i = 0; i < N_CLAIMS; i++) {
        names_of(i, name, uid);
        drarig_claim(r, name, uid,
                     i % 2 ? "card-0000-17-00,card-0000-18-00"
                           : "card-0000-17-00");
    }
    drarig_open(r);
}

/* --- who dies ------------------------------------------------------------- */

static void say(char kind, unsigned claim)
{
    const struct record record = {kind, claim};
    if (write(STDOUT_FILENO, &record, sizeof record) != sizeof record)
        die("child", "the pipe");
}

static void prepare(struct drarig *r, unsigned claim)
{
    char name[16], uid[16];
    struct error err = {0};
    names_of(claim, name, uid);
    say('p', claim);
    if (drarig_prepare(r, name, uid, &err) < 0)
        die("child", err.text);
    (void)failpoint("claim-before-answer");
    say('P', claim);
}

static void unprepare(struct drarig *r, unsigned claim)
{
    char name[16], uid[16];
    struct error err = {0};
    names_of(claim, name, uid);
    say('u', claim);
    if (drarig_unprepare(r, name, uid, &err) < 0)
        die("child", err.text);
    (void)failpoint("claim-before-unanswer");
    say('U', claim);
}

/* One is deleted from the API server, and the kubelet never asks. */
static void sweep(struct drarig *r, unsigned claim)
{
    char name[16], uid[16];
    names_of(claim, name, uid);
    drarig_claim(r, name, NULL, NULL);
    say('u', claim);
    for (int i = 0; i < 4 * N_CLAIMS; i++)
        (void)dra_claims_sweep(r->open, i < 2 * N_CLAIMS ? 0 : GRACE_MS);
    if (drarig_has_record(r, uid))
        die("child", "it was not swept");
    say('U', claim);
}

static int run_child(const char *root)
{
    struct drarig r;
    begin(&r, root);
    for (unsigned i = 0; i < N_CLAIMS; i++)
        prepare(&r, i);
    prepare(&r, 0);
    for (unsigned i = 1; i < N_CLAIMS - 1; i++)
        unprepare(&r, i);
    prepare(&r, 1);
    sweep(&r, N_CLAIMS - 1);
    unprepare(&r, 1);
    unprepare(&r, 0);
    drarig_fini(&r);
    return 0;
}

/* --- who looks ------------------------------------------------------------ */

static void take(int fd, enum state states[N_CLAIMS])
{
    struct record record;
    ssize_t n;
    while ((n = read(fd, &record, sizeof record)) == sizeof record)
        states[record.claim] = record.kind == 'p'
                                   ? states[record.claim] == PREPARED ? PREPARED
                                                                      : ASKED
                               : record.kind == 'P' ? PREPARED
                               : record.kind == 'u' ? LEAVING
                                                    : GONE;
    if (n != 0)
        die("parent", "the pipe");
}

/* True: it was killed by its point. */
static bool run_killed(const char *self, const char *root, const char *points,
                       enum state states[N_CLAIMS])
{
    int ends[2], status;
    if (pipe(ends) < 0)
        die("parent", "no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(ends[1], STDOUT_FILENO) < 0 ||
            setenv("BIGA_FAILPOINTS", points, 1) < 0)
            _exit(1);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl(self, self, "--child", root, (char *)NULL);
        _exit(1);
    }
    (void)close(ends[1]);
    take(ends[0], states);
    (void)close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        die("parent", "no child");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die(points, "the child failed");
    return false;
}

static void check_claim(struct drarig *r, unsigned claim, enum state state,
                        const char *points)
{
    char name[16], uid[16];
    struct error err = {0};
    names_of(claim, name, uid);
    bool record = drarig_has_record(r, uid), cdi = drarig_has_cdi(r, uid);
    if (record != cdi)
        die(points, "a record and no CDI file, or the other way");
    if (state == PREPARED && !record)
        die(points, "what was told to be prepared is lost");
    if ((state == GONE || state == NOTHING) && record)
        die(points, "something is left");
    if (state != ASKED && state != PREPARED)
        return;
    cleanup_free char *before = drarig_cdi(r, uid);
    if (drarig_prepare(r, name, uid, &err) < 0)
        die(points, err.text);
    cleanup_free char *after = drarig_cdi(r, uid);
    if (record && strcmp(before, after) != 0)
        die(points, "it is not as it was");
}

static void check(const char *root, const enum state states[N_CLAIMS],
                  const char *points)
{
    char name[16], uid[16];
    struct drarig r;
    struct error err = {0};
    begin(&r, root);
    for (unsigned i = 0; i < N_CLAIMS; i++)
        check_claim(&r, i, states[i], points);
    for (unsigned i = 0; i < N_CLAIMS; i++) {
        names_of(i, name, uid);
        if (drarig_unprepare(&r, name, uid, &err) < 0)
            die(points, err.text);
    }
    if (drarig_n_files(&r) != 0)
        die(points, "files are left");
    drarig_fini(&r);
}

static bool try(const char *self, const char *name, unsigned hit)
{
    enum state states[N_CLAIMS] = {NOTHING};
    char *root = tmpdir_create();
    cleanup_free char *points = xasprintf("%s=kill:%u", name, hit);
    bool killed = run_killed(self, root, points, states);
    check(root, states, points);
    tmpdir_remove(root);
    return killed;
}

int main(int argc, char **argv)
{
    unsigned kills = 0;
    log_set_level(LOG_ERROR);
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        return run_child(argv[2]);
    (void)unsetenv("BIGA_FAILPOINTS");
    for (const char *const *name = failpoint_names(); *name; name++) {
        if (strncmp(*name, "claim-", 6) != 0)
            continue;
        for (size_t i = 0; i < ARRAY_LEN(hits); i++) {
            bool killed = try(argv[0], *name, hits[i]);
            if (i == 0 && !killed)
                die(*name, "is never reached");
            kills += killed;
        }
    }
    (void)printf("race_claims: %u kills, nothing lost and nothing left\n",
                 kills);
    return 0;
}

#endif
