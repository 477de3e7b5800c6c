/* Counts that follow are those of who counts anew. */
#include "extender/gauge/fleet_tally.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/judge/alignment.h"
#include "extender/state/scope.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/simfabric.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

enum { NODES = 40, JOBS = 60, ROUNDS = 1000, CARDS = 2 };

static const char fabrics[2][160] = {
    "SwitchName=l0 Nodes=node[000-019]\nSwitchName=l1 Nodes=node[020-039]\n"
    "SwitchName=s Switches=l[0-1]\n",
    "SwitchName=l0 Nodes=node[000-009]\n"};

static void node_name(char name[16], uint64_t *random)
{
    (void)snprintf(name, 16, "node%03u", sim_random(random) % NODES);
}

static void publish(struct draft *d, const char *name, unsigned n_cards)
{
    cleanup_with(topo) struct topo *topo = simhost_topo(name, n_cards);
    simfleet_put(d, topo);
}

static const char *space_of(unsigned job)
{
    return job % 2 ? "ns" : "other";
}

/* One of a pair, the other of which may be on another node. */
static void allocate(struct draft *d, const char *name, uint64_t *random)
{
    const struct node *node = draft_node(d, name);
    unsigned job = sim_random(random) % JOBS;
    bool xpu = sim_random(random) % 2;
    char pod[16], of[16];
    (void)snprintf(pod, sizeof pod, "%c%u", xpu ? 'x' : 'h', job);
    (void)snprintf(of, sizeof of, "job%u", job);
    struct demand p = sim_pod(pod, xpu ? ROLE_XPU : ROLE_HOST, of, 0);
    (void)snprintf(p.namespace, sizeof p.namespace, "%s", space_of(job));
    struct allocation *a = allocation_create(&p, name);
    a->relation = (enum relation)(sim_random(random) % RELATION_COUNT);
    a->held = sim_random(random) % 6 == 0;
    if (node && node->topo && sim_random(random) % 4) {
        size_t first, n = topo_count(node->topo, DEVICE_CARD, &first);
        size_t card = first + (n ? sim_random(random) % n : 0);
        a->n_cards = n > 0;
        a->cards = xcalloc(1, sizeof *a->cards);
        if (n)
            (void)snprintf(a->cards[0], sizeof a->cards[0], "%s",
                           topo_device(node->topo, card)->id);
    }
    draft_allocate(d, a);
}

static void set_fabric(struct draft *d, uint64_t *random)
{
    struct fabric *f = simfabric_read(fabrics[sim_random(random) % 2]);
    draft_set_fabric(d, f);
    fabric_unref(f);
}

static void change(struct draft *d, uint64_t *random)
{
    char name[16], pod[16];
    node_name(name, random);
    unsigned job = sim_random(random) % JOBS;
    (void)snprintf(pod, sizeof pod, "%c%u", sim_random(random) % 2 ? 'x' : 'h',
                   job);
    switch (sim_random(random) % 12) {
    case 0:
        draft_remove_node(d, name);
        return;
    case 1:
    case 2:
        publish(d, name, 1 + sim_random(random) % CARDS);
        return;
    case 3:
        draft_set_status(
            d, name, (enum node_status)(sim_random(random) % NODE_STATUSES));
        return;
    case 4:
    case 5:
        (void)draft_release(d, space_of(job), pod);
        return;
    case 6:
        if (sim_random(random) % 20 == 0)
            set_fabric(d, random);
        return;
    default:
        allocate(d, name, random);
    }
}

static void tell(struct achieved_book *book, uint64_t *random)
{
    char name[16];
    unsigned job = sim_random(random) % JOBS;
    unsigned card = sim_random(random) % 4;
    struct achieved_report *r = NULL;
    struct error err = {0};
    node_name(name, random);
    if (sim_random(random) % 10 == 0) {
        achieved_book_drop(book, name);
        return;
    }
    cleanup_free char *json = xasprintf(
        "{\"node\":\"%s\",\"pods\":[{\"namespace\":\"%s\",\"name\":\"h%u\","
        "\"gpus\":[],\"cpus\":\"0-3\",\"numa\":[%u]},{\"namespace\":\"%s\","
        "\"name\":\"x%u\",\"cards\":[\"0000:%02x:00.0\"]}]}",
        name, space_of(job), job, sim_random(random) % 2, space_of(job), job,
        16 + card);
    cr_assert_eq(achieved_report_parse(json, strlen(json), &r, &err), 0, "%s",
                 err.text);
    cr_assert_eq(achieved_book_put(book, r, &err), 0);
    achieved_report_unref(r);
}

static void expect_same(const struct fleet_counts *a,
                        const struct fleet_counts *b)
{
    cr_assert_arr_eq(a->nodes, b->nodes, sizeof a->nodes);
    cr_assert_arr_eq(a->cards, b->cards, sizeof a->cards);
    cr_assert_eq(a->gpus, b->gpus);
    cr_assert_eq(a->free_gpus, b->free_gpus);
    cr_assert_eq(a->ill, b->ill);
    cr_assert_eq(a->unaligned, b->unaligned);
    cr_assert_eq(a->claims, b->claims);
    cr_assert_arr_eq(a->relations, b->relations, sizeof a->relations);
    cr_assert_arr_eq(a->achieved, b->achieved, sizeof a->achieved);
    cr_assert_arr_eq(a->alignment, b->alignment, sizeof a->alignment);
    cr_assert_eq(a->n_leaves, b->n_leaves);
    for (size_t i = 0; i <= a->n_leaves; i++) {
        cr_assert_eq(a->leaves[i].nodes, b->leaves[i].nodes);
        cr_assert_eq(a->leaves[i].ill, b->leaves[i].ill);
        cr_assert_eq(a->leaves[i].cards, b->leaves[i].cards);
        cr_assert_eq(a->leaves[i].idle, b->leaves[i].idle);
        cr_assert_eq(a->leaves[i].cores, b->leaves[i].cores);
    }
}

/* As whoever counts anew. */
static void expect_counts(const struct fleet_counts *c, struct snapshot *s,
                          struct achieved_book *book)
{
    struct fleet_tally *t = fleet_tally_create();
    struct fleet_counts anew;
    size_t n = 0;
    fleet_tally_get(t, s, book, &anew);
    expect_same(c, &anew);
    for (size_t i = 0; i < NODE_STATUSES; i++)
        n += anew.nodes[i];
    cr_assert_eq(n, s->n_nodes);
    fleet_counts_fini(&anew);
    fleet_tally_destroy(t);
}

/* Of a node by itself. */
static bool is_unaligned(const struct snapshot *s, const struct node *node,
                         const struct achieved_report *report)
{
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        struct achieved x = {.state = ACHIEVED_UNKNOWN};
        if (achieved_counts(a) && !alignment_is_good(node, a, a->demand.pair))
            return true;
        if (report && !a->held)
            achieved_judge(s, a, report, &x, NULL);
        if (x.state == ACHIEVED_LOST)
            return true;
    }
    return false;
}

/* Who sees one namespace has the counts of all, but for what the pods of others
 * have lost.  True: there is such. */
static bool expect_seen(struct fleet_tally *t, struct snapshot *s,
                        struct achieved_book *book, struct scope *scope)
{
    cleanup_with(snapshot) struct snapshot *seen = snapshot_scoped(s, scope,
                                                                   NULL);
    struct fleet_counts c, all;
    size_t unaligned = 0;
    fleet_tally_get(t, seen, book, &c);
    fleet_tally_get(t, s, book, &all);
    for (size_t i = 0; i < seen->n_nodes; i++) {
        const struct node *node = snapshot_node(seen, i);
        cleanup_with(achieved_report) struct achieved_report *report =
            achieved_book_get(book, node->name);
        unaligned += is_unaligned(seen, node, report);
    }
    cr_assert_eq(c.unaligned, unaligned);
    bool less = c.unaligned < all.unaligned;
    c.unaligned = all.unaligned;
    expect_same(&c, &all);
    fleet_counts_fini(&c);
    fleet_counts_fini(&all);
    return less;
}

Test(fleet_tally, follows_nodes_pods_and_reports)
{
    uint64_t random = 11;
    size_t seen[ACHIEVED_STATES] = {0}, unseen = 0;
    struct scope *scope = scope_create((const char *const[]){"other"}, 1);
    struct fleet_tally *t = fleet_tally_create();
    struct achieved_book *book = achieved_book_create();
    struct snapshot *s = simfleet_create(NODES, CARDS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct draft *d = draft_create(s);
        struct fleet_counts c;
        for (unsigned k = sim_random(&random) % 8; k > 0; k--)
            change(d, &random);
        snapshot_unref(s);
        s = draft_commit(d);
        for (unsigned k = sim_random(&random) % 4; i > 20 && k > 0; k--)
            tell(book, &random);
        fleet_tally_get(t, s, book, &c);
        expect_counts(&c, s, book);
        unseen += expect_seen(t, s, book, scope);
        for (size_t k = 0; k < ACHIEVED_STATES; k++)
            seen[k] += c.achieved[k];
        fleet_counts_fini(&c);
    }
    cr_expect(seen[ACHIEVED_KEPT] > 0 && seen[ACHIEVED_LOST] > 0);
    cr_expect(unseen > 0);
    scope_unref(scope);
    snapshot_unref(s);
    achieved_book_destroy(book);
    fleet_tally_destroy(t);
}

Test(fleet_tally, is_kept_up_to_date_when_nobody_asks)
{
    struct fleet_tally *t = fleet_tally_create();
    struct achieved_book *book = achieved_book_create();
    struct snapshot *s = simfleet_create(3, CARDS);
    struct draft *d = draft_create(s);
    struct fleet_counts c;
    publish(d, "node003", 1);
    struct snapshot *next = draft_commit(d);
    clock_set_fake(1000);
    fleet_tally_keep(t, s, book);
    cr_expect_eq(atomic_load(&s->refs), 2, "at once");
    fleet_tally_keep(t, next, book);
    cr_expect_eq(atomic_load(&s->refs), 2, "not yet");
    clock_set_fake(1000 + FLEET_TALLY_KEEP_MS);
    fleet_tally_keep(t, next, book);
    cr_expect_eq(atomic_load(&s->refs), 1);
    cr_expect_eq(atomic_load(&next->refs), 2);
    fleet_tally_get(t, next, book, &c);
    expect_counts(&c, next, book);
    fleet_counts_fini(&c);
    clock_set_fake(-1);
    snapshot_unref(s);
    snapshot_unref(next);
    achieved_book_destroy(book);
    fleet_tally_destroy(t);
}
