/* kill -9 at every named point of the bind path, at its first, second, …
 * hit, and failures of commit and fsync: after the restart every
 * acknowledged bind and release is there, an unacknowledged one is there
 * whole or not at all, nothing is promised twice, and a repeated bind gets
 * the answer it got before.  A job of which a pod is bound has a place for
 * every pair, unless one's pod was released; one of which nobody is bound
 * has none.  All of it once more where a job's places are held one by one: what
 * is held then of a job of which nobody is bound ends with its lease.
 *
 *   race_failpoints [FIRST_SEED]
 *
 * The program runs itself as the one that dies ("--child DIR SEED PIECE"), which
 * reports on stdout, a pipe, what it asks and what it was answered.  Exits
 * with 77 when it was built without -DFAILPOINTS. */
#include <stdio.h>

#include "lib/io/failpoint.h"

#ifndef FAILPOINTS

int main(void)
{
    (void)printf("race_failpoints: skipped, built without -DFAILPOINTS\n");
    return 77;
}

#else

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "extender/keep/writer.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/failchild.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum {
    N_NODES = 3,
    N_CARDS = 3, /* so that a job is on several nodes */
    N_PODS = 16,
    N_ALONE = 8,   /* the others are members of whole jobs */
    JOB_SIZE = 4,  /* pairs, of which each has one pod here */
    N_UIDS = 3,    /* lives of one pod name */
    N_GROUPS = 60, /* of operations that a child posts */
    GROUP_MAX = 4, /* operations posted together */
    START_MS = 1000000,
};

static const char *const nodes[N_NODES] = {"n0", "n1", "n2"};
static const unsigned hits[] = {1, 2, 3, 5, 8, 13};

/* One operation as parent and child both see it.  Records on the pipe are
 * these, whole: far below PIPE_BUF. */
struct record {
    char kind; /* 'b' bind asked, 'B' acknowledged, 'r', 'R', 'E' refused */
    int pod, uid, node;
    uint64_t answer; /* hash of the answer to a bind */
};

/* About so many of a job's places are held at once; 0: all of them. */
static size_t piece;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_failpoints: %s: %s\n", what, why);
    exit(1);
}

static void pod_name(int pod, char name[16])
{
    (void)snprintf(name, 16, "p%d", pod);
}

static const char *job_name(int pod)
{
    static const char *const jobs[] = {"ja", "jb"};
    return jobs[(pod - N_ALONE) / JOB_SIZE % 2];
}

static struct demand job_demand(int pod, int uid)
{
    char name[16];
    pod_name(pod, name);
    struct demand d = sim_member(name, pod % 3 ? ROLE_HOST : ROLE_XPU,
                                 job_name(pod), (pod - N_ALONE) % JOB_SIZE,
                                 JOB_SIZE);
    (void)snprintf(d.uid, sizeof d.uid, "%s-%d", name, uid);
    d.exclusive = piece > 0; /* then no job has all of its pairs on one node */
    return sim_need(d, 4, 1024);
}

/* The same pod always asks the same. */
static struct demand pod_demand(int pod, int uid)
{
    char name[16];
    uint64_t r = (uint64_t)(pod * N_UIDS + uid);
    pod_name(pod, name);
    if (pod >= N_ALONE)
        return job_demand(pod, uid);
    enum pod_role role = pod % 4 == 3 ? ROLE_SERVICE : ROLE_HOST;
    struct demand d = sim_pod(name, role, "", 0);
    (void)snprintf(d.uid, sizeof d.uid, "%s-%d", name, uid);
    if (pod % 2)
        d = sim_need(d, 1 + sim_random(&r) % 10, 1024);
    d.exclusive = sim_random(&r) % 3 == 0;
    return d;
}

/* --- the child --------------------------------------------------------- */

struct child_op {
    struct writer_op op;
    struct demand demand;
    struct record record;
};

static void say(struct record r, char kind)
{
    r.kind = kind;
    if (write(STDOUT_FILENO, &r, sizeof r) != (ssize_t)sizeof r)
        die("pipe", strerror(errno));
}

static atomic_int n_open; /* operations that were not answered yet */

static void child_done(struct writer_op *op)
{
    struct child_op *c = op->ctx;
    if (op->result != 0) {
        say(c->record, 'E');
    } else if (op->kind == WRITER_BIND) {
        c->record.answer = hash_bytes(op->out.data, op->out.size);
        say(c->record, 'B');
    } else {
        say(c->record, 'R');
    }
    str_fini(&op->out);
    atomic_fetch_sub(&n_open, 1);
}

static void child_post(struct writer *w, struct child_op *c, uint64_t *random)
{
    memset(c, 0, sizeof *c);
    c->record.pod = (int)(sim_random(random) % N_PODS);
    c->record.uid = (int)(sim_random(random) % N_UIDS);
    c->record.node = (int)(sim_random(random) % N_NODES);
    c->demand = pod_demand(c->record.pod, c->record.uid);
    unsigned chance = sim_random(random) % 10;
    bool bind = c->record.pod < N_ALONE ? chance < 6 : chance < 9;
    c->op = (struct writer_op){.kind = bind ? WRITER_BIND : WRITER_RELEASE,
                               .node = nodes[c->record.node],
                               .out = STR_INIT(1 << 20),
                               .done = child_done,
                               .ctx = c};
    if (bind) {
        c->op.demand = &c->demand;
    } else {
        c->op.namespace = c->demand.namespace;
        c->op.pod = c->demand.name;
    }
    say(c->record, bind ? 'b' : 'r');
    atomic_fetch_add(&n_open, 1);
    writer_post(w, &c->op);
}

static int child(const char *dir, const char *seed, const char *size)
{
    struct child_op ops[GROUP_MAX];
    uint64_t random = strtoull(seed, NULL, 10);
    piece = strtoul(size, NULL, 10);
    log_set_level(LOG_ERROR + 1);
    clock_set_fake(START_MS); /* nodes stay fresh, places stay held */
    struct writer *w = sim_writer_piece(dir, piece);
    for (int i = 0; i < N_NODES; i++)
        if (sim_publish(w, nodes[i], N_CARDS, "boot", 1) != 0 &&
            sim_publish(w, nodes[i], N_CARDS, "boot", 1) != 0)
            die(nodes[i], "cannot be published, not even the second time");
    for (int i = 0; i < N_GROUPS; i++) {
        unsigned n = 1 + sim_random(&random) % GROUP_MAX;
        for (unsigned k = 0; k < n; k++)
            child_post(w, &ops[k], &random);
        do
            writer_sweep(w); /* comes after all but those that go on */
        while (atomic_load(&n_open) > 0);
    }
    writer_stop(w);
    return 0;
}

/* --- the parent: what must be ------------------------------------------ */

/* One life of a pod name, or none. */
struct state {
    bool bound;
    int uid, node;
    uint64_t answer; /* 0: was never answered */
};

/* Acknowledged, and what may have happened besides: operations of one name
 * are answered in their order, so those that are open come after. */
struct pod {
    struct state known;
    struct record open[N_GROUPS * GROUP_MAX];
    size_t n_open;
    bool left; /* was released since its pair last had a place for sure */
};

static void learn(void *pods, const void *record)
{
    const struct record *r = record;
    struct pod *p = (struct pod *)pods + r->pod;
    p->left |= r->kind == 'r';
    if (r->kind == 'b' || r->kind == 'r') {
        p->open[p->n_open++] = *r;
        return;
    }
    memmove(p->open, p->open + 1, --p->n_open * sizeof *p->open);
    if (r->kind == 'B')
        p->known = (struct state){true, r->uid, r->node, r->answer};
    else if (r->kind == 'R')
        p->known.bound = false;
}

static bool is_state(const struct state *s, const struct allocation *a)
{
    char uid[32];
    if (!s->bound || !a)
        return !s->bound && !a;
    (void)snprintf(uid, sizeof uid, "%s-%d", a->demand.name, s->uid);
    return strcmp(a->demand.uid, uid) == 0 &&
           strcmp(a->node, nodes[s->node]) == 0;
}

static struct state state_after(const struct record *r)
{
    return (struct state){r->kind == 'b', r->uid, r->node, 0};
}

/* Is what is there what was acknowledged, or what one of the open operations
 * would have made of it?  The pod's state becomes what is there. */
static bool explain(struct pod *p, const struct allocation *a)
{
    size_t i = 0;
    bool left = false; /* for another state, since it was like this */
    while (!is_state(&p->known, a)) {
        if (i == p->n_open)
            return false;
        p->known = state_after(&p->open[i++]);
    }
    for (; i < p->n_open; i++) {
        const struct state next = state_after(&p->open[i]);
        bool same = is_state(&next, a);
        if (same && left)
            p->known.answer = 0; /* it may be bound anew, and like before */
        left |= !same;
    }
    p->n_open = 0;
    return true;
}

static void check_repeat(struct writer *w, struct pod *p, int number)
{
    struct demand d = pod_demand(number, p->known.uid);
    struct writer_op op = {.kind = WRITER_BIND,
                           .node = nodes[p->known.node],
                           .demand = &d,
                           .out = STR_INIT(1 << 20)};
    if (writer_run(w, &op) != 0 || op.created)
        die("a repeated bind", op.error.text);
    uint64_t answer = hash_bytes(op.out.data, op.out.size);
    if (p->known.answer && p->known.answer != answer)
        die("a repeated bind", "has another answer");
    p->known.answer = answer;
    str_fini(&op.out);
}

static size_t n_held_in_all;
static size_t n_left_in_all; /* of these, of jobs of which nobody was bound */

/* All pairs have a place or none has, but for those whose pod left.  How many
 * places are held is added up. */
static void check_job(const struct snapshot *s, struct pod *pods, int first,
                      const char *where, size_t *n_held)
{
    bool bound = false;
    size_t n, held = 0;
    cleanup_free const struct allocation **members =
        alloc_index_find_job(s->allocations, "ns", job_name(first), &n);
    for (size_t i = 0; i < n; i++) {
        bound |= !members[i]->held;
        held += members[i]->held;
    }
    for (int rank = 0; rank < JOB_SIZE; rank++) {
        bool placed = false;
        for (size_t i = 0; i < n; i++)
            placed |= members[i]->demand.pair == rank;
        if (bound && !placed && !pods[first + rank].left)
            die(where, "a pair of a job has no place");
        if (placed)
            pods[first + rank].left = false;
    }
    if (held && !bound && piece == 0)
        die(where, "places are held for a job that is not there");
    if (!bound)
        n_left_in_all += held;
    for (int rank = 0; rank < JOB_SIZE && !bound; rank++)
        pods[first + rank].left = false; /* the next bind plans them all */
    *n_held += held;
}

static void check_jobs(const struct snapshot *s, struct pod *pods,
                       const char *where, size_t *n_held)
{
    *n_held = 0;
    for (int first = N_ALONE; first < N_PODS; first += JOB_SIZE)
        check_job(s, pods, first, where, n_held);
    n_held_in_all += *n_held;
}

/* What is held of jobs ends when nobody comes for it. */
static void check_leases_end(struct writer *w, struct pod *pods,
                             const char *where)
{
    size_t n;
    if (piece == 0)
        return;
    clock_set_fake(START_MS + WRITER_LEASE_MS + 1);
    writer_sweep(w);
    clock_set_fake(START_MS);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++)
        if (list[i]->held)
            die(where, "a place is held after its lease");
    for (int i = 0; i < N_PODS; i++)
        pods[i].left = true; /* its pair may have had a held place */
}

static void check_restart(const char *dir, struct pod *pods, const char *where)
{
    cleanup_str struct str why = STR_INIT(4096);
    struct writer *w = sim_writer(dir);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    size_t n = 0, n_held;
    if (!sim_check(s, &why))
        die(where, str_text(&why));
    for (size_t i = 0; i < s->n_nodes; i++)
        if (snapshot_node(s, i)->status == NODE_DOUBTFUL)
            die(where, "a kill is taken for damage");
    check_jobs(s, pods, where, &n_held);
    for (int i = 0; i < N_PODS; i++) {
        char name[16];
        pod_name(i, name);
        const struct allocation *a = alloc_index_find(s->allocations, "ns",
                                                      name);
        if (!explain(&pods[i], a))
            die(where, a ? "a pod is where it was not bound"
                         : "an acknowledged bind is lost");
        n += a != NULL;
        if (a)
            check_repeat(w, &pods[i], i);
    }
    if (alloc_index_size(s->allocations) != n + n_held)
        die(where, "there are allocations that nobody asked for");
    check_leases_end(w, pods, where);
    writer_stop(w);
}

/* --- the parent: one run ----------------------------------------------- */

/* Returns true when the child died, false when it ended by itself. */
static bool run_child(const char *dir, unsigned seed, const char *points,
                      struct pod *pods)
{
    char number[16], size[16];
    (void)snprintf(number, sizeof number, "%u", seed);
    (void)snprintf(size, sizeof size, "%zu", piece);
    const char *const argv[] = {
        "race_failpoints", "--child", dir, number, size, NULL};
    int status = failchild_run(points, argv, sizeof(struct record), learn,
                               pods);
    if (status < 0)
        die("a child", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    /* a failed fsync is the one error that ends the process by itself */
    int expected = strncmp(points, "fsync=", 6) == 0 ? SIGABRT : SIGKILL;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != expected)
        die(points, "the child ended in another way");
    return true;
}

static void forget(struct pod *pods)
{
    memset(pods, 0, N_PODS * sizeof *pods);
}

/* A run does not get that far for sure: most jobs find no room. */
static bool is_rare(const char *name, unsigned hit)
{
    return strcmp(name, "bind-piece-written") == 0 && hit > 1;
}

/* One name, all hits, on one directory that carries on. */
static unsigned try_name(const char *name, const char *action, struct pod *pods,
                         unsigned *seed)
{
    char *dir = tmpdir_create();
    unsigned n = 0;
    forget(pods);
    for (size_t i = 0; i < ARRAY_LEN(hits); i++) {
        char points[64];
        (void)snprintf(points, sizeof points, "%s=%s:%u", name, action,
                       hits[i]);
        bool killed = run_child(dir, ++*seed, points, pods);
        if (!killed && strcmp(name, "commit") != 0 && !is_rare(name, hits[i]))
            die(points, "was never hit");
        check_restart(dir, pods, points);
        n++;
    }
    tmpdir_remove(dir);
    return n;
}

static void try_any(const char *name, struct pod *pods, unsigned *seed,
                    unsigned *kills, unsigned *failures)
{
    if (piece == 0 && strcmp(name, "bind-piece-written") == 0)
        return; /* there are no pieces */
    if (strncmp(name, "bind-", 5) == 0)
        *kills += try_name(name, "kill", pods, seed);
    else if (strcmp(name, "commit") == 0 || strcmp(name, "fsync") == 0)
        *failures += try_name(name, "fail", pods, seed);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3], argv[4]);
    struct pod *pods = xcalloc(N_PODS, sizeof *pods);
    unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    unsigned kills = 0, failures = 0;
    (void)unsetenv("BIGA_FAILPOINTS");
    log_set_level(LOG_ERROR);
    clock_set_fake(START_MS);
    for (piece = 0; piece < 2; piece++)
        for (const char *const *name = failpoint_names(); *name; name++)
            try_any(*name, pods, &seed, &kills, &failures);
    if (n_left_in_all == 0)
        die("pieces", "nobody was killed between two");
    (void)printf("race_failpoints: %u kills, %u failed commits and syncs, %zu "
                 "places held meanwhile, %zu of them of jobs of which nobody "
                 "was bound, nothing lost and nothing promised twice\n",
                 kills, failures, n_held_in_all, n_left_in_all);
    free(pods);
    return 0;
}

#endif
