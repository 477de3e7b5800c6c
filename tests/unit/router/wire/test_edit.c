/* A message copied with some fields changed. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "router/wire/edit.h"
#include "tests/lib/router/criwire.h"

static char fresh[] = "new";

/* Field 2 goes, field 3 is written anew, field 4 is refused. */
static int change(void *ctx, const struct proto_field *f, struct str *out,
                  struct error *err)
{
    if (f->number == 2)
        return EDIT_DROP;
    if (f->number == 3) {
        proto_add_text(out, 3, ctx);
        return EDIT_DROP;
    }
    return f->number == 4 ? error_set(err, EPERM, "field 4") : EDIT_COPY;
}

static void finish(void *ctx, struct str *out)
{
    (void)ctx;
    proto_add_varint(out, 9, 1);
}

Test(edit, copies_drops_and_changes)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1024),
                           expected = STR_INIT(1024);
    struct error err = {0};
    proto_add_varint(&m, 1, 7);
    proto_add_text(&m, 2, "gone");
    proto_add_text(&m, 3, "old");
    criwire_add_newer(&m, "newer");
    cr_assert_eq(edit_fields(criwire_of(&m), change, fresh, &out, &err), 0);
    proto_add_varint(&expected, 1, 7);
    proto_add_text(&expected, 3, "new");
    criwire_add_newer(&expected, "newer");
    cr_assert_eq(out.size, expected.size);
    cr_expect_arr_eq(out.data, expected.data, out.size);
}

Test(edit, within_a_message)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1024);
    struct proto_field f;
    struct error err = {0};
    size_t inner = proto_open(&m, 5);
    proto_add_text(&m, 2, "gone");
    proto_add_varint(&m, 1, 7);
    proto_close(&m, inner);
    cr_assert_eq(proto_find(criwire_of(&m), 5, PROTO_BYTES, &f, &err), 1);
    cr_assert_eq(edit_within(&f, change, finish, fresh, &out, &err), 0);
    cr_expect_eq(CRIWIRE_NUMBER(&out, 0, 5, 1), 7);
    cr_expect_eq(CRIWIRE_NUMBER(&out, 0, 5, 9), 1);
    cr_expect_eq(criwire_count(CRIWIRE_IN(&out, 5), 2), 0);
}

Test(edit, ends_at_what_is_refused_or_malformed)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1024);
    struct error err = {0};
    proto_add_varint(&m, 4, 1);
    cr_expect_eq(edit_fields(criwire_of(&m), change, fresh, &out, &err),
                 -EPERM);
    str_reset(&m);
    str_add_c(&m, '\x08');
    cr_expect_eq(edit_fields(criwire_of(&m), change, fresh, &out, &err),
                 -EPROTO);
}

Test(edit, says_how_a_text_ended)
{
    struct str out = STR_INIT(4);
    struct error err = {0};
    cr_expect_eq(edit_end(&out, &err), 0);
    str_add(&out, "12345");
    cr_expect_eq(edit_end(&out, &err), -EMSGSIZE);
    out.starved = true;
    cr_expect_eq(edit_end(&out, &err), -ENOMEM);
    str_fini(&out);
}

Test(edit, knows_keys)
{
    static const struct cri_pair pairs[] = {{"a", "1"}, {"b", "2"}};
    cleanup_str struct str m = STR_INIT(1024);
    struct proto_field f;
    edit_add_pairs(&m, 6, (struct cri_pairs){pairs, 2});
    cr_expect_eq(criwire_count(criwire_of(&m), 6), 2);
    cr_assert_eq(proto_find(criwire_of(&m), 6, PROTO_BYTES, &f, NULL), 1);
    cr_expect(edit_is_key(&f, "b"));
    cr_expect_not(edit_is_key(&f, "a"));
    cr_expect(edit_is_key_of(&f, (struct cri_pairs){pairs, 2}));
    cr_expect_not(edit_is_key_of(&f, (struct cri_pairs){pairs, 1}));
    cr_expect_eq(edit_bytes(criwire_of(&m), 7).size, 0);
    cr_expect_eq(edit_number(criwire_of(&m), 6), 0);
}
