/* What a cluster tells the writer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/await.h"
#include "tests/lib/sim/simstate.h"

enum { FRESH_MS = 15000 };

static struct writer *start(void)
{
    struct writer_config config = {.store = STORE_KUBERNETES,
                                   .fresh_ms = FRESH_MS};
    struct writer *w = NULL;
    struct error err = {0};
    cr_assert_eq(writer_start(&config, &w, &err), 0, "%s", err.text);
    return w;
}

/* The node's status, or NODE_STATUSES when it is not there. */
static enum node_status status_of(struct writer *w, const char *node)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t i = snapshot_find(s, node, strlen(node));
    return i < 0 ? NODE_STATUSES : snapshot_node(s, (size_t)i)->status;
}

static uint64_t snapshot_number(struct writer *w)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    return s->number;
}

/* What the writer has for a pod of "ns"; the caller releases it, or NULL. */
static struct allocation *find(struct writer *w, const char *pod)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", pod);
    return a ? allocation_ref((struct allocation *)a) : NULL;
}

static bool has(struct writer *w, const char *pod, const char *uid,
                const char *node)
{
    cleanup_with(allocation) struct allocation *a = find(w, pod);
    return a && strcmp(a->demand.uid, uid) == 0 && strcmp(a->node, node) == 0;
}

static size_t n_held(struct writer *w)
{
    size_t n, held = 0;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++)
        held += list[i]->held;
    return held;
}

/* Another one on `node`, with the cards and all else of `from`. */
static struct allocation *moved(const struct allocation *from, const char *node)
{
    cleanup_str struct str json = STR_INIT(1 << 20);
    struct allocation *a = NULL;
    struct error err = {0};
    allocation_encode(from, &json);
    cr_assert_eq(allocation_decode(json.data, json.size, &a, &err), 0, "%s",
                 err.text);
    free(a->node);
    a->node = xstrdup(node);
    return a;
}

static int adopt(struct writer *w, struct allocation *a, bool *ret_created)
{
    struct writer_op op = {.kind = WRITER_ADOPT, .allocation = a};
    int r = writer_run(w, &op);
    if (ret_created)
        *ret_created = op.created;
    return r;
}

static int free_pod(struct writer *w, const char *pod, const char *uid,
                    const char *node, uint64_t number)
{
    struct writer_op op = {.kind = WRITER_FREE,
                           .namespace = "ns",
                           .pod = pod,
                           .uid = uid,
                           .node = node,
                           .number = number};
    return writer_run(w, &op);
}

static int tell(struct writer *w, enum writer_kind kind, const char *node,
                bool gone)
{
    struct writer_op op = {.kind = kind, .node = node, .gone = gone};
    return writer_run(w, &op);
}

/* How many jobs, or places. */
static size_t command(struct writer *w, enum writer_kind kind)
{
    struct writer_op op = {.kind = kind};
    cr_assert_eq(writer_run(w, &op), 0, "%s", op.error.text);
    return op.n_out;
}

/* What another replica decided for the pod, as its annotation says. */
static struct allocation *decided_elsewhere(const struct demand *d,
                                            const char *node, uint64_t number)
{
    struct writer *w = start();
    struct error err = {0};
    cr_assert_eq(sim_publish(w, node, 4, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, d, node, NULL, &err), 0, "%s", err.text);
    struct allocation *a = find(w, d->name);
    writer_stop(w);
    struct allocation *own = moved(a, node);
    allocation_unref(a);
    own->number = number;
    return own;
}

Test(writer_cluster, keeps_nothing_over_a_restart)
{
    struct writer *w = start();
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    struct writer_op list = {.kind = WRITER_LIST_SLICES};
    struct writer_op get = {.kind = WRITER_GET_SLICE, .name = "x"};
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_expect_eq(writer_version(w), 1);
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    cr_expect_eq(writer_version(w), 2);
    str_init(&list.out, 1000);
    str_init(&get.out, 1000);
    cr_expect_eq(writer_run(w, &list), 0);
    cr_expect_eq(list.n_out, 0);
    cr_expect_eq(writer_run(w, &get), -ENOENT);
    str_fini(&list.out);
    str_fini(&get.out);
    writer_stop(w);
    w = start();
    cr_expect_eq(status_of(w, "n1"), NODE_STATUSES);
    cr_expect_eq(writer_version(w), 0);
    writer_stop(w);
}

Test(writer_cluster, adopts_what_a_pod_has)
{
    struct writer *w = start();
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    cleanup_with(allocation) struct allocation *a = decided_elsewhere(&d, "n1",
                                                                      70);
    bool created = false;
    /* also of a node that is not known yet */
    cr_expect_eq(adopt(w, a, &created), 0);
    cr_expect(created);
    cr_expect_eq(writer_version(w), 70);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    uint64_t number = snapshot_number(w);
    cr_expect_eq(adopt(w, a, &created), 0);
    cr_expect_not(created, "nothing new");
    cr_expect_eq(snapshot_number(w), number, "nor a new snapshot");

    cr_expect_eq(sim_bind(w, &d, "n1", &created, NULL), 0);
    cr_expect_not(created, "a repeat");
    struct demand next = sim_pod("p2", ROLE_HOST, "", 0);
    cr_expect_eq(sim_bind(w, &next, "n1", NULL, NULL), 0);
    cleanup_with(allocation) struct allocation *b = find(w, "p2");
    cr_expect_gt(b->number, 70);
    cr_expect_neq(strcmp(b->cards[0], a->cards[0]), 0);
    cr_expect_eq(writer_conflicts(w), 0);
    writer_stop(w);
}

Test(writer_cluster, heals_to_what_the_pod_says)
{
    struct writer *w = start();
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n2", 4, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    cleanup_with(allocation) struct allocation *ours = find(w, "p1");
    cleanup_with(allocation) struct allocation *a = moved(ours, "n2");
    bool created = false;
    cr_expect_eq(adopt(w, a, &created), 0);
    cr_expect(created);
    cr_expect(has(w, "p1", "uid-p1", "n2"));
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    struct str why = STR_INIT(1000);
    cr_expect(sim_check(s, &why), "%s", str_text(&why));
    str_fini(&why);
    /* what was assumed on n1 is not what it has now */
    cr_expect_eq(free_pod(w, "p1", "uid-p1", "n1", ours->number), -ENOENT);
    cr_expect(has(w, "p1", "uid-p1", "n2"));
    writer_stop(w);
}

Test(writer_cluster, says_when_pods_have_the_same_cards)
{
    struct writer *w = start();
    struct demand d1 = sim_pod("p1", ROLE_HOST, "", 0), d2 = d1, d3;
    d1.exclusive = true;
    (void)snprintf(d2.name, sizeof d2.name, "p2");
    (void)snprintf(d2.uid, sizeof d2.uid, "uid-p2");
    d3 = d2;
    cleanup_with(allocation) struct allocation *a = decided_elsewhere(&d1, "n1",
                                                                      5);
    cleanup_with(allocation) struct allocation *b = decided_elsewhere(&d2, "n1",
                                                                      6);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_expect_eq(adopt(w, a, NULL), 0);
    cr_expect_eq(writer_conflicts(w), 0);
    cr_expect_eq(adopt(w, b, NULL), 0, "it is so, whatever we think");
    cr_expect_eq(writer_conflicts(w), 1);
    cr_expect(has(w, "p2", "uid-p2", "n1"));
    /* sharing is none */
    (void)snprintf(d3.name, sizeof d3.name, "p3");
    (void)snprintf(d3.uid, sizeof d3.uid, "uid-p3");
    d2 = sim_need(d2, 4, 1024);
    d3 = sim_need(d3, 4, 1024);
    cleanup_with(allocation) struct allocation *x = decided_elsewhere(&d2, "n2",
                                                                      7);
    cleanup_with(allocation) struct allocation *y = decided_elsewhere(&d3, "n2",
                                                                      8);
    cr_assert_eq(sim_publish(w, "n2", 4, "boot", 1), 0);
    cr_expect_eq(adopt(w, x, NULL), 0);
    cr_expect_eq(adopt(w, y, NULL), 0);
    cr_expect_eq(writer_conflicts(w), 1);
    writer_stop(w);
}

/* Pods may be heard of before the cards of their node are. */
Test(writer_cluster, says_so_when_it_learns_of_the_cards)
{
    struct writer *w = start();
    struct demand d1 = sim_pod("p1", ROLE_HOST, "", 0);
    struct demand d2 = sim_pod("p2", ROLE_HOST, "", 0);
    cleanup_with(allocation) struct allocation *a = decided_elsewhere(&d1, "n1",
                                                                      5);
    cleanup_with(allocation) struct allocation *b = decided_elsewhere(&d2, "n1",
                                                                      6);
    cr_expect_eq(adopt(w, a, NULL), 0);
    cr_expect_eq(adopt(w, b, NULL), 0);
    cr_expect_eq(writer_conflicts(w), 0, "nobody knows of the cards");
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_expect_gt(writer_conflicts(w), 0);
    writer_stop(w);
}

/* A pod that asks for no certain room has come to a card where others were;
 * it may still be heard of first. */
Test(writer_cluster, takes_the_order_from_numbers)
{
    struct writer *w = start();
    struct demand first = sim_need(sim_pod("p1", ROLE_XPU, "", 0), 4, 1024);
    struct demand last = sim_need(sim_pod("p3", ROLE_XPU, "", 0), 4, 1024);
    struct demand closed = sim_pod("p2", ROLE_XPU, "", 0);
    cleanup_with(allocation) struct allocation *a = decided_elsewhere(&first,
                                                                      "n1", 5);
    cleanup_with(allocation) struct allocation *b = decided_elsewhere(&closed,
                                                                      "n1", 6);
    cleanup_with(allocation) struct allocation *c = decided_elsewhere(&last,
                                                                      "n1", 7);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_expect_eq(adopt(w, b, NULL), 0);
    cr_expect_eq(adopt(w, a, NULL), 0);
    cr_expect_eq(writer_conflicts(w), 0, "it was there before");
    cr_expect_eq(adopt(w, c, NULL), 0);
    cr_expect_eq(writer_conflicts(w), 1, "it came to a closed card");
    writer_stop(w);
}

/* The last that the watch tells of a pod that is no more. */
Test(writer_cluster, does_not_adopt_for_a_pod_of_the_past)
{
    struct writer *w = start();
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    bool created = true;
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    cleanup_with(allocation) struct allocation *old = find(w, "p1");
    (void)snprintf(d.uid, sizeof d.uid, "another");
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    cr_expect_eq(adopt(w, old, &created), 0);
    cr_expect_not(created);
    cr_expect_eq(free_pod(w, "p1", "uid-p1", NULL, 0), -ENOENT);
    cr_expect(has(w, "p1", "another", "n1"));
    cr_expect_eq(free_pod(w, "p1", "another", NULL, 0), 0);
    cr_expect_null(find(w, "p1"));
    writer_stop(w);
}

Test(writer_cluster, refuses_a_held_place_of_an_annotation)
{
    struct writer *w = start();
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    cleanup_with(allocation) struct allocation *a = decided_elsewhere(&d, "n1",
                                                                      1);
    a->held = true;
    cr_expect_eq(adopt(w, a, NULL), -EINVAL);
    a->held = false;
    a->number = (UINT64_C(1) << 53) - 1;
    cr_expect_eq(adopt(w, a, NULL), 0);
    cr_expect_eq(writer_version(w), UINT64_C(1) << 52,
                 "later numbers can still be written and read");
    writer_stop(w);
}

static bool keep_p3(void *ctx, const char *uid)
{
    (void)ctx;
    return strcmp(uid, "uid-p3") == 0;
}

Test(writer_cluster, keeps_what_a_list_says)
{
    struct writer *w = start();
    const char *const uids[] = {"uid-p0", "uid-p1", "uid-x"};
    cr_assert_eq(sim_publish(w, "n1", 8, "boot", 1), 0);
    for (int i = 1; i <= 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%d", i);
        struct demand d = sim_pod(name, ROLE_HOST, "", 0);
        cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    }
    uint64_t before = writer_version(w);
    struct demand late = sim_pod("p4", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(w, &late, "n1", NULL, NULL), 0);
    struct writer_op op = {.kind = WRITER_KEEP,
                           .uids = uids,
                           .n_uids = ARRAY_LEN(uids),
                           .number = before,
                           .keep = keep_p3};
    cr_expect_eq(writer_run(w, &op), 0);
    cr_expect_eq(op.n_out, 1);
    cr_expect(has(w, "p1", "uid-p1", "n1"), "listed");
    cr_expect_null(find(w, "p2"), "gone");
    cr_expect(has(w, "p3", "uid-p3", "n1"), "its bind is on its way");
    cr_expect(has(w, "p4", "uid-p4", "n1"), "bound since");
    op.n_uids = 0;
    op.uids = NULL;
    op.keep = NULL;
    op.number = writer_version(w);
    cr_expect_eq(writer_run(w, &op), 0);
    cr_expect_eq(op.n_out, 3);
    writer_stop(w);
}

Test(writer_cluster, hears_heartbeats_without_a_snapshot)
{
    clock_set_fake(1000000);
    struct writer *w = start();
    cr_expect_eq(tell(w, WRITER_HEARD, "n1", false), -ENOENT);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    uint64_t number = snapshot_number(w);
    clock_set_fake(1010000);
    cr_expect_eq(tell(w, WRITER_HEARD, "n1", false), 0);
    cr_expect_eq(snapshot_number(w), number);
    clock_set_fake(1025000);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_READY);
    clock_set_fake(1025001);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_STALE);
    /* that the API server has the slice still is no sign of life */
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    writer_sweep(w);
    cr_expect_eq(status_of(w, "n1"), NODE_STALE);
    cr_expect_eq(tell(w, WRITER_HEARD, "n1", false), 0);
    AWAIT(status_of(w, "n1") == NODE_READY);
    cr_expect_eq(status_of(w, "n1"), NODE_READY, "without a sweep of ours");
    writer_stop(w);
    clock_set_fake(-1);
}

Test(writer_cluster, loses_nodes_and_has_them_back)
{
    clock_set_fake(1000000);
    struct writer *w = start();
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    struct error err = {0};
    cr_expect_eq(tell(w, WRITER_LOST, "n1", true), 0, "not known yet");
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_expect_eq(status_of(w, "n1"), NODE_LOST, "but remembered");
    cr_expect_eq(sim_bind(w, &d, "n1", NULL, &err), -EBUSY);
    cr_expect(strstr(err.text, "not ready or deleted"), "%s", err.text);
    uint64_t number = snapshot_number(w);
    cr_expect_eq(tell(w, WRITER_LOST, "n1", true), 0);
    writer_sweep(w);
    cr_expect_eq(snapshot_number(w), number);
    cr_expect_eq(tell(w, WRITER_LOST, "n1", false), 0);
    cr_expect_eq(status_of(w, "n1"), NODE_READY);
    cr_expect_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    cr_expect_eq(tell(w, WRITER_LOST, "n1", true), 0);
    cr_assert_eq(sim_publish(w, "n1", 2, "boot", 2), 0);
    cr_expect_eq(status_of(w, "n1"), NODE_LOST, "whatever it publishes");
    clock_set_fake(1100000);
    cr_expect_eq(tell(w, WRITER_LOST, "n1", false), 0);
    cr_expect_eq(status_of(w, "n1"), NODE_STALE, "back, and silent");
    writer_stop(w);
    clock_set_fake(-1);
}

static struct writer *with_nodes(unsigned n)
{
    struct writer *w = start();
    for (unsigned i = 0; i < n; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%u", i);
        cr_assert_eq(sim_publish(w, name, 4, "boot", 1), 0);
    }
    return w;
}

/* All of an index, by somebody who has only seen what the pods say. */
static void adopt_all(struct writer *from, struct writer *to)
{
    size_t n;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(from);
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++)
        if (!list[i]->held)
            cr_assert_eq(adopt(to, (struct allocation *)list[i], NULL), 0);
}

Test(writer_cluster, a_new_leader_holds_the_rest_of_a_job)
{
    clock_set_fake(1000000);
    struct writer *w = with_nodes(3), *next = with_nodes(3);
    struct demand first = sim_member("a-0", ROLE_HOST, "a", 0, 6);
    struct demand alone = sim_pod("c", ROLE_HOST, "", 0);
    struct error err = {0};
    cr_assert_eq(sim_bind(w, &first, "n1", NULL, &err), 0, "%s", err.text);
    cr_assert_eq(sim_bind(w, &alone, "n2", NULL, &err), 0, "%s", err.text);
    cr_expect_eq(n_held(w), 5, "%zu", n_held(w));

    adopt_all(w, next);
    cr_expect_eq(n_held(next), 0, "a follower holds nothing");
    cr_expect_eq(command(next, WRITER_LEAD), 1);
    cr_expect_eq(n_held(next), 5, "%zu", n_held(next));
    cr_expect_eq(command(next, WRITER_LEAD), 0, "once is enough");
    /* one pair after another finds its place */
    for (int rank = 1; rank < 6; rank++) {
        char name[8];
        (void)snprintf(name, sizeof name, "a-%d", rank);
        struct demand d = sim_member(name, ROLE_HOST, "a", rank, 6);
        (void)snprintf(name, sizeof name, "a/%d", rank);
        cleanup_with(allocation) struct allocation *hold = find(next, name);
        cr_assert(hold);
        cr_expect_eq(sim_bind(next, &d, hold->node, NULL, &err), 0, "%s",
                     err.text);
        cr_expect_eq(n_held(next), (size_t)(5 - rank), "%zu", n_held(next));
    }
    writer_stop(w);
    writer_stop(next);
    clock_set_fake(-1);
}

Test(writer_cluster, a_lease_of_a_new_leader_ends)
{
    clock_set_fake(1000000);
    struct writer *w = with_nodes(2), *next = with_nodes(2);
    struct demand first = sim_member("a-0", ROLE_HOST, "a", 0, 4);
    cr_assert_eq(sim_bind(w, &first, "n1", NULL, NULL), 0);
    adopt_all(w, next);
    cr_expect_eq(command(next, WRITER_LEAD), 1);
    cr_expect_eq(n_held(next), 3, "%zu", n_held(next));
    clock_set_fake(1000000 + WRITER_LEASE_MS - 1);
    writer_sweep(next);
    cr_expect_eq(n_held(next), 3, "%zu", n_held(next));
    clock_set_fake(1000000 + WRITER_LEASE_MS);
    writer_sweep(next);
    cr_expect_eq(n_held(next), 0, "%zu", n_held(next));
    writer_stop(w);
    writer_stop(next);
    clock_set_fake(-1);
}

Test(writer_cluster, who_follows_holds_nothing)
{
    struct writer *w = with_nodes(2);
    struct demand a = sim_member("a-0", ROLE_HOST, "a", 0, 3);
    struct demand b = sim_member("b-0", ROLE_HOST, "b", 0, 2);
    cr_assert_eq(sim_bind(w, &a, "n0", NULL, NULL), 0);
    cr_assert_eq(sim_bind(w, &b, "n1", NULL, NULL), 0);
    cr_expect_eq(n_held(w), 3, "%zu", n_held(w));
    cr_expect_eq(command(w, WRITER_FOLLOW), 3);
    cr_expect_eq(n_held(w), 0, "%zu", n_held(w));
    uint64_t number = snapshot_number(w);
    cr_expect_eq(command(w, WRITER_FOLLOW), 0);
    cr_expect_eq(snapshot_number(w), number);
    cr_expect(has(w, "a-0", "uid-a-0", "n0"));
    cr_expect_eq(command(w, WRITER_LEAD), 2);
    cr_expect_eq(n_held(w), 3, "%zu", n_held(w));
    writer_stop(w);
}

/* The rest of a job that has no room any more is not held, and others are. */
Test(writer_cluster, leads_around_jobs_that_have_no_room)
{
    struct writer *w = with_nodes(2), *next = start();
    struct demand a = sim_member("a-0", ROLE_HOST, "a", 0, 8);
    cr_assert_eq(sim_bind(w, &a, "n0", NULL, NULL), 0);
    adopt_all(w, next);
    cr_assert_eq(sim_publish(next, "n0", 4, "boot", 1), 0);
    struct demand b = sim_member("b-0", ROLE_HOST, "b", 0, 2);
    cleanup_with(allocation) struct allocation *own =
        decided_elsewhere(&b, "n9", 50);
    cr_assert_eq(adopt(next, own, NULL), 0);
    cr_expect_eq(command(next, WRITER_LEAD), 1);
    cr_expect_eq(n_held(next), 1, "%zu", n_held(next));
    writer_stop(w);
    writer_stop(next);
}

/* xPU pods came first: what is near them is kept for their host pods. */
Test(writer_cluster, a_new_leader_holds_places_of_host_pods)
{
    struct writer *w = with_nodes(2), *next = with_nodes(2);
    struct demand xpu = sim_member("a-x", ROLE_XPU, "a", 0, 2);
    struct demand host = sim_member("a-h", ROLE_HOST, "a", 0, 2);
    struct demand other = sim_pod("b", ROLE_HOST, "", 0);
    struct error err = {0};
    xpu.pair_cards = host.pair_cards = host.cards = 3;
    other.cards = other.pair_cards = 2;
    cr_assert_eq(sim_bind(w, &xpu, "n1", NULL, &err), 0, "%s", err.text);
    size_t before = n_held(w);
    cr_expect_eq(before, 2, "%zu", before);
    adopt_all(w, next);
    cr_expect_eq(command(next, WRITER_LEAD), 1);
    cr_expect_eq(n_held(next), before, "%zu", n_held(next));
    cr_expect_eq(sim_bind(next, &other, "n1", NULL, &err), -EBUSY);
    cr_expect_eq(sim_bind(next, &host, "n1", NULL, &err), 0, "%s", err.text);
    cr_expect_eq(n_held(next), 1, "%zu", n_held(next));
    writer_stop(w);
    writer_stop(next);
}

/* The API server was away, and so no node could be heard of. */
Test(writer_cluster, a_new_leader_holds_places_on_silent_nodes)
{
    clock_set_fake(1000000);
    struct writer *w = with_nodes(2), *next = with_nodes(2);
    struct demand xpu = sim_member("a-x", ROLE_XPU, "a", 0, 2);
    struct demand host = sim_member("a-h", ROLE_HOST, "a", 0, 2);
    struct demand other = sim_pod("b", ROLE_HOST, "", 0);
    struct error err = {0};
    xpu.pair_cards = host.pair_cards = host.cards = 3;
    other.cards = other.pair_cards = 2;
    cr_assert_eq(sim_bind(w, &xpu, "n1", NULL, &err), 0, "%s", err.text);
    adopt_all(w, next);
    clock_set_fake(1000000 + FRESH_MS + 1);
    writer_sweep(next);
    cr_assert_eq(status_of(next, "n0"), NODE_STALE);
    cr_assert_eq(status_of(next, "n1"), NODE_STALE);
    cr_expect_eq(command(next, WRITER_LEAD), 1);
    cr_expect_eq(n_held(next), 2, "%zu", n_held(next));
    cr_expect_eq(status_of(next, "n0"), NODE_STALE);
    cr_expect_eq(status_of(next, "n1"), NODE_STALE);
    cr_expect_eq(sim_bind(next, &host, "n1", NULL, &err), -EBUSY,
                 "it is silent");
    cr_assert_eq(tell(next, WRITER_HEARD, "n1", false), 0);
    writer_sweep(next);
    cr_assert_eq(status_of(next, "n1"), NODE_READY);
    cr_expect_eq(sim_bind(next, &other, "n1", NULL, &err), -EBUSY);
    cr_expect_eq(sim_bind(next, &host, "n1", NULL, &err), 0, "%s", err.text);
    writer_stop(w);
    writer_stop(next);
    clock_set_fake(-1);
}

/* The bind of a host pod fails beside its bound xPU pod: nobody else gets what
 * is near that, and it has the same when it comes again. */
static void expect_held_again(int32_t size)
{
    size_t rest = (size_t)size - 1; /* of the other pairs */
    struct writer *w = with_nodes(2);
    struct demand xpu = sim_member("a-x", ROLE_XPU, "a", 0, size);
    struct demand host = sim_member("a-h", ROLE_HOST, "a", 0, size);
    struct demand other = sim_pod("b", ROLE_HOST, "", 0);
    struct error err = {0};
    xpu.pair_cards = host.pair_cards = host.cards = 3;
    other.cards = other.pair_cards = 2;
    cr_assert_eq(sim_bind(w, &xpu, "n1", NULL, &err), 0, "%s", err.text);
    cr_assert_eq(sim_bind(w, &host, "n1", NULL, &err), 0, "%s", err.text);
    cr_expect_eq(n_held(w), rest, "%zu", n_held(w));
    cleanup_with(allocation) struct allocation *was = find(w, "a-h");
    cr_assert_eq(free_pod(w, "a-h", "uid-a-h", "n1", was->number), 0);
    cr_expect_null(find(w, "a-h"));
    cr_expect_eq(n_held(w), rest + 1, "%zu", n_held(w));
    cr_expect_eq(sim_bind(w, &other, "n1", NULL, &err), -EBUSY);
    cr_assert_eq(sim_bind(w, &host, "n1", NULL, &err), 0, "%s", err.text);
    cleanup_with(allocation) struct allocation *now = find(w, "a-h");
    cr_assert_eq(now->n_cards, was->n_cards);
    for (size_t i = 0; i < now->n_cards; i++)
        cr_expect_str_eq(now->cards[i], was->cards[i]);
    cr_expect_eq(n_held(w), rest, "%zu", n_held(w));
    /* a pod that is gone has no place any more */
    cr_assert_eq(free_pod(w, "a-h", "uid-a-h", NULL, 0), 0);
    cr_expect_eq(n_held(w), rest, "%zu", n_held(w));
    /* and nothing is held for a job of which nobody is bound */
    cr_assert_eq(sim_bind(w, &host, "n1", NULL, &err), 0, "%s", err.text);
    cr_assert_eq(free_pod(w, "a-x", "uid-a-x", NULL, 0), 0);
    cr_assert_eq(free_pod(w, "a-h", "uid-a-h", "n1", 0), 0);
    cr_expect_eq(n_held(w), 0, "%zu", n_held(w));
    cr_expect_eq(sim_bind(w, &other, "n1", NULL, &err), 0, "%s", err.text);
    writer_stop(w);
}

Test(writer_cluster, holds_the_place_of_a_bind_that_failed)
{
    expect_held_again(1);
    expect_held_again(2);
}

/* --- claims ---------------------------------------------------------------- */

static int tell_claim(struct writer *w, const char *node, const char *card,
                      bool gone)
{
    struct claim_card has = {.whole = true};
    cleanup_with(claim_use) struct claim_use *c = claim_use_create("ns", "c",
                                                                   node);
    (void)snprintf(has.id, sizeof has.id, "%s", card);
    claim_use_add_card(c, &has);
    claim_use_add_pod(c, "uid-p");
    struct writer_op op = {.kind = WRITER_CLAIM, .claim = c, .gone = gone};
    return writer_run(w, &op);
}

static unsigned closed_cards(struct writer *w, const char *node)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t i = snapshot_find(s, node, strlen(node));
    cr_assert_geq(i, 0);
    return snapshot_node(s, (size_t)i)->state.closed;
}

Test(writer_cluster, counts_a_claim_where_it_is_now)
{
    struct writer *w = start();
    cr_assert_eq(tell_claim(w, "n1", "card-0000-12-00", false), 0);
    cr_assert_eq(sim_publish(w, "n1", 2, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n2", 2, "boot", 1), 0);
    cr_expect_eq(closed_cards(w, "n1"), 1, "it came before its node");
    uint64_t number = snapshot_number(w);
    cr_assert_eq(tell_claim(w, "n1", "card-0000-12-00", false), 0);
    cr_expect_eq(snapshot_number(w), number, "told again, nothing changes");
    cr_assert_eq(tell_claim(w, "n2", "card-0000-12-00", false), 0);
    cr_expect_eq(closed_cards(w, "n1"), 0);
    cr_expect_eq(closed_cards(w, "n2"), 1);
    cr_assert_eq(tell_claim(w, "n1", "", true), 0);
    cr_expect_eq(closed_cards(w, "n2"), 0, "wherever it was");
    number = snapshot_number(w);
    cr_assert_eq(tell_claim(w, "n1", "", true), 0);
    cr_expect_eq(snapshot_number(w), number);
    writer_stop(w);
}

Test(writer_cluster, binds_nobody_to_what_a_claim_has)
{
    struct writer *w = start();
    struct error err = {0};
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 1000);
    cr_assert_eq(sim_publish(w, "n1", 1, "boot", 1), 0);
    cr_assert_eq(tell_claim(w, "n1", "card-0000-12-00", false), 0);
    cr_expect_eq(sim_bind(w, &x, "n1", NULL, &err), -EBUSY);
    cr_assert_eq(tell_claim(w, "n1", "", true), 0);
    cr_expect_eq(sim_bind(w, &x, "n1", NULL, &err), 0, "%s", err.text);
    writer_stop(w);
}
