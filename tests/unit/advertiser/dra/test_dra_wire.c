/* The kubelet's messages, byte by byte. */
#include "advertiser/dra/dra_wire.h"

#include <criterion/criterion.h>
#include <string.h>

static struct proto_bytes bytes(const struct str *s)
{
    return (struct proto_bytes){str_text(s), s->size};
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
