/* Decisions that a person can check by eye, and what is said when there is
 * none.  The host: cards 2i and 2i + 1 and the GPUs of the same numbers are
 * behind switch i; the first half is on NUMA node 0, the other on 1. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <string.h>
#include <time.h>

#include "lib/base/mem.h"
#include "model/decide/decide.h"
#include "model/topo/card_rights.h"
#include "tests/lib/sim/simhost.h"

struct host {
    struct topo *topo;
    struct shape *shape;
    struct node_state state;
    struct demand demand;
    struct choice choice;
};

static void host_init(struct host *h, unsigned n_cards)
{
    memset(h, 0, sizeof *h);
    h->topo = simhost_topo("n1", n_cards);
    h->shape = shape_create(h->topo);
    node_state_init(&h->state, h->topo, h->shape);
    h->demand.role = ROLE_HOST;
    h->demand.cards = h->demand.pair_cards = 1;
    h->demand.align = RELATION_SYS;
}

static void host_fini(struct host *h)
{
    shape_destroy(h->shape);
    topo_unref(h->topo);
}

/* Cards on which some pair is, with nothing left. */
static void occupy(struct host *h, unsigned cards)
{
    h->state.occupied |= (uint16_t)cards;
    h->state.shared |= (uint16_t)cards;
    for (unsigned c = cards; c; c &= c - 1) {
        h->state.free_cores[__builtin_ctz(c)] = 0;
        h->state.free_memory_mib[__builtin_ctz(c)] = 0;
    }
}

static enum reason ask(struct host *h, unsigned cards, unsigned gpus)
{
    h->demand.cards = (uint8_t)cards;
    h->demand.gpus = (uint8_t)gpus;
    return decide(&h->state, &h->demand, 0, UINT16_MAX, &h->choice);
}

static void chosen(struct host *h, unsigned cards, unsigned gpus,
                   enum relation relation)
{
    cr_assert_eq(h->choice.cards, cards, "cards %x", h->choice.cards);
    cr_assert_eq(h->choice.gpus, gpus, "gpus %x", h->choice.gpus);
    cr_assert_eq(h->choice.relation, relation, "%s",
                 relation_name((enum relation)h->choice.relation));
}

/* The reason, and words of its explanation. */
static void expect_reason(struct host *h, enum reason got, enum reason want,
                          const char *words)
{
    struct str text = STR_INIT(4096);
    cr_assert_eq(got, want, "%s, not %s", reason_word(got), reason_word(want));
    reason_explain(got, &h->state, &h->demand, &text);
    cr_assert_str_eq(str_text(&text), words);
    str_fini(&text);
}

Test(decide, closest_then_tightest)
{
    struct host h;
    host_init(&h, 8);
    cr_assert_eq(ask(&h, 1, 1), REASON_NONE);
    chosen(&h, 0x01, 0x01, RELATION_PIX);
    cr_assert_eq(h.choice.numa, 0);
    cr_assert_eq(ask(&h, 2, 2), REASON_NONE);
    chosen(&h, 0x03, 0x03, RELATION_PIX);
    cr_assert_eq(ask(&h, 4, 0), REASON_NONE);
    chosen(&h, 0x0f, 0, RELATION_NODE);
    occupy(&h, 0x0f);
    cr_assert_eq(ask(&h, 3, 0), REASON_NONE);
    chosen(&h, 0x70, 0, RELATION_NODE);
    cr_assert_eq(h.choice.numa, 1);
    host_fini(&h);
}

/* The closer GPU wins over the tighter cards. */
Test(decide, gpus_come_before_tightness)
{
    struct host h;
    host_init(&h, 8);
    h.state.gpus_used = 0xea; /* left: one behind switch 0, one behind 1, one
                               * behind 2 */
    cr_assert_eq(ask(&h, 2, 2), REASON_NONE);
    chosen(&h, 0x05, 0x05, RELATION_PIX);
    cr_assert_eq(ask(&h, 2, 1), REASON_NONE);
    chosen(&h, 0x03, 0x01, RELATION_PIX);
    host_fini(&h);
}

/* A lone card is taken where a group is broken already. */
Test(decide, whole_groups_stay_whole)
{
    struct host h;
    host_init(&h, 8);
    occupy(&h, 0x20);
    cr_assert_eq(ask(&h, 1, 0), REASON_NONE);
    chosen(&h, 0x10, 0, RELATION_NODE);
    cr_assert_eq(ask(&h, 2, 0), REASON_NONE);
    chosen(&h, 0xc0, 0, RELATION_NODE);
    host_fini(&h);
}

/* Between nodes: fewer idle cards left, then fewer cores left. */
Test(decide, the_tighter_node_costs_less)
{
    struct host a, b;
    host_init(&a, 8);
    host_init(&b, 8);
    cr_assert_eq(decide_cost(&a.state, &a.demand),
                 decide_cost(&b.state, &b.demand));
    occupy(&a, 0x03);
    cr_assert_lt(decide_cost(&a.state, &a.demand),
                 decide_cost(&b.state, &b.demand));
    occupy(&b, 0x03);
    for (unsigned c = 0; c < 8; c++)
        b.state.free_cores[c] -= b.state.free_cores[c] ? 1 : 0;
    cr_assert_gt(decide_cost(&a.state, &a.demand),
                 decide_cost(&b.state, &b.demand));
    host_fini(&a);
    host_fini(&b);
}

Test(decide, must_and_within)
{
    struct host h;
    host_init(&h, 8);
    h.demand.cards = 2;
    cr_assert_eq(decide(&h.state, &h.demand, 0x20, UINT16_MAX, &h.choice),
                 REASON_NONE);
    chosen(&h, 0x30, 0, RELATION_NODE);
    cr_assert_eq(decide(&h.state, &h.demand, 0, 0x88, &h.choice), REASON_NONE);
    chosen(&h, 0x88, 0, RELATION_SYS);
    cr_assert_eq(decide(&h.state, &h.demand, 0, 0x80, &h.choice),
                 REASON_PAIR_CARDS);
    cr_assert_eq(decide(&h.state, &h.demand, 0x07, UINT16_MAX, &h.choice),
                 REASON_PAIR_CARDS);
    occupy(&h, 0x80);
    cr_assert_eq(decide(&h.state, &h.demand, 0x80, UINT16_MAX, &h.choice),
                 REASON_CARD_CORES);
    host_fini(&h);
}

Test(decide, nothing_is_written_when_nothing_fits)
{
    struct host h;
    host_init(&h, 2);
    memset(&h.choice, 0xee, sizeof h.choice);
    struct choice before = h.choice;
    cr_assert_eq(ask(&h, 3, 0), REASON_TOO_FEW_CARDS);
    cr_assert_eq(memcmp(&before, &h.choice, sizeof before), 0);
    cr_assert_eq(decide_cost(&h.state, &h.demand), COST_NO_FIT);
    host_fini(&h);
}

Test(decide, reasons_that_no_preemption_helps)
{
    struct host h;
    host_init(&h, 8);
    expect_reason(&h, ask(&h, 9, 0), REASON_TOO_FEW_CARDS,
                  "the node has only 8 cards; 9 are needed");
    expect_reason(&h, ask(&h, 1, 9), REASON_TOO_FEW_GPUS,
                  "the node has only 8 GPUs; 9 are needed");
    h.demand.align = RELATION_PIX;
    expect_reason(&h, ask(&h, 3, 1), REASON_ALIGNMENT_NEVER,
                  "biga.dev/align asks for PIX, but even idle the closest 3 "
                  "cards and 1 GPU are NODE; it would fit with "
                  "biga.dev/align NODE");
    cr_assert_eq(ask(&h, 4, 0), REASON_NONE, "pix without GPUs is node");
    expect_reason(&h, ask(&h, 5, 0), REASON_ALIGNMENT_NEVER,
                  "biga.dev/align asks for NODE, but even idle the closest 5 "
                  "cards and NUMA node are SYS; it would fit with "
                  "biga.dev/align SYS");
    h.demand.align = RELATION_SYS;
    h.demand.has_card_need = true;
    h.demand.card_cores = 17;
    h.demand.card_memory_mib = 1024;
    expect_reason(&h, ask(&h, 1, 0), REASON_CARD_TOO_SMALL,
                  "even idle, only 0 of 8 cards could hold 17 cores and 1024 "
                  "MiB; 1 is needed, and the most that a card here has is 16 "
                  "cores and 32768 MiB");
    h.demand.has_card_need = false;
    h.state.usable = 0x01;
    expect_reason(&h, ask(&h, 2, 0), REASON_UNHEALTHY,
                  "1 of 8 cards can be used, the others are withdrawn; 2 "
                  "are needed");
    h.state.drained = 0x02;
    expect_reason(&h, ask(&h, 2, 0), REASON_DRAINED,
                  "1 of 8 cards can be used, the others are drained or lost; "
                  "2 are needed; biga card undrain gives drained ones back");
    expect_reason(&h, ask(&h, 3, 0), REASON_UNHEALTHY,
                  "1 of 8 cards can be used, the others are withdrawn; 3 "
                  "are needed; 1 of those drained (biga card undrain)");
    h.state.drained = 0;
    memcpy(h.demand.arch, "mips64", 7);
    expect_reason(&h, ask(&h, 2, 0), REASON_ARCH,
                  "0 of 8 cards are of architecture mips64; 2 are needed");
    h.demand.arch[0] = '\0';
    memcpy(h.demand.devices.text, "rdma", 5);
    expect_reason(&h, ask(&h, 2, 0), REASON_NO_DEVICES,
                  "0 of 8 cards have the devices \"rdma\"; 2 are needed; "
                  "name them under \"devices\" in the card file of its "
                  "biga-advertiser, which has to run the pods itself");
    h.demand.devices.text[0] = '\0';
    for (enum reason r = REASON_UNKNOWN_NODE; r <= REASON_PAIR_CARDS; r++)
        cr_assert(!reason_resolvable(r));
    host_fini(&h);
}

/* Only of applied pods, and where the node tells its rights. */
Test(decide, rights_are_what_the_cards_node_lets_pods_have)
{
    struct host h;
    host_init(&h, 8);
    h.shape->told = 0xff;
    h.shape->rights[0] = CARD_RIGHTS_IPC_LOCK;
    h.demand.rights = CARD_RIGHTS_IPC_LOCK | CARD_RIGHTS_HOST_PID;
    h.demand.runs = RUNS_CARDS;
    expect_reason(&h, ask(&h, 1, 0), REASON_NO_RIGHTS,
                  "0 of 8 cards let pods have the rights IPC_LOCK,host-pid; 1 "
                  "is needed; the operator of the node would have to start its "
                  "biga-advertiser with --allow IPC_LOCK,host-pid, or give "
                  "IPC_LOCK by one of the pod's sets of devices");
    h.demand.rights = CARD_RIGHTS_IPC_LOCK;
    expect_reason(&h, ask(&h, 2, 0), REASON_NO_RIGHTS,
                  "1 of 8 cards lets pods have the rights IPC_LOCK; 2 are "
                  "needed; the operator of the node would have to start its "
                  "biga-advertiser with --allow IPC_LOCK, or give IPC_LOCK by "
                  "one of the pod's sets of devices");
    cr_expect_eq(ask(&h, 1, 0), REASON_NONE);
    cr_expect_eq(h.choice.cards, 1u);
    h.shape->rights[3] = CARD_RIGHTS_SET_LOCKS(1);
    memcpy(h.shape->devices[3].text, "rdma snap", sizeof "rdma snap");
    memcpy(h.demand.devices.text, "rdma", sizeof "rdma");
    cr_expect_eq(ask(&h, 1, 0), REASON_NO_RIGHTS, "its set does not");
    memcpy(h.demand.devices.text, "snap", sizeof "snap");
    cr_expect_eq(ask(&h, 1, 0), REASON_NONE);
    cr_expect_eq(h.choice.cards, 1u << 3);
    h.demand.devices.text[0] = '\0';
    h.shape->told = 0x7f;
    cr_expect_eq(ask(&h, 2, 0), REASON_NONE, "the last one does not tell");
    h.shape->told = 0xff;
    h.demand.runs = 0;
    cr_expect_eq(ask(&h, 8, 0), REASON_NONE, "others run it");
    host_fini(&h);
}

/* A card is in one book only: given by claims, or by allocations. */
Test(decide, claims_and_allocations_have_cards_of_their_own)
{
    struct host h;
    host_init(&h, 8);
    h.state.claimed = 0x0e;
    cr_expect_eq(ask(&h, 5, 0), REASON_NONE);
    cr_expect_eq(h.choice.cards, 0xf1);
    expect_reason(&h, ask(&h, 6, 0), REASON_BY_CLAIMS,
                  "5 of 8 cards are given by Biga, the others by "
                  "ResourceClaims; 6 are needed; claim one of DeviceClass "
                  "xpu.biga.dev instead, or start the node's biga-advertiser "
                  "without --claims");
    struct demand other = h.demand;
    h.demand.by_claim = true;
    cr_expect_eq(ask(&h, 3, 0), REASON_NONE);
    cr_expect_eq(h.choice.cards, 0x0e);
    expect_reason(&h, ask(&h, 4, 0), REASON_BY_ALLOCATIONS,
                  "3 of 8 cards are given by ResourceClaims, the others by "
                  "Biga; 4 are needed; ask for biga.dev/card instead of a "
                  "claim, or start the node's biga-advertiser with --claims");
    other.cards = h.demand.cards;
    cr_expect_not(demand_same_class(&other, &h.demand));
    cr_expect_neq(demand_class_hash(&other), demand_class_hash(&h.demand));
    h.state.usable = 0xf7;
    expect_reason(&h, ask(&h, 3, 0), REASON_UNHEALTHY,
                  "2 of 3 cards can be used, the others are withdrawn; 3 are "
                  "needed");
    h.state.usable = 0xff;
    h.state.closed = 0x02;
    expect_reason(&h, ask(&h, 3, 0), REASON_CARDS_BUSY,
                  "2 of 3 cards not held by others; 3 are needed; it "
                  "would fit with 1 more card freed");
    h.state.claimed = 0;
    cr_expect_eq(ask(&h, 1, 0), REASON_BY_ALLOCATIONS);
    host_fini(&h);
}

/* The node's advertiser runs what was applied; what a kubelet runs is none of
 * its business. */
Test(decide, applied_pods_go_where_they_are_run)
{
    struct host h;
    host_init(&h, 8);
    h.state.inert = 0xfb;
    cr_expect_eq(ask(&h, 1, 0), REASON_NONE);
    cr_expect_eq(h.choice.cards, 0x01);
    h.demand.runs = RUNS_HOST;
    cr_expect_eq(ask(&h, 1, 0), REASON_NONE);
    cr_expect_eq(h.choice.cards, 0x01);
    h.demand.runs = RUNS_HOST | RUNS_CARDS;
    cr_expect_eq(ask(&h, 1, 0), REASON_NONE);
    cr_expect_eq(h.choice.cards, 0x04);
    expect_reason(&h, ask(&h, 2, 0), REASON_NO_RUNTIME,
                  "1 of 8 cards can run pods, the runtime of the others is not "
                  "known to the node's biga-advertiser: name their endpoints "
                  "in its card file; 2 are needed");
    h.state.usable = 0xfb;
    h.state.drained = 0x04;
    expect_reason(&h, ask(&h, 1, 0), REASON_DRAINED,
                  "0 of 1 card can be used, the others are drained or lost; "
                  "1 is needed; biga card undrain gives drained ones back");
    h.state.passive = 1;
    expect_reason(&h, ask(&h, 1, 0), REASON_RUNS_NO_PODS,
                  "the node runs no pods that were applied: start its "
                  "biga-advertiser with --actuate");
    h.demand.runs = RUNS_HOST;
    cr_expect_eq(ask(&h, 1, 0), REASON_RUNS_NO_PODS);
    h.demand.runs = 0;
    cr_expect_eq(ask(&h, 1, 0), REASON_NONE);
    host_fini(&h);
}

Test(decide, reasons_that_preemption_might_help)
{
    struct host h;
    host_init(&h, 8);
    h.demand.has_card_need = true;
    h.demand.card_cores = 4;
    h.demand.card_memory_mib = 4096;
    for (unsigned c = 0; c < 8; c++)
        h.state.free_cores[c] = c < 2 ? 4 : c < 4 ? 2 : 1;
    expect_reason(&h, ask(&h, 3, 0), REASON_CARD_CORES,
                  "2 of 8 cards have 4 cores free; 3 are needed; it would "
                  "fit with 2 more free on 1 card");
    for (unsigned c = 0; c < 8; c++)
        h.state.free_memory_mib[c] = 4000;
    expect_reason(&h, ask(&h, 2, 0), REASON_CARD_MEMORY,
                  "0 of 2 cards have 4096 MiB free; 2 are needed; it would "
                  "fit with 192 more free on 2 cards");
    h.state.closed = 0xfe;
    expect_reason(&h, ask(&h, 2, 0), REASON_CARDS_BUSY,
                  "1 of 8 cards not held by others; 2 are needed; it "
                  "would fit with 1 more card freed");
    host_fini(&h);

    host_init(&h, 8);
    h.demand.exclusive = true;
    h.state.shared = 0xff;
    expect_reason(&h, ask(&h, 1, 0), REASON_CARDS_BUSY,
                  "0 of 8 cards unshared; 1 is needed; it would fit with "
                  "1 more card freed");
    h.state.shared = 0;
    h.state.gpus_used = 0xfe;
    expect_reason(&h, ask(&h, 1, 2), REASON_GPUS_BUSY,
                  "1 of 8 GPUs is free; 2 are needed");
    occupy(&h, 0x03);
    h.demand.align = RELATION_PXB;
    expect_reason(&h, ask(&h, 1, 1), REASON_ALIGNMENT,
                  "biga.dev/align asks for PXB, but the closest free 1 card "
                  "and 1 GPU are NODE; it would fit with biga.dev/align "
                  "NODE");
    for (enum reason r = REASON_CARDS_BUSY; r < REASON_COUNT; r++)
        cr_assert(reason_resolvable(r));
    host_fini(&h);
}

/* Four GPUs behind two switches on two NUMA nodes: a device plugin may give any
 * of them. */
Test(decide, whichever_gpu_a_plugin_gives)
{
    struct host h;
    host_init(&h, 4);
    h.demand.every_gpu = true;
    cr_assert_eq(ask(&h, 1, 1), REASON_NONE, "it asks for nothing");
    h.demand.align = RELATION_PIX;
    expect_reason(&h, ask(&h, 1, 1), REASON_ALIGNMENT_NEVER,
                  "biga.dev/align asks for PIX, and a device plugin chooses "
                  "among all 4 GPUs of the node, not all of which are so "
                  "close: let the pod claim its GPUs, which pins them, or ask "
                  "for SYS");
    cr_assert_eq(ask(&h, 4, 4), REASON_NONE, "it gets all of them");
    cr_assert_eq(ask(&h, 2, 3), REASON_NONE, "a card behind each switch");
    chosen(&h, 0x5, 0x7, RELATION_PIX);
    h.state.gpus_used = 0xe; /* it may have been given others than those */
    cr_assert_eq(ask(&h, 1, 1), REASON_ALIGNMENT_NEVER);
    h.demand.every_gpu = false;
    cr_assert_eq(ask(&h, 1, 1), REASON_NONE);
    host_fini(&h);
}

/* Words are stable, distinct and fit for a metric's label. */
Test(decide, reason_words)
{
    for (enum reason r = REASON_NONE; r < REASON_COUNT; r++) {
        const char *word = reason_word(r);
        cr_assert(word && word[0]);
        cr_assert_eq(strspn(word, "abcdefghijklmnopqrstuvwxyz-"), strlen(word));
        for (enum reason q = REASON_NONE; q < r; q++)
            cr_assert_str_neq(word, reason_word(q));
        struct str text = STR_INIT(4096);
        reason_explain(r, NULL, &(struct demand){.cards = 1}, &text);
        cr_assert(text.size > 0);
        str_fini(&text);
    }
    cr_assert_str_eq(reason_word(REASON_CARD_CORES), "card-cores");
    cr_assert_str_eq(reason_word(REASON_COUNT), "?");
}

/* A node without NUMA nodes or cards of unknown place promises nothing. */
Test(decide, unknown_places_are_far)
{
    struct host h;
    cleanup_free struct shape *content = xcalloc(1, sizeof *content);
    host_init(&h, 8);
    memcpy(content, h.shape, sizeof *content);
    content->n_numas = 0;
    memset(content->card_numa, 0, sizeof content->card_numa);
    shape_destroy(h.shape);
    h.shape = shape_create_from(content);
    h.state.shape = h.shape;
    cr_assert_eq(ask(&h, 1, 0), REASON_NONE);
    chosen(&h, 0x01, 0, RELATION_SYS);
    cr_assert_eq(h.choice.numa, -1);
    h.demand.align = RELATION_SOCKET;
    cr_assert_eq(ask(&h, 1, 0), REASON_ALIGNMENT_NEVER);
    host_fini(&h);
}

/* --- CPUs of the host pod ----------------------------------------------- */

static enum reason ask_cpus(struct host *h, uint32_t cpu_milli,
                            enum relation align)
{
    h->demand.cpu_milli = cpu_milli;
    h->demand.align = (uint8_t)align;
    return ask(h, 1, h->demand.gpus);
}

/* NUMA nodes of 32 CPUs: what the host pod asks decides where its cards are. */
Test(decide, numa_node_with_the_cpus)
{
    struct host h;
    host_init(&h, 8);
    cr_assert_eq(h.shape->numa_cpus[1], 32);
    node_state_take_cpus(&h.state, 0, 28000);
    cr_assert_eq(ask_cpus(&h, 4000, RELATION_SYS), REASON_NONE);
    chosen(&h, 0x01, 0, RELATION_NODE);
    cr_assert_eq(ask_cpus(&h, 4001, RELATION_SYS), REASON_NONE);
    chosen(&h, 0x10, 0, RELATION_NODE);
    cr_assert_eq(h.choice.numa, 1);
    h.demand.role = ROLE_XPU; /* whose CPUs are the card's own */
    cr_assert_eq(ask_cpus(&h, 4001, RELATION_SYS), REASON_NONE);
    chosen(&h, 0x01, 0, RELATION_NODE);
    h.demand.role = ROLE_HOST;
    /* busy: only who asks for more than SYS is refused */
    node_state_take_cpus(&h.state, 1, 26000);
    cr_assert_eq(ask_cpus(&h, 8000, RELATION_SYS), REASON_NONE);
    chosen(&h, 0x01, 0, RELATION_SYS);
    cr_assert_eq(h.choice.numa, -1);
    expect_reason(&h, ask_cpus(&h, 8500, RELATION_NODE), REASON_NUMA_CPUS,
                  "biga.dev/align asks for NODE, but no NUMA node near free "
                  "cards has 8.5 CPUs free (at most 6 CPUs); it would fit with "
                  "2.5 CPUs more free there, or with biga.dev/align SYS");
    /* more than any NUMA node has: it spans them */
    cr_assert_eq(ask_cpus(&h, 32001, RELATION_SYS), REASON_NONE);
    cr_assert_eq(h.choice.numa, -1);
    expect_reason(&h, ask_cpus(&h, 32001, RELATION_NODE),
                  REASON_ALIGNMENT_NEVER,
                  "biga.dev/align asks for NODE, but even idle no NUMA node "
                  "near the cards has 32.001 CPUs (at most 32 CPUs); it would "
                  "fit with biga.dev/align SYS");
    host_fini(&h);
}

Test(decide, cpus_beside_gpus)
{
    struct host h;
    host_init(&h, 8);
    h.demand.gpus = 1;
    node_state_take_cpus(&h.state, 0, 28000);
    /* the GPU is what the cards are close to; CPUs come from elsewhere */
    cr_assert_eq(ask_cpus(&h, 8000, RELATION_SOCKET), REASON_NONE);
    chosen(&h, 0x01, 0x01, RELATION_PIX);
    cr_assert_eq(h.choice.numa, 1);
    /* but not for who asks for NODE or closer */
    cr_assert_eq(ask_cpus(&h, 8000, RELATION_PIX), REASON_NONE);
    chosen(&h, 0x10, 0x10, RELATION_PIX);
    cr_assert_eq(h.choice.numa, 1);
    node_state_take_cpus(&h.state, 1, 28000);
    expect_reason(&h, ask_cpus(&h, 5000, RELATION_PIX), REASON_NUMA_CPUS,
                  "biga.dev/align asks for PIX, but no NUMA node near free "
                  "cards has 5 CPUs free (at most 4 CPUs); it would fit with 1 "
                  "CPU more free there, or with biga.dev/align SOCKET");
    host_fini(&h);
}

/* A host that does not tell its CPUs is not refused for them. */
Test(decide, unknown_cpus)
{
    struct host h;
    host_init(&h, 8);
    h.shape->numa_cpus[0] = h.shape->numa_cpus[1] = 0;
    node_state_init(&h.state, h.topo, h.shape);
    node_state_take_cpus(&h.state, 0, 99000);
    cr_assert_eq(ask_cpus(&h, 4294967295, RELATION_NODE), REASON_NONE);
    chosen(&h, 0x01, 0, RELATION_NODE);
    cr_assert_eq(h.choice.numa, 0);
    host_fini(&h);
}

/* --- the worst cases ---------------------------------------------------- */

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* 16 cards and 16 GPUs with relations that leave much to try. */
Test(decide, bounded_work)
{
    uint32_t chance = 12345;
    double worst = 0;
    for (unsigned round = 0; round < 60; round++) {
        cleanup_free struct shape *s = xcalloc(1, sizeof *s);
        struct node_state state = {.usable = UINT16_MAX};
        struct demand demand = {.role = ROLE_HOST, .align = RELATION_SYS};
        struct choice choice;
        s->n_cards = s->n_gpus = 16;
        for (unsigned c = 0; c < 16; c++) {
            state.cores[c] = state.free_cores[c] = 8;
            state.memory_mib[c] = state.free_memory_mib[c] = 8192;
            for (unsigned g = 0; g < 16; g++) {
                chance = chance * 1664525 + 1013904223;
                /* few are near, so that many sets fail */
                s->card_gpu[c][g] = chance >> 24 < 40 + round
                                        ? (uint8_t)(chance >> 16) % 5
                                        : RELATION_SYS;
            }
        }
        struct shape *shape = shape_create_from(s);
        state.shape = shape;
        demand.cards = (uint8_t)(6 + round % 5);
        demand.gpus = (uint8_t)(2 + round % 6);
        double best = 1e9;
        for (unsigned i = 0; i < 3; i++) {
            double before = now_ms();
            cr_assert_eq(decide(&state, &demand, 0, UINT16_MAX, &choice),
                         REASON_NONE);
            double took = now_ms() - before;
            best = took < best ? took : best;
        }
        worst = best > worst ? best : worst;
        shape_destroy(shape);
    }
    cr_log_info("16 x 16, slowest of 60: %.3f ms", worst);
    /* well below the 2 ms that it has, on a slow or instrumented build too */
    cr_assert_lt(worst, 200);
}

/* Every size of demand on a real kind of tree, whole and in parts. */
Test(decide, bounded_work_on_a_tree)
{
    static const uint16_t busy[] = {0, 0x9552, 0x0001, 0x1111};
    struct host h;
    double worst = 0;
    host_init(&h, 16);
    for (unsigned i = 0; i < ARRAY_LEN(busy) * 16 * 17; i++) {
        h.state.closed = h.state.occupied = busy[i % ARRAY_LEN(busy)];
        h.state.gpus_used = (uint16_t)(busy[i % ARRAY_LEN(busy)] << i % 3);
        double best = 1e9;
        for (unsigned k = 0; k < 3; k++) {
            double before = now_ms();
            (void)ask(&h, 1 + i / 4 % 16, i / 64);
            double took = now_ms() - before;
            best = took < best ? took : best;
        }
        worst = best > worst ? best : worst;
    }
    cr_log_info("16 x 16 tree, slowest: %.3f ms", worst);
    cr_assert_lt(worst, 200);
    host_fini(&h);
}
