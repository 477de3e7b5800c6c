#include "extender/state/draft.h"
#include "extender/state/snapshot.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/state/usage.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

static void put(struct draft *d, const char *name, unsigned n_cards)
{
    cleanup_with(topo) struct topo *topo = simhost_topo(name, n_cards);
    simfleet_put(d, topo);
}

static struct draft *draft_of(struct snapshot *s)
{
    struct draft *d = draft_create(s);
    snapshot_unref(s);
    return d;
}

/* n nodes with names in no order */
static struct snapshot *fleet(unsigned n)
{
    struct draft *d = draft_of(snapshot_create_empty());
    for (unsigned i = 0; i < n; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "node%u.example", i * 7919 % n);
        put(d, name, 2);
    }
    return draft_commit(d);
}

static struct allocation *on_card(const char *pod, const struct node *n)
{
    struct demand d = sim_need(sim_pod(pod, ROLE_HOST, "", 0), 4, 1024);
    struct allocation *a = allocation_create(&d, n->name);
    a->cards = xcalloc(1, sizeof *a->cards);
    a->n_cards = 1;
    (void)snprintf(a->cards[0], sizeof *a->cards, "%s",
                   topo_device(n->topo, 0)->id);
    return a;
}

static const struct node *find(const struct snapshot *s, const char *name)
{
    int32_t i = snapshot_find(s, name, strlen(name));
    return i == NODE_NONE ? NULL : snapshot_node(s, (size_t)i);
}

Test(snapshot, orders_and_finds_its_nodes)
{
    enum { N = 1000 };
    struct snapshot *s = fleet(N);
    cleanup_free struct jtext *names = xcalloc(N, sizeof *names);
    cleanup_free int32_t *found = xcalloc(N, sizeof *found);
    cr_assert_eq(s->n_nodes, N);
    for (size_t i = 0; i < N; i++) {
        const char *name = snapshot_node(s, i)->name;
        cr_assert(i == 0 || strcmp(snapshot_node(s, i - 1)->name, name) < 0);
        cr_assert_eq(snapshot_find(s, name, strlen(name)), (int32_t)i);
        names[i] = (struct jtext){name, strlen(name), false};
    }
    snapshot_find_many(s, names, N, found);
    for (int32_t i = 0; i < N; i++)
        cr_assert_eq(found[i], i);
    snapshot_unref(s);
}

/* In whatever order names are asked for, each is found as it is by itself. */
Test(snapshot, finds_names_in_any_order)
{
    enum { N = 1000, ASKED = 400, ROUNDS = 200 };
    struct snapshot *s = fleet(N);
    uint64_t random = 7;
    struct jtext names[ASKED];
    int32_t found[ASKED];
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = sim_random(&random) % N;
        for (size_t i = 0; i < ASKED; i++, at = (at + 1) % N) {
            const char *name = snapshot_node(s, at)->name;
            names[i] = (struct jtext){name, strlen(name), false};
            switch (sim_random(&random) % (unsigned)(round % 40 + 3)) {
            case 0: /* go on elsewhere, perhaps behind the end */
                at = sim_random(&random) % N;
                break;
            case 1: /* unknown */
                names[i].size--;
                break;
            case 2: /* once more */
                at += N - 1;
            }
        }
        snapshot_find_many(s, names, ASKED, found);
        for (size_t i = 0; i < ASKED; i++)
            cr_assert_eq(found[i],
                         snapshot_find(s, names[i].data, names[i].size));
    }
    snapshot_unref(s);
}

Test(snapshot, does_not_find_what_only_looks_alike)
{
    static const struct jtext names[] = {
        {"node1.example", 13, false},       {"node1.exampl", 12, false},
        {"node1.example2", 14, false},      {"", 0, false},
        {"node1.example\0node", 18, false}, {"NODE1.example", 13, false},
        {"node\\u0031.example", 18, true},  {"\\u0000", 6, true},
    };
    int32_t found[ARRAY_LEN(names)];
    struct snapshot *s = fleet(3);
    cleanup_free char *huge = xcalloc(1, 100000);
    snapshot_find_many(s, names, ARRAY_LEN(names), found);
    cr_expect_eq(found[0], 1);
    for (size_t i = 1; i < ARRAY_LEN(names); i++)
        cr_expect_eq(found[i], i == 6 ? 1 : NODE_NONE, "%zu", i);
    memset(huge, 'a', 99999);
    struct jtext long_name = {huge, 99999, true};
    snapshot_find_many(s, &long_name, 1, found);
    cr_expect_eq(found[0], NODE_NONE);
    snapshot_unref(s);
}

Test(snapshot, gives_equal_hosts_one_state)
{
    struct snapshot *s = fleet(600);
    for (size_t i = 0; i < 600; i++)
        cr_assert_eq(snapshot_state(s, i), snapshot_state(s, 0));
    cr_expect_neq(snapshot_state(s, 0), STATE_UNUSABLE);
    cr_expect_eq(state_intern_count(s->states), 2, "that one, and unusable");
    snapshot_unref(s);
}

Test(snapshot, stays_as_it_was_when_drafts_change)
{
    struct snapshot *before = fleet(700);
    uint64_t number = before->number;
    struct draft *d = draft_create(before);
    const struct node *n = snapshot_node(before, 300);
    draft_allocate(d, on_card("p", n));
    draft_set_status(d, snapshot_node(before, 10)->name, NODE_STALE);
    draft_remove_node(d, snapshot_node(before, 20)->name);
    put(d, "zz", 4);
    struct snapshot *after = draft_commit(d);

    cr_expect_eq(before->n_nodes, 700);
    cr_expect_eq(snapshot_node(before, 300)->n_allocations, 0);
    cr_expect_eq(alloc_index_size(before->allocations), 0);
    cr_expect_neq(snapshot_state(before, 10), STATE_UNUSABLE);
    cr_expect_eq(before->number, number);

    cr_expect_eq(after->n_nodes, 700);
    cr_expect_eq(after->number, number + 1);
    cr_expect_null(find(after, snapshot_node(before, 20)->name));
    cr_expect_eq(find(after, n->name)->n_allocations, 1);
    cr_expect_eq(find(after, n->name)->state.free_cores[0], 12);
    cr_expect_eq(find(after, "zz")->shape->n_cards, 4);
    int32_t stale = snapshot_find(after, snapshot_node(before, 10)->name,
                                  strlen(snapshot_node(before, 10)->name));
    cr_expect_eq(snapshot_state(after, (size_t)stale), STATE_UNUSABLE);
    snapshot_unref(before);
    snapshot_unref(after);
}

Test(snapshot, shares_the_pages_that_did_not_change)
{
    struct snapshot *before = fleet(1000);
    struct draft *d = draft_create(before);
    draft_allocate(d, on_card("p", snapshot_node(before, 300)));
    struct snapshot *after = draft_commit(d);
    for (size_t i = 0; i < before->n_pages; i++)
        cr_expect_eq(before->pages[i] == after->pages[i], i != 1, "%zu", i);
    cr_expect_eq(before->roster, after->roster);
    snapshot_unref(before);
    snapshot_unref(after);
}

enum { COMERS = 900, COMINGS = 120, AT_ONCE = 40 };

/* Of each name the cards that its node has, 0: it is not there. */
static void come_and_go(struct draft *d, unsigned cards[COMERS], uint64_t *seed)
{
    unsigned n = sim_random(seed) % AT_ONCE, gone = sim_random(seed) % AT_ONCE;
    for (unsigned i = 0; i < n + gone; i++) {
        char name[32];
        unsigned at = sim_random(seed) % COMERS;
        (void)snprintf(name, sizeof name, "n%0*u", 1 + (int)at % 5, at);
        cards[at] = i < n ? 1 + sim_random(seed) % 3 : 0;
        if (cards[at])
            put(d, name, cards[at]);
        else
            draft_remove_node(d, name);
    }
}

static void expect_those(const struct snapshot *s, const unsigned cards[COMERS])
{
    size_t there = 0;
    for (size_t i = 0; i < COMERS; i++)
        there += cards[i] > 0;
    cr_assert_eq(s->n_nodes, there);
    cr_assert_eq(s->n_pages, (there + SNAPSHOT_PAGE - 1) / SNAPSHOT_PAGE);
    for (size_t i = 0; i < there; i++) {
        const struct node *n = snapshot_node(s, i);
        const char *name = n->name;
        cr_assert(i == 0 || strcmp(snapshot_node(s, i - 1)->name, name) < 0);
        cr_assert_eq(n->shape->n_cards, cards[strtoul(name + 1, NULL, 10)]);
        cr_assert_eq(snapshot_state(s, i),
                     state_intern_intern(s->states, &n->state));
        cr_assert_eq(snapshot_leaf(s, i), FABRIC_NONE);
        cr_assert_eq(snapshot_find(s, name, strlen(name)), (int32_t)i);
    }
}

struct diff {
    const struct snapshot *before, *after;
    const char *last; /* name */
    size_t n;
};

static const struct node *node_at(const struct snapshot *s, int32_t index)
{
    return index == NODE_NONE ? NULL : snapshot_node(s, (size_t)index);
}

static void expect_change(void *ctx, int32_t before, int32_t after)
{
    struct diff *d = ctx;
    const struct node *old = node_at(d->before, before);
    const struct node *new = node_at(d->after, after);
    cr_assert(old != new && (old || new));
    const char *name = old ? old->name : new->name;
    cr_assert(!d->last || strcmp(d->last, name) < 0);
    cr_assert_eq(old, find(d->before, name));
    cr_assert_eq(new, find(d->after, name));
    d->last = name;
    d->n++;
}

/* Each of those that are different is visited, once, in the order of names. */
static void expect_diff(const struct snapshot *before,
                        const struct snapshot *after)
{
    struct diff d = {.before = before, .after = after};
    size_t n = 0;
    snapshot_diff_nodes(before, after, expect_change, &d);
    for (size_t i = 0; i < before->n_nodes; i++)
        n += snapshot_node(before, i) !=
             find(after, snapshot_node(before, i)->name);
    for (size_t i = 0; i < after->n_nodes; i++)
        n += !find(before, snapshot_node(after, i)->name);
    cr_assert_eq(d.n, n);
}

/* Another draft of the snapshot, which is looked at and dropped. */
static void try_another(struct snapshot *s, const unsigned cards[COMERS],
                        uint64_t *seed)
{
    unsigned own[COMERS];
    struct draft *d = draft_create(s);
    memcpy(own, cards, sizeof own);
    come_and_go(d, own, seed);
    struct snapshot *seen = draft_peek(d);
    draft_destroy(d);
    expect_those(seen, own);
    expect_diff(s, seen);
    snapshot_unref(seen);
}

Test(snapshot, follows_nodes_that_come_and_go)
{
    unsigned now[COMERS] = {0}, before[COMERS];
    uint64_t seed = 11;
    struct snapshot *s = snapshot_create_empty();
    struct snapshot *earlier = snapshot_ref(s); /* by up to ten */
    for (int i = 0; i < COMINGS; i++) {
        struct draft *d = draft_create(s);
        memcpy(before, now, sizeof before);
        if (i % 4 == 1)
            try_another(s, now, &seed);
        come_and_go(d, now, &seed);
        if (i % 4 == 2)
            try_another(s, before, &seed);
        if (sim_random(&seed) % 3 == 0) { /* and once more */
            snapshot_unref(draft_peek(d));
            come_and_go(d, now, &seed);
        }
        struct snapshot *next = draft_commit(d);
        if (i % 4 == 3)
            try_another(s, before, &seed);
        expect_those(next, now);
        expect_those(s, before);
        expect_diff(s, next);
        expect_diff(earlier, next);
        expect_diff(next, earlier);
        if (i % 10 == 0) {
            snapshot_unref(earlier);
            earlier = snapshot_ref(next);
        }
        snapshot_unref(s);
        s = next;
    }
    snapshot_unref(earlier);
    snapshot_unref(s);
}

Test(snapshot, shares_the_pages_before_the_first_node_that_comes)
{
    struct snapshot *before = fleet(1000);
    struct draft *d = draft_create(before);
    char name[64];
    (void)snprintf(name, sizeof name, "%sx", snapshot_node(before, 600)->name);
    put(d, name, 2);
    struct snapshot *after = draft_commit(d);
    cr_expect_eq(snapshot_find(after, name, strlen(name)), 601);
    for (size_t i = 0; i < before->n_pages; i++)
        cr_expect_eq(before->pages[i] == after->pages[i], i < 2, "%zu", i);
    snapshot_unref(before);
    snapshot_unref(after);
}

Test(snapshot, lets_a_draft_be_peeked_at_and_go_on)
{
    struct draft *d = draft_of(fleet(3));
    struct snapshot *first = draft_peek(d);
    draft_allocate(d, on_card("p", draft_node(d, "node1.example")));
    struct snapshot *second = draft_peek(d);
    put(d, "later", 1);
    cr_expect(draft_release(d, "ns", "p"));
    cr_expect_not(draft_release(d, "ns", "p"));
    struct snapshot *last = draft_commit(d);
    cr_expect_eq(find(first, "node1.example")->n_allocations, 0);
    cr_expect_eq(find(second, "node1.example")->n_allocations, 1);
    cr_expect_null(find(second, "later"));
    cr_expect_eq(find(last, "node1.example")->n_allocations, 0);
    cr_expect(find(last, "later"));
    snapshot_unref(first);
    snapshot_unref(second);
    snapshot_unref(last);
}

Test(snapshot, keeps_allocations_of_a_node_that_goes_and_comes)
{
    struct draft *d = draft_of(fleet(2));
    draft_allocate(d, on_card("p", draft_node(d, "node1.example")));
    draft_remove_node(d, "node1.example");
    struct snapshot *gone = draft_peek(d);
    cr_expect_null(find(gone, "node1.example"));
    cr_expect(alloc_index_find(gone->allocations, "ns", "p"));
    put(d, "node1.example", 2);
    struct snapshot *back = draft_commit(d);
    cr_expect_eq(find(back, "node1.example")->n_allocations, 1);
    cr_expect_eq(find(back, "node1.example")->state.free_cores[0], 12);
    snapshot_unref(gone);
    snapshot_unref(back);
}

Test(snapshot, keeps_the_last_topology_of_an_incomplete_node)
{
    struct draft *d = draft_of(fleet(1));
    draft_put_node(d, &(struct node_update){.name = "node0.example",
                                            .status = NODE_INCOMPLETE,
                                            .epoch = {"boot", 2},
                                            .hash = "",
                                            .n_slices = 1,
                                            .pool_count = 2});
    struct snapshot *s = draft_commit(d);
    cr_expect(snapshot_node(s, 0)->topo);
    cr_expect_eq(snapshot_node(s, 0)->epoch.generation, 2);
    cr_expect_eq(snapshot_state(s, 0), STATE_UNUSABLE);
    snapshot_unref(s);
}

Test(snapshot, moves_an_allocation_that_is_made_again_elsewhere)
{
    struct draft *d = draft_of(fleet(2));
    draft_allocate(d, on_card("p", draft_node(d, "node0.example")));
    draft_allocate(d, on_card("p", draft_node(d, "node1.example")));
    cr_expect_str_eq(draft_find_allocation(d, "ns", "p")->node,
                     "node1.example");
    struct snapshot *s = draft_commit(d);
    cr_expect_eq(find(s, "node0.example")->n_allocations, 0);
    cr_expect_eq(find(s, "node1.example")->n_allocations, 1);
    snapshot_unref(s);
}

/* When most states are of the past, a commit starts with fresh ones, and
 * nothing else changes. */
Test(snapshot, leaves_outgrown_states_behind)
{
    struct snapshot *s = fleet(300);
    struct state_intern *old = state_intern_ref(s->states);
    struct node_state state = snapshot_node(s, 0)->state;
    for (uint32_t i = 0; i < 70000; i++) {
        state.free_memory_mib[0] = 100000 + i;
        cr_assert_neq(state_intern_intern(old, &state), STATE_UNUSABLE);
    }
    struct draft *d = draft_create(s);
    draft_allocate(d, on_card("p", snapshot_node(s, 7)));
    struct snapshot *next = draft_commit(d);
    cr_expect_neq(next->states, old);
    cr_expect_eq(state_intern_count(next->states), 3);
    cr_expect_eq(snapshot_node(next, 7)->n_allocations, 1);
    for (size_t i = 0; i < 300; i++) {
        const struct node *n = snapshot_node(next, i);
        cr_assert_eq(n->shape, n->state.shape);
        cr_assert_eq(
            memcmp(state_intern_get(next->states, snapshot_state(next, i)),
                   &n->state, sizeof n->state),
            0);
    }
    state_intern_unref(old);
    snapshot_unref(s);
    snapshot_unref(next);
}

/* --- costs ------------------------------------------------------------- */

Test(states, remember_what_decide_says)
{
    struct snapshot *s = fleet(2);
    struct demand d = sim_need(sim_pod("p", ROLE_HOST, "", 0), 4, 1024);
    struct costs *c = state_intern_costs(s->states, &d);
    cr_assert(c);
    cr_expect_eq(state_intern_costs(s->states, &d), c);
    uint32_t id = snapshot_state(s, 0);
    cr_expect_eq(costs_get(c, id),
                 decide_cost(state_intern_get(s->states, id), &d));
    cr_expect_eq(costs_get(c, id), costs_get(c, id));
    cr_expect_eq(costs_get(c, STATE_UNUSABLE), COST_NO_FIT);
    d.card_cores = 5;
    cr_expect_neq(state_intern_costs(s->states, &d), c);
    snapshot_unref(s);
}

/* How many of so many classes are remembered, with what they cost on node 0. */
static unsigned remember(struct snapshot *s, uint32_t classes, bool costs)
{
    struct demand d = sim_pod("p", ROLE_HOST, "", 0);
    unsigned n = 0;
    for (uint32_t i = 1; i <= classes; i++) {
        d = sim_need(d, i, 1);
        struct costs *c = state_intern_costs(s->states, &d);
        n += c != NULL;
        if (c && costs)
            (void)costs_get(c, snapshot_state(s, 0));
    }
    return n;
}

Test(states, have_room_for_more_classes_as_long_as_they_take_little_memory)
{
    struct snapshot *s = fleet(1);
    unsigned n = remember(s, 5000, true);
    cr_expect_gt(n, 1000);
    cr_expect_lt(n, 4096);
    cr_expect(state_intern_full(s->states));
    cr_expect_eq(remember(s, 5000, false), n, "what is there stays");
    snapshot_unref(s);
}

Test(states, have_room_for_so_many_classes_and_no_more)
{
    struct snapshot *s = fleet(1);
    cr_expect_eq(remember(s, 5000, false), 4096);
    cr_expect(state_intern_full(s->states));
    struct demand d = sim_need(sim_pod("p", ROLE_HOST, "", 0), 1, 1);
    cr_expect(state_intern_costs(s->states, &d), "what is there stays");

    uint64_t number = s->number, news = s->news;
    struct draft *draft = draft_of(s);
    draft_renew(draft);
    draft_keep_news(draft);
    s = draft_commit(draft);
    cr_expect_not(state_intern_full(s->states));
    cr_expect_eq(s->number, number + 1);
    cr_expect_eq(s->news, news);
    d = sim_need(d, 5000, 1);
    cr_expect(state_intern_costs(s->states, &d));
    snapshot_unref(s);
}

Test(states, tell_states_apart_by_any_byte)
{
    struct snapshot *s = fleet(1);
    const struct node_state base = snapshot_node(s, 0)->state;
    uint32_t id = state_intern_intern(s->states, &base);
    const size_t from = offsetof(struct node_state, shape) + sizeof(void *);
    size_t last = offsetof(struct node_state, gpus_used) + sizeof(uint16_t);
    unsigned same = 0;
    for (size_t i = from; i < last; i++) {
        struct node_state other = base;
        ((unsigned char *)&other)[i] ^= 1;
        same += state_intern_intern(s->states, &other) == id;
    }
    cr_expect_eq(same, 0, "%u bytes make no difference", same);
    cr_expect_eq(state_intern_intern(s->states, &base), id);
    snapshot_unref(s);
}

/* --- policies ---------------------------------------------------------- */

static struct policy *policy_of(const char *text)
{
    struct policy *p = NULL;
    struct error err = {0};
    cr_assert_eq(policy_read(text, strlen(text), &p, &err), 0, "%s", err.text);
    return p;
}

/* The state of every node is what its parts come to, and the page shows
 * it. */
static void expect_recounted(const struct snapshot *s)
{
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *n = snapshot_node(s, i);
        struct node_state state;
        struct usage usage;
        node_usage(n, s->policy, &usage);
        usage_state(&usage, NULL, &state);
        cr_assert_eq(memcmp(&state, &n->state, sizeof state), 0, "%s", n->name);
        cr_assert_eq(memcmp(state_intern_get(s->states, snapshot_state(s, i)),
                            &state, sizeof state),
                     0);
    }
}

#define SHARE(nodes, cores)                                                    \
    "{\"services\":[{\"namespace\":\"ns\",\"name\":\"svc\",\"nodes\":\"" nodes \
    "\",\"cores\":" cores "}]}"

Test(snapshot, follows_the_policy)
{
    static const char *const texts[] = {
        SHARE("*", "3"), SHARE("node[13579].*", "5"), SHARE("none", "1"),
        "{\"quotas\":[{\"namespace\":\"ns\",\"cards\":1}]}"};
    struct snapshot *s = fleet(20);
    uint64_t seed = 5;
    for (unsigned turn = 0; turn < 400; turn++) {
        struct draft *d = draft_of(s);
        uint32_t what = sim_random(&seed) % 10;
        char name[32], pod[16];
        (void)snprintf(name, sizeof name, "node%u.example",
                       sim_random(&seed) % 24); /* some are new */
        (void)snprintf(pod, sizeof pod, "p%u", sim_random(&seed) % 30);
        if (what < 2) {
            cleanup_with(policy) struct policy *p =
                policy_of(texts[sim_random(&seed) % ARRAY_LEN(texts)]);
            draft_set_policy(d, what ? p : NULL);
        } else if (what == 2) {
            put(d, name, 1 + sim_random(&seed) % 3);
        } else if (what == 3 && turn % 4 == 0) {
            draft_remove_node(d, name);
        } else if (what < 8 && draft_node(d, name)) {
            struct allocation *a = on_card(pod, draft_node(d, name));
            if (sim_random(&seed) % 3 == 0) {
                a->demand.role = ROLE_SERVICE;
                (void)snprintf(a->demand.job, sizeof a->demand.job, "svc");
            }
            draft_allocate(d, a);
        } else {
            (void)draft_release(d, "ns", pod);
        }
        if (turn % 50 == 49)
            draft_renew(d);
        s = draft_commit(d);
        expect_recounted(s);
    }
    snapshot_unref(s);
}
