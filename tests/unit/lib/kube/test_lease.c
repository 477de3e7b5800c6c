/* Leases as the API server sends them, and as they are sent. */
#include "lib/kube/lease.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/json.h"

/* As kube-apiserver 1.37 answers, but for its managedFields. */
static const char real[] =
    "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\","
    "\"metadata\":{\"name\":\"node-1\",\"namespace\":\"biga-nodes\","
    "\"uid\":\"bda65d36-f537-401e-8115-e4bf0fa1c74c\","
    "\"resourceVersion\":\"293\",\"creationTimestamp\":"
    "\"2026-11-21T08:23:48Z\",\"managedFields\":[{\"manager\":\"biga\"}]},"
    "\"spec\":{\"holderIdentity\":\"a\\u0062\",\"leaseDurationSeconds\":15,"
    "\"acquireTime\":\"2026-11-21T08:23:48.000001Z\","
    "\"renewTime\":\"2026-11-21T08:23:49.000000Z\",\"leaseTransitions\":3,"
    "\"strategy\":null}}\n";

Test(lease, read)
{
    struct kube_lease l;
    struct error err = {0};
    cr_assert_eq(kube_lease_read(real, sizeof real - 1, &l, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(l.namespace, "biga-nodes");
    cr_expect_str_eq(l.name, "node-1");
    cr_expect_str_eq(l.uid, "bda65d36-f537-401e-8115-e4bf0fa1c74c");
    cr_expect_str_eq(l.resource_version, "293");
    cr_expect_str_eq(l.holder, "ab");
    cr_expect_str_eq(l.acquired, "2026-11-21T08:23:48.000001Z");
    cr_expect_str_eq(l.renewed, "2026-11-21T08:23:49.000000Z");
    cr_expect_eq(l.duration_s, 15);
    cr_expect_eq(l.transitions, 3);
}

/* The annotation, of which only a number counts. */
Test(lease, generation_comes_back)
{
    static const struct {
        const char *text;
        int64_t is;
    } rows[] = {{"\"12\"", 12}, {"\"9007199254740992\"", INT64_C(1) << 53},
                {"\"\"", 0},    {"\"12345678901234567\"", 0},
                {"\"-1\"", 0},  {"\"1x\"", 0},
                {"12", 0},      {"null", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kube_lease l;
        struct error err = {0};
        cleanup_str struct str text = STR_INIT(1024);
        str_addf(&text,
                 "{\"metadata\":{\"name\":\"x\",\"annotations\":{"
                 "\"" KUBE_LEASE_GENERATION "\":%s}}}",
                 rows[i].text);
        cr_assert_eq(kube_lease_read(text.data, text.size, &l, &err), 0, "%s",
                     err.text);
        cr_expect_eq(l.generation, rows[i].is, "%s", rows[i].text);
        str_reset(&text);
        kube_lease_write(&l, NULL, NULL, &text);
        cr_expect_eq(strstr(text.data, KUBE_LEASE_GENERATION) != NULL,
                     rows[i].is > 0);
        struct kube_lease back;
        cr_assert_eq(kube_lease_read(text.data, text.size, &back, &err), 0);
        cr_expect_eq(back.generation, l.generation);
    }
}

Test(lease, read_of_little)
{
    static const char *const texts[] = {
        "{\"metadata\":{\"name\":\"x\"}}",
        "{\"metadata\":{\"name\":\"x\"},\"spec\":{}}",
        "{\"metadata\":{\"name\":\"x\"},\"spec\":null}",
        "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"holderIdentity\":null}}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct kube_lease l;
        struct error err = {0};
        cr_assert_eq(kube_lease_read(texts[i], strlen(texts[i]), &l, &err), 0,
                     "%s: %s", texts[i], err.text);
        cr_expect_str_eq(l.holder, "");
        cr_expect_str_eq(l.renewed, "");
        cr_expect_eq(l.duration_s, 0);
    }
}

static void expect_refused(const char *json, const char *want)
{
    struct kube_lease l = {.transitions = 77};
    struct error err = {0};
    cr_expect_eq(kube_lease_read(json, strlen(json), &l, &err), -EINVAL,
                 "taken: %s", json);
    cr_expect_not_null(strstr(err.text, want), "%s, wanted %s", err.text, want);
    cr_expect_eq(l.transitions, 77, "written in spite of the error");
}

Test(lease, refused)
{
#define META "\"metadata\":{\"name\":\"x\"}"
    expect_refused("", "");
    expect_refused("[]", "object");
    expect_refused("{}", "metadata");
    expect_refused("{\"metadata\":{}}", "metadata.name");
    expect_refused("{\"metadata\":{\"name\":\"\"}}", "metadata.name");
    expect_refused("{" META ",\"spec\":[]}", "spec");
    expect_refused("{" META ",\"spec\":{\"holderIdentity\":1}}",
                   "spec.holderIdentity");
    expect_refused("{" META ",\"spec\":{\"leaseDurationSeconds\":-1}}",
                   "spec.leaseDurationSeconds");
    expect_refused("{" META ",\"spec\":{\"leaseDurationSeconds\":2147483648}}",
                   "spec.leaseDurationSeconds");
    expect_refused("{" META ",\"spec\":{\"leaseTransitions\":\"1\"}}",
                   "spec.leaseTransitions");
    expect_refused("{" META ",\"spec\":{},\"spec\":{}}", "duplicate key");
    cleanup_free char *holder = xcalloc(1, 255);
    memset(holder, 'h', 254);
    cleanup_free char *json =
        xasprintf("{" META ",\"spec\":{\"holderIdentity\":\"%s\"}}", holder);
    expect_refused(json, "spec.holderIdentity");
    cleanup_free char *at =
        xasprintf("{" META ",\"spec\":{\"renewTime\":\"%.40s\"}}", holder);
    expect_refused(at, "spec.renewTime");
}

Test(lease, written_is_read_again)
{
    struct kube_lease in = {.namespace = "ns",
                            .name = "n",
                            .resource_version = "12",
                            .uid = "u",
                            .holder = "say \"\\ \xc3\xa9",
                            .duration_s = 10,
                            .transitions = 2,
                            .acquired = "2026-01-02T03:04:05.000006Z",
                            .renewed = "2026-01-02T03:04:06.000006Z"};
    struct kube_lease out;
    cleanup_str struct str json = STR_INIT(4096);
    struct error err = {0};
    kube_lease_write(&in, "node-1", "node-uid", &json);
    cr_assert_eq(kube_lease_read(json.data, json.size, &out, &err), 0, "%s: %s",
                 err.text, json.data);
    cr_expect_str_eq(out.holder, in.holder);
    cr_expect_str_eq(out.uid, in.uid);
    cr_expect_str_eq(out.resource_version, in.resource_version);
    cr_expect_str_eq(out.acquired, in.acquired);
    cr_expect_str_eq(out.renewed, in.renewed);
    cr_expect_eq(out.duration_s, 10);
    cr_expect_eq(out.transitions, 2);
    cr_expect_not_null(
        strstr(json.data, "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\""
                          ":\"Node\",\"name\":\"node-1\",\"uid\":\"node-uid\""
                          "}]"));
}

Test(lease, what_is_absent_is_not_written)
{
    struct kube_lease in = {.namespace = "ns", .name = "n"};
    cleanup_str struct str json = STR_INIT(4096);
    kube_lease_write(&in, NULL, NULL, &json);
    cr_expect_str_eq(json.data, "{\"apiVersion\":\"coordination.k8s.io/v1\","
                                "\"kind\":\"Lease\",\"metadata\":{\"name\":\"n"
                                "\",\"namespace\":\"ns\"},\"spec\":{}}");
}

Test(lease, times)
{
    char text[40];
    kube_lease_time(0, text);
    cr_expect_str_eq(text, "1970-01-01T00:00:00.000000Z");
    kube_lease_time(INT64_C(1782864000123456), text);
    cr_expect_str_eq(text, "2026-07-01T00:00:00.123456Z");
    kube_lease_time(INT64_C(951782400000007), text);
    cr_expect_str_eq(text, "2000-02-29T00:00:00.000007Z");
    kube_lease_time(-5, text);
    cr_expect_str_eq(text, "1970-01-01T00:00:00.000000Z");
    kube_lease_time(INT64_MAX, text);
    cr_expect(strncmp(text, "9999-12-31T23:59:59.", 20) == 0, "%s", text);
}
