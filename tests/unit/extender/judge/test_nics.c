/* Compute NICs from the pod's question to what it holds, on one board: GPU i
 * and NIC i behind switch i, a card behind switches 0 and 4. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/judge/advice.h"
#include "extender/state/draft.h"
#include "extender/state/overcommit.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

static struct topo *topo;
static struct snapshot *now;

static struct draft *draft_of_now(void)
{
    return draft_create(now);
}

static void commit(struct draft *d)
{
    struct snapshot *next = draft_commit(d);
    snapshot_unref(now);
    now = next;
}

static void set_up(void)
{
    topo = simhost_board("n0", 1, 1);
    now = snapshot_create_empty();
    struct draft *d = draft_of_now();
    draft_put_node(d, &(struct node_update){.name = "n0",
                                            .status = NODE_READY,
                                            .hash = "0123456789abcdef",
                                            .n_slices = 1,
                                            .pool_count = 1,
                                            .topo = topo});
    commit(d);
}

static void tear_down(void)
{
    snapshot_unref(now);
    topo_unref(topo);
}

TestSuite(nics, .init = set_up, .fini = tear_down);

static struct demand host_pod(const char *name, unsigned gpus, unsigned nics)
{
    struct demand d = sim_need(sim_pod(name, ROLE_HOST, name, 0), 1, 1);
    d.gpus = d.pair_gpus = (uint8_t)gpus;
    d.nics = d.pair_nics = (uint8_t)nics;
    return d;
}

static enum reason ask(const struct demand *d, struct choice *ret_choice)
{
    struct schedule s;
    schedule_init(&s, now, d);
    return schedule_choose(&s, 0, ret_choice);
}

/* What it gets; borrowed from the snapshot. */
static const struct allocation *bind(const struct demand *d)
{
    struct schedule s;
    struct choice choice;
    schedule_init(&s, now, d);
    enum reason r = schedule_choose(&s, 0, &choice);
    cr_assert_eq(r, REASON_NONE, "%s: %s", d->name, reason_word(r));
    struct draft *draft = draft_of_now();
    draft_allocate(draft, schedule_allocation(&s, 0, &choice));
    commit(draft);
    return alloc_index_find(now->allocations, "ns", d->name);
}

static const struct node_state *state(void)
{
    return &snapshot_node(now, 0)->state;
}

Test(nics, a_pod_holds_what_it_was_given)
{
    struct demand d = host_pod("a", 2, 2);
    const struct allocation *a = bind(&d);
    cr_assert_eq(a->n_nics, 2);
    cr_expect_str_eq(a->nics[0], "nic-0000-12-00-0");
    cr_expect_str_eq(a->nics[1], "nic-0000-22-00-0");
    cr_expect_str_eq(a->nic_pci[1], "0000:22:00.0");
    cr_expect_eq(a->nic_relation, RELATION_PIX);
    cr_expect_eq(state()->nics_used, 0x03);
    struct draft *draft = draft_of_now();
    cr_assert(draft_release(draft, "ns", "a"));
    commit(draft);
    cr_expect_eq(state()->nics_used, 0);
}

/* An xPU pod has none of its own, and is not in the way of its host pod's. */
Test(nics, host_pods_have_them)
{
    struct demand host = host_pod("a", 1, 1);
    struct demand xpu = sim_need(sim_pod("a-xpu", ROLE_XPU, "a", 0), 1, 1);
    xpu.pair_gpus = xpu.pair_nics = 1;
    cr_expect_eq(bind(&xpu)->n_nics, 0);
    cr_expect_eq(bind(&host)->n_nics, 1);
    cr_expect_eq(state()->nics_used, 0x01);
}

Test(nics, until_none_is_left)
{
    struct demand all = host_pod("a", 0, 8), more = host_pod("b", 0, 1);
    struct choice ignored;
    cr_expect_eq(bind(&all)->n_nics, 8);
    cr_assert_eq(ask(&more, &ignored), REASON_NICS_BUSY);

    struct schedule s;
    cleanup_str struct str text = STR_INIT(1000);
    schedule_init(&s, now, &more);
    schedule_brief(&s, REASON_NICS_BUSY, &text);
    cr_expect_str_eq(str_text(&text), "fewer than 1 compute NICs free");
    const struct allocation *gone[] = {
        alloc_index_find(now->allocations, "ns", "a")};
    cr_expect_eq(schedule_choose_without(&s, 0, gone, 1, &ignored), REASON_NONE,
                 "preemption helps");
}

static bool advises(const struct advice *advice, enum change_kind kind,
                    uint64_t value)
{
    for (size_t i = 0; i < advice->n_changes; i++)
        if (advice->changes[i].kind == kind)
            return advice->changes[i].value == value;
    return false;
}

Test(nics, asking_for_fewer_is_advised)
{
    struct demand some = host_pod("a", 0, 5), more = host_pod("b", 0, 4);
    struct schedule s;
    struct advice advice = {0};
    cleanup_str struct str json = STR_INIT(1 << 16);
    (void)bind(&some);
    schedule_init(&s, now, &more);
    advise_pod(&s, &advice);
    cr_expect(advises(&advice, CHANGE_NICS, 3));
    advice_write(&s, &advice, &json);
    cr_expect(strstr(str_text(&json), "ask for 3 compute NICs (biga.dev/nics)"),
              "%s", str_text(&json));
}

/* The place that a plan holds for the pair is just this. */
Test(nics, what_is_held_is_given)
{
    struct demand d = host_pod("a", 1, 1);
    struct choice held, got;
    cr_assert_eq(ask(&d, &held), REASON_NONE);
    held.gpus = 0x04;
    held.nics = 0x08;
    struct demand place = d;
    (void)snprintf(place.name, sizeof place.name, "a/0");
    memset(place.uid, 0, sizeof place.uid);
    struct allocation *hold = schedule_place(&place, snapshot_node(now, 0),
                                             &held);
    hold->held = true;
    struct draft *draft = draft_of_now();
    draft_allocate(draft, hold);
    commit(draft);
    cr_assert_eq(ask(&d, &got), REASON_NONE);
    cr_expect_eq(got.gpus, held.gpus);
    cr_expect_eq(got.nics, held.nics);
}

/* One that another pod's claim has is not planned with. */
Test(nics, claims_of_others_count)
{
    size_t nics[TOPO_KIND_MAX];
    struct demand d = host_pod("a", 1, 1);
    cr_assert_eq(topo_considered(topo, DEVICE_NIC, nics), 8u);
    struct claim_use *claim = claim_use_create("ns", "c", "n0");
    claim_use_add_pod(claim, "uid-other");
    claim_use_add_pci(
        claim, &(struct claim_pci){.pci = topo_device(topo, nics[0])->pci});
    struct draft *draft = draft_of_now();
    draft_put_claim(draft, claim);
    commit(draft);
    claim_use_unref(claim);
    cr_expect_eq(state()->nics_used, 0x01);
    const struct allocation *a = bind(&d);
    cr_expect_str_eq(a->gpus[0], "gpu-0000-53-00-0", "%s", a->gpus[0]);
    cr_expect_str_eq(a->nics[0], "nic-0000-52-00-0", "%s", a->nics[0]);
}

/* Two pods with one NIC, as after a leader's place was taken: told. */
Test(nics, two_pods_with_one_are_told)
{
    struct demand a = host_pod("a", 0, 1), b = host_pod("b", 0, 1);
    struct choice choice;
    cr_assert_eq(ask(&a, &choice), REASON_NONE);
    struct draft *draft = draft_of_now();
    draft_allocate(draft, schedule_place(&a, snapshot_node(now, 0), &choice));
    draft_allocate(draft, schedule_place(&b, snapshot_node(now, 0), &choice));
    commit(draft);
    cleanup_str struct str text = STR_INIT(1000);
    const struct allocation *one = alloc_index_find(now->allocations, "ns",
                                                    "a");
    cr_expect_eq(overcommit_find(snapshot_node(now, 0), NULL, one, &text),
                 OVERCOMMIT_MORE);
    cr_expect_str_eq(str_text(&text), "nic-0000-12-00-0 is another pod's, too");
}
