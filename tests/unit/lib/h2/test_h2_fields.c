/* Header fields in their order, each as often as it came. */
#include "lib/h2/h2_fields.h"

#include <criterion/criterion.h>
#include <string.h>

Test(h2_fields, order_and_number_are_kept)
{
    struct h2_fields f;
    const char *name, *value;
    size_t at = 0;
    h2_fields_init(&f, 1000);
    cr_expect(h2_fields_add_text(&f, ":path", "/a"));
    cr_expect(h2_fields_add_text(&f, "x", "1"));
    cr_expect(h2_fields_add_text(&f, "x", ""));
    cr_expect(h2_fields_add_text(&f, "x", "1"));
    cr_expect_eq(f.n, 4);
    cr_expect_str_eq(h2_fields_get(&f, "X"), "1", "the first");
    cr_expect_null(h2_fields_get(&f, "y"));
    cr_expect(h2_fields_next(&f, &at, &name, &value));
    cr_expect_str_eq(name, ":path");
    cr_expect_str_eq(value, "/a");
    cr_expect(h2_fields_next(&f, &at, &name, &value));
    cr_expect(h2_fields_next(&f, &at, &name, &value));
    cr_expect_str_eq(value, "");
    cr_expect(h2_fields_next(&f, &at, &name, &value));
    cr_expect(!h2_fields_next(&f, &at, &name, &value));
    h2_fields_reset(&f);
    cr_expect_null(h2_fields_get(&f, "x"));
    h2_fields_fini(&f);
}

Test(h2_fields, what_is_too_much_is_counted_and_left_out)
{
    struct h2_fields f;
    h2_fields_init(&f, 2 * (H2_FIELD_OVERHEAD + 4));
    cr_expect(h2_fields_add_text(&f, "aa", "bb"));
    cr_expect(h2_fields_add_text(&f, "cc", "dd"));
    cr_expect(!h2_fields_are_cut(&f));
    cr_expect(!h2_fields_add_text(&f, "e", "f"));
    cr_expect(h2_fields_are_cut(&f));
    cr_expect_null(h2_fields_get(&f, "e"));
    cr_expect_eq(f.n, 2);
    h2_fields_fini(&f);
}

Test(h2_fields, names_and_values_are_handed_on)
{
    const nghttp2_nv nv = h2_nv("name", "value");
    cr_expect_eq(nv.namelen, 4);
    cr_expect_eq(nv.valuelen, 5);
    cr_expect_eq(memcmp(nv.value, "value", 5), 0);
}
