#include "extender/run/node_poll.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "tests/lib/sim/simapp.h"

static void start(void)
{
    simapp_begin(NULL);
}

TestSuite(node_poll, .init = start, .fini = simapp_end);

/* What there is to say at one time. */
struct moment {
    struct pod_set *set;
    struct snapshot *snapshot;
};

static struct moment moment_take(void)
{
    struct embedded *e = server_embedded(simapp_server);
    runner_settle(e->runner);
    return (struct moment){applied_get(e->store.applied),
                           writer_snapshot(e->store.writer)};
}

static void moment_fini(struct moment *m)
{
    pod_set_unref(m->set);
    snapshot_unref(m->snapshot);
}

static uint64_t version(const struct moment *m, const char *node)
{
    return node_poll_version(server_embedded(simapp_server)->node_poll, m->set,
                             m->snapshot, node);
}

/* As many as are counted; names that nobody has. */
static void ask_for_many(const struct moment *m)
{
    for (unsigned i = 0; i < NODE_POLL_NODES_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        (void)version(m, name);
    }
}

/* A pod is placed between the two; where. */
static const char *place_pod(struct moment *ret_before,
                             struct moment *ret_after)
{
    static const struct simapp_pod pod = {.name = "x", .role = "xpu"};
    *ret_before = moment_take();
    cr_assert_eq(simapp_apply(&pod, 1), 0);
    *ret_after = moment_take();
    const struct allocation *a =
        alloc_index_find(ret_after->snapshot->allocations, "ns", "x");
    cr_assert(a);
    return a->node;
}

Test(node_poll, another_content_is_another_version)
{
    struct moment before, after;
    const char *node = place_pod(&before, &after);
    uint64_t first = version(&before, node);
    cr_expect_eq(version(&before, node), first);
    cr_expect_eq(version(&after, node), first + 1);
    ask_for_many(&before);
    cr_expect_eq(version(&after, node), first + 1);
    cr_expect_eq(version(&before, node), first + 2, "which was old is news");
    moment_fini(&before);
    moment_fini(&after);
}

/* Whoever asks for very many names has nothing kept for more of them. */
Test(node_poll, of_too_many_nodes_versions_are_not_kept)
{
    struct node_poll *w = server_embedded(simapp_server)->node_poll;
    struct moment before, after;
    const char *node = place_pod(&before, &after);
    ask_for_many(&before);
    uint64_t first = version(&before, node), second = version(&after, node);
    cr_expect_neq(first, second);
    cr_expect(node_poll_knows(w, first));
    cr_expect(node_poll_knows(w, second));
    cr_expect_eq(version(&before, node), first, "nothing is kept");
    cr_expect_eq(version(&after, node), second);
    moment_fini(&before);
    moment_fini(&after);
}
