/* A topology without names. */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/decide/decide.h"
#include "model/decide/shape.h"
#include "model/topo/card_rights.h"
#include "model/topo/topo_builder.h"

DEFINE_CLEANUP(shape, struct shape *, shape_destroy)

static void add_numa(struct topo_builder *b, int index, int package)
{
    cleanup_free char *id = xasprintf("numa-%d", index);
    struct device d = {.kind = DEVICE_NUMA,
                       .id = id,
                       .numa = index,
                       .package = package,
                       .cpus = 16};
    topo_builder_add(b, &d, NULL);
}

/* A device on `bus`, under the bridge `path` of the host bridge `root`. */
static struct device pci_device(enum device_kind kind, uint8_t root,
                                const struct pci_addr *path, uint8_t bus)
{
    return (struct device){.kind = kind,
                           .numa = -1,
                           .package = -1,
                           .has_pci = true,
                           .pci = {.bus = bus},
                           .root_bus = root,
                           .n_path = path ? 1 : 0,
                           .path = path,
                           .cores = 16,
                           .memory_mib = 32768,
                           .arch = "arm64"};
}

static void add(struct topo_builder *b, struct device d, int numa, int package)
{
    char id[TOPO_ID_MAX + 1];
    device_id_format(d.kind, &d.pci, id);
    d.id = id;
    d.numa = numa;
    d.package = package;
    if (d.kind == DEVICE_CARD) {
        d.n_functions = 1;
        d.functions = &d.pci;
    }
    topo_builder_add(b, &d, NULL);
}

/* Cards 0 and 1 behind one switch and card 2 beside them on NUMA node 0,
 * card 3 on NUMA node 1 of the same package, card 4 in the other package,
 * card 5 of unknown place; a GPU behind the first switch. */
static struct topo *example(const char *name)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(name);
    static const struct pci_addr one = {.bus = 1, .device = 1};
    static const struct pci_addr two = {.bus = 1, .device = 2};
    struct topo *topo = NULL;
    struct error err = {0};
    struct device long_arch = pci_device(DEVICE_CARD, 5, NULL, 0x50);
    long_arch.arch = "an-architecture-of-20";
    long_arch.devices = "rdma snap";
    long_arch.rights = "2001000000004000";
    add_numa(b, 0, 0);
    add_numa(b, 2, 0);
    add_numa(b, 5, 1);
    add(b, pci_device(DEVICE_CARD, 1, &one, 0x10), 0, 0);
    add(b, pci_device(DEVICE_CARD, 1, &one, 0x11), 0, 0);
    add(b, pci_device(DEVICE_CARD, 1, &two, 0x12), 0, 0);
    add(b, pci_device(DEVICE_CARD, 3, NULL, 0x30), 2, 0);
    add(b, pci_device(DEVICE_CARD, 4, NULL, 0x40), 5, 1);
    add(b, long_arch, -1, -1);
    add(b, pci_device(DEVICE_GPU, 1, &one, 0x13), 0, 0);
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    return topo;
}

Test(shape, relations_and_names)
{
    cleanup_with(topo) struct topo *topo = example("n1");
    cleanup_with(shape) struct shape *s = shape_create(topo);
    cr_assert_eq(s->n_cards, 6);
    cr_assert_eq(s->n_gpus, 1);
    cr_assert_eq(s->n_numas, 3);
    static const uint8_t first_card[] = {RELATION_PIX, RELATION_PIX,
                                         RELATION_PHB, RELATION_SOCKET,
                                         RELATION_SYS, RELATION_SYS};
    for (unsigned c = 1; c < 6; c++)
        cr_assert_eq(s->card_card[0][c], first_card[c], "%u", c);
    for (unsigned c = 0; c < 6; c++)
        for (unsigned d = 0; d < 6; d++)
            cr_assert_eq(s->card_card[c][d], s->card_card[d][c]);
    cr_assert_eq(s->card_gpu[1][0], RELATION_PIX);
    cr_assert_eq(s->card_gpu[2][0], RELATION_PHB);
    cr_assert_eq(s->card_gpu[4][0], RELATION_SYS);
    cr_assert_eq(s->card_numa[0][0], RELATION_NODE);
    cr_assert_eq(s->card_numa[0][1], RELATION_SOCKET);
    cr_assert_eq(s->card_numa[0][2], RELATION_SYS);
    cr_assert_eq(s->card_numa[5][0], RELATION_SYS);
    cr_assert_eq(s->numa_id[0], 0);
    cr_assert_eq(s->numa_id[1], 2);
    cr_assert_eq(s->numa_id[2], 5);
    cr_assert_str_eq(s->arch[0], "arm64");
    cr_assert_str_eq(s->arch[5], "", "too long to be asked for: unknown");
    cr_assert_str_eq(s->devices[0].text, "");
    cr_assert_str_eq(s->devices[5].text, "rdma snap");
    cr_assert_eq(s->told, 1u << 5);
    cr_assert_eq(s->rights[5], CARD_RIGHTS_PRIVILEGED |
                                   CARD_RIGHTS_SET_LOCKS(0) |
                                   CARD_RIGHTS_IPC_LOCK);
}

static bool has_group(const struct shape *s, uint16_t group)
{
    for (unsigned i = 0; i < s->n_groups; i++)
        if (s->groups[i] == group)
            return true;
    return false;
}

Test(shape, aligned_groups)
{
    cleanup_with(topo) struct topo *topo = example("n1");
    cleanup_with(shape) struct shape *s = shape_create(topo);
    cr_assert(has_group(s, 0x03), "behind one switch");
    cr_assert(has_group(s, 0x07), "on one NUMA node");
    cr_assert(has_group(s, 0x0f), "in one package");
    cr_assert(has_group(s, 0x3f), "all");
    cr_assert_eq(s->n_groups, 4, "each once, and none of one card");
}

/* Every set of cards once, by size, then tightness, then bits. */
Test(shape, subsets)
{
    cleanup_with(topo) struct topo *topo = example("n1");
    cleanup_with(shape) struct shape *s = shape_create(topo);
    uint8_t seen[64] = {0};
    cr_assert_eq(s->first[0], 0);
    cr_assert_eq(s->first[7], 64);
    cr_assert_eq(s->first[TOPO_CARDS_MAX + 1], 64);
    for (unsigned k = 0; k <= 6; k++)
        for (uint32_t i = s->first[k]; i < s->first[k + 1]; i++) {
            struct shape_subset at = s->subsets[i];
            unsigned sum = 0;
            for (unsigned c = 0; c < 6; c++)
                for (unsigned d = 0; d < c; d++)
                    if (at.cards >> c & 1 && at.cards >> d & 1)
                        sum += s->card_card[c][d];
            cr_assert_eq(at.spread, sum);
            cr_assert_eq(__builtin_popcount(at.cards), (int)k);
            cr_assert_eq(seen[at.cards]++, 0);
            if (i == s->first[k])
                continue;
            struct shape_subset before = s->subsets[i - 1];
            cr_assert(before.spread < at.spread ||
                      (before.spread == at.spread && before.cards < at.cards));
        }
}

Test(shape, sixteen_cards_and_none)
{
    cleanup_free struct shape *content = xcalloc(1, sizeof *content);
    cleanup_with(shape) struct shape *none = shape_create_from(content);
    cr_assert_eq(none->first[1], 1);
    cr_assert_eq(none->first[TOPO_CARDS_MAX + 1], 1);
    content->n_cards = 16;
    memset(content->card_card, RELATION_SYS, sizeof content->card_card);
    cleanup_with(shape) struct shape *many = shape_create_from(content);
    cr_assert_eq(many->first[17], 65536);
    cr_assert_eq(many->first[9] - many->first[8], 12870);
    cr_assert_eq(many->subsets[65535].spread, 120 * RELATION_SYS);
    cr_assert_eq(many->subsets[65535].cards, 0xffff);
}

/* The same hardware on another node is the same shape; any other is not. */
Test(shape, equality)
{
    cleanup_with(topo) struct topo *one = example("n1");
    cleanup_with(topo) struct topo *two = example("n2");
    cleanup_with(shape) struct shape *a = shape_create(one);
    cleanup_with(shape) struct shape *b = shape_create(two);
    cr_assert(shape_equal(a, b));
    cr_assert_eq(a->hash, b->hash);
    cleanup_free struct shape *content = xmemdup(a, sizeof *a);
    content->card_gpu[2][0] = RELATION_SYS;
    cleanup_with(shape) struct shape *other = shape_create_from(content);
    cr_assert(!shape_equal(a, other));
    other->hash = a->hash;
    cr_assert(!shape_equal(a, other), "equal hashes are not enough");
}

Test(shape, state_of_an_idle_node)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("n1");
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err = {0};
    struct device d[4];
    for (unsigned i = 0; i < 4; i++)
        d[i] = pci_device(DEVICE_CARD, 1, NULL, (uint8_t)(0x10 + i));
    d[1].unhealthy = true;
    d[2].cores = 0;
    d[3].memory_mib = UINT64_C(1) << 40;
    for (unsigned i = 0; i < 4; i++)
        add(b, d[i], -1, -1);
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    cleanup_with(shape) struct shape *s = shape_create(topo);
    struct node_state state;
    memset(&state, 0xee, sizeof state);
    node_state_init(&state, topo, s);
    cr_assert_eq(state.shape, s);
    cr_assert_eq(state.usable, 0xd, "healthy");
    cr_assert_eq(state.cores[0], 16);
    cr_assert_eq(state.free_cores[0], 16);
    cr_assert_eq(state.free_memory_mib[0], 32768);
    cr_assert_eq(state.free_memory_mib[3], UINT32_MAX);
    cr_assert_eq(state.free_cores[1], 0);
    cr_assert_eq(state.free_cores[2], 1, "unknown: what every card has");
    cr_assert_eq(state.closed | state.occupied | state.shared | state.gpus_used,
                 0);
}
