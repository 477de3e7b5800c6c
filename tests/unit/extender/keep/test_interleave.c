/* Random interleavings of bind, delete, expiry and restart against a model
 * so simple that it is right: what was acknowledged is there, nothing else
 * is, and nothing is promised twice.  20,000 interleavings, or
 * $BIGA_INTERLEAVINGS. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum {
    INTERLEAVINGS = ROUNDS_OF(20000),
    N_NODES = 3,
    N_CARDS = 2,
    N_PODS = 14,
    OPS_MAX = 5,        /* posted together, without waiting */
    RESTART_EVERY = 60, /* interleavings, about */
};

/* What is known to be true of one pod name. */
struct truth {
    bool bound;
    char uid[DEMAND_UID_MAX + 1];
    int node;
};

struct world {
    char *dir;
    struct writer *w;
    uint64_t random;
    int64_t now_ms;
    struct truth pods[N_PODS];
    bool ready[N_NODES];
    int64_t generation[N_NODES]; /* 0: withdrawn */
    int64_t last_generation;
    unsigned n_bound, n_refused, n_released, n_restarts, n_expired;
};

struct step {
    struct writer_op op;
    struct demand demand;
    int pod, node;
};

static const char *const nodes[N_NODES] = {"n0", "n1", "n2"};

static unsigned pick(struct world *x, unsigned n)
{
    return sim_random(&x->random) % n;
}

/* --- the hosts --------------------------------------------------------- */

static void publish(struct world *x, int node)
{
    x->generation[node] = ++x->last_generation;
    cr_assert_eq(
        sim_publish(x->w, nodes[node], N_CARDS, "boot", x->generation[node]),
        0);
    x->ready[node] = true;
}

static void withdraw(struct world *x, int node)
{
    cr_assert_eq(sim_withdraw(x->w, nodes[node]),
                 x->generation[node] ? 0 : -ENOENT);
    x->generation[node] = 0;
    x->ready[node] = false;
}

static void heartbeat(struct world *x, int node)
{
    cr_assert(
        sim_heartbeat(x->w, nodes[node], N_CARDS, "boot", x->generation[node]));
    x->ready[node] = true;
}

/* Time passes, and some hosts are silent meanwhile. */
static void expire(struct world *x)
{
    x->now_ms += 15001;
    clock_set_fake(x->now_ms);
    for (int i = 0; i < N_NODES; i++) {
        if (x->generation[i] == 0)
            continue;
        x->ready[i] = false;
        x->n_expired++;
        if (pick(x, 2))
            heartbeat(x, i);
    }
    writer_sweep(x->w);
}

static void restart(struct world *x)
{
    writer_stop(x->w);
    x->w = sim_writer(x->dir);
    x->n_restarts++;
    for (int i = 0; i < N_NODES; i++)
        x->ready[i] = x->generation[i] != 0; /* heard from just now */
}

/* --- the pods ---------------------------------------------------------- */

static void make_step(struct world *x, struct step *s)
{
    static const enum pod_role roles[] = {ROLE_HOST, ROLE_XPU, ROLE_SERVICE};
    static const char *const jobs[] = {"", "", "a", "b"};
    char name[16];
    unsigned kind = pick(x, 10);
    memset(s, 0, sizeof *s);
    s->pod = (int)pick(x, N_PODS);
    s->node = (int)pick(x, N_NODES);
    (void)snprintf(name, sizeof name, "p%d", s->pod);
    struct demand d = sim_pod(name, roles[pick(x, 3)], jobs[pick(x, 4)],
                              (int)pick(x, 2));
    (void)snprintf(d.uid, sizeof d.uid, "%s-%u", name, pick(x, 3));
    if (pick(x, 3))
        d = sim_need(d, 1 + pick(x, 16), pick(x, 4) * 8192);
    d.exclusive = pick(x, 4) == 0;
    d.gpus = d.role == ROLE_HOST ? (uint8_t)pick(x, 2) : 0;
    s->demand = d;
    if (kind < 7)
        s->op = (struct writer_op){
            .kind = WRITER_BIND, .node = nodes[s->node], .demand = &s->demand};
    else
        s->op = (struct writer_op){.kind = WRITER_RELEASE,
                                   .namespace = s->demand.namespace,
                                   .pod = s->demand.name};
}

static void learn_bind(struct world *x, const struct step *s)
{
    struct truth *t = &x->pods[s->pod];
    bool same = t->bound && strcmp(t->uid, s->demand.uid) == 0;
    switch (s->op.result) {
    case 0:
        cr_assert_eq(s->op.created, !same, "a repeat makes nothing new");
        cr_assert(!same || t->node == s->node);
        cr_assert(same || x->ready[s->node], "%s is not ready", nodes[s->node]);
        t->bound = true;
        t->node = s->node;
        memcpy(t->uid, s->demand.uid, sizeof t->uid);
        x->n_bound += s->op.created;
        break;
    case -EEXIST:
        cr_assert(same && t->node != s->node);
        break;
    case -EBUSY:
        cr_assert(!same, "a bound pod is told so: %s", s->op.error.text);
        x->n_refused++;
        break;
    default:
        cr_assert_fail("bind: %s", s->op.error.text);
    }
}

static void learn(struct world *x, const struct step *s)
{
    struct truth *t = &x->pods[s->pod];
    if (s->op.kind == WRITER_BIND) {
        learn_bind(x, s);
        return;
    }
    cr_assert_eq(s->op.result, t->bound ? 0 : -ENOENT);
    x->n_released += t->bound;
    t->bound = false;
}

/* Post some operations at once; the last one is waited for, as the writer
 * keeps their order. */
static void run_pods(struct world *x)
{
    struct step steps[OPS_MAX];
    unsigned n = 1 + pick(x, OPS_MAX);
    for (unsigned i = 0; i < n; i++) {
        make_step(x, &steps[i]);
        str_init(&steps[i].op.out, 1 << 20);
        if (i + 1 < n)
            writer_post(x->w, &steps[i].op);
    }
    (void)writer_run(x->w, &steps[n - 1].op); /* learned below */
    for (unsigned i = 0; i < n; i++) {
        learn(x, &steps[i]);
        str_fini(&steps[i].op.out);
    }
}

/* --- the comparison ---------------------------------------------------- */

static void compare(const struct world *x)
{
    cleanup_str struct str why = STR_INIT(4096);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x->w);
    size_t n = 0;
    cr_assert(sim_check(s, &why), "%s", str_text(&why));
    for (int i = 0; i < N_PODS; i++) {
        const struct truth *t = &x->pods[i];
        char name[16];
        (void)snprintf(name, sizeof name, "p%d", i);
        const struct allocation *a = alloc_index_find(s->allocations, "ns",
                                                      name);
        n += t->bound;
        cr_assert_eq(a != NULL, t->bound, "%s", name);
        cr_assert(!a || (strcmp(a->demand.uid, t->uid) == 0 &&
                         strcmp(a->node, nodes[t->node]) == 0));
    }
    cr_assert_eq(alloc_index_size(s->allocations), n);
}

static void interleave(struct world *x)
{
    int node = (int)pick(x, N_NODES);
    run_pods(x);
    switch (pick(x, RESTART_EVERY)) {
    case 0:
        restart(x);
        break;
    case 1:
        withdraw(x, node);
        break;
    case 2:
        expire(x);
        break;
    case 3:
    case 4:
    case 5:
        publish(x, node);
        break;
    default:
        break;
    }
    compare(x);
}

Test(interleave, nothing_is_lost_or_promised_twice)
{
    const char *more = getenv("BIGA_INTERLEAVINGS");
    long n = more ? strtol(more, NULL, 10) : INTERLEAVINGS;
    struct world x = {.random = 20260101, .now_ms = 1000000};
    log_set_level(LOG_ERROR);
    clock_set_fake(x.now_ms);
    x.dir = tmpdir_create();
    x.w = sim_writer(x.dir);
    for (int i = 0; i < N_NODES; i++)
        publish(&x, i);
    for (long i = 0; i < n; i++)
        interleave(&x);
    writer_stop(x.w);
    tmpdir_remove(x.dir);
    clock_set_fake(-1);
    (void)fprintf(stderr,
                  "interleave: %ld interleavings: %u bound, %u refused, %u "
                  "released, %u restarts, %u expired\n",
                  n, x.n_bound, x.n_refused, x.n_released, x.n_restarts,
                  x.n_expired);
    cr_expect(n < 1000 ||
              (x.n_bound > 0 && x.n_refused > 0 && x.n_released > 0 &&
               x.n_restarts > 0 && x.n_expired > 0));
}
