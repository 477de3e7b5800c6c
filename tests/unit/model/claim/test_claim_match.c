#include "model/claim/claim_match.h"

#include <criterion/criterion.h>
#include <string.h>

#define SLICE(device)                                                        \
    "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"g.dev\","         \
    "\"nodeName\":\"n\",\"pool\":{\"name\":\"n\"},\"devices\":[{\"name\":"   \
    "\"d\",\"attributes\":{\"model\":{\"string\":\"A100\"},\"other.dev/x\":" \
    "{\"int\":1}},\"capacity\":{\"cores\":{\"value\":\"16\"}}" device "}]}}"
#define CLASS(expression)                                                 \
    "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"extendedResourceName\":"  \
    "\"g.dev/gpu\",\"selectors\":[{\"cel\":{\"expression\":\"" expression \
    "\"}}]}}"
#define SPEC(rest)                                              \
    "{\"devices\":{\"requests\":[{\"name\":\"r\",\"exactly\":{" \
    "\"deviceClassName\":\"c\"" rest "}}]}}"
#define DRIVER "device.driver == 'g.dev'"
#define SELECT(expression) \
    ",\"selectors\":[{\"cel\":{\"expression\":\"" expression "\"}}]"
#define TAINT(effect) \
    ",\"taints\":[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"" effect "\"}]"

static void check(const char *class_json, const char *spec_json,
                  const char *slice_json, int wanted, const char *text)
{
    cleanup_with(claim_class) struct claim_class *class = NULL;
    cleanup_with(claim_spec) struct claim_spec *spec = NULL;
    cleanup_with(claim_slice) struct claim_slice *slice = NULL;
    struct error err = {0};
    cr_assert_eq(claim_class_read(class_json, strlen(class_json), &class, &err),
                 0, "%s", err.text);
    cr_assert_eq(claim_spec_read(spec_json, strlen(spec_json), &spec, &err), 0,
                 "%s", err.text);
    cr_assert_eq(claim_slice_read(slice_json, strlen(slice_json), &slice, &err),
                 0, "%s", err.text);
    int rc = claim_match(class, &spec->requests[0], &slice->devices[0],
                         slice->driver, &err);
    cr_expect_eq(rc, wanted, "%s %s: %d %s", spec_json, slice_json, rc,
                 err.text);
    cr_expect_str_eq(err.text, text);
}

Test(claim_match, selectors)
{
    check(CLASS(DRIVER), SPEC(""), SLICE(""), 1, "");
    check(CLASS(DRIVER),
          SPEC(SELECT("device.attributes['g.dev'].model == "
                      "'A100'")),
          SLICE(""), 1, "");
    check(CLASS("false"), SPEC(""), SLICE(""), 0,
          "class \"c\": selector 1 does not match");
    check(CLASS(DRIVER), SPEC(SELECT("false")), SLICE(""), 0,
          "request \"r\": selector 1 does not match");
    check(CLASS(DRIVER), SPEC(SELECT("device.attributes['g.dev'].x == 1")),
          SLICE(""), -EDOM, "request \"r\": selector 1: at 28: no such key: x");
    /* the class comes first, so the error is not met */
    check(CLASS("false"), SPEC(SELECT("device.attributes['g.dev'].x == 1")),
          SLICE(""), 0, "class \"c\": selector 1 does not match");
    check(CLASS("[1] == [1]"), SPEC(""), SLICE(""), -ENOTSUP,
          "class \"c\": spec.selectors[0]: at 1: \"[\": is CEL that Biga does "
          "not read");
}

Test(claim_match, capacities)
{
#define NEED(name, amount) \
    ",\"capacity\":{\"requests\":{\"" name "\":\"" amount "\"}}"
    check(CLASS(DRIVER), SPEC(NEED("cores", "16")), SLICE(""), 1, "");
    check(CLASS(DRIVER), SPEC(NEED("cores", "17")), SLICE(""), 0,
          "request \"r\": cores: the device does not allow so much");
    check(CLASS(DRIVER), SPEC(NEED("g.dev/cores", "1")), SLICE(""), 0,
          "request \"r\": g.dev/cores: the device has no such capacity");
}

Test(claim_match, taints)
{
#define TOLERATE(rest) ",\"tolerations\":[{" rest "}]"
    const char *refused = "request \"r\": does not tolerate the device's taint "
                          "k=v:NoSchedule";
    check(CLASS(DRIVER), SPEC(""), SLICE(TAINT("NoSchedule")), 0, refused);
    check(CLASS(DRIVER), SPEC(""), SLICE(TAINT("None")), 1, "");
    check(CLASS(DRIVER), SPEC(TOLERATE("\"operator\":\"Exists\"")),
          SLICE(TAINT("NoSchedule")), 1, "");
    check(CLASS(DRIVER), SPEC(TOLERATE("\"key\":\"k\",\"value\":\"v\"")),
          SLICE(TAINT("NoSchedule")), 1, "");
    check(CLASS(DRIVER), SPEC(TOLERATE("\"key\":\"k\",\"value\":\"w\"")),
          SLICE(TAINT("NoSchedule")), 0, refused);
    check(CLASS(DRIVER),
          SPEC(TOLERATE("\"key\":\"l\",\"operator\":\"Exists\"")),
          SLICE(TAINT("NoSchedule")), 0, refused);
    check(CLASS(DRIVER),
          SPEC(TOLERATE("\"operator\":\"Exists\",\"effect\":\"NoExecute\"")),
          SLICE(TAINT("NoSchedule")), 0, refused);
}

Test(claim_match, attributes_of_constraints)
{
    cleanup_with(claim_slice) struct claim_slice *slice = NULL;
    struct error err = {0};
    cr_assert_eq(
        claim_slice_read(SLICE(""), sizeof SLICE("") - 1, &slice, &err), 0);
    const struct claim_device *d = &slice->devices[0];
    const struct claim_attribute *model = claim_match_attribute(d,
                                                                "g.dev/model");
    const struct claim_attribute *x = claim_match_attribute(d, "other.dev/x");
    cr_assert(model && x);
    cr_expect_null(claim_match_attribute(d, "model"));
    cr_expect(claim_attribute_equal(model, model));
    cr_expect(!claim_attribute_equal(model, x));
}

Test(claim_match, class_as_it_is_read)
{
    cleanup_with(claim_class) struct claim_class *class = NULL;
    struct error err = {0};
    const char *json = CLASS(DRIVER);
    cr_assert_eq(claim_class_read(json, strlen(json), &class, &err), 0);
    cr_expect_str_eq(class->name, "c");
    cr_expect_str_eq(class->extended_resource, "g.dev/gpu");
    cr_expect_eq(class->n_selectors, 1);
    cr_expect_eq(class->bad.code, 0);
    struct claim_class *none = NULL;
    cr_expect_eq(claim_class_read("{}", 2, &none, &err), -EINVAL);
    cr_expect_str_eq(err.text, "metadata.name: must not be empty");
}
