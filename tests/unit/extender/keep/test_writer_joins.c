/* Nodes that come while others do: those that wait already are made visible
 * with them. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

enum { FLEET = 500, OPS_MAX = 3 };

/* Three operations: one shrinks a node that is in use, one brings another; when
 * the writer tells of the first, a third is queued. */
struct arrival {
    struct writer *w;
    struct writer_op ops[OPS_MAX];
    char names[OPS_MAX][SLICE_NAME_MAX + 1];
    char *bodies[OPS_MAX];
    bool queued;
    sem_t done;
};

static void on_done(struct writer_op *op)
{
    struct arrival *a = op->ctx;
    (void)sem_post(&a->done);
}

static void put(struct arrival *a, size_t i, const char *node, unsigned n_cards,
                int64_t generation)
{
    a->bodies[i] = sim_slice(node, n_cards, "boot", generation, 0);
    slice_name(node, 0, a->names[i]);
    a->ops[i] = (struct writer_op){.kind = WRITER_PUT_SLICE,
                                   .name = a->names[i],
                                   .body = a->bodies[i],
                                   .body_size = strlen(a->bodies[i]),
                                   .done = on_done,
                                   .ctx = a};
}

static void on_overfull(void *ctx, const struct allocation *allocation,
                        const char *text)
{
    struct arrival *a = ctx;
    (void)allocation;
    (void)text;
    if (!a->queued)
        writer_post(a->w, &a->ops[2]);
    a->queued = true;
}

/* On the writer's thread, between two batches: both are of the next one. */
static void post_two(void *ctx)
{
    struct arrival *a = ctx;
    writer_post(a->w, &a->ops[0]);
    writer_post(a->w, &a->ops[1]);
}

static void fill(struct writer *w)
{
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    d.cards = d.pair_cards = 4;
    for (int i = 0; i < FLEET; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(sim_publish(w, name, 4, "boot", 1), 0);
    }
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
}

static size_t n_nodes(struct writer *w)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    return s->n_nodes;
}

/* How many snapshots it takes until the third is there. */
static uint64_t snapshots_of(struct arrival *a)
{
    struct writer_op call = {.kind = WRITER_CALL, .call = post_two, .ctx = a};
    cleanup_with(snapshot) struct snapshot *before = writer_snapshot(a->w);
    (void)sem_init(&a->done, 0, 0);
    writer_on_overfull(a->w, on_overfull, a);
    cr_assert_eq(writer_run(a->w, &call), 0);
    for (int i = 0; i < OPS_MAX; i++)
        (void)sem_wait(&a->done);
    writer_on_overfull(a->w, NULL, NULL);
    (void)sem_destroy(&a->done);
    for (int i = 0; i < OPS_MAX; i++)
        free(a->bodies[i]);
    cleanup_with(snapshot) struct snapshot *after = writer_snapshot(a->w);
    cr_assert(a->queued);
    cr_assert_eq(a->ops[0].result, 0, "%s", a->ops[0].error.text);
    cr_assert_eq(a->ops[2].result, 0, "%s", a->ops[2].error.text);
    return after->number - before->number;
}

Test(writer_joins, take_along_who_is_queued)
{
    struct writer *w = sim_writer(NULL);
    struct arrival a = {.w = w};
    fill(w);
    put(&a, 0, "n1", 1, 2);
    put(&a, 1, "new", 4, 1);
    put(&a, 2, "newer", 4, 1);
    cr_expect_eq(snapshots_of(&a), 1);
    cr_expect_eq(n_nodes(w), FLEET + 2);
    writer_stop(w);
}

Test(writer_joins, are_not_waited_for_by_others)
{
    struct writer *w = sim_writer(NULL);
    struct arrival a = {.w = w};
    struct demand d = sim_pod("p2", ROLE_HOST, "", 0);
    fill(w);
    put(&a, 0, "n1", 1, 2);
    put(&a, 2, "new", 4, 1);
    a.ops[1] = (struct writer_op){.kind = WRITER_BIND,
                                  .demand = &d,
                                  .node = "n2",
                                  .out = STR_INIT(STR_MAX_DEFAULT),
                                  .done = on_done,
                                  .ctx = &a};
    cr_expect_eq(snapshots_of(&a), 2);
    cr_expect_eq(a.ops[1].result, 0, "%s", a.ops[1].error.text);
    str_fini(&a.ops[1].out);
    writer_stop(w);
}

/* A node that was there already costs nobody anything. */
Test(writer_joins, are_not_awaited_where_none_comes)
{
    struct writer *w = sim_writer(NULL);
    struct arrival a = {.w = w};
    fill(w);
    put(&a, 0, "n1", 1, 2);
    put(&a, 1, "n2", 4, 2);
    put(&a, 2, "new", 4, 1);
    cr_expect_eq(snapshots_of(&a), 2);
    writer_stop(w);
}
