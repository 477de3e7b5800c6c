#include "extender/state/claim_use.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/state/draft.h"
#include "extender/state/usage.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

enum { CORES = 16, MIB = 32768, CARDS = 4, NODES = 6, CLAIMS = 24, PODS = 12 };

static struct topo *topo;
static struct snapshot *now;

static void set_up(void)
{
    topo = simhost_topo("n0", CARDS);
    now = snapshot_create_empty();
}

static void tear_down(void)
{
    snapshot_unref(now);
    topo_unref(topo);
}

TestSuite(claim_use, .init = set_up, .fini = tear_down);

static const char *card_id(unsigned i)
{
    size_t first;
    (void)topo_count(topo, DEVICE_CARD, &first);
    return topo_device(topo, first + i)->id;
}

static const struct device *gpu(unsigned i)
{
    size_t first;
    (void)topo_count(topo, DEVICE_GPU, &first);
    return topo_device(topo, first + i);
}

static struct claim_use *claim_of(const char *name, const char *node,
                                  const char *uid)
{
    struct claim_use *c = claim_use_create("ns", name, node);
    claim_use_add_pod(c, uid);
    return c;
}

static void add_card(struct claim_use *c, unsigned card, uint32_t cores)
{
    struct claim_card x = {
        .whole = cores == 0, .cores = cores, .memory_mib = cores * 100};
    (void)snprintf(x.id, sizeof x.id, "%s", card_id(card));
    claim_use_add_card(c, &x);
}

static void add_gpu(struct claim_use *c, unsigned i)
{
    claim_use_add_pci(c, &(struct claim_pci){.pci = gpu(i)->pci});
}

static void put_node(struct draft *d, const char *name)
{
    draft_put_node(d, &(struct node_update){.name = name,
                                            .status = NODE_READY,
                                            .hash = "0123456789abcdef",
                                            .n_slices = 1,
                                            .pool_count = 1,
                                            .topo = topo});
}

static void put(struct claim_use *c)
{
    struct draft *d = draft_create(now);
    draft_put_claim(d, c);
    snapshot_unref(now);
    now = draft_commit(d);
    claim_use_unref(c);
}

/* An allocation of one card and one GPU (-1: none) to pod NAME of its own
 * pair. */
static struct allocation *given(const char *name, const char *node, int card,
                                int gpu_at, uint32_t cores)
{
    struct demand demand = sim_need(sim_pod(name, ROLE_XPU, name, 0), cores,
                                    cores * 100);
    struct allocation *a = allocation_create(&demand, node);
    a->cards = xcalloc(1, sizeof *a->cards);
    a->gpus = xcalloc(1, sizeof *a->gpus);
    if (card >= 0)
        (void)snprintf(a->cards[a->n_cards++], sizeof *a->cards, "%s",
                       card_id((unsigned)card));
    if (gpu_at >= 0)
        (void)snprintf(a->gpus[a->n_gpus++], sizeof *a->gpus, "%s",
                       gpu((unsigned)gpu_at)->id);
    return a;
}

static void change(struct allocation *add, const char *release, bool node)
{
    struct draft *d = draft_create(now);
    if (node)
        put_node(d, "n0");
    if (add)
        draft_allocate(d, add);
    if (release)
        cr_assert(draft_release(d, "ns", release));
    snapshot_unref(now);
    now = draft_commit(d);
}

static const struct node_state *state(void)
{
    return &snapshot_node(now, 0)->state;
}

Test(claim_use, takes_a_whole_card_a_share_and_a_gpu)
{
    struct claim_use *c = claim_of("c", "n0", "");
    add_card(c, 0, 0);
    add_card(c, 1, 3);
    add_gpu(c, 2);
    change(NULL, NULL, true);
    put(c);
    cr_expect_eq(state()->closed, 1);
    cr_expect_eq(state()->occupied, 3);
    cr_expect_eq(state()->shared, 3);
    cr_expect_eq(state()->free_cores[1], CORES - 3);
    cr_expect_eq(state()->free_memory_mib[1], MIB - 300);
    cr_expect_eq(state()->free_cores[2], CORES);
    cr_expect_eq(state()->gpus_used, 4);
}

Test(claim_use, waits_for_its_node)
{
    struct claim_use *c = claim_of("c", "n0", "");
    add_card(c, 2, 0);
    put(c);
    cr_expect_eq(now->n_nodes, 0);
    change(NULL, NULL, true);
    cr_expect_eq(state()->closed, 4);
    struct draft *d = draft_create(now);
    draft_remove_node(d, "n0");
    snapshot_unref(now);
    now = draft_commit(d);
    change(NULL, NULL, true);
    cr_expect_eq(state()->closed, 4, "and counts when it is back");
}

Test(claim_use, is_counted_by_the_allocation_of_its_pod)
{
    struct claim_use *c = claim_of("c", "n0", "uid-p");
    add_card(c, 0, 4);
    add_gpu(c, 0);
    change(given("p", "n0", 0, 0, 4), NULL, true);
    put(c);
    cr_expect_eq(state()->free_cores[0], CORES - 4, "once");
    cr_expect_eq(snapshot_node(now, 0)->n_rests, 0);
    change(NULL, "p", false);
    cr_expect_eq(state()->free_cores[0], CORES - 4, "by the claim alone");
    cr_expect_eq(state()->gpus_used, 1);
    cr_expect_eq(snapshot_node(now, 0)->n_rests, 1);
}

Test(claim_use, counts_what_its_pods_allocation_does_not_name)
{
    struct claim_use *c = claim_of("c", "n0", "uid-p");
    add_card(c, 0, 4);
    add_gpu(c, 3);
    change(given("p", "n0", 0, -1, 4), NULL, true);
    put(c);
    cr_expect_eq(state()->free_cores[0], CORES - 4);
    cr_expect_eq(state()->gpus_used, 8);
}

Test(claim_use, by_root_takes_every_gpu_there)
{
    struct claim_use *c = claim_of("c", "n0", "uid-p");
    claim_use_add_pci(c, &(struct claim_pci){.by_root = true,
                                             .root_domain = gpu(1)->root_domain,
                                             .root_bus = gpu(1)->root_bus});
    uint16_t there = 0;
    for (unsigned i = 0; i < CARDS; i++)
        if (gpu(i)->root_bus == gpu(1)->root_bus)
            there |= (uint16_t)(1U << i);
    change(NULL, NULL, true);
    put(c);
    cr_expect_eq(state()->gpus_used, there);
    change(given("p", "n0", -1, 1, 0), NULL, false);
    cr_expect_eq(state()->gpus_used, 2, "it is that of the allocation");
}

Test(claim_use, is_not_in_its_own_pods_way)
{
    struct claim_use *c = claim_of("c", "n0", "uid-p");
    struct demand p = sim_pod("p", ROLE_XPU, "j", 0);
    struct usage usage;
    struct node_state seen;
    add_card(c, 0, 0);
    change(NULL, NULL, true);
    put(c);
    node_usage(snapshot_node(now, 0), NULL, &usage);
    usage_state(&usage, &p, &seen);
    cr_expect_eq(seen.closed, 0);
    (void)snprintf(p.uid, sizeof p.uid, "uid-q");
    usage_state(&usage, &p, &seen);
    cr_expect_eq(seen.closed, 1);
}

Test(claim_use, goes_with_the_pod_that_is_evicted)
{
    struct claim_use *c = claim_of("c", "n0", "uid-p");
    struct claim_use *two = claim_of("two", "n0", "uid-p");
    claim_use_add_pod(two, "uid-q");
    add_card(c, 0, 0);
    add_card(two, 1, 0);
    change(given("p", "n0", 0, -1, 4), NULL, true);
    put(c);
    put(two);
    struct draft *d = draft_create(now);
    draft_evict(d, snapshot_node(now, 0)->allocations[0]);
    snapshot_unref(now);
    now = draft_commit(d);
    cr_expect_eq(state()->closed, 2, "what another pod has, too, stays");
}

Test(claim_use, keeps_within_its_limits)
{
    struct claim_use *c = claim_of("c", "n0", "u");
    for (unsigned i = 0; i < CLAIM_USE_DEVICES_MAX + 2; i++) {
        add_card(c, 0, 1);
        add_gpu(c, 0);
    }
    for (unsigned i = 0; i < CLAIM_USE_PODS_MAX + 2; i++) {
        char uid[16];
        (void)snprintf(uid, sizeof uid, "u%u", i);
        claim_use_add_pod(c, uid);
        claim_use_add_pod(c, uid);
    }
    cr_expect_eq(c->n_cards, CLAIM_USE_DEVICES_MAX);
    cr_expect_eq(c->n_gpus, CLAIM_USE_DEVICES_MAX);
    cr_expect_eq(c->n_pods, CLAIM_USE_PODS_MAX);
    claim_use_unref(c);
}

/* --- at random, recounted by other rules --------------------------------- */

static struct model {
    bool there, whole;
    unsigned node, card, gpu, cores, pod;
} claims[CLAIMS], pods[PODS];

static void recount(const struct node *n, unsigned index)
{
    uint32_t taken[CARDS] = {0};
    unsigned closed = 0, on = 0, gpus = 0;
    for (unsigned i = 0; i < PODS; i++) {
        if (!pods[i].there || pods[i].node != index)
            continue;
        taken[pods[i].card] += pods[i].cores;
        on |= 1U << pods[i].card;
        gpus |= 1U << pods[i].gpu;
    }
    for (unsigned i = 0; i < CLAIMS; i++) {
        const struct model *c = &claims[i], *p = &pods[c->pod];
        if (!c->there || c->node != index)
            continue;
        bool same = p->there && p->node == index;
        if (!(same && p->card == c->card)) {
            taken[c->card] += c->whole ? 0 : c->cores;
            closed |= (unsigned)c->whole << c->card;
            on |= 1U << c->card;
        }
        if (!(same && p->gpu == c->gpu))
            gpus |= 1U << c->gpu;
    }
    for (unsigned i = 0; i < CARDS; i++)
        cr_assert_eq(n->state.free_cores[i],
                     taken[i] < CORES ? CORES - taken[i] : 0);
    cr_assert_eq(n->state.closed, closed);
    cr_assert_eq(n->state.occupied, on);
    cr_assert_eq(n->state.gpus_used, gpus);
}

static void random_claim(struct draft *d, struct model *c, uint64_t *seed)
{
    char name[16], node[16], uid[16];
    (void)snprintf(name, sizeof name, "c%u", (unsigned)(c - claims));
    (void)snprintf(node, sizeof node, "n%u", c->node);
    cleanup_with(claim_use) struct claim_use *old = claim_of(name, node, "");
    if (c->there)
        draft_drop_claim(d, old);
    c->there = !c->there || sim_random(seed) % 2;
    if (!c->there)
        return;
    c->node = sim_random(seed) % NODES;
    c->card = sim_random(seed) % CARDS;
    c->gpu = sim_random(seed) % CARDS;
    c->pod = sim_random(seed) % PODS;
    c->cores = 1 + sim_random(seed) % 5;
    c->whole = sim_random(seed) % 3 == 0;
    (void)snprintf(node, sizeof node, "n%u", c->node);
    (void)snprintf(uid, sizeof uid, "uid-p%u", c->pod);
    cleanup_with(claim_use) struct claim_use *use = claim_of(name, node, uid);
    add_card(use, c->card, c->whole ? 0 : c->cores);
    add_gpu(use, c->gpu);
    draft_put_claim(d, use);
}

static void random_pod(struct draft *d, struct model *p, uint64_t *seed)
{
    char name[16], node[16];
    (void)snprintf(name, sizeof name, "p%u", (unsigned)(p - pods));
    p->there = !p->there || sim_random(seed) % 2;
    if (!p->there) {
        (void)draft_release(d, "ns", name);
        return;
    }
    p->node = sim_random(seed) % NODES;
    p->card = sim_random(seed) % CARDS;
    p->gpu = sim_random(seed) % CARDS;
    p->cores = 1 + sim_random(seed) % 5;
    (void)snprintf(node, sizeof node, "n%u", p->node);
    draft_allocate(d, given(name, node, (int)p->card, (int)p->gpu, p->cores));
}

static void random_node(struct draft *d, uint64_t *seed)
{
    char name[16];
    (void)snprintf(name, sizeof name, "n%u", sim_random(seed) % NODES);
    if (sim_random(seed) % 2)
        put_node(d, name);
    else
        draft_remove_node(d, name);
}

Test(claim_use, is_counted_once_whatever_comes_and_goes)
{
    uint64_t seed = 14;
    for (unsigned turn = 0; turn < 3000; turn++) {
        struct draft *d = draft_create(now);
        for (unsigned i = 0; i <= turn % 3; i++) {
            uint32_t what = sim_random(&seed) % 8;
            if (what == 0)
                random_node(d, &seed);
            else if (what < 5)
                random_claim(d, &claims[sim_random(&seed) % CLAIMS], &seed);
            else
                random_pod(d, &pods[sim_random(&seed) % PODS], &seed);
        }
        if (turn % 100 == 99)
            draft_renew(d);
        snapshot_unref(now);
        now = draft_commit(d);
        for (size_t i = 0; i < now->n_nodes; i++) {
            const struct node *n = snapshot_node(now, i);
            recount(n, (unsigned)(n->name[1] - '0'));
        }
    }
}
