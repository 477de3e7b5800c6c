#include "model/claim/pod_claims.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"

static const char pod[] =
    "{\"metadata\":{\"name\":\"p\"},\"status\":{\"resourceClaimStatuses\":["
    "{\"name\":\"card\",\"resourceClaimName\":\"p-card-x\"},"
    "{\"name\":\"none\"}],\"extendedResourceClaimStatus\":{"
    "\"requestMappings\":[],\"resourceClaimName\":\"p-extended\"}},\"spec\":{"
    "\"containers\":[{\"name\":\"a\",\"resources\":{\"claims\":[{\"name\":"
    "\"card\",\"request\":\"r\"},{\"name\":\"card\"}]}},{\"name\":\"b\"}],"
    "\"initContainers\":[{\"name\":\"i\",\"resources\":{\"claims\":[{\"name\":"
    "\"gpu\"}]}}],\"resourceClaims\":[{\"name\":\"card\","
    "\"resourceClaimTemplateName\":\"t\"},{\"name\":\"gpu\","
    "\"resourceClaimName\":\"shared\"},{\"name\":\"none\","
    "\"resourceClaimTemplateName\":\"u\"}]}}";

Test(pod_claims, all)
{
    cleanup_pod_claims struct pod_claims claims = {0};
    struct error err = {0};
    cr_assert_eq(pod_claims_read(pod, strlen(pod), &claims, &err), 0, "%s",
                 err.text);
    cr_assert_eq(claims.n, 3);
    const struct pod_claim *c = pod_claims_find(&claims, "card");
    cr_assert_not_null(c);
    cr_expect_str_eq(c->template, "t");
    cr_expect_str_eq(c->claim, "");
    cr_expect_str_eq(c->made, "p-card-x");
    cr_expect(c->made_known && c->used);
    c = pod_claims_find(&claims, "gpu");
    cr_expect_str_eq(c->claim, "shared");
    cr_expect(c->used && !c->made_known);
    c = pod_claims_find(&claims, "none");
    cr_expect(!c->used && c->made_known && !*c->made);
    cr_expect_null(pod_claims_find(&claims, "other"));
    cr_expect_str_eq(claims.extended, "p-extended");
}

Test(pod_claims, none)
{
    cleanup_pod_claims struct pod_claims claims = {0};
    struct error err = {0};
    cr_assert_eq(pod_claims_read("{\"spec\":null}", 13, &claims, &err), 0);
    cr_expect_eq(claims.n, 0);
    cr_expect_str_eq(claims.extended, "");
}

Test(pod_claims, refusals)
{
    struct pod_claims claims = {0};
    struct error err = {0};
    cleanup_str struct str many = STR_INIT(1 << 16);
    str_add(&many, "{\"spec\":{\"resourceClaims\":[{\"name\":\"c\"}");
    for (unsigned i = 0; i < POD_CLAIMS_MAX; i++)
        str_add(&many, ",{\"name\":\"c\"}");
    str_add(&many, "]}}");
    cr_expect_eq(pod_claims_read(str_text(&many), many.size, &claims, &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "spec.resourceClaims: are more than 32");
    static const char nameless[] = "{\"spec\":{\"resourceClaims\":[{}]}}";
    cr_expect_eq(pod_claims_read(nameless, strlen(nameless), &claims, &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "spec.resourceClaims[].name: must not be empty");
}
