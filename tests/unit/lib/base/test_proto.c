/* Fields of messages: what is read is what is written, malformed ones are
 * refused at their byte, and a cap holds. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/proto.h"

static struct proto_bytes of(const struct str *s)
{
    return (struct proto_bytes){s->data, s->size};
}

#define BYTES(text) ((struct proto_bytes){(text), sizeof(text) - 1})

/* The kinds and numbers of all fields as a text; NULL when it is malformed. */
static const char *shape(struct proto_bytes message, struct str *out,
                         struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int e;
    str_reset(out);
    proto_reader_init(&r, message);
    while ((e = proto_next(&r, &f, err)) > 0)
        str_addf(out, "%u:%u ", f.number, (unsigned)f.kind);
    return e < 0 ? NULL : str_text(out);
}

Test(proto, reads_what_it_wrote)
{
    cleanup_str struct str m = STR_INIT(1 << 20), text = STR_INIT(1 << 20);
    struct error err = {0};
    struct proto_field f;
    static const uint64_t values[] = {
        0, 1, 127, 128, (1 << 14), INT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        proto_add_varint(&m, 1, values[i]);
    proto_add_text(&m, (1 << 29) - 1, "text");
    proto_add_text(&m, 3, "");
    proto_add_text(&m, 3, NULL);
    cr_expect_str_eq(shape(of(&m), &text, &err),
                     "1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 536870911:2 ");
    struct proto_reader r;
    proto_reader_init(&r, of(&m));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        cr_assert_eq(proto_next(&r, &f, &err), 1);
        cr_expect_eq(f.value, values[i], "%zu", i);
    }
    cr_assert_eq(proto_next(&r, &f, &err), 1);
    cr_expect(proto_equals(f.bytes, "text"));
    cr_expect_eq(proto_next(&r, &f, &err), 0);
}

/* As the encoding's own documents have them: 150 is 96 01. */
Test(proto, has_the_published_form)
{
    cleanup_str struct str m = STR_INIT(1024);
    proto_add_varint(&m, 1, 150);
    proto_add_text(&m, 2, "testing");
    size_t opened = proto_open(&m, 3);
    proto_add_varint(&m, 1, 150);
    proto_close(&m, opened);
    proto_add_pair(&m, 4, "k", "");
    static const char expected[] = "\x08\x96\x01\x12\x07testing\x1a\x03\x08"
                                   "\x96\x01\x22\x03\x0a\x01k";
    cr_expect_eq(m.size, sizeof expected - 1);
    cr_expect_arr_eq(m.data, expected, sizeof expected - 1);
}

/* A message within, whose size takes one byte, then two, then three. */
Test(proto, closes_what_it_opened)
{
    static const size_t sizes[] = {0, 1, 124, 125, 126, 16380, 16390, 70000};
    static const char zeros[70000];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cleanup_str struct str m = STR_INIT(1 << 20);
        struct error err = {0};
        struct proto_field outer, inner;
        size_t first = proto_open(&m, 7), second = proto_open(&m, 8);
        proto_add_bytes(&m, 9, (struct proto_bytes){zeros, sizes[i]});
        proto_close(&m, second);
        proto_close(&m, first);
        cr_assert_eq(proto_find(of(&m), 7, PROTO_BYTES, &outer, &err), 1);
        cr_assert_eq(proto_find(outer.bytes, 8, PROTO_BYTES, &inner, &err), 1);
        cr_assert_eq(proto_find(inner.bytes, 9, PROTO_BYTES, &inner, &err), 1);
        cr_expect_eq(inner.bytes.size, sizes[i]);
        cr_expect_eq(outer.raw.size, m.size);
    }
}

Test(proto, takes_the_last_of_several)
{
    cleanup_str struct str m = STR_INIT(1024);
    struct error err = {0};
    struct proto_field f;
    proto_add_text(&m, 1, "first");
    proto_add_text(&m, 1, "last");
    proto_add_varint(&m, 1, 7);
    cr_expect_eq(proto_find(of(&m), 1, PROTO_BYTES, &f, &err), 1);
    cr_expect(proto_equals(f.bytes, "last"));
    cr_expect_eq(proto_find(of(&m), 2, PROTO_BYTES, &f, &err), 0);
}

Test(proto, finds_pairs)
{
    cleanup_str struct str m = STR_INIT(1024);
    struct error err = {0};
    struct proto_bytes value;
    proto_add_pair(&m, 4, "a", "1");
    proto_add_pair(&m, 4, "a", "2");
    proto_add_pair(&m, 4, "b", "");
    proto_add_pair(&m, 5, "c", "3");
    cr_expect_eq(proto_find_pair(of(&m), 4, "a", &value, &err), 1);
    cr_expect(proto_equals(value, "2"));
    cr_expect_eq(proto_find_pair(of(&m), 4, "b", &value, &err), 1);
    cr_expect(proto_equals(value, ""));
    cr_expect_eq(proto_find_pair(of(&m), 4, "c", &value, &err), 0);
    proto_add_text(&m, 4, "\x0a\x05");
    cr_expect_eq(proto_find_pair(of(&m), 4, "a", &value, &err), -EPROTO);
}

Test(proto, reads_fixed_numbers)
{
    struct error err = {0};
    struct proto_field f;
    static const char m[] = "\x09\x01\x02\x03\x04\x05\x06\x07\x08"
                            "\x15\xff\xfe\xfd\xfc";
    cr_expect_eq(proto_find(BYTES(m), 1, PROTO_FIXED64, &f, &err), 1);
    cr_expect_eq(f.value, 0x0807060504030201u);
    cr_expect_eq(proto_find(BYTES(m), 2, PROTO_FIXED32, &f, &err), 1);
    cr_expect_eq(f.value, 0xfcfdfeffu);
}

Test(proto, refuses_what_is_malformed)
{
    static const struct {
        struct proto_bytes message;
        const char *where;
    } bad[] = {
        {BYTES("\x08"), "byte 0"},             /* no value */
        {BYTES("\x08\x01\x08\x80"), "byte 2"}, /* a varint without its end */
        {BYTES("\x0a\x02x"), "byte 0"},        /* shorter than it says */
        {BYTES("\x00\x01"), "byte 0"},         /* the number 0 */
        {BYTES("\x0b\x0c"), "byte 0"},         /* a group */
        {BYTES("\x0e\x00"), "byte 0"},         /* no kind */
        {BYTES("\x09\x01\x02\x03"), "byte 0"}, /* too short a number */
        {BYTES("\x80\x80\x80\x80\x10\x00"), "byte 0"}, /* number 2^29 */
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "byte 0"},
        {BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "byte 0"},
    };
    cleanup_str struct str text = STR_INIT(1024);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        cr_expect_null(shape(bad[i].message, &text, &err), "%zu", i);
        cr_expect_eq(err.code, EPROTO);
        cr_expect(strstr(err.text, bad[i].where), "%zu: %s", i, err.text);
    }
}

Test(proto, knows_texts)
{
    cr_expect(proto_is_text(BYTES("")));
    cr_expect(proto_is_text(BYTES("gr\xc3\xbc\xc3\x9f")));
    cr_expect_not(proto_is_text(BYTES("a\0b")));
    cr_expect_not(proto_is_text(BYTES("\xc3")));
    cr_expect_not(proto_is_text(BYTES("\xed\xa0\x80")));
}

Test(proto, keeps_within_the_cap)
{
    for (size_t max = 0; max < 24; max++) {
        cleanup_str struct str m = STR_INIT(max);
        size_t first = proto_open(&m, 1), second = proto_open(&m, 2);
        proto_add_text(&m, 3, "0123456789");
        proto_close(&m, second);
        proto_close(&m, first);
        cr_expect_leq(m.size, max);
        cr_expect_eq(m.overflow, max < 16, "%zu", max);
    }
}
