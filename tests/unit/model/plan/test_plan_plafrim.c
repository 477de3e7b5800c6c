/* Jobs on plafrim: its real hosts on its real InfiniBand fabric.  None of
 * them has a DPU, so their Mellanox adapters count as the cards here. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <string.h>

#include "model/plan/plan.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/machine.h"
#include "tests/lib/randnode.h"
#include "tests/lib/testdata.h"

enum { HOSTS_MAX = 512, LEAVES_MAX = 16, MELLANOX = 0x15b3 };

struct site {
    struct fabric *fabric;
    size_t n;
    struct topo *topos[HOSTS_MAX];
    struct shape *shapes[HOSTS_MAX];
    struct node_state idle[HOSTS_MAX], now[HOSTS_MAX];
    const struct node_state *states[HOSTS_MAX];
    int32_t leaves[HOSTS_MAX];
};

static struct site site;

/* The same machine with its adapters as cards. */
static struct topo *adapters_as_cards(const char *host)
{
    cleanup_free char *path = xasprintf("fabric/plafrim/hwloc/%s.xml", host);
    cleanup_with(topo) struct topo *probed = machine_probe(path);
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("host");
    struct topo *topo = NULL;
    struct error err;
    for (size_t i = 0; i < topo_n_devices(probed); i++) {
        struct device device = *topo_device(probed, i);
        if (device.kind == DEVICE_CARD)
            continue;
        if (device.kind == DEVICE_NIC && device.vendor_id == MELLANOX &&
            device.rdma[0])
            device.kind = DEVICE_CARD;
        topo_builder_add(b, &device, NULL);
    }
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s: %s", host, err.text);
    return topo;
}

static void add_host(const struct fabric_host *host)
{
    cleanup_free char *path = xasprintf("%s/fabric/plafrim/hwloc/%s.xml",
                                        machine_dir(), host->name);
    if (access(path, R_OK) != 0 || site.n == HOSTS_MAX)
        return;
    size_t i = site.n++;
    site.topos[i] = adapters_as_cards(host->name);
    site.shapes[i] = shape_create(site.topos[i]);
    node_state_init(&site.idle[i], site.topos[i], site.shapes[i]);
    site.states[i] = &site.now[i];
    site.leaves[i] = host->leaf;
}

static void set_up(void)
{
    cleanup_free char *path =
        xasprintf("%s/fabric/plafrim/ib-raw/ib-subnet-fe80:0000:0000:0000.txt",
                  machine_dir());
    size_t size;
    struct error err;
    cleanup_free char *dump = testdata_read(path, &size);
    struct fabric_source source = {"plafrim", dump, size, FABRIC_AUTO};
    cr_assert_eq(fabric_read(&source, 1, NULL, &site.fabric, &err), 0, "%s",
                 err.text);
    for (size_t i = 0; i < fabric_n_hosts(site.fabric); i++)
        add_host(fabric_host(site.fabric, i));
    cr_assert(site.n >= 100, "%zu hosts", site.n);
}

static void tear_down(void)
{
    for (size_t i = 0; i < site.n; i++) {
        shape_destroy(site.shapes[i]);
        topo_unref(site.topos[i]);
    }
    fabric_unref(site.fabric);
    memset(&site, 0, sizeof site);
}

TestSuite(plan_plafrim, .init = set_up, .fini = tear_down, .timeout = 300);

/* Most hosts have their adapters taken, so that no leaf has much room. */
static void load(unsigned percent)
{
    struct demand d = {.role = ROLE_HOST, .cards = 1, .align = RELATION_SYS};
    for (size_t i = 0; i < site.n; i++) {
        struct choice choice;
        site.now[i] = site.idle[i];
        while (odds(percent) &&
               decide(&site.now[i], &d, 0, UINT16_MAX, &choice) == REASON_NONE)
            node_state_take(&site.now[i], &d, &choice);
    }
}

/* --- by exhaustion ------------------------------------------------------ */

struct leaf {
    int32_t domain;
    unsigned room;
};

static size_t list_leaves(struct leaf leaves[LEAVES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < site.n; i++) {
        const struct node_state *state = &site.now[i];
        size_t k = 0;
        while (k < n && leaves[k].domain != site.leaves[i])
            k++;
        if (k == n) {
            cr_assert(n < LEAVES_MAX && site.leaves[i] >= 0);
            leaves[n++] = (struct leaf){site.leaves[i], 0};
        }
        leaves[k].room += (unsigned)__builtin_popcount(state->usable &
                                                       ~state->closed);
    }
    return n;
}

/* Of all sets of leaves with the room the lowest tier, then the fewest. */
static bool best_leaves(uint32_t size, unsigned *ret_tier, unsigned *ret_leaves)
{
    struct leaf leaves[LEAVES_MAX];
    size_t n = list_leaves(leaves);
    bool found = false;
    for (unsigned set = 1; set < 1u << n; set++) {
        unsigned room = 0, tier = 0, count = 0, first = 0;
        while (!(set >> first & 1))
            first++;
        for (unsigned k = first; k < n; k++) {
            if (!(set >> k & 1))
                continue;
            unsigned common = fabric_common_tier(
                site.fabric, leaves[first].domain, leaves[k].domain);
            tier = common > tier ? common : tier;
            room += leaves[k].room;
            count++;
        }
        if (room < size ||
            (found &&
             (tier > *ret_tier || (tier == *ret_tier && count >= *ret_leaves))))
            continue;
        found = true;
        *ret_tier = tier;
        *ret_leaves = count;
    }
    return found;
}

Test(plan_plafrim, crosses_the_fewest_leaves)
{
    struct demand d = {.role = ROLE_HOST,
                       .cards = 1,
                       .align = RELATION_SYS,
                       .prefer_align = RELATION_SYS};
    struct plan_cluster cluster = {.fabric = site.fabric,
                                   .n_nodes = site.n,
                                   .states = site.states,
                                   .leaves = site.leaves};
    unsigned planned = 0, refused = 0, several = 0;
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned round = 0; round < 60; round++) {
        load(70 + roll(30));
        for (uint32_t size = 1; size <= 8; size++) {
            struct plan_job job = {.size = size,
                                   .shapes = &d,
                                   .n_shapes = 1,
                                   .within = PLAN_ANYWHERE,
                                   .prefer_within = PLAN_ANYWHERE,
                                   .pin_rank = -1,
                                   .pin_node = -1};
            cleanup_with(plan) struct plan *plan = NULL;
            struct plan_refusal no;
            unsigned tier = 0, leaves = 0;
            bool fits = best_leaves(size, &tier, &leaves);
            int rc = plan_make(&cluster, &job, &plan, &no);
            cr_assert_eq(rc, fits ? 0 : -EBUSY, "round %u, %u pairs", round,
                         size);
            planned += fits;
            refused += !fits;
            if (!fits)
                continue;
            several += leaves > 1;
            cr_assert_eq(plan->score.tier, tier, "round %u, %u pairs", round,
                         size);
            cr_assert_eq(plan->score.leaves, leaves, "round %u, %u pairs",
                         round, size);
            cr_assert_eq(plan->score.crossings, leaves - 1);
        }
    }
    cr_log_info("%zu hosts: %u jobs of 1 to 8 pairs on the fewest leaves, %u "
                "of them on several; %u have no room",
                site.n, planned, several, refused);
    cr_assert(several > 20, "%u", several);
}
