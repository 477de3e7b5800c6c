#include "extender/state/usage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

enum { CORES = 16, MIB = 32768 }; /* of a simhost's card */

static struct topo *topo;
static struct shape *shape;
static struct policy *policy; /* in force; NULL: none */

static void set_up(void)
{
    topo = simhost_topo("n1", 4);
    shape = shape_create(topo);
}

static void tear_down(void)
{
    shape_destroy(shape);
    topo_unref(topo);
    policy_unref(policy);
    policy = NULL;
}

TestSuite(usage, .init = set_up, .fini = tear_down);

/* An allocation of the cards in `bits`. */
static struct allocation *on_cards(struct demand d, unsigned bits)
{
    struct allocation *a = allocation_create(&d, "n1");
    a->cards = xcalloc(4, sizeof *a->cards);
    for (unsigned i = 0; i < 4; i++)
        if (bits >> i & 1)
            (void)snprintf(a->cards[a->n_cards++], sizeof *a->cards, "%s",
                           topo_device(topo, i)->id);
    return a;
}

static struct node_state state_of(struct allocation **list, size_t n,
                                  const struct demand *asking)
{
    struct node_state s;
    const struct usage usage = {
        .topo = topo,
        .shape = shape,
        .node = "n1",
        .policy = policy,
        .allocations = (const struct allocation *const *)list,
        .n = n,
    };
    usage_state(&usage, asking, &s);
    for (size_t i = 0; i < n; i++)
        allocation_unref(list[i]);
    return s;
}

Test(usage, charges_xpu_pods_and_services_what_they_state)
{
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 1000);
    struct demand v = sim_need(sim_pod("v", ROLE_SERVICE, "", 0), 2, 500);
    struct allocation *list[] = {on_cards(x, 3), on_cards(v, 1)};
    struct node_state s = state_of(list, 2, NULL);
    cr_expect_eq(s.free_cores[0], CORES - 6);
    cr_expect_eq(s.free_memory_mib[0], MIB - 1500);
    cr_expect_eq(s.free_cores[1], CORES - 4);
    cr_expect_eq(s.free_cores[2], CORES);
    cr_expect_eq(s.occupied, 3, "by the xPU pod's pair");
    cr_expect_eq(s.shared, 3);
    cr_expect_eq(s.closed, 0);
}

Test(usage, does_not_count_a_service_as_occupying)
{
    struct demand v = sim_need(sim_pod("v", ROLE_SERVICE, "", 0), 2, 500);
    struct allocation *list[] = {on_cards(v, 4)};
    struct node_state s = state_of(list, 1, NULL);
    cr_expect_eq(s.occupied, 0);
    cr_expect_eq(s.shared, 4);
}

Test(usage, charges_host_pods_cpus_where_they_are)
{
    enum { MILLI = 32000 };
    struct demand h = sim_pod("h", ROLE_HOST, "j", 0);
    struct demand x = sim_pod("x", ROLE_XPU, "j", 0);
    struct demand anywhere = sim_pod("k", ROLE_HOST, "j", 1);
    h.cpu_milli = x.cpu_milli = anywhere.cpu_milli = 6500;
    struct allocation *list[] = {on_cards(h, 1), on_cards(x, 1),
                                 on_cards(anywhere, 2)};
    struct allocation *again[] = {allocation_ref(list[0]),
                                  allocation_ref(list[1])};
    list[0]->numa = list[1]->numa = 1;
    struct node_state s = state_of(list, 3, NULL);
    cr_expect_eq(s.free_cpu_milli[0], MILLI);
    cr_expect_eq(s.free_cpu_milli[1], MILLI - 6500);
    s = state_of(again, 2, &h);
    cr_expect_eq(s.free_cpu_milli[1], MILLI, "its own are not in its way");
}

static struct allocation *with_choice(const struct demand *d,
                                      const struct choice *choice)
{
    size_t first = 0;
    (void)topo_count(topo, DEVICE_GPU, &first);
    struct allocation *a = on_cards(*d, choice->cards);
    a->gpus = xcalloc(4, sizeof *a->gpus);
    for (unsigned i = 0; i < 4; i++)
        if (choice->gpus >> i & 1)
            (void)snprintf(a->gpus[a->n_gpus++], sizeof *a->gpus, "%s",
                           topo_device(topo, first + i)->id);
    a->numa = choice->numa;
    return a;
}

/* What a plan takes off a state is what allocations will. */
Test(usage, is_what_plans_take)
{
    uint64_t random = 7;
    unsigned taken = 0;
    for (unsigned round = 0; round < 2000; round++) {
        struct allocation *list[6];
        struct node_state planned;
        struct choice choice;
        size_t n = 0;
        node_state_init(&planned, topo, shape);
        for (unsigned i = 0; i < ARRAY_LEN(list); i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "p%u", i);
            struct demand d = sim_pod(name, ROLE_HOST, "", 0);
            d.cards = d.pair_cards = (uint8_t)(1 + sim_random(&random) % 2);
            d.gpus = d.pair_gpus = (uint8_t)(sim_random(&random) % 3);
            d.cpu_milli = sim_random(&random) % 20000;
            d.exclusive = sim_random(&random) % 8 == 0;
            if (sim_random(&random) % 4)
                d = sim_need(d, 1 + sim_random(&random) % 9, 64);
            if (decide(&planned, &d, 0, UINT16_MAX, &choice) != REASON_NONE)
                continue;
            node_state_take(&planned, &d, &choice);
            list[n++] = with_choice(&d, &choice);
        }
        taken += (unsigned)n;
        struct node_state counted = state_of(list, n, NULL);
        cr_assert_eq(memcmp(&planned, &counted, sizeof counted), 0, "%u",
                     round);
    }
    cr_assert(taken > 4000, "%u", taken);
}

Test(usage, holds_for_a_host_pod_the_larger_of_both)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "j", 0), 6, 1000);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 3000);
    struct demand y = sim_need(sim_pod("y", ROLE_XPU, "j", 0), 4, 3000);
    struct allocation *one[] = {on_cards(h, 1), on_cards(x, 1)};
    struct node_state s = state_of(one, 2, NULL);
    cr_expect_eq(s.free_cores[0], CORES - 6);
    cr_expect_eq(s.free_memory_mib[0], MIB - 3000);

    struct allocation *two[] = {on_cards(y, 1), on_cards(h, 1), on_cards(x, 1)};
    s = state_of(two, 3, NULL);
    cr_expect_eq(s.free_cores[0], CORES - 8);
    cr_expect_eq(s.free_memory_mib[0], MIB - 6000);
}

Test(usage, closes_a_card_whose_need_nobody_stated)
{
    struct demand h = sim_pod("h", ROLE_HOST, "j", 0);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 1000);
    struct allocation *alone[] = {on_cards(h, 3)};
    cr_expect_eq(state_of(alone, 1, NULL).closed, 3);
    struct allocation *with[] = {on_cards(h, 3), on_cards(x, 1)};
    struct node_state s = state_of(with, 2, NULL);
    cr_expect_eq(s.closed, 2, "the other card's need is unknown still");
    cr_expect_eq(s.free_cores[0], CORES - 4);
}

Test(usage, closes_the_cards_of_exclusive_pods)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "", 0), 1, 1);
    h.exclusive = true;
    struct allocation *list[] = {on_cards(h, 8)};
    cr_expect_eq(state_of(list, 1, NULL).closed, 8);
}

Test(usage, leaves_the_own_pair_out)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "j", 0), 6, 1000);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 500);
    struct demand o = sim_need(sim_pod("o", ROLE_XPU, "j", 1), 2, 100);
    struct demand asking = sim_pod("y", ROLE_XPU, "j", 0);
    h.exclusive = true;
    struct allocation *list[] = {on_cards(h, 3), on_cards(x, 1),
                                 on_cards(o, 4)};
    struct node_state s = state_of(list, 3, &asking);
    cr_expect_eq(s.free_cores[0], CORES - 4, "what its xPU pod really takes");
    cr_expect_eq(s.free_cores[1], CORES);
    cr_expect_eq(s.free_cores[2], CORES - 2);
    cr_expect_eq(s.closed, 0);
    cr_expect_eq(s.occupied, 4);
    cr_expect_eq(s.shared, 4);
}

Test(usage, leaves_devices_out_that_are_gone)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "", 0), 6, 1000);
    struct allocation *a = on_cards(h, 1);
    (void)snprintf(a->cards[0], sizeof *a->cards, "card-ffff-ff-1f");
    cr_expect_eq(allocation_cards(topo, a), 0);
    struct node_state s = state_of(&a, 1, NULL);
    cr_expect_eq(s.shared, 0);
    cr_expect_eq(s.free_cores[0], CORES);
}

Test(usage, counts_gpus_and_never_goes_below_nothing)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "", 0), 99, UINT32_MAX);
    struct allocation *a = on_cards(h, 1);
    size_t first = 0;
    (void)topo_count(topo, DEVICE_GPU, &first);
    a->gpus = xcalloc(1, sizeof *a->gpus);
    a->n_gpus = 1;
    (void)snprintf(a->gpus[0], sizeof *a->gpus, "%s",
                   topo_device(topo, first + 2)->id);
    struct node_state s = state_of(&a, 1, NULL);
    cr_expect_eq(s.gpus_used, 4);
    cr_expect_eq(s.free_cores[0], 0);
    cr_expect_eq(s.free_memory_mib[0], 0);
}

Test(usage, counts_no_xpu_pods_to_their_host_pod)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "j", 0), 6, 1000);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 500);
    struct allocation *list[] = {on_cards(x, 1)};
    struct node_state s = state_of(list, 1, &h);
    cr_expect_eq(s.free_cores[0], CORES);
    cr_expect_eq(s.shared, 0);
}

/* --- services' shares --------------------------------------------------- */

static void declare(const char *services)
{
    char text[2048];
    struct error err = {0};
    int n = snprintf(text, sizeof text, "{\"services\":[%s]}", services);
    policy_unref(policy);
    policy = NULL;
    cr_assert_eq(policy_read(text, (size_t)n, &policy, &err), 0, "%s",
                 err.text);
}

#define HBN                                               \
    "{\"namespace\":\"ns\",\"name\":\"hbn\",\"cores\":6," \
    "\"memoryMiB\":1000,\"priority\":2}"
#define LOGS \
    "{\"namespace\":\"ns\",\"name\":\"logs\",\"cores\":4,\"priority\":1}"
#define BIG "{\"namespace\":\"ns\",\"name\":\"big\",\"cores\":12}"

static struct demand service(const char *pod, const char *name, uint32_t cores,
                             uint32_t memory_mib)
{
    struct demand d = sim_pod(pod, ROLE_SERVICE, name, 0);
    return cores || memory_mib ? sim_need(d, cores, memory_mib) : d;
}

static enum share_state share_of(struct allocation **list, size_t n,
                                 const char *name)
{
    struct usage_share shares[POLICY_SERVICES_MAX];
    const struct usage usage = {
        .topo = topo,
        .shape = shape,
        .node = "n1",
        .policy = policy,
        .allocations = (const struct allocation *const *)list,
        .n = n,
    };
    size_t n_shares = usage_shares(&usage, 0, shares);
    for (size_t i = 0; i < n_shares; i++)
        if (strcmp(shares[i].service->name, name) == 0)
            return shares[i].state;
    return SHARE_STATES;
}

Test(usage, keeps_a_declared_share_before_its_pod_is_there)
{
    declare(HBN);
    struct node_state s = state_of(NULL, 0, NULL);
    cr_expect_eq(s.free_cores[3], CORES - 6);
    cr_expect_eq(s.free_memory_mib[3], MIB - 1000);
    cr_expect_eq(s.cores[3], CORES - 6, "nor is it in an idle card");
    cr_expect_eq(s.occupied, 0, "nobody is there");
    cr_expect_eq(s.closed, 0);
    cr_expect_eq(s.shared, 15, "but it is nobody's alone");

    cr_expect_eq(s.reserved, 15);
    struct choice choice;
    struct demand job = sim_need(sim_pod("h", ROLE_HOST, "j", 0), CORES - 6, 1);
    cr_expect_eq(decide(&s, &job, 0, UINT16_MAX, &choice), REASON_NONE);
    job.card_cores++;
    cr_expect_eq(decide(&s, &job, 0, UINT16_MAX, &choice),
                 REASON_CARD_TOO_SMALL, "never, whoever leaves");
    job.card_cores = 1;
    job.exclusive = true;
    cr_expect_eq(decide(&s, &job, 0, UINT16_MAX, &choice),
                 REASON_CARDS_RESERVED);
    cr_expect(!reason_resolvable(REASON_CARDS_RESERVED));

    struct demand hbn = service("hbn-1", "hbn", 6, 1000);
    s = state_of(NULL, 0, &hbn);
    cr_expect_eq(s.free_cores[3], CORES);
    cr_expect_eq(s.free_memory_mib[3], MIB);
    cr_expect_eq(s.shared, 0);
}

Test(usage, counts_a_share_or_its_pods_whichever_is_more)
{
    declare(HBN);
    const uint32_t cores[] = {2, 6, 9};
    for (unsigned i = 0; i < 3; i++) {
        struct demand d = service("hbn-1", "hbn", cores[i], 1000);
        struct allocation *a = on_cards(d, 1);
        uint32_t used = cores[i] > 6 ? cores[i] : 6;
        struct node_state s = state_of(&a, 1, NULL);
        cr_expect_eq(s.free_cores[0], CORES - used, "%u", cores[i]);
        cr_expect_eq(s.free_cores[1], CORES - 6);
    }
    /* the declared share is the need of a pod that states none */
    struct demand d = service("hbn-1", "hbn", 0, 0);
    struct allocation *a = on_cards(d, 1);
    struct node_state s = state_of(&a, 1, NULL);
    cr_expect_eq(s.closed, 0);
    cr_expect_eq(s.free_cores[0], CORES - 6);
    /* the same name in no policy is anybody's */
    d = service("other", "other", 0, 0);
    a = on_cards(d, 1);
    cr_expect_eq(state_of(&a, 1, NULL).closed, 1);
}

Test(usage, selects_by_node_model_and_address)
{
    const struct device *card = topo_device(topo, 1);
    char text[512], pci[PCI_ADDR_TEXT_MAX];
    pci_addr_format(&card->pci, pci);
    (void)snprintf(text, sizeof text,
                   "{\"namespace\":\"ns\",\"name\":\"hbn\",\"cores\":6,"
                   "\"nodes\":\"n[1-3]\",\"pci\":\"%s\"}",
                   pci);
    declare(text);
    struct node_state s = state_of(NULL, 0, NULL);
    cr_expect_eq(s.free_cores[0], CORES);
    cr_expect_eq(s.free_cores[1], CORES - 6);
    cr_expect_eq(s.shared, 2);
    declare("{\"namespace\":\"ns\",\"name\":\"hbn\",\"cores\":6,"
            "\"nodes\":\"m*\"}");
    cr_expect_eq(state_of(NULL, 0, NULL).shared, 0);
    declare("{\"namespace\":\"ns\",\"name\":\"hbn\",\"cores\":6,"
            "\"models\":\"no such card\"}");
    cr_expect_eq(state_of(NULL, 0, NULL).shared, 0);
}

Test(usage, serves_shares_of_higher_priority_first)
{
    declare(BIG "," LOGS "," HBN); /* 6 + 4, and 12 more do not fit 16 */
    struct node_state s = state_of(NULL, 0, NULL);
    cr_expect_eq(s.free_cores[0], CORES - 10);
    cr_expect_eq(share_of(NULL, 0, "hbn"), SHARE_HELD);
    cr_expect_eq(share_of(NULL, 0, "logs"), SHARE_HELD);
    cr_expect_eq(share_of(NULL, 0, "big"), SHARE_NEVER);
    cr_expect_eq(share_of(NULL, 0, "none"), SHARE_STATES);

    /* a job was there first: what it leaves goes to hbn, then to logs */
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 9, 100);
    struct allocation *job = on_cards(x, 1);
    cr_expect_eq(share_of(&job, 1, "hbn"), SHARE_HELD);
    cr_expect_eq(share_of(&job, 1, "logs"), SHARE_SHORT);
    struct demand hbn = service("hbn-1", "hbn", 6, 1000);
    struct demand logs = service("logs-1", "logs", 4, 0);
    (void)allocation_ref(job);
    (void)allocation_ref(job);
    cr_expect_eq(state_of(&job, 1, NULL).free_cores[0], 0);
    cr_expect_eq(state_of(&job, 1, &hbn).free_cores[0], 6);
    cr_expect_eq(state_of(&job, 1, &logs).free_cores[0], 1);
}

Test(usage, keeps_nothing_from_the_pair_that_was_there_first)
{
    declare(HBN);
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "j", 0), CORES, 1000);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), CORES, 1000);
    struct allocation *host = on_cards(h, 1);
    cr_expect_eq(state_of(&host, 1, &x).free_cores[0], CORES,
                 "what its host pod was promised");
    h.exclusive = x.exclusive = true;
    host = on_cards(h, 1);
    struct node_state s = state_of(&host, 1, &x);
    cr_expect_eq(s.shared, 14, "it has the card alone already");
    h.exclusive = false;
    host = on_cards(h, 1);
    s = state_of(&host, 1, &x);
    cr_expect_eq(s.shared, 15, "it is too late to be alone");
}

Test(usage, opens_its_share_on_a_card_whose_need_is_not_known)
{
    declare(HBN);
    struct demand hbn = service("hbn-1", "hbn", 6, 1000);
    struct demand x = sim_pod("x", ROLE_XPU, "j", 0);
    struct allocation *job = on_cards(x, 1);
    struct node_state s = state_of(&job, 1, &hbn);
    cr_expect_eq(s.closed, 0);
    cr_expect_eq(s.free_cores[0], 6, "the rest may be the job's");
    x.exclusive = true;
    job = on_cards(x, 1);
    cr_expect_eq(share_of(&job, 1, "hbn"), SHARE_SHORT);
    cr_expect_eq(state_of(&job, 1, &hbn).closed, 1, "until it leaves");
}

/* Equal use gives equal bytes, in whatever order it came. */
Test(usage, does_not_depend_on_the_order)
{
    struct node_state first;
    for (unsigned turn = 0; turn < 24; turn++) {
        struct demand d[4] = {
            sim_need(sim_pod("h", ROLE_HOST, "j", 0), 6, 1000),
            sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 500),
            sim_pod("g", ROLE_HOST, "j", 1),
            sim_need(sim_pod("v", ROLE_SERVICE, "", 0), 1, 1)};
        struct allocation *list[4];
        for (unsigned i = 0; i < 4; i++)
            list[i] = on_cards(d[i], 1u << i | 1u);
        for (unsigned i = 3, t = turn; i > 0; t /= i + 1, i--) {
            struct allocation *held = list[i];
            list[i] = list[t % (i + 1)];
            list[t % (i + 1)] = held;
        }
        struct node_state s = state_of(list, 4, NULL);
        if (turn == 0)
            memcpy(&first, &s, sizeof s);
        cr_assert_eq(memcmp(&first, &s, sizeof s), 0);
    }
}
