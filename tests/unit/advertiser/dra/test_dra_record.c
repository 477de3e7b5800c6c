/* What is read of a claim is what is written down, and read again. */
#include "advertiser/dra/dra_record.h"

#include <criterion/criterion.h>
#include <string.h>

#define META                                                            \
    "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"u-1\"," \
    "\"annotations\":{\"a\":\"b\",\"resource.kubernetes.io/"            \
    "pod-claim-name\":\"mine\"}}"
#define RESULT(driver, device)                                       \
    "{\"request\":\"cards/big\",\"driver\":\"" driver "\",\"pool\":" \
    "\"n1\",\"device\":\"" device "\",\"consumedCapacity\":{\"x\":\"1\"}"
#define FOREIGN RESULT("gpu.nvidia.com", "gpu-0")
#define OURS RESULT("xpu.biga.dev", "card-0")
#define OTHER RESULT("xpu.biga.dev", "card-1")

static struct dra_record *read_claim(const char *json)
{
    struct dra_record *r = NULL;
    struct error err = {0};
    cr_assert_eq(dra_record_of_claim(json, strlen(json), &r, &err), 0, "%s",
                 err.text);
    return r;
}

Test(dra_record, has_our_devices_of_a_claim)
{
    cleanup_with(dra_record) struct dra_record *again = NULL;
    cleanup_str struct str out = STR_INIT(DRA_RECORD_MAX);
    struct error err = {0};
    cleanup_with(dra_record) struct dra_record *r = read_claim(
        "{" META ",\"status\":{\"reservedFor\":[],\"allocation\":{"
        "\"devices\":{\"config\":[],\"results\":[" FOREIGN "}," OURS
        ",\"shareID\":\"s-1\"}," OTHER ",\"adminAccess\":true}]}}}}");
    cr_expect(r->allocated);
    cr_expect_str_eq(r->pod_claim, "mine");
    cr_assert_eq(r->n_devices, 2u);
    cr_expect_str_eq(r->devices[0].request, "cards");
    cr_expect_str_eq(r->devices[0].device, "card-0");
    cr_expect_str_eq(r->devices[0].share, "s-1");
    cr_expect(!r->devices[0].admin);
    cr_expect(r->devices[1].admin);
    dra_record_write(r, &out);
    cr_assert_eq(dra_record_parse(str_text(&out), out.size, &again, &err), 0,
                 "%s", err.text);
    cr_expect(dra_record_equal(r, again));
    again->devices[1].device[0] = 'd';
    cr_expect(!dra_record_equal(r, again));
}

Test(dra_record, says_when_nothing_is_allocated)
{
    cleanup_with(dra_record) struct dra_record *r =
        read_claim("{" META ",\"status\":{\"allocation\":null}}");
    cr_expect(!r->allocated);
    cleanup_with(dra_record) struct dra_record *other =
        read_claim("{" META ",\"status\":{\"allocation\":{}}}");
    cr_expect(other->allocated);
    cr_expect_eq(other->n_devices, 0u);
}

Test(dra_record, refuses_what_it_does_not_write)
{
    static const char *const bad[] = {
        "",
        "{}",
        "{\"version\":2,\"uid\":\"u\",\"namespace\":\"d\",\"name\":\"a\","
        "\"devices\":[{\"request\":\"r\",\"pool\":\"p\",\"device\":\"c\"}]}",
        "{\"version\":1,\"uid\":\"../u\",\"namespace\":\"d\",\"name\":\"a\","
        "\"devices\":[{\"request\":\"r\",\"pool\":\"p\",\"device\":\"c\"}]}",
        "{\"version\":1,\"uid\":\"u\",\"namespace\":\"d/e\",\"name\":\"a\","
        "\"devices\":[{\"request\":\"r\",\"pool\":\"p\",\"device\":\"c\"}]}",
        "{\"version\":1,\"uid\":\"u\",\"namespace\":\"d\",\"name\":\"a\","
        "\"devices\":[{\"request\":\"r\",\"pool\":\"p\",\"device\":\"c/d\"}]}",
        "{\"version\":1,\"uid\":\"u\",\"namespace\":\"d\",\"name\":\"a\","
        "\"devices\":[]}",
        "{\"version\":1,\"uid\":\"u\",\"namespace\":\"d\",\"name\":\"a\","
        "\"devices\":[7]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct dra_record *r = NULL;
        struct error err = {0};
        cr_expect_eq(dra_record_parse(bad[i], strlen(bad[i]), &r, &err),
                     -EINVAL, "%s", bad[i]);
        cr_expect(*err.text, "%s", bad[i]);
        cr_expect_null(r);
    }
}

Test(dra_record, has_no_more_devices_than_dra_gives)
{
    cleanup_str struct str s = STR_INIT(1 << 20);
    struct dra_record *r = NULL;
    struct error err = {0};
    str_add(&s, "{" META ",\"status\":{\"allocation\":{\"devices\":{"
                "\"results\":[");
    for (int i = 0; i <= DRA_DEVICES_MAX; i++)
        str_add(&s, i ? "," RESULT("xpu.biga.dev", "c") "}"
                      : RESULT("xpu.biga.dev", "c") "}");
    str_add(&s, "]}}}}");
    cr_expect_eq(dra_record_of_claim(str_text(&s), s.size, &r, &err), -EINVAL);
    cr_expect(strstr(err.text, "more devices"), "%s", err.text);
}

Test(dra_record, knows_what_may_be_in_a_path)
{
    cr_expect(dra_uid_is_good("6b0cb2a4-9a5e-4c1e-8f1a-2f6d0a4b7c11"));
    cr_expect(!dra_uid_is_good(""));
    cr_expect(!dra_uid_is_good("-a"));
    cr_expect(!dra_uid_is_good("a/b"));
    cr_expect(!dra_uid_is_good("a.b"));
    cr_expect(dra_name_is_good("pair-0.card"));
    cr_expect(!dra_name_is_good("."));
    cr_expect(!dra_name_is_good("a?b"));
    cr_expect(!dra_name_is_good("A"));
}
