#include <criterion/criterion.h>
#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

/* --- what an object says -------------------------------------------------- */

#define DPF(spec, status)                                             \
    "{\"metadata\":{\"namespace\":\"dpf\",\"name\":\"d0\"},\"spec\":" \
    "{" spec "},\"status\":{" status "}}"
#define UNIT(spec, status)                                                    \
    "{\"metadata\":{\"name\":\"u0\"},\"spec\":{" spec "},\"status\":{" status \
    "}}"
#define NODE "\"dpuNodeName\":\"n1\""
#define COND(type, status, reason)                                          \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason \
    "\"}"

static struct dpu_object read_as(enum dpu_kind kind, const char *json)
{
    struct dpu_object dpu = {0};
    struct error err = {0};
    int r = dpu_object_read(kind, json, strlen(json), &dpu, &err);
    cr_assert_eq(r, 0, "%s: %s", json, err.text);
    return dpu;
}

static void expect_why(enum dpu_kind kind, const char *json, const char *why)
{
    struct dpu_object dpu = read_as(kind, json);
    cr_expect_str_eq(dpu.bar.why, why);
    cr_expect_eq(dpu.ready, !*why);
}

Test(dpu_object, a_dpu_of_dpf_is_ready_by_its_phase_and_conditions)
{
    static const struct {
        const char *json, *why;
    } cases[] = {
        {DPF(NODE, "\"phase\":\"Ready\""), ""},
        {DPF(NODE, "\"phase\":\"Ready\",\"conditions\":[" COND("Ready", "True",
                                                               "ok") "]"),
         ""},
        {DPF(NODE, "\"phase\":\"OS Installing\",\"conditions\":[" COND(
                       "Ready", "False", "x") "]"),
         "DPU dpf/d0 of DPF: phase \"OS Installing\""},
        {DPF(NODE, ""), "DPU dpf/d0 of DPF: phase \"Initializing\""},
        {DPF(NODE, "\"phase\":\"Ready\",\"conditions\":[" COND(
                       "Other", "False", "x") "," COND("Ready", "Unknown",
                                                       "Lost") "]"),
         "DPU dpf/d0 of DPF: condition Ready is \"Unknown\" (Lost)"},
        {DPF(NODE, "\"phase\":\"Ready\",\"operationalConditions\":[" COND(
                       "OperationalReady", "Unknown", "x") "]"),
         ""},
        {DPF(NODE, "\"phase\":\"Ready\",\"operationalConditions\":[" COND(
                       "OperationalReady", "False", "Deadlock") "]"),
         "DPU dpf/d0 of DPF: condition OperationalReady is \"False\" "
         "(Deadlock)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_why(DPU_OF_DPF, cases[i].json, cases[i].why);
}

Test(dpu_object, a_data_processing_unit_is_ready_by_its_condition)
{
    static const char who[] = "DataProcessingUnit u0 of the OpenShift DPU "
                              "operator: ";
    cleanup_free char *none = xasprintf("%sit has no condition Ready yet", who);
    cleanup_free char *no = xasprintf("%scondition Ready is \"False\"", who);
    expect_why(DPU_OF_OPENSHIFT,
               UNIT("\"nodeName\":\"n1\"",
                    "\"conditions\":[" COND("Ready", "True", "x") "]"),
               "");
    expect_why(DPU_OF_OPENSHIFT, UNIT("\"nodeName\":\"n1\"", ""), none);
    expect_why(DPU_OF_OPENSHIFT,
               UNIT("\"nodeName\":\"n1\",\"isDpuSide\":false",
                    "\"conditions\":[" COND("Ready", "False", "") "]"),
               no);
    struct dpu_object dpu = read_as(
        DPU_OF_OPENSHIFT, UNIT("\"nodeName\":\"n1\",\"isDpuSide\":true", ""));
    cr_expect_str_eq(dpu.node, "");
}

Test(dpu_object, a_card_is_told_by_address_and_serial)
{
    static const char *const same[] = {"0000-03-00", "03-00", "0000:03:00",
                                       "0000:03:00.1"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        cleanup_free char *json = xasprintf(
            DPF(NODE ",\"serialNumber\":\"MT1\",\"pciAddress\":\"%s\"", ""),
            same[i]);
        struct dpu_object dpu = read_as(DPU_OF_DPF, json);
        cr_expect(dpu.bar.has_pci && dpu.bar.pci.domain == 0 &&
                      dpu.bar.pci.bus == 3 && dpu.bar.pci.device == 0,
                  "%s", same[i]);
        cr_expect_str_eq(dpu.bar.serial, "MT1");
        cr_expect_str_eq(dpu.node, "n1");
    }
    struct dpu_object older = read_as(DPU_OF_DPF,
                                      DPF("\"nodeName\":\"n2\"", ""));
    cr_expect(!older.bar.has_pci && !older.bar.serial[0]);
    cr_expect_str_eq(older.node, "n2");
}

Test(dpu_object, what_is_refused_is_named_with_its_value)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {DPF("", ""), "spec.dpuNodeName: is missing, must be the name of a "
                      "node"},
        {DPF("\"dpuNodeName\":7", ""), "spec.dpuNodeName: is 7, must be a text "
                                       "of at most 253 bytes"},
        {DPF(NODE ",\"pciAddress\":\"3\"", ""),
         "spec.pciAddress: is \"3\", must be a PCI address, such as "
         "0000-03-00"},
        {DPF(NODE, "\"phase\":{}"),
         "status.phase: is {}, must be a text of at most 64 bytes"},
        {DPF(NODE, "\"conditions\":{\"a\":1}"),
         "status.conditions: is {\"a\":1}, must be a list of conditions"},
        {DPF(NODE, "\"conditions\":[7]"),
         "status.conditions: is [7], must be a list of conditions"},
        {DPF(NODE, "\"conditions\":[" COND("Ready", "Perhaps", "") "]"),
         "status.conditions[Ready].status: is \"Perhaps\", must be True, False "
         "or Unknown"},
        {"{\"metadata\":{\"name\":\"x\"},\"spec\":7}", "object"},
        {"{}", "metadata.name: is missing, must be a name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dpu_object dpu = {0};
        struct error err = {0};
        cr_expect_eq(dpu_object_read(DPU_OF_DPF, cases[i].json,
                                     strlen(cases[i].json), &dpu, &err),
                     -EINVAL, "%s", cases[i].json);
        cr_expect(strstr(err.text, cases[i].text), "%s", err.text);
    }
}

/* --- what comes of it ------------------------------------------------------ */

static struct writer *w;
static struct feed *feed;
static struct cluster_dpus *dpus;
static struct cluster_dpus_of *dpf, *units;

static void set_up(void)
{
    w = sim_writer(NULL);
    feed = feed_create(w);
    dpus = cluster_dpus_create(feed);
    dpf = cluster_dpus_of(dpus, DPU_OF_DPF);
    units = cluster_dpus_of(dpus, DPU_OF_OPENSHIFT);
    cr_assert_eq(sim_publish(w, "n1", 1, "boot", 1), 0);
    cr_assert_eq(sim_publish(w, "n2", 2, "boot", 1), 0);
}

static void tear_down(void)
{
    feed_destroy(feed);
    cluster_dpus_destroy(dpus);
    writer_stop(w);
}

TestSuite(cluster_dpus, .init = set_up, .fini = tear_down);

/* Why card `i` of the node is barred, "" when it is not. */
static void expect_card(const char *node, size_t i, const char *why)
{
    writer_sweep(w); /* after all that is queued */
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t at = snapshot_find(s, node, strlen(node));
    cr_assert(at >= 0);
    const struct node *n = snapshot_node(s, (size_t)at);
    const struct device *d = topo_device(n->topo, i);
    cr_expect_str_eq(d->barred, why, "%s of %s: \"%s\", not \"%s\"", d->id,
                     node, d->barred, why);
    cr_expect_eq(d->unhealthy, *why != '\0');
    cr_expect_eq(n->state.usable >> i & 1, !*why);
}

static void put(struct cluster_dpus_of *of, const char *name, const char *spec,
                const char *status)
{
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s},\"status\":{%s}}", name,
        spec, status);
    cluster_dpus_handler.put(of, json, strlen(json));
}

static void gone(struct cluster_dpus_of *of, const char *name)
{
    cleanup_free char *json = xasprintf("{\"metadata\":{\"name\":\"%s\"}}",
                                        name);
    cluster_dpus_handler.gone(of, json, strlen(json));
}

#define ERROR "\"phase\":\"Error\""
#define READY "\"phase\":\"Ready\""
#define WHY(name) "DPU " name " of DPF: phase \"Error\""

Test(cluster_dpus, a_card_is_barred_while_its_dpu_is_not_ready)
{
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", ERROR);
    expect_card("n1", 0, WHY("a"));
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", READY);
    expect_card("n1", 0, "");
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", ERROR);
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", "\"phase\":7"); /* malformed */
    expect_card("n1", 0, WHY("a"));
    gone(dpf, "a");
    expect_card("n1", 0, "");
}

Test(cluster_dpus, what_a_gap_took_is_forgotten_and_the_malformed_kept)
{
    cluster_dpus_handler.list(dpf);
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", ERROR);
    cluster_dpus_handler.listed(dpf);
    cluster_dpus_handler.list(dpf);
    put(dpf, "a", "\"dpuNodeName\":7", ERROR);
    cluster_dpus_handler.listed(dpf);
    expect_card("n1", 0, WHY("a"));
    cluster_dpus_handler.list(dpf);
    cluster_dpus_handler.listed(dpf);
    expect_card("n1", 0, "");
}

Test(cluster_dpus, of_several_cards_it_is_the_one_that_is_meant)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct node *n = snapshot_node(s, (size_t)snapshot_find(s, "n2", 2));
    const struct device *second = topo_device(n->topo, 1);
    cleanup_free char *spec =
        xasprintf("\"dpuNodeName\":\"n2\",\"pciAddress\":\"%04x-%02x-%02x\"",
                  second->pci.domain, second->pci.bus, second->pci.device);
    put(dpf, "a", "\"dpuNodeName\":\"n2\"", ERROR); /* which is not told */
    expect_card("n2", 0, "");
    expect_card("n2", 1, "");
    put(dpf, "b", spec, ERROR);
    expect_card("n2", 0, "");
    expect_card("n2", 1, WHY("b"));
    /* another that is none of its cards */
    put(dpf, "b", "\"dpuNodeName\":\"n2\",\"pciAddress\":\"00ff-ff-1f\"",
        ERROR);
    expect_card("n2", 1, "");
}

Test(cluster_dpus, both_operators_have_to_agree)
{
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", ERROR);
    put(units, "a", "\"nodeName\":\"n1\"", "");
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", READY);
    expect_card("n1", 0,
                "DataProcessingUnit a of the OpenShift DPU operator: it has "
                "no condition Ready yet");
    put(units, "a", "\"nodeName\":\"n1\"",
        "\"conditions\":[" COND("Ready", "True", "") "]");
    expect_card("n1", 0, "");
}

/* Of a node that comes later, or publishes anew, or is moved to. */
Test(cluster_dpus, bars_hold_whatever_the_node_publishes)
{
    put(dpf, "a", "\"dpuNodeName\":\"n3\"", ERROR);
    cr_assert_eq(sim_publish(w, "n3", 1, "boot", 1), 0);
    expect_card("n3", 0, WHY("a"));
    cr_assert_eq(sim_publish(w, "n3", 1, "boot", 2), 0);
    expect_card("n3", 0, WHY("a"));
    cr_assert_eq(sim_withdraw(w, "n3"), 0);
    cr_assert_eq(sim_publish(w, "n3", 1, "again", 1), 0);
    expect_card("n3", 0, WHY("a"));
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", ERROR);
    expect_card("n3", 0, "");
    expect_card("n1", 0, WHY("a"));
}

Test(cluster_dpus, a_pod_stays_on_its_card_and_no_other_comes)
{
    struct error err = {0};
    struct demand first = sim_pod("first", ROLE_XPU, "", 0);
    struct demand second = sim_pod("second", ROLE_XPU, "", 0);
    cr_assert_eq(sim_bind(w, &first, "n1", NULL, &err), 0, "%s", err.text);
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", ERROR);
    expect_card("n1", 0, WHY("a"));
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cr_expect(alloc_index_find(s->allocations, "ns", "first"));
    cr_expect_eq(sim_bind(w, &second, "n1", NULL, &err), -EBUSY);
    cr_expect(strstr(err.text, WHY("a")), "%s", err.text);
    cr_expect_eq(writer_conflicts(w), 0);
    put(dpf, "a", "\"dpuNodeName\":\"n1\"", READY);
    expect_card("n1", 0, "");
    cr_expect_eq(sim_release(w, "first"), 0);
    cr_expect_eq(sim_bind(w, &second, "n1", NULL, &err), 0, "%s", err.text);
}
