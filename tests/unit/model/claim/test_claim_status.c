#include "model/claim/claim_status.h"

#include <criterion/criterion.h>
#include <string.h>

#define SPEC                                                       \
    "{\"devices\":{\"requests\":[{\"name\":\"card\",\"exactly\":{" \
    "\"deviceClassName\":\"c\"}}]}}"
#define META "\"namespace\":\"ns\",\"name\":\"p-card-x\",\"uid\":\"u1\""

static struct claim_status *status_of(const char *json)
{
    struct claim_status *status = NULL;
    struct error err = {0};
    cr_assert_eq(claim_status_read(json, strlen(json), &status, &err), 0, "%s",
                 err.text);
    return status;
}

Test(claim_status, allocated)
{
    cleanup_with(claim_status) struct claim_status *s = status_of(
        "{\"metadata\":{" META ",\"resourceVersion\":\"12\","
        "\"annotations\":{\"resource.kubernetes.io/pod-claim-name\":\"card\","
        "\"biga.dev/pinned\":\"\"},\"ownerReferences\":[{\"apiVersion\":\"v1\","
        "\"kind\":\"Pod\",\"name\":\"old\",\"uid\":\"o\"},{\"apiVersion\":"
        "\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"pu\","
        "\"controller\":true}]},\"spec\":" SPEC ",\"status\":{\"allocation\":{"
        "\"devices\":{\"results\":[{\"request\":\"card\",\"driver\":"
        "\"xpu.biga.dev\",\"pool\":\"n1\",\"device\":\"card-0\","
        "\"shareID\":\"s1\",\"consumedCapacity\":{\"biga.dev/cores\":\"4\"}},"
        "{\"request\":\"gpu/a\",\"driver\":\"g\",\"pool\":\"n1\","
        "\"device\":\"gpu-0\",\"adminAccess\":true}]},\"nodeSelector\":{"
        "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\","
        "\"operator\":\"In\",\"values\":[\"n1\"]}]}]}},\"reservedFor\":["
        "{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"pu\"},"
        "{\"apiGroup\":\"scheduling.k8s.io\",\"resource\":\"podgroups\","
        "\"name\":\"g\",\"uid\":\"gu\"}]}}");
    cr_expect_str_eq(s->namespace, "ns");
    cr_expect_str_eq(s->uid, "u1");
    cr_expect_str_eq(s->version, "12");
    cr_expect_str_eq(s->owner.name, "p");
    cr_expect_str_eq(s->owner.uid, "pu");
    cr_expect_str_eq(s->pod_claim, "card");
    cr_expect(s->is_pinned && !*s->pinned && !s->deleting);
    cr_assert_not_null(s->spec);
    cr_expect(s->allocated);
    cr_expect_str_eq(s->node, "n1");
    cr_assert_eq(s->n_results, 2);
    cr_expect_str_eq(s->results[0].device, "card-0");
    cr_expect_str_eq(s->results[0].share, "s1");
    cr_assert_eq(s->results[0].n_consumed, 1);
    cr_expect_eq(s->results[0].consumed[0].milli, 4000);
    cr_expect(s->results[1].admin);
    cr_assert_eq(s->n_reserved, 1);
    cr_expect_str_eq(s->reserved[0].uid, "pu");
    cr_expect_eq(s->n_other_reserved, 1);
}

Test(claim_status, not_yet)
{
    cleanup_with(claim_status) struct claim_status *s = status_of(
        "{\"metadata\":{" META ",\"deletionTimestamp\":"
        "\"2026-01-01T00:00:00Z\"},\"spec\":" SPEC ",\"status\":{}}");
    cr_expect(!s->allocated && !s->is_pinned && s->deleting);
    cr_expect_str_eq(s->owner.uid, "");
    cr_expect_str_eq(s->node, "");
    cr_expect_eq(s->n_results, 0);
}

/* What others were given counts, whatever they ask. */
Test(claim_status, spec_that_is_not_read)
{
    cleanup_with(claim_status) struct claim_status *s = status_of(
        "{\"metadata\":{" META "},\"spec\":{\"devices\":{\"requests\":[{"
        "\"name\":\"r\",\"firstAvailable\":[{\"name\":\"a\"}]}]}},"
        "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":"
        "\"r/a\",\"driver\":\"g\",\"pool\":\"n1\",\"device\":\"gpu-0\"}]}}}}");
    cr_expect_null(s->spec);
    cr_expect_eq(s->bad.code, EDOM);
    cr_expect(strncmp(s->bad.text, "spec: request \"r\": ", 19) == 0);
    cr_expect_eq(s->n_results, 1);
    cr_expect_str_eq(s->node, "");
}

/* Only one node, by its name, is one. */
Test(claim_status, node)
{
    static const char *const terms[] = {
        "{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
        "\"values\":[\"n1\",\"n2\"]}]}",
        "{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"NotIn\","
        "\"values\":[\"n1\"]}]}",
        "{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
        "\"values\":[\"n1\"]}]},{\"matchFields\":[]}",
        "{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"In\","
        "\"values\":[\"a\"]}]}",
    };
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        cleanup_free char *json =
            xasprintf("{\"metadata\":{" META "},\"spec\":" SPEC
                      ",\"status\":{\"allocation\":{\"nodeSelector\":{"
                      "\"nodeSelectorTerms\":[%s]}}}}",
                      terms[i]);
        cleanup_with(claim_status) struct claim_status *s = status_of(json);
        cr_expect_str_eq(s->node, "", "%s", json);
    }
}

Test(claim_status, refusals)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{\"metadata\":{}}", "metadata.namespace: must not be empty"},
        {"{\"metadata\":{" META "},\"status\":{\"allocation\":{\"devices\":{"
         "\"results\":[{\"request\":\"r\"}]}}}}",
         "status.allocation.devices.results[].driver: must not be empty"},
        {"{\"metadata\":{\"name\":3}}",
         "expected a string at line 1 column 21 (byte 20)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct claim_status *status = NULL;
        struct error err = {0};
        cr_expect_eq(claim_status_read(rows[i].json, strlen(rows[i].json),
                                       &status, &err),
                     -EINVAL);
        cr_expect_null(status);
        cr_expect_str_eq(err.text, rows[i].text);
    }
}
