/* What /metrics tells of the fleet, by relation, leaf and quota. */
#include "extender/gauge/fleet_gauges.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/decide/policy.h"
#include "tests/lib/sim/simfabric.h"
#include "tests/lib/sim/simstate.h"

static struct writer *w;
static struct fleet_tally *tally;
static struct achieved_book *book;
static struct str out;

static void start(void)
{
    w = sim_writer(NULL);
    tally = fleet_tally_create();
    book = achieved_book_create();
    str_init(&out, STR_MAX_DEFAULT);
}

static void stop(void)
{
    str_fini(&out);
    fleet_tally_destroy(tally);
    achieved_book_destroy(book);
    writer_stop(w);
}

TestSuite(fleet_gauges, .init = start, .fini = stop);

static void expect(const char *line)
{
    cr_expect(strstr(str_text(&out), line), "no %s in %s", line,
              str_text(&out));
}

static void write_now(void)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    struct fleet_counts counts;
    str_reset(&out);
    fleet_tally_get(tally, s, book, &counts);
    fleet_gauges_write(s, &counts, &out);
    fleet_counts_fini(&counts);
}

static void place(const char *pod, const char *node)
{
    struct demand d = sim_need(sim_pod(pod, ROLE_XPU, "", 0), 4, 1024);
    struct error err;
    cr_assert_eq(sim_publish(w, node, 2, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &d, node, NULL, &err), 0, "%s", err.text);
}

Test(fleet_gauges, has_the_heads_of_an_empty_fleet)
{
    write_now();
    expect("# TYPE biga_leaf_cards gauge\n");
    expect("biga_allocation_relations{relation=\"PIX\"} 0\n");
    cr_expect_null(strstr(str_text(&out), "\nbiga_leaf_cards{"));
    cr_expect_null(strstr(str_text(&out), "\nbiga_quota_used{"));
}

Test(fleet_gauges, counts_what_leaves_have)
{
    struct fabric *f = simfabric_read("SwitchName=l1 Nodes=n[0-1]\n"
                                      "SwitchName=l2 Nodes=n2\n"
                                      "SwitchName=s Switches=l[1-2]\n");
    struct writer_op op = {.kind = WRITER_SET_FABRIC, .fabric = f};
    (void)writer_run(w, &op);
    place("p", "n0");
    cr_assert_eq(sim_publish(w, "n1", 2, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n9", 2, "boot", 1), 0);
    write_now();
    expect("biga_leaf_cards{leaf=\"l1\",state=\"idle\"} 3\n");
    expect("biga_leaf_cards{leaf=\"l1\",state=\"other\"} 1\n");
    expect("biga_leaf_cards{leaf=\"l2\",state=\"idle\"} 0\n");
    expect("biga_leaf_card_cores{leaf=\"l2\"} 0\n");
    cr_expect_null(strstr(str_text(&out), "leaf=\"s\""), "a spine is no leaf");
    /* four cards, less what the pod has */
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    uint32_t each = snapshot_node(s, 1)->state.free_cores[0];
    cleanup_free char *cores =
        xasprintf("biga_leaf_card_cores{leaf=\"l1\"} %u\n", 4 * each - 4);
    expect(cores);
    fabric_unref(f);
}

Test(fleet_gauges, counts_relations_of_the_bound_alone)
{
    place("p", "n0");
    place("q", "n1");
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = snapshot_node(s, 0)->allocations[0];
    cleanup_free char *line =
        xasprintf("biga_allocation_relations{relation=\"%s\"} 2\n",
                  relation_name(a->relation));
    write_now();
    expect(line);
}

Test(fleet_gauges, tells_use_and_limits_of_quotas)
{
    static const char text[] =
        "{\"quotas\":[{\"namespace\":\"ns\",\"cards\":3},"
        "{\"namespace\":\"other\",\"cardCores\":9}]}";
    struct policy *p = NULL;
    struct error err = {0};
    cr_assert_eq(policy_read(text, sizeof text - 1, &p, &err), 0, "%s",
                 err.text);
    struct writer_op op = {.kind = WRITER_SET_POLICY, .policy = p};
    (void)writer_run(w, &op);
    place("p", "n0");
    write_now();
    expect("biga_quota_used{namespace=\"ns\",resource=\"cards\"} 1\n");
    expect("biga_quota_used{namespace=\"ns\",resource=\"card-cores\"} 4\n");
    expect("biga_quota_limit{namespace=\"ns\",resource=\"cards\"} 3\n");
    expect("biga_quota_used{namespace=\"other\",resource=\"cards\"} 0\n");
    expect("biga_quota_limit{namespace=\"other\",resource=\"card-cores\"} 9\n");
    cr_expect_null(strstr(str_text(&out), "biga_quota_limit{namespace=\"ns\","
                                          "resource=\"card-cores\"}"),
                   "what is not limited has no limit");
    policy_unref(p);
}
