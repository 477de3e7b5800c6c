#include "model/claim/claim_spec.h"

#include <criterion/criterion.h>
#include <string.h>

#include "model/claim/claim_template.h"

#define DEVICES(text) "{\"devices\":{" text "}}"
#define REQUEST(rest) \
    "{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"g\"" rest "}}"
#define ONE(rest) DEVICES("\"requests\":[" REQUEST(rest) "]")

static struct claim_spec *spec_of(const char *json)
{
    struct claim_spec *spec = NULL;
    struct error err = {0};
    cr_assert_eq(claim_spec_read(json, strlen(json), &spec, &err), 0, "%s",
                 err.text);
    return spec;
}

Test(claim_spec, requests)
{
    cleanup_with(claim_spec) struct claim_spec *spec = spec_of(DEVICES(
        "\"requests\":["
        "{\"exactly\":{\"count\":2,\"allocationMode\":\"ExactCount\","
        "\"selectors\":[{\"cel\":{\"expression\":\"device.driver == \\\"a\\\""
        "\"}}],\"capacity\":{\"requests\":{\"biga.dev/cores\":\"4\","
        "\"memory\":\"1Gi\"}},\"tolerations\":[{\"key\":\"k\","
        "\"operator\":\"Exists\",\"effect\":\"NoSchedule\"},"
        "{\"key\":\"odd\",\"operator\":\"Odd\"}],"
        "\"adminAccess\":true,\"deviceClassName\":\"c\"},\"name\":\"card\"}"
        "," REQUEST(
            ",\"allocationMode\":\"All\"") "],"
                                           "\"constraints\":[{\"requests\":["
                                           "\"card\",\"gpu/sub\"],"
                                           "\"matchAttribute\":\"resource."
                                           "kubernetes.io/pcieRoot\"},"
                                           "{\"distinctAttribute\":\"a.dev/"
                                           "b\"}],"
                                           "\"config\":[{\"opaque\":{"
                                           "\"driver\":\"d\",\"parameters\":{}}"
                                           "}]"));
    cr_assert_eq(spec->n_requests, 2);
    const struct claim_request *q = &spec->requests[0];
    cr_expect_str_eq(q->name, "card");
    cr_expect_str_eq(q->class, "c");
    cr_expect(q->count == 2 && !q->all && q->admin);
    cr_assert_eq(q->n_selectors, 1);
    cr_expect_str_eq(claim_cel_text(q->selectors[0]), "device.driver == \"a\"");
    cr_assert_eq(q->n_needs, 2);
    cr_expect_str_eq(q->needs[0].key, "biga.dev/cores");
    cr_expect_str_eq(q->needs[0].domain, "biga.dev");
    cr_expect_str_eq(q->needs[1].domain, "");
    cr_expect_eq(q->needs[0].milli, 4000);
    cr_assert_eq(q->n_tolerations, 1);
    cr_expect(q->tolerations[0].exists);
    cr_expect(spec->requests[1].all);
    cr_assert_eq(spec->n_constraints, 2);
    cr_expect(spec->has_config);
    cr_expect_eq(claim_spec_request(spec, "gpu/sub"), &spec->requests[1]);
    cr_expect_null(claim_spec_request(spec, "gp"));
    cr_expect(claim_constraint_binds(&spec->constraints[0], "gpu"));
    cr_expect(!claim_constraint_binds(&spec->constraints[0], "other"));
    cr_expect(claim_constraint_binds(&spec->constraints[1], "other"));
    cr_expect_str_eq(spec->constraints[1].distinct, "a.dev/b");
}

Test(claim_spec, defaults)
{
    cleanup_with(claim_spec) struct claim_spec *spec = spec_of(ONE(""));
    const struct claim_request *q = &spec->requests[0];
    cr_expect(q->count == 1 && !q->all && !q->admin && !q->n_selectors);
    cr_expect(!spec->has_config);
    cleanup_with(claim_spec) struct claim_spec *none = spec_of("{}");
    cr_expect_eq(none->n_requests, 0);
}

static void check_refusal(const char *json, int rc, const char *text)
{
    struct claim_spec *spec = NULL;
    struct error err = {0};
    cr_expect_eq(claim_spec_read(json, strlen(json), &spec, &err), rc, "%s",
                 err.text);
    cr_expect_null(spec);
    cr_expect_str_eq(err.text, text);
}

Test(claim_spec, what_cannot_be_planned)
{
    check_refusal(DEVICES("\"requests\":[{\"firstAvailable\":[{\"name\":\"a\","
                          "\"deviceClassName\":\"c\"}],\"name\":\"gpu\"}]"),
                  -EDOM,
                  "request \"gpu\": has firstAvailable, whose devices cannot "
                  "be named before one is chosen: use exactly");
    check_refusal(DEVICES("\"requests\":[{\"name\":\"gpu\",\"anyOf\":{}}]"),
                  -EDOM,
                  "request \"gpu\": is of a kind that Biga does not know: use "
                  "exactly");
    check_refusal(ONE(",\"allocationMode\":\"Some\""), -EDOM,
                  "request \"gpu\": has an allocationMode that Biga does not "
                  "know: use ExactCount or All");
    check_refusal(ONE(",\"selectors\":[{\"cel\":{\"expression\":\"true\"}},"
                      "{\"cel\":{\"expression\":\"1 + 1 == 2\"}}]"),
                  -EDOM,
                  "request \"gpu\": devices.requests[0].exactly.selectors[1]: "
                  "at 3: \"+\": is CEL that Biga does not read");
    check_refusal(ONE(",\"derivedAttributes\":[{\"name\":\"x\"}]"), -EDOM,
                  "request \"gpu\": has derivedAttributes, which Biga does not "
                  "read: leave them out");
    check_refusal(
        DEVICES("\"requests\":[" REQUEST("") "],\"constraints\":[{"
                                             "\"newAttribute\":\"a/b\"}]"),
        -EDOM,
        "devices.constraints[0]: is of a kind that Biga does not "
        "know: use matchAttribute or distinctAttribute");
}

Test(claim_spec, what_is_wrong)
{
    check_refusal(ONE(",\"count\":0"), -EINVAL,
                  "devices.requests[0].exactly.count: is 0, must be at least "
                  "1");
    check_refusal(DEVICES("\"requests\":[{\"name\":\"a\",\"exactly\":{}}]"),
                  -EINVAL,
                  "devices.requests[0].exactly.deviceClassName: must not be "
                  "empty");
    check_refusal(DEVICES("\"requests\":[" REQUEST("") "," REQUEST("") "]"),
                  -EINVAL, "devices.requests[1].name: \"gpu\" is there twice");
    check_refusal(ONE(",\"selectors\":[],\"selectors\":[]"), -EINVAL,
                  "devices.requests[0].exactly.selectors: stands there twice");
    check_refusal(DEVICES("\"constraints\":[{\"requests\":[\"x\"],"
                          "\"matchAttribute\":\"a/b\"}]"),
                  -EINVAL,
                  "devices.constraints[0].requests: there is no request \"x\"");
    check_refusal(ONE(",\"capacity\":{\"requests\":{\"cores\":\"many\"}}"),
                  -EINVAL,
                  "devices.requests[0].exactly.capacity.requests[\"cores\"]: "
                  "is \"many\", must be a quantity");
}

Test(claim_spec, template)
{
    static const char json[] =
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"t\",\"uid\":\"u\"},"
        "\"spec\":{\"metadata\":{\"labels\":{\"a\": \"b\"}},\"spec\":" ONE(
            "") "}}";
    cleanup_with(claim_template) struct claim_template *t = NULL;
    struct error err = {0};
    cr_assert_eq(claim_template_read(json, strlen(json), &t, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(t->namespace, "ns");
    cr_expect_str_eq(t->name, "t");
    cr_expect_str_eq(t->uid, "u");
    cr_expect_str_eq(t->labels, "{\"a\": \"b\"}");
    cr_expect_str_eq(t->annotations, "");
    cr_assert_not_null(t->spec);
    cr_expect_str_eq(t->spec->json, ONE(""));
}

Test(claim_spec, template_that_cannot_be_planned)
{
    static const char json[] =
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"t\"},\"spec\":{"
        "\"spec\":" ONE(",\"count\":-1") "}}";
    cleanup_with(claim_template) struct claim_template *t = NULL;
    struct error err = {0};
    cr_assert_eq(claim_template_read(json, strlen(json), &t, &err), 0);
    cr_expect_null(t->spec);
    cr_expect_str_eq(t->bad.text,
                     "spec.spec: devices.requests[0].exactly.count: is -1, "
                     "must be at least 1");
}
