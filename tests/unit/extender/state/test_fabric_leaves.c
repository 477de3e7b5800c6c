/* A snapshot's nodes hang where its fabric says, whatever came first. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/state/draft.h"
#include "extender/state/snapshot.h"
#include "lib/base/mem.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/sim/simfabric.h"
#include "tests/lib/sim/simfleet.h"

static void put(struct draft *d, const char *name, const char *guid)
{
    struct error err = {0};
    cleanup_with(topo) struct topo *topo = NULL;
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(name);
    topo_builder_add(b,
                     &(struct device){.kind = DEVICE_NIC,
                                      .id = "nic-0",
                                      .numa = -1,
                                      .package = -1,
                                      .root_domain = TOPO_ROOT_NONE},
                     &(struct identity){.guid = guid});
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    simfleet_put(d, topo);
}

static struct snapshot *commit(struct draft *d, struct snapshot *base)
{
    struct snapshot *s = draft_commit(d);
    snapshot_unref(base);
    return s;
}

static const char *leaf_name(const struct snapshot *s, const char *node)
{
    int32_t i = snapshot_find(s, node, strlen(node));
    cr_assert_neq(i, NODE_NONE, "%s", node);
    const struct fabric_domain *d = fabric_domain(s->fabric,
                                                  snapshot_leaf(s, (size_t)i));
    return d ? d->name : "-";
}

static const char tree[] =
    "{\"switches\":[{\"name\":\"x\"},{\"name\":\"y\"}],\"hosts\":["
    "{\"name\":\"b\",\"leaf\":\"y\"},"
    "{\"name\":\"a\",\"ports\":[{\"leaf\":\"x\",\"guid\":\"aa\"}]},"
    "{\"name\":\"m\",\"ports\":[{\"leaf\":\"y\",\"guid\":\"cc\"}]}]}";

Test(fabric_leaves, follow_nodes_and_fabric)
{
    cleanup_with(fabric) struct fabric *f = simfabric_read(tree);
    struct snapshot *s = snapshot_create_empty();
    struct draft *d = draft_create(s);
    put(d, "a", "");
    put(d, "b", "");
    put(d, "c.example", "0000:0000:0000:00cc");
    put(d, "u", "dd");
    s = commit(d, s);
    cr_expect_null(s->fabric);
    cr_expect_eq(snapshot_leaf(s, 0), FABRIC_NONE);

    d = draft_create(s);
    draft_set_fabric(d, f);
    s = commit(d, s);
    cr_expect_eq(s->fabric, f);
    cr_expect_str_eq(leaf_name(s, "a"), "x");
    cr_expect_str_eq(leaf_name(s, "b"), "y");
    cr_expect_str_eq(leaf_name(s, "c.example"), "y", "by its adapter");
    cr_expect_str_eq(leaf_name(s, "u"), "-");

    /* nodes that come, go and change move others, not their leaves */
    struct snapshot *before = snapshot_ref(s);
    d = draft_create(s);
    put(d, "a0", "aa");
    draft_remove_node(d, "a");
    draft_set_status(d, "b", NODE_STALE);
    put(d, "u", "aa");
    s = commit(d, s);
    cr_expect_str_eq(leaf_name(s, "a0"), "x");
    cr_expect_str_eq(leaf_name(s, "b"), "y");
    cr_expect_str_eq(leaf_name(s, "u"), "x");
    cr_expect_str_eq(leaf_name(before, "u"), "-",
                     "the one before is as it was");

    d = draft_create(s);
    draft_renew(d);
    s = commit(d, s);
    cr_expect_str_eq(leaf_name(s, "c.example"), "y");

    /* another fabric, with nodes that are new in the same draft */
    cleanup_with(fabric) struct fabric *g =
        simfabric_read("SwitchName=z Nodes=b,v\n");
    d = draft_create(s);
    put(d, "v", "");
    draft_set_fabric(d, g);
    put(d, "w", "");
    s = commit(d, s);
    cr_expect_str_eq(leaf_name(s, "b"), "z");
    cr_expect_str_eq(leaf_name(s, "v"), "z");
    cr_expect_str_eq(leaf_name(s, "w"), "-");
    cr_expect_str_eq(leaf_name(s, "a0"), "-");

    d = draft_create(s);
    draft_set_fabric(d, NULL);
    s = commit(d, s);
    cr_expect_null(s->fabric);
    for (size_t i = 0; i < s->n_nodes; i++)
        cr_expect_eq(snapshot_leaf(s, i), FABRIC_NONE);
    snapshot_unref(before);
    snapshot_unref(s);
}

/* More than a page, so that pages are copied and made anew. */
Test(fabric_leaves, of_many_nodes)
{
    enum { N = 700 };
    cleanup_with(fabric) struct fabric *f = simfabric_read(
        "SwitchName=x Nodes=n[000-349]\n"
        "SwitchName=y Nodes=n[350-699]\n");
    struct snapshot *s = snapshot_create_empty();
    struct draft *d = draft_create(s);
    char name[16];
    draft_set_fabric(d, f);
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "n%03u", i * 11 % N);
        put(d, name, "");
    }
    s = commit(d, s);
    struct snapshot *first = snapshot_ref(s);
    d = draft_create(s);
    draft_remove_node(d, "n100");
    draft_set_status(d, "n300", NODE_STALE);
    s = commit(d, s);
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "n%03u", i);
        cr_expect_str_eq(leaf_name(first, name), i < 350 ? "x" : "y");
        if (i != 100)
            cr_expect_str_eq(leaf_name(s, name), i < 350 ? "x" : "y");
    }
    snapshot_unref(first);
    snapshot_unref(s);
}
