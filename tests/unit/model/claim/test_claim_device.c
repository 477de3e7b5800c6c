#include "model/claim/claim_device.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"

static const char gpus[] =
    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
    "\"metadata\":{\"name\":\"n1-gpu-0\",\"generation\":3},"
    "\"spec\":{\"devices\":[{\"name\":\"gpu-0\",\"attributes\":{"
    "\"resource.kubernetes.io/pciBusID\":{\"string\":\"0000:1b:00.0\"},"
    "\"model\":{\"string\":\"A100\"},\"index\":{\"int\":-3},"
    "\"other.dev/model\":{\"string\":\"x\"},"
    "\"resource.kubernetes.io/pcieRoot\":{\"string\":\"pci0000:16\"},"
    "\"ok\":{\"bool\":true},\"driverVersion\":{\"version\":\"1.2.3\"},"
    "\"names\":{\"strings\":[\"a\"]}},"
    "\"capacity\":{\"memory\":{\"value\":\"40Gi\"},"
    "\"other.dev/cores\":{\"value\":\"16\",\"requestPolicy\":{"
    "\"default\":\"2\",\"validRange\":{\"min\":\"2\",\"max\":\"12\","
    "\"step\":\"2\"}}}},"
    "\"consumesCounters\":[{\"counterSet\":\"c\",\"counters\":{}}],"
    "\"taints\":[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\","
    "\"timeAdded\":\"2026-01-01T00:00:00Z\"},"
    "{\"key\":\"l\",\"effect\":\"None\"}],"
    "\"allowMultipleAllocations\":true},"
    "{\"name\":\"gpu-1\",\"attributes\":{"
    "\"resource.kubernetes.io/pciBusID\":{\"string\":\"none\"}}}],"
    "\"driver\":\"gpu.example.com\",\"nodeName\":\"n1\","
    "\"sharedCounters\":[{\"name\":\"c\"}],"
    "\"pool\":{\"name\":\"n1\",\"generation\":7,\"resourceSliceCount\":2}}}";

static struct claim_slice *read_slice(const char *json)
{
    struct claim_slice *slice = NULL;
    struct error err = {0};
    cr_assert_eq(claim_slice_read(json, strlen(json), &slice, &err), 0, "%s",
                 err.text);
    return slice;
}

Test(claim_device, slice_of_another_driver)
{
    cleanup_with(claim_slice) struct claim_slice *s = read_slice(gpus);
    cr_expect_str_eq(s->name, "n1-gpu-0");
    cr_expect_str_eq(s->driver, "gpu.example.com");
    cr_expect_str_eq(s->pool, "n1");
    cr_expect_str_eq(s->node, "n1");
    cr_expect_eq(s->reach, CLAIM_OF_NODE);
    cr_expect_eq(s->generation, 7);
    cr_expect_eq(s->slice_count, 2);
    cr_assert_eq(s->n_devices, 2);
    const struct claim_device *d = &s->devices[0];
    cr_expect_str_eq(d->name, "gpu-0");
    cr_expect(d->allow_multiple && d->has_pci);
    cr_expect_eq(d->pci.bus, 0x1b);
    cr_expect_str_eq(d->pcie_root, "pci0000:16");
    cr_assert_eq(d->n_taints, 2);
    cr_expect_str_eq(d->taints[0].value, "v");
    cr_expect_str_eq(d->taints[1].value, "");
    cr_expect_str_eq(d->taints[1].effect, "None");
    cr_expect(!s->devices[1].has_pci);
    cr_expect_str_eq(s->devices[1].pcie_root, "");
}

Test(claim_device, attributes)
{
    cleanup_with(claim_slice) struct claim_slice *s = read_slice(gpus);
    const struct claim_device *d = &s->devices[0];
    const char *driver = "gpu.example.com";
    const struct claim_attribute *a = claim_device_attribute(d, driver,
                                                             "model");
    cr_assert_not_null(a);
    cr_expect_eq(a->type, CLAIM_TEXT);
    cr_expect_str_eq(a->text, "A100");
    cr_expect_str_eq(claim_device_attribute(d, "other.dev", "model")->text,
                     "x");
    a = claim_device_attribute(d, driver, "index");
    cr_expect(a->type == CLAIM_INT && a->number == -3);
    a = claim_device_attribute(d, driver, "ok");
    cr_expect(a->type == CLAIM_BOOL && a->number == 1);
    a = claim_device_attribute(d, driver, "driverVersion");
    cr_expect_eq(a->type, CLAIM_VERSION);
    cr_expect_eq(claim_device_attribute(d, driver, "names")->type, CLAIM_OTHER);
    cr_expect_null(claim_device_attribute(d, driver, "nope"));
    cr_expect_null(claim_device_attribute(d, "nope", "model"));
    const struct claim_capacity *c = claim_device_capacity(d, driver, "memory");
    cr_expect_eq(c->milli, (INT64_C(40) << 30) * 1000);
    cr_expect_str_eq(c->key, "memory");
    c = claim_device_capacity(d, "other.dev", "cores");
    cr_expect_str_eq(c->key, "other.dev/cores");
    cr_expect_eq(c->preset, 2000);
    cr_expect_eq(c->max, 12000);
    cr_expect_null(claim_device_capacity(d, driver, "cores"));
    cr_expect_eq(
        claim_capacity_find(d->capacities, d->n_capacities, "other.dev/cores"),
        c);
}

Test(claim_device, reach)
{
#define REACH(text)                                              \
    "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"d\"," \
    "\"pool\":{\"name\":\"p\"}" text "}}"
    static const struct {
        const char *json;
        enum claim_reach reach;
    } rows[] = {
        {REACH(",\"nodeName\":\"n\""), CLAIM_OF_NODE},
        {REACH(",\"allNodes\":true"), CLAIM_OF_ALL},
        {REACH(",\"nodeSelector\":{\"nodeSelectorTerms\":[]}"),
         CLAIM_BY_SELECTOR},
        {REACH(",\"perDeviceNodeSelection\":true,\"nodeName\":null"),
         CLAIM_BY_DEVICE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_with(claim_slice) struct claim_slice *s =
            read_slice(rows[i].json);
        cr_expect_eq(s->reach, rows[i].reach);
        cr_expect_str_eq(s->node, rows[i].reach == CLAIM_OF_NODE ? "n" : "");
    }
}

static void check_refusal(const char *json, const char *text)
{
    struct claim_slice *slice = NULL;
    struct error err = {0};
    cr_expect_eq(claim_slice_read(json, strlen(json), &slice, &err), -EINVAL);
    cr_expect_null(slice);
    cr_expect_str_eq(err.text, text);
}

Test(claim_device, refusals)
{
    check_refusal("[]", "expected an object at line 1 column 1 (byte 0)");
    check_refusal("{}", "metadata.name: must not be empty");
    check_refusal(REACH(""), "spec.nodeName: must not be empty, unless nodes "
                             "are selected otherwise");
    check_refusal(REACH(",\"devices\":[{}]"),
                  "spec.devices[0].name: must not be empty");
    check_refusal(REACH(",\"devices\":[{\"name\":\"d\",\"capacity\":{\"m\":{"
                        "\"value\":\"x\"}}}]"),
                  "spec.devices[0].capacity[\"m\"].value: is \"x\", must be a "
                  "quantity");
    check_refusal(REACH(",\"devices\":[{\"name\":\"d\",\"capacity\":{\"m\":{}"
                        "}}]"),
                  "spec.devices[0].capacity[\"m\"].value: must be there");
    cleanup_str struct str many = STR_INIT(1 << 16);
    str_add(&many, "{\"spec\":{\"devices\":[{\"name\":\"d0\"}");
    for (unsigned i = 1; i <= CLAIM_DEVICES_MAX; i++)
        str_addf(&many, ",{\"name\":\"d%u\"}", i);
    str_add(&many, "]}}");
    check_refusal(str_text(&many), "spec.devices: are more than 128");
    str_reset(&many);
    str_add(&many, "{\"spec\":{\"devices\":[{\"name\":\"d\",\"attributes\":{");
    for (unsigned i = 0; i <= CLAIM_ATTRIBUTES_MAX; i++)
        str_addf(&many, "%s\"a%u\":{\"int\":1}", i ? "," : "", i);
    str_add(&many, "}}]}}");
    check_refusal(str_text(&many),
                  "spec.devices[0].attributes: are more than 64");
}

/* What a request takes, in thousandths. */
Test(claim_device, capacity_take)
{
    struct claim_capacity c = {
        .milli = 16000, .preset = -1, .min = -1, .max = -1, .step = -1};
    cr_expect_eq(claim_capacity_take(&c, -1), 16000);
    cr_expect_eq(claim_capacity_take(&c, 3500), 3500);
    cr_expect_eq(claim_capacity_take(&c, 16001), -1);
    c.preset = 1000;
    cr_expect_eq(claim_capacity_take(&c, -1), 1000);
    c.min = 2000, c.max = 12000, c.step = 4000;
    cr_expect_eq(claim_capacity_take(&c, -1), 1000);
    cr_expect_eq(claim_capacity_take(&c, 0), 2000);
    cr_expect_eq(claim_capacity_take(&c, 2001), 6000);
    cr_expect_eq(claim_capacity_take(&c, 6000), 6000);
    cr_expect_eq(claim_capacity_take(&c, 10001), -1);
    const int64_t values[] = {4000, 8000, 32000};
    c = (struct claim_capacity){.milli = 16000,
                                .preset = -1,
                                .min = -1,
                                .max = -1,
                                .step = -1,
                                .n_values = 3,
                                .values = values};
    cr_expect_eq(claim_capacity_take(&c, 1), 4000);
    cr_expect_eq(claim_capacity_take(&c, 5000), 8000);
    cr_expect_eq(claim_capacity_take(&c, 8001), -1);
    cr_expect_eq(claim_capacity_take(&c, 40000), -1);
}
