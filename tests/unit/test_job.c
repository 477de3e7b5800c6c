/* Whole jobs through the writer: leases, arrival orders, races. */
#include "extender/job.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/writer.h"
#include "model/base/mem.h"
#include "model/io/clock.h"
#include "model/io/log.h"
#include "tests/lib/simstate.h"
#include "tests/lib/tmpdir.h"

enum { N_NODES = 4, N_CARDS = 4, ALL = N_NODES * N_CARDS };

static const char *const nodes[N_NODES] = {"n0", "n1", "n2", "n3"};

static struct writer *start(const char *dir)
{
    log_set_level(LOG_ERROR);
    clock_set_fake(1000000);
    struct writer *w = sim_writer(dir);
    for (int i = 0; i < N_NODES; i++)
        cr_assert_eq(sim_publish(w, nodes[i], N_CARDS, "boot", 1), 0);
    return w;
}

static void finish(struct writer *w)
{
    writer_stop(w);
    clock_set_fake(-1);
}

static struct demand member(const char *job, int pair, int size,
                            enum pod_role role)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s-%s-%d", job, pod_role_name(role),
                   pair);
    return sim_member(name, role, job, pair, size);
}

/* Where the job's plan has the pod now, or NULL. */
static const char *planned(struct writer *w, const struct demand *pod,
                           const int32_t *candidates, size_t n)
{
    static char name[64];
    struct schedule s;
    struct plan_refusal refusal;
    cleanup_with(plan) struct plan *plan = NULL;
    cleanup_with(snapshot) struct snapshot *now = writer_snapshot(w);
    schedule_init(&s, now, pod);
    int32_t node = s.follows;
    if (!job_is_placed(&s, candidates, n)) {
        if (job_plan(NULL, now, pod, candidates, n, NODE_NONE, &plan,
                     &refusal) < 0)
            return NULL;
        node = plan->places[job_rank(pod)].node;
    }
    (void)snprintf(name, sizeof name, "%s",
                   snapshot_node(now, (size_t)node)->name);
    return name;
}

static int bind_planned(struct writer *w, const struct demand *pod)
{
    const char *node = planned(w, pod, NULL, 0);
    return node ? sim_bind(w, pod, node, NULL, NULL) : -EBUSY;
}

static void count(struct writer *w, const char *job, size_t *ret_bound,
                  size_t *ret_held)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_str struct str why = STR_INIT(4096);
    size_t n;
    cleanup_free const struct allocation **list =
        alloc_index_find_job(s->allocations, "ns", job, &n);
    cr_assert(sim_check(s, &why), "%s", str_text(&why));
    *ret_bound = *ret_held = 0;
    for (size_t i = 0; i < n; i++)
        *(list[i]->held ? ret_held : ret_bound) += 1;
}

#define cr_counts(w, job, bound, held)                                  \
    do {                                                                \
        size_t n_bound_, n_held_;                                       \
        count(w, job, &n_bound_, &n_held_);                             \
        cr_assert_eq(n_bound_, (size_t)(bound), "%zu bound", n_bound_); \
        cr_assert_eq(n_held_, (size_t)(held), "%zu held", n_held_);     \
    } while (0)

Test(job, first_bind_holds_the_rest)
{
    struct writer *w = start(NULL);
    struct demand first = member("a", 0, 6, ROLE_HOST);
    cr_assert_eq(bind_planned(w, &first), 0);
    cr_counts(w, "a", 1, 5);
    for (int i = 1; i < 6; i++) {
        struct demand pod = member("a", i, 6, ROLE_HOST);
        cr_assert_eq(bind_planned(w, &pod), 0);
        cr_counts(w, "a", 1 + i, 5 - i);
    }
    for (int i = 0; i < 6; i++) {
        struct demand pod = member("a", i, 6, ROLE_XPU);
        cr_assert_eq(bind_planned(w, &pod), 0);
    }
    cr_counts(w, "a", 12, 0);
    finish(w);
}
