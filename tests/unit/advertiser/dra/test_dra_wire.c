/* The kubelet's messages, byte by byte. */
#include "advertiser/dra/dra_wire.h"

#include <criterion/criterion.h>
#include <string.h>

static struct proto_bytes bytes(const struct str *s)
{
    return (struct proto_bytes){str_text(s), s->size};
}

static void add_claim(struct str *out, const char *namespace, const char *uid,
                      const char *name)
{
    size_t at = proto_open(out, 1);
    proto_add_text(out, 1, namespace);
    proto_add_text(out, 2, uid);
    proto_add_text(out, 3, name);
    proto_add_varint(out, 99, 7); /* of a newer kubelet */
    proto_close(out, at);
}

Test(dra_wire, reads_claims)
{
    cleanup_str struct str m = STR_INIT(1 << 20);
    cleanup_free struct dra_ref *refs = NULL;
    struct error err = {0};
    size_t n = 9;
    add_claim(&m, "default", "u-1", "a");
    add_claim(&m, "", "", "");
    add_claim(&m, "kube-system", "u-2", "b.c");
    cr_assert_eq(dra_read_refs(bytes(&m), &refs, &n, &err), 0, "%s", err.text);
    cr_assert_eq(n, 3u);
    cr_expect_str_eq(refs[0].namespace, "default");
    cr_expect_str_eq(refs[0].uid, "u-1");
    cr_expect_str_eq(refs[0].name, "a");
    cr_expect_str_eq(refs[1].uid, "");
    cr_expect_str_eq(refs[2].name, "b.c");
    cr_expect(!refs[2].too_long);
}

Test(dra_wire, reads_no_claims)
{
    struct dra_ref *refs = NULL;
    struct error err = {0};
    size_t n = 9;
    const struct proto_bytes none = {"", 0};
    cr_assert_eq(dra_read_refs(none, &refs, &n, &err), 0);
    cr_expect_eq(n, 0u);
    cr_expect_null(refs);
}

Test(dra_wire, refuses_what_is_malformed_or_too_much)
{
    cleanup_str struct str m = STR_INIT(1 << 20);
    struct dra_ref *refs = NULL;
    struct error err = {0};
    size_t n;
    const struct proto_bytes cut = {"\x0a\x7f", 2};
    cr_expect_eq(dra_read_refs(cut, &refs, &n, &err), -EPROTO);
    add_claim(&m, "default", "u\xff", "a");
    cr_expect_eq(dra_read_refs(bytes(&m), &refs, &n, &err), -EPROTO);
    cr_expect_str_eq(err.text, "claims[0]: uid: is no text");
    str_reset(&m);
    for (int i = 0; i < DRA_CLAIMS_MAX; i++)
        add_claim(&m, "d", "u", "a");
    cr_expect_eq(dra_read_refs(bytes(&m), &refs, &n, &err), 0);
    free(refs);
    add_claim(&m, "d", "u", "a");
    cr_expect_eq(dra_read_refs(bytes(&m), &refs, &n, &err), -E2BIG);
    cr_expect_str_eq(err.text, "claims: are 257, at most 256 allowed");
}

Test(dra_wire, cuts_and_marks_what_is_too_long)
{
    cleanup_str struct str m = STR_INIT(1 << 20);
    cleanup_free struct dra_ref *refs = NULL;
    struct error err = {0};
    char name[DRA_NAME_MAX + 2];
    size_t n;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    add_claim(&m, "default", "u-1", name);
    cr_assert_eq(dra_read_refs(bytes(&m), &refs, &n, &err), 0);
    cr_expect(refs[0].too_long);
    cr_expect_eq(strlen(refs[0].name), (size_t)DRA_NAME_MAX);
}

/* As protoc's own encoder writes it. */
Test(dra_wire, writes_what_is_prepared)
{
    struct dra_device device = {
        .request = "r", .pool = "n1", .device = "card-0", .share = "s"};
    const struct dra_record record = {
        .uid = "u", .devices = &device, .n_devices = 1};
    static const char v1[] = "\x0a\x35\x0a\x01u\x12\x30"
                             "\x0a\x2e\x0a\x01r\x12\x02n1\x1a\x06"
                             "card-0\x22\x1a"
                             "xpu.biga.dev/card=u-card-0\x2a\x01s";
    cleanup_str struct str m = STR_INIT(4096);
    dra_write_prepared("u", &record, NULL, true, &m);
    cr_expect_eq(m.size, sizeof v1 - 1, "%zu", m.size);
    cr_expect_eq(memcmp(str_text(&m), v1, m.size), 0);
    str_reset(&m);
    dra_write_prepared("u", &record, NULL, false, &m);
    cr_expect_eq(m.size, sizeof v1 - 1 - 3, "v1beta1 has no share");
    str_reset(&m);
    dra_write_prepared("u", NULL, "no", true, &m);
    cr_expect_str_eq(str_text(&m), "\x0a\x09\x0a\x01u\x12\x04\x12\x02no");
    str_reset(&m);
    dra_write_unprepared("u", NULL, &m); /* an entry without a value's fields */
    cr_expect_eq(m.size, 7u);
    cr_expect_eq(memcmp(str_text(&m), "\x0a\x05\x0a\x01u\x12\x00", 7), 0);
}

Test(dra_wire, registers)
{
    static const char *const versions[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin",
                                           NULL};
    cleanup_str struct str m = STR_INIT(4096);
    struct error err = {0}, why = {0};
    bool registered = true;
    dra_write_info("xpu.biga.dev", "/s", versions, &m);
    cr_expect_str_eq(str_text(&m),
                     "\x0a\x09"
                     "DRAPlugin\x12\x0cxpu.biga.dev\x1a\x02/s"
                     "\x22\x0cv1.DRAPlugin\x22\x11v1beta1.DRAPlugin");
    str_reset(&m);
    proto_add_text(&m, 2, "two of a name");
    cr_assert_eq(dra_read_registered(bytes(&m), &registered, &why, &err), 0);
    cr_expect(!registered);
    cr_expect_str_eq(why.text, "two of a name");
    proto_add_varint(&m, 1, 1);
    cr_assert_eq(dra_read_registered(bytes(&m), &registered, &why, &err), 0);
    cr_expect(registered);
}

Test(dra_wire, tells_health)
{
    cleanup_str struct str m = STR_INIT(4096);
    const struct dra_fare fare = {.pool = "n1",
                                  .device = "c",
                                  .health = DRA_UNHEALTHY,
                                  .unix_s = 300,
                                  .timeout_s = 30,
                                  .message = "m"};
    dra_write_fare(&fare, &m);
    static const char want[] = "\x0a\x13\x0a\x07\x0a\x02n1\x12\x01"
                               "c\x10\x02\x18\xac\x02\x20\x1e\x2a\x01m";
    cr_expect_eq(m.size, sizeof want - 1, "%zu", m.size);
    cr_expect_eq(memcmp(str_text(&m), want, m.size), 0);
}
